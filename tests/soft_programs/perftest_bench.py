#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench perftest`: tocsin-perf beside perftest, on the same devices.

perftest_bench.py BUILD-ROOT [WIRE...] [--json | --help]

Measures each wire of the software device (udp, memif, veth), with libtocsin-verbs.so in both
programs. Also measures the kernel's Soft-RoCE in a guest (rxe: ./dev vm, an emulated processor).
Default: all WIREs.

Both programs run alternately (A B B A), nine slices each. Both detect the end of an operation in
the same way: the last byte in memory for a write, else a completion.

Both run on the same processors: one for each end. If the server's program sleeps and its device's
thread serves (reads on the software device), both ends share one processor. That thread is woken
for each read. The wake-up time differs between the client's processor, an idle one and a busy one.

Each row has the ratio of the medians, tocsin-perf's to perftest's, and its interval of 96 %: second
smallest to second largest of nine. A ratio outside of 0.97 to 1.03 gets a reason: a known
difference of the programs, else "not explained". On a busy machine the medians contain other load,
and the intervals show this.

Finally both clients are stopped for 20 ms in the middle of a run. The columns show whether each
program reports the stall. On a busy machine other stalls may be longer.

If one wire fails, its earlier rows and the other wires are kept.

Exit status: 1 if a difference has no reason, a wire failed, or nothing could be measured.
"""

import collections
import contextlib
import functools
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import traceback

import cluster as clusters
import perftest_table as tables
import tap
from pairs import Kit, Memif, Udp, Veth, free_port, is_listening

SLICES = 9
SIZE = 64
BANDWIDTH_SIZE = 65536
DEPTH = 64
# A rate is measured over one second. perftest has no warm-up: it drops this much before and after.
RATE_S = 1
MARGIN_S = 1
STALL_S = 0.02
STALL_AFTER_S = 0.8      # perftest is measuring by then
STALL_OURS_S = 2.5       # our program has finished calibration and warm-up by then
STALL_RUN_S = 4          # run time of perftest, from the half round trip of its row
PATIENCE_S = 120
PATIENT = "20"           # a packet's timeout, 4 s: two spinning ends may starve other processes
GUEST_SECONDS_MAX = 900
# Columns of perftest's tables: t_typical of a latency, the average of a bandwidth.
TYPICAL, AVERAGE, LARGEST = 4, 3, 3

OWN_ACK = ("perftest waits for its own message's acknowledgement before it looks for the answer; "
           "on this device that is a packet, which ours does without")
MEMORY = (OWN_ACK + "; and while it looks in memory it calls no verb, so the device's own thread "
          "has to take the frames, and needs a processor for that")
LANE = ("between submission and post ours has a turn of the worker, and around the calls what a "
        "lane does: 55 ns on a processor that is not emulated, 1.2 us on this one (docs/perf.md)")

# Samples per slice of a latency, and known differences, by row.
Amounts = collections.namedtuple("Amounts", "samples known one_processor")
SOFT = Amounts(30000, {"half RTT, write": MEMORY, "half RTT, send": OWN_ACK}, {"RTT, read"})
RXE = Amounts(10000, {"RTT, read": LANE}, set())

# Arguments of each end: soft-run's options or None, tocsin-perf's, perftest's.
End = collections.namedtuple("End", "soft ours perftest")
Row = collections.namedtuple("Row", "what unit column perftest ours")


def lat_row(operation, amounts):
    what = "RTT, read" if operation == "read" else f"half RTT, {operation}"
    return Row(what, "us", TYPICAL,
               [f"ib_{operation}_lat", "-n", amounts.samples, "-s", SIZE],
               ["lat", "--op", operation, "--iterations", amounts.samples, "--size", SIZE])


def rate_row(operation, _):
    return Row(f"rate, {operation}", "MiB/s", AVERAGE,
               [f"ib_{operation}_bw", "-D", RATE_S + 2 * MARGIN_S, "-f", MARGIN_S,
                "-s", BANDWIDTH_SIZE, "-t", DEPTH],
               ["bw", "--op", operation, "--duration", f"{RATE_S}s", "--size", BANDWIDTH_SIZE,
                "--depth", DEPTH])


class Bench:
    def __init__(self, build):
        self.build = pathlib.Path(build)
        self.kit = Kit(str(self.build / "agent/tocsin"))

    @contextlib.contextmanager
    def pinned(self, cpus):
        """Run the programs that are started meanwhile on these processors, the server's first."""
        turns, command = itertools.cycle(cpus), self.kit.command
        self.kit.command = lambda *words: ["taskset", "-c", str(next(turns)), *command(*words)]
        try:
            yield
        finally:
            self.kit.command = command

    def ours(self, ends, words, meanwhile=None):
        perf, port = str(self.build / "perf/tocsin-perf"), str(free_port())
        where = ["--port", port, "--timeout", PATIENT]
        return self.pair(
            ends, [perf, words[0], *where, *ends[0].ours, "--listen", "127.0.0.1"],
            [perf, *words, *where, *ends[1].ours, "--perftest", "127.0.0.1"], port, meanwhile)

    def perftest(self, ends, words, meanwhile=None):
        port = str(free_port())
        common = [*words, "-F", "-u", PATIENT, "-p", port]
        return self.pair(ends, [*common, *ends[0].perftest],
                         [*common, *ends[1].perftest, "127.0.0.1"], port, meanwhile)

    def pair(self, ends, server_words, client_words, port, meanwhile):
        """Run a pair. Returns the client's figures. `meanwhile` is called with its process during
        the run."""
        with self.kit.started(*server_words, soft=ends[0].soft) as server:
            clusters.wait_until("a server that listens", lambda: is_listening(int(port)) or
                                server.process.poll() is not None, PATIENCE_S)
            with self.kit.started(*client_words, soft=ends[1].soft) as client:
                if meanwhile:
                    meanwhile(client.process)
                status, out, err = client.end()
            assert status == 0, (client_words, out, err, server.said())
            server.process.wait(timeout=PATIENCE_S)
        return tables.figures(out)


