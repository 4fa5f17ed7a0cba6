#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The wires of agents' software devices: two processes over memif, and two machines over
interfaces, by DPDK or by sockets; what happens to interfaces. Each in namespaces of its own.

    agent_wires_test.py BUILD-ROOT
"""

import json
import subprocess
import sys

import agents
import cluster as clusters
import netns
from netns import ip

BUILD = sys.argv[1]
netns.CASE_SECONDS_MAX = 1200


class Wired:
    """Agents that have each a wire and an address for it, each where its `around` puts it."""

    def __init__(self, wires, around=None, **settings):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        ip("link set lo up")
        self.around = around or [[] for _ in wires]
        self.cluster = clusters.Cluster(BUILD, len(wires), settings={
            "client.listen": "", "http.listen": "", "node.device": "soft", **settings})
        for number, wire in enumerate(wires, 1):
            self.agent(number).own.update({
                "device.soft0.wire": wire,
                "device.soft0.address": "" if wire == "udp" else f"10.0.0.{100 + number}"})

    def agent(self, number):
        return self.cluster.agents[number - 1]

    def start(self, number):
        self.agent(number).start(around=self.around[number - 1])

    def __enter__(self):
        for number in range(1, len(self.around) + 1):
            self.start(number)
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            agents.say(self.cluster.logs())
        else:
            agents.end(self.cluster)
        self.cluster.__exit__()

    def wait_ready(self):
        """Every pair of every agent is ready, and each has one with each."""
        names = {agent.name for agent in self.cluster.agents}
        agents.wait_until("all pairs ready", lambda: all(
            {pair["node"] for pair in agent.ask("PAIRS")["pairs"] if pair["state"] == "ready"}
            == names for agent in self.cluster.agents))

    def ping(self, asker, asked):
        """Reads in every size are answered, and went over the wire."""
        before = self.agent(asked).counters()["soft"]["packets_received"]
        for size in (1, 4096, 65536):
            done = self.read(asker, asked, size)
            assert done.returncode == 0 and json.loads(done.stdout)["answered"] == 20, done
        assert self.agent(asked).counters()["soft"]["packets_received"] >= before + 60

    def read(self, asker, asked, size):
        return subprocess.run(
            [str(self.cluster.tocsin), "ping", "--rdma", f"n{asked}", "--json", "--bytes",
             str(size), "--count", "20", "--socket", str(self.agent(asker).socket)],
            capture_output=True, text=True, check=False)

    def wait_reads(self, asker, asked):
        """After a fault: a pair can be ready still that the fault broke, and nobody used since."""
        agents.wait_until("a read to be answered",
                          lambda: self.read(asker, asked, 1).returncode == 0)


def device(agent):
    return agent.ask("DEVICES")["devices"][0]


def memif():
    """two agents pair over memif, also when the one that serves it was killed and is back"""
    socket = "dpdk:net_memif0,socket=@agents"
    with Wired([f"{socket},role=server", f"{socket},role=client"]) as wired:
        wired.cluster.wait_ring(agents.WAIT_SECONDS)
        wired.wait_ready()
        wired.ping(1, 2)
        wired.ping(2, 1)
        for victim in (1, 2):
            wired.agent(victim).kill()
            wired.start(victim)
            wired.cluster.wait_ring(agents.WAIT_SECONDS)
            wired.wait_ready()
            wired.ping(3 - victim, victim)


def machines():
    """m1 and m2 with a cable between them; the agents' addresses are the kernel's."""
    for number in (1, 2):
        subprocess.run(["ip", "netns", "add", f"m{number}"], check=True)
    ip("link add eth0 netns m1 type veth peer name eth0 netns m2")
    for number in (1, 2):
        on(number, "link set lo up", f"addr add 10.0.0.{number}/24 dev eth0", "link set eth0 up")


def on(number, *lines):
    subprocess.run(["ip", "-n", f"m{number}", "-batch", "-"], input="\n".join(lines) + "\n",
                   text=True, check=True)


def on_machines(wires, **settings):
    wired = Wired(wires, [["ip", "netns", "exec", f"m{number}"] for number in (1, 2)], **settings)
    machines()
    wired.cluster.join = "10.0.0.1,10.0.0.2"
    for number in (1, 2):
        wired.agent(number).own["overlay.listen"] = f"10.0.0.{number}"
    return wired


def interfaces():
    """two machines pair over interfaces that the kernel uses too, also after the cable was cut"""
    with on_machines(["dpdk:net_af_packet0,iface=eth0"] * 2) as wired:
        wired.cluster.wait_ring(agents.WAIT_SECONDS)
        wired.wait_ready()
        wired.ping(1, 2)
        on(1, "link set eth0 down")
        agents.wait_until("both alone", lambda: all(
            wired.cluster.agree([f"n{3 - number}"], "dead", [wired.agent(number)])
            for number in (1, 2)))
        on(1, "link set eth0 up")
        wired.cluster.wait_ring(agents.WAIT_SECONDS)
        wired.wait_ready()
        wired.ping(2, 1)


def cable():
    """a port whose cable is cut is down, and no longer when the cable is back"""
    for wire in ("udp", "dpdk:net_af_packet0,iface=eth0"):
        with on_machines([wire] * 2) as wired:
            wired.wait_ready()
            on(1, "link set eth0 down")
            for agent in wired.cluster.agents:
                agents.wait_until("the port to be down", lambda agent=agent:
                                  device(agent)["state"] == "down")
                assert device(agent)["reason"] == "port 1 of soft0 is down", device(agent)
            on(1, "link set eth0 up")
            wired.cluster.wait_ring(agents.WAIT_SECONDS)
            wired.wait_reads(1, 2)
            wired.wait_ready()
            wired.ping(1, 2)
        for number in (1, 2):
            subprocess.run(["ip", "netns", "del", f"m{number}"], check=True)


def late():
    """an interface that is not there is named, and taken when it comes"""
    with on_machines(["dpdk:net_af_packet0,iface=eth1", "dpdk:net_af_packet0,iface=eth1"]) as wired:
        row = agents.wait_until("the reason", lambda: device(wired.agent(1))["reason"]
                                and device(wired.agent(1)))
        assert row["state"] != "up" and '"eth1" is not an interface' in row["reason"], row
        on(1, "link add eth1 type veth peer name eth1 netns m2", "link set eth1 up")
        on(2, "link set eth1 up")
        wired.cluster.wait_ring(agents.WAIT_SECONDS)
        wired.wait_ready()
        wired.ping(1, 2)


def removed():
    """an interface that is taken away and comes back has pairs again"""
    with on_machines(["dpdk:net_af_packet0,iface=eth1", "dpdk:net_af_packet0,iface=eth1"]) as wired:
        for _ in range(2):
            on(1, "link add eth1 type veth peer name eth1 netns m2", "link set eth1 up")
            on(2, "link set eth1 up")
            wired.cluster.wait_ring(agents.WAIT_SECONDS)
            wired.wait_ready()
            wired.ping(1, 2)
            on(1, "link del eth1")
            agents.wait_until("no pair", lambda: not any(
                pair["state"] == "ready" and pair["node"] != agent.name
                for agent in wired.cluster.agents for pair in agent.ask("PAIRS")["pairs"]))


if __name__ == "__main__":
    netns.run([memif, interfaces, cable, late, removed])
