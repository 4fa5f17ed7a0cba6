#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a job pays and gets: nanoseconds for counting, what judging many communicators takes of an
agent, how soon survivors hear of a death, and what a look at 80,000 ranks takes of a simulated
network.

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
NODES = 10000  # simulated, of eight ranks each; they take 9.2 GiB, and 30 s of a processor
NODES_MIB = 12000


def counting(build):
    program = os.path.join(build, "perf", "bench", "tocsin-job-bench")
    said = json.loads(subprocess.run([program, "--json"], capture_output=True, text=True,
                                     check=True).stdout)
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


def available_mib():
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        return next(int(line.split()[1]) // 1024 for line in meminfo
                    if line.startswith("MemAvailable:"))


def collecting(build):
    """COMMS of one communicator of all ranks: on the asker's links all together, and in its agent
    what is collected and judged beside what it knows of its peers."""
    if available_mib() < NODES_MIB:
        sys.exit(f"job_bench: {NODES} simulated nodes need {NODES_MIB} MiB of free memory, and "
                 f"{available_mib()} are left")
    said = json.loads(subprocess.run(
        [os.path.join(build, "tests", "sim", "tocsin-sim"), "--scenario", "jobs", "--nodes",
         str(NODES), "--json"], capture_output=True, text=True, check=True).stdout)
    what = f"COMMS of {said['jobs_ranks']:.0f} ranks"
    yield agent_bench.row(f"{what}, longest", said["jobs_ms_max"], "ms", 2000)
    yield agent_bench.row(f"{what}, of a rank", said["jobs_rank_bytes"], "B", 64)
    yield agent_bench.row(f"{what}, memory", (said["jobs_bytes"] + said["instance_bytes"]) / 2**20,
                          "MiB", 64)


def main(build, as_json):
    rows = []
    for part in (counting, judging, telling, collecting):
        for found in part(build):
            rows.append(found)
            if not as_json:
                agent_bench.show(found)
    if as_json:
        print(json.dumps({"bench": "job", "rows": rows}))
    return 1 if any(found["ok"] is False for found in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--json" in sys.argv[2:]))
