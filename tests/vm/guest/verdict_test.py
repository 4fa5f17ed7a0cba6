#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: verdicts on a node whose agent is frozen or killed, or whose cables are
unplugged. The kernel answers for the node on a fabric of its own."""

import os
import pathlib
import subprocess
import time

import cluster as clusters
from shared import SECONDS, Shared

COUNT = 3
WELL = ("healthy", "None")
SETTINGS = {
    "client.listen": "", "http.listen": "",
    # Retries end after 0.1 s instead of half a second.
    **{f"device rf{number}.{key}": value for number in range(1, COUNT + 1)
       for key, value in (("timeout", 12), ("retry", 4))},
}


def batch(*words, lines):
    subprocess.run([*words, "-b", "-"], input="\n".join(lines) + "\n", text=True, check=True,
                   stdout=subprocess.DEVNULL)


def ip(*lines):
    batch("ip", lines=lines)


MODPROBE = pathlib.Path("/proc/sys/kernel/modprobe")
ASKS = pathlib.Path("/run/asks")
NUMBERS = range(1, COUNT + 1)
SWITCHES = ("management", "fabric")


def build():
    """Build the machines. Machine i has a namespace m<i> with eth0 for the overlay, and f<i> for
    the fabric. Each is a cable to a switch, with m<i> and s<i> as its other end. Soft-RoCE only
    works in the first namespace: the devices rf<i> are there, and agents in the namespaces use
    them."""
    for switch in SWITCHES:
        ip(f"link add {switch} type bridge", f"link set {switch} addrgenmode none up")
    for number in NUMBERS:
        ip(f"netns add m{number}",
           f"link add m{number} type veth peer name eth0 netns m{number}",
           f"link set m{number} addrgenmode none master management up",
           f"link add f{number} type veth peer name s{number}",
           f"link set s{number} addrgenmode none master fabric up",
           f"link set f{number} addrgenmode none up",
           f"addr add 10.0.2.{number}/24 dev f{number}")
        batch("ip", "-n", f"m{number}", lines=(
            "link set lo up", "link set eth0 up", f"addr add 10.0.3.{number}/24 dev eth0"))
    batch("rdma", lines=[f"link add rf{number} type rxe netdev f{number}" for number in NUMBERS])


def watch_modprobe():
    """Log the modules that the kernel requests, and load them."""
    ASKS.mkdir(exist_ok=True)
    script = ASKS / "modprobe"
    if not script.exists():
        script.write_text("#!/bin/sh\n"
                          f'echo "$*" >>{ASKS}/asked\n'
                          f'exec {MODPROBE.read_text().strip()} "$@"\n')
        script.chmod(0o755)
        MODPROBE.write_text(f"{script}\n")


class Bed(Shared):
    """Machines on two switches, with an agent on each."""

    @classmethod
    def start_agent(cls, agent):
        number = agent.name[1:]
        agent.own.update({"overlay.listen": f"10.0.3.{number}", "node.device": f"nic:rf{number}"})
        agent.start(around=("ip", "netns", "exec", f"m{number}"))

    @classmethod
    def start(cls):
        build()
        watch_modprobe()
        cls.cluster = clusters.Cluster(os.environ["TOCSIN_BUILD"], COUNT, settings=SETTINGS)
        cls.cluster.join = "10.0.3.1,10.0.3.2"
        for agent in cls.cluster.agents:
            cls.start_agent(agent)

    @classmethod
    def tear_down(cls):
        """Restore the default devices for the next test."""
        batch("rdma", lines=[f"link delete rf{number}" for number in NUMBERS])
        ip(*(line for number in NUMBERS for line in (
            f"link delete f{number}", f"link delete m{number}", f"netns delete m{number}")),
           *(f"link delete {switch}" for switch in SWITCHES))


def finding(agent, name):
    """Return the agent's finding about this node."""
    return agent.ask(f"HEALTH {name}")["findings"][0]


def others(victim):
    return [agent for agent in Bed.cluster.agents if agent is not victim]


