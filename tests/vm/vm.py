#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev vm`: one command in a guest of its own, on Debian's stock kernel with Soft-RoCE.

The guest's files are the host's, read over 9p, with its writes above them in its memory. Four
channels join the two: the command goes in and its status comes out by one, stdout and stderr
have one each, and the console's last lines are kept for the case that the kernel dies. Nothing
of a guest lies on disk, and the kernel ends QEMU with us however we end: there is nothing to
clean up.
"""

import argparse
import collections
import os
import pathlib
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
QEMU = "qemu-system-x86_64"
TIMED_OUT, DIED, WRONG_USE = 124, 125, 2
JOB_BYTES_MAX = 64 << 10  # a socket holds thrice that before anybody reads
CONSOLE_LINES, CONSOLE_BYTES = 60, 64 << 10  # a panic with its stack
# A kernel that is not well ends the guest; the rest makes the boot quiet and quick.
KERNEL_LINE = ("console=ttyS0 quiet panic=-1 oops=panic tsc=reliable mitigations=off nokaslr "
               "apparmor=0 random.trust_cpu=on cryptomgr.notests rodata=off")
HELP = """
COMMAND runs as root in this tree, with these Soft-RoCE devices on the two ends of one wire:
  rxe0   ve0   10.0.0.1
  rxe1   ve1   10.0.0.2
With --devices ports these instead, on one cable, behind an emulated IOMMU; no RDMA devices:
  port0  0000:01:00.0  virtio, in a slot from which it can be unplugged
  port1  0000:00:10.0  e1000
  port2  0000:00:11.0  virtio
  port3  0000:00:12.0  virtio
Those of virtio are the kernel's at first. QEMU's monitor (QMP) is at /dev/vport0p4.
It sees the host's files; what it writes is gone with the guest, but for --write. Its stdin is
/dev/null. Any module of the kernel can be had by modprobe, namespaces by ip netns. Processors 0
and 1 are NUMA nodes 0 and 1.

Exit status: that of COMMAND; 124 after the time limit; 125 if the guest died, with the end of
its console.
"""


def directory(text):
    if not pathlib.Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' is not a directory")
    return os.path.realpath(text)


def number(low, high):
    def parse(text):
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {low} to {high}")
        return int(text)
    return parse


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./dev vm", usage="./dev vm [OPTIONS] -- COMMAND [ARGUMENT...]", epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        description="Runs a command in a guest of its own, with two RDMA devices.")
    parser.add_argument("--timeout", type=number(1, 99999), default=300, metavar="SECONDS",
                        help="of boot and command together (default 300)")
    parser.add_argument("--write", type=directory, action="append", default=[], metavar="DIR",
                        help="writes below DIR reach the host; may be repeated")
    parser.add_argument("--devices", choices=("wire", "none", "ports"), default="wire",
                        help="wire (default): rxe0 and rxe1; none: no RDMA, no veth; ports: PCI "
                        "ports for DPDK")
    parser.add_argument("--systemd", action="store_true", help="systemd is process 1, with a "
                        "journal and no other unit; COMMAND is a unit of it")
    parser.add_argument("--memory", type=number(256, 65536), default=2048, metavar="MB",
                        help="of the guest, its writes included (default 2048)")
    parser.add_argument("--net", metavar="NETDEV", help="adds eth0, without address, on a netdev "
                        "of QEMU: tap,ifname=tap0,script=no,downscript=no")
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:cut])
    options.command = arguments[cut + 1:]
    if not options.command:
        parser.error("there is no COMMAND behind --")
    return options


def fail(status, text):
    print(f"vm: {text}", file=sys.stderr)
    sys.exit(status)


class Unavailable(Exception):
    """No guest can be had on this machine; the text is the reason."""


def find_initrd():
    """The file that a guest boots from, with its kernel beside it."""
    if shutil.which(QEMU) is None:
        raise Unavailable(f"{QEMU} is not installed")
    made = subprocess.run([HERE / "kit.sh"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, check=False)
    if made.returncode != 0:
        raise Unavailable("no kit to boot from; tests/vm/kit.sh says why")
    return pathlib.Path(made.stdout.strip())


def skip_if_unavailable():
    """For a test: ends it with TAP's word for that if no guest can be had."""
    try:
        find_initrd()
    except Unavailable as reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)


def job_of(options):
    """The shell script that the guest goes on with when it has the host's files."""
    values = {"directory": os.getcwd(), "devices": options.devices,
              "shares": str(len(options.write)), "systemd": "yes" if options.systemd else "no"}
    lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    words = " ".join(shlex.quote(word) for word in options.write + options.command)
    job = "\n".join([*lines, f"set -- {words}", (HERE / "job.sh").read_text(encoding="utf-8")])
    raw = job.encode("utf-8", "surrogateescape")
    if len(raw) > JOB_BYTES_MAX:
        fail(WRONG_USE, f"the command has {len(raw)} bytes, {JOB_BYTES_MAX} are allowed")
    return raw


def files(tag, path, options=""):
    path = str(path).replace(",", ",,")
    return ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{options}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def port(index, tag, chardev):
    return ["-chardev", f"{chardev},id={tag}",
            "-device", f"virtserialport,nr={index},chardev={tag},name={tag}"]


def nic(index, model, place):
    """A port on the one cable that there is."""
    return ["-netdev", f"hubport,id=end{index},hubid=0", "-device",
            f"{model},id=port{index},netdev=end{index},mac=52:54:00:00:01:{index:02x},romfile=,"
            f"{place}"]


