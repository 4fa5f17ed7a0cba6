#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What real agents on the software device come to say of each other when paths and agents go bad:
the verdict, its evidence, who is told, and that nobody else is blamed.

    agent_verdicts_test.py BUILD-ROOT

The tests follow each other on one cluster of four. Probes are five a second, so that what is learnt
over windows is learnt soon.
"""

import pathlib
import sys
import time

import agents
import cluster as clusters
import tap

INFINIBAND = pathlib.Path("/sys/class/infiniband")
SEEN_SECONDS = 90
HOLE_SECONDS = 20  # a hole in the MTU that stays, long enough for its word to change if it did
SLOW = "delay=20ms"


def finding(agent, name):
    return agent.ask(f"HEALTH {name}")["findings"][0]


def says(agent, name, verdict):
    row = finding(agent, name)
    return row if row["verdict"] == verdict else None


def victim_and_others(cluster, number):
    """Another node each time: what goes bad twice within a minute is unstable."""
    victim = cluster.agents[number]
    return victim, [agent for agent in cluster.agents if agent != victim]


def wait_verdict(cluster, name, verdict, among):
    """Until all of them say so; the seconds that it took, and what the first of them says."""
    since = time.monotonic()
    agents.wait_until(f"{name} {verdict}", lambda: all(
        says(agent, name, verdict) for agent in among), SEEN_SECONDS)
    seconds = time.monotonic() - since
    agents.say(f"{name} {verdict} everywhere after {seconds:.2f} s")
    return finding(among[0], name)


def worse(cluster, among=None):
    """(who says it, of whom, what) of all verdicts that were ever told and are not for the better.
    On a busy machine an agent is truly short of processor time."""
    return {(agent.name, event["node"], event["text"].split(",")[0])
            for agent in among or cluster.running() for event in agent.events("VERDICT")
            if not event["text"].startswith(("healthy", "unknown", "none", "node-busy"))}


def test_healthy(cluster):
    """Four agents read each other's pulses, and nobody says anything bad of anybody."""
    for agent in cluster.agents:
        agent.configure(probe__interval="200ms", probe__packets="800",
                        device__soft0__faults="")
    cluster.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_until("what is usual on all paths", cluster.paths_are_known, SEEN_SECONDS)
    for agent in cluster.agents:
        for peer in cluster.agents:
            assert says(agent, peer.name, "healthy"), finding(agent, peer.name)
    assert not worse(cluster), [
        (event["time"], event["node"], event["text"])
        for event in cluster.agents[0].events("VERDICT")]


def test_slow(cluster):
    """One whose packets come late is path-degraded for all and itself, and drains nobody."""
    victim = cluster.agents[3]
    victim.set_faults(SLOW)
    row = wait_verdict(cluster, victim.name, "path-degraded", cluster.agents)
    assert row["reason"] == "PulseSlow" and row["advice"] == "warn", row
    assert row["grade"] == "warning", row
    assert "paths to it are slow: a median of " in row["evidence"], row
    victim.set_faults("")
    wait_verdict(cluster, victim.name, "healthy", cluster.agents)
    told = {what for what in worse(cluster) if what[1:] != (victim.name, "path-degraded")}
    assert not told, told


def break_path(cluster, faults, kind):
    """Between the third and the fourth, one way; both ends see it, and no node is blamed."""
    one, other = cluster.agents[2:4]
    ends = ((one, other), (other, one))
    before = worse(cluster)
    since = {agent.name: len(agent.paths_seen(peer.name)) for agent, peer in ends}
    one.set_faults(f"{faults},to={other.address}")
    agents.wait_until(f"both ends to see it {kind}", lambda: all(
        kind in agent.paths_seen(peer.name)[since[agent.name]:]
        for agent, peer in ends), SEEN_SECONDS)
    for agent in cluster.agents:
        for name in (one.name, other.name):
            assert says(agent, name, "healthy"), finding(agent, name)
    one.set_faults("")
    agents.wait_until("both ends to see it good", lambda: all(
        agent.paths_seen(peer.name)[-1] == "good" for agent, peer in ends), SEEN_SECONDS)
    assert worse(cluster) == before, worse(cluster) - before


