#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf lat` between two processes on the software device, and what it refuses.

    perf_lat_test.py TOCSIN-PERF
"""

import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

import cluster as clusters
import lab_ends
import patience
import tap

PERF = sys.argv[1]
OPERATIONS = ["read", "write", "send", "write-imm", "cas", "fadd"]
SWEEP = "8,64,512,4KiB,32KiB,256KiB"
ANSWERED = {"write", "send", "write-imm"}
COLUMNS_MAX = 100
WARMUP_SECONDS_MAX = 1.3  # a second for its samples, and looking at them
# Two ends that spin may starve the threads of the device for long where others compute, too.
PATIENT = ["--device", "soft", "--timeout", "20"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def soft(**environment):
    """The software device, whatever else this machine has."""
    return {**os.environ, **environment}


class Server:
    """A server that waits for its client; in a with."""

    def __init__(self, *arguments, port=None, **environment):
        self.port = port or free_port()
        self.process = subprocess.Popen(
            [PERF, "lat", *PATIENT, "--listen", "127.0.0.1", "--port", str(self.port),
             *arguments],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=soft(**environment))

    def __enter__(self):
        line = self.process.stdout.readline()
        assert line == f"Waits for a client on 127.0.0.1:{self.port}.\n", line
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def end(self):
        """(status, what it said on standard error)."""
        _, err = self.process.communicate(timeout=patience.HANG_SECONDS)
        return self.process.returncode, err


def client_command(server, *arguments):
    return [PERF, "lat", *PATIENT, "--port", str(server.port), *arguments, "127.0.0.1"]


def client(server, *arguments, **environment):
    return subprocess.run(client_command(server, *arguments), text=True, capture_output=True,
                          check=False, timeout=patience.HANG_SECONDS, env=soft(**environment))


def measure(*arguments, **environment):
    """(the client's end, its JSON), of a run that succeeds."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "r.json"
        with Server(**environment) as server:
            done = client(server, "--json", str(path), *arguments, **environment)
            assert server.end() == (0, ""), done
        result = json.loads(path.read_text())
        saturated = any("load" in size and size["load"]["saturated"] for size in result["results"])
        assert done.returncode == (3 if saturated else 0), done
        verified = verify(path)
        assert verified.returncode == 0, verified
        return done, result


def verify(path):
    return subprocess.run([PERF, "verify", str(path)], text=True, capture_output=True,
                          check=False, timeout=patience.HANG_SECONDS)


def samples(series):
    (block,) = series["kept"]["blocks"]
    return block["samples_ns"]


def check_width(text):
    for line in text.splitlines():
        assert len(line) <= COLUMNS_MAX, line
        assert line == line.rstrip(), line


def every_operation_is_measured_and_its_file_verified():
    for operation in OPERATIONS:
        done, result = measure("--op", operation, "--iterations", "300")
        (size,) = result["results"]
        figures = size["times"]["figures"]
        times = samples(size["times"])
        assert result["plan"]["op"] == operation
        assert (figures["count"], len(times)) == (300, 300), operation
        assert (figures["min_ns"], figures["max_ns"]) == (min(times), max(times))
        assert min(times) > 0
        assert size["complete"] and result["incomplete"] == ""
        assert ("half RTT us" in done.stdout) == (operation in ANSWERED), done.stdout
        check_width(done.stdout)


def several_sizes_are_rows_of_one_table():
    done, result = measure("--op", "send", "--size", "1,64,4KiB,100000", "--iterations", "50")
    assert [one["size_bytes"] for one in result["results"]] == [1, 64, 4096, 100000]
    rows = [line.split() for line in done.stdout.splitlines()[-4:]]
    assert [row[:2] for row in rows] == [["1B", "50"], ["64B", "50"], ["4KiB", "50"],
                                         ["100000B", "50"]], done.stdout
    check_width(done.stdout)


def every_policy_serves_what_it_can():
    for policy in ["window", "event", "adaptive"]:
        _, result = measure("--op", "send", "--policy", policy, "--iterations", "100")
        assert result["plan"]["policy"] == policy
    with Server() as server:
        done = client(server, "--op", "write", "--policy", "event")
        assert done.returncode == 2 and "write-imm" in done.stderr, done


def a_file_has_no_more_bytes_than_it_may():
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        path = pathlib.Path(directory) / "r.json"
        done = client(server, "--op", "read", "--size", SWEEP, "--iterations", "3000",
                      "--json-bytes", "268KiB", "--json", str(path))
        assert done.returncode == 0, done
        assert path.stat().st_size <= 268 * 1024, path.stat()
        verified = verify(path)
        assert verified.returncode == 0, verified


def a_gap_is_in_no_sample():
    gap_ns = 3000000
    _, result = measure("--op", "read", "--gap", "3ms", "--iterations", "40")
    (size,) = result["results"]
    times = samples(size["times"])
    assert sum(times) + (len(times) - 1) * gap_ns <= size["took_ns"], size["took_ns"]


def a_run_by_duration_ends():
    _, result = measure("--op", "read", "--duration", "200ms")
    (size,) = result["results"]
    assert size["times"]["figures"]["count"] > 0
    assert result["plan"]["iterations"] == 0


def a_delay_of_the_wire_is_in_each_sample():
    delay_ns = 2000000
    _, result = measure("--op", "read", "--iterations", "40",
                        TOCSIN_SOFT_FAULTS="delay=2ms")
    times = samples(result["results"][0]["times"])
    assert min(times) >= 2 * delay_ns, min(times)


def an_open_loop_obeys_lindley():
    """Each response is what the queue before it left, the sender's own lag, and its service."""
    for arrivals in ["constant", "poisson", "onoff"]:
        _, result = measure("--op", "read", "--arrivals", arrivals, "--rate", "1500",
                            "--iterations", "600")
        (size,) = result["results"]
        due, load = size["load"]["due_ns"], size["load"]
        responses, services = samples(size["times"]), samples(size["service"])
        lags, before, due_before = [], 0, 0
        for at, response, service in zip(due, responses, services):
            left = max(0, before - (at - due_before))
            lags.append(response - service - left)
            before, due_before = response, at
        assert min(lags) >= 0, min(lags)
        assert max(lags) == load["lag_max_ns"], (max(lags), load["lag_max_ns"])
        median = sorted(lags)[(len(lags) + 1) // 2 - 1]
        assert abs(median - load["lag_p50_ns"]) <= median / 100 + 1, (median, load)


def stamps_of_the_device_divide_each_sample():
    for operation, clock in [("read", "raw"), ("send", "raw"), ("write-imm", "wall"),
                             ("fadd", "wall")]:
        done, result = measure("--op", operation, f"--device-time={clock}", "--iterations",
                               "300")
        (size,) = result["results"]
        part = size["device_time"]
        parts = [samples(part["device"]), samples(part["host"])]
        assert part["clock"] == clock and part["khz"] == 1000000, part
        # The host's time of day may be set meanwhile; the device's clock may not.
        assert part["outside"] == 0 or clock == "wall", part["outside"]
        assert [sum(both) for both in zip(*parts)] == samples(size["times"]), operation
        answers = part["server_answers"]
        assert (answers is not None) == (operation in ANSWERED), answers
        if operation in ANSWERED:
            assert 300 <= answers["count"] <= 300 + result["plan"]["lead_samples"], answers
            assert answers["max_ns"] >= answers["p50_ns"] > 0, answers
            assert "NIC to NIC" in done.stdout, done.stdout
        assert "device us" in done.stdout and "host us" in done.stdout, done.stdout
        check_width(done.stdout)


def rows_of_several_sizes_say_where_the_parts_are():
    done, result = measure("--size", "8,64", "--device-time", "--iterations", "30")
    assert all("device_time" in size for size in result["results"])
    assert "the shares of device and host: see --json" in done.stdout, done.stdout
    check_width(done.stdout)


def a_delay_of_the_wire_is_the_devices_part():
    _, result = measure("--op", "read", "--device-time", "--iterations", "40",
                        TOCSIN_SOFT_FAULTS="delay=2ms")
    part = result["results"][0]["device_time"]
    assert min(samples(part["device"])) >= 4000000, min(samples(part["device"]))


def a_schedule_that_cannot_be_kept_is_not_valid():
    """Status 3; service times come before response times, which sizes in rows do not show."""
    flood = ["--op", "read", "--arrivals", "constant", "--rate", "10000000", "--iterations", "2000"]
    done, result = measure(*flood)
    (size,) = result["results"]
    assert size["load"]["saturated"] and size["load"]["reason"], size["load"]
    assert done.returncode == 3 and "not valid: saturated" in done.stderr, done
    assert done.stdout.index("NOT VALID") < done.stdout.index("service us"), done.stdout
    assert done.stdout.index("service us") < done.stdout.index("response us"), done.stdout
    check_width(done.stdout)
    done, _ = measure(*flood, "--size", "8,64")
    assert re.search(r"^ *8B.* n/a .*NOT VALID$", done.stdout, re.MULTILINE), done.stdout
    check_width(done.stdout)


def a_trace_is_played():
    with tempfile.NamedTemporaryFile("w", suffix=".trace") as trace:
        trace.write("# seconds\n" + "".join(f"{n / 1000:.3f}\n" for n in range(100)))
        trace.flush()
        _, result = measure("--op", "read", "--arrivals", f"trace:{trace.name}")
    (size,) = result["results"]
    assert size["load"]["due_ns"] == [n * 1000000 for n in range(100)]
    assert size["times"]["figures"]["count"] == 100


def a_trace_from_a_pipe_is_played_for_each_size():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "trace"
        os.mkfifo(path)
        trace = "".join(f"{n / 1000:.3f}\\n" for n in range(50))
        with subprocess.Popen(["sh", "-c", f"printf '{trace}' > {path}"]) as writer:
            _, result = measure("--op", "read", "--arrivals", f"trace:{path}", "--size", "8,64")
            assert writer.wait(patience.HANG_SECONDS) == 0
    for size in result["results"]:
        assert size["load"]["due_ns"] == [n * 1000000 for n in range(50)], size["load"]


def thresholds_decide_the_exit_status():
    # Of no quantile but one: how many samples are worth one is this machine's affair.
    for threshold, status, word in [("min>1ns", 1, "FAILED, all of"),
                                    ("mean<1ns", 0, "ok, none of"),
                                    ("p99.999>1ns", 3, "undecided"),
                                    ("half.min>1ns", 1, "FAILED, all of"),
                                    ("max<1h", 1, "FAILED, all of")]:
        with Server() as server:
            done = client(server, "--op", "send", "--iterations", "200", "--fail-if", threshold)
            assert server.end()[0] == 0
        assert done.returncode == status, (threshold, done)
        assert word in done.stderr, (threshold, done)


def other_programs_get_their_files():
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        csv, hgrm = pathlib.Path(directory) / "r.csv", pathlib.Path(directory) / "r.hgrm"
        done = client(server, "--op", "send", "--iterations", "500", "--csv", str(csv), "--hgrm",
                      str(hgrm), "--perftest")
        assert done.returncode == 0, done
        head, *rows = csv.read_text().splitlines()
        assert head == "size_bytes,what,figure,value_ns,low_ns,high_ns,worth_samples"
        assert all(len(row.split(",")) == 7 for row in rows), rows
        values = [line.split() for line in hgrm.read_text().splitlines()[2:] if line[0] != "#"]
        shares = [float(row[1]) for row in values]
        assert shares == sorted(shares) and shares[-1] == 1 and int(values[-1][2]) == 500
        columns = done.stdout.splitlines()
        assert columns[0].split()[:2] == ["#bytes", "#iterations"], columns
        assert columns[1].split()[:2] == ["64", "500"] and len(columns[1].split()) == 9, columns


def response_times_have_no_half():
    """perftest has no open loop: of a send its columns are halves of round trips."""
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        csv = pathlib.Path(directory) / "r.csv"
        done = client(server, "--op", "send", "--arrivals", "constant", "--rate", "1000",
                      "--iterations", "300", "--csv", str(csv), "--perftest")
        assert done.returncode in (0, 3), done  # 3: saturated on a busy machine
        row = re.search(r"^64,response,max,(\d+),", csv.read_text(), re.MULTILINE)
        told = float(done.stdout.splitlines()[1].split()[3])
        assert abs(told - int(row.group(1)) / 1e3) < 0.01, (told, row)


def options_that_differ_are_told_on_both_ends():
    with Server("--op", "send", "--gap", "5us") as server:
        done = client(server, "--op", "read")
        status, err = server.end()
    said = "--op differs: the client has read, the server send"
    assert (done.returncode, status) == (4, 4), (done, status)
    assert said in done.stderr and said in err, (done.stderr, err)


def a_device_that_is_not_there_is_told_on_both_ends():
    with Server() as server:
        command = client_command(server)
        command[command.index("soft")] = "mlx9_9"
        done = subprocess.run(command, text=True, capture_output=True, check=False,
                              timeout=patience.HANG_SECONDS)
        status, err = server.end()
    assert (done.returncode, status) == (4, 4), (done, status)
    assert "no device mlx9_9" in done.stderr and "no device mlx9_9" in err, (done.stderr, err)


def a_limit_of_open_files_is_told_as_what_it_is():
    with Server() as server:
        done = subprocess.run(
            client_command(server), text=True, capture_output=True, check=False,
            timeout=patience.HANG_SECONDS,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6)))
        status, err = server.end()
    assert (done.returncode, status) == (4, 4), (done, status)
    assert "EMFILE" in done.stderr and "EMFILE" in err, (done.stderr, err)
    assert "127.0.0.0/8" not in done.stderr, done.stderr


