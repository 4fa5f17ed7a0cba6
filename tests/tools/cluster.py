# SPDX-License-Identifier: BSD-3-Clause
"""Real agents on this machine, for the demo, `./dev run`, tests and the soak.

Agent i of a cluster is n<i> on an address of its own within 127/8, so that all use the standard
ports. Everything it writes is in a directory of its own below the cluster's.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import patience

CLIENT_PORT = 28029
WAIT_SECONDS_MAX = 60


class Timeout(Exception):
    """What was waited for did not come; the text says what, and the last thing seen."""


def wait_until(what, function, seconds=WAIT_SECONDS_MAX, pause=0.02):
    """The first true answer of function, asked again and again: for an event nobody announces.
    The seconds are those of a fair clock: a busy machine makes them longer. What is missing then
    is a text, or a function that makes it."""
    clock = patience.FairClock()
    while True:
        answer = function()
        if answer:
            return answer
        if clock.read() > seconds:
            raise Timeout(f"{what() if callable(what) else what}: not within {seconds} s")
        time.sleep(pause)


class Client:
    """One connection to an agent's client socket."""

    def __init__(self, where, seconds=WAIT_SECONDS_MAX):
        if isinstance(where, tuple):
            self.socket = socket.create_connection(where, timeout=seconds)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(seconds)
            self.socket.connect(str(where))
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text.encode())

    def line(self):
        while b"\n" not in self.buffer:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError(f"the agent closed behind {self.buffer!r}")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def rest(self):
        """Everything up to the end of the connection."""
        parts = [self.buffer]
        while data := self.socket.recv(65536):
            parts.append(data)
        return b"".join(parts).decode()

    def ask(self, command):
        """The answer to one of Tocsin's own commands, as an object."""
        self.send(f"SET FORMAT json\n{command}\n")
        if (line := self.line()) != "OK":
            raise ValueError(f"SET FORMAT json: {line}")
        return json.loads(self.line())


