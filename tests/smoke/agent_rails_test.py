#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An agent with several rails: devices in memory, of a library that is preloaded into it.

    agent_rails_test.py BUILD-ROOT FAKE-RAILS
"""

import json
import os
import signal
import subprocess
import sys
import tempfile

import agents
import cluster as clusters

RAILS = 8
COLUMNS_MAX = 100


def fake(count):
    return {"LD_PRELOAD": sys.argv[2], "FAKE_RAILS": str(count),
            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}


def names(count):
    return [f"mlx5_{n}" for n in range(count)]


def run(cluster, *arguments, count=RAILS):
    done = subprocess.run([str(cluster.tocsin), *arguments], capture_output=True, text=True,
                          check=False, env={**os.environ, **fake(count)})
    assert done.returncode == 0, done
    assert all(len(line) <= COLUMNS_MAX for line in done.stdout.splitlines()), done.stdout
    return done.stdout


def states(agent):
    return {one["name"]: one["state"] for one in agent.ask("DEVICES")["devices"]}


def look_again(agent):
    agent.process.send_signal(signal.SIGHUP)


def restart(cluster, device, count, more=None):
    agent = cluster.agents[0]
    if agent.process is not None:
        assert agent.leave() == 0
        agent.log.unlink()
    agent.configure(node__device=device)
    agent.start(environment={**fake(count), **(more or {})})
    return agent


def all_watched(agent, rails):
    """Each rail is up, has its pair with itself, and that is probed."""
    def ready():
        devices = agent.ask("DEVICES")["devices"]
        pairs = agent.ask("PAIRS")["pairs"]
        return ([one["name"] for one in devices if one["state"] == "up"] == rails
                and sorted(one["device"] for one in pairs if one["state"] == "ready"
                           and one["ops"] > 0) == sorted(rails))

    agents.wait_until(f"{len(rails)} rails", ready)


def test_auto(cluster):
    """Every device is a rail, and the log says how to have it otherwise."""
    agent = restart(cluster, "auto", RAILS)
    all_watched(agent, names(RAILS))
    text = agent.log.read_text()
    assert f"rdma_rails rails={RAILS} " in text and "device = best" in text, text


IWARP = "iWARP: its queue pairs can be connected by rdma_cm only"


def test_iwarp(cluster):
    """iWARP beside it is no rail: it connects through a connection manager only, and says so."""
    os.environ["FAKE_IWARP"] = "1"
    try:
        agent = restart(cluster, "auto", 2)
        all_watched(agent, names(2))
        assert run(cluster, "devices", count=2).count(IWARP) == 2
        found = json.loads(run(cluster, "devices", "--json", "--explain", count=2))["devices"]
        iwarp = [one for one in found if one["transport"] == "iWARP"]
        assert [one["name"] for one in iwarp] == ["siw0", "siw1"], found
        assert all(not one["usable"] and one["reason"] == IWARP for one in iwarp), iwarp
        named = subprocess.run(
            [str(cluster.tocsin), "devices", "--for", "nic:siw0"], capture_output=True, text=True,
            check=False, env={**os.environ, **fake(2)})
        assert named.returncode == 1 and IWARP in named.stdout + named.stderr, named
    finally:
        del os.environ["FAKE_IWARP"]


def test_best(cluster):
    """What was chosen before there were rails."""
    agent = restart(cluster, "best", RAILS)
    all_watched(agent, ["mlx5_0"])
    assert "rdma_rails" not in agent.log.read_text()


def test_sixteen(cluster):
    """As many as there may be; what is beyond is said."""
    agent = restart(cluster, "auto", 18)
    all_watched(agent, names(16))
    assert "rdma_rails rails=16 left_out=2 " in agent.log.read_text()


def say(cluster, **states):
    """What devices the agent's library has from now on."""
    path = cluster.agents[0].log.with_suffix(".rails")
    path.write_text("".join(f"{name} {state}\n" for name, state in states.items()))
    return path


