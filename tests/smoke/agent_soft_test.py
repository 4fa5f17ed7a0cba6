#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents on a machine without an RDMA device: they have the software device.

    agent_soft_test.py BUILD-ROOT STUCK-VERBS
"""

import json
import os
import pathlib
import socket
import subprocess
import sys

import agents
import cluster as clusters
import tap

INFINIBAND = pathlib.Path("/sys/class/infiniband")
PORT = 4791
STUCK = {"LD_PRELOAD": sys.argv[2],
         "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}


def device(agent):
    return agent.ask("DEVICES")["devices"][0]


def all_ready(cluster):
    """Every pair of every running agent is ready, and each has one with each."""
    running = cluster.running()

    def ready():
        for agent in running:
            pairs = agent.ask("PAIRS")["pairs"]
            live = [pair for pair in pairs if pair["state"] == "ready"]
            if {pair["node"] for pair in live} != {one.name for one in running}:
                return False
        return True

    agents.wait_until("all pairs ready", ready)


def ping(cluster, asker, asked, *arguments):
    done = subprocess.run(
        [str(cluster.tocsin), "ping", "--rdma", asked.name, "--json", "--socket",
         str(asker.socket), *arguments], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def answered(cluster, asker, asked, *arguments):
    """Asks until all is answered: on a busy machine a deadline may pass."""
    def whole():
        status, answer = ping(cluster, asker, asked, *arguments)
        return status == 0 and answer["answered"] == answer["sent"]

    agents.wait_until(f"{asked.name} to be read", whole)


def test_pairs(cluster):
    """Without a device of the system every agent takes the software device, and pairs over it."""
    cluster.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    all_ready(cluster)
    for agent in cluster.agents:
        row = device(agent)
        assert (row["name"], row["responder"], row["state"]) == ("soft0", "in-process", "up"), row
    said = cluster.agents[0].log.read_text()
    assert "rdma_device_chosen device=soft0" in said and "no suitable RDMA device" in said


def test_ping(cluster):
    """Reads over it are timed, by whoever asks, in every size."""
    asker, asked = cluster.agents[:2]
    for size in (1, 8, 4096, 65536):
        status, answer = ping(cluster, asker, asked, "--bytes", str(size), "--count", "20")
        assert status == 0 and answer["answered"] == 20 and answer["in_process"], (status, answer)
    counters = asker.counters()["soft"]
    assert counters["packets_sent"] >= 80 and counters["packets_received"] >= 80, counters


def test_frozen(cluster):
    """One that stands still is read by nobody: the device is its own process, and pairs say so."""
    asker, asked = cluster.agents[:2]
    asked.freeze()
    status, answer = ping(cluster, asker, asked, "--count", "1", "--timeout", "2s")
    asked.thaw()
    assert status == 1, answer
    cluster.wait_ring(agents.WAIT_SECONDS)
    all_ready(cluster)
    # A pair that was ready all the while may still fail for what was asked of it meanwhile.
    answered(cluster, asker, asked)


def test_killed(cluster):
    """One that was killed has pairs again as soon as it is back."""
    victim = cluster.agents[2]
    victim.kill()
    agents.wait_for_state(cluster, victim.name, "dead")
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    all_ready(cluster)


def test_held(cluster):
    """A port that another program holds is said to be, with its holder; then it is taken."""
    victim = cluster.agents[2]
    assert victim.leave() == 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind((victim.address, PORT))
        victim.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        row = agents.wait_until("the reason", lambda: device(victim)["reason"] and device(victim))
        assert row["state"] != "up", row
        wanted = f"{victim.address} port {PORT} is held by"
        assert wanted in row["reason"] and str(os.getpid()) in row["reason"], row
    agents.wait_until("the port", lambda: device(victim)["state"] == "up")
    all_ready(cluster)


def test_faults(cluster):
    """Faults by configuration are done, counted, and survived."""
    victim, asker = cluster.agents[2], cluster.agents[0]
    assert victim.leave() == 0
    victim.configure(device__soft0__faults="loss=5%,dup=5%,corrupt=2%,delay=100us+-50us,seed=3")
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    all_ready(cluster)
    answered(cluster, asker, victim, "--count", "200", "--bytes", "16384")
    counters = victim.counters()["soft"]
    for name in ("fault_lost", "fault_duplicated", "fault_corrupted", "fault_delayed"):
        assert counters[name] > 0, (name, counters)
    assert asker.counters()["soft"]["drop_icrc"] > 0


def test_stuck(cluster):
    """A driver of the system that does not come back costs the software device nothing."""
    victim = cluster.agents[2]
    for targets, is_asked in (("soft", False), ("cpu:0,soft", True)):
        assert victim.leave() == 0
        victim.configure(node__device=targets, device__soft0__faults="")
        victim.log.unlink()
        victim.start(environment=STUCK)
        cluster.wait_ring(agents.WAIT_SECONDS)
        all_ready(cluster)
        assert ("rdma_device_stuck" in victim.log.read_text()) == is_asked


def test_none(cluster):
    """An agent that wants no device has none, and no pair is made with it."""
    victim, asker = cluster.agents[2], cluster.agents[0]
    assert victim.leave() == 0
    victim.configure(node__device="none", device__soft0__faults="")
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    assert victim.ask("DEVICES")["devices"] == []
    status, answer = ping(cluster, asker, victim, "--count", "1", "--timeout", "2s")
    assert status == 1, answer
    agents.end(cluster)


def main():
    if INFINIBAND.is_dir() and any(INFINIBAND.iterdir()):
        tap.run([("the software device in agents", skip)])
    agents.run(clusters.Cluster(sys.argv[1], 3), [
        test_pairs, test_ping, test_frozen, test_killed, test_held, test_faults,
        test_stuck, test_none])


def skip():
    raise tap.Skip("this machine has an RDMA device")


if __name__ == "__main__":
    main()