class Agent:
    """One agent: its files, its process."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.name = f"n{number}"
        self.address = cluster.address(number)
        self.directory = cluster.directory / self.name
        self.directory.mkdir()
        self.socket = self.directory / "tocsind.sock"
        self.log = self.directory / "log"
        self.config = self.directory / "tocsin.conf"
        self.own = {}  # settings that only this agent has
        self.without = set()  # settings that its program does not know
        self.program = cluster.tocsind
        self.process = None

    def settings(self):
        base = {
            "node.name": self.name, "node.host": f"host-{self.name}",
            "node.state_directory": self.directory / "state",
            "overlay.listen": self.address, "overlay.join": self.cluster.join,
            "overlay.key": self.cluster.key or "",
            "client.listen": self.address, "client.socket": self.socket,
            "http.listen": self.address, "worker.pin": "no", "history.size": "2MiB",
        }
        merged = {**base, **self.cluster.settings, **self.own}
        return {key: value for key, value in merged.items() if key not in self.without}

    def configure(self, **own):
        """Writes the configuration anew; section__key=value is added to what was set before."""
        self.own.update({key.replace("__", "."): value for key, value in own.items()})
        sections = {}
        for key, value in self.settings().items():
            section, name = key.rsplit(".", 1)
            sections.setdefault(section.replace(".", " "), []).append(f"{name} = {value}\n")
        self.config.write_text("".join(
            f"[{section}]\n{''.join(lines)}" for section, lines in sections.items()))

    def start(self, around=(), environment=None, log=None):
        """Starts it, perhaps by a command that ends in it, and with its log elsewhere."""
        self.configure()
        command = [*around, str(self.program), "--foreground", "--config",
                   str(self.config)]
        with open(log or self.log, "ab") as out:
            # EAL's files too: another cluster on this machine has an n1 as well.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={**os.environ, "RUNTIME_DIRECTORY": str(self.directory),
                     **(environment or {})})
        return self

    def set_faults(self, faults):
        """Of its software device, under way."""
        before = self.log.read_text().count(" reloaded ")
        self.configure(device__soft0__faults=faults)
        self.signal(signal.SIGHUP)
        wait_until("the reload", lambda: self.log.read_text().count(" reloaded ") > before)

    def paths_seen(self, name):
        """How it saw its path to another, in order, by its log."""
        return re.findall(rf" rdma_path peer={name} .* seen=(\S+) ", self.log.read_text())

    def client(self, seconds=WAIT_SECONDS_MAX):
        return Client(self.socket, seconds)

    def ask(self, command, seconds=WAIT_SECONDS_MAX):
        with self.client(seconds) as client:
            return client.ask(command)

    def answers(self):
        try:
            return self.ask("COUNTERS", 5) is not None
        except (OSError, EOFError, ValueError):
            return False

    def peers(self):
        """name -> state, as the table of this agent has it."""
        return {peer["node"]: peer["state"] for peer in self.ask("PEERS")["peers"]
                if peer["state"] != "missing"}

    def counters(self):
        return self.ask("COUNTERS")

    def events(self, kind=None, node=None, since=0):
        """What happened as this agent saw it, the oldest first."""
        return [event for event in self.ask(f"EVENTS {since}")["events"]
                if kind in (None, event["event"]) and node in (None, event["node"])]

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def leave(self):
        """Asks it to leave; its exit status."""
        self.signal(signal.SIGTERM)
        return self.process.wait(patience.HANG_SECONDS)

    def running(self):
        return self.process is not None and self.process.poll() is None


class Cluster:
    """A number of agents in one directory, which go when it does."""

    made = 0

    def __init__(self, build, count, directory=None, key=True, settings=None):
        self.tocsind = pathlib.Path(build) / "agent" / "tocsind"
        self.tocsin = pathlib.Path(build) / "agent" / "tocsin"
        self.settings = settings or {}
        self.own_directory = directory is None
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="tocsin-"))
        # Clusters that run at the same time must not meet: 62,720 blocks, by process. 127.64 is
        # left to programs on software devices of their own (tocsin soft-run).
        block = (os.getpid() + 7919 * Cluster.made) % (245 * 256)
        Cluster.made += 1
        octet = block // 256 + 1
        self.block = f"127.{octet + (octet >= 64)}.{block % 256}"
        self.key = self.make_key() if key else None
        self.join = ",".join(self.address(number) for number in range(1, min(count, 3) + 1))
        self.agents = [Agent(self, number) for number in range(1, count + 1)]

    def address(self, number):
        return f"{self.block}.{number}"

    def make_key(self):
        path = self.directory / "key"
        if not path.exists():
            subprocess.run([str(self.tocsin), "keygen", "--output", str(path)], check=True,
                           stdout=subprocess.DEVNULL)
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        if self.own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self):
        for agent in self.agents:
            agent.start()
        return self

    def running(self):
        return [agent for agent in self.agents if agent.running()]

    def stop(self):
        for agent in self.running():
            agent.signal(signal.SIGCONT)
            agent.signal(signal.SIGKILL)
            agent.process.wait()

    def agree(self, names, state, among=None):
        """Whether every agent asked sees all these names in this state."""
        for agent in among or self.running():
            try:
                peers = agent.peers()
            except (OSError, EOFError):
                return False
            if any(peers.get(name) != state for name in names):
                return False
        return True

    def paths_are_known(self):
        """Whether every agent knows what is usual on each path that it reads steadily."""
        rows = [path for agent in self.running() for path in agent.ask("PATHS")["paths"]
                if path["steady"]]
        return rows and all(path["baseline_ns"] for path in rows)

    def wait_ring(self, seconds=WAIT_SECONDS_MAX):
        """Until every running agent sees every running agent alive."""
        names = [agent.name for agent in self.running()]
        wait_until("one ring", lambda: self.agree(names, "alive"), seconds)

    def logs(self):
        """What the agents said, for a test that failed."""
        return "\n".join(f"== {agent.name}\n{agent.log.read_text(errors='replace')}"
                         for agent in self.agents if agent.log.exists())