def test_slow_path(cluster):
    """A single path that is slow is seen at both its ends, and no node is blamed."""
    break_path(cluster, SLOW, "degraded")


def test_cut_path(cluster):
    """A single path that is cut is seen at both its ends, and no node is blamed."""
    break_path(cluster, "loss=100%", "silent")


def test_lossy(cluster):
    """One whose large packets are lost is path-lossy, with the size, and drains nobody."""
    victim, others = victim_and_others(cluster, 0)
    victim.set_faults("large=100%")
    row = wait_verdict(cluster, victim.name, "path-lossy", others)
    assert row["reason"] == "LargeLost" and row["advice"] == "warn", row
    since = {agent.name: latest(agent) for agent in others}
    time.sleep(HOLE_SECONDS)  # the fault lasts
    for agent in others:
        assert not verdicts_of(agent, victim.name, since[agent.name]), (
            agent.name, verdicts_of(agent, victim.name, since[agent.name]))
    victim.set_faults("")
    begun = time.monotonic()
    wait_verdict(cluster, victim.name, "healthy", cluster.agents)
    agents.say(f"healthy everywhere {time.monotonic() - begun:.1f} s after its end")


def test_cut(cluster):
    """One that nobody reads any more while its agent answers is fabric-down."""
    victim, others = victim_and_others(cluster, 1)
    victim.set_faults("loss=100%")
    row = wait_verdict(cluster, victim.name, "fabric-down", others)
    assert row["reason"] == "PulseUnread" and row["state"] == "alive", row
    # What it does not read itself is nobody's fault.
    for agent in cluster.agents:
        for other in others:
            assert says(agent, other.name, "healthy"), finding(agent, other.name)
    victim.set_faults("")
    wait_verdict(cluster, victim.name, "healthy", cluster.agents)


def verdicts_of(agent, name, since):
    return [event["text"].split(",")[0] for event in agent.events("VERDICT", name, since)]


def latest(agent):
    return max((event["sequence"] for event in agent.events()), default=0) + 1


def test_frozen(cluster):
    """One that is stopped is agent-frozen, never node-down, and healthy when it goes on."""
    victim, others = victim_and_others(cluster, 2)
    since = {agent.name: latest(agent) for agent in others}
    victim.freeze()
    row = wait_verdict(cluster, victim.name, "agent-frozen", others)
    assert row["reason"] in ("AgentMute", "PulseStands"), row
    victim.thaw()
    wait_verdict(cluster, victim.name, "healthy", cluster.agents)
    for agent in others:
        told = set(verdicts_of(agent, victim.name, since[agent.name]))
        # Where processors are short its pulse is missed seconds before its agent is: fabric-down
        # until then, which is a warning in its first seconds.
        assert told <= {"unknown", "fabric-down", "agent-frozen", "healthy"}, told
        for other in others:
            assert not verdicts_of(agent, other.name, since[agent.name]), agent.events("VERDICT")
    # Nobody was silent while it was stopped itself.
    assert not verdicts_of(victim, others[0].name, since[others[0].name]), victim.events("VERDICT")


def test_killed(cluster):
    """One whose process is gone is agent-down, never fabric-down, and healthy as a new start."""
    victim, others = victim_and_others(cluster, 3)
    since = {agent.name: latest(agent) for agent in others}
    victim.kill()
    row = wait_verdict(cluster, victim.name, "agent-down", others)
    assert row["reason"] == "AgentGone" and row["advice"] == "restart", row
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    wait_verdict(cluster, victim.name, "healthy", cluster.agents)
    for agent in others:
        told = set(verdicts_of(agent, victim.name, since[agent.name]))
        # Reads that its end cut short are lost ones: where they are many, its paths are lossy.
        assert told <= {"unknown", "agent-down", "healthy", "path-lossy"}, told
    agents.end(cluster)


def skip():
    raise tap.Skip("this machine has an RDMA device")


def main():
    if INFINIBAND.is_dir() and any(INFINIBAND.iterdir()):
        tap.run([("verdicts over the software device", skip)])
    agents.run(clusters.Cluster(sys.argv[1], 4), [
        test_healthy, test_slow, test_slow_path, test_cut_path, test_lossy, test_cut,
        test_frozen, test_killed])


if __name__ == "__main__":
    main()
