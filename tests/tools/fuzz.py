#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs fuzz targets for a time each, one per core, and prints executions per target.

    fuzz.py BUILD-DIRECTORY SECONDS [TARGET ...]

Seeds are read from tests/fuzz/corpus/TARGET; new inputs go to BUILD-DIRECTORY/corpus, and
a finding to BUILD-DIRECTORY/findings, whose path is printed. Exits with 1 on any finding.
SIGINT and SIGTERM end the targets, and then the program.
"""

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

INPUT_SECONDS_MAX = 10
MEMORY_MIB_MAX = 2048


class Targets:
    """The processes that run, so that a signal can end them: all, and those about to start."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()
        self.ended = False

    def run(self, command, output):
        """The exit status, or None when the end came."""
        with self.lock:
            if self.ended:
                return None
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            self.running.add(process)
        code = process.wait()
        with self.lock:
            self.running.discard(process)
            return None if self.ended else code

    def end(self, number, _frame):
        """The handler of signals, in the main thread, which takes the lock nowhere else."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        with self.lock:
            self.ended = True
            for process in self.running:
                process.kill()
        raise SystemExit(128 + number)


def run(targets, build, seconds, name):
    corpus, logs, findings = (build / part for part in ("corpus", "logs", "findings"))
    for directory in (corpus / name, logs, findings):
        directory.mkdir(parents=True, exist_ok=True)
    log = logs / f"{name}.txt"
    command = [
        str(build / "tests" / "fuzz" / f"fuzz-{name}"), f"-max_total_time={seconds}",
        f"-timeout={INPUT_SECONDS_MAX}", f"-rss_limit_mb={MEMORY_MIB_MAX}", "-print_final_stats=1",
        f"-artifact_prefix={findings}/{name}-", str(corpus / name), f"tests/fuzz/corpus/{name}",
    ]
    started = time.monotonic()
    with log.open("wb") as output:
        code = targets.run(command, output)
    if code is None:
        return None
    took = time.monotonic() - started
    said = log.read_text(encoding="utf-8", errors="replace")

    def last(pattern):
        found = re.findall(pattern, said)
        return found[-1] if found else None

    executions = int(last(r"number_of_executed_units: (\d+)") or last(r"(?m)^#(\d+)") or 0)
    # A run that executed nothing has proven nothing.
    finding = None
    if code != 0 or executions == 0:
        finding = last(r"Test unit written to (\S+)") or f"see {log}"
    print(f"{name}: {'FINDING' if finding else 'nothing found'} after {took:.0f} s", flush=True)
    return {"name": name, "executions": executions, "seconds": took,
            "new": int(last(r"new_units_added: +(\d+)") or 0), "finding": finding, "log": log}


def main(arguments):
    build, seconds, wanted = pathlib.Path(arguments[0]), int(arguments[1]), arguments[2:]
    sources = pathlib.Path("tests/fuzz").glob("*_fuzz.c")
    known = sorted(path.name[:-len("_fuzz.c")] for path in sources)
    for name in wanted:
        if name not in known:
            print(f"fuzz: '{name}' is not one of: {' '.join(known)}", file=sys.stderr)
            return 2
    names = list(dict.fromkeys(wanted)) or known  # each once: two would share files
    targets = Targets()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, targets.end)
    print(f"{len(names)} targets for {seconds} s each, {os.cpu_count()} at a time", flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(run, targets, build, seconds, name) for name in names]
        # Not without end: a signal that comes just before the wait would wait with it.
        while concurrent.futures.wait(runs, timeout=1).not_done:
            pass
        rows = [one.result() for one in runs]
    print(f"\n{'target':16} {'executions':>12} {'per second':>11} {'new inputs':>11}  finding")
    for row in rows:
        rate = row["executions"] / max(row["seconds"], 0.001)
        print(f"{row['name']:16} {row['executions']:12} {rate:11.0f} {row['new']:11}  "
              f"{row['finding'] or '-'}")
    bad = [row for row in rows if row["finding"]]
    for row in bad:
        tail = row["log"].read_text(encoding="utf-8", errors="replace").splitlines()[-40:]
        print(f"\n{row['name']}: {row['log']}")
        print("\n".join(f"  | {line}" for line in tail))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
