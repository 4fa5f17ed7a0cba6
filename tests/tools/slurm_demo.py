#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev slurm-demo`: real agents beside a real Slurm on loopback, and what becomes of its nodes.

    slurm_demo.py BUILD-ROOT

All of it is in a network namespace of its own, where packets between agents can be dropped. Exit
status 0 only if all was as it should be.
"""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

import cluster as clusters
from demo import Story

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "slurm"), str(TESTS / "smoke")]
import bed  # noqa: E402
import netns  # noqa: E402

AGENTS = 6
SPLIT_SECONDS = 90
UNSTABLE_SECONDS = 60  # so long one that changed more than three times within a minute is so
LOSS_PERCENT = 60
CONFIRM = "3s"
SETTLE = "3s"


class Bench:
    """The cluster, its Slurm, and the sync between them."""

    def __init__(self, build):
        self.cluster = clusters.Cluster(build, AGENTS, settings={
            "health.confirm": CONFIRM, "probe.interval": "200ms", "probe.packets": "1000",
            "device.soft0.faults": "",
            # Two of six in ten minutes, where one is usual: two are to be drained here.
            "health.drain_rate": "34", "health.drain_out": "50"})
        self.slurm = bed.Slurm([agent.name for agent in self.cluster.agents])
        self.sync = None

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()  # what came up goes again
            raise

    def start(self):
        self.cluster.start()
        self.slurm.start()
        self.cluster.wait_ring()
        command = [str(self.cluster.tocsin), "slurm", "sync", "--socket",
                   str(self.cluster.agents[0].socket), "--interval", "1s", "--settle", SETTLE,
                   "--share", "50", self.record()]
        print(f"   $ tocsin slurm sync --interval 1s --settle {SETTLE} --share 50 &",
              flush=True)
        self.log = open(self.slurm.directory / "sync.log", "ab")
        self.sync = subprocess.Popen(command, env=self.slurm.environment, stdout=self.log,
                                     stderr=self.log, stdin=subprocess.DEVNULL)
        return self

    def record(self):
        return f"--record={self.slurm.directory / 'drains.json'}"

    def __exit__(self, *_):
        if self.sync is not None:
            self.sync.send_signal(signal.SIGTERM)
            self.sync.wait(60)
        self.slurm.__exit__()
        self.cluster.stop()

    def show(self):
        """What an administrator types, and sees."""
        print("\n   $ sinfo -R -N -o '%12N %80E'", flush=True)
        shown = self.slurm.run("sinfo", "-R", "-N", "-o", "%12N %80E").stdout
        for line in shown.splitlines():
            print(f"   {line.rstrip()}", flush=True)

    def look(self):
        """One look of its own, as the sync has them each second: what it does."""
        self.type("slurm", "sync", "--once", "--socket", str(self.cluster.agents[0].socket))

    def type(self, *words, at=None):
        """At the agent of this number, if there is one, else with the record of the sync."""
        print(f"\n   $ tocsin {' '.join(words[:2 + (words[0] == 'slurm')])}", flush=True)
        where = (self.record(),) if at is None else (
            "--socket", str(self.cluster.agents[at].socket))
        done = self.slurm.run(str(self.cluster.tocsin), *words, *where)
        for line in (done.stdout + done.stderr).splitlines() or ["(nothing to be done)"]:
            print(f"   {line}", flush=True)

    def wait_drained(self, name, drained=True):
        def is_so():
            state = self.slurm.state(name)
            return "drain" in state if drained else state == "idle"
        clusters.wait_until(f"{name} {'drained' if drained else 'idle'}", is_so)


def one_freezes(story, bench):
    agent = bench.cluster.agents[4]
    story.tell(f"{agent.name} freezes: its kernel takes connections, nobody speaks. That has to"
               f" hold for {CONFIRM} (the default is 60s) before anybody acts on it.")
    since = time.monotonic()
    agent.freeze()
    bench.wait_drained(agent.name)
    story.seen("drained", since)
    bench.show()


def an_administrator_drains_another(story, bench):
    story.tell("An administrator drains n3 for a reason of his own, and n3 is as healthy as ever.")
    bench.slurm.update("n3", State="DRAIN", Reason="bad DIMM, ticket 4711")
    bench.show()


def one_is_killed(story, bench):
    agent = bench.cluster.agents[3]
    story.tell(f"The agent of {agent.name} is killed. That is a matter of its service: its node "
               "works, and stays in service.")
    agent.kill()
    first = bench.cluster.agents[0]

    def is_down():
        found = first.ask(f"HEALTH {agent.name}")["findings"]
        return found and found[0]["verdict"] == "agent-down"

    clusters.wait_until("agent-down", is_down)
    bench.show()
    if bench.slurm.is_drained(agent.name):
        raise clusters.Timeout(f"{agent.name} was drained")


def the_frozen_one_comes_back(story, bench):
    agent = bench.cluster.agents[4]
    story.tell(f"{agent.name} thaws. It has to be healthy for {SETTLE} before it is given back; "
               "n3 is not ours, and stays.")
    since = time.monotonic()
    agent.thaw()
    bench.wait_drained(agent.name, False)
    story.seen("undrained", since)
    bench.show()
    if bench.slurm.reason("n3") != "bad DIMM, ticket 4711" or not bench.slurm.is_drained("n3"):
        raise clusters.Timeout("n3 was touched")


def a_path_is_cut(story, bench):
    one, other = bench.cluster.agents[1:3]
    story.tell(f"The path between {one.name} and {other.name} is cut (a fault of the software "
               "device). Both see it,\n   and others read both: a path is at fault and no node, so "
               "nobody is drained.")
    since = time.monotonic()
    one.set_faults(f"loss=100%,to={other.address}")
    story.wait("both ends to see it", lambda: one.paths_seen(other.name)[-1:] == ["silent"]
               and other.paths_seen(one.name)[-1:] == ["silent"])
    story.seen("both ends see it silent", since)
    bench.look()
    bench.show()
    one.set_faults("")
    if bench.slurm.is_drained(one.name) or bench.slurm.is_drained(other.name):
        raise clusters.Timeout(f"{one.name} or {other.name} was drained")


def nft(rules):
    subprocess.run(["nft", "-f", "-"], input=f"flush ruleset\n{rules}\n", text=True, check=True)


def drop(where):
    """What matches in this way is lost, between agents only: Slurm is on loopback as well."""
    return "\n".join(["table ip demo {", "chain in { type filter hook input priority 0;",
                      *where, "}", "}"])


def nobody_is_drained(bench, but=()):
    drained = [agent.name for agent in bench.cluster.agents
               if agent.name not in but and bench.slurm.is_drained(agent.name)]
    if drained:
        raise clusters.Timeout(f"drained: {', '.join(drained)}")


def all_healthy(bench):
    return all(row["verdict"] == "healthy" for agent in bench.cluster.running()
               for peer in bench.cluster.running()
               for row in agent.ask(f"HEALTH {peer.name}")["findings"])


def wait_all_healthy(story, bench):
    since = time.monotonic()
    story.wait("healthy, say all of all", lambda: all_healthy(bench))
    story.seen("healthy, say all of all", since)


def the_cluster_is_split(story, bench):
    story.tell(f"For {SPLIT_SECONDS} s no packet passes between n1, n2, n3 and n4, n5, n6. Neither "
               "half knows which is at fault,\n   and who is drained now is healthy: nobody is.")
    halves = [[agent.address for agent in bench.cluster.agents[from_:from_ + AGENTS // 2]]
              for from_ in (0, AGENTS // 2)]
    sets = ["{ " + ", ".join(half) + " }" for half in halves]
    nft(drop([f"ip saddr {one} ip daddr {other} drop;" for one, other in (sets, sets[::-1])]))
    end = time.monotonic() + SPLIT_SECONDS
    while time.monotonic() < end:
        nobody_is_drained(bench)
        time.sleep(1)
    bench.type("health", at=0)
    bench.type("drains", "--json")
    nft("")
    story.tell("The network is whole again.")
    wait_all_healthy(story, bench)
    nobody_is_drained(bench)


def one_loses_most_of_its_packets(story, bench):
    agent = bench.cluster.agents[5]
    story.tell(f"{LOSS_PERCENT} % of all packets from and to {agent.name} are lost. TCP sends them "
               "again, so nothing fails and\n   all is slow: a warning, nobody is drained.")
    lose = f"numgen random mod 100 < {LOSS_PERCENT} drop;"
    since = time.monotonic()
    # Not what it says to itself, and Slurm's nodes have another address.
    nft(drop([f"ip saddr {agent.address} ip daddr != {agent.address} {lose}",
              f"ip daddr {agent.address} ip saddr != {agent.address} {lose}"]))
    wait_verdict(story, bench, agent.name, "path-lossy")
    story.seen("path-lossy", since)
    bench.look()
    bench.show()
    nobody_is_drained(bench)
    nft("")
    wait_all_healthy(story, bench)


def wait_verdict(story, bench, name, verdict):
    first = bench.cluster.agents[0]
    story.wait(f"{name} {verdict}", lambda: first.ask(
        f"HEALTH {name}")["findings"][0]["verdict"] == verdict,
               clusters.WAIT_SECONDS_MAX + UNSTABLE_SECONDS)


def one_is_slow(story, bench):
    agent = bench.cluster.agents[2]
    story.tell(f"The packets of {agent.name} take 20 ms longer. Its paths are slow, which is a "
               "warning: jobs run\n   on, slower, and nobody is drained.")
    story.wait("what is usual on all paths", bench.cluster.paths_are_known)
    since = time.monotonic()
    agent.set_faults("delay=20ms")
    wait_verdict(story, bench, agent.name, "path-degraded")
    story.seen("path-degraded", since)
    bench.look()
    bench.show()
    agent.set_faults("")
    if bench.slurm.is_drained(agent.name):
        raise clusters.Timeout(f"{agent.name} was drained")


def one_loses_its_fabric(story, bench):
    agent = bench.cluster.agents[1]
    story.tell(f"All packets of {agent.name} are lost: its agent answers, its port does not. No "
               "job can use it.")
    since = time.monotonic()
    agent.set_faults("loss=100%")
    bench.wait_drained(agent.name)
    story.seen("drained", since)
    bench.show()
    story.tell("Its port answers again.")
    since = time.monotonic()
    agent.set_faults("")
    bench.wait_drained(agent.name, False)
    story.seen("undrained", since)


def administrators_hold_nodes_in_our_words(story, bench):
    sick, well = bench.cluster.agents[1], bench.cluster.agents[3]
    held = " -- HOLD for vendor, do not resume"
    story.tell(f"{sick.name} loses its fabric again. An administrator adds a word to our reason; "
               f"another drains {well.name},\n   which is healthy, for a reason that begins as "
               "ours do.")
    sick.set_faults("loss=100%")
    bench.wait_drained(sick.name)
    bench.slurm.update(sick.name, Reason=bench.slurm.reason(sick.name) + held)
    bench.slurm.update(well.name, State="DRAIN", Reason="tocsin: cables are being changed")
    story.tell(f"{sick.name} is well again, and unstable for a minute if it changed more than "
               "three times\n   within one. Neither node is ours: both stay drained.")
    sick.set_faults("")
    wait_verdict(story, bench, sick.name, "healthy")
    bench.look()
    bench.type("drains", "--json")
    bench.show()
    for agent in (sick, well):
        if not bench.slurm.is_drained(agent.name):
            raise clusters.Timeout(f"{agent.name} was undrained")
        bench.slurm.update(agent.name, State="RESUME")


def enter_namespace():
    """Slurm binds to no name on a machine that has loopback alone: so there is another link."""
    if ctypes.CDLL(None, use_errno=True).unshare(netns.CLONE_NEWNET) != 0:
        sys.exit(f"slurm-demo: no network namespace: {os.strerror(ctypes.get_errno())}")
    netns.ip("link set lo up", "link add d0 type veth peer name d1",
             "addr add 192.0.2.1/24 dev d0", "link set d0 up", "link set d1 up")


def main():
    if bed.missing():
        sys.exit(f"slurm-demo: {bed.missing()}")
    enter_namespace()
    story = Story()
    story.tell(f"A Slurm of {AGENTS} nodes and an agent for each start on loopback.")
    try:
        with Bench(sys.argv[1]) as bench:
            bench.show()
            for step in (the_cluster_is_split, one_loses_most_of_its_packets, a_path_is_cut,
                         one_is_slow, one_loses_its_fabric,
                         administrators_hold_nodes_in_our_words, one_freezes,
                         an_administrator_drains_another, one_is_killed,
                         the_frozen_one_comes_back):
                step(story, bench)
            print("\n   What tocsin slurm sync said:", flush=True)
            print(*("   " + line for line in
                    (bench.slurm.directory / "sync.log").read_text().splitlines()), sep="\n")
    except clusters.Timeout as error:
        sys.exit(f"\nslurm-demo: {error}")
    print("\nAll was as it should be.")


main()
