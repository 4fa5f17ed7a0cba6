# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: the kernel's Soft-RoCE on the cable to the host, and programs on request of
the host.

guest.py PORT ADDRESS/PREFIX...

Each connection to PORT is one request, a line of JSON. Answers are lines of JSON: when the program
listens (if requested), and when it has ended. Closing the connection ends the program.
"""

import contextlib
import json
import os
import signal
import socketserver
import subprocess
import sys
import time

SECONDS_MAX = 500
LISTENS = "0A"  # state "listen" of /proc/net/tcp


def set_up(addresses):
    nodad = {True: ["nodad"], False: []}
    for words in (["ip", "link", "set", "eth0", "up"],
                  *(["ip", "addr", "add", address, "dev", "eth0", *nodad[":" in address]]
                    for address in addresses),
                  ["modprobe", "-a", "crc32_generic", "rdma_rxe", "sch_netem"],
                  ["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "eth0"]):
        subprocess.run(words, check=True)


def listens(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            rows = [line.split() for line in file][1:]
        if any(row[1].endswith(f":{port:04X}") and row[3] == LISTENS for row in rows):
            return True
    return False


class Order(socketserver.StreamRequestHandler):
    def answer(self, **words):
        self.wfile.write(json.dumps(words).encode() + b"\n")

    def wait_listening(self, process, port):
        until = time.monotonic() + SECONDS_MAX
        while process.poll() is None and time.monotonic() < until:
            if listens(port):
                self.answer(listens=True)
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)

    def handle(self):
        order = json.loads(self.rfile.readline())
        with subprocess.Popen(order["words"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True) as process:
            if order.get("port"):
                self.wait_listening(process, order["port"])
            try:
                said, _ = process.communicate(timeout=order.get("seconds", SECONDS_MAX))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                said = process.communicate()[0] + b"\n(ended after its time)"
        self.answer(status=process.returncode, said=said.decode("utf-8", "replace"))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main(port, *addresses):
    set_up(addresses)
    with Server(("", int(port)), Order) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
