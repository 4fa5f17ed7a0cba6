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

AGENTS = 4
PROGRESS_SECONDS = 2
SOFT = "soft0"


class Story:
    """Says what happens, numbered and timed."""

    def __init__(self):
        self.step = 0

    def tell(self, text):
        self.step += 1
        print(f"\n{self.step}. {text}", flush=True)

    def seen(self, text, since):
        print(f"   {text} ({time.monotonic() - since:.2f} s)", flush=True)

    def wait(self, what, function, seconds=clusters.WAIT_SECONDS_MAX):
        """Until it is so; whoever looks on is told that it goes on."""
        since = time.monotonic()
        said = since

        def asked():
            nonlocal said
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                print(f"   ... {what}: {said - since:.0f} s", flush=True)
            try:
                return function()
            except (OSError, EOFError):
                return False

        clusters.wait_until(what, asked, seconds)


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


def says(agent, name, verdict):
    return agent.ask(f"HEALTH {name}")["findings"][0]["verdict"] == verdict


def wait_verdict(story, name, verdict, among):
    """Until all of them say so."""
    since = time.monotonic()
    story.wait(f"{name} {verdict}", lambda: all(says(agent, name, verdict) for agent in among))
    story.seen(f"{verdict}, say all who live", since)


def ring_forms(story, cluster):
    story.tell(f"{AGENTS} agents start and look for each other.")
    since = time.monotonic()
    for agent in cluster.agents:
        # Five probes a second instead of one, so that what is normal is learnt in half a minute.
        agent.configure(**{"probe__interval": "200ms", "probe__packets": "800",
                           f"device__{SOFT}__faults": ""})
    cluster.start()
    names = [agent.name for agent in cluster.agents]
    story.wait("one ring", lambda: cluster.agree(names, "alive"))
    story.seen("every agent sees every other one alive", since)
    show(cluster, "status")


def has_soft_device(cluster):
    return [device["name"] for device in cluster.agents[0].ask("DEVICES")["devices"]] == [SOFT]


def pairs_are_made(story, cluster):
    """Where there are RDMA devices: every neighbour is read over them."""
    asked = cluster.agents[1]
    if not cluster.agents[0].ask("DEVICES")["devices"]:
        story.tell("This machine has no RDMA device, so nothing is read over RDMA here.")
        return
    story.tell("Every agent pairs its RDMA device with its neighbours', to read their pulse.")
    since = time.monotonic()
    story.wait("all pairs ready", lambda: all(
        pair["state"] == "ready" for agent in cluster.running()
        for pair in agent.ask("PAIRS")["pairs"] or [{"state": "none"}]))
    story.seen("all pairs are ready", since)
    if show(cluster, "ping", "--rdma", asked.name) != 0:
        raise clusters.Timeout(f"{asked.name} is not read over RDMA")


def back(story, cluster, victim, text):
    since = time.monotonic()
    names = [agent.name for agent in cluster.agents]
    story.wait("all alive", lambda: cluster.agree(names, "alive"))
    story.seen(text, since)
    wait_verdict(story, victim.name, "healthy", cluster.running())


def one_is_killed(story, cluster):
    victim = cluster.agents[1]
    story.tell(f"{victim.name} is killed (SIGKILL): its kernel answers, the process is gone.")
    victim.kill()
    wait_verdict(story, victim.name, "agent-down", others(cluster))
    show(cluster, "why", victim.name)
    story.tell(f"{victim.name} is started again.")
    victim.start()
    back(story, cluster, victim, "back as a new start")


def one_is_frozen(story, cluster):
    victim = cluster.agents[2]
    rest = others(cluster, victim)
    story.tell(f"{victim.name} is frozen (SIGSTOP): its sockets are open, nobody answers.")
    since = time.monotonic()
    victim.freeze()
    wait_verdict(story, victim.name, "agent-frozen", rest)
    story.wait("dead everywhere", lambda: cluster.agree([victim.name], "dead", rest))
    story.seen("suspected, looked for by others, dead", since)
    show(cluster, "why", victim.name)
    story.tell(f"{victim.name} wakes up.")
    victim.thaw()
    back(story, cluster, victim, "alive again everywhere, and it declared nobody dead")


def paths_are_learnt(story, cluster):
    """How long reads usually take."""
    story.tell("All paths have to be known for a while before anybody can say that one is slow.")
    since = time.monotonic()
    story.wait("what is usual", cluster.paths_are_known)
    story.seen("every agent knows what is usual on its paths", since)


def one_is_slow(story, cluster):
    victim = cluster.agents[3]
    story.tell(f"The packets of {victim.name} take 500 us longer (a fault of its software device).")
    victim.set_faults("delay=500us")
    wait_verdict(story, victim.name, "path-degraded", cluster.running())
    show(cluster, "why", victim.name)


def one_loses_large_packets(story, cluster):
    victim = cluster.agents[3]
    story.tell("They come in time again, but what is larger than 1,500 bytes is lost, as behind a "
               "switch\n   that was not told of a larger MTU.")
    victim.set_faults("large=100%")
    wait_verdict(story, victim.name, "path-lossy", others(cluster, victim))
    show(cluster, "why", victim.name)
    show(cluster, "path", cluster.agents[0].name, victim.name)
    victim.set_faults("")
    wait_verdict(story, victim.name, "healthy", cluster.running())


def one_leaves(story, cluster):
    victim = cluster.agents[2]
    story.tell(f"{victim.name} is asked to stop (SIGTERM): it says goodbye.")
    since = time.monotonic()
    status = victim.leave()
    story.wait("left everywhere", lambda: cluster.agree([victim.name], "left"))
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
            if has_soft_device(cluster):
                paths_are_learnt(story, cluster)
                one_is_slow(story, cluster)
                one_loses_large_packets(story, cluster)
            one_leaves(story, cluster)
        except (clusters.Timeout, OSError, EOFError, ValueError) as failure:
            print(f"\nNot as it should be: {failure}\n\n{cluster.logs()}", flush=True)
            return 1
    print("\nAll as it should be. ./dev run starts such a cluster to play with.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
