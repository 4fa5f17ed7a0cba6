#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The history of three agents: a freeze is shown later, after restarts, from other nodes.

    agent_history_test.py BUILD-ROOT
"""

import json
import re
import sys
import xml.etree.ElementTree

import agents
import cluster as clusters
import tap
from stand_in import Tocsin, expect, expect_fit

ring = clusters.Cluster(sys.argv[1], 3, settings={"history.interval": "1s"})
tocsin = Tocsin(str(ring.tocsin))
first, second, third = ring.agents
frozen = {}  # times of the agent's own events


def ask(*arguments, status=0, agent=first):
    """An agent answers five such questions a second: a client that asks more tries again."""
    words = (*arguments, "--socket", str(agent.socket))
    done = agents.wait_until("leave to ask", lambda: (
        None if "too many questions" in (done := tocsin(*words)).stderr else done), pause=1)
    expect(done.returncode, status)
    return done


def history(*arguments, since="15m"):
    return json.loads(ask("history", *arguments, "--since", since, "--json").stdout)


def verdicts(answer):
    return [row["verdict"] for row in answer["periods"] if row["kept"]]


def last_verdict(name):
    """The time of the last such verdict on n3, as n1 sees it; None without one."""
    times = [event["time"] for event in first.events("VERDICT", "n3")
             if event["text"].startswith(name)]
    return times[-1] if times else None


def test_paths(_):
    """The paths of an agent are recorded, each period with its probes and latencies"""
    ring.start()
    ring.wait_ring(agents.WAIT_SECONDS)

    def recorded():
        paths = history("n2", since="1m")["paths"]
        return paths and len(paths[0]["points"]) > 3 and paths

    path = agents.wait_until("records of a path", recorded)[0]
    expect((path["node"], path["peer"]), ("n1", "n2"))
    answered = [point for point in path["points"] if point["median_ns"]]
    assert answered, path
    for point in answered:
        assert point["min_ns"] <= point["median_ns"] <= point["max_ns"], point
        assert point["sent"] > point["lost"] >= 0, point
    expect({path["peer"] for path in history("n1")["paths"]}, {"n2", "n3"})
    expect({path["node"] for path in history("n2", "n3")["paths"]}, {"n2"})
    expect({path["node"] for path in history("n3", "--node", "n2")["paths"]}, {"n2"})


def test_freeze(_):
    """A frozen agent is in the history and in why --at, and is healthy before and after"""
    third.freeze()
    agents.wait_until("the verdict", lambda: last_verdict("agent-frozen"))
    agents.wait_until("its record", lambda: "agent-frozen" in verdicts(history("n3")))
    third.thaw()
    agents.wait_until("its recovery", lambda: verdicts(history("n3"))[-1:] == ["healthy"])
    frozen["at"] = last_verdict("agent-frozen")
    check_freeze()


def check_freeze():
    """What is asked before and after restarts. A period may be the one of the restart."""
    agents.wait_until("its recovery", lambda: verdicts(history("n3"))[-1:] == ["healthy"])
    answer = history("n3")
    found = verdicts(answer)
    assert "agent-frozen" in found, found
    assert any(event["event"] == "VERDICT" and "agent-frozen" in event["text"]
               for event in answer["events"]), answer["events"]
    told = json.loads(ask("why", "n3", "--at", frozen["at"], "--json").stdout)
    expect(told["verdict"], "agent-frozen")
    assert "AgentMute" in told["evidence"] or "Frozen" in told["evidence"], told
    assert told["events"] and told["events"][-1]["time"] <= frozen["at"], told["events"]
    shown = ask("why", "n3", "--at", frozen["at"]).stdout
    assert "agent-frozen" in shown and "AgentMute" in shown, shown


def test_restart(_):
    """Both are answered after all agents were restarted"""
    for agent in ring.agents:
        expect(agent.leave(), 0)
    for agent in ring.agents:
        agent.start()
    ring.wait_ring(agents.WAIT_SECONDS)
    check_freeze()
    assert re.search(r"history_opened blocks=[1-9]\d* damaged=0", first.log.read_text())


def test_shown(_):
    """The page fits a terminal, and the picture is sound"""
    file = ring.directory / "picture.svg"
    shown = ask("history", "n3", "--since", "10m", "--svg", str(file)).stdout
    assert "n3, as n1 recorded it" in shown and "soft0 reads soft0" in shown, shown
    picture = xml.etree.ElementTree.parse(file).getroot()
    assert picture.findall(".//{http://www.w3.org/2000/svg}polyline")
    expect_fit(shown.split("\n NUMBER")[0])
    assert "FILE" not in ask("history", "n3", "--svg", "/nowhere/a.svg", status=1).stderr


def test_mistakes(_):
    """Unknown nodes and times that do not exist are refused with a reason"""
    for words, arguments, status in (
            ("no node n9: it is no member", ["history", "n9"], 1),
            ("no node n9: it is no member", ["why", "n9", "--at", "1h"], 1),
            ("--since: ", ["history", "n3", "--since", "yesterdayish"], 2),
            ("date that does not exist", ["why", "n3", "--at", "2026-02-30T01:00"], 2),
            ("the begin is after the end", ["history", "n3", "--since", "1m", "--until", "1h"], 1),
            ("the begin is after the end", ["events", "--since", "1m", "--until", "1h"], 1),
            ("without --node", ["history", "n2", "n3", "--node", "n1"], 2)):
        done = ask(*arguments, status=status)
        assert words in done.stderr, done.stderr
    done = tocsin("why", "n3", "--at", "2026-03-29T02:30", "--socket", str(first.socket),
                  TZ="Europe/Berlin")
    expect(done.returncode, 2)
    assert "does not exist in local time" in done.stderr, done.stderr
    told = json.loads(ask("why", "n3", "--at", "2020-01-01", "--json").stdout)
    expect((told["state"], told["verdict"], told["events"]), (None, None, []))


def test_damage(_):
    """A damaged file costs its damaged blocks, and an unusable one the history alone"""
    file = first.directory / "state" / "history"
    expect(first.leave(), 0)
    data = bytearray(file.read_bytes())
    for at in range(0, len(data), 65536):
        if data[at:at + 4] == b"TocH":
            data[at + 70] ^= 1
    file.write_bytes(data)
    first.start()
    ring.wait_ring(agents.WAIT_SECONDS)
    agents.wait_until("an answer", lambda: history("n3")["damaged_blocks"] > 0)
    link = file.with_name("link")
    link.symlink_to("nowhere")
    link.rename(file)  # at once: the agent makes a removed file again within a second
    agents.wait_log(first, "history_open_failed")
    expect(history("n3")["recorded"], False)
    assert history("n3")["events"], "the journal still answers"


agents.run(ring, [test_paths, test_freeze, test_restart, test_shown, test_mistakes, test_damage])
