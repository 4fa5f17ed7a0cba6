#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench rdma`: reads over real RDMA in the guest, beside perftest on the same devices.

    rdma_bench.py BUILD-ROOT [--json]     on the host: boots a guest for the next
    rdma_bench.py BUILD-ROOT --in-guest   in it: a line of JSON for each slice

`tocsin ping --rdma` between the two ends of the wire, and ib_read_lat on the same two devices, turn
and turn about; then what a worker costs that probes its peers ten times a second each, beside as
many empty wakes. Exit status 1 if a target is missed by the whole interval.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import cluster as clusters

SLICES = 9
READS = 1000
BYTES = (8, 4096)
RATIO = 1.15  # of the medians
PORT = 18600
SECONDS_MAX = 580
PROBED = 8  # peers of the one that probes
PROBE_SECONDS = 20
BENCH_WAKES = 80  # a second, of the row of tocsin-worker-bench


def lines(text):
    return [line.split() for line in text.splitlines()]


def read_lat(size):
    """t_typical of ib_read_lat, in microseconds."""
    words = ["ib_read_lat", "-x", "1", "-n", str(READS), "-s", str(size), "-F", "-p", str(PORT)]
    with subprocess.Popen([*words, "-d", "rxe1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL) as server:
        clusters.wait_until("ib_read_lat to listen", lambda: f":{PORT} " in subprocess.run(
            ["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout)
        told = subprocess.run([*words, "-d", "rxe0", "127.0.0.1"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True).stdout
        server.wait(30)
    return next(float(line[4]) for line in lines(told) if line[:2] == [str(size), str(READS)])


def ping(agent, peer, size):
    return agent.ask(f"PROBE {peer.name} {READS} {size}")["p50_ns"] / 1e3


def worker_seconds(agent):
    """Of its polling threads, on a processor."""
    used = 0
    for schedstat in pathlib.Path(f"/proc/{agent.process.pid}/task").glob("*/schedstat"):
        if schedstat.with_name("comm").read_text(encoding="ascii").startswith("tocsin-w"):
            used += int(schedstat.read_text(encoding="ascii").split()[0])
    return used / 1e9


def probed_beside_wakes(build):
    """One agent reads all others and itself; what its worker costs, and what empty wakes would."""
    with clusters.Cluster(build, PROBED + 1) as cluster:
        prober = cluster.agents[0]
        for agent in cluster.agents:
            agent.configure(node__device="nic:rxe0", probe__enabled="no")
        prober.configure(probe__enabled="yes", probe__interval="100ms", probe__packets="1000",
                         probe__bytes="8MiB", probe__rotation="no")
        cluster.start()
        cluster.wait_ring(clusters.WAIT_SECONDS_MAX)
        clusters.wait_until("all neighbours", lambda: (
            prober.counters()["probe"]["neighbours"] > 1 and
            prober.counters()["probe"]["answered"] > 10 * PROBED))
        before, used = prober.counters()["probe"]["answered"], worker_seconds(prober)
        since = time.monotonic()
        time.sleep(PROBE_SECONDS)
        probes = prober.counters()["probe"]["answered"] - before
        used, seconds = worker_seconds(prober) - used, time.monotonic() - since
    told = subprocess.run([os.path.join(build, "perf/bench/tocsin-worker-bench"), "--json"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wakes = next(row["yardstick_value"] for row in json.loads(told.stdout)["rows"]
                 if row["what"].startswith(f"{BENCH_WAKES} deadlines"))
    return {"probes_s": probes / seconds, "percent": 100 * used / seconds,
            "wakes_percent": wakes * probes / seconds / BENCH_WAKES}


def in_guest(build):
    with clusters.Cluster(build, 2) as cluster:
        one, two = cluster.agents
        one.own["node.device"], two.own["node.device"] = "nic:rxe0", "nic:rxe1"
        cluster.start()
        cluster.wait_ring()
        clusters.wait_until("a pair", lambda: any(
            pair["state"] == "ready" and pair["node"] == two.name
            for pair in one.ask("PAIRS")["pairs"]))
        for _ in range(SLICES):
            for size in BYTES:
                slice_ = {"bytes": size, "ping_us": ping(one, two, size),
                          "read_lat_us": read_lat(size)}
                print(json.dumps(slice_), flush=True)
    print(json.dumps(probed_beside_wakes(build)), flush=True)


def rows(slices):
    for size in BYTES:
        pairs = [(s["ping_us"], s["read_lat_us"]) for s in slices if s.get("bytes") == size]
        ratios = sorted(ping_us / lat_us for ping_us, lat_us in pairs)
        low, high = ratios[1], ratios[-2]  # of nine: an interval of 96 %
        yield {"what": f"read of {size} bytes over RDMA, p50",
               "value": statistics.median(ping_us for ping_us, _ in pairs), "unit": "us",
               "yardstick": statistics.median(lat_us for _, lat_us in pairs),
               "ratio": statistics.median(ratios), "interval": [low, high], "target": RATIO,
               "ok": low <= RATIO}
    for probed in (s for s in slices if "probes_s" in s):
        yield {"what": f"a worker, {probed['probes_s']:.0f} probes a second",
               "value": probed["percent"], "unit": "%", "yardstick": probed["wakes_percent"],
               "ratio": probed["percent"] / probed["wakes_percent"], "interval": None,
               "target": None, "ok": None}


def line_of(row):
    line = (f"{row['what']:<36} {row['value']:>6.1f} {row['unit']:<2} {row['yardstick']:>9.1f} "
            f"{row['unit']:<2} {row['ratio']:>6.2f}")
    if row["target"] is None:
        return line
    return (f"{line} {row['interval'][0]:>6.2f} {row['interval'][1]:>6.2f} {row['target']:>6.2f} "
            f"{'ok' if row['ok'] else 'MISSED'}")


def main(build, as_json):
    vm = pathlib.Path(__file__).parent / "vm.py"
    tools = pathlib.Path(__file__).parent.parent / "tools"
    done = subprocess.run(
        [sys.executable, str(vm), "--timeout", str(SECONDS_MAX), "--", "env",
         f"PYTHONPATH={tools}", "python3", __file__, build, "--in-guest"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    found = list(rows([json.loads(line) for line in done.stdout.splitlines()]))
    if as_json:
        print(json.dumps({"bench": "rdma", "rows": found}))
    else:
        print(f"{'rdma, in the guest':<36} {'tocsin':>9} {'yardstick':>12} {'ratio':>6} "
              f"{'interval':>13} {'target':>6}")
        for row in found:
            print(line_of(row))
        print("The yardstick of reads is ib_read_lat, that of the worker as many empty wakes.")
    return 1 if any(row["ok"] is False for row in found) else 0


if __name__ == "__main__":
    if "--in-guest" in sys.argv:
        in_guest(sys.argv[1])
    else:
        sys.exit(main(sys.argv[1], "--json" in sys.argv))
