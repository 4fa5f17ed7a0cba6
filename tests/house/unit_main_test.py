#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of main() of unit test programs (tests/support/unit_main.c), with passing and failing
groups.

unit_main_test.py PROBE
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile

import tap


def probe(*arguments):
    """Run the probe. Return its exit status and its TAP lines without diagnostics."""
    with tempfile.TemporaryFile(mode="w+", encoding="utf-8") as output:
        program = subprocess.Popen([sys.argv[1], *arguments], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        status = program.wait()
        # A group left a process behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        output.seek(0)
        return status, re.findall(r"^(?:not ok|ok|1\.\.).*$", output.read(), re.MULTILINE)


def all_groups_run_and_test_numbers_continue():
    assert probe() == (1, [
        "ok 1 - group_exits: it_passes",
        "not ok 2 - group_exits ended with exit status 0 after 1 of 3 tests",
        "not ok 3 - group_fails: it_fails",
        "ok 4 - group_fails: it_passes",
        "not ok 5 - group_killed ended with signal 9 after 0 of 1 tests",
        "ok 6 - group_passes: it_passes",
        "ok 7 # SKIP it_is_skipped",
        "ok 8 - group_passes: it_leaves_a_process",
        "1..8"])


def a_pattern_chooses_groups():
    status, lines = probe("--filter", "group_[fp]*")
    assert status == 1 and lines[-1] == "1..5", lines
    assert probe("--filter", "group_fails")[1] == ["1..2", "not ok 1 - it_fails",
                                                   "ok 2 - it_passes"]


def wrong_words_are_refused():
    for words in (["group_fails"], ["--filter"], ["--filter", "none"], ["--list", "x"]):
        assert probe(*words) == (2, []), words


def groups_are_listed_by_name():
    said = subprocess.run([sys.argv[1], "--list"], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["group_exits", "group_fails", "group_killed", "group_passes"]


if __name__ == "__main__":
    tap.run([
        ("all groups run and test numbers continue",
         all_groups_run_and_test_numbers_continue),
        ("a pattern chooses groups", a_pattern_chooses_groups),
        ("wrong words are refused", wrong_words_are_refused),
        ("groups are listed by name", groups_are_listed_by_name),
    ])
