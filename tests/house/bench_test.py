# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the micro benchmarks: the output has the documented form. The speed is not tested.

bench_test.py MICRO-PROGRAM
"""

import json
import subprocess
import sys

import tap

MICRO = sys.argv[1]


def run(*arguments):
    return subprocess.run([MICRO, *arguments], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)


def json_rows():
    done = run("--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    said = json.loads(done.stdout)
    assert said["bench"] == "micro"
    names = [row["what"] for row in said["rows"]]
    assert len(names) >= 8 and len(set(names)) == len(names), names
    for row in said["rows"]:
        assert 0 < row["min"] <= row["value"] and row["iqr"] >= 0, row
        assert row["unit"] in ("ns", "ms") and row["yardstick"], row
        assert row["yardstick_value"] > 0 and row["ratio"] > 0, row
        measured = {"value": row["value"], "ratio": row["ratio"], None: None}[row["target_of"]]
        if measured is None:
            assert row["target"] is None and row["ok"] is None, row
        elif abs(measured - row["target"]) > 1e-3 * measured:
            assert row["ok"] == (measured < row["target"]), row


def unknown_option():
    for arguments in (["--yaml"], ["--json", "x"]):
        done = run(*arguments)
        assert done.returncode == 2 and done.stdout == "" and "usage:" in done.stderr, done


tap.run([
    ("every micro benchmark states value, spread, yardstick, ratio, target and verdict", json_rows),
    ("an unknown option of the micro benchmarks is refused", unknown_option),
])
