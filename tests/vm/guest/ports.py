# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for a guest with PCI ports: drivers, peers at the other ends of the cables, and QEMU's
monitor."""

import contextlib
import json
import os
import pathlib
import re
import subprocess

import cluster as clusters

SECONDS = 300  # for any wait, in an emulated guest
PERFTEST_PORT, OPERATIONS_PORT = 18515, 18700
# 2 s: an emulated e1000 receives nothing for one second after its start.
PATIENT = ("-u", "19")
PCI = pathlib.Path("/sys/bus/pci")
PORT = {"virtio": "0000:01:00.0", "e1000": "0000:00:10.0", "udp": "0000:00:11.0",
        "rxe": "0000:00:12.0"}
NAME = {"virtio": "port0", "e1000": "port1", "udp": "port2", "rxe": "port3"}
RXE, UDP = "10.0.0.1", "10.0.0.2"
RXE6 = "fd00::1"


def said(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=True, timeout=SECONDS).stdout


def driver(kind):
    link = PCI / "devices" / PORT[kind] / "driver"
    return link.resolve().name if link.exists() else ""


def bind(kind, name):
    """Bind a port to a driver of the kernel, or to none."""
    device = PCI / "devices" / PORT[kind]
    if driver(kind):
        (device / "driver" / "unbind").write_text(PORT[kind], encoding="ascii")
    (device / "driver_override").write_text((name or "none") + "\n", encoding="ascii")
    (PCI / "drivers_probe").write_text(PORT[kind], encoding="ascii")
    assert driver(kind) == name, (kind, name, driver(kind))


def is_there(kind):
    return (PCI / "devices" / PORT[kind]).exists()


def interface(kind):
    """Return the kernel's name of the port."""
    return next((PCI / "devices" / PORT[kind]).glob("virtio*/net/*")).name


class Monitor:
    """QEMU's monitor protocol: one line of JSON per request and answer, with events in between."""

    def __init__(self):
        self.file = os.open("/dev/vport0p4", os.O_RDWR | os.O_CLOEXEC)
        self.rest = b""
        # Fails if another program of this guest uses it.
        self.answer_to("qmp_capabilities", {})

    def line(self):
        while b"\n" not in self.rest:
            self.rest += os.read(self.file, 65536)
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def answer_to(self, command, arguments):
        order = {"execute": command, "arguments": arguments}
        os.write(self.file, json.dumps(order).encode() + b"\n")
        while True:
            answer = self.line()
            if "return" in answer or "error" in answer:
                return answer

    def ask(self, command, **arguments):
        answer = self.answer_to(command, arguments)
        assert "return" in answer, (command, arguments, answer)

    def cable(self, kind, up):
        self.ask("set_link", name=NAME[kind], up=up)

    def plug(self):
        """Plug in the virtio port that was unplugged."""
        self.ask("device_add", driver="virtio-net-pci", id="port0", bus="slot0", netdev="end0",
                 romfile="", mac="52:54:00:00:01:00",
                 **{"disable-legacy": "on", "iommu_platform": "on"})


