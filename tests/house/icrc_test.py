#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The ICRC checker accepts valid and rejects invalid packets in every capture format.

icrc_test.py SOURCE-ROOT
"""

import itertools
import pathlib
import struct
import subprocess
import sys
import tempfile

import tap

# Real packets from the IP header on: a congestion notification of a ConnectX-4 Lx, an
# acknowledgement and a fetch-and-add of the kernel's Soft-RoCE. All have IP ids and the ICRC of
# their sender.
CAPTURED = [bytes.fromhex(text) for text in (
    "45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff40000118"
    "0000000000000000000000000000000000000000" "82fd002a",
    "45000030d23b40004011547d0a0100010a010002c13212b7001c00001100ffff0000001200"
    "2f99b91f000001" "b605d158",
    "450000482b2940004011fb770a0100020a010001c1ce12b7003400001400ffff0000001580"
    "c1e4a400005626ebbb5000000006280000000000000001000000000000000032791a73",
)]
# An IPv6 packet written by frame_seal() of the software device.
SEALED_IP6 = bytes.fromhex(
    "66854321001c114020010db800000000000000000000000120010db8000000000000000000000002"
    "c00112b7001c00001140ffff0012345600fffffe1f000003" "606ed95e")

ETHERNET, RAW, COOKED, IPV4, COOKED2 = 1, 101, 113, 228, 276


def ethertype(packet):
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


def framed(link, packet):
    return {
        ETHERNET: bytes(12) + ethertype(packet) + packet,
        "vlan": bytes(12) + b"\x81\x00\x00\x07" + ethertype(packet) + packet,
        COOKED: bytes(14) + ethertype(packet) + packet,
        COOKED2: ethertype(packet) + bytes(18) + packet,
        RAW: packet,
        IPV4: packet,
    }[link]


def classic(order, magic, link, packets, cut=None):
    link_number = ETHERNET if link == "vlan" else link
    parts = [struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, link_number)]
    for packet in packets:
        frame = framed(link, packet)
        kept = frame[:cut]
        parts.append(struct.pack(order + "IIII", 1, 2, len(kept), len(frame)) + kept)
    return b"".join(parts)


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def section(order, links, packets, simple=False):
    """Return a pcapng section with these interfaces; the packets belong to the last one."""
    parts = [block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts += [block(order, 1, struct.pack(order + "HHI", link, 0, 0)) for link in links]
    parts.append(block(order, 5, bytes(12)))  # interface statistics
    for packet in packets:
        frame = framed(links[-1], packet)
        head = (struct.pack(order + "I", len(frame)) if simple else
                struct.pack(order + "IIIII", len(links) - 1, 0, 0, len(frame), len(frame)))
        parts.append(block(order, 3 if simple else 6, head + frame))
    return b"".join(parts)


def run(*captures):
    """Run the checker on these captures. Returns exit status, standard output and standard error.
    """
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        paths = []
        for number, capture in enumerate(captures):
            paths.append(pathlib.Path(name) / f"{number}.pcap")
            paths[-1].write_bytes(capture)
        done = subprocess.run([sys.executable, str(CHECKER), *paths], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return done.returncode, done.stdout.replace(name + "/", ""), done.stderr


def changed(packet, at, bits=1):
    return packet[:at] + bytes([packet[at] ^ bits]) + packet[at + 1:]


def expect(answer, right, wrong):
    code, said, complaint = answer
    assert complaint == "", complaint
    assert said.splitlines()[-1] == (
        f"{right + wrong} packets, {right} right, {wrong} wrong or cut"), said
    assert code == (0 if right > 0 and wrong == 0 else 1), code


def right_in_every_kind_of_classic_file():
    for order, magic, link in itertools.product(
            "<>", (0xA1B2C3D4, 0xA1B23C4D), (ETHERNET, "vlan", COOKED, COOKED2, RAW, IPV4)):
        expect(run(classic(order, magic, link, CAPTURED)), 3, 0)


def right_in_every_kind_of_block():
    for order, link, simple in itertools.product("<>", (ETHERNET, COOKED, RAW), (False, True)):
        expect(run(section(order, [link], CAPTURED, simple)), 3, 0)
    two = section("<", [COOKED2, ETHERNET], CAPTURED) + section(">", [RAW], CAPTURED[:1])
    expect(run(two, classic("<", 0xA1B2C3D4, RAW, CAPTURED)), 7, 0)


def each_changed_byte_is_found_but_those_that_may_change():
    may = {1, 8, 10, 11, 26, 27, 32}
    # With changes at these offsets the packet is no RoCEv2 packet and is not counted.
    other = {0, 2, 3, 6, 7, 9, 22, 23}
    packet = CAPTURED[1]
    kept = [changed(packet, at) for at in may]
    expect(run(classic("<", 0xA1B2C3D4, RAW, kept)), len(kept), 0)
    broken = [changed(packet, at) for at in set(range(len(packet))) - may - other]
    expect(run(classic("<", 0xA1B2C3D4, RAW, broken)), 0, len(broken))


def ip6_is_masked_by_its_own_rules():
    packet = SEALED_IP6
    may = [changed(packet, at, 0xFF) for at in (1, 2, 3, 7, 46, 47, 52)] + [changed(packet, 0, 15)]
    expect(run(classic("<", 0xA1B2C3D4, ETHERNET, [packet] + may)), 1 + len(may), 0)
    broken = [changed(packet, at) for at in (8, 23, 24, 39, 40, 41, 48, 53, 63, 67)]
    expect(run(classic("<", 0xA1B2C3D4, ETHERNET, broken)), 0, len(broken))


def a_wrong_one_is_told_of():
    code, said, _ = run(classic("<", 0xA1B2C3D4, ETHERNET,
                                [CAPTURED[0], changed(CAPTURED[1], 45)]))
    assert code == 1
    assert said.splitlines()[0] == ("0.pcap: frame 2, 10.1.0.1 to 10.1.0.2, opcode 0x11, "
                                    "PSN 3119545: ICRC b604d158, not b605d158"), said


def a_cut_one_is_not_right():
    answer = run(classic("<", 0xA1B2C3D4, ETHERNET, CAPTURED, cut=60))
    expect(answer, 0, 3)
    assert "0.pcap: frame 1, 10.0.17.1 to 10.0.18.1, opcode 0x81, PSN 0: it was cut" in answer[1]


def other_traffic_is_not_counted_and_none_at_all_is_no_success():
    others = [CAPTURED[0][:9] + b"\6" + CAPTURED[0][10:],  # TCP
              CAPTURED[0][:22] + b"\x12\xb6" + CAPTURED[0][24:],  # another port
              CAPTURED[0][:6] + b"\x20\0" + CAPTURED[0][8:],  # a fragment
              b"\x45" + bytes(10), bytes(64)]
    expect(run(classic("<", 0xA1B2C3D4, RAW, others)), 0, 0)
    expect(run(classic("<", 0xA1B2C3D4, RAW, others + CAPTURED)), 3, 0)
    expect(run(classic("<", 0xA1B2C3D4, ETHERNET, [])), 0, 0)


def what_ethernet_appends_is_left_out():
    expect(run(classic("<", 0xA1B2C3D4, ETHERNET, [CAPTURED[1] + bytes(7)])), 1, 0)


def what_is_no_capture_is_refused_in_one_line():
    whole = classic("<", 0xA1B2C3D4, ETHERNET, CAPTURED)
    blocks = section("<", [ETHERNET], CAPTURED)
    for capture, reason in (
            (b"", "it ends within a header at byte 0"),
            (b"hello, world", "neither pcap nor pcapng"),
            (whole[:30], "it ends within a header at byte 24"),
            (whole[:-1], f"it ends within a packet at byte {len(whole) - 86}"),
            (classic("<", 0xA1B2C3D4, RAW, CAPTURED)[:20] + struct.pack("<I", 7) + whole[24:],
             "link type 7 is not known"),
            (blocks[:-4], None),
            (blocks[:28] + blocks[48:], "a packet of interface 0, of 0"),
            (blocks[:4] + struct.pack("<I", 5) + blocks[8:], "a block of 5 bytes at byte 0"),
            (blocks[:8] + bytes(4) + blocks[12:], "no byte order in the section at byte 0")):
        code, said, complaint = run(capture)
        assert code == 1 and said == "", (code, said)
        assert complaint.count("\n") == 1 and "Traceback" not in complaint, complaint
        assert reason is None or complaint.endswith(f": {reason}\n"), complaint


TESTS = [
    right_in_every_kind_of_classic_file,
    right_in_every_kind_of_block,
    each_changed_byte_is_found_but_those_that_may_change,
    ip6_is_masked_by_its_own_rules,
    a_wrong_one_is_told_of,
    a_cut_one_is_not_right,
    other_traffic_is_not_counted_and_none_at_all_is_no_success,
    what_ethernet_appends_is_left_out,
    what_is_no_capture_is_refused_in_one_line,
]

if __name__ == "__main__":
    CHECKER = pathlib.Path(sys.argv[1]) / "tests/tools/icrc.py"
    tap.run([(function.__name__, function) for function in TESTS])
