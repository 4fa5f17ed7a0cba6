#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf policy`: every policy under a load, each by runs of its own.

    perf_policy_test.py TOCSIN-PERF
"""

import json
import pathlib
import tempfile

import lab_ends
import tap

POLICIES = ["spin", "window", "event", "adaptive"]
FEW = ["--duration", "30ms", *lab_ends.PATIENT]


def read(path):
    verified = lab_ends.run("verify", str(path))
    assert verified.returncode == 0, verified
    return json.loads(path.read_text())


def every_policy_is_a_row_that_its_run_gives():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "p.json"
        done = lab_ends.run("policy", "--rates", "500", *FEW, "--json", str(path),
                            TMPDIR=directory)
        assert done.returncode == 0, done
        assert list(pathlib.Path(directory).iterdir()) == [path], "a run's file is left"
        lab_ends.check_width(done.stdout)
        result = read(path)
        assert [row["policy"] for row in result["rows"]] == POLICIES, result["rows"]
        for row, run in zip(result["rows"], result["runs"]):
            plan = run["plan"]
            assert (plan["policy"], plan["op"], plan["arrivals"], plan["rate_per_s"]) == (
                row["policy"], "send", "poisson", 500), plan
            for end, share in zip(["client", "server"], row["cpu"]):
                noise = run["results"][0]["noise"][end]
                assert abs(share - noise["cpu_ns"] / noise["time_ns"]) < 1e-9, (share, noise)
        result["rows"][2]["max_ns"] += 1
        path.write_text(json.dumps(result))
        done = lab_ends.run("verify", str(path))
        assert done.returncode == 1 and "rows[2].max_ns is" in done.stderr, done
        result["rows"].pop()
        path.write_text(json.dumps(result))
        assert lab_ends.run("verify", str(path)).returncode == 4


def what_a_policy_cannot_is_a_row_without_figures():
    """A write that arrives is no event; against a server that begins anew for each run."""
    with tempfile.TemporaryDirectory() as directory, lab_ends.Server("lat") as server:
        path = pathlib.Path(directory) / "p.json"
        done = lab_ends.run("policy", "--rates", "closed", "--op", "write", *FEW, "--port",
                            str(server.port), "--json", str(path), "127.0.0.1")
        assert done.returncode == 0, done
        assert server.end() == (0, "")
        result = read(path)
        whys = [row.get("why") for row in result["rows"]]
        assert [why is not None for why in whys] == [False, False, True, False], whys
        assert "event     n/a: " in done.stdout, done.stdout


def a_run_that_fails_is_the_last_one():
    done = lab_ends.run("policy", "--rates", "closed", "--device", "mlx9_9", "--duration", "30ms")
    assert done.returncode == 4 and "remaining runs are skipped" in done.stderr, done
    assert "no device mlx9_9" in done.stderr, done


def a_file_that_cannot_be_written_is_said_before_the_runs():
    for option in ["--json", "--html"]:
        done = lab_ends.run("policy", "--rates", "closed", *FEW, option, "/nonexistent/p")
        assert done.returncode == 4 and done.stdout == "", done
        assert done.stderr == "tocsin-perf: /nonexistent/p: No such file or directory\n", done


def wrong_options_are_refused():
    for arguments, said in [(["--gap", "1us"], "not an option of policy"),
                            (["a", "b"], "not an option"),
                            (["--rates", "0"], "--rates"), (["--rates", "1,,2"], "--rates"),
                            (["--rates", "1,1,1,1,1,1,1,1,1"], "at most 8"),
                            (["--port", "5"], "--port: needs a HOST"),
                            (["--json"], "needs a value"), (["--op", "x"], "not one of read"),
                            (["--size", "1TiB"], "--size"), (["--size", "8,64"], "takes one size"),
                            (["--size", "all"], "takes one size")]:
        done = lab_ends.run("policy", *arguments)
        assert done.returncode == 2 and said in done.stderr, (arguments, done)
        assert done.stdout == "", (arguments, done)


tap.run([(name.__name__.replace("_", " "), name) for name in [
    every_policy_is_a_row_that_its_run_gives,
    what_a_policy_cannot_is_a_row_without_figures,
    a_run_that_fails_is_the_last_one,
    a_file_that_cannot_be_written_is_said_before_the_runs,
    wrong_options_are_refused,
]])
