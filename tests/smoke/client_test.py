#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The client protocol from outside: the stand-in of ncclras, and plain sockets as people use them.

    client_test.py CLIENT_STAGE
"""

import json
import os
import socket
import subprocess
import sys

import patience
import tap

STAGE = sys.argv[1]
NCCLRAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ncclras.py")
PATIENCE_S = patience.HANG_SECONDS


class Stage:
    """The server, and n2 of its cluster to be played."""

    def __enter__(self):
        self.process = subprocess.Popen([STAGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        port, self.path = self.process.stdout.readline().decode().split()
        self.port = int(port)
        return self

    def play(self, what):
        self.process.stdin.write(what)
        self.process.stdin.flush()

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_S) == 0
        self.process.stdout.close()
        assert not os.path.exists(self.path)


def ncclras(stage, *arguments):
    done = subprocess.run(
        [sys.executable, NCCLRAS, "-h", "127.0.0.1", "-p", str(stage.port), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
        check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ncclras_gets_its_report_in_every_mode():
    with Stage() as stage:
        for arguments in ([], ["-v"], ["-t", "3"], ["-t", "0", "-v"], ["-f", "text"]):
            report = ncclras(stage, *arguments)
            assert report.startswith("Tocsin version"), report
            for section in ("\nJob summary\n", "\nCommunicators... (", "\nErrors\n",
                            "\nWarnings\n"):
                assert section in report, report


def ncclras_gets_json_that_parses():
    with Stage() as stage:
        for arguments in (["-f", "json"], ["-f", "json", "-v", "-t", "2"]):
            report = json.loads(ncclras(stage, *arguments))
            assert report["communicators"] == [] and report["tocsin"]["alive"] == 3, report


def ncclras_follows_events_until_the_agent_ends():
    for arguments, word in ((["-m"], "PEER_DEAD: Process 101 on node 10.0.0.1"),
                            (["-mall"], "PEER_DEAD"), (["--monitor=lifecycle"], "PEER_DEAD"),
                            (["-f", "json", "-m"], '"event": "PEER_DEAD"')):
        with Stage() as stage:
            client = subprocess.Popen(
                [sys.executable, NCCLRAS, "-h", "127.0.0.1", "-p", str(stage.port), *arguments],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            # Its banner says that the monitor runs.
            while "=" * 64 not in client.stderr.readline():
                pass
            stage.play(b"d")
            line = client.stdout.readline()
            while word not in line:
                assert line, word
                line = client.stdout.readline()
        _, errors = client.communicate(timeout=PATIENCE_S)
        assert client.returncode == 0 and "Connection closed by the NCCL job." in errors, errors


def answer_to(stage, text, local=False):
    """All that comes after a half-close, as `nc -N` sends it."""
    if local:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.connect(stage.path)
    else:
        stream = socket.create_connection(("127.0.0.1", stage.port))
    with stream:
        stream.settimeout(PATIENCE_S)
        stream.sendall(text)
        stream.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := stream.recv(65536):
            answer += piece
        return answer.decode()


def lines_by_a_pipe_are_answered_and_their_json_parses():
    text = b"CLIENT PROTOCOL 2\nSET FORMAT json\nVERBOSE STATUS\n"
    with Stage() as stage:
        for local in (False, True):
            answer = answer_to(stage, text, local)
            lines = answer.split("\n", 2)
            assert lines[:2] == ["SERVER PROTOCOL 2", "OK"], answer
            assert json.loads(lines[2])["communicators_count"] == 0


def every_answer_comes_before_the_end_of_a_half_closed_connection():
    with Stage() as stage:
        stage.play(b"d")
        text = b"PEERS\nHEALTH\nWHY n2\nEVENTS\nLINKS\nCOUNTERS\nCOMMS\n"
        answer = answer_to(stage, b"SET FORMAT json\n" + text).splitlines()
        assert answer[0] == "OK" and len(answer) == 8, answer
        assert not any("error" in json.loads(line) for line in answer[1:]), answer


def orders_need_the_unix_socket():
    with Stage() as stage:
        refused = json.loads(answer_to(stage, b"MAINT n2 on\n"))["error"]
        assert refused.startswith("MAINT works only through the Unix socket"), refused
        assert json.loads(answer_to(stage, b"MAINT n2 on\n", local=True)) == {"ok": True}


TESTS = [
    ncclras_gets_its_report_in_every_mode,
    ncclras_gets_json_that_parses,
    ncclras_follows_events_until_the_agent_ends,
    lines_by_a_pipe_are_answered_and_their_json_parses,
    every_answer_comes_before_the_end_of_a_half_closed_connection,
    orders_need_the_unix_socket,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
