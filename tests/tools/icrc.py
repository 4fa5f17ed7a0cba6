#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the ICRC of every RoCEv2 packet in captures, which tshark shows and does not check.

    icrc.py CAPTURE ...

Reads classic pcap and pcapng, of either byte order, of Ethernet (with VLAN tags), Linux's cooked
capture and raw IP. Packets are UDP to port 4791 over IPv4 or IPv6. Prints one line for each that
is wrong or was cut, then one with the counts. Exits with 0 if all are right and there are any.
"""

import argparse
import collections
import ipaddress
import pathlib
import struct
import sys
import zlib

PORT = 4791
UDP = 17
UDP_BYTES = 8
ICRC_BYTES = 4
LOCAL_ROUTE_HEADER = b"\xff" * 8  # what stands for InfiniBand's own in front of the IP header
LEAST_BYTES = UDP_BYTES + 12 + ICRC_BYTES

MAGICS = {0xA1B2C3D4, 0xA1B23C4D}  # microseconds, nanoseconds
SECTION, INTERFACE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 3, 6
SECTION_MAGIC = 0x1A2B3C4D

ETHERNET, RAW, COOKED, IPV4, IPV6, COOKED2 = 1, 101, 113, 228, 229, 276
ETHERTYPES = {0x0800: 4, 0x86DD: 6}
VLANS = {0x8100, 0x88A8}

Packet = collections.namedtuple("Packet", "number source target opcode psn icrc expected")


class Malformed(Exception):
    """The file is no capture that can be read; its text says why."""


def unpack(form, data, at):
    try:
        return struct.unpack_from(form, data, at)
    except struct.error:
        raise Malformed(f"it ends within a header at byte {at}") from None


def part(data, at, size):
    if at + size > len(data):
        raise Malformed(f"it ends within a packet at byte {at}")
    return data[at:at + size]


def classic_frames(data):
    """(link type, frame, bytes on the wire) of each frame of a pcap file."""
    order = "<" if unpack("<I", data, 0)[0] in MAGICS else ">"
    link = unpack(order + "I", data, 20)[0] & 0xFFFF  # above it: the length of a frame's check
    at = 24
    while at < len(data):
        kept, length = unpack(order + "8xII", data, at)
        yield link, part(data, at + 16, kept), length
        at += 16 + kept


def section_order(data, at):
    for order in "<>":
        if unpack(order + "I", data, at + 8)[0] == SECTION_MAGIC:
            return order
    raise Malformed(f"no byte order in the section at byte {at}")


def block_frame(order, links, kind, body):
    """The same of one block of a pcapng file; None of another block."""
    if kind == ENHANCED:
        interface, kept, length = unpack(order + "I8xII", body, 0)
        at = 20
    elif kind == SIMPLE:
        interface, at = 0, 4
        length, = unpack(order + "I", body, 0)
        kept = min(length, len(body) - at)
    else:
        return None
    if interface >= len(links):
        raise Malformed(f"a packet of interface {interface}, of {len(links)}")
    return links[interface], part(body, at, kept), length


def blocks_frames(data):
    """The same of a pcapng file."""
    at, order, links = 0, "<", []
    while at < len(data):
        if unpack("<I", data, at)[0] == SECTION:
            order, links = section_order(data, at), []
        kind, size = unpack(order + "II", data, at)
        if size < 12 or size % 4 != 0:
            raise Malformed(f"a block of {size} bytes at byte {at}")
        body = part(data, at, size)[8:-4]
        if kind == INTERFACE:
            links.append(unpack(order + "H", body, 0)[0])
        frame = block_frame(order, links, kind, body)
        if frame is not None:
            yield frame
        at += size


def frames(data):
    magic, = unpack("<I", data, 0)
    if magic == SECTION:
        return blocks_frames(data)
    if magic in MAGICS or unpack(">I", data, 0)[0] in MAGICS:
        return classic_frames(data)
    raise Malformed("neither pcap nor pcapng")


def ip_begin(link, frame):
    """Where the IP header begins; None if there is none."""
    if link in (RAW, IPV4, IPV6):
        return 0
    types = {ETHERNET: 12, COOKED: 14, COOKED2: 0}
    if link not in types:
        raise Malformed(f"link type {link} is not known")
    at = types[link]
    while link == ETHERNET and int.from_bytes(frame[at:at + 2], "big") in VLANS:
        at += 4
    if int.from_bytes(frame[at:at + 2], "big") not in ETHERTYPES:
        return None
    return 20 if link == COOKED2 else at + 2


def ip_bounds(packet):
    """(bytes of the IP header, of the whole packet); None if it is not UDP in one piece."""
    if len(packet) >= 20 and packet[0] >> 4 == 4:
        header, size = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        whole = int.from_bytes(packet[6:8], "big") & 0x3FFF == 0
        return (header, size) if packet[9] == UDP and whole and header >= 20 else None
    if len(packet) >= 40 and packet[0] >> 4 == 6:
        return (40, 40 + int.from_bytes(packet[4:6], "big")) if packet[6] == UDP else None
    return None


def icrc(packet, header):
    """Of an IP packet without its ICRC, whose IP header has so many bytes."""
    masked = bytearray(packet)
    if masked[0] >> 4 == 4:
        changed = [1, 8, 10, 11]  # type of service, time to live, checksum
    else:
        masked[0] |= 0x0F
        changed = [1, 2, 3, 7]  # traffic class and flow label, hop limit
    for at in changed + [header + 6, header + 7, header + UDP_BYTES + 4]:
        masked[at] = 0xFF
    return zlib.crc32(LOCAL_ROUTE_HEADER + masked).to_bytes(ICRC_BYTES, "little")


def judge(number, packet):
    """The Packet of these bytes from the IP header on; None if they are nothing of RoCEv2."""
    bounds = ip_bounds(packet)
    if bounds is None:
        return None
    header, size = bounds
    if int.from_bytes(packet[header + 2:header + 4], "big") != PORT or size < header + LEAST_BYTES:
        return None
    cut = size > len(packet)
    where = (12, 16, 20) if packet[0] >> 4 == 4 else (8, 24, 40)
    bth = packet[header + UDP_BYTES:header + UDP_BYTES + 12].ljust(12, b"\0")
    return Packet(number, ipaddress.ip_address(packet[where[0]:where[1]]),
                  ipaddress.ip_address(packet[where[1]:where[2]]), bth[0],
                  int.from_bytes(bth[9:], "big"),
                  None if cut else packet[size - ICRC_BYTES:size],
                  None if cut else icrc(packet[:size - ICRC_BYTES], header))


def packets(data):
    """A Packet for each of RoCEv2 in the bytes of a capture; its icrc is None if it was cut."""
    for number, (link, frame, _) in enumerate(frames(data), 1):
        at = ip_begin(link, frame)
        packet = judge(number, frame[at:]) if at is not None else None
        if packet is not None:
            yield packet


def show(path, packet):
    what = (f"ICRC {packet.icrc.hex()}, not {packet.expected.hex()}" if packet.icrc is not None
            else "it was cut")
    print(f"{path}: frame {packet.number}, {packet.source} to {packet.target}, opcode "
          f"0x{packet.opcode:02x}, PSN {packet.psn}: {what}")


def check(path):
    """(right ones, all of them)"""
    right = count = 0
    for packet in packets(pathlib.Path(path).read_bytes()):
        count += 1
        if packet.icrc is not None and packet.icrc == packet.expected:
            right += 1
        else:
            show(path, packet)
    return right, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("captures", nargs="+", metavar="CAPTURE")
    right = count = 0
    for path in parser.parse_args().captures:
        try:
            more_right, more = check(path)
        except (Malformed, OSError) as error:
            sys.exit(f"icrc.py: {path}: {getattr(error, 'strerror', None) or error}")
        right, count = right + more_right, count + more
    print(f"{count} packets, {right} right, {count - right} wrong or cut")
    sys.exit(0 if count > 0 and right == count else 1)


if __name__ == "__main__":
    main()