def stop_once(process, after_s):
    """Stop all threads of the process for STALL_S, in the middle of its run."""
    time.sleep(after_s)
    assert process.poll() is None, "it ended before it could be stopped"
    process.send_signal(signal.SIGSTOP)
    time.sleep(STALL_S)
    process.send_signal(signal.SIGCONT)


def measure_row(bench, ends, wire, row, amounts):
    slices, cpus = [], sorted(os.sched_getaffinity(0))[-2:]
    pins = cpus[-1:] if row.what in amounts.one_processor else cpus
    for place in range(SLICES):
        turns = [(bench.ours, row.ours), (bench.perftest, row.perftest)]
        found = {}
        print(f"perftest: {wire}, {row.what}, slice {place + 1} of {SLICES}", file=sys.stderr,
              flush=True)
        for run, words in turns if place % 2 == 0 else reversed(turns):
            with bench.pinned(pins):
                found[run] = run(ends, words)[row.column]
        slices.append((found[bench.ours], found[bench.perftest]))
    return tables.row_of(wire, row.what, row.unit, slices, amounts.known.get(row.what))


def measure_rows(bench, ends, wire, amounts):
    for make in (lat_row, rate_row):
        for operation in ("write", "send", "read"):
            yield measure_row(bench, ends, wire, make(operation, amounts), amounts)


def measure_stall(bench, ends, half_rtt_us):
    """Return the largest round trip that each program reports, in ms. perftest's half RTT of a send
    is known."""
    samples = tables.samples_within(STALL_RUN_S, half_rtt_us)
    with bench.pinned(sorted(os.sched_getaffinity(0))[-2:]):
        theirs = bench.perftest(ends, ["ib_send_lat", "-n", samples, "-s", SIZE],
                                lambda process: stop_once(process, STALL_AFTER_S))
        ours = bench.ours(ends, ["lat", "--op", "send", "--duration", "4s"],
                          lambda process: stop_once(process, STALL_OURS_S))
    return {"stalled_ms": STALL_S * 1e3, "perftest_max_ms": 2 * theirs[LARGEST] / 1e3,
            "tocsin_max_ms": 2 * ours[LARGEST] / 1e3}


