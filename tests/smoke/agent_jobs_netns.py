#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose nodes fall: machines that are namespaces, an agent on each, and the ranks of a job at
all of them.

    agent_jobs_netns.py BUILD-ROOT RING
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import agent_netns_test as machines
import agents
import netns
from netns import ip

RING = sys.argv[2]
GONE = re.compile(r"^rank (\d+): rank (\d+) is gone \((.*)\), told after", re.M)
END = re.compile(r"^rank (\d+): failed set in the end: agreed view (\w+): ([\d ]+)$", re.M)
OTHER = re.compile(r"^rank (\d+): peer_(suspect|unreachable|back), rank (\d+): (.*)$", re.M)
netns.CASE_SECONDS_MAX = 240


class Job:
    """A ring whose rank n is at agent n modulo their number."""

    def __init__(self, cluster, ranks, *words):
        self.cluster, self.ranks = cluster, ranks
        sockets = [word for agent in cluster.agents
                   for word in ("--socket", str(agent.directory / "job.sock"))]
        self.out = cluster.directory / "ring"
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen(
                [RING, "--ranks", str(ranks), *sockets, "--compute", "1000", *words],
                stdout=out, stderr=subprocess.STDOUT)
        self.wait_registered()

    def wait_registered(self):
        agents.wait_until("all ranks to be registered", lambda: sum(
            agent.counters()["job"]["ranks"] for agent in self.cluster.agents) == self.ranks)

    def wait_known(self, among=None):
        """Until all agents know where all ranks are."""
        among = among or self.cluster.agents
        agents.wait_until("who holds which rank", lambda: all(
            agent.counters()["job"]["placed"] == self.ranks for agent in among))

    def pids(self):
        """By rank."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in children.read_text().split()]

    def said(self):
        return self.out.read_text()

    def end(self):
        self.process.wait(agents.WAIT_SECONDS)
        return self.said()


def wait_read(cluster, agent):
    """Until others have read its pulse: who never did cannot say that the fabric is silent."""
    agents.wait_until("others to have read it", lambda: sum(
        any(path["peer"] == agent.name and path["seen"] == "good"
            for path in other.ask("PATHS")["paths"])
        for other in cluster.agents if other != agent) >= 2)


def fall(agent, number, pids):
    """The machine with all that ran on it."""
    ip(f"link set p{number} down")
    agent.kill()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def node_falls():
    """a node that falls with its agent and two ranks: all survivors are told and agree"""
    network = machines.Network(4)
    with network as cluster:
        fallen = cluster.agents[2]
        wait_read(cluster, fallen)
        job = Job(cluster, 8, "--seconds", "120")
        job.wait_known()
        pids = job.pids()
        since = time.monotonic()
        fall(fallen, 3, [pids[2], pids[6]])
        out = job.end()
        agents.say(f"all survivors ended {time.monotonic() - since:.1f} s after the fall")
        told = GONE.findall(out)
        survivors = {"0", "1", "3", "4", "5", "7"}
        # A ring gives up at the first of them, and may not read the next.
        assert {row[0] for row in told} == survivors and {row[1] for row in told} <= {"2", "6"}, out
        # An agent may hear the set from the one that numbers it before it concludes itself.
        causes = {"its node n3 is down", "other agents of its job report it gone"}
        assert "its node n3 is down" in {row[2] for row in told} <= causes, out
        ends = END.findall(out)
        assert {row[0] for row in ends} == survivors, out
        assert {row[2] for row in ends} == {"2 6"} and len({row[1] for row in ends}) == 1, out


def agent_alone():
    """an agent that is killed and started again, its ranks untouched, makes nobody gone"""
    network = machines.Network(4)
    with network as cluster:
        victim = cluster.agents[1]
        wait_read(cluster, victim)
        job = Job(cluster, 8, "--seconds", "28")
        job.wait_known()
        others = [agent for agent in cluster.agents if agent != victim]
        victim.kill()
        agents.wait_until("its agent to be called down", lambda: all(
            agent.ask(f"HEALTH {victim.name}")["findings"][0]["verdict"] == "agent-down"
            for agent in others))
        network.start(victim)
        machines.healed(cluster)
        job.wait_registered()
        job.wait_known()
        assert job.process.poll() is None
        out = job.end()
        assert job.process.returncode == 0 and out == "", out
        assert all(agent.counters()["job"]["gone"] == 0 for agent in cluster.agents)


def cut_and_back():
    """a node that is cut off for a moment is suspect, and back; nobody is gone"""
    network = machines.Network(4)
    with network as cluster:
        cut = cluster.agents[2]
        wait_read(cluster, cut)
        job = Job(cluster, 4, "--seconds", "100")
        job.wait_known()
        ip("link set p3 down")
        agents.wait_until("rank 2 to be suspect", lambda: any(
            row[1:3] == ("suspect", "2") for row in OTHER.findall(job.said())))
        ip("link set p3 up")
        agents.wait_until("rank 2 to be back", lambda: any(
            row[1:3] == ("back", "2") for row in OTHER.findall(job.said())))
        told = OTHER.findall(job.said())
        assert "is gone" not in job.said(), job.said()
        assert {row[3] for row in told if row[2] == "2" and row[1] == "suspect"} == {
            "its node n3 seems to be down"}, told
        job.process.terminate()
        for pid in job.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def only_two():
    """in a cluster of two nobody is gone by silence"""
    network = machines.Network(2)
    with network as cluster:
        job = Job(cluster, 2, "--seconds", "18")
        job.wait_known()
        ip("link set p2 down")
        agents.wait_until("the other to be missed", lambda: agents.peer(
            cluster.agents[0], "n2")["state"] in ("dead", "unreachable"))
        out = job.end()
        assert "is gone" not in out and job.process.returncode == 0, out
        ip("link set p2 up")
        machines.healed(cluster)
        assert all(agent.counters()["job"]["gone"] == 0 for agent in cluster.agents)


if __name__ == "__main__":
    netns.run([node_falls, agent_alone, cut_and_back, only_two])
