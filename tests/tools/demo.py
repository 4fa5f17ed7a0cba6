#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev demo`: a small cluster on this machine, and what it sees when things go wrong.

    demo.py BUILD-ROOT

Exit status 0 only if all was as it should be.
"""

import subprocess
import sys
import time

import cluster as clusters

AGENTS = 5


class Story:
    """Says what happens, numbered and timed."""

    def __init__(self):
        self.step = 0

    def tell(self, text):
        self.step += 1
        print(f"\n{self.step}. {text}", flush=True)

    def seen(self, text, since):
        print(f"   {text} ({time.monotonic() - since:.2f} s)", flush=True)


def show(cluster, *arguments, agent=0):
    """What a user would type, and see."""
    shown = " ".join(arguments)
    print(f"\n   $ tocsin {shown}", flush=True)
    done = subprocess.run([str(cluster.tocsin), *arguments, "--socket",
                           str(cluster.agents[agent].socket)], capture_output=True, text=True,
                          check=False)
    for line in (done.stdout + done.stderr).splitlines():
        print(f"   {line}", flush=True)
    return done.returncode


def others(cluster, *absent):
    return [agent for agent in cluster.running() if agent not in absent]


def ring_forms(story, cluster):
    story.tell(f"{AGENTS} agents start and look for each other.")
    since = time.monotonic()
    cluster.start()
    cluster.wait_ring()
    story.seen("every agent sees every other one alive", since)
    show(cluster, "status")


def pairs_are_made(story, cluster):
    """Where there are RDMA devices: every neighbour is read over them."""
    asker, asked = cluster.agents[:2]
    if not asker.ask("DEVICES")["devices"]:
        story.tell("This machine has no RDMA device, so nothing is read over RDMA here.")
        return
    story.tell("Every agent pairs its RDMA device with its neighbours', to read their pulse.")
    since = time.monotonic()
    clusters.wait_until("all pairs ready", lambda: all(
        pair["state"] == "ready" for agent in cluster.running()
        for pair in agent.ask("PAIRS")["pairs"] or [{"state": "none"}]))
    story.seen("all pairs are ready", since)
    if show(cluster, "ping", "--rdma", asked.name) != 0:
        raise clusters.Timeout(f"{asked.name} is not read over RDMA")
    show(cluster, "links", "--rdma")


def one_is_killed(story, cluster):
    victim = cluster.agents[1]
    story.tell(f"{victim.name} is killed (SIGKILL): its kernel answers, the process is gone.")
    since = time.monotonic()
    victim.kill()
    clusters.wait_until("dead everywhere", lambda: cluster.agree([victim.name], "dead"))
    story.seen("dead, say all who live, by two observers", since)
    show(cluster, "why", victim.name)
    story.tell(f"{victim.name} is started again.")
    since = time.monotonic()
    victim.start()
    cluster.wait_ring()
    story.seen("back as a new start", since)


def one_is_frozen(story, cluster):
    victim = cluster.agents[2]
    rest = others(cluster, victim)
    story.tell(f"{victim.name} is frozen (SIGSTOP): its sockets are open, nobody answers.")
    since = time.monotonic()
    victim.freeze()
    clusters.wait_until("dead everywhere", lambda: cluster.agree([victim.name], "dead", rest))
    story.seen("suspected, looked for by others, dead", since)
    show(cluster, "why", victim.name)
    story.tell(f"{victim.name} wakes up.")
    since = time.monotonic()
    victim.thaw()
    cluster.wait_ring()
    story.seen("alive again everywhere, and it declared nobody dead", since)


def one_leaves(story, cluster):
    victim = cluster.agents[3]
    story.tell(f"{victim.name} is asked to stop (SIGTERM): it says goodbye.")
    since = time.monotonic()
    status = victim.leave()
    clusters.wait_until("left everywhere", lambda: cluster.agree([victim.name], "left"))
    story.seen(f"it exited with {status}; left, not dead, say all: no alarm", since)
    if status != 0:
        raise clusters.Timeout(f"{victim.name} exited with {status}, not 0")
    show(cluster, "status")
    show(cluster, "events")


def main(build):
    story = Story()
    print("Tocsin on the loopback of this machine: real agents, sealed connections, no privileges.")
    with clusters.Cluster(build, AGENTS) as cluster:
        try:
            ring_forms(story, cluster)
            pairs_are_made(story, cluster)
            one_is_killed(story, cluster)
            one_is_frozen(story, cluster)
            one_leaves(story, cluster)
        except (clusters.Timeout, OSError, EOFError, ValueError) as failure:
            print(f"\nNot as it should be: {failure}\n\n{cluster.logs()}", flush=True)
            return 1
    print("\nAll as it should be. ./dev run starts such a cluster to play with.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
