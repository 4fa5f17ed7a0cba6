#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf mesh` of processes on this machine, however they were started.

    perf_mesh_test.py TOCSIN-PERF
"""

import ctypes
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import tempfile
import time

import cluster as clusters
import lab_ends
import patience
import tap

IN_CLOSE_NOWRITE = 0x10
FEW = ["--iterations", "200", *lab_ends.PATIENT]


def start(*arguments, **environment):
    return subprocess.Popen([lab_ends.PERF, "mesh", *FEW, *arguments], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, **environment})


def end(process):
    out, err = process.communicate(timeout=patience.HANG_SECONDS)
    return process.returncode, out, err


def read(path):
    verified = lab_ends.run("verify", str(path))
    assert verified.returncode == 0, verified
    return json.loads(path.read_text())


def check_whole(result, count):
    pairs = {(cell["from"], cell["to"]) for cell in result["cells"]}
    assert pairs == {(a, b) for a in range(count) for b in range(count) if a != b}
    for cell in result["cells"]:
        assert cell["count"] == 200, cell
        assert 0 < cell["figures"]["min_ns"] <= cell["figures"]["max_ns"]
    assert result["summary"]["measured"] == result["summary"]["wanted"] == count * (count - 1)
    assert result["incomplete"] == "" and result["shared_host"] is True
    assert result["at_once"] == 1 or os.cpu_count() >= 4, result["at_once"]


def status_of(summary):
    """The exit status of a mesh that measured each direction."""
    return 1 if summary["outliers"] > 0 else 3 if summary["undecided"] > 0 else 0


def processes_that_it_starts_measure_each_direction():
    with tempfile.TemporaryDirectory() as directory:
        path, csv = pathlib.Path(directory) / "m.json", pathlib.Path(directory) / "m.csv"
        status, out, err = end(start("--local", "3", "--op", "send", "--json", str(path), "--csv",
                                     str(csv)))
        assert status == status_of(read(path)["summary"]), (status, out, err)
        assert "round 3 of 3: 6 of 6 measured" in err, err
        assert "shared host" in out and "p50 of round trips" in out, out
        lab_ends.check_width(out)
        check_whole(read(path), 3)
        head, *rows = csv.read_text().splitlines()
        assert all(len(row.split(",")) == len(head.split(",")) for row in rows), rows


def play_by(environments, *arguments):
    """Processes that some launcher started."""
    with tempfile.TemporaryDirectory() as directory:
        path, place = pathlib.Path(directory) / "m.json", f"file:{directory}/place"
        where = ["--rendezvous", place] if not arguments else list(arguments)
        first = start(*where, "--json", str(path), **environments[0])
        others = [start(*where, **each) for each in environments[1:]]
        status, out, err = end(first)
        assert status == 0, (status, out, err)
        for other in others:
            status, out, err = end(other)
            assert (status, out) == (0, ""), (status, out, err)
        assert [each.name for each in pathlib.Path(directory).iterdir()] == ["m.json"]
        check_whole(read(path), len(environments))


def processes_of_launchers_find_each_other():
    for rank, size, more in [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {}),
                             ("PMI_RANK", "PMI_SIZE", {}),
                             ("SLURM_PROCID", "SLURM_NTASKS", {"SLURM_TOPOLOGY_ADDR": "s1.n1"})]:
        play_by([{rank: str(n), size: "2", **more} for n in range(2)])
    port = str(lab_ends.free_port())
    play_by([{"OMPI_COMM_WORLD_RANK": str(n), "OMPI_COMM_WORLD_SIZE": "2",
              "OMPI_COMM_WORLD_LOCAL_SIZE": "2"} for n in range(2)], "--port", port)


def the_nodes_of_another_step_are_not_those_of_the_mesh():
    """mpirun starts its helpers as a step of Slurm, on all nodes but its own."""
    done = start(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="3", SLURM_PROCID="0",
                 SLURM_STEP_NUM_TASKS="2", SLURM_STEP_NODELIST="node[2-3]")
    status, _, err = end(done)
    assert status == 4 and "the address of process 0 is unknown" in err, (status, err)


def whoever_comes_first_waits_for_the_others():
    with tempfile.TemporaryDirectory() as directory:
        words = ["--ranks", "2", "--rendezvous", f"file:{directory}/place"]
        second = start("--rank", "1", *words)
        try:
            second.wait(timeout=0.3)
            raise AssertionError(end(second))
        except subprocess.TimeoutExpired:
            pass
        status, out, err = end(start("--rank", "0", *words))
        assert status == 0, (status, out, err)
        assert end(second)[0] == 0


def watch_of(path):
    """Readable when somebody has closed that file, which it was read from."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_CLOEXEC)
    assert libc.inotify_add_watch(watch, os.fsencode(path), IN_CLOSE_NOWRITE) > 0
    return watch


