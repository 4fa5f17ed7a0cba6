#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Real agents that tell programs of verdicts that change: one that listens, one that is hostile.

    agent_webhook_test.py BUILD-ROOT
"""

import json
import sys

import agents
import cluster as clusters

# n1's writes down what it is told. n2's fails or hangs, and floods its output.
HOOKS = {
    "n1": 'cat >>"$0.told"',
    "n2": 'yes >&2 & case $(cat) in *healthy\\"*) exec sleep 1000 ;; *) exit 7 ;; esac',
}


def told(cluster):
    path = cluster.directory / "n1.hook.told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told_of(cluster, node, verdict):
    return [change for change in told(cluster)
            if (change["node"], change["verdict"]) == (node, verdict)]


def a_change_is_told_to_the_program(cluster):
    """A verdict that changes is told to the program, as JSON"""
    cluster.agents[3].kill()
    change = agents.wait_until("n1's program to be told",
                               lambda: told_of(cluster, "n4", "agent-down"))[0]
    assert change["observer"] == "n1" and change["reason"] == "AgentGone", change
    # Told as it is found: where two take long to agree, of one that is suspected still.
    assert change["was"] != "agent-down" and change["advice"] in ("warn", "restart"), change
    agents.wait_until("it to be counted",
                      lambda: cluster.agents[0].counters()["webhook"]["told"] >= 1)


def a_program_that_fails_harms_nobody(cluster):
    """A program that fails is counted, and logged once"""
    agent = cluster.agents[1]
    agents.wait_until("n2's program to fail",
                      lambda: agent.counters()["webhook"]["failed"] >= 1)
    agents.wait_log(agent, "webhook_failed")
    cluster.agents[3].start()
    agents.wait_until("n4 healthy again", lambda: told_of(cluster, "n4", "healthy"))
    agents.wait_until("an event of it", lambda: any(
        event["text"].startswith("healthy, was ")
        for event in cluster.agents[0].events("VERDICT", "n4")))
    cluster.agents[3].kill()
    agents.wait_until("a second failure",
                      lambda: agent.counters()["webhook"]["failed"] >= 2)
    assert agent.log.read_text(errors="replace").count(" webhook_failed ") == 1
    assert agent.counters()["spawn"]["helper_lost"] == 0


def events_tell_it_too(cluster):
    """tocsin events has the change as well"""
    for agent in cluster.agents[:3]:
        agents.wait_until(f"{agent.name}'s event", lambda agent=agent: [
            event for event in agent.events("VERDICT", "n4")
            if event["detail"].startswith("agent-down")])


def all_end(cluster):
    """Agents end while their programs run, and leave none behind"""
    agents.end(cluster)


def main():
    cluster = clusters.Cluster(sys.argv[1], 4)
    for agent in cluster.agents:
        if agent.name in HOOKS:
            path = cluster.directory / f"{agent.name}.hook"
            path.write_text(f"#!/bin/sh\n{HOOKS[agent.name]}\n")
            path.chmod(0o755)
            agent.own.update({"health.webhook": path, "health.webhook_timeout": "1s"})
    with cluster:
        cluster.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.run(cluster, [a_change_is_told_to_the_program, a_program_that_fails_harms_nobody,
                             events_tell_it_too, all_end])


if __name__ == "__main__":
    main()
