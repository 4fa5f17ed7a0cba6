# SPDX-License-Identifier: BSD-3-Clause
"""A guest with the kernel's Soft-RoCE, on a cable to a network namespace of this process.

The cable is a tap device. All packets are captured into memory below a private /run. Namespaces,
tap and guest end with this process, however it ends.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import cluster as clusters
import netns
import patience
import vm

HERE = pathlib.Path(__file__).resolve().parent
OURS, THEIRS = "10.77.0.1", "10.77.0.2"
OURS6, THEIRS6 = "fd77::1", "fd77::2"
ORDERS_PORT = 18900
BOOT_SECONDS = 300
GUEST_SECONDS = 3600
PROGRAM_SECONDS = 600
PROGRAMS = ("tcpdump", "tshark", "ibv_rc_pingpong", "ib_write_bw")
NETDEV = "tap,ifname=tap0,script=no,downscript=no,vhost=off"


def bound_to_us(words):
    """Wrap a command so that the kernel ends it with this process."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *map(str, words)]


class Failed(AssertionError):
    """A program failed; the text has the output of both sides."""


class Started:
    """A program on the host. Its output goes to a file, because nobody reads it during the run."""

    def __init__(self, words):
        self.output = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(bound_to_us(words), stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=subprocess.STDOUT)

    def wait(self):
        """Return exit status and output."""
        try:
            self.process.wait(PROGRAM_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with self.output:
            self.output.seek(0)
            return self.process.returncode, self.output.read()

    def wait_listening(self, port):
        def listening():
            rows = subprocess.run(["ss", "-Hltn", "sport", "=", f":{port}"], check=True,
                                  capture_output=True, text=True).stdout
            return rows or self.process.poll() is not None
        clusters.wait_until(f"port {port}", listening, PROGRAM_SECONDS)


class Ordered:
    """A program in the guest."""

    def __init__(self, words, port=None):
        self.connection = socket.create_connection((THEIRS, ORDERS_PORT), PROGRAM_SECONDS)
        self.answers = self.connection.makefile()
        order = {"words": [str(word) for word in words], "port": port}
        self.connection.sendall(json.dumps(order).encode() + b"\n")
        self.early = None

    def answer(self):
        line = self.answers.readline()
        return json.loads(line) if line else {"status": -1, "said": "(the guest is gone)"}

    def wait_listening(self, _):
        answer = self.answer()
        self.early = None if answer.get("listens") else answer

    def wait(self):
        answer = self.early or self.answer()
        self.answers.close()
        self.connection.close()
        return answer["status"], answer["said"]


class Machine:
    """The namespaces, the tap, the capture and the guest."""

    def __init__(self):
        netns.enter_namespaces()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        self.capture = pathlib.Path("/run/tap0.pcap")
        subprocess.run(["ip", "tuntap", "add", "tap0", "mode", "tap"], check=True)
        netns.ip("link set lo up", "link set tap0 addrgenmode none",
                 "link set tap0 mtu 1500 up", f"addr add {OURS}/24 dev tap0",
                 f"addr add {OURS6}/64 dev tap0 nodad")
        self.log = open("/run/guest.log", "w+", encoding="utf-8")
        self.guest = subprocess.Popen(
            bound_to_us([sys.executable, vm.__file__, "--timeout", GUEST_SECONDS,
                         "--devices", "none", "--net", NETDEV, "--", "python3",
                         HERE / "guest.py", ORDERS_PORT, f"{THEIRS}/24", f"{THEIRS6}/64"]),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        self.tcpdump = subprocess.Popen(
            bound_to_us(["tcpdump", "-i", "tap0", "-U", "-s", "0", "-B", "65536", "-Z", "root",
                         "-w", self.capture, "udp", "port", "4791"]),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        clusters.wait_until("the guest", self.answers, BOOT_SECONDS, 0.2)

    def answers(self):
        if self.guest.poll() is not None:
            self.log.seek(0)
            raise Failed(f"the guest ended: {self.log.read()}")
        try:
            socket.create_connection((THEIRS, ORDERS_PORT), 1).close()
        except OSError:
            return False
        return True

    def order(self, *words):
        """Run a short command in the guest that must succeed. Returns its output."""
        status, said = Ordered(words).wait()
        assert status == 0, f"in the guest {words} ended with {status}: {said}"
        return said

    def gid_index(self, prefix):
        """Return the index of a GID of the guest's device, whose entries are in order of arrival.
        """
        gids = "/sys/class/infiniband/rxe0/ports/1/gids"
        return self.order("sh", "-c", f"cd {gids}; grep -ls '^{prefix}' * || :").split()[0]

    def set_mtu(self, mtu):
        netns.ip(f"link set tap0 mtu {mtu}")
        self.order("ip", "link", "set", "eth0", "mtu", mtu)

    def end_capture(self):
        """End the capture after all packets were written. Returns the output of tcpdump."""
        self.tcpdump.send_signal(signal.SIGINT)
        return self.tcpdump.communicate(timeout=patience.HANG_SECONDS)[1]

    def end(self):
        for process in (self.tcpdump, self.guest):
            if process.poll() is None:
                process.kill()
            process.wait()


def run_pair(server, client, port):
    """Start both ends by these functions. Returns their outputs, the server's first."""
    first = server()
    try:
        first.wait_listening(port)
        second = client()
        client_end = second.wait()
    finally:
        server_end = first.wait()
    if server_end[0] != 0 or client_end[0] != 0:
        raise Failed(f"server ended with {server_end[0]}:\n{server_end[1]}\n"
                     f"client ended with {client_end[0]}:\n{client_end[1]}")
    return server_end[1], client_end[1]


def namespaces_and_guests_can_be_had():
    """Skip the program if namespaces or guests are unavailable."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    for wrong, reason in ((os.geteuid() != 0, "network namespaces need root"),
                          (not os.path.exists("/dev/net/tun"), "there is no /dev/net/tun"),
                          (lacking, f"not installed: {' '.join(lacking)}")):
        if wrong:
            print(f"1..0 # SKIP {reason}")
            sys.exit(0)
    vm.skip_if_unavailable()
