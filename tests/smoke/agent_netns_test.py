#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents on machines of their own, namespaces on a switch that the test made: what happens to them
when the network does what networks do.

    agent_netns_test.py BUILD-ROOT halves|third|returns|loss|frozen|rest

What the brake holds takes as long as all the rest: so it has programs of its own.
"""

import json
import subprocess
import sys
import time

import agents
import cluster as clusters
import netns
from netns import ip

BUILD = sys.argv[1]
CUT_MOMENTS = 4
LOSS_LOOK_SECONDS = 2  # between two looks at what was sent again
BRAKE_SECONDS = 60   # after which the larger part may declare
STALE_SECONDS = 30   # so long evidence counts
SILENT_SECONDS = 12  # longer than the profile `fast` needs to declare a death by silence
netns.CASE_SECONDS_MAX = 1200


class Network:
    """Machines m1, m2, ... with a cable each, eth0, to the switch br0, and an agent on each.

    address(i) is that of machine i; several agents may share a machine.
    """

    def __init__(self, count, address="10.0.0.{}", prefix=24, settings=None):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        self.address, self.prefix = address, prefix
        ip("link set lo up", "link add br0 type bridge", "link set br0 up")
        for number in range(1, count + 1):
            subprocess.run(["ip", "netns", "add", f"m{number}"], check=True)
            ip(f"link add p{number} type veth peer name eth0 netns m{number}",
               f"link set p{number} master br0 up")
            self.on(number, "link set lo up", "link set eth0 addrgenmode none",
                    "link set eth0 up", *self.addresses(number, "add"))
        self.cluster = clusters.Cluster(BUILD, count, settings={
            "client.listen": "", "http.listen": "", **(settings or {})})
        self.cluster.join = ",".join(self.endpoint(number) for number in (1, 2))
        self.homes = {}  # machines of agents by name, where they are not of the agent's number

    def addresses(self, number, verb):
        return [f"addr {verb} {self.address.format(number)}/{self.prefix} dev eth0" +
                (" nodad" if ":" in self.address and verb == "add" else "")]

    def endpoint(self, number, scope=""):
        address = self.address.format(number)
        return f"[{address}{scope}]" if ":" in address else address

    def on(self, number, *lines):
        subprocess.run(["ip", "-n", f"m{number}", "-batch", "-"], input="\n".join(lines) + "\n",
                       text=True, check=True)

    def nft(self, number, rules):
        """The rules of a machine's firewall, instead of those before."""
        subprocess.run(["ip", "netns", "exec", f"m{number}", "nft", "-f", "-"], text=True,
                       input=f"flush ruleset\n{rules}\n", check=True)

    def start(self, agent, number=None):
        number = number or self.homes.get(agent.name, int(agent.name[1:]))
        agent.own.setdefault("overlay.listen", self.endpoint(number))
        agent.start(around=["ip", "netns", "exec", f"m{number}"])

    def __enter__(self):
        try:
            for agent in self.cluster.agents:
                self.start(agent)
            self.cluster.wait_ring(agents.WAIT_SECONDS)
        except BaseException:
            agents.say(self.cluster.logs())
            self.cluster.__exit__()
            raise
        return self.cluster

    def __exit__(self, kind, *_):
        if kind is not None:
            agents.say(self.cluster.logs())
        else:
            agents.end(self.cluster)
        self.cluster.__exit__()


def healed(cluster):
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_one_view(cluster)


def rest(cluster, *without):
    return [agent for agent in cluster.agents if agent not in without]


DROP_ALL = """
table inet cut {
	chain in { type filter hook input priority 0; policy drop; }
	chain out { type filter hook output priority 0; policy drop; }
}"""

DROP_TO_THIRD = """
table inet cut {
	chain out { type filter hook output priority 0; ip daddr 10.0.0.3 drop; }
}"""


def likely_down(agent, name):
    """It is named, as likely, and nothing is advised but a warning."""
    row = agent.ask(f"HEALTH {name}")["findings"][0]
    return (row["verdict"], row["confidence"], row["advice"]) == ("node-down", "likely", "warn")


