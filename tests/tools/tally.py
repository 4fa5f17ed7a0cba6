# SPDX-License-Identifier: BSD-3-Clause
"""Counts what test programs said, from the records of runner.py.

Every TAP line counts as one test, and a program without TAP as one. A program that
crashed, timed out, stopped short of its plan or ran nothing counts as a failed test of
its own, whatever its lines said.
Prints what the failed programs said, where the time went, the skips with their reasons, each
failure in a few short lines, and last: N passed, N failed, N skipped. So the end of a long
output is what has to be known.
"""

import re

OUTPUT_LINES_MAX = 60
OUTPUT_COLUMNS_MAX = 500
REASON_LINES_MAX = 8
REASON_COLUMNS_MAX = 240
SLOWEST = 10
PLACE = re.compile(r' *File "(.*)", line (\d+), in (.*)')  # of a traceback
VERDICT = re.compile(r"\w+Sanitizer: |runtime error: |must\(|Assertion ")
BROKEN = re.compile(r"\w+Sanitizer: |runtime error: |must\(|not ok .* ended with signal ")
TAP_LINE = re.compile(
    r"^(not )?ok\b *(\d*) *-? *(.*?) *(?:# *((?i:skip)\S*|(?i:todo)) *(.*))?$")
TAP_PLAN = re.compile(r"^1\.\.(\d+)(?: *# *skip\S* *(.*))?$", re.IGNORECASE)


