#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev test`: builds, runs, counts.

    verb_test.py kinds [CHOSEN]   prints the kinds of build that the chosen tests run in
    verb_test.py run [CHOSEN]     builds what they need and runs them

CHOSEN is a suite, a test, a group of unit tests, --all (level two: suites.py), or --failed (tests
of earlier runs that have not passed since). Without CHOSEN all tests of level one run. The release
is built first. While the other kinds are built, release tests that mostly wait run already. The
last line is N passed, N failed, N skipped.
"""

import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

import runner
import suites
import tally

UNPASSED_FILE = pathlib.Path("build/test-unpassed.json")
INTERRUPTED = "the run was interrupted"
BUILD_SHARE = 0.5    # of the processors, while something is built beside tests that wait
BUILD_LINES = 25     # the last of ninja's, if it fails without saying in which step
QUIET_SECONDS = 20   # between two lines of progress where there is no terminal
NAMED_MAX = 3        # running tests in the line of progress
AGAIN_MAX = 6        # tests that are run once more, alone; 1 % of all programs
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
        parts += [f"{run.test.title} {run.seconds():.0f} s"
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

    def __init__(self, plan, chosen):
        self.plan = plan    # kind -> its tests
        self.whole = chosen in ("", "--all")  # a level, not a test or a suite
        self.builds_all = chosen == "--all"   # also benchmarks, which no test needs
        self.times = runner.Times()
        self.pool = runner.Pool(self.times)
        self.programs, self.missing = [], []
        self.progress = Progress(sum(map(len, plan.values())))
        self.build = None
        self.signals = 0
        self.tests = {test.title: test for tests in plan.values() for test in tests}
        self.again = []        # to run once more, alone, when all have run
        self.first_looks = {}  # title -> what it said beside others

    def begin_build(self, kind):
        targets = sorted({need for test in self.plan[kind] for need in test.needs})
        self.build = Build(kind, [] if self.builds_all and kind == "release" else targets)

    def end_build(self):
        build, self.build = self.build, None
        if build.process.returncode == 0:
            self.pool.add(self.plan[build.kind])
            return
        for line in build.failure():
            self.progress.say(line)
        self.missing.append(f"{build.kind}: the build in {build.directory}: see above")

    def took(self, record):
        program = tally.Program(record)
        if self.is_looked_at_again(program):
            self.first_looks[program.title()] = program
            self.again.append(self.tests[program.title()])
            self.progress.say(f"FAILED beside others: {program.title()}: {program.failed[0]}; "
                              "it runs once more, alone, at the end")
            return
        self.programs.append(program)
        self.progress.took(program)
        if not program.failed and not program.skipped:
            self.times.learn(self.tests[record["title"]], record)

    def is_looked_at_again(self, program):
        """A machine that is too full for a test is told apart from a defect: the test runs once
        more, alone. Not where memory was broken or a program crashed: that is never an accident.
        """
        return (self.whole and program.failed and not self.signals and
                program.title() not in self.first_looks and
                len(self.first_looks) < AGAIN_MAX and not program.is_broken())

    def unstable(self):
        """Those that failed beside others and passed alone."""
        passed = {program.title() for program in self.programs if not program.failed}
        return [program for title, program in self.first_looks.items() if title in passed]

    def step(self, kinds):
        if self.build is None and kinds:
            self.begin_build(kinds.pop(0))
        if self.build and self.build.process.poll() is not None:
            self.end_build()
        self.pool.hold_back(self.pool.room * BUILD_SHARE if self.build or kinds else 0.0)
        for record in self.pool.step():
            self.took(record)
        self.progress.tell(self.pool, self.build)

    def obey_signals(self, kinds):
        """The first one ends everything in order, the next one at once."""
        if not self.signals:
            return
        if INTERRUPTED not in self.missing:
            self.missing.append(INTERRUPTED)
            self.progress.say(f"test: ending {len(self.pool.running)} tests; once more kills them")
        self.end_all(kinds, kill=self.signals > 1)

    def end_all(self, kinds, kill):
        kinds.clear()
        self.again.clear()
        if self.build:
            self.build.process.terminate()
            self.build.process.wait()
            self.build = None
        self.pool.end(kill)

    def count_signal(self, *_):
        self.signals += 1

    def run(self):
        """Until all is done. Whatever goes wrong here is counted, too."""
        kinds = list(self.plan)
        try:
            while kinds or self.build or self.again or not self.pool.is_done():
                self.obey_signals(kinds)
                if self.again and not kinds and not self.build and self.pool.is_done():
                    self.pool.add([self.again.pop(0)])
                self.step(kinds)
                time.sleep(runner.POLL_SECONDS)
        except Exception:
            self.missing.append(f"the run itself failed:\n{traceback.format_exc()}")
            self.end_all(kinds, kill=True)
        self.progress.end()
        self.times.save()


class Unpassed:
    """The titles of the tests that were to run and have not passed since, kept in the build
    directory: of an interrupted run those that did not run, too."""

    def __init__(self, path=UNPASSED_FILE):
        self.path = path

    def read(self):
        """None if no run is remembered."""
        try:
            return set(json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, TypeError, ValueError):
            return None

    def write(self, titles):
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(sorted(titles)), encoding="utf-8")
        fresh.replace(self.path)

    def begin(self, tests):
        self.write((self.read() or set()) | {test.title for test in tests})

    def end(self, programs):
        passed = {program.title() for program in programs if not program.failed}
        self.write((self.read() or set()) - passed)


def chosen_of(tests, chosen):
    if chosen == "--failed":
        unpassed = Unpassed().read() or set()
        # A program whose group was chosen by name is remembered by program and group.
        return [one for test in tests for one in (test, *map(test.narrowed_to, test.groups))
                if one.title in unpassed]
    level, name = level_and_name(chosen)
    return [test.narrowed_to(name) for test in tests
            if test.is_wanted(level) and test.is_called(name)]


def level_and_name(chosen):
    """The level, and the name of a test, group or suite ("" for all). A name runs at level three.
    """
    return {"": 1, "--all": 2}.get(chosen, 3), "" if chosen == "--all" else chosen


def kinds_of(chosen):
    """By the release's list of tests, since the others may not be configured yet."""
    if chosen == "--failed":
        unpassed = Unpassed().read()
        if unpassed is None:
            print("dev: test: no earlier run is remembered here: ./dev test", file=sys.stderr)
            sys.exit(2)
        named = {title.split()[0] for title in unpassed}
        return [kind for kind in suites.DIRECTORIES if kind in named]
    tests = suites.read("release")
    level, name = level_and_name(chosen)
    called = [test for test in tests if test.is_called(name)]
    if not called:
        print(f"dev: test: '{chosen}' is neither a suite nor a test. There are, by suite:\n" +
              "\n".join(list_by_suite(tests)), file=sys.stderr)
        sys.exit(2)
    return [kind for kind in suites.DIRECTORIES
            if any(suites.is_wanted_in(kind, test.suites, level) for test in called)]