def cable_cut():
    """one whose cable is cut is likely down, then dead; with the cable back there is one view"""
    network = Network(4)
    with network as cluster:
        cut = cluster.agents[2]
        # Who never read its pulse cannot say that the fabric does not reach it either: it is
        # called suspected then, until it is dead.
        agents.wait_until("two others to have read it", lambda: sum(
            any(path["peer"] == cut.name and path["seen"] == "good"
                for path in agent.ask("PATHS")["paths"]) for agent in rest(cluster, cut)) >= 2)
        since = time.monotonic()
        ip("link set p3 down")
        agents.wait_until("two others to call it down", lambda: sum(
            likely_down(agent, cut.name) for agent in rest(cluster, cut)) >= 2)
        agents.say(f"likely down to two after {time.monotonic() - since:.1f} s")
        agents.wait_for_state(cluster, cut.name, "dead", rest(cluster, cut))
        seen = agents.peer(cluster.agents[0], cut.name)
        assert seen["cause"] == "silent" and len(set(seen["observers"])) == 2, seen
        agents.wait_until("its own words", lambda: "no carrier" in (address_problem(cut) or ""))
        # Alone it has nobody who agrees: what it says of the others is one observer's word.
        alone = [row for row in cut.ask("PEERS")["peers"] if row["state"] == "dead"]
        assert all(row["sole"] for row in alone), alone
        ip("link set p3 up")
        healed(cluster)


def one_way():
    """packets lost one way between two cost no life: others hear both"""
    network = Network(4)
    with network as cluster:
        network.nft(2, DROP_TO_THIRD)
        end = time.monotonic() + SILENT_SECONDS
        while time.monotonic() < end:  # as long as a death would take
            agents.assert_no_death_but(cluster)
            time.sleep(0.5)
        told = {event["event"] for agent in cluster.agents[1:3] for event in agent.events()}
        assert told & {"LINK_DELAYED", "LINK_DOWN", "SUSPECT"}, told
        network.nft(2, "")
        healed(cluster)
        agents.assert_no_death_but(cluster)


LOSE = """
table inet loss {{
	chain in {{ type filter hook input priority 0; numgen random mod 100 < {0} drop; }}
	chain out {{ type filter hook output priority 0; numgen random mod 100 < {0} drop; }}
}}"""


def packets_lost():
    """a node that loses a third of its packets is path-lossy for the others, and blames nobody"""
    network = Network(5)
    with network as cluster:
        victim = cluster.agents[4]
        others = rest(cluster, victim)

        def says(agent, name, verdict, reason):
            row = agent.ask(f"HEALTH {name}")["findings"][0]
            return (row["verdict"], row["reason"]) == (verdict, reason)

        network.nft(5, LOSE.format(30))
        since = time.monotonic()
        agents.wait_until("the others to call it lossy", lambda: all(
            says(agent, victim.name, "path-lossy", "PacketsLost") for agent in others))
        agents.say(f"path-lossy everywhere after {time.monotonic() - since:.1f} s")
        for agent in others:
            for other in others:
                assert says(agent, other.name, "healthy", "None"), (agent.name, other.name)
        told = {(event["node"], event["text"].split(",")[0])
                for event in victim.events("VERDICT") if event["node"] != victim.name}
        assert not {what for what in told if what[1] not in ("healthy", "unknown")}, told
        network.nft(5, "")
        since = time.monotonic()
        agents.wait_until("all to be healthy", lambda: all(
            says(agent, peer.name, "healthy", "None")
            for agent in cluster.agents for peer in cluster.agents))
        agents.say(f"healthy everywhere after {time.monotonic() - since:.1f} s")
        agents.assert_no_death_but(cluster)


def word(agent, name):
    """The verdict that an agent has of a node."""
    return agent.ask(f"HEALTH {name}")["findings"][0]["verdict"]


def cut_at_any_moment():
    """one that falls silent is not called lossy, at whatever moment between two looks it does"""
    network = Network(4)
    with network as cluster:
        cut = cluster.agents[2]
        others = rest(cluster, cut)
        for moment in range(CUT_MOMENTS):
            agents.wait_until("it to be read and healthy", lambda: all(
                word(agent, cut.name) == "healthy" and
                any(path["peer"] == cut.name and path["seen"] == "good"
                    for path in agent.ask("PATHS")["paths"]) for agent in others))
            # Nothing is waited for: the fault comes at another moment of the look each time.
            time.sleep(LOSS_LOOK_SECONDS * moment / CUT_MOMENTS)
            ip("link set p3 down")
            agents.wait_until("two others to call it down", lambda: sum(
                word(agent, cut.name) in ("node-down", "path-lossy") for agent in others) >= 2)
            told = {word(agent, cut.name) for agent in others}
            assert "path-lossy" not in told, (moment, told)
            ip("link set p3 up")
            healed(cluster)


