#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tocsin-slurm-requeue, with stand-ins of srun and scontrol: what goes back into the queue.

    slurm_requeue_test.py SCRIPT
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import tap


def played(status, scontrol=0, words=("./train", "--resume"), **environment):
    """The script's exit status, what was asked of srun and scontrol, and what was said."""
    with tempfile.TemporaryDirectory() as directory:
        asked = pathlib.Path(directory, "asked")
        for name, ends in (("srun", status), ("scontrol", scontrol)):
            program = pathlib.Path(directory, name)
            program.write_text(f'#!/bin/sh\necho {name} "$@" >>"{asked}"\nexit {ends}\n')
            program.chmod(0o755)
        done = subprocess.run(
            ["sh", SCRIPT, *words], text=True, capture_output=True, check=False,
            env={"PATH": f"{directory}:{os.environ['PATH']}", **environment})
        lines = asked.read_text().splitlines() if asked.exists() else []
        return done.returncode, lines, done.stderr


def test_gone():
    """A job that ends with 75 goes back into the queue."""
    status, asked, said = played(75, SLURM_JOB_ID="17")
    assert (status, asked) == (75, ["srun ./train --resume", "scontrol requeue 17"]), asked
    assert "job 17 goes back into the queue" in said, said


def test_own_end():
    """Any other end is the job's own."""
    for ends in (0, 1, 74, 137):
        status, asked, said = played(ends, SLURM_JOB_ID="17")
        assert (status, asked, said) == (ends, ["srun ./train --resume"], ""), (asked, said)


def test_enough():
    """It goes back no more often than it may, and by a status that may be chosen."""
    status, asked, said = played(75, SLURM_JOB_ID="17", SLURM_RESTART_COUNT="3")
    assert status == 75 and len(asked) == 1 and "3 times already" in said, (asked, said)
    _, asked, _ = played(75, SLURM_JOB_ID="17", SLURM_RESTART_COUNT="3",
                         TOCSIN_REQUEUE_TIMES="4")
    assert len(asked) == 2, asked
    _, asked, _ = played(9, SLURM_JOB_ID="17", TOCSIN_REQUEUE_STATUS="9")
    assert len(asked) == 2, asked


def test_refused():
    """Outside of a job, without a command, or where Slurm refuses, it says so."""
    status, asked, said = played(75)
    assert status == 75 and len(asked) == 1 and "SLURM_JOB_ID is not set" in said, said
    status, _, said = played(75, scontrol=1, SLURM_JOB_ID="17")
    assert status == 75 and "scontrol requeue 17 failed" in said, said
    status, asked, said = played(0, words=())
    assert status == 2 and not asked and "a command is wanted" in said, said


if __name__ == "__main__":
    SCRIPT = sys.argv[1]
    tap.run([(test.__doc__.strip().rstrip("."), test)
             for test in (test_gone, test_own_end, test_enough, test_refused)])
