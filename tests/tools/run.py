#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev run [N]`: N agents as a ring on this machine, until they are told to stop.

    run.py BUILD-ROOT N
"""

import signal
import subprocess
import sys

import cluster as clusters


def view(cluster):
    """On a terminal a live view, until it is quit; else until a signal comes."""
    if sys.stdout.isatty():
        subprocess.run([str(cluster.tocsin), "top", "--socket", str(cluster.agents[0].socket)],
                       check=False)
        return
    while True:
        signal.pause()


def interrupt(*_):
    raise KeyboardInterrupt


def main(build, count):
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    with clusters.Cluster(build, count) as cluster:
        try:
            cluster.start()
            cluster.wait_ring()
        except (clusters.Timeout, KeyboardInterrupt) as failure:
            print(f"No ring: {failure!r}\n{cluster.logs()}", flush=True)
            return 1
        first = cluster.agents[0]
        last = cluster.agents[-1]
        print(f"{count} agents, {first.name} on {first.address} to {last.name} on "
              f"{last.address}; logs in {cluster.directory}/n*/log\n"
              f"  ask one:   {cluster.tocsin} status --socket {first.socket}\n"
              f"  kill one:  kill -9 {last.process.pid}   # {last.name}\n"
              "  stop all:  Ctrl-C", flush=True)
        try:
            view(cluster)
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
