#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf` through running agents: lat --via-agent, mesh --agents, and agents that are old,
gone or none.

    perf_agents_test.py TOCSIN-PERF BUILD-ROOT
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import agents
import cluster as clusters
import lab_ends
import patience
import tap

DELAY_NS = 1000000
CLUSTER = clusters.Cluster(sys.argv[2], 4)
SLOW = CLUSTER.agents[3]


def socket_of(agent):
    return ["--agent", str(agent.socket)]


def lat(agent, node, *arguments):
    return lab_ends.run("lat", "--via-agent", node, *socket_of(agent), *arguments)


def mesh(*arguments):
    return lab_ends.run("mesh", "--agents", *socket_of(CLUSTER.agents[0]), *arguments)


def read(path):
    verified = lab_ends.run("verify", str(path))
    assert verified.returncode == 0, verified
    return json.loads(path.read_text())


def an_agent_measures_and_its_samples_are_a_run():
    SLOW.configure(device__soft0__faults=f"delay={DELAY_NS // 1000000}ms")
    CLUSTER.start()
    CLUSTER.wait_ring(agents.WAIT_SECONDS)
    with tempfile.TemporaryDirectory() as directory:
        path, page = pathlib.Path(directory) / "v.json", pathlib.Path(directory) / "v.html"
        done = lat(CLUSTER.agents[0], "n2", "--size", "64,64KiB", "--iterations", "700", "--json",
                   str(path), "--html", str(page))
        assert done.returncode == 0 and "measured by agents" in done.stdout, done
        assert "memory:" not in done.stdout, done
        lab_ends.check_width(done.stdout)
        result = read(path)
        assert "Latency of read" in page.read_text() and result["incomplete"] == ""
        assert result["plan"]["policy"] == "agent" and result["plan"]["op"] == "read"
        assert result["environment"]["server"]["host"] == "n2"
        for size in result["results"]:
            figures = size["times"]["figures"]
            assert size["complete"] and figures["count"] == 700, figures
            assert 0 < figures["min_ns"] <= figures["max_ns"] <= size["took_ns"], size["took_ns"]


def a_delay_of_the_path_is_in_each_sample():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "v.json"
        done = lat(CLUSTER.agents[0], SLOW.name, "--iterations", "40", "--json", str(path),
                   "--fail-if", "min>900us")
        assert done.returncode == 1 and "FAILED" in done.stderr, done
        assert read(path)["results"][0]["times"]["figures"]["min_ns"] >= DELAY_NS


def a_mesh_of_agents_has_the_delay_of_the_node_that_is_slow():
    with tempfile.TemporaryDirectory() as directory:
        path, page = pathlib.Path(directory) / "m.json", pathlib.Path(directory) / "m.html"
        done = mesh("--iterations", "50", "--json", str(path), "--html", str(page))
        assert done.returncode in (1, 3) and "mesh of 4 nodes" in done.stdout, done
        lab_ends.check_width(done.stdout)
        result = read(path)
        causes = {(cause["kind"], cause["one"]) for cause in result["summary"]["causes"]}
        if 2 * result["summary"]["median_ns"] < DELAY_NS:  # this machine is not slower than that
            assert done.returncode == 1 and ("node", 3) in causes, result["summary"]
        assert result["summary"]["measured"] == 12 and not result["shared_host"], result["summary"]
        assert all(cell["count"] == 50 for cell in result["cells"])
        for cell in result["cells"]:
            slow = cell["figures"]["min_ns"] >= DELAY_NS
            assert slow == (3 in (cell["from"], cell["to"])), cell
        assert "Mesh of 4 nodes" in page.read_text() and '"policy":"agent"' in page.read_text()


