#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench crowd`: what a crowd of processes of one user costs the agent's control thread.

    crowd_bench.py BUILD-ROOT [--json] [--crowd PROCESSESxCOMMUNICATORS] [--seconds N]

The longest turn covers the arrival of the crowd, its stay, and its sudden end. Needs root, because
the crowd belongs to another user. Exit status 1 if a target is missed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import agent_bench
import agents
import cluster as clusters

CROWD_USER = 65534
TURN_TARGET_MS = 20
ANSWER_TARGET_MS = 30
ANSWERS = 5
# The control thread alone gets a real-time priority: a turn then holds no wait for a processor.
REAL_TIME = ("chrt", "--reset-on-fork", "--fifo", "1")
SHARE_SECONDS = 1.5  # an answer is shared for a second (control/overlay.h)


def control_ms(agent):
    """Processor time of the control thread, which is the first thread of the agent."""
    pid = agent.process.pid
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as stat:
        return int(stat.read().split()[0]) / 1e6


def longest_ms(agent):
    return agent.counters()["loop"]["turn_longest_ns"] / 1e6


def answer_ms(agent, question, idle_ms_per_s):
    """Processor time of the control thread for one answer, without that of its other work: the
    median of some."""
    found = []
    for _ in range(ANSWERS):
        time.sleep(SHARE_SECONDS)
        before, since = control_ms(agent), time.monotonic()
        agent.ask(question)
        found.append(control_ms(agent) - before - idle_ms_per_s * (time.monotonic() - since))
    return statistics.median(found)


def rows(build, processes, comms, seconds):
    what = f"{processes} processes x {comms} communicators"
    with clusters.Cluster(build, 1, settings={"probe.enabled": "no"}) as ring:
        ring.directory.chmod(0o755)
        agent = ring.agents[0].start(around=REAL_TIME)
        ring.wait_ring(agents.WAIT_SECONDS)
        agent.directory.chmod(0o755)
        began_ms = control_ms(agent)
        with subprocess.Popen(
                [os.path.join(build, "perf/bench/tocsin-job-crowd"),
                 str(agent.directory / "job.sock"), str(CROWD_USER), str(processes), str(comms)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
            assert crowd.stdout.readline() == "ready\n"
            yield agent_bench.row(f"{what}, arrival, control thread",
                                  control_ms(agent) - began_ms, "ms", None)
            turn_ms, began_ms = longest_ms(agent), control_ms(agent)
            yield agent_bench.row(f"{what}, arrival, longest turn", turn_ms, "ms",
                                  TURN_TARGET_MS)
            time.sleep(seconds)
            idle = (control_ms(agent) - began_ms) / seconds
            yield agent_bench.row(f"{what}, stay, of a core", idle / 10, "%", None)
            turn_ms = max(turn_ms, longest_ms(agent))
            yield agent_bench.row(f"{what}, arrival and stay, longest turn", turn_ms, "ms",
                                  TURN_TARGET_MS)
            # A name that no communicator has: all are collected and judged, and none is listed.
            yield agent_bench.row(f"{what}, COMMS, control thread",
                                  answer_ms(agent, "COMMS 0xfeedfeedfeed", idle), "ms",
                                  ANSWER_TARGET_MS)
            yield agent_bench.row(f"{what}, COMMS with all rows",
                                  answer_ms(agent, "COMMS", idle), "ms", None)
            turn_ms, began_ms = max(turn_ms, longest_ms(agent)), control_ms(agent)
            crowd.stdin.close()
            crowd.wait()
        agents.wait_until("the crowd to be gone", lambda:
                          agent.counters()["job"]["processes"] == 0)
        yield agent_bench.row(f"{what}, end, control thread", control_ms(agent) - began_ms,
                              "ms", None)
        yield agent_bench.row(f"{what}, longest turn", max(turn_ms, longest_ms(agent)), "ms",
                              TURN_TARGET_MS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--crowd", default="2000x8")
    parser.add_argument("--seconds", type=int, default=20)
    asked = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("crowd_bench: the crowd belongs to another user, so this needs root")
    processes, comms = map(int, asked.crowd.split("x"))
    found = []
    for row in rows(asked.build, processes, comms, asked.seconds):
        found.append(row)
        if not asked.json:
            agent_bench.show(row)
            sys.stdout.flush()
    if asked.json:
        print(json.dumps({"bench": "crowd", "rows": found}))
    return 1 if any(row["ok"] is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
