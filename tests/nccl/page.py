# SPDX-License-Identifier: BSD-3-Clause
"""Counts of a process as an agent reads them, from the memory file that libtocsin created there."""

import os
import struct

SLOTS, KINDS, HEAD, ROW, LAUNCHED = 256, 14, 4096, 256, 704
NAMES = ["broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce", "send", "receive",
         "all_to_all", "gather", "scatter", "barrier", "scan", "one_sided", "other"]
NEVER = 2 ** 64 - 1


class Counts:
    """Counts of one communicator, over its slots."""

    def __init__(self):
        self.launched = self.started = self.completed = 0
        self.kinds = {}
        self.started_from = self.completed_from = None
        self.signatures = {}

    def add(self, launched, started, completed, marks, signatures):
        self.launched += launched[1]
        self.started += started[1]
        self.completed += completed[1]
        for name, count in zip(NAMES, launched[2:]):
            if count:
                self.kinds[name] = self.kinds.get(name, 0) + count
        if self.started_from is None:  # of the first slot only
            self.started_from, self.completed_from = marks[5:7]
        for sequence, count, _, what in signatures:
            if sequence:
                root = what & 0xFFFFFFFF
                root -= 2 ** 32 if root >= 2 ** 31 else 0
                self.signatures[sequence // 2 - 1] = (NAMES[what >> 40], count,
                                                      what >> 32 & 255, root)


def pages_of(pid):
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if "memfd:tocsin" in os.readlink(path):
                with open(path, "rb") as file:
                    yield file.read()
        except OSError:
            pass


def counts_of(pid):
    """Return the counts by number of the communicator; None without a page, or before it has its
    size."""
    page = next(pages_of(pid), None)
    return counts_in(page) if page else None


def counts_in(page):
    comms = {}
    rows = HEAD + SLOTS * ROW
    for slot in range(SLOTS):
        at = rows + SLOTS * ROW + slot * LAUNCHED
        launched = struct.unpack_from("<16Q", page, at)
        if launched[0] == 0:
            continue
        signatures = [struct.unpack_from("<4Q", page, at + 128 + 32 * n) for n in range(16)]
        comms.setdefault(launched[0], Counts()).add(
            launched, struct.unpack_from("<16Q", page, rows + slot * ROW),
            struct.unpack_from("<16Q", page, HEAD + slot * ROW),
            struct.unpack_from("<4I3Q", page, at + 640), signatures)
    return comms
