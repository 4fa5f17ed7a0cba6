#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether splits drain anybody: 24 simulated hours of 200 nodes, one plane split each hour.

    verdict_long.py BUILD [--json]

Exit status: 0; 1 if a healthy node would be drained, or the run broke.
"""

import json
import subprocess
import sys
import time

NODES = 200
MINUTES = 1440
SEED = 1


def play(build):
    """What tocsin-sim says of the run, and how long that took."""
    begun = time.monotonic()
    done = subprocess.run(
        [f"{build}/tests/sim/tocsin-sim", "--scenario", "verdicts-splits", "--nodes", str(NODES),
         "--minutes", str(MINUTES), "--seed", str(SEED), "--json"],
        stdout=subprocess.PIPE, check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {}
    return done.returncode, said, time.monotonic() - begun


def main():
    if len(sys.argv) < 2 or any(word not in ("--json", "--help") for word in sys.argv[2:]):
        print(__doc__, file=sys.stderr)
        return 2
    if "--help" in sys.argv:
        print(__doc__)
        return 0
    status, said, wall_s = play(sys.argv[1])
    drained = said.get("healthy_drained")
    met = status == 0 and drained == 0
    rows = [
        {"what": "healthy nodes drained", "value": drained, "unit": "", "target": 0, "ok": met},
        {"what": "simulated time", "value": MINUTES / 60, "unit": "h", "target": None, "ok": None},
        {"what": "wall time", "value": round(wall_s, 1), "unit": "s", "target": None, "ok": None},
        {"what": "time on the processor", "value": said.get("cpu_s"), "unit": "s",
         "target": None, "ok": None},
        {"what": "brakes", "value": said.get("brakes_on"), "unit": "", "target": None, "ok": None},
        {"what": "told to be dead, though alive", "value": said.get("declared_dead"), "unit": "",
         "target": None, "ok": None},
    ]
    if "--json" in sys.argv:
        print(json.dumps({"bench": "verdict-long", "nodes": NODES, "seed": SEED, "rows": rows}))
        return 0 if met else 1
    print(f"{NODES} nodes, one plane split each hour, seed {SEED}")
    for row in rows:
        value = "-" if row["value"] is None else f"{row['value']:g}"
        verdict = "" if row["ok"] is None else "ok" if row["ok"] else "MISSED"
        print(f"{row['what']:<40} {value:>12} {row['unit']:<3} {verdict}".rstrip())
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