def questions_that_agents_do_not_answer_are_refused_at_once():
    for arguments, said in [
            (["lat", "--via-agent", "n1", "--op", "write"], "agents only read"),
            (["lat", "--via-agent", "n1", "--policy", "spin"],
             "--policy: cannot be used with --via-agent"),
            (["lat", "--via-agent", "n1", "--device", "soft"],
             "--device: cannot be used with --via-agent"),
            (["lat", "--via-agent", "n1", "--runs", "3"],
             "--runs: cannot be used with --via-agent"),
            (["lat", "--via-agent", "n1", "--duration", "1s"],
             "--duration: cannot be used with --via-agent"),
            (["lat", "--via-agent", "n1", "--size", "128KiB"], "at most 64KiB"),
            (["lat", "--via-agent", "n1", "--iterations", "65521"], "at most 65520"),
            (["lat", "--via-agent", "n1 n2"], "is not a valid node name"),
            (["lat", "--via-agent", "n1", "h"], "cannot be used with a HOST"),
            (["lat", "--agent", "x", "h"], "needs --via-agent"),
            (["lat", "--via-agent", "n1", "--agent", "x" * 200], "not a valid path of a socket"),
            (["bw", "--via-agent", "n1"], "agents only read"),
            (["mesh", "--agents", "--op", "send"], "agents only read"),
            (["mesh", "--agents", "--local", "2"], "--agents"),
            (["mesh", "--agents", "--at-once", "2"], "--agents"),
            (["mesh", "--agents", "--cores", "0"], "--cores"),
            (["mesh", "--agents", "--iterations", "10001"], "at most 10000"),
            (["mesh", "--local", "2", "--agent", "x"], "needs --via-agent"),
            (["mesh", "--local", "2", "--via-agent", "n1"], "cannot be used with mesh")]:
        done = lab_ends.run(*arguments)
        assert done.returncode == 2 and said in done.stderr and done.stdout == "", (
            arguments, done)


def who_cannot_be_asked_is_named():
    done = lat(CLUSTER.agents[0], "nobody")
    assert done.returncode == 4 and 'no node "nobody" is known' in done.stderr, done
    done = lab_ends.run("lat", "--via-agent", "n1", "--agent", "/nowhere/agent.sock")
    assert done.returncode == 4 and "/nowhere/agent.sock" in done.stderr, done
    assert "is tocsind running?" in done.stderr, done
    for path in ("", "/x" * 60):
        done = subprocess.run([lab_ends.PERF, "lat", "--via-agent", "n1"], text=True, check=False,
                              capture_output=True, env={**os.environ, "TOCSIN_SOCKET": path})
        assert done.returncode == 4 and "$TOCSIN_SOCKET" in done.stderr, done


class Impostor:
    """Answers on a Unix socket what it was told; in a with."""

    def __init__(self, directory, *answers):
        self.path, self.answers = f"{directory}/agent.sock", list(answers)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        one, _ = self.listener.accept()
        with one, one.makefile("r") as lines:
            for answer in self.answers:
                if not lines.readline():
                    return
                one.sendall(answer.encode())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join(patience.HANG_SECONDS)
        self.listener.close()


def what_many_reads_of_another_node_may_take_is_said():
    """As many as are allowed, of 1.5 ms each, take longer than an agent waits for another one."""
    peers = [{"node": "n1", "state": "alive", "self": True}, {"node": "n2", "state": "alive"}]
    replies = {"CLIENT": "SERVER PROTOCOL 2", "SET": "OK", "TIMEOUT": "OK",
               "PEERS": json.dumps({"peers": peers})}
    heard = []

    def serve(listener):
        while True:
            one, _ = listener.accept()
            with one, one.makefile("r") as lines:
                while line := lines.readline().strip():
                    heard.append(line)
                    reply = replies.get(line.split()[0], '{"error": "no"}')
                    one.sendall(f"{reply}\n".encode())

    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{directory}/agent.sock")
        listener.listen()
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        for count in ("1000", "10000"):
            lab_ends.run("mesh", "--agents", "--agent", f"{directory}/agent.sock",
                         "--iterations", count)
    asked = [line for line in heard if "PROBE" in line or "TIMEOUT" in line]
    assert asked == ["PROBE n2 1528 64 0 times", "NODE n2 PROBE n1 1528 64 0 times",
                     "PROBE n2 10528 64 0 times", "TIMEOUT 50",
                     "NODE n2 PROBE n1 10528 64 0 times"], asked


