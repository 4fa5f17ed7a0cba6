#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev test`: builds, runs, counts.

    verb_test.py kinds [CHOSEN]   prints the kinds of build that the chosen tests run in
    verb_test.py run [CHOSEN]     builds what they need and runs them

CHOSEN is a suite, a test, or --failed: what failed when it ran last. The release is built first;
while the other kinds are built, its tests that mostly wait run already. The last line is
N passed, N failed, N skipped.
"""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import runner
import suites
import tally

FAILED_FILE = pathlib.Path("build/test-failed.json")  # what failed when it ran last
BUILD_SHARE = 0.75   # of the processors, while something is built beside tests
BUILD_LINES = 25     # the last of ninja's, if it fails without saying in which step
QUIET_SECONDS = 20   # between two lines of progress where there is no terminal
NAMED_MAX = 3        # running tests in the line of progress
PROGRESS = re.compile(r"^\[(\d+)/(\d+)\] ")


class Build:
    """ninja at work on one kind. What it says goes to a file, which is told if it fails."""

    def __init__(self, kind, targets):
        self.kind = kind
        self.directory = pathlib.Path(suites.DIRECTORIES[kind])
        self.log = self.directory / "test-build.txt"
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                ["nice", "-n", "5", suites.tool("ninja"), "-C", str(self.directory), *targets],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def place(self):
        """How far it is, in ninja's words."""
        steps = [line for line in self.lines() if PROGRESS.match(line)]
        return PROGRESS.match(steps[-1]).group().strip() if steps else ""

    def lines(self):
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def failure(self):
        """What went wrong, in the compiler's words: from the first failed step on."""
        lines = self.lines()
        first = next((place for place, line in enumerate(lines)
                      if line.startswith("FAILED: ")), max(0, len(lines) - BUILD_LINES))
        return [line for line in lines[first:] if not PROGRESS.match(line)]


class Progress:
    """One line that is written over on a terminal, else a line now and then."""

    def __init__(self, total):
        self.total, self.done, self.failed = total, 0, 0
        self.started = self.told = time.monotonic()
        self.live = sys.stdout.isatty()

    def add(self, more):
        self.total += more

    def took(self, program):
        self.done += 1
        if program.failed:
            self.failed += 1
            self.say(f"FAILED: {program.title()} after {program.seconds:.0f} s: "
                     f"{program.failed[0]}")

    def say(self, text):
        if self.live:
            print("\r\033[K", end="")
        print(text, flush=True)

    def line(self, pool, build):
        parts = [f"test: {self.done} of {self.total}, {self.failed} failed, "
                 f"{time.monotonic() - self.started:.0f} s"]
        if build:
            parts.append(f"building {build.kind} {build.place()}")
        longest = sorted(pool.running, key=lambda run: run.started)
        parts += [f"{run.test.kind} {run.test.name} {run.seconds():.0f} s"
                  for run in longest[:NAMED_MAX]]
        if len(longest) > NAMED_MAX:
            parts.append(f"{len(longest) - NAMED_MAX} more")
        return "; ".join(parts)

    def tell(self, pool, build):
        quiet = time.monotonic() - self.told
        if self.live and quiet > 0.5:
            width = shutil.get_terminal_size().columns - 1
            print("\r\033[K" + self.line(pool, build)[:width], end="", flush=True)
        elif not self.live and quiet > QUIET_SECONDS:
            print(self.line(pool, build), flush=True)
        else:
            return
        self.told = time.monotonic()

    def end(self):
        if self.live:
            print("\r\033[K", end="")


