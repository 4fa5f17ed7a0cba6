#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin ifaces --watch` while the machine under it changes.

    ifaces_watch_netns.py TOCSIN
"""

import os
import select
import signal
import subprocess
import time

import netns
from ifaces import TOCSIN, expect
from netns import WAIT_SECONDS_MAX, ip, veth


class Watcher:
    """tocsin ifaces --watch, read line by line."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [TOCSIN, "ifaces", "--watch", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.rest = b""

    def line(self):
        end = time.monotonic() + WAIT_SECONDS_MAX
        while b"\n" not in self.rest:
            left = max(0, end - time.monotonic())
            ready = select.select([self.process.stdout], [], [], left)[0]
            assert ready, f"no line within {WAIT_SECONDS_MAX} s"
            more = os.read(self.process.stdout.fileno(), 4096)
            assert more, f"it ended: {self.process.wait()}"
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def expect(self, *lines):
        expect([self.line() for _ in lines], list(lines))

    def until(self, wanted):
        """Skips what comes before a line."""
        while self.line() != wanted:
            pass

    def stop(self):
        self.process.kill()
        self.process.wait()


def watch_address_removed():
    """an address that goes while watched moves the choice, and back when it returns."""
    veth("eth0", "10.0.0.1/24")
    veth("eth1", "10.1.0.1/24")
    watcher = Watcher()
    watcher.expect("choice: eth0 10.0.0.1/24")
    ip("addr del 10.0.0.1/24 dev eth0")
    watcher.expect("change: eth0: address removed 10.0.0.1/24", "choice: eth1 10.1.0.1/24")
    ip("addr add 10.0.0.1/24 dev eth0")
    watcher.expect("change: eth0: address added 10.0.0.1/24", "choice: eth0 10.0.0.1/24")
    watcher.stop()


def watch_coalesces():
    """what is undone within a moment is no change."""
    veth("eth0", "10.0.0.1/24")
    watcher = Watcher()
    watcher.expect("choice: eth0 10.0.0.1/24")
    watcher.process.send_signal(signal.SIGSTOP)  # a moment, however slow this machine is
    ip(*["addr del 10.0.0.1/24 dev eth0", "addr add 10.0.0.1/24 dev eth0"] * 5,
       "addr add 10.9.0.1/24 dev eth0")
    watcher.process.send_signal(signal.SIGCONT)
    watcher.expect("change: eth0: address added 10.9.0.1/24")
    watcher.stop()


def watch_link_gone():
    """an interface that the list names may go and come back while watched."""
    veth("eth0", "10.0.0.1/24")
    watcher = Watcher("--ifname", "=eth0")
    watcher.expect("choice: eth0 10.0.0.1/24")
    ip("link del eth0")
    watcher.expect('choice: none: --ifname: item "eth0" matches no interface name')
    veth("eth0", "10.0.0.2/24")
    watcher.until("choice: eth0 10.0.0.2/24")
    watcher.stop()


def watch_overrun():
    """a watcher that lost messages looks at everything anew."""
    veth("eth0", "10.0.0.1/24")
    watcher = Watcher()
    watcher.expect("choice: eth0 10.0.0.1/24")
    watcher.process.send_signal(signal.SIGSTOP)
    # Far more than a socket's buffer holds, and the one change that matters is the last.
    ip(
        *["addr add 10.77.0.1/24 dev eth0", "addr del 10.77.0.1/24 dev eth0"] * 3000,
        "addr del 10.0.0.1/24 dev eth0", "addr add 10.8.0.1/24 dev eth0",
    )
    watcher.process.send_signal(signal.SIGCONT)
    watcher.until("choice: eth0 10.8.0.1/24")
    watcher.stop()


def watch_route():
    """a route to the peer that changes is a change of the choice."""
    veth("eth0", "10.0.0.1/24")
    veth("eth1", "10.1.0.1/24")
    ip("route add 198.51.100.0/24 via 10.0.0.254")
    watcher = Watcher("--peer", "198.51.100.1")
    watcher.expect("choice: eth0 10.0.0.1/24")
    ip("route replace 198.51.100.0/24 via 10.1.0.254")
    watcher.expect("change: routes changed", "choice: eth1 10.1.0.1/24")
    watcher.stop()


CASES = [
    watch_address_removed,
    watch_coalesces,
    watch_link_gone,
    watch_overrun,
    watch_route,
]

if __name__ == "__main__":
    netns.run(CASES)
