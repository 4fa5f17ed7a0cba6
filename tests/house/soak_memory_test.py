#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the soak's memory report: kinds in an invented smaps, and the test for a flat series."""

import os

import memory
import tap

ROWS = (  # address range, permissions, name, Rss, Anonymous
    ("100000000-10005f000", "rw-p", "", 380, 380),
    ("100200000-100300000", "rw-s", "/memfd:nohuge (deleted)", 152, 0),
    ("555500000000-555500100000", "r-xp", "/usr/bin/tocsind", 700, 0),
    ("555500100000-555500110000", "rw-p", "/usr/bin/tocsind", 60, 50),
    ("555500110000-555500200000", "rw-p", "", 20, 20),
    ("555501000000-555501100000", "rw-p", "[heap]", 1000, 1000),
    ("7f0000000000-7f0000021000", "rw-p", "", 96, 96),
    ("7f0000021000-7f0004000000", "---p", "", 0, 0),
    ("7f0004000000-7f0004021000", "rw-p", "", 4, 4),
    ("7f0004021000-7f0008001000", "---p", "", 0, 0),
    ("7f0008001000-7f0008801000", "rw-p", "", 16, 16),
    ("7f0009000000-7f0009060000", "rw-p", "", 300, 300),
    ("7ffe00000000-7ffe00021000", "rw-p", "[stack]", 80, 80),
    ("7ffe00100000-7ffe00102000", "r-xp", "[vdso]", 4, 0),
)
SMAPS = "".join(
    f"{where} {permissions} 00000000 00:00 0    {name}\n"
    f"Size: 4 kB\nRss: {rss} kB\nAnonymous: {anonymous} kB\nTHPeligible: 0\nVmFlags: rd wr mr\n"
    for where, permissions, name, rss, anonymous in ROWS)


def every_page_has_a_kind_and_one_only():
    kib = memory.consists_of(SMAPS)
    assert kib == {"code": 714, "data": 70, "heap": 1400, "stacks": 96, "shared": 152,
                   "dpdk": 380}, kib
    assert sum(kib.values()) == sum(row[3] for row in ROWS)


def course_of(touched, used=lambda _: 9000, seconds=3600):
    course = memory.Course()
    for when in range(0, seconds + 1, 15):
        course.add(when, touched(when), used(when))
    return course.rises()


def slow_growth_without_end_is_told():
    assert "resident" in course_of(lambda when: 5000 + 1.5 * when)
    assert "resident" in course_of(lambda when: 5000 + 0.2 * when)
    assert "in use" in course_of(lambda _: 5000, lambda when: 9000 + 0.2 * when)


def what_grows_in_the_first_half_or_for_a_moment_is_flat():
    assert course_of(lambda when: 5000 + min(when, 1700)) == ""
    assert course_of(lambda when: 5000 + (900 if when % 60 == 0 else 0)) == ""
    assert course_of(lambda when: 5000 + 0.1 * when, lambda when: 9000 + 0.05 * when) == ""


def too_few_samples_say_nothing():
    assert course_of(lambda when: when * 1000, seconds=15) == ""
    assert memory.Course().rises() == ""


def counters_of(probes, events, used=9 << 20):
    return {"probe": {"sent": {"bytes=\"8\"": probes}, "written": {"bytes=\"8\"": 0}},
            "memory": {"history_bytes": events * 168, "heap_used_bytes": used,
                       "buffer_bytes": 2 << 20}}


def rings_are_counted_until_they_are_full():
    assert memory.rings_kib(counters_of(0, 0)) == 0
    assert memory.rings_kib(counters_of(2048, 1024)) == 2048 * 88 // 1024 + 168
    assert memory.rings_kib(counters_of(10**9, 4096)) == 352 + 672


def buffers_of_open_connections_are_no_growth():
    assert memory.used_kib(counters_of(0, 0)) == 7 << 10


def kernel_agrees_with_the_sum_of_the_kinds():
    # This process itself: its memory is stable, except for what reading needs.
    with open("/proc/self/smaps", encoding="utf-8") as smaps:
        kib = memory.consists_of(smaps.read())
    private = sum(kib[kind] for kind in ("data", "heap", "stacks", "dpdk"))
    assert abs(private - memory.private_kib(os.getpid())) < 2048, kib


if __name__ == "__main__":
    tap.run([
        ("every page has a kind, and one only", every_page_has_a_kind_and_one_only),
        ("slow growth without end is told", slow_growth_without_end_is_told),
        ("what grows in the first half, or for a moment, is flat",
         what_grows_in_the_first_half_or_for_a_moment_is_flat),
        ("too few samples say nothing", too_few_samples_say_nothing),
        ("rings are counted until they are full", rings_are_counted_until_they_are_full),
        ("buffers of open connections are no growth", buffers_of_open_connections_are_no_growth),
        ("the kernel agrees with the sum of the kinds", kernel_agrees_with_the_sum_of_the_kinds),
    ])
