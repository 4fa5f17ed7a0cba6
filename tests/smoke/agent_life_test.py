#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A small cluster through what operators do to it: late seeds, reloads, other keys, a roster.

    agent_life_test.py BUILD-ROOT

The tests follow each other on one cluster.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import agents
import cluster as clusters
import patience

AGENTS = 4
OUTSIDER = "n90"  # has only the old key


def test_seeds_last(cluster):
    """Agents whose seeds are not there yet are alone and say so; they found no ring."""
    early, seeds = cluster.agents[3], cluster.agents[:3]
    early.start()
    agents.wait_until("one to say that it waits", lambda: early.events("JOIN_WAITING"))
    assert not early.ask("PEERS")["joined"]
    for agent in seeds:
        agent.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_one_view(cluster)
    assert early.events("JOIN_DONE")


def test_join_file(cluster):
    """A list of addresses in a file is read again on SIGHUP."""
    joiner = cluster.agents[3]
    addresses = cluster.directory / "join"
    addresses.write_text(f"{cluster.address(77)}\n")
    assert joiner.leave() == 0
    # Who left is looked for, and whoever has no ring joins through the member that calls it.
    for agent in cluster.running():
        agents.wait_until("its goodbye", lambda agent=agent: agent.peers()[joiner.name] == "left")
    assert cluster.agents[0].ask(f"FORGET {joiner.name}") == {"ok": True}
    for agent in cluster.running():
        agents.wait_until("all to forget it", lambda agent=agent: joiner.name not in agent.peers())
    # Nor does it remember them.
    (joiner.directory / "state" / "members").unlink()
    joiner.own["overlay.join"] = addresses
    joiner.start()
    agents.wait_until("nobody to be found", lambda: joiner.events("JOIN_WAITING"))
    addresses.write_text(f"{cluster.address(1)}\n")
    agents.wait_reloaded(joiner)
    cluster.wait_ring(agents.WAIT_SECONDS)


def test_reload(cluster):
    """SIGHUP changes what can change, says what cannot, and an error changes nothing."""
    agent = cluster.agents[1]
    agent.configure(log__level="debug", node__journal_size="2MiB")
    agents.wait_reloaded(agent)
    agents.wait_log(agent, "key=level before=info after=debug effect=now")
    agents.wait_log(agent, 'key=journal_size before=8MiB after=2MiB effect="at the next start"')
    agents.wait_log(agent, "reloaded key=read waiting_for_restart=1")
    agents.wait_reloaded(agent)
    assert agent.log.read_text().count("reloaded key=read waiting_for_restart=1") == 2
    del agent.own["node.journal_size"]
    agent.configure()
    agents.wait_reloaded(agent)
    agents.wait_log(agent, 'before=2MiB after=8MiB '
                           'effect="none: the value is the same as at the start"')
    agents.wait_log(agent, "reloaded key=read waiting_for_restart=0")
    agent.config.write_text("[overlay]\njion = nobody\n")
    agent.signal(1)
    agents.wait_log(agent, "reload_failed")
    agent.configure(log__level="info")
    agents.wait_reloaded(agent)
    agents.assert_unharmed(cluster)


def wait_link_state(agent, result):
    agents.wait_until(f"link-state to be {result}", lambda: any(
        row["name"] == "link-state" and row["last"] and row["last"]["result"] == result
        for row in agent.ask("CHECKS")["checks"]))


def last_reload(agent):
    return agent.log.read_text().rsplit(" reloaded ", 1)[1].splitlines()[0]


def test_reload_section(cluster):
    """A section that is added or removed is applied key by key."""
    agent = cluster.agents[1]
    agent.configure(health__interval="1s")
    agents.wait_reloaded(agent)
    wait_link_state(agent, "ok")
    agent.configure(device__none7__expect_rate="100", device__none7__mtu="1024",
                    device__soft0__faults="delay=1ms")
    agents.wait_reloaded(agent)
    for text in ('key=expect_rate before="" after=100 effect=now',
                 'key=mtu before=auto after=1024 effect="at the next start"',
                 'key=faults before="" after="delay=1ms" effect=now'):
        agents.wait_log(agent, text)
    assert last_reload(agent) == "key=read waiting_for_restart=1"
    wait_link_state(agent, "critical")
    for key in ("device.none7.expect_rate", "device.none7.mtu", "device.soft0.faults"):
        del agent.own[key]
    agent.configure()
    agents.wait_reloaded(agent)
    for text in ('key=expect_rate before=100 after="" effect=now',
                 'key=mtu before=1024 after=auto '
                 'effect="none: the value is the same as at the start"',
                 'key=faults before="delay=1ms" after="" effect=now'):
        agents.wait_log(agent, text)
    assert last_reload(agent) == "key=read waiting_for_restart=0"
    wait_link_state(agent, "ok")
    del agent.own["health.interval"]
    agent.configure()
    agents.wait_reloaded(agent)


