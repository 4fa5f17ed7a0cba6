# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the table of `./dev bench perftest`. The speed of the programs is not tested."""

import perftest_table as tables
import tap

WHY = "one waits for what the other does not"
SAID = """\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]
 64      2000           1.50           9.00           2.25             2.50
---------------------------------------------------------------------------------------
"""


def row(slices, known=None, wire="rxe", what="RTT, read"):
    return tables.row_of(wire, what, "us", slices, known)


def slices_of(*ratios):
    return [(2.0 * ratio, 2.0) for ratio in ratios]


def a_ratio_that_meets_the_margin_needs_no_name():
    found = row(slices_of(*[1.0] * 8, 7.0), WHY)
    assert found["met"] and found["difference"] is None and found["ratio"] == 1.0, found
    assert not tables.is_unexplained(found)
    # The interval reaches into the margin, from above and from below.
    for ratios in ([1.02, 1.03, *[1.2] * 7], [0.9] * 7 + [0.97, 0.98]):
        assert row(slices_of(*ratios))["met"], ratios


def a_ratio_beside_the_margin_is_named_or_told_to_be_without_a_name():
    for ratio in (0.96, 1.04):
        named, nameless = (row(slices_of(*[ratio] * 9), known) for known in (WHY, None))
        assert not named["met"] and named["difference"] == WHY, named
        assert not tables.is_unexplained(named) and tables.is_unexplained(nameless), nameless


def an_interval_leaves_out_what_a_coin_would_fall_to_in_a_twentieth_of_all_cases():
    places = {5: (0, 4), 6: (0, 5), 9: (1, 7), 12: (2, 9), 25: (7, 17)}
    for count, expected in places.items():
        assert tuple(tables.interval(list(reversed(range(count))))) == expected, count


def medians_and_ratios_are_of_slices_that_were_taken_together():
    found = row([(1.0, 1.0), (8.0, 4.0), (30.0, 10.0)])
    assert (found["tocsin"], found["perftest"], found["ratio"]) == (8.0, 4.0, 2.0), found


def each_difference_is_told_once_with_all_its_rows():
    rows = [row(slices_of(*[0.5] * 9), WHY, wire) for wire in ("udp", "veth")]
    rows += [row(slices_of(*[1.0] * 9), WHY, "memif"), row(slices_of(*[2.0] * 9), None, "rxe")]
    said = list(tables.lines(rows, None, ["a note"]))
    assert f"RTT, read on udp, RTT, read on veth: {WHY}." in said, said
    assert f"RTT, read on rxe: {tables.UNEXPLAINED}." in said, said
    assert not any("RTT, read on memif" in line for line in said) and said[-1] == "a note", said
    assert [line.split()[-1] for line in said[1:5]] == ["differs", "differs", "met", "differs"]
    assert max(map(len, said[:5])) <= 100


def a_run_is_long_enough_to_be_stopped_in_however_fast_the_wire_is():
    for half_rtt_us in (0.4, 2.0, 60.0):
        seconds = tables.samples_within(4, half_rtt_us) * 2 * half_rtt_us / 1e6
        assert 4 <= seconds < 4.001, (half_rtt_us, seconds)


def an_object_has_what_each_bench_tells_of_a_row():
    told = tables.object_of(row(slices_of(*[0.9] * 9), WHY))
    assert told["what"] == "rxe: RTT, read" and told["yardstick"] == "perftest", told
    assert (told["value"], told["yardstick_value"], told["unit"]) == (1.8, 2.0, "us"), told
    assert told["ratio"] == 0.9 and told["target"] == [0.97, 1.03] and told["ok"] is False, told
    assert told["difference"] == WHY, told


def figures_are_those_of_the_last_line_of_numbers():
    assert tables.figures(SAID) == [64, 2000, 1.5, 9.0, 2.25, 2.5]


tap.run([(test.__name__.replace("_", " "), test) for test in [
    a_ratio_that_meets_the_margin_needs_no_name,
    a_ratio_beside_the_margin_is_named_or_told_to_be_without_a_name,
    an_interval_leaves_out_what_a_coin_would_fall_to_in_a_twentieth_of_all_cases,
    medians_and_ratios_are_of_slices_that_were_taken_together,
    each_difference_is_told_once_with_all_its_rows,
    a_run_is_long_enough_to_be_stopped_in_however_fast_the_wire_is,
    an_object_has_what_each_bench_tells_of_a_row,
    figures_are_those_of_the_last_line_of_numbers,
]])