def a_priority_that_is_not_permitted_is_told_on_both_ends():
    """Without CAP_SYS_NICE and without a limit for it, whoever runs the tests."""
    dropped = ["setpriv", "--bounding-set=-sys_nice"] if os.geteuid() == 0 else []
    with Server() as server:
        done = subprocess.run(
            [*dropped, *client_command(server, "--priority", "20")], text=True,
            capture_output=True, check=False, timeout=patience.HANG_SECONDS,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0)))
        status, err = server.end()
    said = "--priority 20: the kernel does not permit it (Operation not permitted)"
    assert (done.returncode, status) == (4, 4), (done, status)
    assert said in done.stderr and said in err, (done.stderr, err)


def a_trace_that_cannot_be_played_is_told_before_any_server_is_asked():
    with tempfile.TemporaryDirectory() as directory:
        trace = pathlib.Path(directory) / "t"
        for text, said in [("0.1\n0.05\n", "line 2"), ("0.1\nsoon\n", "line 2"),
                           ("# nothing\n", "has no arrival"), (None, "No such file")]:
            if text is not None:
                trace.write_text(text)
            else:
                trace.unlink()
            with Server() as server:
                done = client(server, "--arrivals", f"trace:{trace}")
                assert server.process.poll() is None, "the server has ended"
            assert done.returncode == 4 and str(trace) in done.stderr, done
            assert said in done.stderr, (said, done.stderr)


