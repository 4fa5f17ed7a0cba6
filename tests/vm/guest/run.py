#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: executes test programs one after the other and prints one TAP.

run.py PROGRAM...

A program has TAP output or an exit status, and is judged like in ./dev test. Programs that end in
.py are run by python. Each has twenty minutes.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import tally
import tap

SECONDS_MAX = 1200  # emulated, on a machine that may be busy


def whole(file):
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def outcome(path):
    """Return the record of this program, like runner.py."""
    words = [sys.executable, path] if path.endswith(".py") else [path]
    begun = time.monotonic()
    ended_by = ""
    # Not pipes: processes that a program leaves behind would keep them open, and block this one.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                              start_new_session=True) as process:
            try:
                process.wait(SECONDS_MAX)
            except subprocess.TimeoutExpired:
                ended_by = f"timed out after {SECONDS_MAX} s"
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return {"kind": "guest", "suite": "guest",
                "name": pathlib.Path(path).stem.removesuffix("_test"), "protocol": "tap",
                "stdout": whole(out), "stderr": whole(err), "ended_by": ended_by, "pattern": 0,
                "returncode": process.returncode, "seconds": time.monotonic() - begun,
                "processor_seconds": 0.0}


class Report:
    """One TAP of many programs. The plan comes last, because the count is unknown before."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def line(self, verdict, name, directive=""):
        self.count += 1
        print(f"{verdict} {self.count} - {name}{directive}", flush=True)

    def add(self, program):
        for name in program.passed:
            self.line("ok", f"{program.name}: {name}")
        for name, reason in program.skipped:
            self.line("ok", f"{program.name}: {name}", f" # SKIP {reason or 'no reason given'}")
        for name in program.failed:
            self.line("not ok", f"{program.name}: {name}")
            tap.comment("\n".join(program.reason(name)[:tally.REASON_LINES_MAX]))
        if program.failed:
            self.failed += 1
            print(f"# what {program.name} said last:", flush=True)
            tap.comment("\n".join(program.output()[-tally.OUTPUT_LINES_MAX:]))

    def end(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0


def main(paths):
    report = Report()
    for path in paths:
        program = tally.Program(outcome(path))
        report.add(program)
        print(f"# {program.name} took {program.seconds:.1f} s", flush=True)
    return report.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
