#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf net`: the floors of this machine, and yardsticks beside results.

    perf_net_test.py TOCSIN-PERF
"""

import json
import os
import pathlib
import tempfile

import lab_ends
import tap

KEYS = ["clock", "system_call", "cache_line", "wake_up", "udp", "memif"]
ALONE = ["clock", "system_call"]


def measure(*arguments, allowed=None):
    """Its table and its file, on the processors that it may use."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "n.json"
        before = os.sched_getaffinity(0)
        if allowed:
            os.sched_setaffinity(0, allowed)
        done = lab_ends.run("net", "--duration", "20ms", "--json", str(path), *arguments)
        os.sched_setaffinity(0, before)
        assert done.returncode == 0, done
        verified = lab_ends.run("verify", str(path))
        assert verified.returncode == 0, verified
        lab_ends.check_width(done.stdout)
        return done.stdout, json.loads(path.read_text())


def each_floor_is_measured_and_its_file_verified():
    _, result = measure()
    assert [row["name"] for row in result["floors"]] == KEYS, result["floors"]
    for row in result["floors"]:
        if len(os.sched_getaffinity(0)) < 2 and row["name"] not in ALONE:
            continue
        figures = row["times"]["figures"]
        assert figures["count"] > 0 and row["batch"] > 0, row["name"]
        (block,) = row["times"]["kept"]["blocks"]
        assert min(block["samples_ns"]) == figures["min_ns"], row["name"]


def a_memif_that_closes_does_not_meet_its_driver():
    """DPDK's own thread clears up one end when the other has closed: one of forty died of it."""
    for _ in range(15):
        done = lab_ends.run("net", "--duration", "1ms")
        assert done.returncode == 0 and "memif" in done.stdout, done


def one_processor_has_no_floors_of_two():
    out, result = measure(allowed={min(os.sched_getaffinity(0))})
    for row in result["floors"]:
        assert ("times" in row) == (row["name"] in ALONE), row
    assert out.count("n/a: this process may use one processor only") == 4, out


def a_changed_floor_is_named():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "n.json"
        _, result = measure()
        result["floors"][0]["times"]["figures"]["max_ns"] += 1
        path.write_text(json.dumps(result))
        done = lab_ends.run("verify", str(path))
        assert done.returncode == 1, done
        assert "floors[0].times.figures.max_ns is" in done.stderr, done
        result["floors"][0]["times"]["figures"]["max_ns"] -= 1
        path.write_text(json.dumps(result))
        for option, why in (("--html", "has no page"), ("--svg", "needs a result of mesh")):
            done = lab_ends.run("verify", str(path), option, f"{directory}/x")
            assert done.returncode == 2 and done.stdout == "" and why in done.stderr, done
        result["floors"] = result["floors"] * 3
        path.write_text(json.dumps(result))
        assert lab_ends.run("verify", str(path)).returncode == 4
        done = lab_ends.run("compare", str(path), "--with", str(path))
        assert done.returncode == 4, done


def results_have_yardsticks_beside_them():
    for command in ["lat", "bw"]:
        done, result = lab_ends.measure(command, "--size", "64", "--iterations", "300")
        client = result["environment"]["client"]
        for key in ALONE:
            assert float(client[f"floor_{key}_ns"]) > 0, client
        assert "yardsticks: clock " in done.stdout, done.stdout
        lab_ends.check_width(done.stdout)


def wrong_options_are_refused():
    for arguments, said in [(["--op", "read"], "not an option of net"),
                            (["h"], "not an option of net"),
                            (["--duration", "0"], "--duration"), (["--json"], "needs a value"),
                            (["--duration"], "needs a value")]:
        done = lab_ends.run("net", *arguments)
        assert done.returncode == 2 and said in done.stderr, (arguments, done)
    done = lab_ends.run("net", "--duration", "1ms", "--json", "/nonexistent/n")
    assert done.returncode == 4 and "/nonexistent/n" in done.stderr, done
    assert done.stdout == "", done  # nothing was measured


tap.run([(name.__name__.replace("_", " "), name) for name in [
    each_floor_is_measured_and_its_file_verified,
    a_memif_that_closes_does_not_meet_its_driver,
    one_processor_has_no_floors_of_two,
    a_changed_floor_is_named,
    results_have_yardsticks_beside_them,
    wrong_options_are_refused,
]])