def a_file_of_an_earlier_mesh_is_replaced():
    """Its lead was killed, and nobody listens there: who has read it looks once more."""
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory) / "place"
        place.write_text(f"{socket.gethostname()} {lab_ends.free_port()}\n")
        words = ["--ranks", "2", "--rendezvous", f"file:{place}"]
        watch = watch_of(place)
        second = start("--rank", "1", *words)
        os.read(watch, 4096)
        os.close(watch)
        status, out, err = end(start("--rank", "0", *words))
        assert status == 0, (status, out, err)
        assert end(second)[0] == 0
        assert not place.exists()


def a_file_of_something_else_is_left_alone():
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory) / "notes"
        place.write_text("what I know of node7\n")
        for rank in "01":
            status, _, err = end(start("--ranks", "2", "--rank", rank, "--rendezvous",
                                       f"file:{place}"))
            assert status == 4, (status, err)
            assert f"{place} is not a rendezvous file of a mesh" in err, err
        assert place.read_text() == "what I know of node7\n"


def an_address_of_colons_has_no_port_in_it():
    with socket.socket(socket.AF_INET6) as one:
        try:
            one.bind(("::1", 0))
        except OSError as err:
            raise tap.Skip(f"no ::1: {err}") from err
        port = str(one.getsockname()[1])
    words = ["--ranks", "2", "--rendezvous", "::1", "--port", port]
    second = start("--rank", "1", *words)
    status, out, err = end(start("--rank", "0", *words))
    assert status == 0, (status, out, err)
    assert end(second)[0] == 0


def takes_signals(process):
    """Whether it has blocked SIGINT, to take it when it likes."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    blocked = int(status.split("SigBlk:")[1].split()[0], 16)
    return blocked & 1 << (signal.SIGINT - 1)


def who_waits_can_be_interrupted():
    with tempfile.TemporaryDirectory() as directory:
        for rank, where in [("1", f"file:{directory}/place"),
                            ("1", f"127.0.0.1:{lab_ends.free_port()}"),
                            ("0", f"127.0.0.1:{lab_ends.free_port()}")]:
            process = start("--rank", rank, "--ranks", "2", "--rendezvous", where)
            clusters.wait_until("signals that are its own to take", lambda: takes_signals(process))
            process.send_signal(signal.SIGINT)
            status, _, err = end(process)
            assert status == 4 and "interrupted" in err, (where, status, err)


def wait_for_line(process, word):
    for line in process.stderr:
        if word in line:
            return
    raise AssertionError(f"no {word}")


def a_process_that_dies_is_told_and_the_others_go_on():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "m.json"
        words = ["--ranks", "3", "--rendezvous", f"file:{directory}/place"]
        first = start("--rank", "0", *words, "--json", str(path))
        others = [start("--rank", str(n), *words) for n in (1, 2)]
        wait_for_line(first, "round 1 of 3")
        others[1].kill()
        others[1].communicate()
        status, out, err = end(first)
        assert status == 4, (status, out, err)
        assert end(others[0])[0] == 0
        result = read(path)
        whys = [cell.get("why", "") for cell in result["cells"] if cell["count"] == 0]
        assert whys and all("process 2" in why for why in whys), whys
        assert result["processes"][2]["lost"] and not result["processes"][1]["lost"]
        assert "failed: process 2" in out, out
        lab_ends.check_width(out)


def an_interrupted_mesh_keeps_what_it_has():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "m.json"
        process = start("--local", "6", "--json", str(path))
        wait_for_line(process, "round 1 of 5")
        process.send_signal(signal.SIGTERM)
        status, out, err = end(process)
        assert status == 4 and "INCOMPLETE: interrupted" in out, (status, out, err)
        result = read(path)
        assert result["incomplete"] == "interrupted"
        assert 6 <= result["summary"]["measured"] < 30, result["summary"]


def port_of(place):
    deadline = time.monotonic() + patience.HANG_SECONDS
    while not place.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(place.read_text().split()[1])


def strangers_do_not_stop_a_mesh():
    """Bytes of nobody, another number of processes, a rank that is taken."""
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory) / "place"
        words = ["--rendezvous", f"file:{place}", "--ranks"]
        first = start("--rank", "0", *words, "3")
        port = port_of(place)
        for sent in [b"GET / HTTP/1.1\r\n\r\n", b"", b"TPRF" + bytes(200)]:
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.sendall(sent)
        status, _, err = end(start("--rank", "1", *words, "4"))
        assert status == 4 and "another number of processes" in err, (status, err)
        # Whichever of the two comes second is sent away, and the other measures.
        twins = [start("--rank", "1", *words, "3") for _ in range(2)]
        gone = None
        while gone is None:
            gone = next((twin for twin in twins if twin.poll() is not None), None)
            time.sleep(0.01)
        status, _, err = end(gone)
        assert status == 4 and "has this rank" in err, (status, err)
        assert end(start("--rank", "2", *words, "3"))[0] == 0
        status, out, err = end(first)
        assert status in (0, 1, 3) and "6 of 6 directions" in out, (status, out, err)
        assert end(next(twin for twin in twins if twin is not gone))[0] == 0


def commands_for_ssh_are_printed():
    """As the shell of the other machine has them: what this one's left, read once more."""
    odd = "it's $HOME b.json"
    done = lab_ends.run("mesh", "--hosts", "node[1-3]", "--op", "send", "--json", odd)
    assert done.returncode == 0, done
    here = [shlex.split(line) for line in done.stdout.splitlines()]
    assert [line[1] for line in here] == ["-n", "-n", "node1"], here
    lines = [shlex.split(" ".join(word for word in line if word != "-n")) for line in here]
    assert [line[:4] for line in lines] == [["ssh", f"node{n}", "tocsin-perf", "mesh"]
                                            for n in (3, 2, 1)], lines
    assert [line[-1] == "&" for line in lines] == [True, True, False], lines
    assert all(line[4:10] == ["--rank", str(n), "--ranks", "3", "--rendezvous", "node1"]
               for line, n in zip(lines, (2, 1, 0))), lines
    assert odd in lines[2] and odd not in lines[0], lines
    assert all("--op" in line for line in lines), lines
    done = lab_ends.run("mesh", "--hosts", "node1;reboot,node2")
    assert done.returncode == 2 and done.stdout == "" and "node1;reboot" in done.stderr, done


