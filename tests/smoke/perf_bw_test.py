#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf bw` between two processes on the software device, and what it refuses.

    perf_bw_test.py TOCSIN-PERF
"""

import json
import pathlib
import re
import tempfile

import lab_ends
import tap

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "perf-json.md"
OPERATIONS = ["read", "write", "send", "write-imm", "cas", "fadd"]


def near(left, right):
    return abs(left - right) <= 1e-6 * max(abs(left), abs(right))


def every_operation_has_a_rate_that_its_windows_give():
    for operation in OPERATIONS:
        size = "8" if operation in ["cas", "fadd"] else "1KiB"
        done, result = lab_ends.measure("bw", "--op", operation, "--size", size, "--depth", "4",
                                        "--iterations", "3000")
        assert result["plan"]["command"] == "bw" and result["plan"]["depth"] == 4
        (one,) = result["results"]
        windows, messages = one["times"]["figures"]["count"], one["window_messages"]
        assert messages >= 4 and 3000 <= windows * messages < 3000 + messages, one["times"]
        (block,) = one["times"]["kept"]["blocks"]
        assert sum(block["samples_ns"]) == one["took_ns"], operation
        rates = one["rates"]
        assert near(rates["mean_per_s"], windows * messages / one["took_ns"] * 1e9), rates
        assert near(rates["mean_bytes_per_s"], rates["mean_per_s"] * one["size_bytes"])
        assert rates["worst_per_s"] <= rates["mean_per_s"] <= rates["best_per_s"]
        assert rates["peer_per_s"] == 0
        assert f"{rates['mean_per_s']:.1f}" in done.stdout, done.stdout
        client, server = (100 * one["noise"][end]["cpu_ns"] / one["noise"][end]["time_ns"]
                          for end in ("client", "server"))
        assert (f"worker threads: client {client:.0f} % of a processor, server {server:.0f} %" in
                done.stdout), (one["noise"], done.stdout)
        lab_ends.check_width(done.stdout)


def several_queue_pairs_and_sizes_are_rows_of_one_table():
    done, result = lab_ends.measure("bw", "--op", "send", "--size", "64,4KiB", "--queue-pairs",
                                    "3", "--depth", "4", "--duration", "50ms")
    assert [one["size_bytes"] for one in result["results"]] == [64, 4096]
    assert all(one["window_messages"] >= 12 for one in result["results"])
    rows = [line.split()[0] for line in done.stdout.splitlines()[-2:]]
    assert rows == ["64B", "4KiB"] and "Gbit/s  cpu %" in done.stdout, done.stdout
    lab_ends.check_width(done.stdout)


def both_directions_are_told_apart_and_together():
    for operation in ["write", "send"]:
        done, result = lab_ends.measure("bw", "--op", operation, "--size", "512", "--depth", "8",
                                        "--bidirectional", "--duration", "100ms")
        (one,) = result["results"]
        assert one["peer_messages"] > 0 and one["peer_ns"] > 0, one
        assert near(one["rates"]["peer_per_s"], one["peer_messages"] / one["peer_ns"] * 1e9)
        assert "both together" in done.stdout, done.stdout
        lab_ends.check_width(done.stdout)


def a_delay_of_the_wire_bounds_the_rate_by_the_depth():
    """Little's law: not more than depth operations in each round trip."""
    _, result = lab_ends.measure("bw", "--op", "read", "--size", "64", "--depth", "5",
                                 "--iterations", "500", TOCSIN_SOFT_FAULTS="delay=2ms")
    (one,) = result["results"]
    rate = one["rates"]["mean_per_s"]
    assert 0 < rate <= 5 / 0.004, rate


