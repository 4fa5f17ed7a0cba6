#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Standing probes of real agents on the software device, whose faults make paths slow, lossy and
silent: what the others see is in their logs.

    agent_probe_test.py BUILD-ROOT
"""

import pathlib
import re
import signal
import sys

import agents
import cluster as clusters
import tap

INFINIBAND = pathlib.Path("/sys/class/infiniband")
SEEN_SECONDS = 60
# Four windows of five seconds, with six of ten probes small and five a second on three paths.
LEARNT_PROBES = 260


def paths(agent, peer):
    """How this agent saw its path to another, in order: the words of its log."""
    pattern = re.compile(rf" rdma_path peer={peer.name} .* seen=(\S+) own_port_good=(\S+) ")
    return pattern.findall(agent.log.read_text())


def wait_seen(agent, peer, kind, since=0):
    agents.wait_until(f"{agent.name} sees {peer.name} as {kind}",
                      lambda: kind in [row[0] for row in paths(agent, peer)[since:]],
                      SEEN_SECONDS)


def restart(cluster, victim, faults):
    """With other faults. Where the words begin that others say of it from then on."""
    assert victim.leave() == 0
    since = {agent.name: len(paths(agent, victim)) for agent in cluster.agents}
    victim.configure(device__soft0__faults=faults)
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    return since


def probe(agent):
    return agent.counters()["probe"]


def sent(agent, size):
    return probe(agent)["sent"][f'bytes="{size}"']


def test_good(cluster):
    """Every agent reads the pulses of the others and of itself, and sees them go on."""
    for agent in cluster.agents:
        agent.configure(probe__interval="200ms", probe__packets="400")
    cluster.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    for agent in cluster.agents:
        for peer in cluster.agents:
            if peer is not agent:
                wait_seen(agent, peer, "good")
        agents.wait_until("all sizes", lambda one=agent: all(
            sent(one, size) > 0 and probe(one)["written"][f'bytes="{size}"'] > 0
            for size in ("8", "1024", "mtu", "65536")))
        counters = probe(agent)
        assert counters["neighbours"] == 3 and counters["interval_ns"] == 200e6, counters


def test_slow(cluster):
    """A path that becomes slow is degraded for those who knew it before, and for nobody else's."""
    victim, others = cluster.agents[2], cluster.agents[:2]
    agents.wait_until("the baseline", lambda: all(
        sent(agent, "8") >= LEARNT_PROBES for agent in others), SEEN_SECONDS)
    since = restart(cluster, victim, "delay=20ms")
    for agent, other in zip(others, reversed(others)):
        wait_seen(agent, victim, "degraded", since[agent.name])
        assert "degraded" not in [row[0] for row in paths(agent, other)], paths(agent, other)


def usual_ns(agent, peer):
    return next(path["baseline_ns"] for path in agent.ask("PATHS")["paths"]
                if path["peer"] == peer.name)


def test_slow_for_new_observers(cluster):
    """It stays so when all who see it are started anew, one after the other: they know the past."""
    victim, others = cluster.agents[2], cluster.agents[:2]
    for agent in others:
        since, usual = len(paths(agent, victim)), usual_ns(agent, victim)
        assert agent.leave() == 0
        agent.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        wait_seen(agent, victim, "degraded", since)
        agents.say(f"{agent.name}: usual {usual} ns, and {usual_ns(agent, victim)} ns after it")
        assert usual_ns(agent, victim) < 2 * usual, (usual, usual_ns(agent, victim))
        assert probe(agent)["baselines_taken"] >= 3, probe(agent)
        assert probe(agent)["path_files_unreadable"] == 0, probe(agent)
    for agent in others:
        agents.wait_until(f"{agent.name} to call it slow", lambda one=agent: one.ask(
            f"HEALTH {victim.name}")["findings"][0]["verdict"] == "path-degraded")


def test_lossy(cluster):
    """A path that loses large packets only is lossy, and read all the same."""
    victim, others = cluster.agents[2], cluster.agents[:2]
    since = restart(cluster, victim, "large=100%")
    for agent in others:
        wait_seen(agent, victim, "lossy", since[agent.name])
        lost = probe(agent)["lost"]
        large = lost['bytes="mtu"'] + lost['bytes="65536"']
        assert large > lost['bytes="8"'] + lost['bytes="1024"'], lost


def test_silent(cluster):
    """One whose packets are all lost is silent, and finds that its own port is not good."""
    victim, others = cluster.agents[2], cluster.agents[:2]
    since = restart(cluster, victim, "loss=100%")
    for agent in others:
        wait_seen(agent, victim, "silent", since[agent.name])
        assert ("silent", "true") in paths(agent, victim), paths(agent, victim)
        wait_seen(victim, agent, "silent", since[victim.name])
        assert ("silent", "false") in paths(victim, agent), paths(victim, agent)


def test_clear(cluster):
    """Without faults everything is seen as good again."""
    victim, others = cluster.agents[2], cluster.agents[:2]
    since = restart(cluster, victim, "")
    for agent in others:
        wait_seen(agent, victim, "good", since[agent.name])


def test_dead(cluster):
    """Of one that was killed nobody shows a good path, as soon as he holds it for dead."""
    victim, others = cluster.agents[2], cluster.agents[:2]
    victim.kill()
    for agent in others:
        agents.wait_for_state(cluster, victim.name, "dead", [agent])
        seen = [path["seen"] for path in agent.ask("PATHS *")["paths"]
                if path["peer"] == victim.name]
        assert not {"good", "degraded"} & set(seen), seen
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)


def test_off(cluster):
    """Switched off, nobody is probed."""
    victim = cluster.agents[2]
    victim.configure(probe__enabled="no")
    restart(cluster, victim, "")
    agents.wait_until("pairs", lambda: any(
        pair["state"] == "ready" for pair in victim.ask("PAIRS")["pairs"]))
    assert probe(victim)["answered"] == 0 and probe(victim)["neighbours"] == 0, probe(victim)


def test_reload(cluster):
    """SIGHUP switches probing on, with an interval of its own, and off again."""
    victim = cluster.agents[2]
    victim.configure(probe__enabled="yes", probe__interval="100ms")
    victim.signal(signal.SIGHUP)
    agents.wait_until("probes", lambda: probe(victim)["answered"] > 20)
    assert probe(victim)["interval_ns"] >= 100e6, probe(victim)
    assert victim.ask("PATHS")["probing"]
    victim.configure(probe__enabled="no")
    victim.signal(signal.SIGHUP)
    agents.wait_until("no probes", lambda: probe(victim)["neighbours"] == 0)
    assert victim.ask("PATHS")["paths"] == [], victim.ask("PATHS")
    assert "probe_not_reloaded" not in victim.log.read_text()
    agents.end(cluster)


def main():
    if INFINIBAND.is_dir() and any(INFINIBAND.iterdir()):
        tap.run([("standing probes over the software device", skip)])
    agents.run(clusters.Cluster(sys.argv[1], 3), [
        test_good, test_slow, test_slow_for_new_observers, test_lossy, test_silent, test_clear,
        test_dead, test_off, test_reload])


def skip():
    raise tap.Skip("this machine has an RDMA device")


if __name__ == "__main__":
    main()