def test_reload_idle(cluster):
    """The idle policy of polling threads is changed while they run."""
    agent = cluster.agents[0]
    agent.configure(worker__idle="event")
    agents.wait_reloaded(agent)
    agents.wait_log(agent, "worker_idle worker=0 idle=event")
    agent.configure(worker__idle="adaptive")
    agents.wait_reloaded(agent)


def test_telemetry(cluster):
    """DPDK's own tools see what polling threads count."""
    agent = cluster.agents[0]
    where = re.findall(r" eal_started .*telemetry=(\S+)", agent.log.read_text())[-1]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
        asked.settimeout(agents.WAIT_SECONDS)
        asked.connect(f"{where}/dpdk_telemetry.v2")
        asked.recv(65536)  # who it is
        asked.send(b"/tocsin/worker")
        names = json.loads(asked.recv(65536))["/tocsin/worker"]
        asked.send(f"/tocsin/worker,{names[0]}".encode())
        counters = json.loads(asked.recv(65536))["/tocsin/worker"]
    assert counters["turns"] > 0, (names, counters)


def test_reload_early(cluster):
    """A SIGHUP that comes while the agent is still starting is obeyed when it has started."""
    agent = cluster.agents[1]
    assert agent.leave() == 0
    before = agent.log.read_text()
    agent.configure()
    text = agent.config.read_text()
    agent.config.unlink()
    os.mkfifo(agent.config)  # who reads it waits for us
    configure, agent.configure = agent.configure, lambda: None
    agent.start()
    agent.configure = configure
    with open(agent.config, "w", encoding="utf-8") as pipe:
        agent.signal(1)
        agent.config.unlink()
        agent.configure()  # a file in its place
        pipe.write(text)
    agents.wait_until("the reload", lambda: " reloaded " in agent.log.read_text()[len(before):])
    cluster.wait_ring(agents.WAIT_SECONDS)


def hang_reload(agent):
    """Puts a pipe where its configuration was and lets it read; returns what belongs there."""
    text = agent.config.read_text()
    agent.config.unlink()
    os.mkfifo(agent.config)
    agent.signal(1)
    agents.wait_log(agent, "reload_hangs")
    return text


def test_reload_hangs(cluster):
    """A configuration that cannot be read holds up the reload, not the agent; then it is read."""
    agent = cluster.agents[1]
    hung = agent.counters()["keeper"]["stuck"]
    text = hang_reload(agent)
    before = agent.log.read_text().count(" reloaded ")
    for _ in range(5):
        agent.signal(1)  # remembered, all together as one
        assert agent.ask("HEALTH")["joined"]
    assert agent.counters()["keeper"]["stuck"] == hung + 1
    assert cluster.agents[0].peers()[agent.name] == "alive"
    with open(agent.config, "w", encoding="utf-8") as pipe:
        agent.config.unlink()
        agent.config.write_text(text)
        pipe.write(text)
    agents.wait_until("both reloads",
                      lambda: agent.log.read_text().count(" reloaded ") == before + 2)
    agents.wait_reloaded(agent)
    assert agent.log.read_text().count(" reloaded ") == before + 3
    agents.assert_unharmed(cluster)


def test_leave_hanging(cluster):
    """One whose configuration cannot be read leaves as any other when it is told to."""
    agent = cluster.agents[1]
    hang_reload(agent)
    assert agent.leave() == 0
    agent.config.unlink()
    agent.start()
    cluster.wait_ring(agents.WAIT_SECONDS)


def test_roster(cluster):
    """A node of the roster that never came is missed, until the roster is without it."""
    agent = cluster.agents[0]
    agent.configure(overlay__expect="n[1-4],ghost7")
    agents.wait_reloaded(agent)
    found = agent.ask("HEALTH")
    assert (found["expected"], found["missing"], found["missing_nodes"]) == (5, 1, "ghost7"), found
    assert found["grade"] != "ok", found
    agent.configure(overlay__expect="n[1-4]")
    agents.wait_reloaded(agent)
    agents.wait_until("all to be well", lambda: agent.ask("HEALTH")["grade"] == "ok")


