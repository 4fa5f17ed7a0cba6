#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands of tocsin against three real agents on loopback, one of which dies and returns.

    tocsin_cluster_test.py BUILD-ROOT
"""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree

import cluster as clusters
import tap
from stand_in import Tocsin, expect, expect_fit

ring = clusters.Cluster(sys.argv[1], 3, settings={"overlay.expect": "n[1-5]"})
tocsin = Tocsin(str(ring.tocsin))
first, second, third = ring.agents

READING = [["status"], ["status", "--nccl"], ["status", "--nccl", "--verbose"], ["health"],
           ["peers"], ["peers", "alive"], ["peers", "missing"],
           ["links"], ["links", "--rdma"], ["links", "--all"],
           ["paths"], ["paths", "--all"], ["paths", "--matrix"],
           ["events"], ["events", "--since", "0"],
           ["events", "--since", "1h"], ["comms"], ["checks"], ["path", "n1", "n2"], ["why", "n2"],
           ["ping", "n2"], ["version"],
           ["top", "--count", "1"]]


def patiently(*arguments):
    """An agent puts five questions a second to others: who asks more is told to try again."""
    return clusters.wait_until("leave to ask", lambda: (
        None if "too many questions" in (done := tocsin(*arguments)).stderr else done), pause=1.5)


def ask(*arguments):
    return patiently(*arguments, "--socket", str(first.socket))


def a_ring_forms_and_status_says_who_is_missing():
    ring.start()
    ring.wait_ring()
    done = ask("status")
    expect((done.returncode, done.stderr), (0, ""))
    lines = done.stdout.splitlines()
    expect(lines[0], "unknown: 3 of 5 agents answer; cluster tocsin, as n1 sees it")
    expect(lines[1], "missing          2  n[4-5]: expected, not seen")


def one_that_never_came_has_a_row_and_nobody_drains_it():
    row = re.compile("^n5 +missing +unknown +- +NeverSeen$", re.MULTILINE)
    assert row.search(ask("health").stdout), ask("health").stdout
    done = ask("health", "n5")
    expect((done.returncode, done.stdout.split("\n")[0]), (3, "unknown: n5 is missing"))
    assert row.search(done.stdout) and "n4 " not in done.stdout, done.stdout
    expect(ask("health", "n5", "--exit=npd").returncode, 2)
    expect(ask("health", "n5", "--exit=drain").returncode, 2)
    assert ask("health", "--line").stdout.startswith("unknown: n4 unknown NeverSeen: ")
    for question in (["health", "n5"], ["health"], ["health", "--all"]):
        rows = json.loads(ask(*question, "--json").stdout)["findings"]
        told = next(row for row in rows if row["node"] == "n5")
        expect({key: told[key] for key in
                ("state", "grade", "verdict", "reason", "advice", "maint", "for_ns", "since")},
               {"state": "missing", "grade": "unknown", "verdict": "unknown",
                "reason": "NeverSeen", "advice": "show", "maint": False, "for_ns": None,
                "since": None})
    told = json.loads(ask("why", "n5", "--json").stdout)
    expect((told["verdict"], told["reason"], told["advice"]), ("unknown", "NeverSeen", "show"))
    assert "n5                 missing     unknown       -           expected by" in \
        ask("status").stdout, ask("status").stdout
    textfile = first.directory / "tocsin.prom"
    expect(ask("health", "--textfile", str(textfile)).returncode, 0)
    assert 'tocsin_health_verdict{node="n5",verdict="unknown",reason="NeverSeen",' \
        'grade="unknown",advice="show",maint="0"} 1' in textfile.read_text()


def every_table_fits_and_every_document_parses():
    for command in READING:
        done = ask(*command)
        expect((command, done.stderr), (command, ""))
        expect_fit("\n".join(line for line in done.stdout.splitlines()
                             if "tocsind.sock" not in line))
        for node in ([], ["--node", "n2"]):
            done = ask(*command, *node, "--json")
            expect((command, node, done.stderr), (command, node, ""))
            expect((command, node, foreign_units(json.loads(done.stdout))), (command, node, []))


def foreign_units(value):
    """Return the keys whose numbers are not in the one unit of their quantity."""
    if isinstance(value, list):
        return [key for item in value for key in foreign_units(item)]
    if not isinstance(value, dict):
        return []
    return [key for key, item in value.items()
            if re.search("(^|_)(s|ms|us|seconds|kib|mtu|percent)$", key)
            and not key.endswith("per_s")
            or key.endswith("_ns") and isinstance(item, float)] + [
        key for item in value.values() for key in foreign_units(item)]


def connections_of_all_are_summed_up_by_transport():
    def told():
        answer = json.loads(ask("links", "--all", "--json").stdout)
        tcp = answer["transports"][0] if answer["transports"] else {}
        # Of three agents each has a link to both others; beats have come back on all of them.
        return answer if tcp.get("rows", 0) >= 6 and len(answer["worst"]) >= 6 else None

    answer = clusters.wait_until("all links are timed", told, 60, pause=1.5)
    expect([answer["members"], answer["answered"], answer["unreadable"]], [3, 3, 0])
    # Where there is no RDMA device the software device has the pairs.
    assert [row["transport"] for row in answer["transports"]] in (["tcp"], ["tcp", "soft"]), answer
    tcp = answer["transports"][0]
    assert 0 < tcp["min_ns"] <= tcp["mean_ns"] <= tcp["max_ns"] and tcp["sent_bytes"] > 0, tcp
    means = [row["mean_ns"] for row in answer["worst"]]
    expect(means, sorted(means, reverse=True))
    assert {row["node"] for row in answer["worst"]} == {"n1", "n2", "n3"}, answer


def every_path_is_drawn_and_told_from_both_ends():
    def told():
        answer = json.loads(ask("paths", "--matrix", "--json").stdout)
        return answer if {tuple(row[2:3]) for row in answer["cells"]} == {(0,)} and len(
            answer["cells"]) == 6 else None

    clusters.wait_until("all read each other well", told, 60, pause=1.5)
    picture = ring.directory / "paths.svg"
    done = ask("paths", "--matrix", "--svg", str(picture))
    expect((done.returncode, done.stdout),
           (0, f'"{picture}": 3 nodes, 6 paths: 6 good\n'))
    drawn = xml.etree.ElementTree.parse(picture).getroot()
    expect(len(drawn.findall("{http://www.w3.org/2000/svg}g")), 9)
    for node in ([], ["--node", "n3"]):
        done = ask("path", "n1", "n2", *node)
        expect((done.returncode, done.stderr), (0, ""))
        expect_fit(done.stdout)
        for words in ("n1 reads n2, ", "n2 reads n1, ", "\nVerdicts, as this agent holds them\n"):
            assert words in done.stdout, done.stdout
        answer = json.loads(ask("path", "n2", "n3", "--json", *node).stdout)
        for end in answer["ends"]:
            assert end["answered"] and end["error"] is None, answer
            path, = end["paths"]
            expect((path["seen"], [size["bytes"] for size in path["sizes"]][:2]),
                   ("good", [8, 1024]))
        expect([row["verdict"] for row in answer["verdicts"]], ["healthy"] * 2)
    assert ask("path", "n2", "n2").stdout.startswith("n2 reads n2, ")


def a_departure_counts_as_no_refutation():
    """Found: 65535 refuted suspicions of each node that had left in order."""
    expect(third.leave(), 0)
    clusters.wait_until("n3 to have left", lambda: first.peers().get("n3") == "left")
    said = ask("why", "n3").stdout
    assert "  incarnation  start " in said and "suspicions refuted" not in said, said
    row, = (peer for peer in first.ask("PEERS")["peers"] if peer["node"] == "n3")
    expect(row["refutations"], None)
    third.start()
    ring.wait_ring()
    done = ask("why", "n3", "--at", "2199-01-01T00:00Z")
    expect((done.returncode, done.stdout), (1, ""))
    assert "in the future" in done.stderr, done.stderr


def agent_without_a_device_reads_nobody_and_says_so():
    expect(third.leave(), 0)
    third.configure(node__device="none")
    third.start()
    ring.wait_ring()
    done = ask("paths", "--node", "n3")
    expect((done.returncode, done.stdout.splitlines()),
           (0, ["0 paths that n3 reads",
                "This agent measures with no RDMA device: `tocsin devices --explain` says why."]))
    expect(json.loads(ask("paths", "--node", "n3", "--json").stdout)["paths"], [])
    done = ask("path", "n3", "n3")
    expect((done.returncode, done.stdout, done.stderr),
           (1, "", "tocsin path: no path from n3 to itself is known: n3 has no RDMA device\n"))
    done = ask("paths", "--matrix")
    expect((done.returncode, done.stderr), (0, ""))


def everything_that_reads_goes_over_tcp():
    for command in READING:
        done = patiently(*command, "--host", first.address, "--json")
        expect((command, done.stderr), (command, ""))
        json.loads(done.stdout)


def another_node_answers_as_itself():
    told = json.loads(ask("health", "--json", "--node", "n3").stdout)
    expect(told["node"], "n3")
    told = json.loads(ask("version", "--json", "--node", "n2").stdout)
    expect(told["agent"]["node"], "n2")


def unknown_nodes_are_a_no_with_the_nearest_name():
    for arguments in (["why", "n9"], ["ping", "n9"], ["peers", "--node", "n9"], ["forget", "n9"],
                      ["path", "n1", "n9"], ["path", "n9", "n1"], ["paths", "--node", "n9"]):
        done = ask(*arguments)
        expect((arguments, done.returncode, done.stdout), (arguments, 1, ""))
        assert 'no node "n9" is known, did you mean "n' in done.stderr, done.stderr


def orders_are_carried_out_and_said():
    done = ask("maint", "n2", "on")
    expect((done.returncode, done.stdout), (0, "n2 is in maintenance: no alarms\n"))
    clusters.wait_until("maintenance everywhere", lambda: all(
        agent.ask("HEALTH")["maint"] == 1 for agent in ring.agents))
    assert "maintenance      1  n2" in ask("status").stdout
    expect(ask("health", "n2").stdout.split("\n")[0], "ok: n2 is alive, in maintenance")
    assert "in maintenance, no alarm\n" in ask("health").stdout, ask("health").stdout
    told = ask("health", "n2", "--line", "--exit=drain")
    expect((told.returncode, told.stdout), (2, "ok: n2 in maintenance, healthy\n"))
    told = json.loads(ask("health", "n2", "--json").stdout)["findings"][0]
    expect((told["maint"], told["grade"], told["advice"]), (True, "ok", "show"))
    assert "in maintenance it raises no alarm" in ask("why", "n2").stdout, ask("why", "n2").stdout
    expect(json.loads(ask("maint", "n2", "off", "--json").stdout), {"ok": True})
    expect(ask("log", "debug").returncode, 0)
    expect(ask("log", "info").returncode, 0)
    expect(ask("report", "n2", "is", "slow").returncode, 0)
    assert "is slow" in ask("why", "n2").stdout
    assert any(event["text"] == "is slow" for event in first.events("REPORTED", "n2"))
    clusters.wait_until("it to be in the journal", lambda: '"text":"is slow"' in (
        first.directory / "state" / "journal").read_text())
    done = ask("forget", "n2")
    expect(done.returncode, 1)
    assert ": only a node that is dead" in done.stderr, done.stderr


def a_death_is_told_by_every_command():
    third.kill()
    clusters.wait_until("dead", lambda: ring.agree(["n3"], "dead"))
    done = ask("status")
    assert "dead             1  n3\n" in done.stdout, done.stdout
    assert "critical: 2 of 5 agents answer" in done.stdout, done.stdout
    expect_fit(done.stdout)
    for arguments, status in ((["health"], 2), (["health", "--exit", "npd"], 1),
                              (["health", "n3"], 2), (["health", "n2"], 0), (["ping", "n3"], 1),
                              (["ping", "n2"], 0), (["peers", "dead"], 0), (["why", "n3"], 0)):
        expect((arguments, ask(*arguments).returncode), (arguments, status))
    assert "n3 is dead: its host answers, its agent's process is gone." in ask("why", "n3").stdout
    assert " DEAD " in ask("events").stdout
    findings = json.loads(ask("health", "--all", "--json").stdout)["findings"]
    grades = [row["grade"] for row in findings]
    expect(grades[:3], ["critical", "ok", "ok"])  # the worst first, before those who never came


def the_dead_is_forgotten_by_order_and_returns():
    expect(ask("forget", "n3").returncode, 0)
    told = ask("why", "n3")
    expect((told.returncode, told.stdout.split("\n")[0]),
           (0, "n3 is missing: expected, but not in the peer table."))
    assert " FORGOTTEN " in told.stdout, told.stdout
    assert "missing          3  n[3-5]: expected, not seen" in ask("status").stdout
    third.start()
    ring.wait_ring()


def events_are_followed_over_a_real_restart():
    follower = subprocess.Popen(
        [tocsin.path, "events", "-f", "--since", "0", "--json", "--socket",
         str(third.socket)], text=True, env=tocsin.environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)

    def numbers():
        while line := follower.stdout.readline():
            yield json.loads(line)["sequence"]

    try:
        seen = numbers()
        expect(next(seen), 1)
        third.kill()
        clusters.wait_until("dead", lambda: ring.agree(["n3"], "dead"))
        third.start()
        expect(next(number for number in seen if number == 1), 1)  # those of the new run
    finally:
        follower.terminate()
        follower.communicate()


TESTS = [
    a_ring_forms_and_status_says_who_is_missing,
    one_that_never_came_has_a_row_and_nobody_drains_it,
    every_table_fits_and_every_document_parses,
    connections_of_all_are_summed_up_by_transport,
    every_path_is_drawn_and_told_from_both_ends,
    everything_that_reads_goes_over_tcp,
    another_node_answers_as_itself,
    unknown_nodes_are_a_no_with_the_nearest_name,
    orders_are_carried_out_and_said,
    a_death_is_told_by_every_command,
    the_dead_is_forgotten_by_order_and_returns,
    events_are_followed_over_a_real_restart,
    a_departure_counts_as_no_refutation, agent_without_a_device_reads_nobody_and_says_so,
]

if __name__ == "__main__":
    with ring:
        tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
