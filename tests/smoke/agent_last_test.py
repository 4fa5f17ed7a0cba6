#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is said of the others by those who are left when many go at the same moment.

    agent_last_test.py BUILD-ROOT

Each test has a cluster of its own. Linux refuses connections to who was killed, and takes them for
who stands still: neither of them is silent.
"""

import sys
import time

import agents
import cluster as clusters
import tap

BUILD = sys.argv[1]
SEEN_SECONDS = 90


def finding(agent, name):
    return agent.ask(f"HEALTH {name}")["findings"][0]


def wait_verdict(agent, since, name, verdict, state, advice):
    """Until it says so; what it says. Verdicts follow the overlay's states by a moment."""
    wanted = (verdict, state, advice)
    said = []

    def is_said():
        row = finding(agent, name)
        now = row["verdict"], row["state"], row["advice"]
        if said[-1:] != [now]:
            said.append(now)
        return row if now == wanted else None

    row = agents.wait_until(lambda: f"{name} {wanted}, and not {said}", is_said, SEEN_SECONDS,
                            pause=0.02)
    agents.say(f"{name} {verdict}, {state}: after {time.monotonic() - since:.2f} s")
    return row


def verdicts_told(agent, name):
    """All of them: of a moment in which it was stopped itself it says unknown."""
    return {event["text"].split(",")[0] for event in agent.events("VERDICT", name)}


def one_each_way():
    """one killed, one frozen, one gone home: the last one tells them apart and declares nobody"""
    with clusters.Cluster(BUILD, 4) as cluster:
        cluster.start().wait_ring(agents.WAIT_SECONDS)
        last, killed, frozen, left = cluster.agents
        since = time.monotonic()
        killed.signal(9)
        frozen.freeze()
        left.signal(15)
        # What the host answers is known at once; that nobody is left to agree takes its time.
        row = wait_verdict(last, since, killed.name, "agent-down", "suspect", "warn")
        assert row["reason"] == "AgentGone", row
        wait_verdict(last, since, frozen.name, "agent-frozen", "suspect", "warn")
        for victim, verdict in ((killed, "agent-down"), (frozen, "agent-frozen")):
            row = wait_verdict(last, since, victim.name, "unknown", "unreachable", "show")
            assert row["grade"] == "unknown", row
            told = verdicts_told(last, victim.name)
            assert told <= {verdict, "unknown"}, told
        assert agents.peer(last, left.name)["state"] == "left"
        assert finding(last, left.name)["verdict"] == "none"
        agents.assert_no_death_but(cluster, among=[last])
        frozen.thaw()
        wait_verdict(last, since, frozen.name, "healthy", "alive", "nothing")
        killed.process.wait()
        killed.start()
        cluster.wait_ring(agents.WAIT_SECONDS)


def all_but_one():
    """of three the last one says that two were killed, and declares nobody alone"""
    with clusters.Cluster(BUILD, 3) as cluster:
        cluster.start().wait_ring(agents.WAIT_SECONDS)
        last, victims = cluster.agents[0], cluster.agents[1:]
        since = time.monotonic()
        for victim in victims:
            victim.signal(9)
        for state, verdict, advice in (("suspect", "agent-down", "warn"),
                                       ("unreachable", "unknown", "show")):
            for victim in victims:
                wait_verdict(last, since, victim.name, verdict, state, advice)
        agents.assert_no_death_but(cluster, among=[last])
        for victim in victims:
            victim.process.wait()
            victim.start()
        cluster.wait_ring(agents.WAIT_SECONDS)


def two_of_five():
    """two of five that are killed as soon as all are there are dead by two others' word"""
    for numbers in ((2, 4), (2, 3)):
        with clusters.Cluster(BUILD, 5) as cluster:
            cluster.start().wait_ring(agents.WAIT_SECONDS)
            agents.wait_one_view(cluster)
            victims = [cluster.agents[number - 1] for number in numbers]
            others = [agent for agent in cluster.agents if agent not in victims]
            since = time.monotonic()
            for victim in victims:
                victim.signal(9)
            for victim in victims:
                wait_verdict(others[0], since, victim.name, "agent-down", "dead", "restart")
                agents.wait_for_state(cluster, victim.name, "dead", others)
                seen = agents.peer(others[0], victim.name)
                assert not seen["sole"] and len(set(seen["observers"])) == 2, seen
                victim.process.wait()
            agents.assert_no_death_but(cluster, *(victim.name for victim in victims),
                                       among=others)


def two_of_five_frozen():
    """two of five that stand still as soon as all are there are dead, and back when they go on"""
    with clusters.Cluster(BUILD, 5) as cluster:
        cluster.start().wait_ring(agents.WAIT_SECONDS)
        agents.wait_one_view(cluster)
        victims = [cluster.agents[number - 1] for number in (2, 3)]
        others = [agent for agent in cluster.agents if agent not in victims]
        since = time.monotonic()
        for victim in victims:
            victim.freeze()
        for victim in victims:
            agents.wait_for_state(cluster, victim.name, "dead", others)
        agents.say(f"both dead to all others: after {time.monotonic() - since:.2f} s")
        for victim in victims:
            victim.thaw()
        cluster.wait_ring(agents.WAIT_SECONDS)


TESTS = (one_each_way, all_but_one, two_of_five, two_of_five_frozen)
tap.run([(test.__doc__, test) for test in TESTS])
