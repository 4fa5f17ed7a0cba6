#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Debian's unmodified RDMA programs on software devices.

programs_test.py WIRE TOCSIN QUICK_DAY

The speed is not tested. The programs verify data as far as they can. Iterations are few: the goal
is to use a device in every way.
"""

import contextlib
import re
import sys

import tap
from pairs import Kit, Memif, Udp, Veth, needs, run_pair

# One line per wire. A wire without rights or packages skips in its ends().
WIRES = {wire.name: wire for wire in (Udp(), Memif(), Veth())}
WIRE = WIRES[sys.argv[1]]
KIT = Kit(sys.argv[2], preload=sys.argv[3])
GID = 0  # default of the programs
# A line of results: size, iterations and figures, which may be negative on a busy machine.
RESULT = re.compile(r"^ (\d+) +(\d+) +[-\w]", re.MULTILINE)
ALL_SIZES = [2 ** n for n in range(1, 24)]


def perftest(program, *options, **more):
    """Return sizes and iterations of the client's table."""
    client, _ = run_pair(KIT, WIRE, program, "-F", "-x", str(GID), *options, **more)
    rows = [(int(size), int(count)) for size, count in RESULT.findall(client)]
    assert rows, client
    return rows


def pingpong(*options):
    words = ["-g", str(GID), "-c", *options]
    for said in run_pair(KIT, WIRE, "ibv_rc_pingpong", *words):
        assert re.search(r"^\d+ iters in ", said, re.MULTILINE), said
        assert "invalid data" not in said, said


def the_list_of_devices_has_it():
    needs("ibv_devices")
    done = KIT.run("ibv_devices")
    assert done.returncode == 0, done
    assert re.search(r"^\s+soft0\s+[0-9a-f]{16}$", done.stdout, re.MULTILINE), done.stdout
    assert done.stderr == "", done.stderr


def its_properties_are_whole():
    needs("ibv_devinfo")
    with WIRE.ends() as ends:
        done = KIT.run("ibv_devinfo", "-v", soft=ends[0])
    assert done.returncode == 0, done
    for words in (r"hca_id:\tsoft0", r"state:\t+PORT_ACTIVE", r"link_layer:\t+Ethernet",
                  r"atomic_cap:\t+ATOMIC_HCA", r"GID\[  [01]\]:\t+\S+, RoCE v2"):
        assert re.search(words, done.stdout), (words, done.stdout)


def pingpong_polls_at_every_size():
    for size in ("1", "4097", "1000000"):
        pingpong("-s", size, "-n", "50")


def the_next_index_is_the_same_address():
    """Programs for real ports use index 1, because index 0 is RoCE version 1 there."""
    run_pair(KIT, WIRE, "ibv_rc_pingpong", "-g", "1", "-n", "20")
    run_pair(KIT, WIRE, "ib_write_bw", "-F", "-x", "1", "-n", "5")
    run_pair(KIT, WIRE, "ib_write_bw", "-F", "-n", "5")  # chosen automatically


def pingpong_sleeps_on_events():
    pingpong("-e", "-n", "300")
    pingpong("-e", "-n", "20", "-s", "100000")


def pingpong_takes_every_mtu():
    for mtu in ("256", "512", "1024", "2048", "4096"):
        pingpong("-m", mtu, "-s", "9000", "-n", "20")


def all_sizes_of(program):
    def test():
        rows = perftest(program, "-a", "-n", "5")
        assert rows == [(size, 5) for size in ALL_SIZES], rows
    return test


def atomics_swap_and_add():
    for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
        for program in ("ib_atomic_lat", "ib_atomic_bw"):
            assert perftest(program, "-A", kind, "-n", "200") == [(8, 200)]


def many_queue_pairs_share_a_device():
    for program in ("ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_bw"):
        perftest(program, "-q", "32", "-n", "10", *([] if "atomic" in program else ["-s", "9000"]))


def perftest_sleeps_on_events():
    for program in ("ib_send_bw", "ib_read_bw", "ib_send_lat", "ib_atomic_lat"):
        perftest(program, "-e", "-n", "100")
    # The program polls 16 completions per event, and arms before that.
    perftest("ib_send_bw", "-e", "-q", "64", "-n", "20", "-s", "100")