def say_to_server(server, sent, proven):
    """The server's last answer to a connection: its kind and its text."""
    with socket.create_connection(("127.0.0.1", server.port),
                                  timeout=patience.HANG_SECONDS) as one, \
            one.makefile("rwb") as stream:
        if proven:
            lab_ends.prove(stream)
        stream.write(sent)
        stream.flush()
        one.shutdown(socket.SHUT_WR)
        kind, payload = lab_ends.receive(stream)
    return kind, payload.decode()


def another_release_is_told_and_the_server_waits_on():
    with Server(TOCSIN_PERF_TOKEN=lab_ends.TOKEN) as server:
        for sent, proven, said in [
                (lab_ends.frame(1, version=4), False,
                 "it uses protocol version 4, this end uses 5"),
                (lab_ends.frame(1, lab_ends.hello(release="99.9.9")), True,
                 "the other end is tocsin-perf 99.9.9"),
                (lab_ends.frame(1, b"x"), True, "plan is malformed"),
                (lab_ends.frame(3), True, "a message of kind 3 instead of 1"),
                (lab_ends.frame(1)[:7], True, "the other end")]:
            kind, text = say_to_server(server, sent, proven)
            assert kind == lab_ends.ERROR and said in text, (sent, kind, text)
        done = client(server, "--iterations", "50")
        status, err = server.end()
    assert (done.returncode, status) == (0, 0), (done, status, err)
    assert "is not a client, still waiting: the other end is of another release: it uses " \
        "protocol version 4, this end uses 5" in err, err


