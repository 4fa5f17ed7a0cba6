#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents of which one shows memory of a GPU: devices in memory, and a libcuda whose GPU's memory is
one, too.

    agent_gpu_test.py BUILD-ROOT FAKE-RAILS FAKE-CUDA
"""

import os
import subprocess
import sys
import tempfile

import agents
import cluster as clusters

COLUMNS_MAX = 100
GPU_BYTES = 64 << 20
PLACE = tempfile.TemporaryDirectory()


def environment(number, **more):
    libraries = os.path.join(PLACE.name, "libraries")
    os.makedirs(libraries, exist_ok=True)
    if not os.path.exists(f"{libraries}/libcuda.so.1"):
        os.symlink(sys.argv[3], f"{libraries}/libcuda.so.1")
    return {"LD_PRELOAD": sys.argv[2], "FAKE_RAILS": "1", "FAKE_RAILS_NODES": PLACE.name,
            "FAKE_RAILS_NODE": str(number), "LD_LIBRARY_PATH": libraries,
            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0", **more}


def start(cluster, **more):
    """The first with a GPU, the second without."""
    one, two = cluster.agents
    if one.process is not None:
        assert one.leave() == 0
        one.log.unlink()
    one.own.pop("probe.gpu", None)
    wanted = {"probe__gpu": "yes"} if more.pop("wanted", True) else {}
    one.configure(node__device="cuda:0", **wanted)
    one.start(environment=environment(0, **more))
    if two.process is None:
        two.configure(probe__interval="100ms")
        two.start(environment=environment(1))


def gpu_of(agent):
    found = agent.ask("DEVICES")["devices"]
    return found[0]["gpu"] if len(found) == 1 and found[0]["state"] == "up" else "no device"


def seen(agent, peer):
    return [one["seen"] for one in agent.ask("PATHS")["gpus"] if one["peer"] == peer.name]


def pulse(agent, peer):
    return [one["seen"] for one in agent.ask("PATHS")["paths"] if one["peer"] == peer.name]


def said(cluster, agent, *command):
    done = subprocess.run([str(cluster.tocsin), *command, "--socket", str(agent.socket)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert all(len(line) <= COLUMNS_MAX for line in done.stdout.splitlines()), done.stdout
    return done.stdout


def test_shown(cluster):
    """Its memory is read by the neighbour and by its own device, and named."""
    one, two = cluster.agents
    start(cluster)
    agents.wait_until("it is read", lambda: seen(two, one) == ["good"] and
                      seen(one, one) == ["good"])
    assert gpu_of(one) == {"ordinal": 0, "state": "shown", "pci": "0000:1a:00.0", "reason": ""}
    assert gpu_of(two) is None and seen(one, two) == [], two.ask("PATHS")
    assert pulse(two, one) == ["good"]
    assert "\n  GPU       cuda:0 good, for " in said(cluster, two, "path", two.name, one.name)
    assert "peers read memory of cuda:0, 0000:1a:00.0, through it" in said(
        cluster, one, "links", "--rdma")
    assert two.counters()["probe"]["gpu_sent"] > 0


def test_lost(cluster):
    """What is read as ones, as a GPU off its bus is: the GPU alone is bad, for both that read."""
    one, two = cluster.agents
    directory = f"/proc/{one.process.pid}/fd"
    arena = next(name for name in os.listdir(directory)
                 if "fake-cuda" in os.readlink(f"{directory}/{name}"))
    with open(f"{directory}/{arena}", "r+b") as memory:
        memory.seek(GPU_BYTES // 2)
        memory.write(b"\xff" * 65536)
    agents.wait_until("it is wrong", lambda: seen(two, one) == ["wrong"] and
                      seen(one, one) == ["wrong"])
    assert pulse(two, one) == ["good"] and pulse(one, one) == ["good"]
    assert "cuda:0 wrong, for " in said(cluster, two, "why", one.name)
    assert "cuda:0 wrong, for " in said(cluster, two, "paths")
    assert f"gpu_path peer={one.name} " in two.log.read_text()


def test_refused(cluster):
    """Where the driver exports nothing that is said, and the pulse is read alone."""
    one, two = cluster.agents
    start(cluster, FAKE_CUDA_EXPORT="801")
    reason = "cuMemGetHandleForAddressRange: CUDA_ERROR_NOT_SUPPORTED (801)"
    agents.wait_until("it is said", lambda: gpu_of(one) == {
        "ordinal": 0, "state": "missing", "pci": "", "reason": reason})
    agents.wait_until("the pulse is read", lambda: pulse(two, one) == ["good"] and
                      seen(two, one) == [])
    text = " ".join(said(cluster, one, "links", "--rdma").split())
    assert f"mlx5_0: memory of cuda:0 is not exposed: {reason}" in text, text
    assert f'gpu_memory_missing gpu=0 reason="{reason}"' in one.log.read_text()
    done = subprocess.run(
        [str(cluster.tocsind), "--config", str(one.config), "--check-config"],
        capture_output=True, text=True, check=False,
        env={**os.environ, **environment(0, FAKE_CUDA_EXPORT="801")})
    note = f"note: peers cannot read memory of cuda:0, only the pulse in host memory: {reason}\n"
    assert done.returncode == 0 and note in done.stdout, done


def test_off(cluster):
    """Unless it is wanted, libcuda is asked for no memory."""
    one, two = cluster.agents
    start(cluster, wanted=False, FAKE_CUDA_EXPORT="801")
    agents.wait_until("the pulse is read", lambda: pulse(two, one) == ["good"])
    assert gpu_of(one) is None
    assert "gpu_memory_missing" not in one.log.read_text()


def main():
    with PLACE:
        agents.run(clusters.Cluster(sys.argv[1], 2),
                   [test_shown, test_lost, test_refused, test_off])


if __name__ == "__main__":
    main()
