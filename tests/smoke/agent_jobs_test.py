#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under real agents: members that are killed, agents that die, and what the survivors hear.

    agent_jobs_test.py BUILD-ROOT RING

The tests follow each other on one cluster. A job has its ranks at all agents in turn.
"""

import os
import re
import signal
import subprocess

import agents
import ring_jobs
import tap
from ring_jobs import (
    RANKS, RING, check_told, job, said, sockets, told_by, wait_registered, watch,
)


def test_ring(cluster):
    """A job that ends by itself tells nobody of anything."""
    cluster.start().wait_ring(agents.WAIT_SECONDS)
    process = job(cluster.agents, "--seconds", "2")
    wait_registered(cluster.agents)
    assert said(process) == "" and process.returncode == 0
    wait_registered(cluster.agents, 0)
    assert all(agent.counters()["job"]["gone"] == 0 for agent in cluster.agents)


def test_killed(cluster):
    """A member that is killed is told to all others on all nodes, who agree on one numbered set."""
    process = job(cluster.agents, "--kill", "3")
    wait_registered(cluster.agents)
    process.send_signal(signal.SIGUSR1)
    check_told(said(process), 3)
    assert process.returncode == 0


def test_first_killed(cluster):
    """They agree as well when it is rank 0, whose agent numbered the sets until then."""
    process = job(cluster.agents, "--kill", "0")
    wait_registered(cluster.agents)
    process.send_signal(signal.SIGUSR1)
    check_told(said(process), 0)
    assert process.returncode == 0


def test_agent_killed(cluster):
    """An agent that is killed and started again hurts no job, and finds its processes again."""
    agent = cluster.agents[1]
    process = job(cluster.agents, "--kill", "4")
    wait_registered(cluster.agents)
    agent.kill()
    agent.start()
    wait_registered(cluster.agents)
    assert process.poll() is None
    process.send_signal(signal.SIGUSR1)
    out = said(process)
    check_told(out, 4)
    assert process.returncode == 0, out


def test_frozen_agent(cluster):
    """An agent that is stopped for a while hurts no job: its ranks hear it when it goes on."""
    agent = cluster.agents[2]
    process = job(cluster.agents, "--kill", "3")
    wait_registered(cluster.agents)
    agent.freeze()
    process.send_signal(signal.SIGUSR1)
    agents.wait_until("rank 3 to be dead",
                      lambda: cluster.agents[0].counters()["job"]["gone"] >= 1)
    agent.thaw()
    check_told(said(process), 3)
    assert process.returncode == 0


def test_frozen_rank(cluster):
    """Of a rank that is stopped all others are told that they are stuck, and who it is, once."""
    process, out = watch(cluster.agents, "--freeze", "3", "--seconds", "15")
    process.wait(agents.WAIT_SECONDS)
    told = told_by(out.read_text(), "comm_stuck")
    assert told == {(str(rank), "3") for rank in range(RANKS) if rank != 3}, out.read_text()
    assert out.read_text().count("comm_stuck") == RANKS - 1, out.read_text()
    assert "has not launched operation" in out.read_text(), out.read_text()
    assert "is gone" not in out.read_text() and "should_abort" not in out.read_text()
    for agent in cluster.agents:
        assert agent.counters()["job"]["stalls"] == 1, agent.counters()["job"]
        assert "job_stuck" in agent.log.read_text() and "job_rank " in agent.log.read_text()
    wait_registered(cluster.agents, 0)


def test_pause(cluster):
    """Of a rank that computes for long all are told that they wait for it, and never that they are
    stuck."""
    process, out = watch(cluster.agents, "--pause", "3", "--seconds", "14")
    wanted = {(str(rank), "3") for rank in range(RANKS) if rank != 3}
    agents.wait_until("all to be told that they wait",
                      lambda: told_by(out.read_text(), "comm_waiting") >= wanted)
    process.wait(agents.WAIT_SECONDS)
    assert "comm_stuck" not in out.read_text(), out.read_text()
    wait_registered(cluster.agents, 0)
    assert all(agent.counters()["job"][name] == 0
               for agent in cluster.agents for name in ("waiting", "stuck"))


def test_container(cluster):
    """A job in pid and user namespaces of its own is served like any other."""
    inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
        raise tap.Skip("no namespaces may be made here")
    process = subprocess.Popen(
        [*inside, RING, "--ranks", str(RANKS), *sockets(cluster.agents), "--kill", "3",
         "--compute", "0", "--after", "1"],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out = said(process)
    check_told(out, 3)
    assert process.returncode == 0


def test_no_agent(cluster):
    """Without any agent a job runs as it would alone, and its output and status are its own."""
    for agent in cluster.running():
        assert agent.leave() == 0
        assert not os.path.exists(agent.directory / "job.sock")
    process = job(cluster.agents, "--seconds", "1")
    out = said(process)
    assert process.returncode == 0, out
    assert re.fullmatch(r"ring: no agent: .+\n", out), out


def test_shared_directory(cluster):
    """Two agents whose clients' sockets share a directory have a job socket each."""
    one, two = cluster.agents[:2]
    two.socket = one.directory / "n2.sock"
    for agent in (one, two):
        agent.configure(client__socket=agent.socket)
        agent.start()
    for name in ("job.sock", "n2-job.sock"):
        agents.wait_until(f"{name} is there", (one.directory / name).exists)
    process = subprocess.Popen(
        [RING, "--ranks", "2", "--socket", str(one.directory / "n2-job.sock"), "--seconds", "1"],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert "no agent" not in said(process)
    assert process.returncode == 0


TESTS = [test_ring, test_killed, test_first_killed, test_agent_killed, test_frozen_agent,
         test_frozen_rank, test_pause, test_container, test_no_agent, test_shared_directory]

if __name__ == "__main__":
    ring_jobs.run(TESTS)