def other_programs_get_their_columns():
    with tempfile.TemporaryDirectory() as directory, lab_ends.Server("bw") as server:
        csv = pathlib.Path(directory) / "r.csv"
        done = server.client("--iterations", "500", "--size", "64", "--csv", str(csv),
                             "--perftest")
        assert done.returncode == 0, done
        head, *rows = csv.read_text().splitlines()
        assert head == "size_bytes,what,figure,messages_per_s,low_per_s,high_per_s,worth_samples"
        assert all(len(row.split(",")) == 7 for row in rows), rows
        columns = done.stdout.splitlines()
        assert "MsgRate[Mpps]" in columns[0], columns
        assert columns[1].split()[0] == "64" and len(columns[1].split()) == 5, columns


def runs_of_different_windows_are_compared_by_message():
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for number in range(2):
            paths.append(pathlib.Path(directory) / f"{number}.json")
            with lab_ends.Server("bw") as server:
                done = server.client("--size", "64", "--depth", "2", "--iterations",
                                     str(8000 + 8000 * number), "--json", str(paths[-1]))
            assert done.returncode == 0, done
        done = lab_ends.run("compare", str(paths[0]), "--with", str(paths[1]))
        assert done.returncode == 3 and done.stdout.startswith("bw read: "), done
        with lab_ends.Server("lat") as server:
            lat = pathlib.Path(directory) / "lat.json"
            assert server.client("--iterations", "50", "--json", str(lat)).returncode == 0
        done = lab_ends.run("compare", str(paths[0]), "--with", str(lat))
        assert done.returncode == 4 and "differs from the first file" in done.stderr, done


def bytes_go_within_work_requests_as_asked():
    for words, asked, granted in [([], None, "64"), (["--inline", "0"], 0, "0"),
                                  (["--inline", "512"], 512, "512")]:
        done, result = lab_ends.measure("bw", "--op", "write", "--size", "256", "--depth", "8",
                                        "--iterations", "2000", *words)
        assert result["plan"].get("inline_bytes") == asked, result["plan"]
        for end in ("client", "server"):
            assert result["environment"][end]["inline_bytes"] == granted, result["environment"]
        said = {None: "policy spin\n", 0: ", nothing inline\n", 512: ", inline up to 512 B\n"}
        assert said[asked] in done.stdout, done.stdout


def a_server_that_was_told_of_inline_alone_takes_the_clients_operation():
    for given, status in [("0", 0), ("64", 4)]:
        with lab_ends.Server("lat", "--inline", given) as server:
            done = server.client("--op", "send", "--iterations", "100", "--inline", "0")
            assert (done.returncode, server.end()[0]) == (status, status), done
        assert status == 0 or "--inline differs" in done.stderr, done


def more_than_a_device_carries_is_refused_by_both_ends():
    for command in ("lat", "bw"):
        with lab_ends.Server(command) as server:
            done = server.client("--op", "send", "--iterations", "500", "--inline", "513")
            status, err = server.end()
        assert (done.returncode, status) == (4, 4), (done, status)
        for said in (done.stderr, err):
            assert "soft0 does not carry 513 bytes within a work request" in said, (done, err)


def ends_of_different_commands_say_so():
    with lab_ends.Server("lat") as server:
        done = server.client("--iterations", "500", command="bw")
        status, err = server.end()
    said = "the command differs: the client has bw, the server lat"
    assert (done.returncode, status) == (4, 4), (done, status)
    assert said in done.stderr and said in err, (done.stderr, err)
    with lab_ends.Server("bw", "--depth", "3") as server:
        done = server.client("--iterations", "500", "--depth", "4")
        status, err = server.end()
    assert "--depth differs: the client has 4, the server 3" in done.stderr, done
    assert status == 4, err


def thresholds_on_the_rate_decide_the_exit_status():
    """Of a run without windows enough for an interval the answer is that it is undecided."""
    for thresholds, expected, said in [
            (["mean<1Tbit/s"], 1, "FAILED, all of "), (["mean<1/s"], 0, "ok, none of "),
            (["p99.999<1Tbit/s", "max>1/s"], 1, "too few samples"),
            (["p99.999<1Tbit/s"], 3, "undecided, too few samples")]:
        with lab_ends.Server("bw") as server:
            done = server.client("--size", "64", "--iterations", "2000",
                                 *[f"--fail-if={threshold}" for threshold in thresholds])
        assert done.returncode == expected and said in done.stderr, (thresholds, done)