def who_is_no_client_is_told_and_the_client_served():
    """A script that waits for the port, a monitor, one that is silent."""
    with Server() as server, socket.create_connection(("127.0.0.1", server.port)):
        kind, text = say_to_server(server, b"GET / HTTP/1.1\r\n\r\n", False)
        assert kind == lab_ends.ERROR and "is not tocsin-perf" in text, (kind, text)
        say_to_server(server, b"", False)
        done = client(server, "--iterations", "300")
        status, err = server.end()
    assert (done.returncode, status) == (0, 0), (done, status, err)
    said = " is not a client, still waiting: the other end is not tocsin-perf\n"
    assert said in err, err


def a_client_waits_for_a_server_that_begins_just_now():
    port = free_port()
    with subprocess.Popen([PERF, "lat", *PATIENT, "--port", str(port), "--iterations", "300",
                           "127.0.0.1"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=soft()) as early:
        with Server(port=port) as server:
            _, err = early.communicate(timeout=patience.HANG_SECONDS)
            assert (early.returncode, server.end()) == (0, (0, "")), err


def begin_long_run(server, *arguments):
    """A client that has begun: its server says that it serves, and then it has samples. One that
    is interrupted before its first size has nothing to keep."""
    process = subprocess.Popen(client_command(server, "--op", "send", "--duration", "1h",
                                              *arguments),
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = server.process.stdout.readline()
    assert line.startswith("Serves send"), line
    lab_ends.wait_for_samples(process)
    return process


def stall(process, seconds):
    """Stops all of its threads for so long at least."""
    process.send_signal(signal.SIGSTOP)
    stat = pathlib.Path(f"/proc/{process.pid}/stat")
    while stat.read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "T":
        time.sleep(0.01)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def a_stall_is_the_largest_sample_and_told_with_its_cause():
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        path = pathlib.Path(directory) / "r.json"
        process = begin_long_run(server, "--json", str(path))
        lab_ends.wait_for_spinning(process, WARMUP_SECONDS_MAX)
        stall(process, 0.25)
        # The stalled sample has ended, and others after it.
        lab_ends.wait_for_spinning(process, 0.2)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=patience.HANG_SECONDS)
        result = json.loads(path.read_text(encoding="utf-8"))["results"][0]
        assert verify(path).returncode == 0
    largest = result["outliers"][0]
    assert largest["took_ns"] >= 250_000_000, largest
    assert largest["took_ns"] == result["times"]["figures"]["max_ns"], largest
    assert largest["involuntary_switches"] + largest["voluntary_switches"] >= 1, largest
    assert largest["within_ns"] >= largest["took_ns"], largest
    assert "largest:" in out and "clock:" in out, out


def a_client_that_dies_is_told_by_the_server():
    with Server() as server:
        process = begin_long_run(server)
        process.kill()
        process.communicate()
        status, err = server.end()
    assert status == 4 and "the other end went away" in err, (status, err)


def a_server_that_dies_is_told_by_the_client_which_keeps_what_it_has():
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        path = pathlib.Path(directory) / "r.json"
        process = begin_long_run(server, "--json", str(path))
        server.process.kill()
        out, err = process.communicate(timeout=patience.HANG_SECONDS)
        assert process.returncode == 4, (process.returncode, err)
        assert "the other end went away" in err, err
        assert "INCOMPLETE" in out, out
        result = json.loads(path.read_text())
        assert "went away" in result["incomplete"]
        assert not result["results"][0]["complete"]
        assert verify(path).returncode == 0, verify(path)


def an_interrupted_client_keeps_what_it_has_and_tells_its_server():
    with Server() as server:
        process = begin_long_run(server)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=patience.HANG_SECONDS)
        status, server_err = server.end()
    assert process.returncode == 4 and "interrupted" in err, (process.returncode, err)
    assert "INCOMPLETE" in out, out
    assert status == 4 and "interrupted" in server_err, (status, server_err)


