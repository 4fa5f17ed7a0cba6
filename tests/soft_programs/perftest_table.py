# SPDX-License-Identifier: BSD-3-Clause
"""Evaluation of `./dev bench perftest`: ratios with intervals, and a table that gives a reason for
each difference."""

import math
import re
import statistics

MET = (0.97, 1.03)
CONFIDENCE = 0.95
UNEXPLAINED = "not explained"


def figures(said):
    """Return the numbers of the last table line of either program."""
    found = [line.split() for line in said.splitlines() if re.match(r" *\d+ +\d+ +[\d.]", line)]
    assert found, said
    return [float(cell) for cell in found[-1]]


def interval(values):
    """Return an interval of the median from order statistics, with at least CONFIDENCE. Of nine
    values: the second smallest to the second largest. Of fewer than six: the smallest to the
    largest."""
    values, count = sorted(values), len(values)
    place, outside = 0, (1 + count) / 2 ** count  # probability of at most one below the median
    while 2 * outside <= 1 - CONFIDENCE:
        place += 1
        outside += math.comb(count, place + 1) / 2 ** count
    return [values[place], values[-1 - place]]


def row_of(wire, what, unit, slices, known):
    """Build a row. `slices` are pairs, ours first; `known` is a known difference, or None."""
    ratios = [ours / theirs for ours, theirs in slices]
    low, high = interval(ratios)
    met = low <= MET[1] and high >= MET[0]
    return {"wire": wire, "what": what, "unit": unit, "slices": len(slices),
            "perftest": statistics.median(theirs for _, theirs in slices),
            "tocsin": statistics.median(ours for ours, _ in slices),
            "ratio": statistics.median(ratios), "interval": [low, high], "met": met,
            "difference": None if met else known or UNEXPLAINED}


def samples_within(seconds, half_rtt_us):
    """Return the number of round trips in this time."""
    return math.ceil(seconds * 1e6 / (2 * half_rtt_us))


def is_unexplained(row):
    return row["difference"] == UNEXPLAINED


def object_of(row):
    """Return a row as JSON object, like other benchmarks. The interval of the ratio decides whether
    the target is met."""
    return {"what": f"{row['wire']}: {row['what']}", "value": row["tocsin"], "unit": row["unit"],
            "yardstick": "perftest", "yardstick_value": row["perftest"], "ratio": row["ratio"],
            "interval": row["interval"], "slices": row["slices"], "target": list(MET),
            "ok": row["met"], "difference": row["difference"]}


def row_line(row):
    low, high = row["interval"]
    return (f"{row['wire']:<5} {row['what']:<16} {row['unit']:<5} {row['perftest']:>10.2f} "
            f"{row['tocsin']:>10.2f} {row['ratio']:>6.2f} {low:>6.2f} {high:>6.2f} "
            f"{'met' if row['met'] else 'differs'}")


def row_lines(rows):
    yield (f"{'wire':<5} {'what':<16} {'':<5} {'perftest':>10} {'tocsin':>10} {'ratio':>6} "
           f"{'interval':>13}")
    yield from map(row_line, rows)


def difference_lines(rows):
    for difference in sorted({row["difference"] for row in rows if row["difference"]}):
        where = ", ".join(f"{row['what']} on {row['wire']}" for row in rows
                          if row["difference"] == difference)
        yield f"{where}: {difference}."


def stall_line(stall):
    return (f"One stall of {stall['stalled_ms']:.0f} ms: the largest round trip is "
            f"{stall['perftest_max_ms']:.1f} ms by perftest, {stall['tocsin_max_ms']:.1f} ms by "
            "tocsin-perf.")


def lines(rows, stall, notes):
    yield from row_lines(rows)
    yield from difference_lines(rows)
    if stall:
        yield stall_line(stall)
    yield from notes
