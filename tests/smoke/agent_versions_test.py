#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents of several releases in one cluster, and who is refused: real programs, each by its build.

    agent_versions_test.py BUILD-ROOT TOCSIND-NEXT TOCSIND-FAR

This build speaks version 3 of the protocol, the next one 3 and 4, the far one 5. The tests follow
each other on one cluster.
"""

import pathlib
import subprocess
import sys

import agents
import cluster as clusters
import patience

NEXT, FAR = (pathlib.Path(path).resolve() for path in sys.argv[2:4])
AGENTS = 6
REFUSED_FOR_NAME, REFUSED_FOR_VERSION = 3, 4  # tocsind(8), EXIT STATUS
NEVER_JOINED = ("far", "far2")


def tocsin(agent, *words):
    """What the client says, which is of this build."""
    return subprocess.run([str(agent.cluster.tocsin), *words, "--socket", str(agent.socket)],
                          capture_output=True, text=True, timeout=patience.HANG_SECONDS,
                          check=False).stdout


def versions_of_links(agent):
    """name of the other end -> version of the protocol that they use."""
    return {link["node"]: link["protocol"] for link in agent.ask("LINKS")["links"]
            if link["state"] == "up"}


def newcomer(cluster, number, name, program, seed):
    """An agent beside the cluster that joins through one of it; it is not started."""
    agent = clusters.Agent(cluster, number)
    agent.program = program
    agent.own = {"node.name": name, "node.host": f"host-{name}", "overlay.join": seed.address}
    return agent


def exit_status(agent):
    try:
        return agent.process.wait(agents.WAIT_SECONDS)
    finally:
        if agent.running():
            agent.kill()


def test_one_ring(cluster):
    """Old and next agents form one ring, and every link uses the version that both speak."""
    for agent in cluster.agents[1::2]:
        agent.program = NEXT
    cluster.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_one_view(cluster)
    new = {agent.name for agent in cluster.agents if agent.program == NEXT}
    # Ring neighbours are of the other kind; which long links there are is a matter of chance.
    agents.wait_until("two new ones to be linked", lambda: any(
        set(versions_of_links(agent)) & new for agent in cluster.agents if agent.name in new))
    for agent in cluster.agents:
        links = versions_of_links(agent)
        assert set(links) - new or agent.name not in new, (agent.name, links)
        expected = {name: 4 if {agent.name, name} <= new else 3 for name in links}
        assert links == expected, (agent.name, links)


def test_questions(cluster):
    """Either tells of the other, and asks it over the relay."""
    old, new = cluster.agents[:2]
    for here, there in ((old, new), (new, old)):
        status = tocsin(here, "status")
        assert f"{AGENTS} members" in status, status
        why = tocsin(here, "why", there.name)
        assert there.name in why and "alive" in why, why
        asked = tocsin(here, "peers", "--node", there.name)
        assert all(agent.name in asked for agent in cluster.agents), asked
        assert there.name in tocsin(here, "ping", there.name)


def test_faults(cluster):
    """One of either is killed and one leaves: all know, and those who come back are taken in."""
    for dead, leaver in (cluster.agents[2:4], cluster.agents[3:1:-1]):
        dead.kill()
        agents.say(f"{dead.name} dead everywhere after "
                   f"{agents.wait_for_state(cluster, dead.name, 'dead'):.2f} s")
        assert leaver.leave() == 0
        agents.wait_for_state(cluster, leaver.name, "left")
        for agent in (dead, leaver):
            agent.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_one_view(cluster)
    agents.assert_no_death_but(cluster, "n3", "n4")


def test_far_is_refused(cluster):
    """One without a version in common is refused; both sides say which they speak."""
    for number, name, member, ours in ((20, "far", cluster.agents[0], "3"),
                                       (21, "far2", cluster.agents[1], "3-4")):
        far = newcomer(cluster, number, name, FAR, member).start()
        assert exit_status(far) == REFUSED_FOR_VERSION
        log = far.log.read_text()
        assert f"by={member.address}:28030 cause=version" in log, log
        assert f"the other agent speaks version {ours} of the protocol, this agent 5;" in log, log
        agents.wait_log(member, f"event=OTHER_VERSION peer={name} cause=version "
                                f"theirs=5 ours={ours}")
        event = member.events("OTHER_VERSION", name)[0]
        assert event["detail"] == f"version, it speaks protocol 5, this agent {ours}", event
        assert member.counters()["overlay"]["versions_refused"] == 1, member.counters()["overlay"]
    for agent in cluster.agents:
        assert not set(agent.peers()) & set(NEVER_JOINED), agent.peers()


def test_name_is_taken(cluster):
    """A second holder of a name is refused by its own exit status, by old and next alike."""
    for number, holder, program in ((22, cluster.agents[4], NEXT),
                                    (23, cluster.agents[5], cluster.tocsind)):
        # Its files are in a directory of their own, as those of another host.
        second = newcomer(cluster, number, holder.name, program, cluster.agents[0]).start()
        status = exit_status(second)
        log = second.log.read_text()
        assert status == REFUSED_FOR_NAME, (status, log)
        assert f"by={holder.address}:28030 cause=conflict" in log, log
        assert f"address={second.address}:28030" in log, log
    agents.assert_unharmed(cluster, "n3", "n4")


def test_upgrade(cluster):
    """One after the other becomes the next release: then they use its version."""
    for agent in cluster.agents[0::2]:
        assert agent.leave() == 0
        agent.program = NEXT
        agent.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
    for agent in cluster.agents:
        agents.wait_until("the next version on every link",
                          lambda agent=agent: set(versions_of_links(agent).values()) == {4})
    agents.assert_no_death_but(cluster, "n3", "n4")


def test_end(cluster):
    """All leave with exit status 0."""
    agents.end(cluster)


TESTS = [
    test_one_ring, test_questions, test_faults, test_far_is_refused, test_name_is_taken,
    test_upgrade, test_end,
]

if __name__ == "__main__":
    agents.run(clusters.Cluster(sys.argv[1], AGENTS), TESTS)
