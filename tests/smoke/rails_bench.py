#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench rails`: what sixteen rails cost an agent, alone and with neighbours.

    rails_bench.py BUILD-ROOT [--json]

Devices in memory (fake_rails.c), the default budget of probes: an agent by itself, then eight that
read each other, rail by rail. A processor's share and memory are of the agent that took most. The
devices' own work, which hardware would do, is in it: a read is a system call of the reader. Exit
status 1 if a target is missed.
"""

import json
import os
import sys
import tempfile
import time

import agent_bench
import agents
import cluster as clusters

RAILS = 16
AGENTS = 8
SECONDS = 60
SHARE_MAX = 2.0  # percent of a processor


def ready(agent):
    pairs = agent.ask("PAIRS")["pairs"]
    return sum(pair["state"] == "ready" and pair["ops"] > 0 for pair in pairs)


def start(ring, build, nodes):
    library = os.path.join(build, "tests", "smoke", "fake_rails.so")
    for number, agent in enumerate(ring.agents):
        agent.start(environment={"LD_PRELOAD": library, "FAKE_RAILS": str(RAILS),
                                 "FAKE_RAILS_NODES": nodes, "FAKE_RAILS_NODE": str(number)})


def wait_still(ring):
    """Until no agent makes a pair any more."""
    before, since = None, time.monotonic()
    agents.wait_until("each rail is read", lambda: all(
        ready(agent) >= RAILS * min(2, len(ring.agents)) for agent in ring.agents))
    while time.monotonic() - since < 10:
        now = [ready(agent) for agent in ring.agents]
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(1)
    return before


def measure(build, count):
    with tempfile.TemporaryDirectory() as nodes, clusters.Cluster(build, count) as ring:
        start(ring, build, nodes)
        pairs = wait_still(ring)
        before = [agent_bench.processor_seconds(agent) for agent in ring.agents]
        probes = [agent.counters()["probe"]["packets"] for agent in ring.agents]
        begin = time.monotonic()
        time.sleep(SECONDS)
        took = time.monotonic() - begin
        shares = [100 * (agent_bench.processor_seconds(agent) - past) / took
                  for agent, past in zip(ring.agents, before)]
        probes = [(agent.counters()["probe"]["packets"] - past) / took
                  for agent, past in zip(ring.agents, probes)]
        memory = [agent_bench.resident_mib(agent) for agent in ring.agents]
    name = "alone" if count == 1 else f"of {count}"
    yield agent_bench.row(f"{RAILS} rails, {name}: pairs, most", max(pairs), "", None)
    yield agent_bench.row(f"{RAILS} rails, {name}: packets a second, most", max(probes), "", None)
    yield agent_bench.row(f"{RAILS} rails, {name}: processor, most", max(shares), "%", SHARE_MAX)
    yield agent_bench.row(f"{RAILS} rails, {name}: resident, most", max(memory), "MiB", None)


def main(build, as_json):
    rows = []
    for count in (1, AGENTS):
        for found in measure(build, count):
            rows.append(found)
            if not as_json:
                agent_bench.show(found)
    if as_json:
        print(json.dumps({"bench": "rails", "rows": rows}))
    return 1 if any(found["ok"] is False for found in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--json" in sys.argv[2:]))