def the_picture_of_a_kept_mesh_is_that_of_the_run():
    with tempfile.TemporaryDirectory() as directory:
        kept, first, again = (pathlib.Path(directory) / name for name in ["m.json", "m", "again"])
        status, out, err = end(start("--local", "2", "--json", str(kept), "--svg", str(first)))
        assert status == 0 and "mesh of 2 processes" in out, (status, out, err)
        done = lab_ends.run("verify", str(kept), "--svg", str(again))
        assert done.returncode == 0 and again.read_bytes() == first.read_bytes(), done
        done = lab_ends.run("verify", str(kept), "--svg", "-")
        assert done.stdout == first.read_text(), done
        done = lab_ends.run("verify", str(kept), "--svg", "x", "--html", "x")
        assert done.returncode == 2 and "another option has this file" in done.stderr, done


def a_mesh_whose_file_cannot_be_written_is_not_begun():
    for option in ("--json", "--csv", "--html", "--svg"):
        status, out, err = end(start("--local", "2", option, "/nonexistent/m"))
        assert (status, out) == (4, ""), (option, status, out)
        assert "/nonexistent/m: No such file" in err and "round" not in err, (option, err)


def bandwidth_is_measured_in_pairs_and_with_all_at_once():
    with tempfile.TemporaryDirectory() as directory:
        path, csv, svg = (pathlib.Path(directory) / name for name in ("m.json", "m.csv", "m.svg"))
        done = lab_ends.run(
            "mesh", "--local", "3", "--bandwidth", "--congestion", "--incast", "--duration",
            "100ms", *lab_ends.PATIENT, "--json", str(path), "--csv", str(csv), "--svg", str(svg))
        result, out = read(path), done.stdout
        assert done.returncode == status_of(result["summary"]), done
        assert max(map(len, out.splitlines())) <= 80, out
        assert "bandwidth of 3 processes, write of 64KiB" in out and "6 of 6 directions" in out, out
        plan = result["plan"]
        assert (plan["command"], plan["depth"], plan["duration_ns"]) == ("bw", 16, 100000000), plan
        for cell in result["cells"]:
            p50 = cell["figures"]["p50"]
            assert cell["count"] >= 16, cell
            assert p50 is None or abs(
                cell["figures"]["p50_gbits"] * p50["value_ns"] / 2 ** 23 - 1) < 1e-9, cell
        # With three processes one process rests in each round.
        both = {(row["from"], row["to"]) for row in result["congestion"]}
        assert len(both) == 2 and {pair[::-1] for pair in both} == both, result["congestion"]
        assert all(row["alone_gbits"] > 0 and row["together_gbits"] > 0
                   for row in result["congestion"]), result["congestion"]
        assert [(row["to"], row["flows"]) for row in result["incast"]] == [(0, 2), (1, 2), (2, 2)]
        assert all(row["gbits"] >= 2 * row["slowest_gbits"] > 0 for row in result["incast"])
        assert csv.read_text().startswith("from,to,from_host,to_host,windows,min_gbits"), csv
        assert "Mesh of 3: bandwidth, write, 64KiB" in svg.read_text()
        again = lab_ends.run("verify", str(path), "--svg", "-")
        assert again.returncode == 0 and again.stdout == svg.read_text(), again


