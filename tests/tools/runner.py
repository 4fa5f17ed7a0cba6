# SPDX-License-Identifier: BSD-3-Clause
"""Runs test programs of several builds side by side, and hands out a record of each.

Programs that wait (agents, guests) run beside those that compute, so that the processors stay
busy: each takes its share of them, as measured the last time. Those that are to run alone have
nothing beside them but what computes, and gives way to them. As root each test has a network
namespace of its own, and with it all ports and addresses, so that one may run in two builds at a
time.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import patience

LIMIT_FACTOR = 2     # a test's own limit is for a machine with nothing else to do
WALL_SECONDS_MAX = 3600  # of one test, however busy the machine is
END_SECONDS = 10     # from SIGTERM to SIGKILL
POLL_SECONDS = 0.05
OUTPUT_BYTES_MAX = 64 << 20  # more than that is ended: it loops
SPARE_SHARE = 0.5    # more than the processors there are, since shares are averages
SHARE_MIN = 0.05
UNKNOWN_PER_LIMIT = 0.1
SHARE_FALL = 0.75    # a share falls to no less than that of it from run to run
RUNNING_PER_PROCESSOR = 6
RUNNING_MAX = 64
# Of the tests that took two seconds or more on a quiet machine: its rows are those of the cache.
TIMES_ELSEWHERE = pathlib.Path(__file__).with_name("test_times.txt")
# Of what computes: agents and guests have clocks of their own. The most there is, since two ends
# that spin (is_parallel: false) are to have the processors while they want them. With autogroups
# the kernel shares processors between sessions, and nice counts only inside of one: a test is a
# session, so the session is what gives way. Where there are no autogroups, nice is all it takes.
GIVES_WAY = ["sh", "-c", """
{ echo 19 >/proc/self/autogroup; } 2>/dev/null
exec nice -n 19 "$@"
""", "sh"]
# A fresh /sys shows the interfaces of the namespace, not those of the machine. The cgroups stay
# where they are: what is below the old /sys is still reached from there.
ISOLATE = ["unshare", "--net", "--mount", "--", "sh", "-c", """
here=$PWD
cd /sys/fs/cgroup && mount -t sysfs sysfs /sys &&
mount --no-canonicalize --rbind . /sys/fs/cgroup &&
cd "$here" && ip link set lo up && exec "$@"
""", "sh"]


def isolation():
    """The words to put before a command for a network namespace of its own. Empty if none can be
    made; the reason is printed."""
    if os.geteuid() != 0:
        print("test: network namespaces need root: tests share ports, and some skip",
              file=sys.stderr)
        return []
    done = subprocess.run([*ISOLATE, "true"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode == 0:
        return ISOLATE
    print(f"test: no network namespaces ({done.stderr.strip()}): tests share ports; some skip, and "
          "those that mount fail", file=sys.stderr)
    if "propagation" in done.stderr:
        print("test: this is a chroot without a mount of its own: mount --bind ROOT ROOT outside, "
              "then chroot ROOT", file=sys.stderr)
    return []


def command_of(test, around):
    """Its environment goes to the test alone: a sanitizer that is preloaded is not for what stands
    around it."""
    words = [f"{name}={value}" for name, value in test.environment.items()]
    return [*(GIVES_WAY if test.computes else []), *(around if test.isolated else []), "env",
            *words, *test.command]


def in_session(leader):
    """The processes of a session, which is what a test and all it started without more ado are."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == leader and fields[0] not in "ZX":
            yield int(entry.name)


def end_session(leader):
    """Kills until nobody is left: who is killed may just have started another one. What hangs in
    the kernel is left there."""
    until = time.monotonic() + END_SECONDS
    while (left := list(in_session(leader))) and time.monotonic() < until:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


class Running:
    """A test that runs: its process, which leads a session, and its output in files."""

    def __init__(self, test, around):
        self.test = test
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        # A fill pattern for freed memory that changes from run to run, as meson sets it.
        self.pattern = random.randint(1, 255)
        self.started = time.monotonic()
        self.clock = patience.FairClock()
        self.term_at = None
        self.ended_by = ""  # why we ended it, in words
        self.process = subprocess.Popen(
            command_of(test, around), cwd=test.directory,
            env={"MALLOC_PERTURB_": str(self.pattern), **os.environ},
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err, start_new_session=True)

    def seconds(self):
        return time.monotonic() - self.started

    def ask_to_end(self, why):
        """SIGTERM first, since it may have to clean up; SIGKILL if it takes too long."""
        if self.term_at is None:
            self.ended_by = why
            self.term_at = time.monotonic()
            os.killpg(self.process.pid, signal.SIGTERM)
        elif time.monotonic() > self.term_at + END_SECONDS:
            end_session(self.process.pid)

    def watch_limits(self):
        if self.term_at is not None:
            self.ask_to_end(self.ended_by)
        elif (self.clock.read() > self.test.limit * LIMIT_FACTOR or
              self.seconds() > WALL_SECONDS_MAX):
            self.ask_to_end(f"timed out after {self.seconds():.0f} s")
        elif max(os.fstat(file.fileno()).st_size for file in (self.out, self.err)) > \
                OUTPUT_BYTES_MAX:
            self.ask_to_end(f"wrote more than {OUTPUT_BYTES_MAX >> 20} MiB")

    def ended(self):
        """Its record once it has ended, else None."""
        gone = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if gone is None:
            self.watch_limits()
            return None
        end_session(self.process.pid)  # what it left behind, while its number is still its own
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return record_of(self.test, returncode=self.process.returncode, ended_by=self.ended_by,
                         seconds=self.seconds(), fair_seconds=self.clock.read(),
                         processor_seconds=usage.ru_utime + usage.ru_stime,
                         pattern=self.pattern, stdout=text_of(self.out), stderr=text_of(self.err))