def both_directions_at_once():
    for program in ("ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_bw"):
        perftest(program, "-b", "-n", "100", *([] if "atomic" in program else ["-s", "20000"]))


def data_goes_inline():
    for program in ("ib_write_lat", "ib_send_lat", "ib_write_bw", "ib_send_bw"):
        perftest(program, "-I", "200", "-s", "200", "-n", "50")


def every_mtu_is_taken():
    programs = ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_bw", "ib_read_bw")
    for program, mtu in zip(programs, ("256", "512", "1024", "2048", "4096")):
        perftest(program, "-m", mtu, "-s", "30000", "-n", "10")


def a_shared_receive_queue_is_filled_by_many():
    perftest("ib_send_bw", "--use-srq", "-q", "4", "-n", "50", "-s", "3000")
    perftest("ib_send_lat", "--use-srq", "-n", "50")


def lists_of_requests_and_few_completions():
    perftest("ib_write_bw", "-l", "8", "-n", "80", "-s", "100")
    perftest("ib_send_bw", "-Q", "10", "-n", "100", "-s", "100")


def ucx(test, *options, size="8"):
    """Run a test of UCX's RC transport, without its upper layers. It does not verify data."""
    client, _ = run_pair(
        KIT, WIRE, "ucx_perftest", "-d", "soft0:1", "-x", "rc_verbs",
        client=("-t", test, "-n", "200", "-w", "20", "-s", size, *options))
    assert re.search(r"^Final: +200 ", client, re.MULTILINE), client


def ucx_sends_puts_gets_and_adds():
    ucx("am_lat")
    ucx("am_bw", "-D", "zcopy", size="4096")
    ucx("put_lat")
    ucx("put_bw", "-D", "zcopy", size="20000")
    ucx("get", "-D", "bcopy")
    ucx("get", "-D", "zcopy", size="20000")
    for test in ("add_mr", "fadd", "cswap"):
        ucx(test)


class Faulty:
    """The same wire with faults at both ends."""

    def __init__(self, faults):
        self.faults = ["--faults", faults]

    @contextlib.contextmanager
    def ends(self):
        with WIRE.ends() as ends:
            yield [[*end, *self.faults] for end in ends]


def lost_packets_are_sent_again():
    wire = Faulty("loss=2%,corrupt=1%,dup=1%,delay=20us+-20us,seed=7")
    # Not pingpong: its ends exit without waiting for each other, and the last acknowledgement may
    # be lost.
    for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        run_pair(KIT, wire, program, "-F", "-x", GID, "-s", "30000", "-n", "50")


def packets_that_overtake_each_other_end_in_order():
    wire = Faulty("reorder=5%,dup=5%,seed=7")
    for said in run_pair(KIT, wire, "ibv_rc_pingpong", "-g", GID, "-c", "-n", "100", "-s", "20000"):
        assert "100 iters in" in said and "invalid data" not in said, said


if __name__ == "__main__":
    tap.run([
        ("the list of devices has it", the_list_of_devices_has_it),
        ("its properties are whole", its_properties_are_whole),
        ("pingpong polls at every size", pingpong_polls_at_every_size),
        ("the next index is the same address", the_next_index_is_the_same_address),
        ("pingpong sleeps on events", pingpong_sleeps_on_events),
        ("pingpong takes every MTU", pingpong_takes_every_mtu),
        *[(f"{program} goes through all sizes", all_sizes_of(program))
          for program in ("ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_write_bw",
                          "ib_read_bw", "ib_send_bw")],
        ("atomics swap and add", atomics_swap_and_add),
        ("many queue pairs share a device", many_queue_pairs_share_a_device),
        ("perftest sleeps on events", perftest_sleeps_on_events),
        ("both directions go at once", both_directions_at_once),
        ("data goes inline", data_goes_inline),
        ("every MTU is taken", every_mtu_is_taken),
        ("a shared receive queue is filled by many", a_shared_receive_queue_is_filled_by_many),
        ("lists of requests and few completions do", lists_of_requests_and_few_completions),
        ("UCX sends, puts, gets and adds", ucx_sends_puts_gets_and_adds),
        ("lost packets are sent again", lost_packets_are_sent_again),
        ("packets that overtake each other end in order",
         packets_that_overtake_each_other_end_in_order),
    ])
