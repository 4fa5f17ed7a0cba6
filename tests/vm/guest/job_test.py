#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: a killed rank under an agent on the oldest supported kernel. The pidfd reports
its end, and /proc the cause, also for a rank in a container's namespaces."""

import os
import pathlib
import re
import subprocess

import cluster as clusters
from shared import SECONDS, Shared

RING = pathlib.Path(os.environ["TOCSIN_BUILD"]) / "lib" / "job" / "examples" / "ring"
RANKS = 3
# Not rank 0: the ring waits for rank 0 first and reaps no other rank before. The kernel forgets the
# cause when it reaps the process.
KILLED = 1
CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
GONE = re.compile(r"^rank (\d+): rank (\d+) is gone \((.*)\), told after", re.M)
SIGNAL_9 = "its process was killed by signal 9 (Killed)"


class Alone(Shared):
    """One agent."""

    @classmethod
    def start(cls):
        cls.cluster = clusters.Cluster(os.environ["TOCSIN_BUILD"], 1).start()


def kill_one(around):
    """Kill one rank. All survivors must learn which rank is gone, and how it ended."""
    agent, = Alone.agents()
    with subprocess.Popen(
            [*around, RING, "--ranks", str(RANKS), "--kill", str(KILLED), "--compute", "0",
             "--socket", agent.directory / "job.sock"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True) as job:
        out, _ = job.communicate(timeout=SECONDS)
    assert job.returncode == 0, out
    survivors = [rank for rank in range(RANKS) if rank != KILLED]
    assert sorted(GONE.findall(out)) == [
        (str(rank), str(KILLED), SIGNAL_9) for rank in survivors], out


def a_rank_that_is_killed_has_ended_by_signal_9():
    kill_one(())


def so_has_one_in_pid_and_user_namespaces_of_its_own():
    kill_one(CONTAINER)


if __name__ == "__main__":
    Alone.run(a_rank_that_is_killed_has_ended_by_signal_9,
              so_has_one_in_pid_and_user_namespaces_of_its_own)
