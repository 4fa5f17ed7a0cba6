# SPDX-License-Identifier: BSD-3-Clause
"""What an agent's memory consists of, and whether it grows.

By kind it is told by the kernel (/proc/PID/smaps), by use by the agent itself (the group `memory`
of COUNTERS). What is judged is private memory (files' pages come and go as the kernel likes)
without the rings that are known to fill: they are touched place by place, once, and stay.
"""

import pathlib

ARENA_BYTES = 64 << 20  # malloc() puts a thread's heap at a multiple of it
PROBE_PLACES = 4096  # WATCH_AGENDA and WATCH_OUTCOMES of <dataplane/watch.h>
PROBE_BYTES = 32 + 56  # a place in each: struct watch_due, struct watch_outcome
USED_KIB_MAX = 128  # of what is in use, in a quarter: a pair and its path are 50 KiB, two by chance
TOUCHED_KIB_MAX = 128  # of what is resident, likewise: pages of the heap that are used once more

KINDS = ("code", "data", "heap", "stacks", "shared", "dpdk")
DPDK_BASE = 0x100000000  # where its environment reserves what it may need
DPDK_END = 0x100000000 + (64 << 30)


def mappings(smaps):
    """(begin, end, permissions, name, {field: KiB}) of each mapping of the text of smaps."""
    found = []
    for line in smaps.splitlines():
        words = line.split()
        if words and words[0].endswith(":"):
            if len(words) == 3 and words[2] == "kB":
                found[-1][4][words[0][:-1]] = int(words[1])
        elif words:
            begin, end = (int(number, 16) for number in words[0].split("-"))
            found.append((begin, end, words[1], " ".join(words[5:]), {}))
    return found


def kind_of(mapping, before):
    """What the private pages of a mapping are; `before` is the one below it, or None."""
    begin, _, permissions, name, _ = mapping
    if name.startswith(("/memfd:", "/dev/shm/", "/dev/hugepages")) or "s" in permissions:
        return "shared"
    if name.startswith("/"):
        return "data"
    if DPDK_BASE <= begin < DPDK_END:
        return "dpdk"
    if name.startswith("[stack"):
        return "stacks"
    if name == "[heap]" or begin % ARENA_BYTES == 0:
        return "heap"
    if before is not None and before[1] == begin:
        if before[3].startswith("/"):
            return "data"  # what a program or library has beyond its file: .bss
        if before[2].startswith("---"):
            return "stacks"  # a thread's, above its guard
    return "heap"  # blocks that malloc() mapped each by itself


def consists_of(smaps):
    """KiB that are resident, by kind: code is pages of files, which programs share."""
    kib = dict.fromkeys(KINDS, 0)
    before = None
    for mapping in mappings(smaps):
        fields = mapping[4]
        kind = kind_of(mapping, before)
        of_files = fields["Rss"] - fields["Anonymous"]
        kib["shared" if kind == "shared" else "code"] += of_files
        kib[kind] += fields["Anonymous"]
        before = mapping
    return kib


def private_kib(pid):
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return mappings(rollup)[0][4]["Anonymous"]


def rings_kib(counters):
    """Of rings that fill, what is touched by now."""
    probe = counters["probe"]
    probes = sum(probe["sent"].values()) + sum(probe["written"].values())
    return (counters["memory"]["history_bytes"] + min(probes, PROBE_PLACES) * PROBE_BYTES) // 1024


def used_kib(counters):
    """What is in use, but for buffers of connections: as many as are open just now."""
    memory = counters["memory"]
    return (memory["heap_used_bytes"] - memory["buffer_bytes"]) // 1024


class Course:
    """How much memory an agent took in the course of time."""

    def __init__(self):
        self.samples = []  # (when, KiB touched but for rings, KiB in use)

    def add(self, when, touched, used):
        self.samples.append((when, touched, used))

    def least(self, begin, end, what):
        """In a part of the time: what is needed for a moment only adds."""
        return min((sample[what] for sample in self.samples if begin <= sample[0] < end),
                   default=None)

    def growth(self, what):
        """KiB from the third quarter to the last; None if there are too few samples."""
        if not self.samples:
            return None
        begin, end = self.samples[0][0], self.samples[-1][0]
        quarter = (end - begin) / 4
        third = self.least(begin + 2 * quarter, begin + 3 * quarter, what)
        last = self.least(begin + 3 * quarter, end + 1, what)
        return None if third is None or last is None else last - third

    def rises(self):
        """What says that it is not flat in its second half; "": it is."""
        for what, name, most in ((1, "resident", TOUCHED_KIB_MAX), (2, "in use", USED_KIB_MAX)):
            growth = self.growth(what)
            if growth is not None and growth > most:
                return f"{growth} KiB more {name} in the last quarter than in the third"
        return ""


def head():
    return (f"{'KiB':5}{'code':>8}{'data':>7}{'heap':>7}{'stacks':>8}{'shared':>8}{'dpdk':>6} |"
            f"{'in use':>8}{'free':>6}{'core':>6}{'events':>8}{'buffers':>9}{'evidence':>10}"
            f"{'earlier':>9}")


def line(name, pid, counters):
    """A row under head(): what is resident by kind, and malloc()'s by use, touched or not."""
    kib = consists_of(pathlib.Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8"))
    memory = {key[:-6]: value // 1024 for key, value in counters["memory"].items()}
    return (f"{name:5}{kib['code']:8}{kib['data']:7}{kib['heap']:7}{kib['stacks']:8}"
            f"{kib['shared']:8}{kib['dpdk']:6} |{memory['heap_used']:8}{memory['heap_free']:6}"
            f"{memory['core']:6}{memory['history']:8}{memory['buffer']:9}"
            f"{memory['verdict']:10}{memory['earlier']:9}")