def record_of(test, **facts):
    """What is known of a test that has ended; tally.py reads it."""
    return {"kind": test.kind, "suite": test.suite, "name": test.name, "title": test.title,
            "protocol": test.protocol, "returncode": -1, "ended_by": "", "seconds": 0.0,
            "fair_seconds": 0.0, "processor_seconds": 0.0, "pattern": 0, "stdout": "",
            "stderr": "", **facts}


def text_of(file):
    with file:
        file.seek(0)
        return file.read(2 * OUTPUT_BYTES_MAX).decode("utf-8", "replace")


class Pool:
    """Tests that wait for their turn, and those that run."""

    def __init__(self, times, around=None, processors=None):
        processors = processors or patience.processors()
        self.times = times
        self.around = isolation() if around is None else around
        self.room = processors + SPARE_SHARE
        self.places = min(processors * RUNNING_PER_PROCESSOR, RUNNING_MAX)
        self.waiting, self.running = [], []
        self.changed = False  # since tests were looked for that may start
        self.held_back = 0.0  # of the processors, by what else this program does

    def add(self, tests):
        """Those that took longest come first: what begins late must not be long."""
        self.waiting += tests
        self.waiting.sort(
            key=lambda test: (not test.alone, -test.priority, -self.times.seconds(test)))
        self.changed = True

    def hold_back(self, share):
        self.changed = self.changed or share != self.held_back
        self.held_back = share

    def share_taken(self):
        return self.held_back + sum(self.times.share(run.test) for run in self.running)

    def places_taken(self):
        return sum(not run.test.computes for run in self.running)

    def may_be_alone(self):
        """Nothing is built, and what waits has all run."""
        return not self.held_back and all(
            test.computes or test.alone for test in self.waiting) and all(
            run.test.computes for run in self.running)

    def may_start(self, test):
        if test.alone:
            return self.may_be_alone()
        if not self.running:
            return True
        if not test.computes and any(run.test.alone for run in self.running):
            return False
        if test.needs_places and not (self.around and test.isolated) and any(
                run.test.name == test.name for run in self.running):
            return False  # the same ports and addresses
        if not test.computes and self.places_taken() >= self.places:
            return False
        return self.share_taken() + self.times.share(test) <= self.room

    def start_some(self):
        """The records of those that could not even be started."""
        records = []
        for test in list(self.waiting) if self.changed else ():
            if not self.may_start(test):
                continue
            self.waiting.remove(test)
            try:
                self.running.append(Running(test, self.around))
            except OSError as failure:
                records.append(record_of(test, ended_by=f"could not be started: {failure}"))
        self.changed = bool(records)
        return records

    def step(self):
        """Starts what may start; the records of those that ended since."""
        records = self.start_some()
        for run in list(self.running):
            record = run.ended()
            if record is not None:
                self.running.remove(run)
                self.changed = True
                records.append(record)
        return records

    def is_done(self):
        return not self.waiting and not self.running

    def end(self, kill=False):
        """Starts no more and ends what runs; to be stepped on until all is done."""
        self.waiting = []
        for run in self.running:
            if kill:
                end_session(run.process.pid)
            else:
                run.ask_to_end("ended by the interruption")


def times_read(path):
    """title -> its seconds and its processor seconds; what cannot be read is measured anew."""
    known = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                title, seconds, processor_seconds = line.rsplit(" ", 2)
                known[title] = float(seconds), float(processor_seconds)
    except (OSError, ValueError):
        return {}
    return known


class Times:
    """How long each test took the last time and how much of a processor, in a file that clones of
    this tree share. On a machine that never ran it, what the long ones took on another."""

    def __init__(self, path=None, elsewhere=TIMES_ELSEWHERE):
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.path = pathlib.Path(path or pathlib.Path(cache, "tocsin", "test-times"))
        self.known = {**times_read(elsewhere), **times_read(self.path)}

    def seconds(self, test):
        """Before it was ever measured the limit tells what to expect."""
        return self.known.get(test.title, (test.limit * UNKNOWN_PER_LIMIT, 0.0))[0]

    def share(self, test):
        seconds, processor_seconds = self.known.get(test.title, (0.0, 0.0))
        if seconds <= 0.0:
            return test.share
        return max(SHARE_MIN, processor_seconds / seconds)

    def learn(self, test, record):
        """Of a test that passed: its time, and its share of the processor time that was to be had.
        What waits does so in real seconds, however busy the machine is."""
        seconds = max(record["seconds"], 0.01)
        base = seconds if test.waits else max(record["fair_seconds"], 0.01)
        share = min(1.0, record["processor_seconds"] / base)
        if test.title in self.known:
            share = max(share, self.share(test) * SHARE_FALL)
        self.known[test.title] = seconds, share * seconds

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