def a_terminal_that_is_gone_ends_a_run_as_a_person_does():
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        path = pathlib.Path(directory) / "r.json"
        process = begin_long_run(server, "--json", str(path))
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=patience.HANG_SECONDS)
        assert process.returncode == 4 and verify(path).returncode == 0, process.returncode
        assert json.loads(path.read_text())["incomplete"] == "interrupted"


def under_nohup_a_terminal_that_is_gone_ends_nothing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Server() as server:
        signal.signal(signal.SIGHUP, before)
        server.process.send_signal(signal.SIGHUP)
        done = client(server, "--iterations", "50")
        assert done.returncode == 0 and server.end() == (0, ""), done


def a_run_goes_on_when_nobody_reads_what_is_printed():
    """As that of a server of which a script reads one line, and its client is well."""
    with Server() as server:
        server.process.stdout.close()
        done = client(server, "--iterations", "50")
        status, err = server.end()
    assert done.returncode == 0, done
    assert status == 4 and "standard output cannot be written: Broken pipe" in err, (status, err)
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        path = pathlib.Path(directory) / "r.json"
        process = begin_long_run(server, "--json", str(path))
        process.stdout.close()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=patience.HANG_SECONDS)
        assert verify(path).returncode == 0


def state_of(process):
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii")
    return stat.rsplit(")", 1)[1].split()[0]


def a_trace_that_nobody_writes_can_be_interrupted():
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        path = pathlib.Path(directory) / "trace"
        os.mkfifo(path)
        process = subprocess.Popen(client_command(server, "--arrivals", f"trace:{path}"),
                                   stderr=subprocess.DEVNULL)
        clusters.wait_until("a client that waits", lambda: state_of(process) == "S")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=patience.HANG_SECONDS) == -signal.SIGINT