def test_late(cluster):
    """A device that comes is taken, also a port that was down beside others; soft0 makes room."""
    path = say(cluster)
    agent = restart(cluster, "auto", 0, {"FAKE_RAILS_FILE": str(path)})
    all_watched(agent, ["soft0"])
    say(cluster, mlx5_0="down")
    look_again(agent)
    agents.wait_until("it waits", lambda: states(agent) == {"soft0": "up", "mlx5_0": "waiting"})
    say(cluster, mlx5_0="up", mlx5_1="up")
    look_again(agent)
    all_watched(agent, ["mlx5_0", "mlx5_1"])
    changes = [one for one in agent.ask("EVENTS 0")["events"] if one["event"] == "RAILS_CHANGED"]
    assert changes[-1]["detail"].endswith("measures with mlx5_0, mlx5_1"), changes
    say(cluster, mlx5_0="up", mlx5_1="gone", mlx5_2="down")
    look_again(agent)
    agents.wait_until("one is gone, one waits", lambda: states(agent) == {
        "mlx5_0": "up", "mlx5_1": "waiting", "mlx5_2": "waiting"})
    say(cluster, mlx5_0="up", mlx5_1="up", mlx5_2="up")
    look_again(agent)
    all_watched(agent, names(3))
    text = agent.log.read_text()
    assert text.count("rdma_device_retired device=soft0") == 1, text
    assert text.count("rdma_device_late") == 3, text


def test_waiting_at_the_start(cluster):
    """Ports that are down beside others are rails that wait; no peer is told, nobody warned."""
    path = say(cluster, mlx5_0="up", mlx5_1="down")
    agent = restart(cluster, "auto", 0, {"FAKE_RAILS_FILE": str(path)})
    agents.wait_until("one of two", lambda: states(agent) == {
        "mlx5_0": "up", "mlx5_1": "waiting"})
    assert "warn rdma_device" not in agent.log.read_text()
    say(cluster, mlx5_0="up", mlx5_1="up")
    look_again(agent)
    all_watched(agent, names(2))


def test_best_moves(cluster):
    """One device where one is asked for: the first that comes, and no other after it."""
    path = say(cluster)
    agent = restart(cluster, "best", 0, {"FAKE_RAILS_FILE": str(path)})
    all_watched(agent, ["soft0"])
    say(cluster, mlx5_5="up")
    look_again(agent)
    all_watched(agent, ["mlx5_5"])
    say(cluster, mlx5_0="up", mlx5_5="up")
    look_again(agent)
    agents.wait_until("it has looked", lambda: "rdma_looked listed=2 added=0" in
                      agent.log.read_text())
    assert states(agent) == {"mlx5_5": "up"}


def test_neighbours(cluster):
    """Two agents with several rails each: rail by rail they read each other."""
    with tempfile.TemporaryDirectory() as nodes, clusters.Cluster(sys.argv[1], 2) as ring:
        for number, agent in enumerate(ring.agents):
            agent.start(environment={**fake(4), "FAKE_RAILS_NODES": nodes,
                                     "FAKE_RAILS_NODE": str(number)})
        one, two = ring.agents

        def all_read():
            pairs = [pair for pair in one.ask("PAIRS")["pairs"] if pair["node"] == two.name]
            return {(pair["device"], pair["peer_device"]) for pair in pairs
                    if pair["state"] == "ready" and pair["ops"] > 0} == {
                        (name, name) for name in names(4)}

        agents.wait_until("four rails of both", all_read)
        two.kill()
        agents.wait_until("its rails are gone", lambda: not any(
            pair["state"] == "ready" and pair["node"] == two.name
            for pair in one.ask("PAIRS")["pairs"]))


def test_tables(cluster):
    """All tables of many rails fit on a screen."""
    agent = restart(cluster, "auto", RAILS)
    all_watched(agent, names(RAILS))
    text = run(cluster, "devices", "--explain")
    assert "An agent here uses 8 rails: mlx5_0, mlx5_1, " in text, text
    assert json.loads(run(cluster, "devices", "--json"))["rails"] == names(RAILS)
    for command in (["status"], ["links", "--rdma"], ["paths"], ["paths", "--matrix"],
                    ["why", agent.name]):
        run(cluster, *command, "--socket", str(agent.socket))
    agents.end(cluster)


def main():
    agents.run(clusters.Cluster(sys.argv[1], 1), [
        test_auto, test_iwarp, test_best, test_sixteen, test_late, test_waiting_at_the_start,
        test_best_moves, test_neighbours, test_tables])


if __name__ == "__main__":
    main()