def set_up():
    """Set up two ports for vfio, one for the kernel's RDMA device, and one for sockets in a
    separate namespace. That device takes the UDP port everywhere else. Call once per guest."""
    if pathlib.Path("/sys/class/infiniband/rxe0").exists():
        return
    for name in ("vfio-pci", "crc32_generic", "rdma_rxe"):
        said("modprobe", name)
    for kind in ("virtio", "e1000"):
        bind(kind, "vfio-pci")
    rxe, udp = interface("rxe"), interface("udp")
    for words in ("netns add udp", f"link set {udp} netns udp name eth0",
                  "-n udp link set lo up", f"-n udp addr add {UDP}/24 dev eth0",
                  "-n udp link set eth0 up", f"link set {rxe} name eth0",
                  f"addr add {RXE}/24 dev eth0", f"addr add {RXE6}/64 dev eth0 nodad",
                  "link set eth0 up"):
        said("ip", *words.split())
    said("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "eth0")


def gid_index(prefix):
    gids = pathlib.Path("/sys/class/infiniband/rxe0/ports/1/gids")
    for index in range(32):
        try:
            if (gids / str(index)).read_text(encoding="ascii").startswith(prefix):
                return index
        except OSError:
            continue
    raise AssertionError(f"no GID begins with {prefix}")


class End:
    """One side of a pair: command prefix, device, and GID index."""

    def __init__(self, *prefix, device="soft0", gid=0, tcp=RXE):
        self.prefix, self.device, self.gid, self.tcp = prefix, device, gid, tcp

    def ended(self, program, *options):
        """Return the output about the device. The program must succeed."""
        return said(*self.prefix, program, "-d", self.device, *options)

    def start(self, *words):
        return subprocess.Popen([*self.prefix, *map(str, words)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def soft_run(wire, address, *options):
    return (os.environ["TOCSIN_BUILD"] + "/agent/tocsin", "soft-run", "--wire", wire, "--address",
            address, *options, "--")


def dpdk(kind, address=None, more=""):
    addresses = {"virtio": "10.0.0.8", "e1000": "10.0.0.9"}
    return End(*soft_run(f"dpdk:{PORT[kind]}{more}", address or addresses[kind]))


def sockets():
    return End("ip", "netns", "exec", "udp", *soft_run("udp", UDP), tcp=UDP)


def listens(port):
    return f":{port} " in said("ss", "-Hltn") + said("ip", "netns", "exec", "udp", "ss", "-Hltn")


def rxe(prefix="0000:0000:0000:0000:0000:ffff:0a00:0001"):
    return End(device="rxe0", gid=gid_index(prefix))


@contextlib.contextmanager
def running(server, client, words_of, port, fails=False):
    """Run both ends of a program that pairs by TCP. Yields during the run, then gives the outputs.
    """
    told = []
    with server.start(*words_of(server)) as first:
        try:
            clusters.wait_until(f"port {port}", lambda: listens(port) or first.poll() is not None,
                                SECONDS)
            with client.start(*words_of(client), server.tcp) as second:
                try:
                    yield told
                    told.append(second.communicate(timeout=SECONDS)[0])
                finally:
                    second.kill()
            if second.returncode != 0:
                first.kill()
            told.insert(0, first.communicate(timeout=SECONDS)[0])
        finally:
            first.kill()
    ends = (first.returncode, second.returncode)
    assert ends == (0, 0) or fails and second.returncode >= 0, (ends, "\n".join(told))


def pair(*words):
    with running(*words) as told:
        pass
    return told


def operations(server, client):
    """Return the MTU with which every operation passed."""
    def words(end):
        return [os.environ["TOCSIN_OPERATIONS"], end.device, end.gid, OPERATIONS_PORT, "whole"]
    for text in pair(server, client, words, OPERATIONS_PORT):
        found = re.search(r"^\d+ steps with MTU (\d+)$", text, re.MULTILINE)
        assert found, text
    return int(found[1])


def running_perftest(program, server, client, *options, fails=False):
    def words(end):
        return [program, "-F", "-d", end.device, "-x", end.gid, *PATIENT, *options]
    return running(server, client, words, PERFTEST_PORT, fails)


def perftest(program, server, client, *options):
    with running_perftest(program, server, client, *options) as told:
        pass
    for text in told:
        assert "Failed" not in text, text


def sent():
    """Return the number of packets that rxe0's interface has sent."""
    return int(pathlib.Path("/sys/class/net/eth0/statistics/tx_packets").read_text("ascii"))


def wait_traffic():
    before = sent()
    clusters.wait_until("traffic", lambda: sent() > before + 100, SECONDS)


def wait_silence():
    """Wait until the interface sends nothing between two checks."""
    seen = [0]

    def is_silent():
        before, seen[0] = seen[0], sent()
        return seen[0] < before + 10
    clusters.wait_until("silence", is_silent, SECONDS)


class Watched:
    """A device that stays open while a program prints its events."""

    def __init__(self, end):
        self.process = end.start("stdbuf", "-oL", "ibv_asyncwatch", "-d", end.device)
        self.lines = []

    def __enter__(self):
        self.wait("async event FD")
        return self

    def wait(self, words):
        """Wait for a line with these words; other lines are ignored."""
        for line in self.process.stdout:
            self.lines.append(line)
            if words in line:
                return
        raise AssertionError(f"ended with {self.process.wait()}: {self.lines}")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
