#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench perftest`: tocsin-perf beside perftest, on each wire of the software device.

    perftest_bench.py BUILD-ROOT [--json | --help]

Both programs run over libtocsin-verbs.so, turn and turn about (A B B A), nine slices of each; they
notice the end of an operation alike: of a write its last byte in memory, else a completion.

They are on the same processors: one for each end, but one for both where the server's program
sleeps (reads). Its device's thread is woken for each read, and takes another time on the client's
processor, on one that idles and on one that is busy.

Of each row the ratio of the medians, tocsin-perf's to perftest's, and its interval of 96 %: the
second smallest and the second largest of nine. A ratio that does not meet 0.97 to 1.03 is named: by
what both programs are known to do differently, else as not explained. Where others compute, too,
the medians are theirs as well, and the intervals say so.

Then one stall of 20 ms in each: both clients are stopped for so long in the middle of a run, and
their columns tell of it, or not. On a machine that computes something else other stalls are longer.

Exit status: 1 if a difference has no name, or nothing could be measured.
"""

import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import sys
import time

import cluster as clusters
import tap
from pairs import Kit, Memif, Udp, Veth, free_port, is_listening

SLICES = 9
MET = (0.97, 1.03)
SIZE = 64
SAMPLES = 10000
BANDWIDTH_SIZE = 65536
BANDWIDTH_MESSAGES = 3000
DEPTH = 64
STALL_S = 0.02
STALL_AFTER_S = 0.8      # by then perftest measures
STALL_OURS_S = 2.5       # and ours has its yardsticks and its warm-up behind it
STALL_SAMPLES = 100000   # of perftest, a second at least
PATIENCE_S = 120
PATIENT = "20"           # a packet's timeout, 4 s: two ends that spin starve others
# Of perftest's tables: t_typical of a latency, the average of a bandwidth.
TYPICAL, AVERAGE, LARGEST = 4, 3, 3

OWN_ACK = ("perftest waits for its own message's acknowledgement before it looks for the answer; "
           "on this device that is a packet, which ours does without")
MEMORY = (OWN_ACK + "; and while it looks in memory it calls no verb, so the device's own thread "
          "has to take the frames, and needs a processor for that")
ROWS = [
    # What, perftest's program and options, ours, column, unit, what is known to differ.
    ("half RTT, write", ["ib_write_lat", "-n", SAMPLES, "-s", SIZE],
     ["lat", "--op", "write", "--iterations", SAMPLES, "--size", SIZE], TYPICAL, "us", MEMORY),
    ("half RTT, send", ["ib_send_lat", "-n", SAMPLES, "-s", SIZE],
     ["lat", "--op", "send", "--iterations", SAMPLES, "--size", SIZE], TYPICAL, "us", OWN_ACK),
    ("RTT, read", ["ib_read_lat", "-n", SAMPLES, "-s", SIZE],
     ["lat", "--op", "read", "--iterations", SAMPLES, "--size", SIZE], TYPICAL, "us", None),
    ("rate, write", ["ib_write_bw", "-n", BANDWIDTH_MESSAGES, "-s", BANDWIDTH_SIZE, "-t", DEPTH],
     ["bw", "--op", "write", "--iterations", BANDWIDTH_MESSAGES, "--size", BANDWIDTH_SIZE,
      "--depth", DEPTH], AVERAGE, "MiB/s", None),
]
ONE_PROCESSOR = {"RTT, read"}


def figures(said):
    """The numbers of the last line of either program's table."""
    found = [line.split() for line in said.splitlines() if re.match(r" *\d+ +\d+ +[\d.]", line)]
    assert found, said
    return [float(cell) for cell in found[-1]]


class Bench:
    def __init__(self, build):
        self.build = pathlib.Path(build)
        self.kit = Kit(str(self.build / "agent/tocsin"))

    @contextlib.contextmanager
    def pinned(self, cpus):
        """Programs that are started meanwhile are on these processors, the server's first."""
        turns, command = itertools.cycle(cpus), self.kit.command
        self.kit.command = lambda *words: ["taskset", "-c", str(next(turns)), *command(*words)]
        try:
            yield
        finally:
            self.kit.command = command

    def ours(self, ends, words, meanwhile=None):
        perf, port = str(self.build / "perf/tocsin-perf"), str(free_port())
        where = ["--device", "soft0", "--port", port, "--timeout", PATIENT]
        return self.pair(ends, [perf, words[0], *where, "--listen", "127.0.0.1"],
                         [perf, *words, *where, "--perftest", "127.0.0.1"], port, meanwhile)

    def perftest(self, ends, words, meanwhile=None):
        port = str(free_port())
        common = [*words, "-F", "-x", "0", "-u", PATIENT, "-p", port]
        return self.pair(ends, common, [*common, "127.0.0.1"], port, meanwhile)

    def pair(self, ends, server_words, client_words, port, meanwhile):
        """The client's figures; `meanwhile` is called with its process while it runs."""
        with self.kit.started(*server_words, soft=ends[0]) as server:
            clusters.wait_until("a server that listens", lambda: is_listening(int(port)) or
                                server.process.poll() is not None, PATIENCE_S)
            with self.kit.started(*client_words, soft=ends[1]) as client:
                if meanwhile:
                    meanwhile(client.process)
                status, out, err = client.end()
            assert status == 0, (client_words, out, err, server.said())
            server.process.wait(timeout=PATIENCE_S)
        return figures(out)


