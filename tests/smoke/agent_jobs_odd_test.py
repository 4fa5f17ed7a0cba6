#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under real agents in situations that come seldom: several deaths at once, two jobs with one
id, agents that restart one after another, an agent that is not there when it is needed.

    agent_jobs_odd_test.py BUILD-ROOT RING LIBRARY

The tests follow each other on one cluster. A job has its ranks at all agents in turn.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

import agents
import ring_jobs
from ring_jobs import (
    AGENTS, END, GONE, RANKS, RING, check_told, job, said, sockets, told_by, wait_registered,
    watch,
)


LIBRARY = sys.argv[3]
MODULES = str(pathlib.Path(__file__).resolve().parents[2] / "lib/job/python")
# A rank that obeys words on its standard input, one a line, and repeats each that is done.
RANK = '''
import os, sys, time, tocsin
number, rank, size = (int(word) for word in sys.argv[1:])
job = tocsin.Job()
comm = job.register(comm_hash=number, size=size, rank=rank, flags=["aborts"])
while comm.state()[0] != "connected":
    time.sleep(0.01)
print("registered", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "launch":
        comm.launched(tocsin.ALL_REDUCE)
        comm.started(tocsin.ALL_REDUCE)
    elif word == "complete":
        comm.completed(tocsin.ALL_REDUCE)
    elif word == "unregister":
        comm.close()
    elif word == "finalize":
        comm.mark("finalized")
        comm.close()
    elif word == "close":
        job.close()
    elif word == "exit":
        os._exit(0)
    elif word == "abort?":
        word = f"abort {bool(comm.should_abort())}"
    print(word, flush=True)
'''


class Rank:
    """A process of a job at one agent."""

    def __init__(self, agent, number, rank, size, **more):
        environment = {**os.environ, "TOCSIN_JOB_SOCKET": str(agent.directory / "job.sock"),
                       "TOCSIN_LIBRARY": LIBRARY, "PYTHONPATH": MODULES, **more}
        self.process = subprocess.Popen(
            [sys.executable, "-c", RANK, str(number), str(rank), str(size)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdout.readline() == "registered\n"

    def do(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        self.process.wait(agents.WAIT_SECONDS)


def communicators(agent, number):
    return [row for row in agent.ask("COMMS")["communicators"]
            if row["hash"] == f"0x{number:016x}"]


def test_one_key_twice(cluster):
    """A process that registers the same key as an ended one hides nobody's communicators."""
    first = cluster.agents[0]
    other = Rank(first, 70, 0, 2)
    for _ in range(3):
        assert Rank(first, 71, 0, 1).do("exit") == ""
    agents.wait_until("the ends to be known", lambda: communicators(first, 71), pause=1)
    for agent in cluster.agents:
        answer = agent.ask("COMMS")
        assert answer["left_out"] == 0, answer
        assert len(communicators(agent, 70)) == 1, answer
        assert [row["ranks"] for row in communicators(agent, 71)] == [1], answer
    other.kill()


def test_second_attempt(cluster):
    """The ends of a first attempt are never told to the second, on the same node and on others."""
    for count in (None, 1):
        more = {} if count is None else {"SLURM_RESTART_COUNT": str(count)}
        first = [Rank(cluster.agents[rank], 72, rank, 3) for rank in range(3)]
        first[2].kill()
        agents.wait_until("all to hear of it", lambda: all(
            rank.do("abort?") == "abort True" for rank in first[:2]))
        for rank in first[:2]:
            rank.kill()
        # The ranks are on other nodes than before, so other agents hold the ends.
        second = [Rank(cluster.agents[(rank + 1) % 3], 72, rank, 3, **more) for rank in range(3)]
        agents.wait_until("all to be one communicator", lambda: any(
            row["ranks"] == 3 and row["finding"]["state"] != "ended"
            for row in communicators(cluster.agents[0], 72)), pause=1)
        for _ in range(30):
            assert all(rank.do("abort?") == "abort False" for rank in second)
        # They hear of their own.
        second[0].kill()
        agents.wait_until("the others to hear of it", lambda: all(
            rank.do("abort?") == "abort True" for rank in second[1:]))
        for rank in second[1:]:
            rank.kill()


def test_how_they_left(cluster):
    """A rank that left in order is named with how, until all have left."""
    for number, (word, said_of_it) in enumerate((
            ("unregister", "has unregistered"), ("finalize", "has finalized"),
            ("close", "has unregistered|has called tocsin_job_close")), 80):
        ranks = [Rank(cluster.agents[rank], number, rank, 3) for rank in range(3)]
        for rank, *words in ((ranks[2], "launch", "complete", word),
                             (ranks[0], "launch", "complete", "launch"),
                             (ranks[1], "launch", "complete", "launch")):
            for order in words:
                assert rank.do(order) == order

        def finding(number=number):
            rows = communicators(cluster.agents[0], number)
            return rows[0]["finding"] if rows else {"state": "", "sentence": ""}

        agents.wait_until("it to be named", lambda: finding()["state"] == "stuck", pause=1)
        sentence = finding()["sentence"]
        assert re.match(rf"rank 2 \(pid {ranks[2].process.pid} on .*\) ({said_of_it}), and has "
                        "not launched operation 2", sentence), sentence
        for rank in ranks[:2]:
            assert rank.do("close") == "close"
        agents.wait_until("it to be over",
                          lambda number=number: not communicators(cluster.agents[0], number),
                          pause=1)
        for rank in ranks:
            rank.kill()


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
    for pid in (*pids, process.pid):  # the ranks end with the ring
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
         test_frozen_twice, test_one_key_twice, test_second_attempt, test_how_they_left,
         test_unseen]

if __name__ == "__main__":
    ring_jobs.run(TESTS)