def queue_is_full(number):
    """Whether no connection more fits behind those that wait for the agent of the machine."""
    told = subprocess.run(["ip", "netns", "exec", f"m{number}", "ss", "-tlnH", "sport", "= 28030"],
                          check=True, capture_output=True, text=True)
    waiting, most = (int(word) for word in told.stdout.split()[1:3])
    return waiting > most


def frozen_for_long():
    """one that is stopped stays agent-frozen when its kernel takes no more connections for it"""
    network = Network(4)
    subprocess.run(["ip", "netns", "exec", "m3", "sh", "-c",
                    "echo 2 >/proc/sys/net/core/somaxconn"],
                   check=True)  # some ten minutes' worth of calls otherwise
    with network as cluster:
        victim = cluster.agents[2]
        others = rest(cluster, victim)

        def verdicts():
            return {agent.ask(f"HEALTH {victim.name}")["findings"][0]["verdict"]
                    for agent in others}

        victim.freeze()
        agents.wait_until("a full queue", lambda: queue_is_full(3))
        agents.wait_for_state(cluster, victim.name, "dead", others)
        agents.wait_until("agent-frozen everywhere", lambda: verdicts() == {"agent-frozen"})
        end = time.monotonic() + STALE_SECONDS + SILENT_SECONDS
        while time.monotonic() < end:  # until what was found before the queue was full is forgotten
            assert verdicts() == {"agent-frozen"}, verdicts()
            time.sleep(0.5)
        told = {event["text"].split(",")[0] for agent in others
                for event in agent.events("VERDICT", victim.name)}
        assert told <= {"healthy", "unknown", "agent-frozen"}, told
        victim.thaw()
        healed(cluster)


def frozen_half():
    """half of six that are stopped at once are agent-frozen, a warning, though the brake holds"""
    network = Network(6)
    with network as cluster:
        frozen, others = cluster.agents[3:], cluster.agents[:3]

        def verdicts():
            return {(row["verdict"], row["advice"]) for agent in others for victim in frozen
                    for row in agent.ask(f"HEALTH {victim.name}")["findings"]}

        for victim in frozen:
            victim.freeze()
        for victim in frozen:
            agents.wait_for_state(cluster, victim.name, "unreachable", others)
        agents.wait_until("agent-frozen everywhere",
                          lambda: verdicts() == {("agent-frozen", "warn")})
        end = time.monotonic() + SILENT_SECONDS
        while time.monotonic() < end:  # it does not come and go with the connections
            assert verdicts() == {("agent-frozen", "warn")}, verdicts()
            time.sleep(0.5)
        for victim in frozen:
            victim.thaw()
        healed(cluster)


def half_open():
    """connections whose other end was restarted unseen are found out; the new start is a member"""
    network = Network(4)
    with network as cluster:
        restarted = cluster.agents[1]
        before = agents.peer(cluster.agents[0], restarted.name)["start"]
        network.nft(2, DROP_ALL)
        restarted.kill()
        # Its kernel answers with resets to nobody, while its connections are torn down.
        network.nft(2, "")
        network.start(restarted)
        agents.wait_until("the next start", lambda: all(
            agents.peer(agent, restarted.name)["start"] > before for agent in cluster.agents))
        healed(cluster)
        agents.assert_no_death_but(cluster, restarted.name)


def cut_off(*numbers):
    """These on a switch of their own."""
    ip("link add br1 type bridge", "link set br1 up",
       *[f"link set p{number} master br1" for number in numbers])


def heal(cluster, *numbers):
    ip(*[f"link set p{number} master br0" for number in numbers])
    since = time.monotonic()
    healed(cluster)
    agents.say(f"healed, one view after {time.monotonic() - since:.1f} s")


