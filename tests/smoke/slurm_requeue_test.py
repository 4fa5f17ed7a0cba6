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


# Stand-ins of Slurm's programs. Questions are answered from the environment and not recorded.
STAND_IN = """#!/bin/sh
case "${{0##*/}} $*" in
"sbatch --version") echo "$VERSION"; exit ;;
"scontrol show config") echo "SlurmctldParameters = $PARAMETERS"; exit ;;
"scontrol show job 17") echo "$JOB"; exit ;;
esac
echo "${{0##*/}}" "$@" >>"{asked}"
exit {ends}
"""


def played(status, scontrol=0, words=("./train", "--resume"), **environment):
    """The script's exit status, the orders to srun, sbatch and scontrol, and what was said."""
    with tempfile.TemporaryDirectory() as directory:
        asked = pathlib.Path(directory, "asked")
        for name, ends in (("srun", status), ("scontrol", scontrol), ("sbatch", 0)):
            program = pathlib.Path(directory, name)
            program.write_text(STAND_IN.format(asked=asked, ends=ends))
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


def test_submitted():
    """A job is submitted with --requeue=expedite where Slurm has that."""
    for version, parameters, option in (
            ("slurm 25.11.0", "a,enable_expedited_requeue", "--requeue=expedite"),
            ("slurm 26.05.4", "enable_expedited_requeue", "--requeue=expedite"),
            ("slurm 25.11.0-0rc1", "enable_expedited_requeue", "--requeue=expedite"),
            ("slurm 25.11.0", "(null)", "--requeue"),
            ("slurm 25.05.3", "enable_expedited_requeue", "--requeue"),
            ("slurm-wlm 22.05.8", "enable_expedited_requeue", "--requeue"),
            ("slurm x.y", "enable_expedited_requeue", "--requeue"),
            ("", "enable_expedited_requeue", "--requeue")):
        status, asked, said = played(0, words=("--submit", "-N", "8", "my job.sh"),
                                     VERSION=version, PARAMETERS=parameters)
        assert (status, asked, said) == (0, [f"sbatch {option} -N 8 my job.sh"], ""), \
            (version, parameters, asked, said)


def test_expedited():
    """An expedited job is left to Slurm."""
    status, asked, said = played(75, SLURM_JOB_ID="17",
                                 JOB="JobId=17 Requeue=1 ExpeditedRequeue=Yes Restarts=0")
    assert (status, asked) == (75, ["srun ./train --resume"]), asked
    assert "Slurm expedites job 17" in said, said
    _, asked, _ = played(75, SLURM_JOB_ID="17", JOB="JobId=17 ExpeditedRequeue=No")
    assert asked[1:] == ["scontrol requeue 17"], asked


if __name__ == "__main__":
    SCRIPT = sys.argv[1]
    tap.run([(test.__doc__.strip().rstrip("."), test)
             for test in (test_gone, test_own_end, test_enough, test_refused, test_submitted,
                          test_expedited)])
