# SPDX-License-Identifier: BSD-3-Clause
"""Two ends of tocsin-perf on the software device."""

import hashlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile

import cluster as clusters
import patience

PERF = sys.argv[1]
COLUMNS_MAX = 100
# Two ends that spin may starve the threads of the device for long where others compute, too.
PATIENT = ["--device", "soft", "--timeout", "20"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(*arguments, **environment):
    return subprocess.run([PERF, *arguments], text=True, capture_output=True, check=False,
                          timeout=patience.HANG_SECONDS, env={**os.environ, **environment})


class Server:
    """A server of one command that waits for its client; in a with."""

    def __init__(self, command, *arguments, **environment):
        self.command, self.port = command, free_port()
        self.process = subprocess.Popen(
            [PERF, command, *PATIENT, "--listen", "127.0.0.1", "--port", str(self.port),
             *arguments],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **environment})

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

    def client(self, *arguments, command=None, **environment):
        return run(command or self.command, *PATIENT, "--port", str(self.port), *arguments,
                   "127.0.0.1", **environment)


def measure(command, *arguments, **environment):
    """(the client's end, its JSON), of a run that succeeds and whose file is verified."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "r.json"
        with Server(command, **environment) as server:
            done = server.client("--json", str(path), *arguments, **environment)
            assert server.end() == (0, ""), done
        assert done.returncode == 0, done
        verified = run("verify", str(path))
        assert verified.returncode == 0, verified
        return done, json.loads(path.read_text())


def processes_of(pid):
    """It and what it started."""
    yield pid
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text(encoding="ascii").split():
            yield from processes_of(child)


def spun_seconds(process):
    """Of the thread that polls, on a processor: that of all which had most."""
    return max(int(schedstat.read_text(encoding="ascii").split()[0])
               for pid in processes_of(process.pid)
               for schedstat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def wait_for_spinning(process, seconds):
    """A thread that has spun for so long has been at it at least as long, however busy the machine
    is."""
    before = spun_seconds(process)
    clusters.wait_until("a client that plays", lambda: spun_seconds(process) >= before + seconds)


def wait_for_samples(process):
    """Of a client whose server serves it: one that is interrupted before has nothing to keep."""
    wait_for_spinning(process, 0.3)


def check_width(text):
    for line in text.splitlines():
        assert len(line) <= COLUMNS_MAX, line
        assert line == line.rstrip(), line


# The control connection as a stranger sees it: run/channel.h and run/proof.h of perf/lab.
MAGIC, VERSION = 0x46525054, 5
ERROR, HELLO, KNOCK, CHALLENGE, PROOF, PROVEN = 0, 1, 20, 21, 22, 23
PROVE, OPEN, UNKNOWN = range(3)
TOKEN = "0123456789abcdef0123456789abcdef"


def frame(kind, payload=b"", version=VERSION):
    return struct.pack("<IHHI", MAGIC, version, kind, len(payload)) + payload


def receive(stream):
    """(kind, payload) of the next frame; (None, b"") at the end."""
    header = stream.read(12)
    if len(header) < 12:
        return None, b""
    _, _, kind, size = struct.unpack("<IHHI", header)
    return kind, stream.read(size)


def hashed(data, person, key=b""):
    return hashlib.blake2b(data, key=key, person=person, digest_size=32).digest()


def knock(stream, token):
    """Ask for a challenge. Returns (answer, the function that makes the mark of a role)."""
    secret = hashed(token.encode(), b"tocsin perf tok")
    name = hashed(b"", b"tocsin perf id", secret)[:8]
    nonce = os.urandom(32)
    stream.write(frame(KNOCK, nonce + struct.pack("<H", 1) + name))
    stream.flush()
    kind, challenge = receive(stream)
    assert kind == CHALLENGE, (kind, challenge)

    def mark(role):
        marked = role + struct.pack("<H", VERSION) + name + nonce + challenge[1:33]
        return hashed(marked, b"tocsin perf prf", secret)
    return challenge[0], mark


def prove(stream, token=TOKEN):
    """Prove the token to a server, which has to prove it as well."""
    answer, mark = knock(stream, token)
    assert answer == PROVE, answer
    stream.write(frame(PROOF, mark(b"c")))
    stream.flush()
    assert receive(stream) == (PROVEN, mark(b"s"))


def hello(size=64, release=None):
    """The payload of a HELLO: a plan of 10 reads."""
    text = (release or RELEASE).encode()
    plan = struct.pack("<BBBBQQQQIQIIBIBHHHQ", 0, 0, 1, 0, 10, 0, 0, 1000, 0, 1, 1, 1, 0,
                       2 ** 32 - 1, 0, 1, 1, 1, size)
    return struct.pack("<H", len(text)) + text + plan


RELEASE = subprocess.run([PERF, "--version"], text=True, capture_output=True,
                         check=True).stdout.split()[1]