def test_rotation(cluster):
    """The key is replaced in three steps without losing a member; who has only the old one is
    out, though its connections were there before."""
    old = cluster.directory / "old-key"
    old.write_bytes(cluster.key.read_bytes())
    old.chmod(0o600)
    agents.wait_one_view(cluster)
    stranger = clusters.Agent(cluster, 90)
    stranger.own = {"overlay.key": old}
    stranger.start()
    try:
        agents.wait_until("the one with the old key to be in", lambda: all(
            agent.ask("HEALTH")["alive"] == AGENTS + 1 for agent in cluster.agents))
        rotate(cluster)
        agents.wait_until("the old key to be refused", lambda: any(
            agent.counters()["transport"]["proof_unknown_key"] for agent in cluster.agents))
        agents.wait_until("the one with the old key to be out", lambda: all(
            agent.ask("HEALTH")["alive"] == AGENTS for agent in cluster.agents))
    finally:
        stranger.kill()
    agents.wait_for_state(cluster, stranger.name, "dead")
    assert cluster.agents[0].ask(f"FORGET {stranger.name}") == {"ok": True}
    restarted = cluster.agents[3]
    assert restarted.leave() == 0
    restarted.start()
    cluster.wait_ring(agents.WAIT_SECONDS)


def rotate(cluster):
    last = {agent.name: agent.events()[-1]["sequence"] for agent in cluster.agents}
    for step in ("add", "swap", "drop"):
        subprocess.run([str(cluster.tocsin), "keygen", "--output", str(cluster.key), "--rotate",
                        step], check=True, stdout=subprocess.DEVNULL)
        for agent in cluster.agents:
            agents.wait_reloaded(agent)
        if step != "drop":
            assert not links_lost(cluster, last), step
    agents.wait_until("old links to be ended", lambda: any(
        agent.counters()["transport"]["revoked"] for agent in cluster.agents))
    dead = [(agent.name, event) for agent in cluster.agents
            for event in agent.events("DEAD", since=last[agent.name])
            if event["node"] != OUTSIDER]
    assert not dead, dead


def links_lost(cluster, last):
    return [(agent.name, event) for agent in cluster.agents
            for event in agent.events("LINK_DOWN", since=last[agent.name])
            if event["cause"] not in ("idle", "duplicate")]


def test_key_lost(cluster):
    """A key file that cannot be read any more leaves the keys as they were."""
    agent = cluster.agents[1]
    agent.own["overlay.key"] = cluster.key
    cluster.key.chmod(0o644)
    agent.signal(1)
    agents.wait_log(agent, "key_not_reloaded")
    agents.wait_log(agent, "reloaded key=refused")
    cluster.key.chmod(0o600)
    agents.wait_reloaded(agent)
    agents.assert_unharmed(cluster, OUTSIDER)


def test_second(cluster):
    """An agent that cannot start beside another of its name takes nothing of it away."""
    agent = cluster.agents[1]
    eal = pathlib.Path(re.findall(r" eal_started .*telemetry=(\S+)", agent.log.read_text())[-1])
    assert eal.is_dir(), eal
    for setting in ("node.name=" + agent.name, "node.state_directory="):
        second = subprocess.run(
            [str(cluster.tocsind), "--config", str(agent.config), "--set", setting],
            env={**os.environ, "RUNTIME_DIRECTORY": str(agent.directory)}, capture_output=True,
            text=True, timeout=patience.HANG_SECONDS, check=False)
        assert second.returncode == 1 and "start_failed" in second.stderr, second.stderr
        assert eal.is_dir(), (setting, second.stderr)
    agents.assert_unharmed(cluster, OUTSIDER)


def test_end(cluster):
    """Nobody else died in all this, and all leave with exit status 0."""
    agents.assert_no_death_but(cluster, OUTSIDER)
    agents.end(cluster)


TESTS = [
    test_seeds_last, test_join_file, test_reload, test_reload_section, test_reload_idle,
    test_telemetry, test_reload_early, test_reload_hangs, test_leave_hanging, test_roster,
    test_rotation, test_key_lost, test_second, test_end,
]

if __name__ == "__main__":
    agents.run(clusters.Cluster(sys.argv[1], AGENTS), TESTS)
