#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: `tocsin-perf lat` between two Soft-RoCE devices, with the kernel's verbs. The
build directory is TOCSIN_BUILD."""

import json
import os
import pathlib
import subprocess
import tempfile

import tap

PERF = os.environ["TOCSIN_BUILD"] + "/perf/tocsin-perf"
SECONDS_MAX = 600


def measure(*arguments, device=("--device", "rxe0")):
    """Return the result of a successful run, with its file verified."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "r.json"
        with subprocess.Popen([PERF, "lat", "--listen", "127.0.0.1", "--device", "rxe1"],
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as server:
            assert server.stdout.readline().startswith("Waits for a client")
            done = subprocess.run([PERF, "lat", *device, "--json", str(path), *arguments,
                                   "127.0.0.1"], text=True, capture_output=True, check=False,
                                  timeout=SECONDS_MAX)
            _, err = server.communicate(timeout=SECONDS_MAX)
        assert (done.returncode, server.returncode, err) == (0, 0, ""), (done, err)
        verified = subprocess.run([PERF, "verify", str(path)], check=False)
        assert verified.returncode == 0
        return json.loads(path.read_text())


def every_operation_is_measured():
    for operation in ["read", "write", "send", "write-imm", "cas", "fadd"]:
        result = measure("--op", operation, "--iterations", "200")
        figures = result["results"][0]["times"]["figures"]
        assert figures["count"] == 200 and figures["min_ns"] > 0, (operation, figures)


def sizes_of_many_packets_and_waits_by_events_are_measured():
    result = measure("--op", "send", "--policy", "event", "--size", "1,4KiB,64KiB",
                     "--iterations", "60")
    assert [one["times"]["figures"]["count"] for one in result["results"]] == [60, 60, 60]


def without_a_word_the_machines_own_device_is_taken():
    client = measure("--op", "read", "--iterations", "50", device=())["environment"]["client"]
    assert client["device"] in ("rxe0", "rxe1") and client["answered_by"] == "kernel", client


def a_device_without_time_stamps_is_named():
    with subprocess.Popen([PERF, "lat", "--listen", "127.0.0.1", "--device", "rxe1"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdout.readline().startswith("Waits for a client")
        done = subprocess.run([PERF, "lat", "--device", "rxe0", "--device-time", "127.0.0.1"],
                              text=True, capture_output=True, check=False, timeout=SECONDS_MAX)
        _, err = server.communicate(timeout=SECONDS_MAX)
    assert (done.returncode, server.returncode) == (4, 4), (done, err)
    said = "--device-time: rxe0 does not stamp completions with its clock"
    assert said in done.stderr and said in err, (done.stderr, err)


tap.run([(name.__name__.replace("_", " "), name) for name in [
    every_operation_is_measured,
    sizes_of_many_packets_and_waits_by_events_are_measured,
    without_a_word_the_machines_own_device_is_taken,
    a_device_without_time_stamps_is_named,
]])
