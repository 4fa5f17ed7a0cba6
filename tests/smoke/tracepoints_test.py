#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tracepoints of the agent: those of the manual, as the tools want them, and reached.

    tracepoints_test.py SOURCE-ROOT BUILD-ROOT HAVE-SDT

HAVE-SDT is "true" where there is <sys/sdt.h>: elsewhere an agent has none.
"""

import ctypes
import errno
import os
import pathlib
import platform
import re
import struct
import subprocess
import sys

import agents
import cluster as clusters
import tap

ROOT, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
TOCSIND = BUILD / "agent" / "tocsind"
PAGE = (BUILD / "agent" / "tocsind.8").read_text(encoding="utf-8")

ARGUMENTS_MAX = 6  # bpftrace has no more on x86-64
SELDOM = {"probe_skipped"}  # what nothing here makes happen
# The manual's word for numbers, the enumeration, and what its names begin with.
NUMBERS = (
    ("kind", "dataplane/include/dataplane/op.h", "op_kind", "OP_"),
    ("outcome", "dataplane/include/dataplane/op.h", "op_outcome", "OP_"),
    ("why", "dataplane/include/dataplane/watch.h", "watch_result", "WATCH_"),
    ("by", "dataplane/worker/worker_impl.h", "worker_count", "WORKER_WAKES_"),
    ("verdict", "control/verdict/engine/include/verdict/verdict.h", "verdict", "VERDICT_"),
    ("advice", "control/verdict/engine/include/verdict/verdict.h", "verdict_advice",
     "VERDICT_ADVICE_"),
    ("event", "control/ras/include/ras/event.h", "ras_event_kind", "RAS_EVENT_LINK_"),
    ("cause", "control/ras/include/ras/types.h", "ras_cause", "RAS_CAUSE_"),
    ("state", "control/include/control/pairing.h", "pairing_state", "PAIRING_"),
    ("failure", "control/include/control/pairing.h", "pairing_reason", "PAIRING_(REASON_)?"),
)
IN_PART = {"kind", "why"}  # the others of these do not occur

EVENT_SOURCE = pathlib.Path("/sys/bus/event_source/devices/uprobe/type")
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
# struct perf_event_attr: type, size, config, sample_period, sample_type, read_format, flags,
# wakeup_events, bp_type, uprobe_path, probe_offset
PERF_ATTRIBUTES = struct.Struct("=IIQQQQQIIQQ")
PERF_INHERIT = 2  # threads that it makes later count, too


def readelf(*options):
    return subprocess.run(["readelf", "--wide", *options, str(TOCSIND)], text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout


def sites():
    """(name, address, its arguments as "8@%rax") of each; one name may be at several addresses."""
    if sys.argv[3] != "true":
        raise tap.Skip("there is no <sys/sdt.h>")
    found = re.findall(r"Provider: tocsin\s+Name: (\S+)\s+Location: (\w+), .*\s+Arguments: (.*)",
                       readelf("--notes"))
    return [(name, int(address, 16), arguments.split()) for name, address, arguments in found]


def tracepoints_are_those_of_the_manual():
    page = {(name, len(arguments.split(", "))) for name, arguments in
            re.findall(r"^\\fB(\w+)\\fR\((.*)\)$", PAGE, re.MULTILINE)}
    agent = {(name, len(arguments)) for name, _, arguments in sites()}
    assert page == agent, f"in one of the two only: {page ^ agent}"
    assert len(page) > 5, page


def every_tracepoint_is_as_the_tools_want_it():
    types = {}
    for name, _, arguments in sites():
        assert "__" not in name and len(arguments) <= ARGUMENTS_MAX, (name, arguments)
        assert not any("@$" in argument for argument in arguments), (name, arguments)
        own = [argument.split("@")[0] for argument in arguments]
        assert types.setdefault(name, own) == own, (name, arguments)


def enumerators(path, name, prefix):
    """number: the word of the manual for it"""
    text = (ROOT / path).read_text(encoding="utf-8")
    body = re.search(rf"^enum {name} {{(.*?)^}};", text, re.MULTILINE | re.DOTALL)[1]
    names = re.findall(r"^\t(\w+),", body, re.MULTILINE)
    return {number: re.sub(prefix, "", each).lower().replace("_", "-")
            for number, each in enumerate(names)
            if re.match(prefix, each) and not each.endswith("_COUNT")}


def numbers_of_the_manual_are_those_of_the_source():
    for word, path, name, prefix in NUMBERS:
        listed = re.search(rf"^\.I {word}\n(\d[^.]*)\.$", PAGE, re.MULTILINE)[1]
        page = {int(number): meaning for number, meaning in re.findall(r"(\d+)\s([\w-]+)", listed)}
        source = enumerators(path, name, prefix)
        if word in IN_PART:
            source = {number: source[number] for number in page}
        assert page == source, f"{word}: {page} in the manual, {source} in {path}"


def file_offset(address):
    for line in re.findall(r"^ +LOAD +(.*)$", readelf("--segments"), re.MULTILINE):
        offset, start, _, size = (int(word, 16) for word in line.split()[:4])
        if start <= address < start + size:
            return address - start + offset
    raise ValueError(f"{address:#x} is in no segment")


def count_passes(path, offset, thread):
    """A descriptor that counts how often a thread comes by there, or None if the thread has ended.
    The kernel plants a uprobe."""
    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(str(path).encode())
    attributes = PERF_ATTRIBUTES.pack(int(EVENT_SOURCE.read_text()), PERF_ATTRIBUTES.size, 0, 0, 0,
                                      0, PERF_INHERIT, 0, 0, ctypes.addressof(text), offset)
    counter = libc.syscall(PERF_EVENT_OPEN[platform.machine()], attributes, thread, -1, -1, 0)
    if counter < 0 and ctypes.get_errno() == errno.ESRCH:
        return None
    if counter < 0:
        raise tap.Skip(f"the kernel refuses: {os.strerror(ctypes.get_errno())}")
    return counter


class Passes:
    """Counts at each place of a process, thread by thread."""

    def __init__(self, pid, places):
        self.tasks = pathlib.Path(f"/proc/{pid}/task")
        self.places = places
        self.counters = []
        self.followed = set()

    def follow(self):
        """Threads that a thread makes are counted with it, but only at places where it had its
        counter by then: all are looked for again."""
        for thread in {int(name) for name in os.listdir(self.tasks)} - self.followed:
            self.followed.add(thread)
            self.counters += [(name, count_passes(TOCSIND, offset, thread))
                              for name, offset in self.places]

    def names(self):
        self.follow()
        return {name for name, counter in self.counters if counter is not None
                and struct.unpack("=Q", os.read(counter, 8))[0] > 0}

    def wait(self, names):
        agents.wait_until(lambda: f"passes of {sorted(names - self.names())}",
                          lambda: names <= self.names())


def a_running_agent_passes_its_tracepoints_as_another_comes_and_dies():
    places = [(name, file_offset(address)) for name, address, _ in sites() if name not in SELDOM]
    if not EVENT_SOURCE.exists() or platform.machine() not in PERF_EVENT_OPEN:
        raise tap.Skip("the kernel has no uprobes, or this test no number of perf_event_open()")
    with clusters.Cluster(BUILD, 2) as cluster:
        first, second = cluster.agents
        first.start()
        agents.wait_until("an answer", first.answers)
        passes = Passes(first.process.pid, places)
        passes.follow()
        all_names = {name for name, _ in places}
        second.start()
        passes.wait(all_names - {"verdict_change"})
        second.kill()
        passes.wait(all_names)


TESTS = (
    tracepoints_are_those_of_the_manual,
    every_tracepoint_is_as_the_tools_want_it,
    numbers_of_the_manual_are_those_of_the_source,
    a_running_agent_passes_its_tracepoints_as_another_comes_and_dies,
)
tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