class Report:
    """The results so far, and the machine's load for each row."""

    def __init__(self):
        self.rows, self.notes, self.loads, self.stall = [], [], [], None
        self.broke_off = False

    def add(self, rows):
        for row in rows:
            print(tables.row_line(row), file=sys.stderr, flush=True)
            self.rows.append(row)
            self.loads.append(os.getloadavg()[0])

    def half_rtt_us(self, wire):
        """Return the half RTT of perftest's sends, from the row of that wire."""
        return next(row["perftest"] for row in self.rows
                    if (row["wire"], row["what"]) == (wire, "half RTT, send"))

    def note_end(self, wire, why):
        self.broke_off = True
        self.notes.append(f"{wire} broke off: {why}")

    def note_load(self):
        if self.loads:
            self.notes.append(f"The machine's load was {min(self.loads):.0f} to "
                              f"{max(self.loads):.0f}, this bench's own 2 included.")


def measure_soft(build, report, wire):
    bench = Bench(build)
    try:
        with wire.ends() as softs:
            ends = [End(soft, ["--device", "soft0"], ["-x", "0"]) for soft in softs]
            report.add(measure_rows(bench, ends, wire.name, SOFT))
            if wire.name == "memif":
                report.stall = measure_stall(bench, ends, report.half_rtt_us(wire.name))
    except tap.Skip as reason:
        report.notes.append(f"{wire.name}: {reason}")


def measure_guest(build, report):
    """Measure in the guest. Rows arrive one by one."""
    tests = pathlib.Path(__file__).parent.parent
    words = [sys.executable, str(tests / "vm" / "vm.py"), "--timeout", str(GUEST_SECONDS_MAX), "--",
             "env", f"PYTHONPATH={tests / 'tools'}", "python3", __file__, build, "--in-guest"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as guest:
        report.add(json.loads(line) for line in guest.stdout)
    if guest.returncode != 0:
        report.note_end("rxe", f"the guest ended with {guest.returncode}, its reason is above.")


def in_guest(build):
    ends = [End(None, ["--device", name], ["-d", name, "-x", "1"]) for name in ("rxe1", "rxe0")]
    for row in measure_rows(Bench(build), ends, "rxe", RXE):
        print(json.dumps(row), flush=True)


def measure(build, names):
    report = Report()
    soft = functools.partial(measure_soft, build, report)
    # A veth pair moves this process to a namespace, but the guest's kit may need the network.
    steps = {"udp": lambda: soft(Udp()), "memif": lambda: soft(Memif()),
             "rxe": lambda: measure_guest(build, report), "veth": lambda: soft(Veth())}
    for name, step in steps.items():
        if names and name not in names:
            continue
        try:
            step()
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            traceback.print_exc()
            report.note_end(name, f"{error}, as is told above.")
    report.note_load()
    return report


def main(build, *words):
    if "--help" in words:
        print(__doc__.strip())
        return 0
    if shutil.which("ib_write_lat") is None:
        print("perftest_bench: perftest is not installed: ./dev setup test", file=sys.stderr)
        return 1
    if "--in-guest" in words:
        return in_guest(build)
    report = measure(build, [word for word in words if word != "--json"])
    if "--json" in words:
        rows = [tables.object_of(row) for row in report.rows]
        print(json.dumps({"bench": "perftest", "rows": rows, "stall": report.stall,
                          "notes": report.notes}))
    else:
        print("\n".join(tables.lines(report.rows, report.stall, report.notes)))
    failed = not report.rows or report.broke_off or any(map(tables.is_unexplained, report.rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