def word(row):
    return f"{row['verdict']} ({row['reason']}: {row['evidence']})"


def wait_picture(victim, verdict, reasons, since):
    """Wait until all others report this finding, and call each other healthy. On a busy machine one
    of the agents may be slow for a moment and be reported so. Each report on the way is logged
    with its time; time is not judged."""
    seen = {}

    def is_as_wanted(agent):
        good = True
        for node in (victim, *others(victim)):
            row = finding(agent, node.name)
            before = seen.get((agent.name, node.name), WELL)
            if before != (row["verdict"], row["reason"]):
                seen[agent.name, node.name] = row["verdict"], row["reason"]
                print(f"# {time.monotonic() - since:6.1f} s: {agent.name} says of {node.name}: "
                      f"{word(row)}", flush=True)
            good = good and (row["verdict"] == "healthy" if node is not victim else
                             row["verdict"] == verdict and row["reason"] in reasons)
        return good

    def all_are():
        pictures = [is_as_wanted(agent) for agent in others(victim)]
        return all(pictures)

    clusters.wait_until(
        lambda: f"{victim.name} is not {verdict}, or others are not healthy: {seen}",
        all_are, SECONDS, 0.05)
    print(f"# {time.monotonic() - since:6.1f} s: {victim.name} is {verdict}, others are well",
          flush=True)


def story(number, verdict, reasons, fault, end):
    """Play a fault of one machine: from healthy to the verdict, and back. A machine whose verdict
    changes four times within a minute is unstable for another minute; a machine that was cut off
    itself counts too. So consecutive stories have different victims, and the machine that is cut
    off comes last."""
    victim = Bed.agents()[number - 1]
    wait_picture(victim, "healthy", {WELL[1]}, time.monotonic())
    since = time.monotonic()
    fault(victim)
    try:
        wait_picture(victim, verdict, reasons, since)
    finally:
        since = time.monotonic()
        end(victim)
    wait_picture(victim, "healthy", {WELL[1]}, since)


def an_agent_that_is_frozen_is_named_so_while_the_kernel_answers_for_it():
    story(3, "agent-frozen", {"PulseStands", "AgentMute"},
          lambda victim: victim.freeze(), lambda victim: victim.thaw())


def without_its_fabric_cable_a_node_whose_agent_answers_is_off_the_fabric():
    # Beyond the switch, so that its own port stays up.
    story(1, "fabric-down", {"PulseUnread"},
          lambda _: ip("link set s1 nomaster"), lambda _: ip("link set s1 master fabric"))


def an_agent_that_is_killed_is_down_and_its_node_is_not():
    story(2, "agent-down", {"AgentGone"}, lambda victim: victim.kill(), Bed.start_agent)


def without_its_management_cable_a_node_whose_pulse_is_read_is_no_dead_node():
    story(3, "mgmt-net-down", {"PulseAlone"},
          lambda _: ip("link set m3 down"), lambda _: ip("link set m3 up"))


def no_module_is_asked_for_by_the_name_of_an_interface_of_another_namespace():
    """An agent sees all devices, and none of their interfaces."""
    def has_read_counters(agent):
        return any(check["name"] == "pauses" and check["last"]
                   for check in agent.ask("CHECKS")["checks"])

    for agent in Bed.agents():
        clusters.wait_until(lambda: f"{agent.name} has read counters: {agent.ask('CHECKS')}",
                            lambda: has_read_counters(agent), SECONDS)
    asked = (ASKS / "asked").read_text() if (ASKS / "asked").exists() else ""
    assert "netdev-" not in asked, asked


if __name__ == "__main__":
    Bed.run(
        an_agent_that_is_frozen_is_named_so_while_the_kernel_answers_for_it,
        without_its_fabric_cable_a_node_whose_agent_answers_is_off_the_fabric,
        an_agent_that_is_killed_is_down_and_its_node_is_not,
        without_its_management_cable_a_node_whose_pulse_is_read_is_no_dead_node,
        no_module_is_asked_for_by_the_name_of_an_interface_of_another_namespace,
    )
