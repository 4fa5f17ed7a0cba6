#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the guest's test runner on the host: one TAP of many programs, and every failed end is
seen.

guest_run_test.py SOURCE-ROOT
"""

import pathlib
import subprocess
import sys
import tempfile

import tap

# Program -> expected TAP lines, without the numbers.
CASES = [
    ("two lines of TAP", "echo 1..2; echo ok 1 - a; echo ok 2 - b", ["ok it: a", "ok it: b"]),
    ("a failed line", "echo 1..1; echo not ok 1 - a; exit 1", ["not ok it: a"]),
    ("a skip", "echo 1..1; echo 'ok 1 - a # SKIP why'", ["ok it: a # SKIP why"]),
    ("cmocka's skip", "echo 1..1; echo 'not ok 1 # SKIP a'", ["ok it: a # SKIP no reason given"]),
    ("nothing but status 0", "exit 0", ["not ok it: ran no test"]),
    ("nothing but status 3", "exit 3", ["not ok it: exit status 3"]),
    ("a crash half way", "echo 1..2; echo ok 1 - a; kill -11 $$",
     ["ok it: a", "not ok it: killed by signal 11 after 1 of 2 tests"]),
    ("an end that leaves a process with its output", "sleep 600 & echo 1..1; echo ok 1 - a",
     ["ok it: a"]),
]


def run(*programs):
    """Return exit status, the TAP lines, and the whole output."""
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        paths = []
        for number, text in enumerate(programs):
            path = pathlib.Path(name) / str(number) / "it_test"
            path.parent.mkdir()
            path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            path.chmod(0o755)
            paths.append(str(path))
        done = subprocess.run([sys.executable, RUNNER, *paths], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
    assert done.stderr == "", done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return done.returncode, lines, done.stdout


def case_test(text, wanted):
    def test():
        status, lines, said = run(text)
        numbered = [line.replace("ok ", f"ok {number} - ", 1)
                    for number, line in enumerate(wanted, 1)]
        assert lines == [*numbered, f"1..{len(wanted)}"], said
        assert status == any(line.startswith("not") for line in wanted), said
    return test


def programs_are_numbered_through_and_failures_bring_their_output():
    status, lines, said = run(*[text for _, text, _ in CASES[:2]], "echo why; exit 1")
    assert status == 1 and lines[-1] == "1..4" and lines[3].startswith("not ok 4 "), said
    assert "\n# why\n" in said, said


def why_one_failed_stands_right_behind_its_line():
    lines = ["1..2", "not ok 1 - a", "# Traceback (most recent call last):",
             '#   File "it.py", line 7, in a', "#     assert False", "# AssertionError: why",
             "ok 2 - b"]
    _, _, said = run("cat <<'END'\n" + "\n".join(lines) + "\nEND\nexit 1")
    wanted = "not ok 2 - it: a\n# AssertionError: why\n# at it.py:7 in a: assert False\n"
    assert wanted in said, said


if __name__ == "__main__":
    RUNNER = pathlib.Path(sys.argv[1]).resolve() / "tests/vm/guest/run.py"
    tap.run([(f"the guest's TAP of a program with: {title}", case_test(text, wanted))
             for title, text, wanted in CASES] + [
        ("programs are numbered through, and failures bring their output",
         programs_are_numbered_through_and_failures_bring_their_output),
        ("why one failed stands right behind its line",
         why_one_failed_stands_right_behind_its_line),
    ])
