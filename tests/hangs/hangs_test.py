#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ten programs of the corpus with Open MPI under two agents: no false word, each hang named.

    hangs_test.py BUILD-ROOT
"""

import os
import pathlib
import subprocess
import sys

import corpus
import tap

HEALTHY = ("slow-pipe", "child-computes", "two-threads", "master-worker")
HANGING = ("recv-nobody", "recv-recv", "send-send", "other-call", "fewer-steps", "stopped")
ODD_SECONDS = 14  # an agent names a rank that others wait for after 10 s

here = {}  # state shared by the tests


def rows():
    """Play the ten programs once, all at the same time. Returns the results by name."""
    if "rows" not in here:
        catalogue = corpus.read_catalogue()
        chosen = [catalogue[name] for name in (*HEALTHY, *HANGING)]
        with corpus.Play(sys.argv[1], ODD_SECONDS, corpus.HEALTHY_SECONDS_MAX) as play:
            here["rows"] = {row["name"]: row for row in play.play(chosen, len(chosen))}
    return here["rows"]


def catalogue_is_whole():
    """The catalogue has 30 healthy programs and 30 that hang, each on five layers."""
    programs = corpus.read_catalogue().values()
    for is_healthy in (True, False):
        some = [program for program in programs if program.is_healthy == is_healthy]
        assert len(some) == 30, len(some)
        assert {program.layer for program in some} == {
            "openmpi", "mpich", "libtocsin", "nccl", "gloo"}, some


def nothing_false_is_said():
    """No rank of a healthy program is called stuck or gone, and no wrong rank of any is named."""
    for name, row in rows().items():
        tap.comment(f"{name}: {row['said']}")
    faults = {name: [fault for fault in row["faults"] if fault["kind"] not in ("missing", "late")]
              for name, row in rows().items()}
    assert not any(faults.values()), faults


def hangs_are_named():
    """Each hang is named with its rank and its call."""
    seconds = {name: rows()[name]["seconds"] for name in HANGING}
    tap.comment(f"named after so many seconds: {seconds}")
    missing = {name: rows()[name]["said"] for name in HANGING if seconds[name] is None}
    assert not missing, missing


def killed_runner_leaves_nothing():
    """A runner that is killed leaves no process behind, not even a stopped rank."""
    bench = str(corpus.HERE / "hangs_bench.py")
    with subprocess.Popen([sys.executable, bench, sys.argv[1], "stopped"],
                          stdout=subprocess.DEVNULL,
                          env={**os.environ, corpus.INSIDE: ""}) as runner:
        try:
            corpus.clusters.wait_until("a stopped rank", lambda: any(
                is_stopped(pid) for pid in corpus.processes_of(runner.pid)), pause=0.3)
        finally:
            runner.kill()
    corpus.clusters.wait_until("the end of all", lambda: not corpus.processes_of(runner.pid))


def is_stopped(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "T"


def skip_programs():
    """Ten programs of the corpus are played."""
    if not corpus.launch.OPEN_MPI.is_here():
        raise tap.Skip("Open MPI is not installed")
    raise tap.Skip("namespaces of processes and network are refused")


def main():
    tests = [catalogue_is_whole, nothing_false_is_said, hangs_are_named,
             killed_runner_leaves_nothing]
    if not corpus.launch.OPEN_MPI.is_here() or not corpus.can_have_namespaces():
        tests = [catalogue_is_whole, skip_programs]
    else:
        status = corpus.in_namespaces()
        if status is not None:
            sys.exit(status)
    tap.run([(test.__doc__, test) for test in tests])


if __name__ == "__main__":
    main()
