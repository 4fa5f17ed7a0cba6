#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether others can connect to the address that an agent tells: proven by their doing so.

    agent_reach_test.py BUILD-ROOT

The tests follow each other on one cluster, whose last agent advertises a wrong address.
"""

import socket
import subprocess
import sys
import threading
import time

import agents
import cluster as clusters
import patience

WRONG = 77
SILENT_SECONDS = 12  # longer than the profile `fast` needs to declare a death by silence


def test_told(cluster):
    """One that advertises an address where nobody listens is told by who tried, and from where."""
    wrong = cluster.agents[2]
    address = f"{cluster.address(WRONG)}:28030"
    wrong.own = {"overlay.advertise": address}
    cluster.agents[1].own = {"overlay.advertise": cluster.address(2)}
    cluster.start().wait_ring(agents.WAIT_SECONDS)
    agents.wait_until("the event", lambda: wrong.events("ADDRESS_UNPROVEN", wrong.name))
    event = wrong.events("ADDRESS_UNPROVEN")[0]
    assert event["cause"] == "refused" and set(event["observers"]) == {"n1", "n2"}, event
    for part in (f"{address} is unreachable: ", f"n1 from {cluster.address(1)} was refused",
                 f"n2 from {cluster.address(2)} was refused"):
        assert part in event["text"], event
        agents.wait_log(wrong, part)


def test_shown(cluster):
    """It shows in its status, its health and its why, and in its counters."""
    wrong = cluster.agents[2]

    def say(*arguments):
        return subprocess.run(
            [str(cluster.tocsin), *arguments, "--socket", str(wrong.socket)], text=True,
            capture_output=True, timeout=patience.HANG_SECONDS, check=False)

    health = say("health")
    assert health.returncode == 1 and "is unreachable" in health.stdout, health
    assert "Others cannot connect to this node" in say("status").stdout
    assert f"{cluster.address(WRONG)}:28030 is unreachable" in say("why", wrong.name).stdout
    assert wrong.ask("HEALTH")["address_problem"], wrong.ask("HEALTH")
    assert wrong.counters()["reach"]["not_reached"] >= 2
    assert sum(agent.counters()["reach"]["tries_failed"] for agent in cluster.agents) >= 2


def test_right(cluster):
    """Those whose address is right are proven once, and nothing is wrong with them."""
    for agent in cluster.agents[:2]:
        agents.wait_log(agent, " address_proven ")
        assert agent.ask("HEALTH")["address_problem"] is None
        assert agent.ask("HEALTH")["grade"] == "ok"
        assert not agent.events("ADDRESS_UNPROVEN")
        assert agent.log.read_text().count(" address_proven ") == 1
    assert "advertise" not in cluster.agents[0].own


def test_family(cluster):
    """One that is to join through another family says from where to where it cannot connect"""
    agent = cluster.agents[0]
    assert agent.leave() == 0
    (agent.directory / "state" / "members").unlink()
    # By another name and address, where nobody looks for it: whoever is called joins.
    agent.own = {"overlay.join": "[::1]:28030", "node.name": "n9",
                 "overlay.listen": f"{cluster.address(9)}:28030"}
    agent.start()
    problem = agents.wait_until("the words", lambda: agent.ask("HEALTH")["join_problem"])
    for part in ("[::1]:28030 ", f"{cluster.address(9)}:28030", "another family"):
        assert part in problem, problem
        agents.wait_log(agent, part.replace("another family", "_of_another_family"))
    agent.kill()
    agent.own = {}
    agent.start()
    cluster.wait_ring(agents.WAIT_SECONDS)


def carry(source, sink):
    """Bytes from one connection to the other, until either ends."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def forward(listener, to):
    """As an address translation does: who connects to the one address speaks with the other."""
    while True:
        try:
            here, _ = listener.accept()
        except OSError:
            return
        there = socket.create_connection(to)
        for pair in ((here, there), (there, here)):
            threading.Thread(target=carry, args=pair, daemon=True).start()


def test_later(cluster):
    """Once it is the agent that answers there the alarm ends by itself"""
    wrong = cluster.agents[2]
    with socket.create_server((cluster.address(WRONG), 28030)) as listener:
        threading.Thread(target=forward, args=(listener, (wrong.address, 28030)),
                         daemon=True).start()
        agents.wait_until("the proof", lambda: wrong.events("ADDRESS_PROVEN", wrong.name))
        assert wrong.ask("HEALTH")["address_problem"] is None
        listener.shutdown(socket.SHUT_RDWR)
    agents.assert_unharmed(cluster)