def stop_once(process, after_s):
    """Stops all threads of it for STALL_S, in the middle of its run."""
    time.sleep(after_s)
    assert process.poll() is None, "it ended before it could be stopped"
    process.send_signal(signal.SIGSTOP)
    time.sleep(STALL_S)
    process.send_signal(signal.SIGCONT)


def row_of(wire, row, slices):
    what, _, _, _, unit, known = row
    ratios = sorted(ours / theirs for ours, theirs in slices)
    low, high = ratios[1], ratios[-2]
    met = low <= MET[1] and high >= MET[0]
    return {"wire": wire, "what": what, "unit": unit,
            "perftest": statistics.median(theirs for _, theirs in slices),
            "tocsin": statistics.median(ours for ours, _ in slices),
            "ratio": statistics.median(ratios), "interval": [low, high], "met": met,
            "difference": None if met else known or "not explained"}


def measure_row(bench, ends, wire, row):
    _, theirs, ours, column, _, _ = row
    slices, cpus = [], sorted(os.sched_getaffinity(0))[-2:]
    pins = cpus[-1:] if row[0] in ONE_PROCESSOR else cpus
    for place in range(SLICES):
        turns = [(bench.ours, ours), (bench.perftest, theirs)]
        found = {}
        print(f"perftest: {wire}, {row[0]}, slice {place + 1} of {SLICES}", file=sys.stderr)
        for run, words in turns if place % 2 == 0 else reversed(turns):
            with bench.pinned(pins):
                found[run] = run(ends, words)[column]
        slices.append((found[bench.ours], found[bench.perftest]))
    return row_of(wire, row, slices)


def measure_stall(bench, ends):
    """The largest sample that each tells of, in ms: half of a round trip."""
    theirs = bench.perftest(ends, ["ib_send_lat", "-n", STALL_SAMPLES, "-s", SIZE],
                            lambda process: stop_once(process, STALL_AFTER_S))
    ours = bench.ours(ends, ["lat", "--op", "send", "--duration", "4s"],
                      lambda process: stop_once(process, STALL_OURS_S))
    return {"stalled_ms": STALL_S * 1e3, "perftest_max_ms": 2 * theirs[LARGEST] / 1e3,
            "tocsin_max_ms": 2 * ours[LARGEST] / 1e3}


def measure(build):
    bench, rows, notes, stall = Bench(build), [], [], None
    for wire in (Udp(), Memif(), Veth()):
        try:
            with wire.ends() as ends:
                rows += [measure_row(bench, ends, wire.name, row) for row in ROWS]
                if wire.name == "memif":
                    stall = measure_stall(bench, ends)
        except tap.Skip as reason:
            notes.append(f"{wire.name}: {reason}")
    return rows, notes, stall


def show(rows, notes, stall):
    print(f"{'wire':<6} {'what':<16} {'':<5} {'perftest':>10} {'tocsin':>10} {'ratio':>6} "
          f"{'interval':>13}")
    for row in rows:
        low, high = row["interval"]
        print(f"{row['wire']:<6} {row['what']:<16} {row['unit']:<5} {row['perftest']:>10.2f} "
              f"{row['tocsin']:>10.2f} {row['ratio']:>6.2f} {low:>6.2f} {high:>6.2f} "
              f"{'met' if row['met'] else 'differs'}")
    for difference in sorted({row["difference"] for row in rows if row["difference"]}):
        where = ", ".join(f"{row['what']} on {row['wire']}" for row in rows
                          if row["difference"] == difference)
        print(f"{where}: {difference}.")
    if stall:
        print(f"One stall of {stall['stalled_ms']:.0f} ms: the largest round trip is "
              f"{stall['perftest_max_ms']:.1f} ms by perftest, {stall['tocsin_max_ms']:.1f} ms by "
              "tocsin-perf.")
    for note in notes:
        print(note)


def main(build, *options):
    if "--help" in options:
        print(__doc__.strip())
        return 0
    if shutil.which("ib_write_lat") is None:
        print("perftest_bench: perftest is not installed: ./dev setup test", file=sys.stderr)
        return 1
    rows, notes, stall = measure(build)
    if "--json" in options:
        print(json.dumps({"bench": "perftest", "rows": rows, "stall": stall, "notes": notes}))
    else:
        show(rows, notes, stall)
    return 1 if not rows or any(row["difference"] == "not explained" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
