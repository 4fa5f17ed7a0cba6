#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""In the guest: what agents call a node whose agent is frozen or killed, or whose cables are
pulled, where the kernel answers for it on a fabric of its own."""

import os
import subprocess
import time

import cluster as clusters
from shared import SECONDS, Shared

COUNT = 3
VICTIM = 3
SETTINGS = {
    "client.listen": "", "http.listen": "",
    # Retries end after 0.1 s and not after half a second.
    **{f"device rf{number}.{key}": value for number in range(1, COUNT + 1)
       for key, value in (("timeout", 12), ("retry", 4))},
}


def batch(*words, lines):
    subprocess.run([*words, "-b", "-"], input="\n".join(lines) + "\n", text=True, check=True,
                   stdout=subprocess.DEVNULL)


def ip(*lines):
    batch("ip", lines=lines)


NUMBERS = range(1, COUNT + 1)
SWITCHES = ("management", "fabric")


def build():
    """Machine i: a namespace m<i> with eth0 in it, for the overlay, and f<i> for the fabric; each
    is a cable to a switch, with m<i> and s<i> as its other end. Soft-RoCE works in the first
    namespace only: the devices rf<i> are there, and agents have them from theirs."""
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
        cls.cluster = clusters.Cluster(os.environ["TOCSIN_BUILD"], COUNT, settings=SETTINGS)
        cls.cluster.join = "10.0.3.1,10.0.3.2"
        for agent in cls.cluster.agents:
            cls.start_agent(agent)

    @classmethod
    def tear_down(cls):
        """Whoever comes next finds the devices that are always there, and no others."""
        batch("rdma", lines=[f"link delete rf{number}" for number in NUMBERS])
        ip(*(line for number in NUMBERS for line in (
            f"link delete f{number}", f"link delete m{number}", f"netns delete m{number}")),
           *(f"link delete {switch}" for switch in SWITCHES))


def finding(agent, name):
    """What this agent holds of it."""
    return agent.ask(f"HEALTH {name}")["findings"][0]


def others(victim):
    return [agent for agent in Bed.cluster.agents if agent is not victim]


def wait_verdict(victim, verdict, since):
    """Until all others hold it; what they say. The time is told and not judged."""
    def all_say_so():
        said = [finding(agent, victim.name) for agent in others(victim)]
        return all(row["verdict"] == verdict for row in said) and said

    said = clusters.wait_until(f"{victim.name} to be {verdict}", all_say_so, SECONDS, 0.05)
    print(f"# {verdict} after {time.monotonic() - since:.1f} s: {said[0]['reason']} "
          f"{said[0]['evidence']}", flush=True)
    return said


def story(verdict, reasons, fault, end):
    """From well to the verdict, of the victim alone, and back."""
    victim = Bed.agents()[VICTIM - 1]
    wait_verdict(victim, "healthy", time.monotonic())
    since = time.monotonic()
    fault(victim)
    try:
        said = wait_verdict(victim, verdict, since)
        assert {row["reason"] for row in said} <= reasons, said
        for agent in others(victim):
            for other in others(victim):
                row = finding(agent, other.name)
                assert row["verdict"] == "healthy", (agent.name, row)
    finally:
        since = time.monotonic()
        end(victim)
    wait_verdict(victim, "healthy", since)


def an_agent_that_is_frozen_is_named_so_while_the_kernel_answers_for_it():
    story("agent-frozen", {"PulseStands", "AgentMute"},
          lambda victim: victim.freeze(), lambda victim: victim.thaw())


def without_its_management_cable_a_node_whose_pulse_is_read_is_no_dead_node():
    story("mgmt-net-down", {"PulseAlone"},
          lambda _: ip(f"link set m{VICTIM} down"), lambda _: ip(f"link set m{VICTIM} up"))


def without_its_fabric_cable_a_node_whose_agent_answers_is_off_the_fabric():
    # Beyond the switch, where its own port does not notice.
    story("fabric-down", {"PulseUnread"},
          lambda _: ip(f"link set s{VICTIM} nomaster"),
          lambda _: ip(f"link set s{VICTIM} master fabric"))


def an_agent_that_is_killed_is_down_and_its_node_is_not():
    story("agent-down", {"AgentGone"}, lambda victim: victim.kill(), Bed.start_agent)


if __name__ == "__main__":
    Bed.run(
        an_agent_that_is_frozen_is_named_so_while_the_kernel_answers_for_it,
        without_its_management_cable_a_node_whose_pulse_is_read_is_no_dead_node,
        without_its_fabric_cable_a_node_whose_agent_answers_is_off_the_fabric,
        an_agent_that_is_killed_is_down_and_its_node_is_not,
    )
