#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev run [N]`: N agents as a ring on this machine, until they are told to stop.

    run.py BUILD-ROOT N
"""

import signal
import subprocess
import sys

import cluster as clusters

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def hints(cluster):
    """What there is to do with it, in lines to be copied."""
    first, last = cluster.agents[0], cluster.agents[-1]
    pids = " ".join(f"{agent.name}={agent.process.pid}" for agent in cluster.agents[:16])
    return (f"{len(cluster.agents)} agents, {first.name} on {first.address} to {last.name} on "
            f"{last.address}; logs in {cluster.directory}/n*/log\n"
            f"  ask one:   {cluster.tocsin} status --socket {first.socket}\n"
            f"  kill one:  kill -9 {last.process.pid}   # {last.name}; others: {pids}\n"
            "  stop all:  Ctrl-C")


def view(cluster):
    """On a terminal a live view, for as long as is wanted; else until a signal comes."""
    while sys.stdin.isatty() and sys.stdout.isatty():
        if not input("\nEnter shows it live (q ends the view), Ctrl-C stops all. ") == "":
            continue
        subprocess.run([str(cluster.tocsin), "top", "--socket", str(cluster.agents[0].socket)],
                       check=False)
        print(hints(cluster), flush=True)
    while True:
        signal.pause()


def interrupt(*_):
    # Another one, as of Ctrl-C pressed twice, would break off the stop and leave files behind.
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(build, count):
    for number in STOPS:
        signal.signal(number, interrupt)
    with clusters.Cluster(build, count) as cluster:
        try:
            cluster.start()
            cluster.wait_ring()
        except (clusters.Timeout, KeyboardInterrupt) as failure:
            print(f"No ring: {failure!r}\n{cluster.logs()}", flush=True)
            return 1
        try:
            print(hints(cluster), flush=True)
            view(cluster)
        except (KeyboardInterrupt, EOFError):
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
