#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a job pays and gets: nanoseconds for counting, what judging many communicators takes of an
agent, and how soon survivors hear of a death.

    job_bench.py BUILD-ROOT [--json]
"""

import json
import os
import re
import signal
import subprocess
import sys

import agent_bench
import agents
import cluster as clusters

PROCESSES = 64
KILLS = 5
TOLD_TARGET_MS = 1000


def counting(build):
    said = json.loads(subprocess.run([os.path.join(build, "perf", "tocsin-job-bench"), "--json"],
                                     capture_output=True, text=True, check=True).stdout)
    for row in said["rows"]:
        yield {key: row.get(key) for key in ("what", "value", "unit", "ratio", "target", "ok")} | {
            "yardstick": row["yardstick_value"]}


def judging(build):
    """What the agent's loop pays for a look at all communicators."""
    said = subprocess.run([os.path.join(build, "tests", "sim", "tocsin-judge-bench"), "--json"],
                          capture_output=True, text=True, check=True).stdout
    for row in json.loads(said):
        yield row | {"ratio": None, "yardstick": None}


def delays(build, agent):
    """Of the survivors of one job, in ms."""
    process = subprocess.Popen(
        [os.path.join(build, "lib/job/examples/ring"), "--ranks", str(PROCESSES), "--kill", "3",
         "--compute", "0", "--signal", "--socket", str(agent.directory / "job.sock")],
        stdout=subprocess.PIPE, text=True)
    agents.wait_until("all to be registered",
                      lambda: agent.counters()["job"]["ranks"] == PROCESSES)
    process.send_signal(signal.SIGUSR1)
    out, _ = process.communicate(timeout=agents.WAIT_SECONDS)
    found = [float(ms) for ms in re.findall(r"told after ([\d.]+) ms", out)]
    assert len(found) == PROCESSES - 1, out
    agents.wait_until("all to be gone", lambda: agent.counters()["job"]["ranks"] == 0)
    return sorted(found)


def telling(build):
    with clusters.Cluster(build, 1) as ring:
        ring.start().wait_ring(agents.WAIT_SECONDS)
        rounds = [delays(build, ring.agents[0]) for _ in range(KILLS)]
    medians = sorted(found[len(found) // 2] for found in rounds)
    last = max(found[-1] for found in rounds)
    yield agent_bench.row(f"a death told, {PROCESSES} processes, median", medians[KILLS // 2],
                          "ms", None)
    yield agent_bench.row(f"the same, last of {KILLS} jobs", last, "ms", TOLD_TARGET_MS)


def main(build, as_json):
    rows = []
    for part in (counting, judging, telling):
        for found in part(build):
            rows.append(found)
            if not as_json:
                agent_bench.show(found)
    if as_json:
        print(json.dumps({"bench": "job", "rows": rows}))
    return 1 if any(found["ok"] is False for found in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--json" in sys.argv[2:]))
