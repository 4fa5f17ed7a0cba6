#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench rdma`: reads over real RDMA in the guest, beside perftest on the same devices.

    rdma_bench.py BUILD-ROOT [--json]     on the host: boots a guest for the next
    rdma_bench.py BUILD-ROOT --in-guest   in it: a line of JSON for each slice

`tocsin ping --rdma` between the two ends of the wire, and ib_read_lat on the same two devices, turn
and turn about. Exit status 1 if a target is missed by the whole interval.
"""

import json
import pathlib
import statistics
import subprocess
import sys

import cluster as clusters

SLICES = 9
READS = 1000
BYTES = (8, 4096)
RATIO = 1.15  # of the medians
PORT = 18600
SECONDS_MAX = 580


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


def rows(slices):
    for size in BYTES:
        pairs = [(s["ping_us"], s["read_lat_us"]) for s in slices if s["bytes"] == size]
        ratios = sorted(ping_us / lat_us for ping_us, lat_us in pairs)
        low, high = ratios[1], ratios[-2]  # of nine: an interval of 96 %
        yield {"what": f"read of {size} bytes over RDMA, p50",
               "value": statistics.median(ping_us for ping_us, _ in pairs), "unit": "us",
               "yardstick": statistics.median(lat_us for _, lat_us in pairs),
               "ratio": statistics.median(ratios), "interval": [low, high], "target": RATIO,
               "ok": low <= RATIO}


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
        print(f"{'rdma, in the guest':<36} {'tocsin':>9} {'ib_read_lat':>12} {'ratio':>6} "
              f"{'interval':>13} {'target':>6}")
        for row in found:
            print(f"{row['what']:<36} {row['value']:>6.1f} us {row['yardstick']:>9.1f} us "
                  f"{row['ratio']:>6.2f} {row['interval'][0]:>6.2f} {row['interval'][1]:>6.2f} "
                  f"{row['target']:>6.2f} {'ok' if row['ok'] else 'MISSED'}")
    return 0 if all(row["ok"] for row in found) else 1


if __name__ == "__main__":
    if "--in-guest" in sys.argv:
        in_guest(sys.argv[1])
    else:
        sys.exit(main(sys.argv[1], "--json" in sys.argv))
