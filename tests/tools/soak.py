#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev soak [SECONDS]`: a cluster on this machine with one fault every second.

    soak.py BUILD-ROOT SECONDS [SEED]

Some agents are hurt: killed, frozen, made to leave, and started again. Others only watch, and are
watched: their memory and descriptors must not grow, and what they hold for dead must have been
killed or frozen for long. Exit status 0 only if all was so and the ring is whole at the end.

Memory is judged by what is private, less the rings that are known to fill (memory.py). It grows by
at most 2 MiB after the first fifth. Of five minutes and more the second half is flat: from the
third quarter to the last the least that is resident and the least in use grow by at most 128 KiB.
"""

import datetime
import os
import random
import socket
import sys
import time

import cluster as clusters
import memory

AGENTS = 16
WATCHERS = 4
FAULTS_AT_ONCE = 3  # of the agents that are hurt: fewer than hold the brake
FREEZE_SECONDS_MAX = 14.0
FREEZE_DEADLY_SECONDS = 6.0  # silence kills after some 8.7 s; a loaded machine stretches a freeze
REPORT_SECONDS = 10
CLOCK_SECONDS = 0.1  # between our look at the clock and the kernel's act
NEWS_SECONDS = 3  # a death decided before the end of its cause may be told after it
GROWTH_KIB_MAX = 2048  # since the first fifth: tables and heaps come to their size
FLAT_SECONDS_MIN = 300  # of shorter soaks the second half is not judged
SAMPLES = 240  # of memory, but one a second at most
GROWTH_FDS_MAX = 8


class Watched:
    """An agent that is never hurt: what it used in the beginning, and uses now."""

    def __init__(self, agent):
        self.agent = agent
        self.course = memory.Course()
        self.sample(0)
        self.warm_up()

    def sample(self, elapsed):
        pid = self.agent.process.pid
        counters = self.agent.counters()
        touched = memory.private_kib(pid) - memory.rings_kib(counters)
        self.course.add(elapsed, touched, memory.used_kib(counters))
        self.now = touched, len(os.listdir(f"/proc/{pid}/fd"))

    def warm_up(self):
        """What is used by now is no growth."""
        self.first = self.now

    def growth(self):
        return self.now[0] - self.first[0], self.now[1] - self.first[1]


class Hurt:
    """An agent that is hurt: what was done to it, and what is due to be done."""

    def __init__(self, agent):
        self.agent = agent
        self.due = None  # (when, what)
        self.killed_at = None  # wall clock, as the next
        self.frozen_at = None
        self.down = []  # (from, to) in which its death is explained

    def explains(self, at):
        if self.killed_at is not None and at >= self.killed_at - CLOCK_SECONDS:
            return True
        # How long a freeze will last is not known before its end: the loop may come late.
        if self.frozen_at is not None and at - self.frozen_at >= FREEZE_DEADLY_SECONDS:
            return True
        return any(start - CLOCK_SECONDS <= at <= end + NEWS_SECONDS for start, end in self.down)

    def kill(self):
        self.agent.kill()
        self.killed_at = time.time()

    def start(self):
        if self.killed_at is not None:
            self.down.append((self.killed_at, time.time()))
        self.killed_at = None
        self.agent.start()

    def freeze(self):
        self.agent.freeze()
        self.frozen_at = time.time()

    def thaw(self):
        self.agent.thaw()
        if time.time() - self.frozen_at >= FREEZE_DEADLY_SECONDS:
            self.down.append((self.frozen_at, time.time()))
        self.frozen_at = None


class Soak:
    def __init__(self, cluster, seconds, seed):
        self.cluster = cluster
        self.random = random.Random(seed)
        self.seconds = seconds
        self.watched = []
        self.hurt = {agent.name: Hurt(agent) for agent in cluster.agents[WATCHERS:]}
        self.sample_due = 0
        self.sequence = 0
        self.faults = {}
        self.false_deaths = []
        self.detected = []

    def count(self, fault):
        self.faults[fault] = self.faults.get(fault, 0) + 1

    # Faults.

    def kill(self, hurt):
        hurt.kill()
        hurt.due = (time.monotonic() + self.random.uniform(2, 6), hurt.start)

    def freeze(self, hurt):
        seconds = self.random.uniform(0.2, FREEZE_SECONDS_MAX)
        hurt.freeze()
        hurt.due = (time.monotonic() + seconds, hurt.thaw)

    def leave(self, hurt):
        # It may have been started this very moment: before its main() a SIGTERM just ends it.
        clusters.wait_until(f"{hurt.agent.name} to answer", hurt.agent.answers)
        status = hurt.agent.leave()
        if status != 0:
            raise clusters.Timeout(f"{hurt.agent.name} left with {status}, not with 0")
        hurt.due = (time.monotonic() + self.random.uniform(0, 3), hurt.start)

    def abuse(self):
        """A client that says nonsense, or asks and does not read, and goes."""
        agent = self.random.choice(self.watched).agent
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(str(agent.socket))
            client.sendall(self.random.choice([
                self.random.randbytes(500), b"PEERS\n" * 50, b"MONITOR all\n", b"STATUS",
                b"A" * 1000]))

    def strangers(self):
        """Connections to the overlay that prove nothing."""
        agent = self.random.choice(self.watched).agent
        for _ in range(10):
            with socket.socket() as stranger:
                stranger.settimeout(10)
                try:
                    stranger.connect((agent.address, 28030))
                    stranger.sendall(self.random.randbytes(200))
                except (ConnectionResetError, BrokenPipeError):
                    pass  # hung up on already

    def fault(self):
        free = [hurt for hurt in self.hurt.values() if hurt.due is None]
        if len(self.hurt) - len(free) < FAULTS_AT_ONCE and self.random.random() < 0.7:
            act = self.random.choice([self.kill, self.freeze, self.leave])
            act(self.random.choice(free))
        else:
            act = self.random.choice([self.abuse, self.strangers])
            act()
        self.count(act.__name__)

    def what_is_due(self):
        for hurt in self.hurt.values():
            if hurt.due is not None and time.monotonic() >= hurt.due[0]:
                hurt.due[1]()
                hurt.due = None

    # Judging.

    def read_events(self):
        events = self.watched[0].agent.ask(f"EVENTS {self.sequence + 1}")["events"]
        for event in events:
            self.sequence = event["sequence"]
            if event["event"] == "DEAD":
                self.judge_death(event)

    def judge_death(self, event):
        text = event["time"].replace("Z", "+00:00")
        at = datetime.datetime.fromisoformat(text).timestamp()
        hurt = self.hurt.get(event["node"])
        if hurt is None or not hurt.explains(at):
            self.false_deaths.append(f"{event['node']} at {event['time']}")
            print(f"false death of {self.false_deaths[-1]}", flush=True)
        elif event["cause"] == "gone":
            since = hurt.killed_at if hurt.killed_at is not None else hurt.down[-1][0]
            self.detected.append(max(0, at - since))

    def check_alive(self):
        for watched in self.watched:
            if not watched.agent.running():
                raise clusters.Timeout(f"{watched.agent.name} is gone, and nobody hurt it")

    def figures(self):
        kib = max(watched.growth()[0] for watched in self.watched)
        fds = max(watched.growth()[1] for watched in self.watched)
        done = sorted(self.detected)
        seen = f"{done[len(done) // 2]:.2f}/{done[-1]:.2f} s" if done else "-"
        faults = " ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        return (f"faults: {faults or 'none'}; killed to dead, median/most: {seen}; "
                f"false deaths: {len(self.false_deaths)}; growth: {kib} KiB, {fds} descriptors")

    def sample(self, elapsed):
        if elapsed < self.sample_due:
            return
        self.sample_due = elapsed + self.seconds / SAMPLES
        for watched in self.watched:
            watched.sample(elapsed)

    def show_memory(self):
        print(memory.head())
        for agent in self.cluster.running():
            print(memory.line(agent.name, agent.process.pid, agent.counters()))
        for watched in self.watched:
            touched, used = watched.course.growth(1), watched.course.growth(2)
            print(f"{watched.agent.name}: third quarter to last: resident {touched} KiB, "
                  f"in use {used} KiB", flush=True)

    def heal(self):
        for hurt in self.hurt.values():
            if hurt.due is not None:
                hurt.due[1]()
                hurt.due = None
        self.cluster.wait_ring(120)
        self.read_events()

    def run(self):
        self.cluster.start().wait_ring(120)
        self.watched = [Watched(agent) for agent in self.cluster.agents[:WATCHERS]]
        begun, told, warm = time.monotonic(), 0, False
        while (elapsed := time.monotonic() - begun) < self.seconds:
            tick = time.monotonic() + 1
            self.what_is_due()
            self.fault()
            self.read_events()
            self.check_alive()
            self.sample(elapsed)
            if not warm and elapsed > self.seconds / 5:
                warm = True  # buffers have been touched once
                for watched in self.watched:
                    watched.warm_up()
            if elapsed >= told + REPORT_SECONDS:
                told += REPORT_SECONDS
                print(f"{elapsed:5.0f} s  {self.figures()}", flush=True)
            while time.monotonic() < tick:
                self.what_is_due()
                time.sleep(0.05)
        self.heal()
        for watched in self.watched:
            watched.sample(self.seconds)

    def keeps_what_is_freed(self):
        """AddressSanitizer does, for a while: then memory grows without a leak."""
        return b"__asan_init" in self.cluster.tocsind.read_bytes()

    def verdict(self):
        bad = [f"false death of {death}" for death in self.false_deaths]
        kib_max = float("inf") if self.keeps_what_is_freed() else GROWTH_KIB_MAX
        for watched in self.watched:
            kib, fds = watched.growth()
            if kib > kib_max or fds > GROWTH_FDS_MAX:
                bad.append(f"{watched.agent.name} grew by {kib} KiB and {fds} descriptors")
            rises = watched.course.rises() if self.seconds >= FLAT_SECONDS_MIN else ""
            if rises and not self.keeps_what_is_freed():
                bad.append(f"{watched.agent.name} is not flat: {rises}")
        return bad


def main(build, seconds, seed):
    print(f"{AGENTS} agents, a fault a second for {seconds} s, seed {seed}", flush=True)
    with clusters.Cluster(build, AGENTS) as cluster:
        soak = Soak(cluster, seconds, seed)
        try:
            soak.run()
            bad = soak.verdict()
            soak.show_memory()
        except (clusters.Timeout, OSError, EOFError, ValueError) as failure:
            bad = [str(failure)]
        if bad:
            print(cluster.logs()[-18000:], flush=True)
        print(f"at the end: {soak.figures()}", flush=True)
        for line in bad:
            print(f"not well: {line}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    given = sys.argv[3] if len(sys.argv) > 3 else time.time_ns() % 10000
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(given)))