def a_client_that_is_not_answered_can_be_interrupted():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = subprocess.Popen(
            [PERF, "lat", *PATIENT, "--port", str(silent.getsockname()[1]), "127.0.0.1"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        one, _ = silent.accept()
        with one:
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=patience.HANG_SECONDS)
    assert process.returncode == 4 and err == "tocsin-perf: interrupted\n", err


def a_server_that_waits_can_be_interrupted():
    with Server() as server:
        server.process.send_signal(signal.SIGINT)
        status, err = server.end()
    assert status == 4 and "interrupted before any client came" in err, (status, err)


def nobody_who_listens_is_said_so():
    done = subprocess.run([PERF, "lat", "--port", str(free_port()), "127.0.0.1"], text=True,
                          capture_output=True, check=False, timeout=patience.HANG_SECONDS)
    assert done.returncode == 4 and "nobody listens" in done.stderr, done
    assert "the server does not listen yet, trying again\n" in done.stderr, done


def a_port_that_is_taken_is_said_so():
    with Server() as server:
        done = subprocess.run([PERF, "lat", "--listen", "127.0.0.1", "--port",
                               str(server.port)], text=True, capture_output=True, check=False,
                              timeout=patience.HANG_SECONDS)
    assert done.returncode == 4 and "cannot listen on 127.0.0.1" in done.stderr, done


def a_file_that_cannot_be_written_is_said_so():
    """Before the run where that can be told, else below what was measured."""
    for option in ["--json", "--csv", "--hgrm", "--html"]:
        with Server() as server:
            done = client(server, "--iterations", "20", option, "/nonexistent/r")
            assert done.returncode == 4 and done.stdout == "", done
            assert "/nonexistent/r: No such file" in done.stderr, done
            done = client(server, "--iterations", "20", option, "/dev/full")
        assert done.returncode == 4 and "samples in" in done.stdout, done
        assert "/dev/full cannot be written: " in done.stderr, done
    with Server() as server, tempfile.TemporaryDirectory() as directory:
        for path in [directory, f"{directory}/none/"]:
            done = client(server, "--iterations", "20", "--json", path)
            assert done.returncode == 4 and done.stdout == "", done
            assert f"{path}: Is a directory" in done.stderr, done
        csv = f"{directory}/r.csv"
        done = client(server, "--iterations", "20", "--json", "/dev/full", "--csv", csv)
        assert done.returncode == 4, done
        with open(csv, encoding="ascii") as file:  # in spite of the other
            assert "64,rtt,p50," in file.read()
    with Server() as server, open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(client_command(server, "--iterations", "20"), stdout=full, text=True,
                              stderr=subprocess.PIPE, check=False, timeout=patience.HANG_SECONDS)
    assert done.returncode == 4 and "standard output cannot be written" in done.stderr, done


def a_standard_output_that_is_closed_is_said_so():
    for command, streams in [("--version", "1"), ("--version", "0 1"), ("--help", "1")]:
        closed = " ".join(f"{fd}>&-" for fd in streams.split())
        done = subprocess.run(["sh", "-c", f'"$0" {command} {closed}', PERF], text=True,
                              stderr=subprocess.PIPE, check=False, timeout=patience.HANG_SECONDS)
        assert done.returncode == 4, (command, streams, done)
        assert "standard output cannot be written" in done.stderr, done
        # Of what is printed in several writes the last one may be none, and has no reason.
        assert "Bad file descriptor" in done.stderr or command == "--help", done


def wrong_options_are_refused_at_once():
    for arguments, said in [
            ([], "needs a command"),
            (["latt"], "known are: lat, bw, mesh, net, policy, compare, history, verify"),
            (["verify"], "needs one FILE"),
            (["verify", "a.json", "b.json"], "needs one FILE"),
            (["history"], "needs one DIRECTORY"),
            (["history", "a", "b"], "needs one DIRECTORY"),
            (["history", "--margn", "2%", "a"], "not an option of history"),
            (["verify", "a.json", "--html"], "--html: needs a file"),
            (["compare", "a.json"], "both sides of --with"),
            (["compare", "a.json", "--with", "b.json", "--margin", "5"], "--margin"),
            (["compare", "a.json", "--wiht", "b.json"], "not an option of compare"),
            (["lat", "--opp", "read", "h"], 'did you mean "--op"?'),
            (["lat", "--op", "reed", "h"], "--op"),
            (["lat", "--op"], "needs a value"),
            (["lat", "--size", "0", "h"], "--size"),
            (["lat", "--size", "1,", "h"], "--size"),
            (["lat", "--size", "9MiB", "h"], "--size"),
            (["lat", "--op", "cas", "--size", "16", "h"], "8 bytes"),
            (["lat", "--iterations", "0", "h"], "--iterations"),
            (["lat", "--duration", "5", "h"], "--duration"),
            (["lat", "--iterations", "5", "--duration", "1s", "h"], "either"),
            (["lat", "--rate", "5", "h"], "open loop"),
            (["lat", "--arrivals", "poisson", "h"], "--rate"),
            (["lat", "--arrivals", "trace:", "h"], "--arrivals"),
            (["lat", "--arrivals", "trace:/dev/null", "--runs", "2", "h"], "--runs needs a trace"),
            (["lat", "--arrivals", "trace:/dev/null", "--iterations", "5", "h"],
             "--iterations: cannot be used with a trace"),
            (["lat", "--arrivals", "trace:/dev/null", "--duration", "5s", "h"],
             "--duration: cannot be used with a trace"),
            (["lat", "--seed", "5", "h"], "--seed: needs --arrivals poisson or onoff"),
            (["lat", "--margin", "1%", "h"], "--margin: needs --against"),
            (["lat", "--runs", "2", "--margin", "1%", "h"], "--margin: needs --against"),
            (["lat", "--via-agent", "n", "--margin", "1%"],
             "--margin: cannot be used with --via-agent"),
            (["lat", "--cores", "4000", "h"], "--cores"),
            (["lat", "--cores", "x", "h"], "--cores"),
            (["lat", "--priority", "100", "h"], "--priority"),
            (["lat", "--json-bytes", "1KiB", "h"], "--json-bytes"),
            (["lat", "--json-bytes", "128KiB", "--size", SWEEP, "h"],
             "128KiB are too few for 6 sizes of this run: at least 268KiB"),
            (["lat", "--json-bytes", "135KiB", "--arrivals", "poisson", "--rate", "9",
              "--device-time", "h"], "at least 136KiB"),
            (["lat", "--via-agent", "n", "--op", "read", "--json-bytes", "64KiB", "--size",
              "8,9"], "at least 100KiB"),
            (["mesh", "--json-bytes", "1MiB", "--local", "2"], "cannot be used with mesh"),
            (["lat", "--json", "-", "--csv", "-", "h"], "--csv: another option has this file"),
            (["mesh", "--json", "m", "--html", "m", "--local", "2"], "--html: another option"),
            (["policy", "--json", "p", "--html", "p"], "--html: another option"),
            (["lat", "--fail-if", "drain_rate=500%", "h"], "is not a threshold"),
            (["lat", "--mtu", "1000", "h"], "--mtu"),
            (["lat", "--timeout", "32", "h"], "--timeout"),
            (["lat", "--retry", "8", "h"], "--retry"),
            (["lat", "--device-time=cpu", "h"], "not one of raw, wall"),
            (["lat", "--device-time", "--op", "write", "h"], "write-imm"),
            (["bw", "--device-time", "h"], "is an option of lat, not of bw"),
            (["mesh", "--device-time", "--local", "2"], "cannot be used with mesh"),
            (["lat", "--perftest=1", "h"], "takes no value"),
            (["lat", "--fail-if", "p98>1us", "h"], "--fail-if"),
            (["lat", "--fail-if", "half.p50>1us", "h"], "round trip"),
            (["lat", "--fail-if", "service.p50>1us", "h"], "open loop"),
            (["lat", "--fail-if", "p50>1us"], "which needs a HOST"),
            (["lat", "--listen", "127.0.0.1", "h"], "HOST makes this the client"),
            (["lat", "one", "two"], "is a second HOST"),
            (["lat", "no.such.host.invalid"], "HOST")]:
        done = subprocess.run([PERF, *arguments], text=True, capture_output=True, check=False,
                              timeout=patience.HANG_SECONDS)
        assert done.returncode == 2, (arguments, done)
        assert said in done.stderr, (arguments, done.stderr)


def one_changed_number_in_a_file_is_named():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "r.json"
        _, result = measure("--op", "read", "--iterations", "400")
        result["results"][0]["times"]["figures"]["max_ns"] += 1  # there in any run
        path.write_text(json.dumps(result))
        done = verify(path)
        assert done.returncode == 1, done
        assert "results[0].times.figures.max_ns is" in done.stderr, done
        path.write_text("{")
        assert verify(path).returncode == 4


def a_file_that_is_not_there_is_said_so():
    done = verify("/nonexistent/r.json")
    assert done.returncode == 4, done
    assert done.stderr == "tocsin-perf: /nonexistent/r.json: No such file or directory\n", done


def a_run_against_itself_is_no_change():
    """It says that these are the same; the same run twice on one side is no replication."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "r.json"
        _, result = measure("--op", "read", "--iterations", "400")
        path.write_text(json.dumps(result))
        copy = path.with_name("copy.json")
        copy.write_text(json.dumps(result))

        def compare(a, b):
            return subprocess.run([PERF, "compare", *a, "--with", *b], text=True, check=False,
                                  capture_output=True, timeout=patience.HANG_SECONDS)

        for other in (path, copy):
            done = compare([path], [other])
            # Where no quantile has an interval, as on a very busy machine, there is no claim.
            if "over 0 claims" in done.stdout:
                assert done.returncode == 3, done
                continue
            assert done.returncode == 0 and "no change within 2 %" in done.stdout, done
            assert "A and B are the same runs" in done.stdout, done
            check_width(done.stdout)
        done = compare([path, copy], [path])
        assert done.returncode == 4 and "the same run is given twice" in done.stderr, done


def help_names_every_option_and_the_page_has_them():
    done = subprocess.run([PERF, "--help"], text=True, capture_output=True, check=False,
                          timeout=patience.HANG_SECONDS)
    options = set(re.findall(r"--[a-z-]+", done.stdout))
    page = pathlib.Path(sys.argv[2]).read_text().replace("\\-", "-")
    page, _, others = page.partition(".SH FOR USERS OF PERFTEST")
    assert others
    assert options <= set(re.findall(r"--[a-z-]+", page)), options
    assert set(re.findall(r"(?m)^\.B[RI]? (--[a-z-]+)", page)) <= options
    check_width(done.stdout)


def help_of_a_command_has_its_own_options_alone():
    for command, has, lacks in [
            ("lat", ["--gap", "--via-agent"], ["--depth", "--local", "--rates"]),
            ("bw", ["--depth", "--inline"], ["  --gap", "--local", "--hgrm FILE"]),
            ("mesh", ["--local", "--agents"], ["--duration", "--fail-if", "--cores"]),
            ("net", ["--duration", "--json"], ["--op", "--html"]),
            ("policy", ["--rates", "--html"], ["--iterations", "--csv"]),
            ("compare", ["--with", "--margin"], ["--json", "--op"]),
            ("history", ["--margin", "--html"], ["--with", "--op"]),
            ("verify", ["--html"], ["--margin", "--json-"])]:
        done = subprocess.run([PERF, command, "--help"], text=True, capture_output=True,
                              check=False, timeout=patience.HANG_SECONDS)
        head, _, options = done.stdout.partition("\n\n")
        assert done.returncode == 0 and f"tocsin-perf {command}" in head.replace("lat|bw", command)
        assert all(word in options for word in has), (command, done.stdout)
        assert not any(f"{word} " in options for word in lacks), (command, done.stdout)
        assert "Exit status: " in options, command
        check_width(done.stdout)


tap.run([(name.__name__.replace("_", " "), name) for name in [
    every_operation_is_measured_and_its_file_verified,
    several_sizes_are_rows_of_one_table,
    every_policy_serves_what_it_can,
    a_file_has_no_more_bytes_than_it_may,
    a_gap_is_in_no_sample,
    a_run_by_duration_ends,
    a_delay_of_the_wire_is_in_each_sample,
    an_open_loop_obeys_lindley,
    a_stall_is_the_largest_sample_and_told_with_its_cause,
    stamps_of_the_device_divide_each_sample,
    rows_of_several_sizes_say_where_the_parts_are,
    a_delay_of_the_wire_is_the_devices_part,
    a_schedule_that_cannot_be_kept_is_not_valid,
    a_trace_is_played,
    a_trace_from_a_pipe_is_played_for_each_size,
    thresholds_decide_the_exit_status,
    other_programs_get_their_files,
    response_times_have_no_half,
    options_that_differ_are_told_on_both_ends,
    a_device_that_is_not_there_is_told_on_both_ends,
    another_release_is_told_and_the_server_waits_on,
    a_limit_of_open_files_is_told_as_what_it_is,
    who_is_no_client_is_told_and_the_client_served,
    a_client_waits_for_a_server_that_begins_just_now,
    a_priority_that_is_not_permitted_is_told_on_both_ends,
    a_trace_that_cannot_be_played_is_told_before_any_server_is_asked,
    a_client_that_dies_is_told_by_the_server,
    a_server_that_dies_is_told_by_the_client_which_keeps_what_it_has,
    an_interrupted_client_keeps_what_it_has_and_tells_its_server,
    a_terminal_that_is_gone_ends_a_run_as_a_person_does,
    under_nohup_a_terminal_that_is_gone_ends_nothing,
    a_run_goes_on_when_nobody_reads_what_is_printed,
    a_trace_that_nobody_writes_can_be_interrupted,
    a_client_that_is_not_answered_can_be_interrupted,
    a_server_that_waits_can_be_interrupted,
    nobody_who_listens_is_said_so,
    a_port_that_is_taken_is_said_so,
    a_file_that_cannot_be_written_is_said_so,
    a_standard_output_that_is_closed_is_said_so,
    wrong_options_are_refused_at_once,
    one_changed_number_in_a_file_is_named,
    a_file_that_is_not_there_is_said_so,
    a_run_against_itself_is_no_change,
    help_names_every_option_and_the_page_has_them,
    help_of_a_command_has_its_own_options_alone,
]])
