#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Signals at every step of an agent's start and end.

    agent_signals_test.py BUILD-DIRECTORY SIGNAL-AT [--all | --runs N] [--seed N]

A step is a call into the system by one of the agent's threads (signal_at.c). The steps of a life
are listed first; then agents live, each with signals at one of them, alternately alone and beside
a peer. Without --all they are a few of each kind, by turns spread over functions and life; --seed
chooses others.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import signal
import threading

import agents
import cluster
import tap

LIMIT_S = 120  # of a life, decides nothing
SLOTS = 4  # lives at once: they wait most of the time
RUNS = 20  # of each kind
TERMINATE, INTERRUPT, HANG_UP = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
# Calls that may hang, and nobody waits for: by the names of their threads. What such a thread does
# with its keeper's lock held is none.
KEEPERS = ("rdma-", "tocsin-files", "tocsin-netif", "tocsin-sysfs", "tocsin-disk", "tocsin-resolve",
           "tocsin-programs")
LOCKED = ("pthread_cond_wait", "write")
STATE_FILES = {"agent.key", "start", "lock", "journal", "journal.1", "members", "maintenance",
               "history", "paths", "links"}

Step = collections.namedtuple("Step", "thread call ordinal name")
# What is sent at a step, what is sent some steps later, whether its thread hangs meanwhile, and
# what carries the packets of its software device.
Kind = collections.namedtuple("Kind", "at then hold wire", defaults=(None, False, "udp"))


class Slot:
    """A place for one agent after the other, of one name, with one directory."""

    def __init__(self, agent):
        self.agent = agent
        self.report = agent.directory / "report"

    def start(self, variables):
        for file in (self.agent.log, self.report):
            file.unlink(missing_ok=True)
        options = [os.environ.get("ASAN_OPTIONS", ""), "verify_asan_link_order=0"]
        self.agent.start(environment={
            "LD_PRELOAD": ARGUMENTS.signal_at, "ASAN_OPTIONS": ":".join(filter(None, options)),
            "SIGNAL_AT_REPORT": str(self.report), **variables})

    def told(self):
        return self.report.read_text().splitlines() if self.report.exists() else []

    def log(self):
        return self.agent.log.read_text(errors="replace")

    def live(self, asks):
        """Until it has ended; told to leave once it has a pair, if asks() says so."""
        def ended():
            nonlocal asked
            if self.agent.process.poll() is not None:
                return True
            if not asked and "rdma_pair state=ready" in self.log() and asks():
                asked = True
                self.agent.signal(TERMINATE)
            return False

        asked = False
        try:
            cluster.wait_until("the end", ended, LIMIT_S)
        except cluster.Timeout:
            self.agent.kill()
            raise
        return self.agent.process.returncode

    def helpers(self):
        """Processes that were started by the agent and are still there."""
        mark = f"SIGNAL_AT_REPORT={self.report}".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if mark in pathlib.Path("/proc", pid, "environ").read_bytes().split(b"\0"):
                    found.append(pid)
            except OSError:
                pass  # the process has ended, or belongs to another user
        return found

    def left(self):
        """What there is that should not be."""
        directory = self.agent.directory
        files = {str(path.relative_to(directory)) for path in directory.rglob("*")}
        wanted = {"tocsin.conf", "log", "report", "state", "dpdk"}
        return sorted(files - wanted - {f"state/{name}" for name in STATE_FILES})


def heard(told, when):
    """Of the signal that came "fired" or "then": None if it did not come, else whether the agent
    took it by itself: it ends by it where it has not begun to."""
    words = next((line.split() for line in told if line.startswith(when + " ")), None)
    return None if words is None else words[1] == "1"


def wanted(told, kind):
    """The status to end with."""
    if heard(told, "fired") is False:
        return -kind.at[0]
    return -kind.then if heard(told, "then") is False else 0


