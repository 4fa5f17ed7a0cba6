#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ten thousand strangers, a thousand a second, at one agent of a ring.

    agent_flood_test.py BUILD-ROOT

How late its timers were is printed; ./dev bench agent compares it with what is to be reached.
"""

import sys

import agents
import cluster as clusters
import strangers

AGENTS = 3
STRANGERS = 10000
PER_SECOND = 1000


def test_ring(cluster):
    """The ring stands before anybody comes."""
    cluster.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_one_view(cluster)


def test_flood(cluster):
    """Ten thousand who never prove the key are counted, and nobody is suspected or lost."""
    victim = cluster.agents[0]
    before = strangers.counted(victim)
    last = {agent.name: agent.events()[-1]["sequence"] for agent in cluster.agents}
    took = strangers.flood(victim.address, STRANGERS, PER_SECOND)
    agents.wait_until("all to be counted",
                      lambda: strangers.counted(victim) - before >= STRANGERS)
    late_ms = victim.counters()["loop"]["timer_late_longest_ns"] / 1e6
    agents.say(f"{STRANGERS / took:.0f} strangers a second; the latest timer of the last "
               f"minute or two: {late_ms:.0f} ms")
    for agent in cluster.agents:
        bad = [event for event in agent.events(since=last[agent.name])
               if event["event"] in ("SUSPECT", "UNREACHABLE", "DEAD")]
        assert not bad, f"{agent.name}: {bad}"
    agents.assert_unharmed(cluster)


def test_room(cluster):
    """When they are gone their places are, too: one who has the key joins."""
    victim, joiner = cluster.agents[0], cluster.agents[2]
    agents.wait_until("no stranger", lambda: victim.counters()["transport"]["proving"] == 0)
    assert joiner.leave() == 0
    joiner.configure(overlay__join=victim.address)
    joiner.start()
    agents.wait_for_state(cluster, joiner.name, "alive")


def test_end(cluster):
    """Nobody died, and all leave with exit status 0."""
    agents.assert_no_death_but(cluster)
    agents.end(cluster)


if __name__ == "__main__":
    agents.run(clusters.Cluster(sys.argv[1], AGENTS),
               [test_ring, test_flood, test_room, test_end])