def halves_of_few():
    """two halves of six declare nobody, however long they last; healed they are one view"""
    with Network(6) as cluster:
        cut_off(4, 5, 6)
        halves = cluster.agents[:3], cluster.agents[3:]
        for half, other in (halves, halves[::-1]):
            for agent in other:
                agents.wait_for_state(cluster, agent.name, "unreachable", half)
        end = time.monotonic() + BRAKE_SECONDS + SILENT_SECONDS
        while time.monotonic() < end:
            agents.assert_no_death_but(cluster)
            time.sleep(1)
        heal(cluster, 4, 5, 6)
        agents.assert_no_death_but(cluster)


def command(agent, *words):
    """What `tocsin` prints when it asks this agent, which has a socket of its own."""
    done = subprocess.run([agent.cluster.tocsin, *words, "--socket", agent.socket],
                          capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def order_ends_the_wait(few):
    """Those who wait say how many they miss, and by what it ends; it does."""
    for agent in few:
        for words in (["status"], ["health"]):
            told = command(agent, *words)
            assert "reaches 2 of 6 agents" in told and "none of the other 4 dead" in told, told
            assert "tocsin forget --unreachable" in told, told
        waiting = agent.ask("HEALTH")["waiting"]
        assert waiting == {"reached": 2, "of": 6, "misses": 4,
                           "command": "tocsin forget --unreachable"}, waiting
    told = command(few[0], "forget", "--unreachable")
    assert "are forgotten" in told, told
    for agent in few:
        agents.wait_until(f"{agent.name} waits no more", lambda agent=agent: (
            agent.ask("HEALTH")["waiting"] is None and agent.ask("PEERS")["alive"] == 2))
    assert "no node is unreachable" in command(few[0], "forget", "--unreachable")


def third_of_few():
    """of six, four declare the two, which forget the four when told to; healed they are one view"""
    with Network(6) as cluster:
        cut_off(5, 6)
        many, few = cluster.agents[:4], cluster.agents[4:]
        for agent in few:
            agents.wait_for_state(cluster, agent.name, "dead", many)
        agents.assert_no_death_but(cluster, "n5", "n6")
        for agent in many:
            agents.wait_for_state(cluster, agent.name, "unreachable", few)
        order_ends_the_wait(few)
        heal(cluster, 5, 6)
        agents.assert_no_death_but(cluster, "n5", "n6")


def not_healthy(agents_asked):
    """(who says it, of whom, why), of all of them."""
    return {(agent.name, row["node"], row["reason"]) for agent in agents_asked
            for row in agent.ask("HEALTH")["findings"]}


def third_returns():
    """two of six that were cut off until all evidence was old are well to all once they are back"""
    with Network(6) as cluster:
        agents.wait_until("all to be well", lambda: not not_healthy(cluster.agents))
        for name in ("n5", "n6"):  # there is something to miss
            agents.wait_until(f"the pulse of {name} to be read", lambda name=name: any(
                "good" in agent.paths_seen(name) for agent in cluster.agents[:4]))
        cut_off(5, 6)
        for agent in cluster.agents[4:]:
            agents.wait_for_state(cluster, agent.name, "dead", cluster.agents[:4])
        end = time.monotonic() + 3 * STALE_SECONDS  # what was seen of their deaths is old then
        while time.monotonic() < end:
            agents.assert_no_death_but(cluster, "n5", "n6")
            time.sleep(1)
        heal(cluster, 5, 6)
        said = set()

        def all_well():
            now = not_healthy(cluster.agents)
            said.update(now)
            return not now

        agents.wait_until(lambda: f"all to be well: {not_healthy(cluster.agents)}", all_well)
        end = time.monotonic() + STALE_SECONDS + 5  # until what came late would be too old
        while time.monotonic() < end:
            all_well()
            time.sleep(0.5)
        stale = [row for row in said if row[2] == "EvidenceStale"]
        assert not stale, sorted(stale)


def halves_of_many():
    """halves of twenty declare nobody: too many fell silent at once; healed they are one view"""
    network = Network(2)
    cluster = network.cluster
    cluster.agents = [clusters.Agent(cluster, number + 10) for number in range(20)]
    for number, agent in enumerate(cluster.agents):
        machine, place = number % 2 + 1, number // 2 + 11
        address = f"10.0.0.{100 * machine + place}"
        network.on(machine, f"addr add {address}/24 dev eth0")
        agent.own["overlay.listen"] = address
    cluster.join = ",".join(agent.own["overlay.listen"] for agent in cluster.agents[:2])
    network.start, start = lambda agent: start(agent, int(agent.name[1:]) % 2 + 1), network.start
    with network:
        halves = cluster.agents[0::2], cluster.agents[1::2]
        ip("link set p2 nomaster")
        for half in halves:
            agents.wait_until("the brake", lambda half=half: any(
                agent.ask("PEERS")["unreachable"] for agent in half))
        end = time.monotonic() + SILENT_SECONDS
        while time.monotonic() < end:  # as long as a death would take
            agents.assert_no_death_but(cluster)
            time.sleep(1)
        ip("link set p2 master br0")
        since = time.monotonic()
        healed(cluster)
        agents.say(f"healed, one view after {time.monotonic() - since:.1f} s")
        agents.assert_no_death_but(cluster)


def address_problem(agent):
    return agent.ask("HEALTH")["address_problem"]


def address_lost():
    """one whose address goes says so, and is well with it back; one that has two says that"""
    network = Network(4)
    with network as cluster:
        lost = cluster.agents[3]
        network.on(4, *network.addresses(4, "del"))
        problem = agents.wait_until("the words", lambda: address_problem(lost))
        assert "10.0.0.4:28030 is no longer an address of this machine" in problem, problem
        event = lost.events("ADDRESS_UNPROVEN", lost.name)[-1]
        assert event["cause"] == "own-fault" and event["text"] == problem, event
        agents.wait_log(lost, " own_address_gone ")
        agents.wait_for_state(cluster, lost.name, "dead", rest(cluster, lost))
        assert lost.running()
        network.on(4, *network.addresses(4, "add"))
        since = time.monotonic()
        healed(cluster)
        agents.wait_until("the proof", lambda: address_problem(lost) is None)
        agents.say(f"well again after {time.monotonic() - since:.1f} s")
        assert lost.events("ADDRESS_PROVEN", lost.name)
        agents.assert_no_death_but(cluster, lost.name)
        address_shared(network, cluster)


def address_shared(network, cluster):
    """A machine that was given another one's address says so, of both, in health and in its log."""
    both, owner = cluster.agents[3], cluster.agents[2]
    network.on(4, *network.addresses(3, "add"))
    words = agents.wait_until("the address of two machines to be told", lambda: next(
        iter(both.ask("HEALTH")["mistakes"]), None))
    for part in ("10.0.0.3 ", owner.name, both.name):
        assert part in words, words
    assert both.ask("HEALTH")["grade"] != "ok", both.ask("HEALTH")
    event, = both.events("ADDRESS_SHARED", owner.name)
    assert event["text"] == words, event
    agents.wait_log(both, "ADDRESS_SHARED")
    agents.wait_until("the others to show it", lambda: all(
        word_on(agent, both.name) == ("check-warning", "AddressShared", words)
        for agent in cluster.agents[:2]))
    network.on(4, *network.addresses(3, "del"))
    agents.wait_until("its end", lambda: all(
        word_on(agent, both.name)[0] == "healthy" for agent in cluster.agents[:2]))


def word_on(agent, name):
    """Verdict, reason and evidence that an agent holds on a node."""
    row = agent.ask(f"HEALTH {name}")["findings"][0]
    return row["verdict"], row["reason"], row["evidence"]


def address_moved():
    """one whose chosen address is replaced by another binds that one and tells it by a new start"""
    network = Network(4)
    mover = network.cluster.agents[3]
    mover.own.update({"overlay.listen": "", "overlay.interface": "eth0"})
    with network as cluster:
        before = agents.peer(cluster.agents[0], mover.name)["start"]
        network.on(4, *network.addresses(4, "del"))
        agents.wait_until("the words", lambda: address_problem(mover))
        network.on(4, "addr add 10.0.0.44/24 dev eth0")
        agents.wait_until("the other address", lambda: all(
            agents.peer(agent, mover.name)["address"] == "10.0.0.44:28030"
            and agents.peer(agent, mover.name)["start"] > before for agent in cluster.agents))
        healed(cluster)
        agents.wait_until("the proof", lambda: address_problem(mover) is None)
        assert mover.events("ADDRESS_CHANGED", mover.name)
        agents.wait_until("the word on its software device", lambda: any(
            "soft0 still uses 10.0.0.4, but the address of this node is now 10.0.0.44" in words
            for words in mover.ask("HEALTH")["mistakes"]))
        agents.wait_log(mover, " own_address_changed ")
        # From there and to there alone: each link was opened by either side.
        assert set(sources_of(4)) == {"10.0.0.44"}, sources_of(4)
        assert mover.process.poll() is None
        agents.assert_no_death_but(cluster, mover.name)


def exit_beside():
    """one that ends beside another of its host is dead to it, though the rest is cut off"""
    network = Network(4)
    _, _, stays, ends = network.cluster.agents
    stays.own["node.host"] = ends.own["node.host"] = "shared"
    ends.own["overlay.listen"] = "10.0.0.3:28031"
    network.homes[ends.name] = 3
    with network as cluster:
        ip("link set p3 down")
        others = [agent.name for agent in cluster.agents[:2]]
        agents.wait_until("both others to be held", lambda: all(
            agents.peer(stays, name)["state"] == "unreachable" for name in others))
        ends.kill()
        agents.wait_until("its death", lambda: agents.peer(stays, ends.name)["state"] == "dead")
        seen = agents.peer(stays, ends.name)
        assert seen["cause"] == "exited" and not seen["sole"], seen
        assert seen["observers"] == [stays.name], seen
        assert all(agents.peer(stays, name)["state"] == "unreachable" for name in others)
        ip("link set p3 up")
        network.start(ends)
        healed(cluster)


def ipv6_only():
    """a network of IPv6 alone carries the overlay"""
    network = Network(3, "fd00:7::{}", 64)
    with network as cluster:
        victim = cluster.agents[2]
        victim.kill()
        agents.wait_for_state(cluster, victim.name, "dead")
        assert agents.peer(cluster.agents[0], victim.name)["address"] == "[fd00:7::3]:28030"
        network.start(victim)
        healed(cluster)


def link_local():
    """link-local addresses carry it, where the interface is given with them"""
    network = Network(3, "fe80::{}", 64)
    network.cluster.join = ",".join(network.endpoint(number, "%eth0") for number in (1, 2))
    for number, agent in enumerate(network.cluster.agents, 1):
        agent.own["overlay.listen"] = network.endpoint(number, "%eth0")
    with network as cluster:
        healed(cluster)


def sources_of(number):
    """The own addresses of a machine's TCP connections that stand."""
    told = subprocess.run(["ip", "netns", "exec", f"m{number}", "ss", "-tnH", "state",
                           "established"], check=True, capture_output=True, text=True)
    return [line.split()[2].rsplit(":", 1)[0].split("%")[0] for line in told.stdout.splitlines()]


def interface_chosen():
    """overlay.interface says where an agent listens, and from where it connects"""
    network = Network(3, settings={"overlay.interface": "eth1", "overlay.listen": ""})
    ip("link add br1 type bridge", "link set br1 up")
    for number in (1, 2, 3):
        ip(f"link add q{number} type veth peer name eth1 netns m{number}",
           f"link set q{number} master br1 up")
        network.on(number, "link set eth1 addrgenmode none", "link set eth1 up",
                   f"addr add 10.1.0.{number}/24 dev eth1")
        netns.wait_for(lambda number=number: is_up(number), f"eth1 of m{number} to run")
        network.cluster.agents[number - 1].own["overlay.listen"] = ""
    # Reached by a route over the other cable as well: the source is not the kernel's choice.
    network.cluster.join = "10.1.0.1,10.1.0.2"
    with network as cluster:
        for number, agent in enumerate(cluster.agents, 1):
            assert agents.peer(cluster.agents[0], agent.name)["address"] == \
                f"10.1.0.{number}:28030"
            assert set(sources_of(number)) == {f"10.1.0.{number}"}, sources_of(number)


def is_up(number):
    told = subprocess.run(["ip", "-n", f"m{number}", "-j", "link", "show", "dev", "eth1"],
                          check=True, capture_output=True, text=True)
    return json.loads(told.stdout)[0]["operstate"] == "UP"


CASES = {
    "halves": [halves_of_few],
    "third": [third_of_few],
    "returns": [third_returns],
    "loss": [packets_lost, cut_at_any_moment],
    "frozen": [frozen_half, frozen_for_long],
    "rest": [cable_cut, one_way, half_open, halves_of_many, address_lost, address_moved,
             exit_beside, ipv6_only, link_local, interface_chosen],
}

if __name__ == "__main__":
    netns.run(CASES[sys.argv[2]])
