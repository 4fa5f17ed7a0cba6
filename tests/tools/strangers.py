# SPDX-License-Identifier: BSD-3-Clause
"""Strangers by the thousand at an agent's overlay port: none of them ever proves the key.

Half come from addresses of their own and say the beginning of a hello, or nothing: they are let in
to prove the key. The other half share a few addresses: most of them are turned away.
"""

import collections
import resource
import socket
import struct
import time

OVERLAY_PORT = 28030
OPEN_MAX = 1000  # at once; the oldest is dropped for the next
CROWDED_SOURCES = 4
CONNECT_SECONDS = 10


def source_of(number):
    """An address of 127.248.0.0/14, which no cluster of the tests uses."""
    if number % 2:
        return f"127.248.0.{number // 2 % CROWDED_SOURCES + 1}"
    return f"127.{249 + number // 2 // 62500}.{number // 2 // 250 % 250}.{number // 2 % 250 + 1}"


def connect(address, number):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leave no trace
    made.settimeout(CONNECT_SECONDS)
    made.bind((source_of(number), 0))
    try:
        made.connect((address, OVERLAY_PORT))
        if number % 4 == 0:
            made.send(b"\0")
    except ConnectionError:
        pass  # let in or turned away, it was there
    return made


def flood(address, count, per_second):
    """Sends so many at that pace, or as fast as this machine can; the seconds that it took."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * OPEN_MAX), hard))
    crowd = collections.deque()
    since = time.monotonic()
    try:
        for number in range(count):
            time.sleep(max(0, since + number / per_second - time.monotonic()))
            if len(crowd) == OPEN_MAX:
                crowd.popleft().close()
            crowd.append(connect(address, number))
        return time.monotonic() - since
    finally:
        for made in crowd:
            made.close()


def counted(agent):
    """How many an agent has let in or turned away."""
    numbers = agent.counters()["transport"]
    return numbers["accepted"] + numbers["turned_away_rate"] + numbers["turned_away_full"]