def list_by_suite(tests, columns=100):
    """Every test's name, by suite, in lines that fit a terminal."""
    lines = []
    for suite in sorted({suite for test in tests for suite in test.suites}):
        line = f"  {suite}:"
        for name in sorted({name for test in tests if suite in test.suites
                            for name in (test.name, *test.groups)}):
            if len(line) + 1 + len(name) > columns:
                lines.append(line)
                line = "   "
            line += " " + name
        lines.append(line)
    return lines


def plan_of(chosen):
    """(kind -> its chosen tests, what is missing in words)"""
    plan, missing = {}, []
    for kind in kinds_of(chosen):
        try:
            tests = chosen_of(suites.read(kind), chosen)
        except (OSError, ValueError):
            missing.append(f"{kind}: {suites.DIRECTORIES[kind]} could not be configured: see above")
            continue
        if tests:
            plan[kind] = tests
    return plan, missing


def forget_the_unknown(plan):
    """What failed under a name that no list has any more will never pass."""
    known = {test.title for tests in plan.values() for test in tests}
    unknown = sorted((Unpassed().read() or set()) - known)
    if unknown:
        print(f"test: no such tests any more: {', '.join(unknown)}")
        Unpassed().write(known)


def lost_of(session):
    """What was to run and did not, in words."""
    for kind, tests in session.plan.items():
        ran = sum(1 for program in session.programs if program.kind == kind)
        if ran < len(tests):
            yield f"{kind}: {len(tests) - ran} of {len(tests)} programs did not run"


def run(chosen):
    with open("build/test-lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("dev: test: another ./dev test runs in this tree", file=sys.stderr)
            return 2
        return run_locked(chosen)


def run_locked(chosen):
    plan, missing = plan_of(chosen)
    if chosen == "--failed" and not missing:
        forget_the_unknown(plan)
        if not plan:
            print("test: all that ran has passed\n\n0 passed, 0 failed, 0 skipped")
            return 0
    session = Session(plan, chosen)
    session.missing += missing
    also = os.environ.pop("TOCSIN_ALSO_FAILED", "")  # by .ci/run: what lint complained about
    if also:
        session.missing.append(f"lint:\n{also}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, session.count_signal)
    Unpassed().begin(session.tests.values())
    session.run()
    session.missing += lost_of(session)
    Unpassed().end(session.programs)
    print()
    print(f"in all {time.monotonic() - session.progress.started:.0f} s")
    tally.print_unstable(session.unstable())
    return tally.close(session.programs, session.missing, chosen=not session.whole)


def main(verb, chosen=""):
    if verb == "kinds":
        print(" ".join(kinds_of(chosen)))
        return 0
    return run(chosen)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
