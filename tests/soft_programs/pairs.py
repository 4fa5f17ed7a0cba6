# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs under `tocsin soft-run`, alone or as server and client, on any wire.

A wire gives the soft-run options of each end. The programs exchange their details by TCP, on a port
that was free a moment ago.
"""

import contextlib
import ctypes
import os
import re
import shutil
import socket
import subprocess
import tempfile

import cluster as clusters
import tap

PATIENCE_S = 300  # for one program on a busy machine; no test judges time
ATTEMPTS = 3      # to get a port before another program does
CLONE_NEWNET = 0x40000000
LISTENS = "0A"    # state "listen" of /proc/net/tcp
OPENED = re.compile(r"^(\S+) on (\S+) \((\w+)\)$", re.MULTILINE)


class Udp:
    """Each end has its own address of 127.64/16, which the device chooses."""
    name = "udp"

    @contextlib.contextmanager
    def ends(self):
        yield [], []


def dpdk_ends(server, client):
    """Return the ends of two DPDK ports, with addresses that are unique on this machine."""
    return (["--wire", f"dpdk:{server}", "--address", "198.51.100.1"],
            ["--wire", f"dpdk:{client}", "--address", "198.51.100.2"])


class Memif:
    """Shared memory between two processes."""
    name = "memif"

    @contextlib.contextmanager
    def ends(self):
        port = f"net_memif0,socket=tocsin-programs-{os.getpid()},role="
        yield dpdk_ends(port + "server", port + "client")


class Veth:
    """The ends of a veth pair in a network namespace that ends with this process. The interface
    indexes are far apart. DPDK's driver combines the index and the process id into a number,
    which must be unique in a namespace."""
    name = "veth"
    COMMANDS = ("link set lo up",
                "link add va index 4096 mtu 9000 type veth peer name vb index 8192 mtu 9000",
                "link set va addrgenmode none", "link set vb addrgenmode none",
                "link set va up", "link set vb up")

    def __init__(self):
        self.made = False

    def make(self):
        if os.geteuid() != 0:
            raise tap.Skip("a network namespace needs root")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET) != 0:
            raise tap.Skip(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        done = subprocess.run(["ip", "-batch", "-"], input="\n".join(self.COMMANDS) + "\n",
                              text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        self.made = True

    @contextlib.contextmanager
    def ends(self):
        if not self.made:
            self.make()
        yield dpdk_ends("net_af_packet0,iface=va", "net_af_packet0,iface=vb")


class Kit:
    """Path of tocsin, and the additional environment of programs."""

    def __init__(self, tocsin, sanitizer=None, preload=None):
        self.tocsin = tocsin
        self.environment = {**os.environ}
        for name in ("WIRE", "ADDRESS", "FAULTS", "NAME", "SAY"):
            self.environment.pop("TOCSIN_SOFT_" + name, None)
        if preload:
            self.environment["LD_PRELOAD"] = preload
        if sanitizer:
            # A sanitizer that a library brings into a foreign program must be loaded first. Leaks
            # of that program are ignored.
            self.environment["LD_PRELOAD"] = sanitizer
            self.environment["ASAN_OPTIONS"] = "detect_leaks=0"

    def command(self, soft, *program):
        """Return the command with a software device, or with the machine's devices (soft is None).
        """
        if soft is None:
            return list(map(str, program))
        return [self.tocsin, "soft-run", *soft, "--", *map(str, program)]

    def run(self, *program, soft=(), **environment):
        """Run a program. Returns its output and how it ended."""
        return subprocess.run(
            self.command(soft, *program), env={**self.environment, **environment}, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)

    @contextlib.contextmanager
    def started(self, *program, soft=()):
        """Start a program. Its output goes to files, so nobody has to drain it."""
        with contextlib.ExitStack() as stack:
            out, err = (stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2))
            process = subprocess.Popen(
                self.command(soft, *program), env=self.environment, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err)
            try:
                yield Started(process, out, err)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()


class Started:
    def __init__(self, process, out, err):
        self.process, self.files = process, (out, err)

    def said(self):
        """Return both outputs so far."""
        texts = []
        for file in self.files:
            file.seek(0)
            texts.append(file.read())
        return texts

    def address(self):
        """Return the address of its device, once it has printed it."""
        def asked():
            found = OPENED.search(self.said()[1])
            assert found or self.process.poll() is None, self.said()
            return found
        return clusters.wait_until("an address", asked, PATIENCE_S).group(2)

    def end(self):
        status = self.process.wait(timeout=PATIENCE_S)
        return status, *self.said()


def needs(program):
    if shutil.which(program) is None:
        raise tap.Skip(f"{program} is not installed")


def free_port():
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return probe.getsockname()[1]


def is_listening(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as lines:
            for line in list(lines)[1:]:
                _, local, _, state = line.split()[:4]
                if state == LISTENS and int(local.rsplit(":", 1)[1], 16) == port:
                    return True
    return False


def attempt(kit, ends, program, server_options, client_options):
    """Return (status, stdout, stderr) of both ends; None if the server ended before it listened."""
    port = free_port()
    words = [program, "-p", port]
    with kit.started(*words, *server_options, soft=ends[0]) as server:
        clusters.wait_until("a server that listens", lambda: is_listening(port) or
                            server.process.poll() is not None, PATIENCE_S)
        if server.process.poll() is not None:
            return None, server.end()
        client = kit.run(*words, *client_options, "127.0.0.1", soft=ends[1])
        if client.returncode != 0:
            server.process.terminate()
        return (client.returncode, client.stdout, client.stderr), server.end()


def run_pair(kit, wire, program, *options, client=(), server=()):
    """Run both ends to completion. Returns their outputs. A failure shows both."""
    needs(program)
    with wire.ends() as ends:
        for _ in range(ATTEMPTS):
            ours, theirs = attempt(kit, ends, program, [*options, *server], [*options, *client])
            if ours is not None:
                break
    for end in (ours, theirs):
        assert end is not None and end[0] == 0, \
            f"{program} {options}: client {ours}, server {theirs}"
    return ours[1], theirs[1]
