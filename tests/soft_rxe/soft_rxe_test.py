#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The software device against the kernel's Soft-RoCE: two independent implementations.

soft_rxe_test.py TOCSIN OPERATIONS QUICK_DAY

OPERATIONS verifies the data of every operation in both directions; Debian's programs run as they
are. All packets are captured. At the end tshark and our ICRC checker check every packet of both
sides. The sides swap roles, lose packets, and change the MTU.
"""

import collections
import contextlib
import pathlib
import re
import subprocess
import sys

import icrc
import machine
import tap
from machine import OURS, OURS6, THEIRS, THEIRS6, Ordered, Started, run_pair

PORT = 18515  # default of perftest and pingpong
# perftest uses as many concurrent reads as the peer offers; the kernel offers 128.
READS = ["-o", "16"]
# 1 s. In a guest with little processor time, a shorter timeout expires without loss. The kernel's
# device then retransmits a message from its start. The acknowledgement of the whole message may
# arrive before that is finished, while 64 packets are queued. The device then waits for ever (Linux
# 6.1: it does not retry once an acknowledgement is ahead of the retransmitted packets).
TIMEOUT = "18"
LOSS = "loss=1%,seed=7"
OPCODES_MAX = 0x14
# Protocols that tshark guesses for a payload; our payload has none.
GUESSES = ["eth_over_ib", "mellanox_eoib", "sdp_infiniband", "fc_infiniband"]
GUESSED = ["rpcordma", "smb_direct", "smc", "nvme-rdma", "iser", "lnet"]
# tshark's message on UDP over IPv6 without a checksum. The kernel's device also sends without one.
NO_CHECKSUM = "Illegal checksum value (0)"


def both(program, options, here, faults=None, port=PORT, address=OURS, around=()):
    """Run the program between the two devices. here: the server is on our side."""
    device = ["--address", address, *(["--faults", faults] if faults else [])]
    ours = [*around, TOCSIN, "soft-run", *device, "--", program,
            *map(str, options("soft0")), *([] if here else [THEIRS])]
    theirs = [*around, program, *options("rxe0"), *([OURS] if here else [])]
    if here:
        return run_pair(lambda: Started(ours), lambda: Ordered(theirs), port)
    return run_pair(lambda: Ordered(theirs, port), lambda: Started(ours), port)


def operations(here, faults=None, address=OURS, gid_there="1"):
    port = 18700

    def words(device):
        gid = "1" if device == "soft0" else gid_there
        return [device, gid, port, "lossy" if faults else "whole"]
    for said in both(OPERATIONS, words, here, faults, port, address):
        assert re.search(r"^\d+ steps with MTU \d+$", said, re.MULTILINE), said
    return int(re.search(r"with MTU (\d+)$", said, re.MULTILINE)[1])


def perftest(program, here, *options, faults=None):
    def words(device):
        return ["-F", "-x", "1", "-u", TIMEOUT, "-d", device, *options]
    for said in both(program, words, here, faults, around=("env", f"LD_PRELOAD={QUICK_DAY}")):
        assert "Failed" not in said, said


@contextlib.contextmanager
def loss_there():
    MACHINE.order("tc", "qdisc", "add", "dev", "eth0", "root", "netem", "loss", "1%")
    try:
        yield
    finally:
        MACHINE.order("tc", "qdisc", "del", "dev", "eth0", "root")


@contextlib.contextmanager
def mtu(value):
    MACHINE.set_mtu(value)
    try:
        yield
    finally:
        MACHINE.set_mtu(1500)


def every_operation_is_right_both_ways():
    assert operations(here=True) == 1024


def every_operation_is_right_when_we_connect():
    assert operations(here=False) == 1024


def every_operation_is_right_with_the_largest_mtu():
    with mtu(4200):
        assert operations(here=True) == 4096


def every_operation_is_right_over_ip6():
    index = MACHINE.gid_index("fd77:")
    assert operations(here=False, address=OURS6, gid_there=index) == 1024


def every_operation_is_right_while_both_lose_packets():
    with loss_there():
        operations(here=True, faults=LOSS)


# Its timeout is fixed, so messages have fewer than 64 packets: see TIMEOUT.
def pingpong_here_and_there():
    for here in (True, False):
        for options in (["-s", "4096"], ["-s", "1025", "-e"], ["-s", "30000"]):
            def words(device, options=tuple(options)):
                return ["-d", device, "-g", "1", "-c", "-n", "100", *options]
            for said in both("ibv_rc_pingpong", words, here):
                assert re.search(r"^\d+ iters in ", said, re.MULTILINE), said
                assert "invalid data" not in said, said


def perftest_of(kind, reads=()):
    def test():
        for here in (True, False):
            perftest(f"ib_{kind}_lat", here, "-n", "100", "-s", "1", *reads)
            perftest(f"ib_{kind}_lat", here, "-n", "100", "-s", "1025", *reads)
            perftest(f"ib_{kind}_bw", here, "-n", "100", "-s", "65536", *reads)
    return test


def perftest_atomics():
    for here in (True, False):
        for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
            for program in ("ib_atomic_lat", "ib_atomic_bw"):
                perftest(program, here, "-n", "100", "-A", kind, *READS)


def perftest_while_both_lose_packets():
    with loss_there():
        for kind in ("write", "read", "send"):
            for here in (True, False):
                perftest(f"ib_{kind}_bw", here, "-n", "50", "-s", "65536",
                         *(READS if kind == "read" else []), faults=LOSS)


def every_icrc_in_the_capture_is_right():
    said = MACHINE.end_capture()
    counts = collections.Counter()
    for packet in icrc.packets(MACHINE.capture.read_bytes()):
        assert packet.icrc == packet.expected, packet
        counts[str(packet.source)] += 1
    print(f"# {dict(counts)} packets; {said.splitlines()[-1]}")
    assert all(counts[address] > 1000 for address in (OURS, THEIRS, OURS6, THEIRS6)), counts


def every_opcode_is_decoded_without_a_complaint():
    fields = ["ip.src", "ipv6.src", "infiniband.bth.opcode", "_ws.malformed",
              "_ws.expert.message"]
    options = [*(("--disable-heuristic", guess) for guess in GUESSES),
               *(("--disable-protocol", guessed) for guessed in GUESSED),
               *(("-e", field) for field in fields)]
    done = subprocess.run(
        ["tshark", "-r", str(MACHINE.capture), "-T", "fields", "-E", "separator=;",
         *[word for option in options for word in option]],
        capture_output=True, text=True, check=True)
    seen = collections.Counter(tuple(line.split(";")) for line in done.stdout.splitlines())
    complaints = [row for row in seen if any(row[3:]) and row[3:] != ("", NO_CHECKSUM)]
    assert not complaints, complaints
    for address in (OURS, THEIRS, OURS6, THEIRS6):
        opcodes = {int(row[2], 0) for row in seen if address in row[:2]}
        assert opcodes == set(range(OPCODES_MAX + 1)), (address, sorted(opcodes))


TESTS = [
    ("every operation is right, requested by either", every_operation_is_right_both_ways),
    ("every operation is right when we connect", every_operation_is_right_when_we_connect),
    ("every operation is right with the largest MTU",
     every_operation_is_right_with_the_largest_mtu),
    ("every operation is right over IPv6", every_operation_is_right_over_ip6),
    ("every operation is right while both lose packets",
     every_operation_is_right_while_both_lose_packets),
    ("pingpong polls and sleeps, its server here and there", pingpong_here_and_there),
    ("perftest writes", perftest_of("write")),
    ("perftest reads", perftest_of("read", READS)),
    ("perftest sends", perftest_of("send")),
    ("perftest swaps and adds", perftest_atomics),
    ("perftest while both lose packets", perftest_while_both_lose_packets),
    ("every ICRC of both sides is right", every_icrc_in_the_capture_is_right),
    ("tshark knows every packet, and both sides sent every opcode",
     every_opcode_is_decoded_without_a_complaint),
]

if __name__ == "__main__":
    TOCSIN, OPERATIONS, QUICK_DAY = (str(pathlib.Path(path).resolve())
                                     for path in sys.argv[1:4])
    CHOSEN = sys.argv[4:]
    machine.namespaces_and_guests_can_be_had()
    MACHINE = machine.Machine()
    try:
        tap.run([one for one in TESTS if not CHOSEN or one[0] in CHOSEN])
    finally:
        MACHINE.end()
