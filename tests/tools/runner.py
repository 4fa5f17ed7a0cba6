# SPDX-License-Identifier: BSD-3-Clause
"""Runs test programs of several builds side by side, and hands out a record of each.

Programs that wait (agents, guests) run beside those that compute, so that the processors stay
busy: each takes its share of them, as measured the last time. Those that nothing may disturb run
alone, at the end. As root each has a network namespace of its own, and with it all ports and
addresses, so that one test may run in two builds at a time.
"""

import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

import patience

LIMIT_FACTOR = 4     # a test's own limit is for a machine with nothing else to do
END_SECONDS = 10     # from SIGTERM to SIGKILL
POLL_SECONDS = 0.05
OUTPUT_BYTES_MAX = 8 << 20
SPARE_SHARE = 0.5    # more than the processors there are, since shares are averages
RUNNING_PER_PROCESSOR = 8
# A fresh /sys shows the interfaces of the namespace, not those of the machine.
ISOLATE = ["unshare", "--net", "--mount", "--", "sh", "-c",
           "mount -t sysfs sysfs /sys && ip link set lo up && exec \"$@\"", "sh"]


def isolation():
    """What to put before a command for a network namespace of its own; nothing if none is had."""
    if os.geteuid() != 0:
        return []
    done = subprocess.run([*ISOLATE, "true"], stdin=subprocess.DEVNULL, capture_output=True,
                          check=False)
    return ISOLATE if done.returncode == 0 else []


def environment_of(test):
    # A fill pattern for freed memory that changes from run to run, as meson sets it.
    return {"MALLOC_PERTURB_": str(random.randint(1, 255)), **os.environ, **test.environment}


class Running:
    """A test that runs: its process, which leads a session, and its output in files."""

    def __init__(self, test, around):
        self.test = test
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.started = time.time()
        self.clock = patience.FairClock()
        self.term_at = None
        self.timed_out = False
        self.process = subprocess.Popen(
            [*(around if test.isolated else []), *test.command], cwd=test.directory, env=environment_of(test),
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err, start_new_session=True)

    def seconds(self):
        return time.time() - self.started

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def watch_limit(self):
        """Ends it when its limit is over: asks first, since it may have to clean up."""
        if self.clock.read() <= self.test.limit * LIMIT_FACTOR:
            return
        if self.term_at is None:
            self.timed_out = True
            self.term_at = time.monotonic()
            self.signal(signal.SIGTERM)
        elif time.monotonic() > self.term_at + END_SECONDS:
            self.signal(signal.SIGKILL)

    def ended(self):
        """Its record once it has ended, else None."""
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            self.watch_limit()
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.signal(signal.SIGKILL)  # what it left behind
        return {
            "kind": self.test.kind, "suite": self.test.suite, "name": self.test.name,
            "title": self.test.title,
            "protocol": self.test.protocol, "returncode": self.process.returncode,
            "timed_out": self.timed_out,
            "started": self.started, "seconds": self.seconds(),
            "processor_seconds": usage.ru_utime + usage.ru_stime,
            "stdout": text_of(self.out), "stderr": text_of(self.err),
        }


def text_of(file):
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - OUTPUT_BYTES_MAX))
        return file.read().decode("utf-8", "replace")


class Pool:
    """Tests that wait for their turn, and those that run."""

    def __init__(self, times, around=None, processors=os.cpu_count()):
        self.times = times
        self.around = isolation() if around is None else around
        self.room = processors + SPARE_SHARE
        self.places = processors * RUNNING_PER_PROCESSOR
        self.waiting, self.running = [], []
        self.held_back = 0.0  # of the processors, by what else this program does

    def add(self, tests):
        """Those that took longest come first: what begins late must not be long."""
        self.waiting += tests
        self.waiting.sort(key=lambda test: (test.alone, -test.priority, -self.times.seconds(test)))

    def share_taken(self):
        return self.held_back + sum(self.times.share(run.test) for run in self.running)

    def may_start(self, test):
        if not self.running:
            return not (test.alone and self.held_back)
        if test.alone or any(run.test.alone for run in self.running):
            return False
        if not self.around and any(run.test.name == test.name for run in self.running):
            return False  # the same ports and addresses
        return (len(self.running) < self.places and
                self.share_taken() + self.times.share(test) <= self.room)

    def start_some(self):
        for test in list(self.waiting):
            if self.may_start(test):
                self.waiting.remove(test)
                self.running.append(Running(test, self.around))

    def step(self):
        """Starts what may start; the records of those that ended since."""
        self.start_some()
        records = []
        for run in list(self.running):
            record = run.ended()
            if record is not None:
                self.running.remove(run)
                records.append(record)
        return records

    def is_done(self):
        return not self.waiting and not self.running

    def end(self):
        """Ends what runs, and starts no more."""
        self.waiting = []
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + END_SECONDS
            for run in self.running:
                run.signal(number)
            while self.running and time.monotonic() < until:
                self.running = [run for run in self.running if run.ended() is None]
                time.sleep(POLL_SECONDS)


class Times:
    """How long each test took the last time and how much of a processor, in a file that clones of
    this tree share."""

    def __init__(self, path=None):
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.path = pathlib.Path(path or pathlib.Path(cache, "tocsin", "test-times"))
        self.known = {}
        try:
            for line in self.path.read_text(encoding="utf-8").splitlines():
                title, seconds, processor_seconds = line.rsplit(" ", 2)
                self.known[title] = float(seconds), float(processor_seconds)
        except (OSError, ValueError):
            pass  # the first time, or of another version: measured anew

    def seconds(self, test):
        return self.known.get(test.title, (0.0, 0.0))[0]

    def share(self, test):
        seconds, processor_seconds = self.known.get(test.title, (0.0, 0.0))
        if seconds <= 0.0:
            return test.share
        return max(0.05, min(1.0, processor_seconds / seconds))

    def learn(self, record):
        self.known[record["title"]] = record["seconds"], record["processor_seconds"]

    def save(self):
        lines = [f"{title} {took:.2f} {processor:.2f}\n"
                 for title, (took, processor) in sorted(self.known.items())]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self.path.with_suffix(f".{os.getpid()}")
            fresh.write_text("".join(lines), encoding="utf-8")
            fresh.replace(self.path)
        except OSError:
            pass  # without a cache each run is as the first
