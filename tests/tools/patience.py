# SPDX-License-Identifier: BSD-3-Clause
"""Limits that a busy machine does not use up.

A limit is there to end what hangs, not to judge how fast a shared machine is. So a second counts
only as far as a thread that wanted a processor in it could have had one: with eight threads
running on two processors it counts as a quarter.
"""

import os
import time

HANG_SECONDS = 300  # ends what hangs, decides nothing: for waits that take real seconds only
STARVED_MAX = 10  # a limit becomes at most so many times as long, however busy the machine is
GAP_SECONDS_MAX = 1.0
LOOK_SECONDS = 0.2  # between two looks at how busy the machine is


def running_threads():
    """How many threads of this machine run or wait for a processor now."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return int(file.read().split()[3].split("/")[0])


def processors():
    """How many of them this process may use."""
    return len(os.sched_getaffinity(0))


class FairClock:
    """Seconds that count, since it was made. How busy the machine was between two questions is
    taken from the later one; of a longer pause one second counts, since whoever asks each few
    hundredths of a second, and did not, was kept from it."""

    def __init__(self, now=time.monotonic, running=running_threads, count=None):
        self.now, self.running, self.processors = now, running, count or processors()
        self.seen = now()
        self.share = 1.0
        self.seconds = 0.0

    def read(self):
        now = self.now()
        passed = min(now - self.seen, GAP_SECONDS_MAX)
        if passed >= LOOK_SECONDS:
            self.seen = now
            self.share = max(1 / STARVED_MAX, min(1.0, self.processors / max(1, self.running())))
            self.seconds += passed * self.share
            passed = 0.0
        return self.seconds + passed * self.share
