#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf lat --runs`: each run of new processes, contenders in turn.

    perf_runs_test.py TOCSIN-PERF
"""

import json
import pathlib
import signal
import subprocess
import tempfile

import lab_ends
import patience
import tap


def files_of(directory):
    return {path.name: json.loads(path.read_text())
            for path in pathlib.Path(directory).iterdir()}


def runs_are_files_that_compare_takes():
    with tempfile.TemporaryDirectory() as directory, lab_ends.Server("lat") as server:
        done = server.client("--runs", "3", "--iterations", "5000", "--json", f"{directory}/r.json")
        assert server.end() == (0, ""), done
        assert done.returncode == 0, done
        files = files_of(directory)
        assert sorted(files) == ["r.1.json", "r.2.json", "r.3.json"], files.keys()
        for number in range(1, 4):
            plan = files[f"r.{number}.json"]["plan"]
            assert (plan["run"], plan["runs"]) == (number, 3), plan
            assert lab_ends.run("verify", f"{directory}/r.{number}.json").returncode == 0
        assert "over runs: p50" in done.stdout, done.stdout
        lab_ends.check_width(done.stdout)


def contenders_take_turns_and_are_compared():
    with tempfile.TemporaryDirectory() as directory, lab_ends.Server("lat") as server:
        done = server.client("--runs=2", "--iterations", "300", "--op", "send", "--against",
                             "--policy adaptive", "--json", f"{directory}/r.json")
        assert server.end() == (0, ""), done
        assert done.returncode == 3, done
        turns = [line[-1] for line in done.stderr.splitlines() if line.startswith("run ")]
        assert turns == ["A", "B", "B", "A"], done.stderr
        files = files_of(directory)
        assert sorted(files) == ["r.a1.json", "r.a2.json", "r.b1.json", "r.b2.json"], files
        order = sorted(files, key=lambda name: files[name]["plan"]["run"])
        assert order == ["r.a1.json", "r.b1.json", "r.b2.json", "r.a2.json"], order
        policies = [files[name]["plan"]["policy"] for name in sorted(files)]
        assert policies == ["spin", "spin", "adaptive", "adaptive"], policies
        assert "undecided, needs" in done.stdout or "over 0 claims" in done.stdout, done.stdout
        for side, policy in ("A", "spin"), ("B", "adaptive"):
            assert f"\n{side}: send, closed loop, policy {policy}, " in done.stdout, done.stdout
        lab_ends.check_width(done.stdout)


def without_a_name_no_file_is_left():
    with tempfile.TemporaryDirectory() as directory, lab_ends.Server("lat") as server:
        done = server.client("--runs", "1", "--iterations", "100", TMPDIR=directory)
        assert done.returncode == 0 and files_of(directory) == {}, done
        assert server.end() == (0, "")


def a_run_that_fails_is_the_last_one():
    with lab_ends.Server("lat", "--op", "read") as server:
        done = server.client("--runs", "3", "--iterations", "100", "--against", "--op send")
        status, err = server.end()
    assert done.returncode == 4 and "the remaining runs are skipped" in done.stderr, done
    assert "--op differs: the client has send, the server read" in done.stderr, done
    assert status == 4 and "--op differs" in err, (status, err)


def an_interrupted_run_keeps_what_it_has():
    with tempfile.TemporaryDirectory() as directory, lab_ends.Server("lat") as server:
        process = subprocess.Popen(
            [lab_ends.PERF, "lat", *lab_ends.PATIENT, "--port", str(server.port), "--runs", "2",
             "--duration", "1h", "--op", "send", "--json", f"{directory}/r.json", "127.0.0.1"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = server.process.stdout.readline()
        assert line.startswith("Serves send") and line.endswith("run 1 of 2.\n"), line
        lab_ends.wait_for_samples(process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=patience.HANG_SECONDS)
        status, server_err = server.end()
        assert process.returncode == 4 and "interrupted" in err, (process.returncode, out, err)
        assert status == 4 and "interrupted" in server_err, (status, server_err)
        files = files_of(directory)
        assert list(files) == ["r.1.json"] and files["r.1.json"]["incomplete"], files.keys()


def what_is_of_one_run_is_refused():
    for arguments, said in [
            (["--runs", "0", "h"], "--runs"),
            (["--runs", "61", "h"], "--runs"),
            (["--against", "--op send", "h"], "needs --runs"),
            (["--runs", "2", "--csv", "x", "h"], "--csv: cannot be used with --runs"),
            (["--runs", "2", "--fail-if", "p50>1us", "h"], "--fail-if: cannot be used with --runs"),
            (["--runs", "2", "--json", "-", "h"], "cannot be - with --runs"),
            (["--runs", "2", "--json", "x" * 481, "h"], "at most 480 bytes"),
            (["--runs", "2"], "which needs a HOST"),
            (["--run", "3", "h"], "--run"),
            (["--run", "4/3", "h"], "--run"),
            (["--run", "0/3", "h"], "--run"),
            (["--run", "1/1001", "h"], "--run"),
            (["--run", "2/3", "--runs", "2", "h"], "--run: cannot be used with --runs")]:
        done = lab_ends.run("lat", *arguments)
        assert done.returncode == 2, (arguments, done)
        assert said in done.stderr, (arguments, done.stderr)


tap.run([(name.__name__.replace("_", " "), name) for name in [
    runs_are_files_that_compare_takes,
    contenders_take_turns_and_are_compared,
    without_a_name_no_file_is_left,
    a_run_that_fails_is_the_last_one,
    an_interrupted_run_keeps_what_it_has,
    what_is_of_one_run_is_refused,
]])
