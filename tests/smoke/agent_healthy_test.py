#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Healthy but odd jobs under real agents: nobody says that they are stuck, and what the rank does
that the others wait for is named.

    agent_healthy_test.py BUILD-ROOT PYTHON-LIBRARY LIBRARY

All jobs run at once. Each has one rank at each of three agents, and the odd one is rank 1. Two jobs
whose rank is stopped or frozen show that the same rules name what cannot go on by itself.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import agents
import cluster as clusters

AGENTS = 3
ODD = 1
SEEN_SECONDS = 120
STALL_SECONDS = 15  # each job stands at least for this time
IDLE = "it uses no processor time: it may wait for input, a pipe or a lock"
HEALTHY = {
    "write_to_a_slow_pipe": re.escape(IDLE),
    "wait_for_a_child": r"its child python3\S* \(pid \d+\) computes",
    "wait_for_a_grandchild": r"its child python3\S* \(pid \d+\) computes",
    "wait_for_input": re.escape(IDLE),
    "wait_for_a_lock": re.escape(IDLE),
    "sleep_uninterruptibly": r"it is in uninterruptible disk wait, \d+ % of the last",
    "wake_now_and_then": re.escape(IDLE),
    "compute_by_quota": r"its cgroup's quota throttled it \d+ % of the last",
}
HALTED = {"stopped": "is stopped", "frozen": "is frozen by its cgroup"}
PROGRAM = pathlib.Path(__file__).with_name("odd_ranks.py")
CGROUPS = pathlib.Path("/sys/fs/cgroup")


@contextlib.contextmanager
def made_cgroup(place, files):
    """A cgroup with these settings; None where it cannot be made."""
    path = place / f"tocsin-healthy-{os.getpid()}"
    try:
        path.mkdir()
        for name, text in files.items():
            (path / name).write_text(text)
    except OSError:
        with contextlib.suppress(OSError):
            path.rmdir()
        yield None
        return
    try:
        yield path
    finally:
        agents.wait_until("the cgroup to be empty",
                          lambda: (path / "cgroup.procs").read_text() == "")
        path.rmdir()


def quota_cgroup():
    """2 ms in 400 ms, by the version of cgroups that has the controller here."""
    if (CGROUPS / "cpu" / "cgroup.procs").exists():
        return made_cgroup(CGROUPS / "cpu", {"cpu.cfs_period_us": "400000",
                                             "cpu.cfs_quota_us": "2000"})
    return made_cgroup(CGROUPS, {"cpu.max": "2000 400000"})


def freezer_cgroup():
    unified = CGROUPS / "unified"
    return made_cgroup(unified if unified.exists() else CGROUPS, {"cgroup.freeze": "0"})


