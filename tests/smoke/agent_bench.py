#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench agent`: figures of real agents on this machine, against those to be reached.

    agent_bench.py BUILD-ROOT [--json]

Four of 64 agents, two of twelve that probe each other, two of a pair by each idle policy of its
workers, beside spinning, then how late the timers of one of three are under a flood of strangers,
beside how late another process wakes up meanwhile. Exit status 1 if a target is missed.
"""

import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import time

import agents
import cluster as clusters
import strangers

AGENTS = 64
PROBERS = 12
IDLE_SECONDS = 20
POLICIES = ("spin", "adaptive", "event", "window")  # the first is the yardstick
POLICY_PROBES = 100  # of 8 bytes, a path's memory of them is 128
STRANGERS = 10000
PER_SECOND = 1000
WINDOW_SECONDS = 60  # of what the loop tells as longest (control/loop.h)
NAP_SECONDS = 0.01
WORDS = {True: "ok", False: "MISSED", None: ""}


def row(what, value, unit, target, yardstick=None):
    return {"what": what, "value": value, "unit": unit, "yardstick": yardstick,
            "ratio": value / yardstick if yardstick else None, "target": target,
            "ok": None if target is None else value <= target}


def processor_seconds(agent):
    with open(f"/proc/{agent.process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(agent):
    with open(f"/proc/{agent.process.pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def status_ms(agent):
    since = time.monotonic()
    with agent.client() as client:
        client.send("STATUS\n")
        client.rest()
    return 1e3 * (time.monotonic() - since)


def many(build):
    """Rows of 64 agents in one ring."""
    with clusters.Cluster(build, AGENTS) as cluster:
        for agent in cluster.agents:
            agent.configure(probe__enabled="no")  # what the overlay costs alone
        cluster.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.wait_one_view(cluster)
        before = [processor_seconds(agent) for agent in cluster.agents]
        time.sleep(IDLE_SECONDS)
        used = [processor_seconds(agent) - then
                for agent, then in zip(cluster.agents, before)]
        yield row(f"one of {AGENTS} idle agents, of a core",
                  100 * statistics.mean(used) / IDLE_SECONDS, "%", 0.2)
        yield row("resident, the largest", max(map(resident_mib, cluster.agents)), "MiB", 64)
        yield row(f"STATUS of {AGENTS} agents, median",
                  statistics.median(map(status_ms, cluster.agents)), "ms", 50)
        victim = cluster.agents[AGENTS // 2]
        victim.kill()
        yield row("killed -> dead known by all",
                  agents.wait_for_state(cluster, victim.name, "dead"), "s", 2)


def worker_seconds(agent):
    """Of its polling threads."""
    used = 0
    for stat in pathlib.Path(f"/proc/{agent.process.pid}/task").glob("*/stat"):
        name, fields = stat.read_text(encoding="ascii").rsplit(")", 1)
        if "(tocsin-w" in name:
            fields = fields.split()
            used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


def probing(build):
    """Rows of agents with about eight paths each, ten probes a second on every one."""
    with clusters.Cluster(build, PROBERS) as cluster:
        for agent in cluster.agents:
            agent.configure(probe__interval="100ms", probe__packets="1000", probe__bytes="8MiB",
                            probe__rotation="no")
        cluster.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.wait_until("all neighbours", lambda: all(
            agent.counters()["probe"]["neighbours"] > 1 for agent in cluster.agents))
        before = [(worker_seconds(agent), processor_seconds(agent), agent.counters()["probe"])
                  for agent in cluster.agents]
        time.sleep(IDLE_SECONDS)
        after = [(worker_seconds(agent), processor_seconds(agent), agent.counters()["probe"])
                 for agent in cluster.agents]
        answered = statistics.mean(
            b[2]["answered"] - a[2]["answered"] for a, b in zip(before, after)) / IDLE_SECONDS
        for what, place, target in (("worker", 0, 1), ("whole agent, answering too", 1, None)):
            used = statistics.mean(b[place] - a[place] for a, b in zip(before, after))
            yield row(f"{what}, {answered:.0f} probes/s",
                      100 * used / IDLE_SECONDS, "%", target)


def short_reads(agent, count):
    """What is remembered of probes of 8 bytes from n1 to n2, once it is so many."""
    def found():
        paths = agent.ask("PATH n1 n2").get("ends", [{}])[0].get("paths")
        return paths and paths[0]["sizes"][0]["recent"] >= count and paths[0]["sizes"][0]

    return agents.wait_until(f"{count} probes", found)


def by_policy(build):
    """Rows of two agents that read each other ten times a second, each policy in a cluster anew."""
    spun = {}
    for policy in POLICIES:
        with clusters.Cluster(build, 2) as cluster:
            for agent in cluster.agents:
                agent.configure(probe__interval="100ms", worker__idle=policy)
            cluster.start()
            cluster.wait_ring(agents.WAIT_SECONDS)
            short_reads(cluster.agents[0], 1)
            since, used = time.monotonic(), [worker_seconds(agent) for agent in cluster.agents]
            took_us = short_reads(cluster.agents[0], POLICY_PROBES)["median_ns"] / 1e3
            seconds = time.monotonic() - since
            used = [worker_seconds(agent) - then for agent, then in zip(cluster.agents, used)]
            for what, value, unit in (
                    ("a probe of 8 bytes, median", took_us, "us"),
                    ("worker, 20 probes/s", 100 * statistics.mean(used) / seconds, "%")):
                yield row(f"{policy}: {what}", value, unit, None, spun.setdefault(what, value))


def nap(latest_ms, stop):
    """In a process of its own: by how much this machine lets a sleeper sleep too long."""
    while not stop.is_set():
        since = time.monotonic()
        time.sleep(NAP_SECONDS)
        late_ms = 1e3 * (time.monotonic() - since - NAP_SECONDS)
        latest_ms.value = max(latest_ms.value, late_ms)


def flooded(build):
    """The row of strangers at one agent of three."""
    latest_ms, stop = multiprocessing.Value("d", 0.0), multiprocessing.Event()
    napper = multiprocessing.Process(target=nap, args=(latest_ms, stop), daemon=True)
    with clusters.Cluster(build, 3) as cluster:
        cluster.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        time.sleep(2 * WINDOW_SECONDS)  # how late it was when it started is not asked
        napper.start()
        took = strangers.flood(cluster.agents[0].address, STRANGERS, PER_SECOND)
        stop.set()
        napper.join()
        agents.assert_no_death_but(cluster)
        late_ns = cluster.agents[0].counters()["loop"]["timer_late_longest_ns"]
        yield row(f"latest timer, {STRANGERS / took:.0f} strangers/s", late_ns / 1e6, "ms", 200,
                  latest_ms.value)


def show(found):
    yardstick = "" if found["yardstick"] is None else f"{found['yardstick']:.2f}"
    print(f"{found['what']:<40} {found['value']:>9.2f} {found['unit']:<4} {yardstick:>10} "
          f"{found['target'] or '':>8} {WORDS[found['ok']]}", flush=True)


def main(build, as_json):
    rows = []
    if not as_json:
        print(f"{'agent':<40} {'reached':>9} {'':<4} {'another':>10} {'target':>8}", flush=True)
    for part in (many, probing, by_policy, flooded):
        for found in part(build):
            rows.append(found)
            if not as_json:
                show(found)
    if as_json:
        print(json.dumps({"bench": "agent", "rows": rows}))
    return 1 if any(found["ok"] is False for found in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--json" in sys.argv[2:]))