def answer_of(last, took_ns=1000):
    """An answer to the first question, of 256 reads, with this for the last."""
    return json.dumps({"times_ns": [1000] * 255 + [last], "took_ns": took_ns}) + "\n"


def agents_that_are_old_or_none_are_told_apart():
    hello = ["SERVER PROTOCOL 2\n", "OK\n"]
    old = '{"error": "PROBE node [count [bytes [microseconds]]]"}\n'
    for answers, said in [
            ([*hello, old], "of an older version"),
            (["220 mail.example.com ESMTP\x1b[2J\n"],
             'is not tocsind: it answered "220 mail.example'),
            ([*hello, "{\n"], 'is not tocsind: it answered "{"'),
            ([*hello, "[1]\n"], 'is not tocsind: it answered "[1]"'),
            ([*hello, '{"times_ns": [1, 2]}\n'], "returned 2 times for 256 reads"),
            ([*hello, answer_of("1000")], "times_ns[255] is not a valid time"),
            ([*hello, answer_of(-1)], "times_ns[255] is not a valid time"),
            ([*hello, answer_of(1 << 60)], "times_ns[255] is not a valid time"),
            ([*hello, answer_of(1000, -5)], "took_ns is not a valid time"),
            ([*hello, '{"error": "a\\u001b[2Jb"}\n'], r"the agent says: a\x1b[2Jb"),
            ([*hello, ""], "ended the connection before its answer was complete")]:
        with tempfile.TemporaryDirectory() as directory, Impostor(directory, *answers) as one:
            done = lab_ends.run("lat", "--via-agent", "n1", "--agent", one.path)
        assert done.returncode == 4 and said in done.stderr, (answers, done)
        assert "\x1b" not in done.stderr, done.stderr


def start_lat(node, *arguments):
    return subprocess.Popen(
        [lab_ends.PERF, "lat", "--via-agent", node, *socket_of(CLUSTER.agents[1]), "--iterations",
         "60000", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ)


def wait_connected(process):
    """Until it has a socket: signals are its own to take by then."""
    def has_socket():
        return any(os.readlink(each).startswith("socket:")
                   for each in pathlib.Path(f"/proc/{process.pid}/fd").iterdir())

    agents.wait_until("a socket of the client", has_socket, pause=0.01)


def an_interrupted_client_ends_at_once():
    process = start_lat(SLOW.name)
    wait_connected(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=patience.HANG_SECONDS)
    assert process.returncode != 0 and "interrupted" in err, (process.returncode, err)


def agents_that_die_are_told():
    third, ours = CLUSTER.agents[2], CLUSTER.agents[1]
    third.kill()
    agents.wait_for_state(CLUSTER, third.name, "dead", CLUSTER.running())
    done = lat(CLUSTER.agents[0], third.name)
    assert done.returncode == 4 and "is dead or has left" in done.stderr, done
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "m.json"
        done = mesh("--iterations", "50", "--json", str(path))
        assert done.returncode == 4 and "n3 is not alive" in done.stdout, done
        result = read(path)
        assert result["summary"]["measured"] == 6, result["summary"]
    process = start_lat(SLOW.name)
    wait_connected(process)
    ours.kill()
    _, err = process.communicate(timeout=patience.HANG_SECONDS)
    assert process.returncode == 4, (process.returncode, err)
    assert "ended the connection" in err or "cannot reach the agent" in err, err


with CLUSTER:
    tap.run([(name.__name__.replace("_", " "), name) for name in [
        questions_that_agents_do_not_answer_are_refused_at_once,
        agents_that_are_old_or_none_are_told_apart,
        what_many_reads_of_another_node_may_take_is_said,
        an_agent_measures_and_its_samples_are_a_run,
        a_delay_of_the_path_is_in_each_sample,
        a_mesh_of_agents_has_the_delay_of_the_node_that_is_slow,
        who_cannot_be_asked_is_named,
        an_interrupted_client_ends_at_once,
        agents_that_die_are_told,
    ]])