class Job:
    """Three ranks, of which the odd one does what its name says."""

    def __init__(self, cluster, name, number):
        self.number = number
        self.name = name
        environment = dict(os.environ, TOCSIN_LIBRARY=LIBRARY)
        oddity = name if name in HEALTHY else "be_stopped"
        self.ranks = [subprocess.Popen(
            [sys.executable, str(PROGRAM), PYTHON, str(agent.directory / "job.sock"),
             f"odd:{number}", str(AGENTS), str(rank), *([oddity] if rank == ODD else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment) for rank, agent in enumerate(cluster.agents)]
        self.states, self.sentence, self.seen = set(), "", False

    @property
    def odd(self):
        return self.ranks[ODD]

    def wait_ready(self):
        for rank in self.ranks:
            assert rank.stderr.readline() == b"ready\n", (self.name, rank.stderr.read())

    def look(self, row):
        finding = row["finding"]
        self.states.add(finding["state"])
        self.sentence = finding["sentence"]
        words = HEALTHY.get(self.name) or re.escape(HALTED[self.name])
        state = "waiting" if self.name in HEALTHY else "stuck"
        self.seen = (self.seen or (finding["state"] == state and
                                   re.search(words, self.sentence) is not None and
                                   self.sentence.startswith(f"rank {ODD} ")))

    def end(self):
        """The odd one goes first: the others leave their operation when it has come."""
        for rank in (self.odd, *(rank for rank in self.ranks if rank is not self.odd)):
            out, err = rank.communicate(timeout=agents.WAIT_SECONDS)
            assert rank.returncode == 0, (self.name, rank.returncode, err, len(out))

    def kill(self):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.kill()
                rank.communicate()


def drain_pipes(jobs):
    """The slow reader."""
    for job in jobs:
        if job.name == "write_to_a_slow_pipe":
            os.read(job.odd.stdout.fileno(), 64)


def look_at_all(cluster, jobs):
    rows = {row["job"]: row for row in cluster.agents[0].ask("COMMS")["communicators"]}
    for job in jobs:
        if f"odd:{job.number}" in rows:
            job.look(rows[f"odd:{job.number}"])
    drain_pipes(jobs)
    return all(job.seen for job in jobs)


def logged_stuck(cluster):
    """The lines of logs that call a job stuck, by the number of the job."""
    lines = [line for agent in cluster.agents for line in agent.log.read_text().splitlines()]
    found = [(re.search(r"job_stuck.*?\bjob=\"?odd:(\d+)", line), line) for line in lines]
    return {int(match[1]): line for match, line in found if match}


def play(cluster, jobs, quota, freezer):
    for job in jobs:
        job.wait_ready()
    # The library registers in a thread of its own: a rank that is halted earlier is held by nobody.
    agents.wait_until("all ranks to be registered", lambda: all(
        agent.counters()["job"]["ranks"] == len(jobs) for agent in cluster.agents))
    for job in jobs:
        if job.name == "compute_by_quota":
            (quota / "cgroup.procs").write_text(str(job.odd.pid))
        elif job.name == "frozen":
            (freezer / "cgroup.procs").write_text(str(job.odd.pid))
        elif job.name == "stopped":
            job.odd.send_signal(signal.SIGSTOP)
    if freezer:
        (freezer / "cgroup.freeze").write_text("1")
    began = time.monotonic()
    agents.wait_until(
        lambda: "\n".join(f"{job.name}: {job.states} {job.sentence}" for job in jobs
                          if not job.seen),
        lambda: look_at_all(cluster, jobs) and time.monotonic() - began > STALL_SECONDS,
        SEEN_SECONDS, 0.5)
    halted = {job.number for job in jobs if job.name in HALTED}
    agents.wait_until("the halted jobs in the logs",
                      lambda: halted <= logged_stuck(cluster).keys())
    for job in jobs:
        agents.say(f"{job.name}: {', '.join(sorted(job.states))}: {job.sentence}")


def let_go(jobs, quota, freezer):
    if quota:
        name, text = (("cpu.cfs_quota_us", "-1") if (quota / "cpu.cfs_quota_us").exists()
                      else ("cpu.max", "max 400000"))
        (quota / name).write_text(text)
    if freezer:
        (freezer / "cgroup.freeze").write_text("0")
    for job in jobs:
        if job.name == "stopped":
            job.odd.send_signal(signal.SIGCONT)


def test_healthy(cluster):
    """No odd but healthy job is stuck, what its rank does is named, and each ends with status 0."""
    cluster.start().wait_ring(agents.WAIT_SECONDS)
    with quota_cgroup() as quota, freezer_cgroup() as freezer:
        absent = [name for name, group in (("compute_by_quota", quota), ("frozen", freezer))
                  if group is None]
        agents.say(f"left out, no cgroup can be made: {absent}")
        jobs = [Job(cluster, name, 7000 + n)
                for n, name in enumerate([*HEALTHY, *HALTED]) if name not in absent]
        try:
            play(cluster, jobs, quota, freezer)
            let_go(jobs, quota, freezer)
            for job in jobs:
                job.end()
        finally:
            let_go(jobs, quota, freezer)
            for job in jobs:
                job.kill()
        for job in jobs:
            assert ("stuck" in job.states) == (job.name in HALTED), (job.name, job.states)
        stuck = logged_stuck(cluster)
        assert stuck.keys() == {job.number for job in jobs if job.name in HALTED}, stuck


if __name__ == "__main__":
    _, BUILD, PYTHON, LIBRARY = sys.argv
    agents.run(clusters.Cluster(BUILD, AGENTS, settings={"job.waiting": "3s"}), [test_healthy])
