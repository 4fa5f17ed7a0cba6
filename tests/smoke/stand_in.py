# SPDX-License-Identifier: BSD-3-Clause
"""A stand-in for tocsind's client socket, which answers what a test wants it to, well or badly."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading

import patience

COLUMNS_MAX = 100
GREETING = b"SERVER PROTOCOL 2\nOK\n"
HOSTILE = "n\x1b[31m\x07\x9b2J\u202eevil"
# Of what a terminal obeys: nothing but the end of a line may reach it.
ORDERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class StandIn:
    """Listens on a Unix socket (and on TCP if asked to). `answer(line, json)` gives the bytes of an
    answer, or the Last one; or None: the connection ends; or raises Hang: nothing is said any more.
    """

    def __init__(self, answer, greet=True, tcp=False, listening=True):
        self.directory = tempfile.mkdtemp(prefix="tocsin-stand-in-")
        self.path = os.path.join(self.directory, "tocsind.sock")
        self.answer = answer
        self.greet = greet
        self.lines = []
        self.open = []
        self.listener = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
        self.listener.bind(("127.0.0.1", 0) if tcp else self.path)
        self.where = (["--host", "127.0.0.1", "--port", str(self.listener.getsockname()[1])]
                      if tcp else ["--socket", self.path])
        self.thread = threading.Thread(target=self.accept, daemon=True)
        if listening:
            self.listen()

    def listen(self):
        self.listener.listen(16)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it never listened
        self.listener.close()
        for connection in self.open:
            connection.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def reply(self, line, state):
        if self.greet and line.startswith("CLIENT PROTOCOL"):
            return b"SERVER PROTOCOL 2\n"
        if self.greet and line.startswith("TIMEOUT"):
            return b"OK\n"
        if self.greet and line.startswith("SET COLUMNS"):
            return b"OK\n"
        if self.greet and line.startswith("SET FORMAT"):
            state["json"] = line.endswith("json")
            return b"OK\n"
        return self.answer(line, state["json"])

    def serve(self, connection):
        state = {"json": False}
        try:
            for line in connection.makefile("r", encoding="utf-8"):
                self.lines.append(line.rstrip("\n"))
                if (reply := self.reply(self.lines[-1], state)) is None:
                    break
                connection.sendall(reply)
                if isinstance(reply, Last):
                    break
            connection.shutdown(socket.SHUT_RDWR)
        except (OSError, Hang):
            pass  # the client went, or is to wait


class Hang(Exception):
    """Raised by an answer that never comes."""


class Last(bytes):
    """An answer after which the connection ends."""


def hang(*_):
    raise Hang


def as_json(value):
    return json.dumps(value).encode() + b"\n"


def health(**changed):
    """What HEALTH says of a sound ring of three."""
    return {"grade": "ok", "node": "n1", "version": "9.9", "cluster": "c", "start": 1, "view": 7,
            "digest": "0x00000000000000ff", "alive": 3, "suspect": 0, "unreachable": 0, "dead": 0,
            "left": 0, "maint": 0, "brake": False, "joined": True, "expected": 0, "missing": 0,
            "missing_nodes": "", "findings": [], **changed}


def finding(node, state="dead", **changed):
    return {"node": node, "state": state, "grade": "critical", "verdict": "agent-down",
            "evidence": "its host answers, its agent's process is gone", "maint": False,
            "since": "2026-11-21T16:05:22.132Z", "for_ns": 86399 * 10**9, **changed}


def event(number, kind="DEAD", node="n2", **changed):
    return {"sequence": number, "time": "2026-11-21T16:05:22.132Z", "event": kind, "node": node,
            "cause": "gone", "detail": "gone, seen by n1 and n3", **changed}


def link(node, mine="next", state="up"):
    return {"node": node, "state": state, "mine": mine, "theirs": "prev", "outgoing": True,
            "rtt_min_ns": 1000, "rtt_mean_ns": 170000, "rtt_max_ns": 9000, "silent_ns": 5000,
            "sent_bytes": 1, "sent_frames": 1, "received_bytes": 1, "received_frames": 1,
            "reconnects": 0, "queued_bytes": 0}


def peer(node, state="alive", host=None, maint=False):
    return {"node": node, "state": state, "host": host or f"host-{node}", "maint": maint}


def ring(told=None, peers=None, events=None, links=None):
    """The answers of an agent of which these are the facts, in JSON; in text, one line and OK."""
    told = told or health()
    peers = peers or [peer(f"n{n}") for n in range(1, 4)]
    documents = {
        "HEALTH": told,
        "PEERS": {"view": 7, "peers": peers},
        "LINKS": {"links": links if links is not None else [link("n2"), link("n3", "prev")]},
        "EVENTS": {"skipped": 0, "events": events if events is not None else [event(1)], "last": 1},
        "COUNTERS": {"overlay": {"bytes_sent": 1000, "bytes_received": 1000, "suspicions": 4,
                                 "suspicions_cleared": 3, "deaths_declared": 1}},
    }

    def answer(line, in_json):
        verb = line.split()[0]
        if in_json and verb == "PEERS" and line.strip() != "PEERS":
            kept = [row for row in peers if row["state"] == line.split()[1]]
            return as_json({"peers": kept})
        if in_json:
            return as_json(documents.get(verb, {"ok": True}))
        return f"{told['grade']}: {line}\nOK\n".encode()

    return answer


class Tocsin:
    """The program, run with nothing of the environment that it heeds but what is given."""

    HEEDED = ("TOCSIN_SOCKET", "XDG_RUNTIME_DIR", "NO_COLOR")
    # Said after two seconds without an answer, which a busy machine may take for any.
    PROGRESS = re.compile(r"^tocsin .* has not answered yet; waiting until .*\n", re.MULTILINE)

    def __init__(self, path):
        self.path = path

    def environment(self, **given):
        kept = {name: value for name, value in os.environ.items() if name not in self.HEEDED}
        return {**kept, "TERM": "xterm", **given}

    def __call__(self, *arguments, stdout=subprocess.PIPE, user=None, **environment):
        done = subprocess.run(
            [self.path, *arguments], env=self.environment(**environment), text=True,
            stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False,
            timeout=patience.HANG_SECONDS, user=user)
        done.stderr = self.PROGRESS.sub("", done.stderr)
        return done

    def ask(self, stand_in, *arguments, **environment):
        return self(arguments[0], *stand_in.where, *arguments[1:], **environment)


def expect(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, not {wanted!r}")


def expect_fit(text):
    for line in text.splitlines():
        assert len(line) <= COLUMNS_MAX, line


def expect_harmless(text):
    assert not ORDERS.search(text), repr(text)
