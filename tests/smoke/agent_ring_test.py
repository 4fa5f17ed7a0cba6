#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A ring of many real agents, and what they see of each other when things happen to one.

    agent_ring_test.py BUILD-ROOT AGENTS

At least four. The tests follow each other on one cluster.
"""

import json
import shutil
import socket
import sys
import time

import agents
import cluster as clusters

FROZEN_LONG_SECONDS = 30
EXIT_CONFLICT = 3  # tocsind(8)
long_frozen = {}  # since when, and what else is to be known when it wakes up


def sleeper(cluster):
    """The one that stands still for long, while most of the tests run."""
    return cluster.agents[len(cluster.agents) // 2]


def awake(cluster):
    """All but that one."""
    return [agent for agent in cluster.agents if agent is not sleeper(cluster)]


def other(cluster, number):
    """Another one for each number, as far as there are so many."""
    agents_awake = awake(cluster)
    return agents_awake[number % len(agents_awake)]


def alive_in(text):
    """How many agents a report in text says are alive."""
    return int(text.split(" agents alive")[0].split()[-1])


def events_told(cluster, kind):
    """The lines of all logs about events of a kind."""
    return [line for agent in cluster.running()
            for line in agent.log.read_text(errors="replace").splitlines()
            if f" event={kind} " in line]


def test_join(cluster):
    """Agents that start all at once make one ring, with one view."""
    since = time.monotonic()
    cluster.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.say(f"{len(cluster.agents)} agents see each other after "
               f"{time.monotonic() - since:.1f} s")
    agents.wait_one_view(cluster)
    agents.assert_no_death_but(cluster)


def test_status(cluster):
    """Every agent answers STATUS for all of them, in text and in JSON."""
    took = []
    for agent in cluster.agents:
        since = time.monotonic()
        with agent.client() as client:
            client.send("STATUS\n")
            text = client.rest()
        took.append(time.monotonic() - since)
        assert alive_in(text) == len(cluster.agents), text
        assert "timed out" not in text.lower(), text
    agents.say(f"STATUS: median {1e3 * sorted(took)[len(took) // 2]:.0f} ms, "
               f"slowest {1e3 * max(took):.0f} ms")
    with cluster.agents[-1].client() as client:
        client.send("SET FORMAT json\nVERBOSE STATUS\n")
        assert client.line() == "OK"
        json.loads(client.rest())


def test_kill(cluster):
    """One that is killed is dead everywhere by the word of two others, and nobody else is."""
    victim = other(cluster, 4)
    victim.kill()
    agents.say(f"killed, dead everywhere after "
               f"{agents.wait_for_state(cluster, victim.name, 'dead'):.2f} s")
    seen = agents.peer(other(cluster, 5), victim.name)
    assert len(set(seen["observers"])) == 2 and victim.name not in seen["observers"], seen
    assert not seen["sole"] and seen["cause"] == "gone", seen
    agents.assert_no_death_but(cluster, victim.name)


def test_restart(cluster):
    """Started again under its name it is the next start, by its state directory."""
    victim = other(cluster, 4)
    before = agents.peer(other(cluster, 5), victim.name)["start"]
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_until("the next start", lambda: all(
        agents.peer(agent, victim.name)["start"] == before + 1 for agent in cluster.agents))
    agents.wait_one_view(cluster)


def test_state_lost(cluster):
    """With its state directory lost it learns from the others which start it is."""
    victim = other(cluster, 4)
    before = agents.peer(other(cluster, 5), victim.name)["start"]
    victim.kill()
    shutil.rmtree(victim.directory / "state")
    victim.start()
    agents.wait_until("a newer start", lambda: all(
        agents.peer(agent, victim.name)["start"] > before for agent in cluster.agents))
    cluster.wait_ring(agents.WAIT_SECONDS)


def test_freeze_long(cluster):
    """One that stands still is dead everywhere, since nobody hears it."""
    victim, others = sleeper(cluster), awake(cluster)
    long_frozen["declared"] = victim.counters()["overlay"]["deaths_declared"]
    long_frozen["refutations"] = agents.peer(victim, victim.name)["refutations"]
    long_frozen["since"] = time.monotonic()
    victim.freeze()
    agents.say("frozen, dead everywhere after "
               f"{agents.wait_for_state(cluster, victim.name, 'dead', others):.1f} s")
    seen = agents.peer(others[0], victim.name)
    assert len(set(seen["observers"])) == 2 and seen["cause"] == "silent", seen


def test_freeze_short(cluster):
    """One that stands still for three seconds is never dead."""
    victim, others = other(cluster, 2), awake(cluster)
    victim.freeze()
    time.sleep(3)  # this is what is tested
    victim.thaw()
    agents.wait_until(f"{victim.name} to answer", victim.answers)
    agents.wait_for_state(cluster, victim.name, "alive", others)
    assert not [agent.name for agent in others if agent.events("DEAD", victim.name)]
    assert not victim.events("DEAD", since=victim.events("PAUSED")[-1]["sequence"])


def test_freeze_asked(cluster):
    """A client of one that stands still waits for nothing but its own time; others answer."""
    victim, bystander = other(cluster, 9), other(cluster, 10)
    victim.freeze()
    with victim.client(1) as client:
        client.send("STATUS\n")
        try:
            raise AssertionError(f"a frozen agent said {client.line()}")
        except socket.timeout:
            pass
        with bystander.client() as asks:
            asks.send(f"TIMEOUT 1\nSET FORMAT json\nNODE {victim.name} PEERS\n")
            assert (asks.line(), asks.line()) == ("OK", "OK")
            answer = json.loads(asks.line())
        assert "error" in answer, answer
        with bystander.client() as asks:
            asks.send("STATUS\n")
            assert alive_in(asks.rest()) >= len(cluster.agents) - 2
        victim.thaw()
        client.socket.settimeout(agents.WAIT_SECONDS)
        assert alive_in(client.rest()) >= len(cluster.agents) - 2
    agents.wait_for_state(cluster, victim.name, "alive", awake(cluster))


def test_leave(cluster):
    """One that is asked to stop says goodbye: left everywhere, dead nowhere, exit status 0."""
    victim = other(cluster, 5)
    assert victim.leave() == 0
    others = [agent for agent in awake(cluster) if agent is not victim]
    agents.wait_for_state(cluster, victim.name, "left", others)
    assert not [agent.name for agent in others if agent.events("DEAD", victim.name)]
    victim.start()
    agents.wait_for_state(cluster, victim.name, "alive", others)


def test_two_holders(cluster):
    """A second holder of a name is refused with the address of the first, which stays."""
    holder, seed = other(cluster, 11), other(cluster, 12)
    before = agents.peer(seed, holder.name)
    intruder = clusters.Agent(cluster, len(cluster.agents) + 1)
    intruder.own = {"node.name": holder.name}
    intruder.start()
    try:
        agents.wait_log(intruder, "JOIN_REFUSED")
        status = intruder.process.wait(agents.WAIT_SECONDS)
    finally:
        if intruder.running():
            intruder.kill()
    assert status == EXIT_CONFLICT, (status, intruder.log.read_text())
    told = events_told(cluster, "CONFLICT")
    # Where the other one listens is not known: its connection came from any port.
    where = f" address={holder.address}:28030 other={intruder.address} "
    assert any(where in line + " " for line in told), told
    assert holder.running(), holder.log.read_text()
    agents.wait_for_state(cluster, holder.name, "alive", [seed])
    after = agents.peer(seed, holder.name)
    assert (after["address"], after["start"]) == (before["address"], before["start"]), after


def test_addresses(cluster):
    """Whoever is told of a new member is told its address."""
    told = events_told(cluster, "JOINED")
    addresses = {agent.name: agent.address for agent in cluster.agents}
    # The log holds back what comes too fast, so not every member has its line.
    assert told
    for line in told:
        name = line.split(" peer=")[1].split()[0]
        assert f" address={addresses[name]}:28030" in line, line


def test_maint(cluster):
    """Maintenance is known everywhere, and ends everywhere."""
    subject = other(cluster, 3).name
    for order, wanted in (("on", True), ("off", False)):
        assert other(cluster, 1).ask(f"MAINT {subject} {order}") == {"ok": True}
        agents.wait_until(f"maintenance {order}", lambda wanted=wanted: all(
            agents.peer(agent, subject)["maint"] == wanted for agent in awake(cluster)))


def test_wake(cluster):
    """One that wakes up after half a minute refutes its death, is back, and declares none."""
    victim, others = sleeper(cluster), awake(cluster)
    left = long_frozen["since"] + FROZEN_LONG_SECONDS - time.monotonic()
    time.sleep(max(0, left))  # this is what is tested
    victim.thaw()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_one_view(cluster)
    assert victim.events("PAUSED"), victim.log.read_text()
    agents.wait_until("to be told of its own death", lambda: victim.events("DECLARED_DEAD"))
    assert victim.counters()["overlay"]["deaths_declared"] == long_frozen["declared"]
    assert agents.peer(others[0], victim.name)["refutations"] > long_frozen["refutations"]
    told = [agent.name for agent in others if not agent.events("REJOINED", victim.name)]
    assert not told, f"not told that {victim.name} rejoined: {told}"


def test_forget(cluster):
    """A dead one can be forgotten, by one order for all; one that lives cannot."""
    victim, asked = other(cluster, -1), other(cluster, 0)
    assert "error" in asked.ask(f"FORGET {victim.name}")
    victim.kill()
    agents.wait_for_state(cluster, victim.name, "dead")
    assert asked.ask(f"FORGET {victim.name}") == {"ok": True}
    agents.wait_until("forgotten everywhere", lambda: not any(
        agents.peer(agent, victim.name) for agent in cluster.running()))
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)


def test_story(cluster):
    """Nobody died but those who were killed or frozen, and all of them can leave at once."""
    agents.assert_no_death_but(
        cluster, other(cluster, 4).name, other(cluster, -1).name, sleeper(cluster).name)
    agents.end(cluster)


TESTS = [
    test_join, test_status, test_kill, test_restart, test_state_lost, test_freeze_long,
    test_freeze_short, test_freeze_asked, test_leave, test_two_holders, test_addresses,
    test_maint, test_wake, test_forget, test_story,
]

if __name__ == "__main__":
    agents.run(clusters.Cluster(sys.argv[1], int(sys.argv[2])), TESTS)