class Program:
    """What one test program said, as three lists of test names."""

    def __init__(self, record):
        self.kind, self.suite, self.name = record["kind"], record["suite"], record["name"]
        self.seconds = record["seconds"]
        self.processor_seconds = record["processor_seconds"]
        self.ended_by = record["ended_by"]  # why it did not end by itself, in words
        self.pattern = record["pattern"]
        self.protocol = record["protocol"]
        self.code = record["returncode"]
        self.stdout, self.stderr = record["stdout"], record["stderr"]
        self.passed, self.failed, self.skipped = [], [], []
        self.planned = None
        self.remarks = {}  # of each failed test: what it wrote as comments
        self.latest = None
        self.said_before = ""  # the last line that was no verdict, since the last verdict
        for line in self.stdout.splitlines():
            self.read_line(line)
        self.judge()
        if not self.failed:
            self.stdout = self.stderr = ""  # nobody asks, and there are hundreds of them

    def read_line(self, line):
        plan = TAP_PLAN.match(line)
        if plan:
            self.planned = (self.planned or 0) + int(plan.group(1))
            if plan.group(2) is not None:
                self.skipped.append((self.name, plan.group(2)))
            return
        said = TAP_LINE.match(line)
        if not said:
            self.said_before = line.removeprefix("#").strip()
            if line.startswith("#") and self.latest is not None:
                self.latest.append(line[1:].removeprefix(" "))
            return
        bad, number, name, directive, reason = said.groups()
        self.latest = self.remarks.setdefault(name or number, []) if bad else None
        if directive:
            # cmocka writes the name behind the word SKIP; TAP wants the reason there. The
            # reason of such a test is what it printed last.
            self.skipped.append(
                (name, reason) if name else (reason or number, self.said_before))
        else:
            (self.failed if bad else self.passed).append(name or number)
        self.said_before = ""

    def judge(self):
        """Adds what the program's end says beyond its lines."""
        ran = len(self.passed) + len(self.failed) + len(self.skipped)
        if self.ended_by:
            self.failed.append(self.ended_by)
        elif self.code < 0:
            planned = self.planned or "?"
            self.failed.append(f"killed by signal {-self.code} after {ran} of {planned} tests")
        elif self.planned is None and ran == 0:
            self.judge_without_tap()
        elif self.planned is None and self.protocol == "tap":
            self.failed.append(f"told no plan beside {ran} tests")
        elif self.planned is not None and ran < self.planned:
            self.failed.append(f"stopped after {ran} of {self.planned} tests")
        elif self.planned and ran > self.planned:
            self.failed.append(f"told of {ran} tests where {self.planned} were planned")
        elif ran == 0:
            self.failed.append("ran no test")
        elif self.code != 0 and not self.failed:
            self.failed.append(f"exit status {self.code} although every test passed")

    def judge_without_tap(self):
        if self.code == 77:
            reason = (self.stdout.strip() or self.stderr.strip()).splitlines()
            self.skipped.append((self.name, reason[-1] if reason else ""))
        elif self.code != 0:
            self.failed.append(f"exit status {self.code}")
        elif self.protocol == "tap":
            self.failed.append("ran no test")
        else:
            self.passed.append(self.name)

    def is_broken(self):
        """Whether memory was broken, or it crashed."""
        return self.code < 0 and not self.ended_by or any(
            BROKEN.search(line) for line in self.output())

    def title(self):
        return f"{self.kind} {self.suite}/{self.name}"

    def output(self):
        return (self.stdout + self.stderr).splitlines()

    def reason(self, name):
        """Why a test of it failed, in a few lines, the most telling first."""
        if self.remarks.get(name):
            return reason_of(self.remarks[name])
        lines = [line for line in self.output() if line.strip()]
        return [line for line in lines if VERDICT.search(line)] or lines[-REASON_LINES_MAX // 2:]


def reason_of(remarks):
    """Of a traceback the exception, then where it came from; of other remarks the first."""
    places = [number for number, line in enumerate(remarks) if PLACE.match(line)]
    if not places:
        return remarks
    told = remarks[places[-1] + 1:]
    while told and told[0].startswith(" "):  # the line of source, and marks below it
        told.pop(0)
    at = ["at {}:{} in {}: ".format(*PLACE.match(remarks[number]).groups()) +
          remarks[number + 1].strip() for number in places if number + 1 < len(remarks)]
    return told[:REASON_LINES_MAX // 2] + at[::-1]


def cut(line, columns):
    return line if len(line) <= columns else f"{line[:columns]} ... {len(line) - columns} more"


def print_skips(programs):
    reasons = {}
    for program in programs:
        for name, reason in program.skipped:
            what = f"{program.suite}/{program.name}: {name}: {reason or 'no reason given'}"
            reasons.setdefault(what, []).append(program.kind)
    for what, kinds in reasons.items():
        print(f"skipped: {what} ({', '.join(kinds)})")


def print_unstable(programs):
    """What is to be mended although it is counted as passed."""
    for program in programs:
        print(f"\nUNSTABLE: {program.title()} failed beside others and passed alone:")
        for name in program.failed:
            print(f"  {name}")
            for line in program.reason(name)[:REASON_LINES_MAX]:
                print(f"    {cut(line, REASON_COLUMNS_MAX)}")


def print_outputs(programs):
    for program in programs:
        if not program.failed:
            continue
        print(f"\noutput of {program.title()}, which failed (MALLOC_PERTURB_={program.pattern}):")
        output = program.output()
        if len(output) > OUTPUT_LINES_MAX:
            print(f"  | ... {len(output) - OUTPUT_LINES_MAX} lines before these")
        for line in output[-OUTPUT_LINES_MAX:]:
            print(f"  | {cut(line, OUTPUT_COLUMNS_MAX)}")


def print_failures(programs):
    for program in programs:
        if not program.failed:
            continue
        print(f"\nFAILED: {program.title()}")
        for name in program.failed:
            print(f"  {name}")
            for line in program.reason(name)[:REASON_LINES_MAX]:
                print(f"    {cut(line, REASON_COLUMNS_MAX)}")


def print_times(programs):
    print("\nwhere the time goes (seconds from begin to end of each program, and of a processor)")
    for kind in dict.fromkeys(program.kind for program in programs):
        for suite in sorted({program.suite for program in programs if program.kind == kind}):
            those = [p for p in programs if (p.kind, p.suite) == (kind, suite)]
            tests = sum(len(p.passed) + len(p.failed) + len(p.skipped) for p in those)
            print(f"  {kind:8} {suite:14} {sum(p.seconds for p in those):7.1f} "
                  f"{sum(p.processor_seconds for p in those):7.1f}  {tests} tests in "
                  f"{len(those)} programs")
    print("\nthe slowest")
    for program in sorted(programs, key=lambda p: -p.seconds)[:SLOWEST]:
        print(f"  {program.title():40} {program.seconds:7.1f} {program.processor_seconds:7.1f}")


def exit_status(programs, passed, failed, chosen):
    if failed > 0:
        return 1
    if passed > 0:
        return 0
    skips = [reason for program in programs for _, reason in program.skipped]
    return 0 if chosen and skips and all(skips) else 1


def close(programs, missing, chosen=False):
    """Prints all of it; the exit status, which is 1 if anything failed or nothing ran. What is
    missing, a build or a program that never ran, counts as failed. chosen: for tests that were
    asked for by name, skips that all have a reason will do."""
    passed = sum(len(program.passed) for program in programs)
    failed = sum(len(program.failed) for program in programs) + len(missing)
    skipped = sum(len(program.skipped) for program in programs)
    print_outputs(programs)
    if programs:
        print_times(programs)
    print_skips(programs)
    print_failures(programs)
    for what in missing:
        print(f"\nFAILED: {what}")
    if passed + failed == 0 and skipped > 0:
        print(f"\nnothing ran: all {skipped} were skipped, for the reasons above")
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return exit_status(programs, passed, failed, chosen)