def what_is_not_of_bw_is_refused_at_once():
    for arguments, said in [
            (["lat", "--depth", "2", "h"], "of bw, not of lat"),
            (["lat", "--bidirectional", "h"], "of bw, not of lat"),
            (["bw", "--depth", "0", "h"], "--depth"),
            (["bw", "--depth", "5000", "h"], "--depth"),
            (["bw", "--queue-pairs", "65", "h"], "--queue-pairs"),
            (["bw", "--queue-pairs", "64", "--depth", "4096", "h"], "at most 65536"),
            (["bw", "--gap", "1us", "h"], "--gap"),
            (["bw", "--inline", "1025", "--op", "send", "h"], "--inline"),
            (["bw", "--inline", "64", "h"], "--inline is for write, send and write-imm"),
            (["bw", "--arrivals", "poisson", "--rate", "5", "h"], "--arrivals"),
            (["bw", "--fail-if", "p50>1us", "h"], "needs a rate such as 90Gbit/s"),
            (["bw", "--fail-if", "half.p50<1Gbit/s", "h"], "exist only for lat"),
            (["lat", "--fail-if", "p50<1Gbit/s", "h"], "lat needs a time such as 10us"),
            (["bw", "--hgrm", "x", "h"], "--hgrm"),
            (["bw", "--op", "fadd", "--size", "64", "h"], "8 bytes"),
            (["bw", "--iterations", "5", "--duration", "1s", "h"], "either"),
            (["bw", "--bidirectionl", "h"], 'did you mean "--bidirectional"?')]:
        done = lab_ends.run(*arguments)
        assert done.returncode == 2, (arguments, done)
        assert said in done.stderr, (arguments, done.stderr)


def names_of(value):
    """The keys of all objects inside, without those that are quantiles or sizes of their own."""
    if isinstance(value, list):
        return set().union(*map(names_of, value[:3]))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(names_of(of) for key, of in value.items() if key != "percentiles"))


def every_name_in_a_file_is_documented():
    documented = set(re.findall(r"\w+", PAGE.read_text()))
    for arguments in [["bw", "--bidirectional", "--duration", "50ms"],
                      ["lat", "--op", "send", "--device-time", "--iterations", "50"],
                      ["lat", "--arrivals", "poisson", "--rate", "100", "--iterations", "50"]]:
        with tempfile.TemporaryDirectory() as directory, \
                lab_ends.Server(arguments[0]) as server:
            path = pathlib.Path(directory) / "r.json"
            done = server.client(*arguments[1:], "--json", str(path))
            assert done.returncode in (0, 3), done  # 3: saturated
            assert names_of(json.loads(path.read_text())) <= documented, \
                names_of(json.loads(path.read_text())) - documented


def the_mean_is_the_first_rate():
    done, _ = lab_ends.measure("bw", "--duration", "50ms")
    names = [line[2:].split("  ")[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert names[1] == "mean" and names.count("mean") == 1, done.stdout


tap.run([(name.__name__.replace("_", " "), name) for name in [
    every_operation_has_a_rate_that_its_windows_give,
    several_queue_pairs_and_sizes_are_rows_of_one_table,
    both_directions_are_told_apart_and_together,
    thresholds_on_the_rate_decide_the_exit_status,
    a_delay_of_the_wire_bounds_the_rate_by_the_depth,
    other_programs_get_their_columns,
    runs_of_different_windows_are_compared_by_message,
    bytes_go_within_work_requests_as_asked,
    a_server_that_was_told_of_inline_alone_takes_the_clients_operation,
    more_than_a_device_carries_is_refused_by_both_ends,
    ends_of_different_commands_say_so,
    what_is_not_of_bw_is_refused_at_once,
    every_name_in_a_file_is_documented,
    the_mean_is_the_first_rate,
]])
