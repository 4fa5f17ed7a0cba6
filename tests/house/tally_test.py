#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the summary of ./dev test: no failure may look like success."""

import contextlib
import io

import tally
import tap

# Output and end of a program -> passed, failed, skipped.
CASES = [
    ("all lines ok", {"stdout": "1..2\nok 1 - a\nok 2 - b\n"}, (2, 0, 0)),
    ("a line not ok", {"stdout": "1..2\nok 1 - a\nnot ok 2 - b\n", "returncode": 1}, (1, 1, 0)),
    ("a skip with its reason", {"stdout": "1..2\nok 1 - a\nok 2 - b # SKIP why\n"}, (1, 0, 1)),
    ("cmocka's skip", {"stdout": "1..1\nnot ok 1 # SKIP needs_root\n"}, (0, 0, 1)),
    ("a whole program skipped", {"stdout": "1..0 # SKIP no netns\n"}, (0, 0, 1)),
    ("a crash half way", {"stdout": "1..3\nok 1 - a\n", "returncode": -11}, (1, 1, 0)),
    ("too few lines for its plan", {"stdout": "1..3\nok 1 - a\n"}, (1, 1, 0)),
    ("nothing said", {"stdout": ""}, (0, 1, 0)),
    ("no plan", {"stdout": "ok 1 - a\n"}, (1, 1, 0)),
    ("more lines than planned", {"stdout": "1..1\nok 1 - a\nok 2 - b\n"}, (2, 1, 0)),
    ("a line of an agent", {"stdout": "1..2\nok 1 - a\nOK\n"}, (1, 1, 0)),
    ("an empty plan without a reason", {"stdout": "1..0\n"}, (0, 1, 0)),
    ("a report at exit", {"stdout": "1..1\nok 1 - a\n", "returncode": 23}, (1, 1, 0)),
    ("a time-out", {"stdout": "1..2\nok 1 - a\n", "ended_by": "timed out after 3 s"}, (1, 1, 0)),
    ("no TAP, status 0", {"stdout": "3 seeds\n", "protocol": "exitcode"}, (1, 0, 0)),
    ("no TAP, status 1", {"stdout": "x\n", "returncode": 1, "protocol": "exitcode"}, (0, 1, 0)),
    ("no TAP, status 77", {"stdout": "no module\n", "returncode": 77}, (0, 0, 1)),
    ("two groups in one program", {"stdout": "1..1\nok 1 - a\n1..1\nok 1 - b\n"}, (2, 0, 0)),
]


def closed(*records, missing=(), chosen=False):
    """Return exit status and standard output of the summary for these programs."""
    common = {"kind": "release", "suite": "unit", "name": "it", "protocol": "tap",
              "returncode": 0, "ended_by": "", "seconds": 0.1, "processor_seconds": 0.1,
              "pattern": 7,
              "stdout": "", "stderr": ""}
    programs = [tally.Program({**common, **record}) for record in records]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = tally.close(programs, list(missing), chosen)
    return status, said.getvalue()


def closing_line_test(record, expected):
    def test():
        passed, failed, skipped = expected
        code, said = closed(record)
        assert said.splitlines()[-1] == f"{passed} passed, {failed} failed, {skipped} skipped", said
        assert (code == 0) == (failed == 0 and passed > 0), said
    return test


def what_never_ran_is_counted_as_failed():
    code, said = closed(missing=["asan: the build"])
    assert code == 1 and said.splitlines()[-1] == "0 passed, 1 failed, 0 skipped", said
    code, said = closed({"stdout": "1..1\nok 1 - a\n"}, missing=["1 of 2 programs did not run"])
    assert code == 1 and said.splitlines()[-1] == "1 passed, 1 failed, 0 skipped", said


