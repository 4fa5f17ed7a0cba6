# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of the program RING, the second argument of the test, with ranks at all agents in turn."""

import re
import signal
import subprocess
import sys

import agents
import cluster as clusters

AGENTS = 3
RANKS = 9
RING = sys.argv[2]
GONE = re.compile(r"^rank (\d+): rank (\d+) is gone \((.*)\), told after ([\d.]+) ms", re.M)
AGREED = re.compile(r"^rank (\d+): failed set in the end: agreed view (\w+): ([\d ]+)$", re.M)
END = re.compile(r"^rank (\d+): failed set in the end: \w+ view (\w+): ([\d ]+)$", re.M)


def sockets(among):
    return [word for agent in among for word in ("--socket", str(agent.directory / "job.sock"))]


def job(among, *words):
    return subprocess.Popen([RING, "--ranks", str(RANKS), *sockets(among), "--compute", "0",
                             "--signal", *words], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def said(process):
    out, _ = process.communicate(timeout=agents.WAIT_SECONDS)
    return out


def ranks_at(agent):
    return agent.counters()["job"]["ranks"]


def wait_registered(among, ranks=RANKS):
    agents.wait_until("all ranks to be registered",
                      lambda: sum(ranks_at(agent) for agent in among) == ranks)


def check_told(out, dead, end=AGREED):
    """All survivors heard of the same, and agree."""
    survivors = {str(rank) for rank in range(RANKS)} - {str(dead)}
    told = GONE.findall(out)
    assert {row[0] for row in told} == survivors, out
    assert {row[1] for row in told} == {str(dead)}, out
    # How it ended the kernel says as long as its parent, the ring program, has not asked.
    assert all("signal 9" in row[2] or row[2] == "its process ended" for row in told), out
    ends = end.findall(out)
    assert {row[0] for row in ends} == survivors, out
    assert {row[2] for row in ends} == {str(dead)}, out
    assert len({row[1] for row in ends}) == 1, out
    delays = sorted(float(row[3]) for row in told)
    agents.say(f"rank {dead} killed: told after {delays[0]} to {delays[-1]} ms")


def told_by(out, kind):
    """(who was told, of whom) of the ranks' lines of that event."""
    return set(re.findall(rf"^rank (\d+): {kind}, rank (\d+): ", out, re.M))


def watch(among, *words):
    """A job whose output can be read while it runs."""
    out = among[0].directory / "ring"
    with open(out, "wb") as file:
        process = subprocess.Popen([RING, "--ranks", str(RANKS), *sockets(among), "--compute", "0",
                                    "--signal", *words], stdout=file, stderr=subprocess.STDOUT)
    wait_registered(among)
    process.send_signal(signal.SIGUSR1)
    return process, out


def run(tests):
    """The tests one after another, on one cluster."""
    agents.run(clusters.Cluster(sys.argv[1], AGENTS, settings={"job.waiting": "3s"}), tests)