def ports(monitor):
    """Behind an IOMMU, which vfio asks for interrupts too. QEMU is its own monitor's guest: both
    ends of what joins them are among its channels."""
    virtio = "virtio-net-pci,disable-legacy=on,iommu_platform=on"
    return ["-device", "intel-iommu,intremap=on",
            "-device", "pcie-root-port,id=slot0,chassis=1,slot=1",
            *nic(0, virtio, "bus=slot0"),
            *nic(1, "e1000", "bus=pcie.0,addr=0x10"),
            *nic(2, virtio, "bus=pcie.0,addr=0x11"),
            *nic(3, virtio, "bus=pcie.0,addr=0x12"),
            "-chardev", f"socket,id=monitor,fd={monitor[0]}",
            "-mon", "chardev=monitor,mode=control",
            *port(4, "qmp", f"socket,fd={monitor[1]}")]


def nodes(memory):
    """A NUMA node for each processor, with half of the memory (in MB)."""
    words = []
    for node, share in enumerate((memory - memory // 2, memory // 2)):
        words += ["-object", f"memory-backend-ram,id=node{node},size={share}M",
                  "-numa", f"node,nodeid={node},cpus={node},memdev=node{node}"]
    return words


def qemu_words(options, initrd, job_bytes, control, console, monitor):
    """One process, TCG always: what a guest does must not depend on whose machine it is."""
    modules = {"wire": ["crc32_generic", "rdma_rxe", "rdma_ucm", "veth"], "none": [],
               "ports": ["virtio_net"]}
    wanted = ",".join(modules[options.devices] + (["virtio_net"] if options.net else []))
    behind = " intel_iommu=on iommu=pt no_timer_check" if options.devices == "ports" else ""
    words = [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-M", "q35" if monitor else "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
        "-m", str(options.memory), *nodes(options.memory),
        "-kernel", str(initrd.with_name("vmlinux")), "-initrd", str(initrd),
        "-append", f"{KERNEL_LINE}{behind} job_bytes={job_bytes} modules={wanted}",
        "-chardev", f"file,id=console,path=/proc/self/fd/{console},append=on",
        "-serial", "chardev:console", "-device", "virtio-serial-pci",
        *port(1, "control", f"socket,fd={control}"),
        *port(2, "out", "file,path=/proc/self/fd/1,append=on"),
        *port(3, "err", "file,path=/proc/self/fd/2,append=on"),
        *files("host", "/", ",readonly=on"),
        *files("modules", initrd.with_name("lib") / "modules", ",readonly=on"),
    ]
    for index, path in enumerate(options.write):
        words += files(f"write{index}", path)
    if monitor:
        words += ports(monitor)
    if options.net:
        mac = "52:54:00:" + os.urandom(3).hex(":")  # two guests may meet on one bridge
        words += ["-netdev", f"{options.net},id=net", "-device",
                  f"virtio-net-pci,netdev=net,mac={mac},romfile="]
    return words


class Guest:
    """One QEMU process, from its start to its end."""

    def __init__(self, options, initrd):
        self.deadline = time.monotonic() + options.timeout
        self.status = b""
        self.console = collections.deque(maxlen=CONSOLE_BYTES)
        self.control, theirs = socket.socketpair()
        console, console_end = os.pipe()
        monitor = socket.socketpair() if options.devices == "ports" else ()
        ends = [end.fileno() for end in monitor]
        job = job_of(options)
        self.control.sendall(job)
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["setpriv", "--pdeathsig", "KILL", "--",
             *qemu_words(options, initrd, len(job), theirs.fileno(), console_end, ends)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno(), console_end, *ends])
        for end in (theirs, *monitor):
            end.close()
        os.close(console_end)
        self.channels = selectors.DefaultSelector()
        for channel, take in ((self.process.stdout.fileno(), lambda data: write_all(1, data)),
                              (self.process.stderr.fileno(), lambda data: write_all(2, data)),
                              (console, self.console.extend),
                              (self.control.fileno(), self.take_status)):
            self.channels.register(channel, selectors.EVENT_READ, take)

    def take_status(self, data):
        """By now all that the command wrote has left QEMU: a write in the guest returns then."""
        self.status += data
        if self.status.endswith(b"\n"):
            self.process.kill()

    def run(self):
        """Until QEMU has ended; whether it did so within the time limit."""
        while self.channels.get_map():
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.process.kill()
                self.process.wait()
                return False
            for key, _ in self.channels.select(left):
                data = read_some(key.fd)
                if data:
                    key.data(data)
                else:
                    self.channels.unregister(key.fd)
        self.process.wait()
        return True

    def console_end(self):
        return bytes(self.console).decode("utf-8", "replace").splitlines()[-CONSOLE_LINES:]


def read_some(descriptor):
    try:
        return os.read(descriptor, 1 << 16)
    except ConnectionResetError:  # QEMU ended without reading all of the job
        return b""


def write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]


def main(arguments):
    # Whoever reads us may go, and whoever started us may end us: both as with any command.
    for sent in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(sent, signal.SIG_DFL)
    options = parse(arguments)
    try:
        guest = Guest(options, find_initrd())
    except Unavailable as reason:
        fail(DIED, str(reason))
    if sys.stderr.isatty():
        print("vm: booting", file=sys.stderr)
    in_time = guest.run()
    if guest.status.endswith(b"\n"):
        return int(guest.status)
    for line in guest.console_end():
        print(f"  | {line}", file=sys.stderr)
    if not in_time:
        return fail(TIMED_OUT, f"ended after the time limit of {options.timeout} s")
    return fail(DIED, "the guest died; above is the end of its console")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