def what_was_skipped_as_a_whole_is_said_to_have_run_nothing():
    why = {"stdout": "1..1\nok 1 - a # SKIP no root\n"}
    no_reason = {"stdout": "1..1\nnot ok 1 # SKIP needs_root\n"}
    bad = {"stdout": "1..1\nnot ok 1 - a\n", "returncode": 1}
    good = {"stdout": "1..1\nok 1 - a\n"}
    for records, missing, chosen, status in (
            ((why, why), (), False, 1), ((why, why), (), True, 0),
            ((why, no_reason), (), True, 1), ((why,), ("x",), True, 1),
            ((why, bad), (), True, 1), ((why, good), (), True, 0), ((why, good), (), False, 0)):
        code, said = closed(*records, missing=missing, chosen=chosen)
        assert code == status, (records, missing, said)
        idle = all(one in (why, no_reason) for one in records)
        assert ("\nnothing ran: all 2 were skipped" in said) == (idle and not missing), said
        assert said.splitlines()[-1].endswith(" skipped"), said


def failures_come_with_their_output_and_skips_with_their_reason():
    _, said = closed({"stdout": "1..2\nnot ok 1 - b\n# because\nok 2 - c # SKIP no device\n",
                     "stderr": "and why", "returncode": 1})
    for part in ("FAILED: release unit/it", "because", "and why", "c: no device"):
        assert part in said, said
    _, said = closed({"stdout": "1..2\nok 1 - a\nno clock here\nnot ok 2 # SKIP b\n"})
    assert "b: no clock here" in said, said


TRACEBACK = """1..3
not ok 1 - second
# Traceback (most recent call last):
#   File "/tree/tap.py", line 18, in run
#     function()
#   File "/tree/ring_test.py", line 199, in test_two
#     wait_log(intruder)
#   File "/tree/cluster.py", line 40, in wait_until
#     raise Timeout(what)
# cluster.Timeout: LONG not within 3 s
# measured later
ok 2 - c
not ok 3 - d
# 0x1 != 0x2
# d_test.c:7: error: Failure!
"""
SANITIZED = "1..2\nok 1 - a\n"
REPORT = "==7==ERROR: AddressSanitizer: heap-use-after-free\n" + 60 * "  #1 in main\n"


def the_end_is_each_failure_in_a_few_short_lines():
    _, said = closed({"stdout": TRACEBACK.replace("LONG", 900 * "x"), "returncode": 1},
                    {"stdout": SANITIZED, "stderr": REPORT, "returncode": -6},
                    {"stdout": "seed 3\nbroken: two dead\n", "returncode": 1})
    end = said[said.index("FAILED: "):].splitlines()
    assert len(end) < 30 and max(map(len, end)) < 300, said
    for first, then in (("  second", "    cluster.Timeout: xxx"), ("  d", "    0x1 != 0x2"),
                        ("  killed by signal 6 after 1 of 2 tests", "    ==7==ERROR: Address"),
                        ("  exit status 1", "    seed 3")):
        assert end[end.index(first) + 1].startswith(then), said
    for part in ("    at /tree/ring_test.py:199 in test_two: wait_log(intruder)",
                 "    d_test.c:7: error: Failure!", "    broken: two dead"):
        assert part in end, said


def the_ten_slowest_programs_are_named():
    records = [{"stdout": "1..1\nok 1 - a\n", "name": f"p{n}", "seconds": float(n)}
               for n in range(12)]
    _, said = closed(*records)
    slowest = said[said.index("\nthe slowest\n"):].split("\n\n")[0].splitlines()[2:]
    assert [line.split()[1] for line in slowest] == [f"unit/p{n}" for n in range(11, 1, -1)], said


if __name__ == "__main__":
    tap.run([(f"the count of a program with: {title}", closing_line_test(record, expected))
             for title, record, expected in CASES] + [
        ("what never ran is counted as failed", what_never_ran_is_counted_as_failed),
        ("what was skipped as a whole is said to have run nothing",
         what_was_skipped_as_a_whole_is_said_to_have_run_nothing),
        ("failures come with their output, skips with their reason",
         failures_come_with_their_output_and_skips_with_their_reason),
        ("the end is each failure in a few short lines",
         the_end_is_each_failure_in_a_few_short_lines),
        ("the ten slowest programs are named", the_ten_slowest_programs_are_named),
    ])