class Session:
    """One run of ./dev test."""

    def __init__(self, plan, whole):
        self.plan = plan    # kind -> its tests
        self.whole = whole  # everything is wanted, so the whole release has to build
        self.times = runner.Times()
        self.pool = runner.Pool(self.times)
        self.programs, self.missing = [], []
        self.progress = Progress(sum(map(len, plan.values())))
        self.build = None

    def begin_build(self, kind):
        targets = sorted({need for test in self.plan[kind] for need in test.needs})
        self.build = Build(kind, [] if self.whole and kind == "release" else targets)

    def end_build(self):
        build, self.build = self.build, None
        if build.process.returncode == 0:
            self.pool.add(self.plan[build.kind])
            return
        for line in build.failure():
            self.progress.say(line)
        self.missing.append(f"{build.kind}: the build in {build.directory}: see above")

    def step(self, kinds):
        if self.build is None and kinds:
            self.begin_build(kinds.pop(0))
        if self.build and self.build.process.poll() is not None:
            self.end_build()
        busy = bool(self.build or kinds)
        self.pool.held_back = self.pool.room * BUILD_SHARE if busy else 0.0
        for record in self.pool.step():
            self.times.learn(record)
            program = tally.Program(record)
            self.programs.append(program)
            self.progress.took(program)
        self.progress.tell(self.pool, self.build)

    def run(self):
        kinds = list(self.plan)
        try:
            while kinds or self.build or not self.pool.is_done():
                self.step(kinds)
                time.sleep(runner.POLL_SECONDS)
        finally:
            self.pool.end()
            if self.build:
                self.build.process.terminate()
            self.progress.end()
            self.times.save()


def failed_last():
    """Their titles."""
    try:
        return set(json.loads(FAILED_FILE.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        return set()


def remember_failed(session):
    """What failed now, and what failed earlier and was not run now."""
    ran = {program.title() for program in session.programs}
    failed = {program.title() for program in session.programs if program.failed}
    left = sorted((failed_last() - ran) | failed)
    FAILED_FILE.write_text(json.dumps(left), encoding="utf-8")


def chosen_of(tests, chosen):
    if chosen == "--failed":
        failed = failed_last()
        return [test for test in tests if test.title in failed]
    return [test for test in tests if test.is_wanted() and test.is_called(chosen)]


def kinds_of(chosen):
    """By the release's list of tests, since the others may not be configured yet."""
    if chosen == "--failed":
        return [kind for kind in suites.DIRECTORIES if kind in {title.split()[0] for title in failed_last()}]
    tests = suites.read("release")
    called = [test for test in tests if test.is_called(chosen)]
    if not called:
        print(f"dev: test: '{chosen}' is neither a suite nor a test. There are, by suite:\n" +
              "\n".join(list_by_suite(tests)), file=sys.stderr)
        sys.exit(2)
    return [kind for kind in suites.DIRECTORIES
            if any(suites.is_wanted_in(kind, test.suites) for test in called)]


def list_by_suite(tests, columns=100):
    """Every test's name, by suite, in lines that fit a terminal."""
    lines = []
    for suite in sorted({suite for test in tests for suite in test.suites}):
        line = f"  {suite}:"
        for name in sorted(test.name for test in tests if suite in test.suites):
            if len(line) + 1 + len(name) > columns:
                lines.append(line)
                line = "   "
            line += " " + name
        lines.append(line)
    return lines


def interrupted(*_):
    raise KeyboardInterrupt


def run(chosen):
    kinds = kinds_of(chosen)
    if chosen == "--failed" and not kinds:
        print("test: nothing failed when it ran last")
        return 0
    plan, missing = {}, []
    for kind in kinds:
        try:
            plan[kind] = chosen_of(suites.read(kind), chosen)
        except (OSError, ValueError):
            missing.append(f"{kind}: {suites.DIRECTORIES[kind]} could not be configured: see above")
    session = Session({kind: tests for kind, tests in plan.items() if tests}, not chosen)
    session.missing += missing
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        session.run()
    except KeyboardInterrupt:
        session.missing.append("the run was interrupted")
    ran = {program.title() for program in session.programs}
    for kind, tests in session.plan.items():
        lost = [test.name for test in tests if test.title not in ran]
        if lost and not any(what.startswith(f"{kind}: ") for what in session.missing):
            session.missing.append(f"{kind}: {len(lost)} of {len(tests)} programs did not run")
    remember_failed(session)
    print(f"\nin all {time.monotonic() - session.progress.started:.0f} s")
    return tally.close(session.programs, session.missing, chosen=bool(chosen))


def main(verb, chosen=""):
    if verb == "kinds":
        print(" ".join(kinds_of(chosen)))
        return 0
    return run(chosen)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
