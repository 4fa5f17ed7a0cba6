#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One count for the cluster: who grants drains, who goes on when that one is killed, and what is
said of a drain that is withheld.

    agent_grants_test.py BUILD-ROOT
"""

import pathlib
import sys

import agents
import cluster as clusters
import tap

INFINIBAND = pathlib.Path("/sys/class/infiniband")
COUNT = 6
SEEN_SECONDS = 90


def granters(cluster):
    return {agent.ask("HEALTH")["granter"] for agent in cluster.running()}


def finding(agent, name):
    return agent.ask(f"HEALTH {name}")["findings"][0]


def wait_granter(cluster, *not_one_of):
    """Until all have the same."""
    def agreed():
        found = granters(cluster)
        return len(found) == 1 and not found & {None, *not_one_of} and found

    name, = agents.wait_until(lambda: f"one granter, not {granters(cluster)}", agreed,
                              SEEN_SECONDS)
    return next(agent for agent in cluster.agents if agent.name == name)


def others_than(cluster, *agents_left_out):
    return [agent for agent in cluster.running() if agent not in agents_left_out]


def one_is_granted_and_all_know(cluster):
    """One that nobody reads may be drained, say all, since one of them granted it."""
    granter = wait_granter(cluster)
    victim = others_than(cluster, granter)[0]
    agents.wait_until("two who read it", lambda: sum(
        any(path["peer"] == victim.name and path["steady"] and path["seen"] == "good"
            for path in agent.ask("PATHS")["paths"])
        for agent in others_than(cluster, victim)) >= 2, SEEN_SECONDS)
    victim.set_faults("loss=100%")
    agents.wait_until(f"{victim.name} to be granted", lambda: all(
        finding(agent, victim.name)["advice"] == "drain"
        for agent in others_than(cluster, victim)), SEEN_SECONDS)
    assert all(finding(agent, victim.name)["withheld"] is None
               for agent in others_than(cluster, victim))
    return granter, victim


def the_next_one_counts_on(cluster):
    """the granter is killed: the next one keeps the grant, and grants no more than the rate"""
    cluster.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    granter, victim = one_is_granted_and_all_know(cluster)
    granter.kill()
    second = wait_granter(cluster, granter.name)
    bad = others_than(cluster, victim, second, granter)[0]
    bad.set_faults("loss=100%")
    agents.wait_until(f"{bad.name} fabric-down", lambda: finding(second, bad.name)["verdict"] ==
                      "fabric-down", SEEN_SECONDS)
    row = agents.wait_until("its drain to be withheld", lambda: next(
        (row for row in [finding(second, bad.name)] if row["withheld"]), None), SEEN_SECONDS)
    assert row["advice"] == "warn", row
    assert finding(second, victim.name)["withheld"] is None, finding(second, victim.name)
    # One that did not run for some seconds, beside a build, was agent-frozen to those who looked:
    # it is fabric-down anew, so a drain is advised after 5 s more, by the grant that it has.
    agents.wait_until(lambda: f"its drain to be advised: {finding(second, victim.name)}", lambda:
                      finding(second, victim.name)["advice"] == "drain", SEEN_SECONDS)
    assert second.ask(f"WHY {bad.name}")["withheld"] == row["withheld"], row
    agents.say(f"{bad.name}: {row['withheld']}")


def a_new_key_is_not_drained_on_its_own_word(cluster):
    """the granter comes back without its state, and says that its disk failed"""
    late = next(agent for agent in cluster.agents if agent not in cluster.running())
    key, = late.directory.rglob("agent.key")
    key.unlink()
    script = late.directory / "disk.sh"
    script.write_text("#!/bin/sh\necho the disk failed\nexit 2\n")
    script.chmod(0o755)
    late.configure(check__disk__command=script, check__disk__interval="2s",
                   check__disk__timeout="1s")
    late.start()
    for agent in others_than(cluster, late):
        row = agents.wait_until(f"{agent.name} to withhold its drain", lambda agent=agent: next(
            (row for row in [finding(agent, late.name)] if row["withheld"]), None), SEEN_SECONDS)
        assert row["withheld"].startswith("its key changed"), row
        assert row["observers"] == [late.name] and row["advice"] == "warn", row
        assert agent.events("KEY_CHANGED", late.name)


def main():
    if INFINIBAND.is_dir() and any(INFINIBAND.iterdir()):
        def skip():
            raise tap.Skip("this machine has an RDMA device, which no software fault cuts")
        tap.run([("grants over the software device", skip)])
    cluster = clusters.Cluster(sys.argv[1], COUNT, settings={
        "health.confirm": "1s", "probe.interval": "200ms", "probe.packets": "800",
        "device.soft0.faults": ""})
    agents.run(cluster, [the_next_one_counts_on, a_new_key_is_not_drained_on_its_own_word])


if __name__ == "__main__":
    main()
