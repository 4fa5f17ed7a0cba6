#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Servers of `tocsin-perf` beside strangers: who is served, who is refused, and what it costs.

    perf_strangers_test.py TOCSIN-PERF
"""

import contextlib
import os
import pathlib
import socket
import stat
import subprocess
import tempfile
import time

import cluster as clusters
import lab_ends
import patience
import tap

SILENT = 14
FEW = ["--iterations", "50"]
OTHER = "f" * 32


@contextlib.contextmanager
def apart():
    """Two runtime directories: no end finds the token that the other one published."""
    with tempfile.TemporaryDirectory() as name:
        places = [pathlib.Path(name) / end for end in ("server", "client")]
        for place in places:
            place.mkdir(mode=0o700)
        yield [{"XDG_RUNTIME_DIR": str(place)} for place in places]


@contextlib.contextmanager
def connection(server):
    with socket.create_connection(("127.0.0.1", server.port),
                                  timeout=patience.HANG_SECONDS) as one, \
            one.makefile("rwb") as stream:
        yield stream


def answer_to(server, sent, token=None):
    """The text that refuses a connection."""
    with connection(server) as stream:
        if token is not None:
            lab_ends.prove(stream, token)
        stream.write(sent)
        stream.flush()
        kind, payload = lab_ends.receive(stream)
        while kind not in (lab_ends.ERROR, None):
            kind, payload = lab_ends.receive(stream)
    assert kind == lab_ends.ERROR, (sent, kind)
    return payload.decode()


def status_of(process, word):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(text.split(word + ":")[1].split()[0])


def a_server_outlives_strangers_while_a_client_is_served():
    with contextlib.ExitStack() as stack:
        file = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) / "token"
        ends = stack.enter_context(apart())
        server = stack.enter_context(lab_ends.Server("lat", "--token-file", str(file), **ends[0]))
        for _ in range(SILENT):
            stack.enter_context(connection(server))
        knock = lab_ends.frame(lab_ends.KNOCK, bytes(34))
        for sent, said in [
                (b"x" * 12, "is not tocsin-perf"),
                (os.urandom(12), "is not tocsin-perf"),
                (lab_ends.frame(lab_ends.HELLO, lab_ends.hello()),
                 "does not begin with a proof"),
                (lab_ends.frame(lab_ends.HELLO, b"short"), "does not begin with a proof"),
                (lab_ends.frame(lab_ends.HELLO, lab_ends.hello(200 << 30)),
                 "does not begin with a proof"),
                (lab_ends.frame(lab_ends.HELLO, bytes(129)), "at most 128"),
                (knock, "does not have the token of this server")]:
            text = answer_to(server, sent)
            assert said in text, (sent, text)
        half = stack.enter_context(connection(server))
        assert lab_ends.knock(half, file.read_text().strip())[0] == lab_ends.PROVE
        with connection(server) as stream:
            assert lab_ends.knock(stream, OTHER)[0] == lab_ends.UNKNOWN
        assert server.process.poll() is None
        assert status_of(server.process, "VmLck") == 0
        done = server.client(*FEW, "--token-file", str(file), **ends[1])
        status, err = server.end()
    assert (done.returncode, status) == (0, 0), (done, status, err)
    lines = err.splitlines()
    assert lines and all("is not a client, still waiting: " in line for line in lines), err


def lines_about_strangers_come_once_per_second():
    with lab_ends.Server("lat") as server:
        began = time.monotonic()
        for _ in range(40):
            answer_to(server, b"x" * 12)
        seconds = time.monotonic() - began
        done = server.client(*FEW)
        status, err = server.end()
    assert (done.returncode, status) == (0, 0), (done, status, err)
    assert 1 <= len(err.splitlines()) <= 2 + seconds, (seconds, err)


def the_token_file_is_for_its_user_and_admits_a_client():
    with tempfile.TemporaryDirectory() as directory, apart() as ends:
        file = pathlib.Path(directory) / "token"
        with lab_ends.Server("lat", "--token-file", str(file), **ends[0]) as server:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            token = file.read_text().strip()
            words = pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
            assert token.encode() not in words, words
            done = server.client(*FEW, **ends[1])
            assert done.returncode == 4, done
            assert f"the server 127.0.0.1:{server.port} asks for its token: pass --token-file " \
                "or TOCSIN_PERF_TOKEN" in done.stderr, done
            done = server.client(*FEW, **ends[1], TOCSIN_PERF_TOKEN=OTHER)
            assert done.returncode == 4, done
            assert "has another token than TOCSIN_PERF_TOKEN" in done.stderr, done
            file.chmod(0o644)
            done = server.client(*FEW, "--token-file", str(file), **ends[1])
            assert done.returncode == 4 and "mode 0644" in done.stderr, done
            file.chmod(0o600)
            done = server.client(*FEW, **ends[1], TOCSIN_PERF_TOKEN=token)
            assert done.returncode == 0 and server.end()[0] == 0, done


def the_token_is_printed_where_others_can_connect():
    port = lab_ends.free_port()
    with subprocess.Popen([lab_ends.PERF, "lat", *lab_ends.PATIENT, "--port", str(port)],
                          text=True, stdout=subprocess.PIPE) as process:
        lines = [process.stdout.readline() for _ in range(2)]
        done = lab_ends.run("lat", *lab_ends.PATIENT, "--port", str(port), *FEW, "127.0.0.1")
        process.stdout.read()
        assert (done.returncode, process.wait(patience.HANG_SECONDS)) == (0, 0), done
    assert lines[0].startswith("Waits for a client on "), lines
    assert lines[1].startswith("Its token is "), lines


def one_token_is_valid_for_all_runs():
    with tempfile.TemporaryDirectory() as directory, apart() as ends:
        file = pathlib.Path(directory) / "token"
        with lab_ends.Server("lat", "--token-file", str(file), **ends[0]) as server:
            before = file.read_text()
            done = server.client(*FEW, "--runs", "2", "--token-file", str(file), **ends[1])
            assert done.returncode == 0, done
            assert server.end()[0] == 0 and file.read_text() == before


def the_key_of_the_cluster_is_enough():
    with tempfile.TemporaryDirectory() as directory, apart() as ends:
        key, wrong = (pathlib.Path(directory) / name for name in ("key", "wrong"))
        for file, digit in [(key, "1"), (wrong, "2")]:
            file.write_text(f"tocsin-key-1 {digit * 64}\n")
            file.chmod(0o600)
        with lab_ends.Server("lat", "--key-file", str(key), **ends[0]) as server:
            done = server.client(*FEW, "--key-file", str(wrong), **ends[1])
            assert done.returncode == 4, done
            assert "does not know the key of this cluster" in done.stderr, done
            done = server.client(*FEW, "--key-file", "/nonexistent/key", **ends[1])
            assert done.returncode == 4 and "/nonexistent/key" in done.stderr, done
            done = server.client(*FEW, "--key-file", str(key), **ends[1])
            assert done.returncode == 0 and server.end()[0] == 0, done


def an_open_server_serves_anybody_and_bounds_the_plan():
    with apart() as ends, lab_ends.Server("lat", "--open", **ends[0]) as server:
        knock = lab_ends.frame(lab_ends.KNOCK, bytes(34))
        for size in (200 << 30, 2 ** 64 - 1):
            sent = knock + lab_ends.frame(lab_ends.HELLO, lab_ends.hello(size))
            text = answer_to(server, sent)
            assert f"a size of {size} B: it must be from 1 B to 8 MiB" in text, text
        assert status_of(server.process, "VmLck") == 0
        done = server.client(*FEW, **ends[1], TOCSIN_PERF_TOKEN=OTHER)
        assert done.returncode == 4 and "runs with --open and proves nothing" in done.stderr, done
        done = server.client(*FEW, **ends[1])
        status, err = server.end()
    assert (done.returncode, status) == (0, 0), (done, status, err)
    assert "tocsin-perf: --open: the first client is served without a proof\n" in err, err


def a_server_that_does_not_hold_the_token_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as rogue:
        with subprocess.Popen([lab_ends.PERF, "lat", "--port", str(rogue.getsockname()[1]),
                               "127.0.0.1"], text=True, stderr=subprocess.PIPE,
                              env={**os.environ, "TOCSIN_PERF_TOKEN": lab_ends.TOKEN}) as client:
            one, _ = rogue.accept()
            with one, one.makefile("rwb") as stream:
                kind, knock = lab_ends.receive(stream)
                assert kind == lab_ends.KNOCK, kind
                stream.write(lab_ends.frame(lab_ends.CHALLENGE, bytes(33) + knock[34:42]))
                stream.flush()
                kind, mark = lab_ends.receive(stream)
                assert kind == lab_ends.PROOF, kind
                stream.write(lab_ends.frame(lab_ends.PROVEN, mark))  # reflected
                stream.flush()
                err = client.stderr.read()
        assert client.returncode == 4, err
        assert "does not prove that it has the same token or key" in err, err


def silent_connections_delay_no_mesh():
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        place = pathlib.Path(directory) / "place"
        words = [lab_ends.PERF, "mesh", *lab_ends.PATIENT, *FEW, "--ranks", "2",
                 "--rendezvous", f"file:{place}", "--rank"]
        lead = stack.enter_context(subprocess.Popen([*words, "0"], text=True,
                                                    stdout=subprocess.PIPE,
                                                    stderr=subprocess.PIPE))
        clusters.wait_until("a rendezvous file", place.exists)
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        port = int(place.read_text().split()[1])
        for _ in range(SILENT):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        second = subprocess.run([*words, "1"], text=True, capture_output=True, check=False,
                                timeout=patience.HANG_SECONDS)
        out, err = lead.communicate(timeout=patience.HANG_SECONDS)
        assert (lead.returncode, second.returncode) == (0, 0), (out, err, second)
        assert "2 of 2 measured" in err, err


def a_process_without_the_token_is_told_what_is_missing():
    port = str(lab_ends.free_port())
    with apart() as ends:
        words = [lab_ends.PERF, "mesh", *lab_ends.PATIENT, *FEW, "--ranks", "2",
                 "--rendezvous", f"127.0.0.1:{port}", "--port", port, "--rank"]
        with subprocess.Popen([*words, "0"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, **ends[0]}) as lead:
            second = subprocess.run([*words, "1"], text=True, capture_output=True, check=False,
                                    timeout=patience.HANG_SECONDS, env={**os.environ, **ends[1]})
            assert second.returncode == 4, second
            assert f"process 0 of the mesh at 127.0.0.1:{port} asks for its token: pass " \
                "--token-file or TOCSIN_PERF_TOKEN" in second.stderr, second
            lead.kill()
            lead.communicate()


tap.run([(name.__name__.replace("_", " "), name) for name in [
    a_server_outlives_strangers_while_a_client_is_served,
    lines_about_strangers_come_once_per_second,
    the_token_file_is_for_its_user_and_admits_a_client,
    the_token_is_printed_where_others_can_connect,
    one_token_is_valid_for_all_runs,
    the_key_of_the_cluster_is_enough,
    an_open_server_serves_anybody_and_bounds_the_plan,
    a_server_that_does_not_hold_the_token_is_refused,
    silent_connections_delay_no_mesh,
    a_process_without_the_token_is_told_what_is_missing,
]])