def a_lead_without_flows_leaves_them_out_of_commands():
    done = lab_ends.run("mesh", "--hosts", "n[1-2]", "--bandwidth", "--incast", "--html", "m.html",
                        "--congestion", "--rendezvous", "n1")
    second, first = done.stdout.splitlines()
    assert first.endswith("--bandwidth --incast --html m.html --congestion --rendezvous n1"), first
    assert second.endswith("--bandwidth --rendezvous n1 &"), second


def wrong_options_are_refused_at_once():
    quiet = {name: "" for name in ["SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"]}
    for arguments, status, said in [
            ([], 2, "--local N"),
            (["--local", "1"], 2, "--local"),
            (["--local", "257"], 2, "--local"),
            (["--local", "2", "--rank", "0", "--ranks", "2"], 2, "--local"),
            (["--rank", "0"], 2, "given together"),
            (["--rank", "2", "--ranks", "2"], 2, "process 2 of 2"),
            (["--local", "2", "--duration", "1s"], 2, "--duration: cannot be used with mesh"),
            (["--local", "2", "--depth", "2"], 2, "--depth: cannot be used with mesh"),
            (["--local", "2", "--fail-if", "p50>1us"], 2, "--fail-if: cannot be used with mesh"),
            (["--local", "2", "--html="], 2, '--html: "" is not a file name'),
            (["--local", "2", "--size", "1,2"], 2, "--size"),
            (["--local", "2", "--incast"], 2, "--incast: needs --bandwidth"),
            (["--local", "2", "--bandwidth", "--iterations", "9"], 2,
             "--iterations: cannot be used with mesh --bandwidth"),
            (["--local", "2", "--bandwidth", "--duration", "2m"], 2, "--duration: at most 60s"),
            (["--local", "2", "--bandwidth", "--incast", "--op", "read"], 2,
             "--incast: needs write"),
            (["--agents", "--bandwidth"], 2, "--agents: agents measure latency only"),
            (["--local", "2", "--iterations", "300000"], 2, "--iterations"),
            (["--local", "2", "host"], 2, "host: cannot be used with mesh"),
            (["--local", "2", "--at-once", "0"], 2, "--at-once"),
            (["--rank", "1", "--ranks", "2", "--rendezvous", "file:"], 2, "--rendezvous"),
            (["--rank", "1", "--ranks", "2"], 4, "the address of process 0 is unknown"),
            (["--rank", "0", "--ranks", "2", "--rendezvous", "file:/nonexistent/x"], 4,
             "/nonexistent/x"),
            (["--local", "2", "--margin", "1%"], 2, "--margin: cannot be used with mesh"),
            (["--hosts", "n[1-2]", "--rank", "0", "--ranks", "2"], 2, "--hosts: prints --rank"),
            (["--hosts", "node1"], 2, "at least 2"),
            (["--hosts", "node[1-"], 2, "--hosts")]:
        done = lab_ends.run("mesh", *arguments, **quiet)
        assert done.returncode == status, (arguments, done)
        assert said in done.stderr, (arguments, done.stderr)
    done = lab_ends.run("lat", "--svg", "m.svg", "h")
    assert done.returncode == 2 and "--svg: is an option of mesh" in done.stderr, done
    done = lab_ends.run("lat", "--local", "2", "h")
    assert done.returncode == 2 and "--local: is an option of mesh" in done.stderr, done


tap.run([(name.__name__.replace("_", " "), name) for name in [
    processes_that_it_starts_measure_each_direction,
    bandwidth_is_measured_in_pairs_and_with_all_at_once,
    a_lead_without_flows_leaves_them_out_of_commands,
    processes_of_launchers_find_each_other,
    the_nodes_of_another_step_are_not_those_of_the_mesh,
    whoever_comes_first_waits_for_the_others,
    a_file_of_an_earlier_mesh_is_replaced,
    a_file_of_something_else_is_left_alone,
    an_address_of_colons_has_no_port_in_it,
    who_waits_can_be_interrupted,
    a_process_that_dies_is_told_and_the_others_go_on,
    an_interrupted_mesh_keeps_what_it_has,
    strangers_do_not_stop_a_mesh,
    commands_for_ssh_are_printed,
    the_picture_of_a_kept_mesh_is_that_of_the_run,
    a_mesh_whose_file_cannot_be_written_is_not_begun,
    wrong_options_are_refused_at_once,
]])