def test_taken(cluster):
    """One that advertises the address of a live member is told so by both, and nobody dies of it"""
    victim, liar = cluster.agents[1], cluster.agents[2]
    address = f"{cluster.address(2)}:28030"
    assert liar.leave() == 0
    liar.own = {"overlay.advertise": address}
    liar.start()
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.wait_until("the event", lambda: liar.events("ADDRESS_UNPROVEN", liar.name))
    problem = agents.wait_until("the words", lambda: liar.ask("HEALTH")["address_problem"])
    assert address in problem and f"found {victim.name}" in problem, problem

    # Those that ask for it have found it out, too, and say it to whoever asks them.
    def mistakes():
        return [agent.name for agent in cluster.agents if any(
            address in words and victim.name in words and liar.name in words
            for words in agent.ask("HEALTH")["mistakes"])]

    found = agents.wait_until("the mistake to be told", mistakes)
    finder = next(agent for agent in cluster.agents if agent.name == found[0])
    assert finder.ask("HEALTH")["grade"] == "warning", finder.ask("HEALTH")
    assert finder.events("ADDRESS_OTHER", liar.name), finder.events()
    told = subprocess.run([str(cluster.tocsin), "status", "--socket", str(finder.socket)],
                          text=True, capture_output=True, check=True,
                          timeout=patience.HANG_SECONDS).stdout
    assert "Misconfigured: " in told, told
    # As long as a death by silence would take, with each link made anew by a restart.
    restarted = cluster.agents[0]
    restarted.kill()
    restarted.start()
    agents.wait_until("it to answer", restarted.answers)
    end = time.monotonic() + SILENT_SECONDS
    while time.monotonic() < end:
        agents.assert_no_death_but(cluster, restarted.name)
        time.sleep(0.5)
    cluster.wait_ring(agents.WAIT_SECONDS)
    agents.assert_no_death_but(cluster, restarted.name)


def test_ghost(cluster):
    """That one killed, the other's kernel accepts for it: it is in conflict, and never drained"""
    liar, others = cluster.agents[2], cluster.agents[:2]
    liar.kill()

    def said():
        return [[row[key] for key in ("verdict", "reason", "state", "advice")]
                for agent in others for row in agent.ask(f"HEALTH {liar.name}")["findings"]]

    agents.wait_until("the conflict everywhere",
                      lambda: said() == 2 * [["unknown", "AddressConflict", "dead", "show"]])
    for agent in others:
        told = [event["text"] for event in agent.events("VERDICT", liar.name)]
        assert not any(text.startswith("agent-frozen") for text in told), told
    liar.start()
    cluster.wait_ring(agents.WAIT_SECONDS)


def test_swapped(_):
    """Two that come back with each other's addresses while a third is down are members again"""
    with clusters.Cluster(sys.argv[1], 4) as four:
        four.start().wait_ring(agents.WAIT_SECONDS)
        first, second, down, stays = four.agents
        for agent in (down, first, second):
            agent.kill()
        for agent, address in ((first, four.address(2)), (second, four.address(1))):
            agent.own = {"overlay.listen": address}
            agent.start()

        def told(agent, name, number):
            row = agents.peer(agent, name) or {"state": "unknown"}
            return row["state"] == "alive" and row["address"] == f"{four.address(number)}:28030"

        agents.wait_until("the addresses", lambda: all(
            told(agent, "n1", 2) and told(agent, "n2", 1) for agent in (first, second, stays)))
        agents.wait_until("no mistake to be told", lambda: not any(
            agent.ask("HEALTH")["mistakes"] for agent in (first, second, stays)))
        agents.end(four)


def test_leave_asking(cluster):
    """One that leaves while it waits for an answer leaves as any other."""
    asker, others = cluster.agents[2], cluster.agents[:2]
    assert asker.leave() == 0
    asker.start()
    agents.wait_until("it to join", lambda: asker.events("JOIN_DONE"), pause=0.02)
    for other in others:
        other.freeze()  # they are asked in two seconds, and do not answer
    agents.wait_until("its question", lambda: asker.counters()["reach"]["asked"] > 0, pause=0.02)
    status = asker.leave()
    for other in others:
        other.thaw()
    assert status == 0, asker.log.read_text()
    agents.end(cluster)


if __name__ == "__main__":
    agents.run(clusters.Cluster(sys.argv[1], 3), [
        test_told, test_shown, test_right, test_family, test_later, test_taken, test_ghost,
        test_swapped, test_leave_asking])
