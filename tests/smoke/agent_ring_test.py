#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A ring of many real agents, and what they see of each other when things happen to one.

    agent_ring_test.py BUILD-ROOT AGENTS

The tests follow each other on one cluster.
"""

import json
import shutil
import socket
import sys
import time

import agents
import cluster as clusters

FROZEN_LONG_SECONDS = 30
long_frozen = {}  # since when, and what else is to be known when it wakes up


def alive_in(text):
    """How many agents a report in text says are alive."""
    return int(text.split(" agents alive")[0].split()[-1])


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
    victim = cluster.agents[4]
    victim.kill()
    agents.say(f"killed, dead everywhere after "
               f"{agents.wait_for_state(cluster, victim.name, 'dead'):.2f} s")
    seen = agents.peer(cluster.agents[0], victim.name)
    assert len(set(seen["observers"])) == 2 and victim.name not in seen["observers"], seen
    assert not seen["sole"] and seen["cause"] == "gone", seen
    agents.assert_no_death_but(cluster, victim.name)


def test_restart(cluster):
    """Started again under its name it is the next start, by its state directory."""
    victim = cluster.agents[4]
    before = agents.peer(cluster.agents[0], victim.name)["start"]
    victim.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_until("the next start", lambda: all(
        agents.peer(agent, victim.name)["start"] == before + 1 for agent in cluster.agents))
    agents.wait_one_view(cluster)


def test_state_lost(cluster):
    """With its state directory lost it learns from the others which start it is."""
    victim = cluster.agents[4]
    before = agents.peer(cluster.agents[0], victim.name)["start"]
    victim.kill()
    shutil.rmtree(victim.directory / "state")
    victim.start()
    agents.wait_until("a newer start", lambda: all(
        agents.peer(agent, victim.name)["start"] > before for agent in cluster.agents))
    cluster.wait_ring(agents.WAIT_SECONDS)


def test_freeze_long(cluster):
    """One that stands still is dead everywhere, since nobody hears it."""
    victim = cluster.agents[7]
    others = [agent for agent in cluster.agents if agent is not victim]
    long_frozen["declared"] = victim.counters()["overlay"]["deaths_declared"]
    long_frozen["refutations"] = agents.peer(victim, victim.name)["refutations"]
    long_frozen["since"] = time.monotonic()
    victim.freeze()
    agents.say("frozen, dead everywhere after "
               f"{agents.wait_for_state(cluster, victim.name, 'dead', others):.1f} s")
    seen = agents.peer(cluster.agents[0], victim.name)
    assert len(set(seen["observers"])) == 2 and seen["cause"] == "silent", seen


def test_freeze_short(cluster):
    """One that stands still for three seconds is never dead."""
    victim = cluster.agents[2]
    victim.freeze()
    time.sleep(3)  # this is what is tested
    victim.thaw()
    agents.wait_until(f"{victim.name} to answer", victim.answers)
    others = [agent for agent in cluster.agents if agent is not cluster.agents[7]]
    agents.wait_for_state(cluster, victim.name, "alive", others)
    assert not [agent.name for agent in others if agent.events("DEAD", victim.name)]
    assert not victim.events("DEAD", since=victim.events("PAUSED")[-1]["sequence"])


def test_freeze_asked(cluster):
    """A client of one that stands still waits for nothing but its own time; others answer."""
    victim, other = cluster.agents[9], cluster.agents[10]
    victim.freeze()
    with victim.client(1) as client:
        client.send("STATUS\n")
        try:
            raise AssertionError(f"a frozen agent said {client.line()}")
        except socket.timeout:
            pass
        with other.client() as asks:
            asks.send(f"TIMEOUT 1\nSET FORMAT json\nNODE {victim.name} PEERS\n")
            assert (asks.line(), asks.line()) == ("OK", "OK")
            answer = json.loads(asks.line())
        assert "error" in answer, answer
        with other.client() as asks:
            asks.send("STATUS\n")
            assert alive_in(asks.rest()) >= len(cluster.agents) - 2
        victim.thaw()
        client.socket.settimeout(agents.WAIT_SECONDS)
        assert alive_in(client.rest()) >= len(cluster.agents) - 2
    others = [agent for agent in cluster.agents if agent is not cluster.agents[7]]
    agents.wait_for_state(cluster, victim.name, "alive", others)


def test_leave(cluster):
    """One that is asked to stop says goodbye: left everywhere, dead nowhere, exit status 0."""
    victim = cluster.agents[12]
    assert victim.leave() == 0
    others = [agent for agent in cluster.running() if agent is not cluster.agents[7]]
    agents.wait_for_state(cluster, victim.name, "left", others)
    assert not [agent.name for agent in others if agent.events("DEAD", victim.name)]
    victim.start()
    agents.wait_for_state(cluster, victim.name, "alive", others)


def test_two_holders(cluster):
    """A second holder of a name is refused with the address of the first, which stays."""
    holder, seed = cluster.agents[11], cluster.agents[0]
    before = agents.peer(seed, holder.name)
    intruder = clusters.Agent(cluster, len(cluster.agents) + 1)
    intruder.own = {"node.name": holder.name}
    intruder.start()
    try:
        agents.wait_log(intruder, "JOIN_REFUSED")
    finally:
        if intruder.running():
            intruder.kill()
    assert intruder.process.returncode != 0, intruder.log.read_text()
    after = agents.peer(seed, holder.name)
    assert (after["state"], after["address"], after["start"]) == (
        "alive", before["address"], before["start"]), after


def test_maint(cluster):
    """Maintenance is known everywhere, and ends everywhere."""
    others = [agent for agent in cluster.agents if agent is not cluster.agents[7]]
    for order, wanted in (("on", True), ("off", False)):
        assert cluster.agents[1].ask(f"MAINT n4 {order}") == {"ok": True}
        agents.wait_until(f"maintenance {order}", lambda wanted=wanted: all(
            agents.peer(agent, "n4")["maint"] == wanted for agent in others))


def test_wake(cluster):
    """One that wakes up after half a minute refutes its death, is back, and declares none."""
    victim = cluster.agents[7]
    others = [agent for agent in cluster.agents if agent is not victim]
    left = long_frozen["since"] + FROZEN_LONG_SECONDS - time.monotonic()
    time.sleep(max(0, left))  # this is what is tested
    victim.thaw()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_one_view(cluster)
    assert victim.events("PAUSED"), victim.log.read_text()
    assert victim.events("DECLARED_DEAD"), victim.log.read_text()
    assert victim.counters()["overlay"]["deaths_declared"] == long_frozen["declared"]
    assert agents.peer(others[0], victim.name)["refutations"] > long_frozen["refutations"]
    told = [agent.name for agent in others if not agent.events("REJOINED", victim.name)]
    assert not told, f"not told that {victim.name} rejoined: {told}"


def test_forget(cluster):
    """A dead one can be forgotten, by one order for all; one that lives cannot."""
    victim, asked = cluster.agents[5], cluster.agents[0]
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
        cluster, *(cluster.agents[number].name for number in (4, 5, 7)))
    agents.end(cluster)


TESTS = [
    test_join, test_status, test_kill, test_restart, test_state_lost, test_freeze_long,
    test_freeze_short, test_freeze_asked, test_leave, test_two_holders, test_maint, test_wake,
    test_forget, test_story,
]

if __name__ == "__main__":
    agents.run(clusters.Cluster(sys.argv[1], int(sys.argv[2])), TESTS)
