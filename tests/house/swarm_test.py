# SPDX-License-Identifier: BSD-3-Clause
"""Tests of tests/tools/swarm.py: which mixes a commit runs, and the report of a failed mix."""

import os
import pathlib
import subprocess
import sys
import tempfile

import tap

SWARM = pathlib.Path(__file__).resolve().parent.parent / "tools" / "swarm.py"
COUNT_OF_SIZES = 15
# Stub of the simulator: logs its arguments. The files `breaks` and `fails` select a failure.
SIMULATOR = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/calls"
[ -f "$(dirname "$0")/breaks" ] && echo "seed 7 breaks: A: one alone" &&
	echo "swarm: 1 of $2 mixes broke an invariant" && exit 1
[ -f "$(dirname "$0")/fails" ] && exit 3
echo "swarm: 0 of $2 mixes broke an invariant"
"""


def git(tree, *words):
    own = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    own.update({f"GIT_{who}_{what}": "one@example.org" for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")})
    subprocess.run(["git", "-C", tree, *words], env=own, check=True, capture_output=True)


class Bed:
    """A tree with a stub of the simulator."""

    def __init__(self, root, committed=True):
        self.root = pathlib.Path(root)
        self.simulator = self.root / "sim"
        self.tree = self.root / "tree"
        self.tree.mkdir()
        self.simulator.write_text(SIMULATOR, encoding="utf-8")
        self.simulator.chmod(0o755)
        if committed:
            git(self.tree, "init", "-q")
            self.commit()

    def commit(self):
        git(self.tree, "commit", "-q", "--allow-empty", "-m", "one")

    def play(self, turns=1):
        """Run the swarm. Returns exit status, output and calls of the simulator."""
        calls = self.root / "calls"
        calls.write_text("", encoding="utf-8")
        own = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.root)}
        done = subprocess.run(
            [sys.executable, SWARM, self.simulator, "--commit", str(turns), self.tree],
            capture_output=True, text=True, check=False, env=own)
        return done.returncode, done.stdout, calls.read_text(encoding="utf-8").splitlines()


def in_bed(**how):
    """Decorate a test so that it gets its own bed."""
    def around(test):
        def run():
            with tempfile.TemporaryDirectory() as root:
                test(Bed(root, **how))
        return run
    return around


@in_bed()
def a_commit_plays_the_same_each_time(bed):
    status, told, calls = bed.play()
    assert status == 0, told
    assert len(calls) == COUNT_OF_SIZES, calls
    assert bed.play() == (status, told, calls)


@in_bed()
def the_next_commit_plays_others(bed):
    before = bed.play()[2]
    git(bed.tree, "commit", "-q", "--allow-empty", "-m", "two")
    after = bed.play()[2]
    assert len(after) == len(before)
    assert not set(after) & set(before), after


@in_bed(committed=False)
def without_git_it_is_seed_1_and_says_so(bed):
    status, told, _ = bed.play()
    assert status == 0, told
    assert "no commit" in told and "swarm: seed 1\n" in told, told


@in_bed()
def the_seed_is_told_and_draws_the_same(bed):
    _, told, calls = bed.play(2)
    seed = told.split("swarm: seed ")[1].split()[0]
    (bed.root / "calls").write_text("", encoding="utf-8")
    subprocess.run([sys.executable, SWARM, bed.simulator, "--turns", "2", seed], check=True,
                   capture_output=True)
    assert (bed.root / "calls").read_text(encoding="utf-8").splitlines() == calls


@in_bed()
def a_mix_that_breaks_fails_and_is_shown(bed):
    (bed.root / "breaks").touch()
    status, told, _ = bed.play()
    assert status == 1, told
    assert "seed 7 breaks: A: one alone" in told, told


@in_bed()
def a_simulator_that_does_not_run_is_no_success(bed):
    (bed.root / "fails").touch()
    status, told, _ = bed.play()
    assert status == 3, told
    assert "exit status 3" in told, told


tap.run([
    ("a commit plays the same mixes each time", a_commit_plays_the_same_each_time),
    ("the next commit plays others", the_next_commit_plays_others),
    ("without git it is seed 1, and it says so", without_git_it_is_seed_1_and_says_so),
    ("the seed that is told draws the same mixes", the_seed_is_told_and_draws_the_same),
    ("a mix that breaks fails and is shown", a_mix_that_breaks_fails_and_is_shown),
    ("a simulator that does not run is no success", a_simulator_that_does_not_run_is_no_success),
])