def live(slot, step, kind, number):
    """One life; a text if anything was wrong with it."""
    variables = {"SIGNAL_AT": " ".join(map(str, (*step[:3], *map(int, kind.at))))}
    if kind.then is not None:
        variables["SIGNAL_THEN"] = f"{number % 50} {int(kind.then)}"
    if kind.hold:
        variables["SIGNAL_HOLD"] = str(1 + number % 120)
    slot.start(variables)
    leaves = TERMINATE in kind.at or INTERRUPT in kind.at
    status = slot.live(lambda: not leaves or heard(slot.told(), "fired") is None)
    wrong = [line for line in slot.log().splitlines() if agents.SANITIZER.search(line)]
    if status != wanted(slot.told(), kind):
        wrong.append(f"status {status}, not {wanted(slot.told(), kind)}")
    if status == 0 and " stopped exit=0" not in slot.log():
        wrong.append("it did not say that it stopped")
    # Killed by the death of the agent, they are gone a moment later.
    cluster.wait_until("its helper to end", lambda: not slot.helpers(), LIMIT_S)
    if slot.left():
        wrong.append(f"left: {slot.left()}")
    if not wrong:
        return None
    return "\n".join([json.dumps(variables), *wrong, slot.log(), *slot.told()])


def chosen(steps, count, turn):
    """So many of the steps, others in another turn: half of them one of a function each, the rest
    evenly over the life."""
    classes = collections.defaultdict(list)
    for step in steps:
        classes[step.name, step.call].append(step)
    groups = list(classes.values())
    of_each = [groups[(turn + n) % len(groups)] for n in range(min(count // 2, len(groups)))]
    rest = count - len(of_each)
    return ([group[turn * 7 % len(group)] for group in of_each] +
            [steps[(turn + n * len(steps) // rest) % len(steps)] for n in range(rest)])


class Bed:
    """A peer that stays, slots for agents that do not, and the steps of their lives."""

    def __init__(self):
        self.ring = cluster.Cluster(ARGUMENTS.build, 1 + SLOTS)
        self.peer, *rest = self.ring.agents
        self.slots = [Slot(agent) for agent in rest]
        self.free = list(self.slots)
        self.lock = threading.Lock()
        self.met = 0  # lives that came to their step

    def begin(self):
        self.peer.configure(overlay__join=self.peer.address)
        self.peer.start()
        cluster.wait_until("the peer", self.peer.answers, LIMIT_S)
        lists = [self.steps_of(alone) for alone in (True, False)]
        self.main = [step for step in lists[1] if step.thread == 0]
        self.others = [step for step in lists[1] if step.thread != 0]
        tap.comment(f"{len(self.main)} steps of the main thread, {len(self.others)} of others; "
                    f"alone {len(lists[0])}")

    def configure(self, agent, alone, wire="udp"):
        mine = f"dpdk:net_memif0,role=server,socket=@{self.ring.directory.name}-{agent.name}"
        agent.configure(
            overlay__join=agent.address if alone else self.peer.address,
            device__soft0__wire="udp" if wire == "udp" else mine,
            device__soft0__address="" if wire == "udp" else "10.0.0.101")

    def steps_of(self, alone):
        slot = self.slots[0]
        self.configure(slot.agent, alone)
        slot.start({"SIGNAL_AT_LIST": "1"})
        status = slot.live(lambda: True)
        assert status == 0 and not slot.left(), f"{status} {slot.left()}\n{slot.log()}"
        steps = []
        for line in slot.told():
            thread, call, ordinal, name = line.split(" ", 3)
            steps.append(Step(int(thread), call, int(ordinal), name))
        return steps

    def keeper_steps(self, names=KEEPERS):
        return [step for step in self.others
                if step.name.startswith(names) and step.call not in LOCKED]

    def one(self, step, kind, number):
        with self.lock:
            slot = self.free.pop()
        try:
            self.configure(slot.agent, number % 2 == 0, kind.wire)
            return live(slot, step, kind, number)
        except cluster.Timeout as late:
            return f"{step} {kind}: {late}\n{slot.log()}"
        finally:
            with self.lock:
                self.met += heard(slot.told(), "fired") is not None
                self.free.append(slot)

    def run(self, steps, kind, turn):
        """Lives with signals of this kind at these steps, or at some of them."""
        some = steps if ARGUMENTS.all else chosen(steps, ARGUMENTS.runs, ARGUMENTS.seed + turn)
        before = self.met
        with concurrent.futures.ThreadPoolExecutor(SLOTS) as pool:
            wrong = list(filter(None, pool.map(
                lambda pair: self.one(pair[1], kind, pair[0] + ARGUMENTS.seed), enumerate(some))))
        assert not wrong, f"{len(wrong)} of {len(some)} lives:\n" + "\n\n".join(wrong[:5])
        assert self.peer.running(), self.peer.log.read_text()
        tap.comment(f"{self.met - before} of {len(some)} lives came to their step")
        assert 2 * (self.met - before) > len(some), "too few: the lives differ too much"


def terminated_at_any_step_it_leaves():
    BED.run(BED.main, Kind([TERMINATE]), 0)


def interrupted_at_any_step_it_leaves():
    BED.run(BED.main, Kind([INTERRUPT]), 5)


def hung_up_at_any_step_it_reloads_or_not_and_stays():
    BED.run(BED.main, Kind([HANG_UP]), 10)


def terminated_and_hung_up_at_once_it_leaves():
    BED.run(BED.main, Kind([TERMINATE, HANG_UP]), 15)


def a_second_signal_at_once_ends_it_at_any_step():
    BED.run(BED.main, Kind([TERMINATE, INTERRUPT]), 20)


def a_second_signal_some_steps_later_ends_it():
    BED.run(BED.main, Kind([TERMINATE], then=INTERRUPT), 25)


def hung_up_and_terminated_some_steps_later_it_leaves():
    BED.run(BED.main, Kind([HANG_UP], then=TERMINATE), 30)


def signals_at_any_step_of_other_threads_are_as_good():
    BED.run(BED.others, Kind([TERMINATE], then=INTERRUPT), 35)


def a_call_of_a_keeper_that_hangs_meanwhile_keeps_nobody():
    BED.run(BED.keeper_steps(), Kind([TERMINATE, INTERRUPT], hold=True), 40)


def told_to_leave_it_waits_for_a_call_that_hangs_but_not_for_ever():
    BED.run(BED.keeper_steps(), Kind([TERMINATE], hold=True), 42)


def a_second_signal_ends_it_also_on_a_port_of_dpdk():
    BED.run(BED.main, Kind([TERMINATE, INTERRUPT], wire="dpdk"), 45)


def a_call_that_hangs_on_a_port_of_dpdk_keeps_nobody():
    BED.run(BED.keeper_steps(("rdma-",)), Kind([TERMINATE, INTERRUPT], hold=True, wire="dpdk"), 50)


TESTS = [
    terminated_at_any_step_it_leaves,
    interrupted_at_any_step_it_leaves,
    hung_up_at_any_step_it_reloads_or_not_and_stays,
    terminated_and_hung_up_at_once_it_leaves,
    a_second_signal_at_once_ends_it_at_any_step,
    a_second_signal_some_steps_later_ends_it,
    hung_up_and_terminated_some_steps_later_it_leaves,
    signals_at_any_step_of_other_threads_are_as_good,
    a_call_of_a_keeper_that_hangs_meanwhile_keeps_nobody,
    told_to_leave_it_waits_for_a_call_that_hangs_but_not_for_ever,
    a_second_signal_ends_it_also_on_a_port_of_dpdk,
    a_call_that_hangs_on_a_port_of_dpdk_keeps_nobody,
]

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("signal_at")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=0)
    ARGUMENTS = parser.parse_args()
    # A shell's background job ignores it, and so would the agents.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    BED = Bed()
    with BED.ring:
        BED.begin()
        tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
