#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under real agents in situations that come seldom: several deaths at once, two jobs with one
id, agents that restart one after another, an agent that is not there when it is needed.

    agent_jobs_odd_test.py BUILD-ROOT RING

The tests follow each other on one cluster. A job has its ranks at all agents in turn.
"""

import os
import pathlib
import re
import signal
import subprocess

import agents
import ring_jobs
from ring_jobs import (
    AGENTS, END, GONE, RANKS, RING, check_told, job, said, sockets, told_by, wait_registered,
    watch,
)


def children_of(process, still=False):
    """The processes of a job by rank; those that are there still, in any order."""
    path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not still:
        agents.wait_until("all processes", lambda: len(path.read_text().split()) == RANKS)
    return [int(word) for word in path.read_text().split()]


def test_three_at_once(cluster):
    """Of three members that are killed at once all survivors hear, and no number has two sets."""
    cluster.start().wait_ring(agents.WAIT_SECONDS)
    process, out = watch(cluster.agents, "--seconds", "120")
    pids = children_of(process)
    for rank in (0, 4, 5):
        os.kill(pids[rank], signal.SIGKILL)
    process.wait(agents.WAIT_SECONDS)
    killed = {"0", "4", "5"}
    survivors = {str(rank) for rank in range(RANKS)} - killed
    # Whoever is killed last may have heard of the first.
    heard = {row[0] for row in GONE.findall(out.read_text())}
    assert heard - killed == survivors, out.read_text()
    # A ring gives up at the first of them: its last set may lack the others.
    views = {}
    for _, view, ranks in END.findall(out.read_text()):
        assert set(ranks.split()) <= killed, out.read_text()
        assert views.setdefault(view, ranks) == ranks, out.read_text()
    wait_registered(cluster.agents, 0)


def test_one_id(cluster):
    """Two jobs with one id are two communicators: what happens in one is not told in the other."""
    environment = {**os.environ, "SLURM_JOB_ID": "7"}
    first, second = (subprocess.Popen(
        [RING, "--ranks", "3", *sockets(cluster.agents), "--seconds", "12", *words],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        for words in (("--kill", "1", "--signal"), ()))
    wait_registered(cluster.agents, 6)
    first.send_signal(signal.SIGUSR1)
    told = said(first)
    assert told.count("rank 1 is gone") == 2, told
    rows = cluster.agents[0].ask("COMMS")["communicators"]
    assert sum(row["job"] == "slurm:7" for row in rows) >= 2, rows
    assert said(second) == "" and second.returncode == 0
    wait_registered(cluster.agents, 0)


def test_all_agents_restart(cluster):
    """All agents one after another start anew under a job, which then hears of a death as ever."""
    process = job(cluster.agents, "--kill", "4")
    wait_registered(cluster.agents)
    for agent in cluster.agents:
        assert agent.leave() == 0
        agent.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        wait_registered(cluster.agents)
    assert process.poll() is None
    process.send_signal(signal.SIGUSR1)
    out = said(process)
    check_told(out, 4, END)
    assert "suspect" not in out and "unreachable" not in out, out


def test_first_agent_is_down(cluster):
    """Where the agent of the lowest rank is down another one finds who is waited for."""
    agent = cluster.agents[0]
    process, out = watch(cluster.agents, "--freeze", "4", "--seconds", "60")
    agent.kill()
    wanted = {(str(rank), "4") for rank in range(RANKS) if rank % AGENTS and rank != 4}
    agents.wait_until("those of other agents to be told",
                      lambda: told_by(out.read_text(), "comm_stuck") >= wanted)
    assert "is gone" not in out.read_text()
    agent.start()
    # Before the ring ends: nobody would find the frozen one any more, which ends by this alone.
    pids = children_of(process, True)
    for pid in (process.pid, *pids):
        os.kill(pid, signal.SIGKILL)
    process.wait(agents.WAIT_SECONDS)
    cluster.wait_ring(agents.WAIT_SECONDS)
    wait_registered(cluster.agents, 0)


def test_frozen_twice(cluster):
    """One that is stopped, goes on and is stopped again is told each time."""
    process, out = watch(cluster.agents, "--seconds", "90")
    pids = children_of(process)
    for times in (1, 2):
        os.kill(pids[5], signal.SIGSTOP)
        agents.wait_until(f"stop {times} to be told", lambda times=times: len(re.findall(
            r"^rank 0: comm_stuck, rank 5: ", out.read_text(), re.M)) == times)
        os.kill(pids[5], signal.SIGCONT)
        agents.wait_until("nothing to be stuck", lambda: all(
            agent.counters()["job"]["stuck"] == 0 for agent in cluster.agents))
    for pid in (*pids, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait(agents.WAIT_SECONDS)
    wait_registered(cluster.agents, 0)


def test_unseen(cluster):
    """An agent in a pid namespace of its own refuses a job outside of it, which says why."""
    agent = cluster.agents[2]
    assert agent.leave() == 0
    try:
        agent.start(around=["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
        cluster.wait_ring(agents.WAIT_SECONDS)
        process = subprocess.Popen(
            [RING, "--ranks", "2", "--seconds", "2", *sockets([agent])],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out = said(process)
        assert process.returncode == 0, out
        assert "is in a pid namespace that the agent does not see" in out, out
    finally:
        agent.kill()  # and with it whom it started


TESTS = [test_three_at_once, test_one_id, test_all_agents_restart, test_first_agent_is_down,
         test_frozen_twice, test_unseen]

if __name__ == "__main__":
    ring_jobs.run(TESTS)
