#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands of tocsin that ask an agent, against a stand-in for it, also a hostile one.

    tocsin_test.py TOCSIN
"""

import json
import os
import pty
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import patience
import tap
from stand_in import (GREETING, HOSTILE, Last, StandIn, Tocsin, as_json, event, expect, expect_fit,
                      expect_harmless, finding, hang, health, link, peer, ring)

tocsin = Tocsin(sys.argv[1])

AUTHOR = os.environ.get("SUDO_USER") if os.getuid() == 0 else None
AUTHOR = AUTHOR or pwd.getpwuid(os.getuid()).pw_name
# What is typed, and the line that the agent is to see.
LINES = [
    (["peers"], "PEERS"), (["peers", "dead"], "PEERS dead"), (["peers", "--keys"], "PEERS"),
    (["peers", "--versions"], "PEERS"),
    (["links"], "LINKS"),
    (["health"], "HEALTH"), (["health", "n2"], "HEALTH n2"), (["events"], "EVENTS"),
    (["events", "--since", "7"], "EVENTS 7"), (["events", "--since=10m"], "EVENTS 10m"),
    (["links", "--rdma"], "PAIRS"), (["links", "--all"], "CONNS"),
    (["paths"], "PATHS --worst"), (["paths", "--all"], "PATHS * --worst"),
    (["paths", "--json"], "PATHS"), (["path", "n1", "n2"], "PATH n1 n2"),
    (["paths", "--node", "n3"], "NODE n3 PATHS --worst"),
    (["comms"], "COMMS"), (["why", "n2"], "WHY n2"), (["why", "--", "-n2"], "WHY -n2"),
    (["ping", "n2"], "PING n2"), (["report", "n2", "it", "is slow"], "REPORT n2 it is slow"),
    (["maint", "n2", "off"], "MAINT n2 off"), (["maint"], "MAINTENANCE"),
    (["maint", "n2", "on"], f"MAINT n2 on 0 {AUTHOR}"),
    (["maint", "n2", "on", "--for", "2h", "--reason=RMA 123"],
     f"MAINT n2 on 7200 {AUTHOR} RMA 123"),
    (["forget", "n2"], "FORGET n2"),
    (["level", "kernels"], "LEVEL kernels 600"),
    (["level", "default", "--for", "2m", "--job=slurm:1"], "LEVEL default 120 slurm:1"),
    (["log", "debug"], "LOG debug"), (["peers", "--node", "n3"], "NODE n3 PEERS"),
    (["why", "n2", "--node=n3"], "NODE n3 WHY n2"), (["status", "--nccl"], "STATUS"),
    (["status", "--nccl", "--verbose"], "VERBOSE STATUS"), (["version"], "HEALTH"),
]
COMMANDS = [["status"], ["health"], ["peers"], ["links"], ["events"], ["why", "n2"], ["ping", "n2"],
            ["comms"], ["report", "n2", "slow"], ["maint", "n2", "on"], ["forget", "n2"],
            ["level", "launches"], ["log", "info"], ["version"], ["top", "--count", "1"],
            ["status", "--nccl"]]

def each_command_puts_its_question():
    for arguments, line in LINES:
        with StandIn(ring()) as agent:
            tocsin.ask(agent, *arguments)
            assert line in [seen.strip() for seen in agent.lines], (arguments, agent.lines)

def a_timeout_is_passed_on_in_whole_seconds():
    for given, passed in (("1ms", "TIMEOUT 1"), ("1500ms", "TIMEOUT 2"), ("5s", "TIMEOUT 5")):
        with StandIn(ring()) as agent:
            expect(tocsin.ask(agent, "peers", "--timeout", given).returncode, 0)
            expect(agent.lines[1], passed)

def comms_refuses_a_timeout_that_is_no_whole_second():
    with StandIn(ring()) as agent:
        done = tocsin.ask(agent, "comms", "--timeout", "500ms")
        expect(done.returncode, 2)
        assert "whole seconds" in done.stderr, done.stderr

def every_command_speaks_json_also_when_it_fails():
    bad = [ring(), lambda *_: as_json({"error": "no, for a reason"}), lambda *_: None]
    for answer in bad:
        for command in COMMANDS:
            if command[-1] == "--nccl" and answer is bad[0]:
                continue  # its answer has another end
            with StandIn(answer) as agent:
                done = tocsin.ask(agent, *command, "--json")
            told = json.loads(done.stdout)
            expect((command, "error" in told), (command, answer is not bad[0]))
            expect(done.stdout.count("\n"), 1)

def a_no_is_1_and_says_why():
    for command in COMMANDS:
        with StandIn(lambda line, in_json: as_json({"error": "nobody knows \"n2\""}) if in_json
                     else b"ERROR: nobody knows \"n2\"\n") as agent:
            done = tocsin.ask(agent, *command)
        wanted = {"health": 3, "top": 1}.get(command[0], 1)
        expect((command, done.returncode), (command, wanted))
        assert 'nobody knows "n2"' in done.stderr, done.stderr

def an_agent_that_turns_clients_away_is_quoted():
    with StandIn(lambda *_: b"ERROR: Too many clients: 64 are connected\n", greet=False) as agent:
        done = tocsin.ask(agent, "peers")
    expect((done.returncode, done.stdout, done.stderr),
           (3, "", "tocsin peers: Too many clients: 64 are connected\n"))

def an_agent_that_closes_early_is_no_answer():
    half = {True: b'{"peers":[{"node"', False: b"half a li"}
    rows = {True: b'{"peers":[', False: b"one\ntwo\n"}
    early = [
        (False, lambda *_: None), (True, lambda *_: None), (False, lambda *_: Last(b"SERVER PRO")),
        (False, lambda *_: Last(GREETING)), (True, lambda _, in_json: Last(half[in_json])),
        (True, lambda _, in_json: Last(rows[in_json])),
    ]
    for greet, answer in early:
        for options in ([], ["--json"]):
            with StandIn(answer, greet) as agent:
                done = tocsin.ask(agent, "peers", *options)
            expect(done.returncode, 3)
            assert "ended the connection" in done.stderr, done.stderr

def an_agent_that_never_answers_is_given_up():
    for command in (["peers"], ["health", "--json"]):
        with StandIn(hang) as agent:
            done = tocsin.ask(agent, *command, "--timeout", "1ms")
        expect(done.returncode, 3)
        assert "did not answer within" in done.stderr and "--timeout" in done.stderr, done.stderr
    with StandIn(hang) as agent:
        expect(tocsin.ask(agent, "health", "--exit=npd", "--timeout=1ms").returncode, 2)

def ping_over_rdma_is_waited_for_as_long_as_its_reads_may_take():
    with StandIn(hang) as agent:
        done = tocsin.ask(agent, "ping", "--rdma", "--count", "1", "n1", "--timeout", "1ms")
    expect(done.returncode, 3)
    assert re.search(r"did not answer within 4(\.0\d*)? s", done.stderr), done.stderr

def who_waits_for_a_frozen_agent_is_told_for_what_and_until_when():
    for command in (["status"], ["peers"], ["status", "--json"]):
        with StandIn(hang, greet=False) as agent:
            done = tocsin.ask(agent, *command, "--timeout", "100ms")
        said = done.stderr.splitlines()
        expect((command, done.returncode, len(said)), (command, 3, 2))
        assert re.match(rf"tocsin {command[0]}: the agent on \S*{agent.path}\S* accepted the "
                        r"connection but has not answered; waiting until "
                        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(.* more\)$", said[0]), said
        assert agent.path in said[1] and (
            " accepted the connection, but did not answer within 2.1" in said[1]), said

def options_that_commands_share_may_stand_before_them():
    with StandIn(ring()) as agent:
        after = tocsin("status", "--json", *agent.where)
        for before in (["--json", *agent.where, "status"], [*agent.where, "status", "--json"],
                       ["--json", f"--socket={agent.path}", "status"],
                       ["--json", *agent.where, "status", "--json"]):
            done = tocsin(*before)
            expect((before, done.returncode, done.stdout), (before, 0, after.stdout))
        expect(tocsin(*agent.where, "why", "n2").returncode, 0)
    for wrong, why in ((["--json"], "COMMAND is missing"),
                       (["--socket", "/x"], "COMMAND is missing"),
                       (["--json", "stauts"], "unknown command"),
                       (["--jsn", "status"], "unknown option"),
                       (["--socket=/x", "status", "--socket=/y"], "--socket is given twice"),
                       (["--json", "keygen"], "unknown option")):
        done = tocsin(*wrong)
        expect((wrong, done.returncode, done.stdout), (wrong, 2, ""))
        assert why in done.stderr, done.stderr

def columns_are_cut_for_a_terminal_only():
    words = "words that are longer than the column which they would stand in, by far"
    name = "a-node-whose-name-is-longer-than-its-column"
    told = ring(health(findings=[finding(name, evidence=words + " ")], dead=1),
                events=[event(1, "REPORTED", detail="report: " + words, text=words)])
    with StandIn(told) as agent:
        # Sentences are for health and why: status is one row for each.
        status = tocsin.ask(agent, "status").stdout
        assert name in status and words not in status and words[:30] in status, status
        shown = in_a_terminal("status", *agent.where, NO_COLOR="1")
        assert all(len(line) <= 80 for line in shown.splitlines()) and "~" in shown, shown
        assert f" report: {words}\n" in tocsin.ask(agent, "events").stdout
        shown = in_a_terminal("events", *agent.where, NO_COLOR="1")
        assert f"report: {words}" not in shown and words in " ".join(shown.split()), shown
    name += "-on-a-terminal-of-80-columns"
    with StandIn(ring(peers=[peer(name)])) as agent:
        assert name in tocsin.ask(agent, "peers").stdout
        shown = in_a_terminal("peers", *agent.where, NO_COLOR="1")
        assert name not in shown and re.search(name[:21] + "[a-z0-9-]*~", shown), shown

def agents_of_other_versions_are_answered_as_far_as_they_go():
    # One of before has rows of which some facts are missing, and does not know each command.
    with StandIn(ring()) as agent:
        done = tocsin.ask(agent, "peers")
        expect((done.returncode, done.stderr), (0, ""))
        assert re.search(r"^n1 +alive +- +- +\?$", done.stdout, re.MULTILINE), done.stdout
    with StandIn(lambda *_: b"ERROR: Unknown command CHECKS\n") as agent:
        for options in ([], ["--json"]):
            done = tocsin.ask(agent, "checks", *options)
            expect((done.returncode, done.stderr),
                   (1, "tocsin checks: Unknown command CHECKS\n"))

def what_is_no_agent_is_named_as_such():
    foreign = [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\xff\xfe\n", b"SERVER PROTOCOL x\n",
               b"\x1b[2JSERVER\n", b"SERVER PROTOCOL 2\nNO\n"]
    for said in foreign:
        with StandIn(lambda *_, said=said: said, greet=False) as agent:
            done = tocsin.ask(agent, "peers")
        expect((said, done.returncode, done.stdout), (said, 3, ""))
        assert "is not tocsind: it answered" in done.stderr, done.stderr
        expect_harmless(done.stderr)

def a_document_that_is_none_is_refused():
    for said in (b"{\"peers\":[}\n", b"[]\n", b"OK\n", b"\n", b"{\"a\":\"\xff\"}\n", b"nonsense\n",
                 b"[" * 100000 + b"\n"):
        for command in (["peers", "--json"], ["status"], ["top", "--count=1"], ["version"]):
            with StandIn(lambda *_, said=said: said) as agent:
                done = tocsin.ask(agent, *command)
            expect((said[:9], command, done.returncode), (said[:9], command, 3))
            assert "is not tocsind" in done.stderr, done.stderr

def documents_with_nothing_in_them_harm_nobody():
    for said in (b"{}\n", b'{"findings":7,"alive":"x","missing_nodes":[]}\n',
                 b'{"findings":[1,null,{}],"dead":-5,"left":1,"peers":[null,{"node":7}],'
                 b'"links":[0,{}],"events":[0,{}]}\n'):
        for command in (["status"], ["status", "--json"], ["events"], ["top", "--count=1"],
                        ["version"]):
            with StandIn(lambda *_, said=said: said) as agent:
                expect((command, tocsin.ask(agent, *command).returncode), (command, 0))

def an_answer_without_end_is_cut():
    with StandIn(lambda *_: b"x" * (65 << 20)) as agent:
        done = tocsin.ask(agent, "peers")
    expect((done.returncode, done.stdout), (3, ""))
    assert "exceeds 64 MiB: is it tocsind?" in done.stderr, done.stderr

def no_order_to_the_terminal_comes_through():
    told = health(grade=HOSTILE, node=HOSTILE, cluster=HOSTILE, dead=1, missing=1,
                  missing_nodes=HOSTILE, findings=[finding(HOSTILE, evidence=HOSTILE)], left=1)
    facts = ring(told, [peer(HOSTILE), peer(HOSTILE, "left")],
                 [event(1, HOSTILE, HOSTILE, detail=HOSTILE, time=HOSTILE)], [link(HOSTILE)])
    for command in COMMANDS:
        for options in ([], ["--json"]):
            with StandIn(facts) as agent:
                if command[-1] == "--nccl":
                    agent.answer = lambda *_: as_json({"error": HOSTILE})
                done = tocsin.ask(agent, *command, *options)
            expect_harmless(done.stdout + done.stderr)
    for said in (f"{HOSTILE}\nOK\n", f"ERROR: {HOSTILE}\n"):
        with StandIn(lambda *_, said=said: said.encode()) as agent:
            done = tocsin.ask(agent, "peers")
        expect_harmless(done.stdout + done.stderr)
        assert "\\x1b[31m\\x07" in done.stdout + done.stderr, done
    told = as_json({"communicators": [{"hash": HOSTILE, "secondary_hash": "0", "size": 2,
                                       "job": HOSTILE, "finding": {
                                           "state": HOSTILE, "sentence": HOSTILE}}]})
    with StandIn(lambda *_: Last(told)) as agent:
        done = tocsin.ask(agent, "comms", "--watch")
    expect_harmless(done.stdout + done.stderr)
    expect(done.stdout.count("\\x1b[31m\\x07"), 4)

def status_of_a_thousand_fits_a_screen():
    dead = [f"n{number:04}" for number in range(1, 600, 2)]
    told = health(
        grade="critical", alive=1000, dead=len(dead), suspect=1, missing=3000, expected=4000,
        missing_nodes="m[0001-3000]", brake=True, joined=False,
        findings=[finding(name) for name in dead] + [finding("n0700", "suspect")])
    with StandIn(ring(told, events=[event(n) for n in range(50)])) as agent:
        done = tocsin.ask(agent, "status")
    expect((done.returncode, done.stderr), (0, ""))
    lines = done.stdout.splitlines()
    assert len(lines) <= 30, done.stdout
    expect_fit(done.stdout)
    assert lines[0].startswith("critical: 999 of 4300 agents answer; cluster c, as n1"), lines[0]
    names = "dead           300  n[0001,0003,0005,"
    assert lines[1].startswith(names) and lines[1].endswith(" more"), lines[1]
    # What is shown and what is counted are all of them.
    shown, more = lines[1].split("n[")[1].split("] and ")
    expect(len(shown.split(",")) + int(more.split()[0]), 300)
    for words in ("suspect          1  n0700", "missing       3000  m[0001-3000]", "The brake",
                  "not a member", "and 294 more: tocsin health", "0x00000000000000ff",
                  "next n2 (170 us); prev n3"):
        assert words in done.stdout, (words, done.stdout)

def status_shows_versions_that_differ():
    told = [{"version": "0.9.0", "count": 5}, {"version": HOSTILE, "count": 2},
            {"version": None, "count": 1}]
    with StandIn(ring(health(versions=told))) as agent:
        done = tocsin.ask(agent, "status")
        assert "mixed  versions 0.9.0 on 5, " in done.stdout, done.stdout
        assert ", others on 1: tocsin peers" in " ".join(done.stdout.split()), done.stdout
        expect_harmless(done.stdout)
    with StandIn(ring(health(versions=told[:1]))) as agent:
        assert "versions" not in tocsin.ask(agent, "status").stdout
    with StandIn(ring(peers=[{**peer("n1"), "version": "0.9.0"}, peer("n2")])) as agent:
        shown = tocsin.ask(agent, "peers", "--versions").stdout.splitlines()
        expect([line.split() for line in shown[2:]],
               [["NODE", "STATE", "FOR", "VERSION"], ["n1", "alive", "-", "0.9.0"],
                ["n2", "alive", "-", "-"]])
    expect(tocsin("peers", "--versions", "--keys").returncode, 2)

def status_shows_the_events_that_matter():
    events = [event(1, "DEAD")] + [event(n, "LINK_UP") for n in range(2, 90)]
    with StandIn(ring(events=events)) as agent:
        shown = tocsin.ask(agent, "status").stdout
    assert " DEAD " in shown and "LINK_UP" not in shown, shown

def names_that_are_no_hostlist_are_shown_as_they_are():
    told = health(dead=2, findings=[finding("a b"), finding("ä")])
    with StandIn(ring(told)) as agent:
        assert "a b,ä" in tocsin.ask(agent, "status").stdout

def health_exits_as_the_grade_says():
    for grade, nagios, npd in (("ok", 0, 0), ("warning", 1, 0), ("critical", 2, 1),
                               ("unknown", 3, 2), ("mauve", 3, 2)):
        for style, wanted in (("nagios", nagios), ("npd", npd)):
            for options in ([], ["--json"]):
                with StandIn(ring(health(grade=grade))) as agent:
                    done = tocsin.ask(agent, "health", "--exit", style, *options)
                expect((grade, style, options, done.returncode), (grade, style, options, wanted))

def a_mistake_in_a_check_is_unknown_not_critical():
    for arguments in (["health", "--exit", "zabbix"], ["health", "--exot"], ["health", "a", "b"],
                      ["health", "--line", "--json"]):
        expect(tocsin(*arguments).returncode, 3)

def a_check_without_an_answer_says_so_where_checks_are_read():
    done = tocsin("health", "--line", "--socket", "/nonexistent/sock")
    expect((done.returncode, done.stdout.count("\n")), (3, 1))
    assert done.stdout.startswith("unknown: cannot reach the agent"), done.stdout
    assert len(done.stdout) <= 81, done.stdout

def a_check_says_what_is_wrong_with_the_agent_itself():
    wrong = ("at 10.0.0.3:28030, the address of n3, n4 answers: "
             "check listen and advertise of both nodes")
    row = finding("n1", "alive", grade="unknown", verdict="unknown", reason="NotMember",
                  evidence="")
    for told, said in (
            (health(grade="warning", mistakes=[wrong]), "warning: n1 misconfigured: at 10.0.0.3:"),
            (health(grade="warning", alone=True), "warning: n1 sees none of the nodes"),
            (health(grade="warning", address_problem="nobody reached it"),
             "warning: n1 others cannot connect to it: nobody reached it"),
            (health(grade="unknown", joined=False, findings=[row], join_problem="n2 is silent"),
             "unknown: n1 not a member of a ring yet: n2 is silent"),
            # What is worse comes first, and one node's line is of this node.
            (health(grade="critical", mistakes=[wrong],
                    findings=[finding("n2", reason="AgentGone")]),
             "critical: n2 agent-down AgentGone: its host"),
            (health(grade="warning", findings=[finding("n2", grade="warning", verdict="unknown",
                                                       reason="Suspected", evidence="")]),
             "warning: n2 unknown Suspected")):
        with StandIn(ring(told)) as agent:
            line = tocsin.ask(agent, "health", "--line").stdout
        assert line.startswith(said) and len(line) <= 81, (line, said)

def a_line_for_checks_is_escaped_once():
    for evidence, shown in (("\x1b[31m", "\\x1b[31m"), ("\\x1b[31m", "\\x1b[31m"),
                            ('port "a\\b"', 'port "a\\b"')):
        row = finding("n2", reason="AgentGone", evidence=evidence)
        with StandIn(ring(health(grade="critical", findings=[row]))) as agent:
            line = tocsin.ask(agent, "health", "--line").stdout
        expect(line, f"critical: n2 agent-down AgentGone: {shown}\n")
    with StandIn(lambda *_: as_json({"error": 'no node "nix" is known'})) as agent:
        line = tocsin.ask(agent, "health", "nix", "--line").stdout
    expect(line, 'unknown: no node "nix" is known\n')

def status_says_which_neighbour_is_lost_and_when_strangers_came():
    told = health(strangers={"count": 17, "last": "10.0.0.9:4711", "ago_ns": 53 * 10**9})
    links = [link("n2", state="down"), link("n3", "prev", "delayed"), link("n4", "prev-fallback")]
    with StandIn(ring(told, links=links)) as agent:
        said = tocsin.ask(agent, "status").stdout
    assert "1 up, 1 late, 1 lost; next n2 (lost); prev n3 (late)" in said, said
    assert ("17 connections without the right key, the last from 10.0.0.9:4711, 53 s ago\n"
            in said), said

def mistakes_are_named_with_what_is_allowed():
    for words, arguments in (
            ("NAME is missing: tocsin ping [OPTION]... NAME", ["ping"]),
            ("REASON is missing: tocsin report [OPTION]... NAME REASON...", ["report", "n1"]),
            ("REASON is missing", ["report", "n1", ""]),
            ('NAME: "" is not a valid name', ["why", ""]),
            ('NAME: "a b" is not a valid name', ["why", "a b"]),
            ('NAME: "a\\nFORGET" is not a valid name', ["why", "a\nFORGET"]),
            ('REASON: "a\\nb" has a control character', ["report", "n1", "a\nb"]),
            ("REASON: the text is longer than 160 bytes", ["report", "n1", "x" * 161]),
            ('on|off: "oof" is not allowed; did you mean "off"?', ["maint", "n1", "oof"]),
            ("on|off is missing: tocsin maint NAME on|off", ["maint", "n1"]),
            ("--for needs the word on", ["maint", "n1", "off", "--for", "2h"]),
            ("--reason needs the word on", ["maint", "--reason", "x"]),
            ('--for: "1500ms" is not a time from 1s to 366d',
             ["maint", "n1", "on", "--for=1500ms"]),
            ("--reason has a control character", ["maint", "n1", "on", "--reason=a\nFORGET n1"]),
            ("--reason is longer than 128 bytes", ["maint", "n1", "on", "--reason=" + "x" * 129]),
            ('LEVEL: "loud" is not allowed; known are: error, warn, info', ["log", "loud"]),
            ('LEVEL: "kernel" is not allowed; did you mean "kernels"?', ["level", "kernel"]),
            ('--for: "2d" is not a time from 1s to 1d', ["level", "kernels", "--for", "2d"]),
            ('--for: "1500ms" is not a time', ["level", "kernels", "--for", "1500ms"]),
            ('--job: "a b" is not a job', ["level", "kernels", "--job", "a b"]),
            ('STATE: "dea" is not allowed; did you mean "dead"?', ["peers", "dea"]),
            ('takes no further argument "n2"; see tocsin why --help', ["why", "n1", "n2"]),
            ('takes no argument "now"', ["links", "now"]),
            ('unknown option "--nod"; did you mean "--node"?', ["peers", "--nod", "n1"]),
            ('unknown option "--host"', ["maint", "n1", "on", "--host", "h"]),
            ("--socket and --host do not go together", ["peers", "--socket=/x", "--host=h"]),
            ("--socket and --port do not go together", ["peers", "--socket=/x", "--port=1"]),
            ('--socket: "" is not a valid socket path', ["peers", "--socket", ""]),
            ("is not a valid socket path: 1 to 107 bytes", ["peers", "--socket", "/" + "x" * 107]),
            ('--port: "70000"', ["peers", "--port", "70000"]),
            ('--timeout: "5x" ', ["peers", "--timeout", "5x"]),
            ('--timeout: "9999s" ', ["peers", "--timeout", "9999"]),
            ('--timeout: "2h" ', ["peers", "--timeout", "2h"]),
            ('--node: "a b" is not a valid name', ["peers", "--node", "a b"]),
            ('--since: "yesterday"', ["events", "--since", "yesterday"]),
            ('--count: "0"', ["top", "--count", "0"]),
            ("--verbose needs --nccl", ["status", "--verbose"])):
        done = tocsin(*arguments)
        expect((arguments, done.returncode, done.stdout), (arguments, 2, ""))
        assert words in done.stderr, (words, done.stderr)
        expect(done.stderr.count("\n"), 1)

def an_absent_agent_is_named_with_what_to_do():
    with StandIn(ring(), listening=False) as agent:
        missing = agent.path + "-not"
        for command in COMMANDS:
            done = tocsin(*command, "--socket", missing)
            expect((command, done.returncode), (command, 3))
            assert f'cannot reach the agent on "{missing}": No such file or directory; ' \
                   "is tocsind running?" in done.stderr, done.stderr
        done = tocsin("peers", *agent.where)
        expect(done.returncode, 3)
        assert "Connection refused; is tocsind running?" in done.stderr, done.stderr

def an_agent_that_is_just_starting_is_waited_for():
    with StandIn(ring(), listening=False) as agent:
        late = threading.Timer(0.2, agent.listen)
        late.start()
        done = tocsin.ask(agent, "peers")
        late.join()
    expect((done.returncode, done.stderr), (0, ""))

def the_way_to_the_agent_is_an_option_then_the_environment():
    with StandIn(ring()) as agent, StandIn(ring(), tcp=True) as remote:
        expect(tocsin("peers", TOCSIN_SOCKET=agent.path).returncode, 0)
        expect(tocsin("peers", "--socket", agent.path, TOCSIN_SOCKET="/nonexistent").returncode, 0)
        expect(tocsin("peers", *remote.where, TOCSIN_SOCKET="/nonexistent").returncode, 0)
        expect(remote.lines[1:2], ["SET FORMAT json"])
        done = tocsin("peers", TOCSIN_SOCKET="")
        expect(done.returncode, 2)
        words = 'tocsin peers: TOCSIN_SOCKET: "" is not a valid socket path'
        assert done.stderr.startswith(words), done.stderr

def users_find_their_own_agent_s_socket():
    user = 65534 if os.geteuid() == 0 else None
    copied = tempfile.mkdtemp(prefix="tocsin-user-")
    try:
        with StandIn(ring()) as agent:
            os.mkdir(os.path.join(agent.directory, "tocsin"))
            os.symlink("../tocsind.sock", os.path.join(agent.directory, "tocsin", "tocsind.sock"))
            # The build may be where that user cannot go.
            program = shutil.copy(tocsin.path, copied)
            for path in (copied, agent.directory, agent.path):
                os.chmod(path, 0o777)
            done = Tocsin(program)("peers", user=user, XDG_RUNTIME_DIR=agent.directory)
            expect((done.returncode, done.stderr), (0, ""))
    finally:
        shutil.rmtree(copied)

def version_is_told_with_and_without_an_agent():
    with StandIn(ring()) as agent:
        done = tocsin.ask(agent, "version")
        lines = done.stdout.splitlines()
        assert lines[0].startswith("tocsin 0.") and lines[0].endswith("client protocol 2"), lines
        assert lines[1].startswith("tocsind 9.9, client protocol 2; node n1 of cluster c"), lines
        told = json.loads(tocsin.ask(agent, "version", "--json").stdout)
        expect(told["agent"], {"version": "9.9", "protocol": 2, "node": "n1", "cluster": "c"})
    done = tocsin("version", "--socket", "/nonexistent")
    expect((done.returncode, done.stdout.count("\n")), (3, 1))
    told = json.loads(tocsin("version", "--json", "--socket", "/nonexistent").stdout)
    expect((told["agent"], told["client"]["protocol"]), (None, 2))

def nccl_s_report_ends_with_its_connection():
    for said, options, status in ((b"Job summary\n  fine\n", [], 0), (b"ERROR: no\n", [], 1),
                                  (b'{\n  "a": 1\n}\n', ["--json"], 0), (b"{ half", ["--json"], 3),
                                  (b'{"error": "no"}\n', ["--json"], 1), (b"", [], 3)):
        with StandIn(lambda *_, said=said: said) as agent:
            done = tocsin.ask(agent, "status", "--nccl", *options)
        expect((said, done.returncode), (said, status))
        if "--json" in options:
            json.loads(done.stdout)

def another_node_s_answer_that_breaks_off_says_so():
    for options, said in (([], b"one row\nERROR: n3 did not answer in time\n"),
                          (["--json"], b'{"peers":[{"no\n{"error":"n3 did not answer in time"}\n')):
        with StandIn(lambda *_, said=said: said) as agent:
            done = tocsin.ask(agent, "peers", "--node", "n3", *options)
        expect(done.returncode, 1)
        assert "n3 did not answer in time" in done.stderr, done.stderr

def events_keep_within_100_columns_in_a_pipe():
    words = ("path-degraded, was healthy; PulseSlow: 2 of 3 paths to it are slow: a median of 20 "
             "ms, it was 53 us")
    rows = [event(1, "VERDICT", detail=words, text=words), event(2), event(3, node="n" * 63),
            event(4, detail="gone, seen by " + "é" * 19), event(5, detail="x" * 120)]
    with StandIn(lambda line, _: as_json(
            health() if line.startswith("HEALTH")
            else {"skipped": 0, "events": rows, "last": 5})) as agent:
        lines = tocsin.ask(agent, "events").stdout.splitlines()
    expect(" ".join(line.strip() for line in lines[2:4]), words)
    assert all(len(line) <= 100 for line in lines[:5]), lines
    assert lines[1].endswith("VERDICT        n2"), lines
    assert lines[4].endswith("gone, seen by n1 and n3") and " DEAD " in lines[4], lines
    assert lines[5].endswith("n" * 63) and lines[6] == " " * 8 + "gone, seen by n1 and n3", lines
    assert " DEAD " in lines[7] and lines[7].endswith("é" * 19), lines  # 100 characters
    expect(lines[9:], [" " * 8 + "x" * 120])  # one word is not broken

def events_are_followed_over_a_restart():
    # start -> the events of that run; each run ends with its first question beyond them
    runs = {1: [event(1), event(2)], 2: [event(1, "JOINED"), event(2, "REJOINED"), event(3)]}
    state = {"run": 1, "asked": []}

    def answer(line, _json):
        if line.startswith("HEALTH"):
            return as_json(health(start=state["run"]))
        since = line.split()[1:]
        state["asked"].append((state["run"], since))
        events = [row for row in runs[state["run"]] if not since or row["sequence"] > int(since[0])]
        if not events and state["run"] == 1:
            state["run"] = 2
            return None
        return as_json({"skipped": 0, "events": events, "last": 2})

    for options in ([], ["--json"]):
        state.update(run=1, asked=[])
        with StandIn(answer) as agent:
            follower = subprocess.Popen(
                [tocsin.path, "events", "--follow", *options, *agent.where], text=True,
                env=tocsin.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            lines = []
            while len(lines) < (5 if options else 6):
                lines.append(follower.stdout.readline())
            follower.terminate()
            complaints = follower.communicate()[1]
        expect(state["asked"][2][:2], (2, ["0"]))
        assert "waiting for the agent" in complaints and "agent is back" in complaints, complaints
        if options:
            expect([json.loads(line)["sequence"] for line in lines], [1, 2, 1, 2, 3])
        else:
            expect([line.split()[0] for line in lines], ["NUMBER", "1", "2", "1", "2", "3"])

def in_a_terminal(*arguments, **environment):
    """What a terminal of 100 columns is sent."""
    parent, child = pty.openpty()
    subprocess.run([tocsin.path, *arguments], stdin=child, stdout=child, stderr=child, check=False,
                   env=tocsin.environment(**environment), timeout=patience.HANG_SECONDS)
    os.close(child)
    said = b""
    try:
        while data := os.read(parent, 65536):
            said += data
    except OSError:
        pass  # the end of a terminal
    os.close(parent)
    return said.decode()

def colour_is_for_terminals_that_want_it():
    with StandIn(ring(health(grade="critical"))) as agent:
        for command in ("status", "health"):
            assert "\x1b[1;31mcritical:" in in_a_terminal(command, *agent.where)
            assert "\x1b" not in in_a_terminal(command, *agent.where, NO_COLOR="1")
            assert "\x1b" not in in_a_terminal(command, *agent.where, TERM="dumb")
            assert "\x1b" not in tocsin.ask(agent, command).stdout

def a_zero_is_no_reason_for_a_colour():
    with StandIn(ring(health())) as agent:
        shown = in_a_terminal("health", *agent.where)
        assert "\x1b[32mok:" in shown and " 0 suspect 0 unreachable, 0 dead, " in shown.replace(
            "suspect,", "suspect"), shown
    with StandIn(ring(health(grade="critical", suspect=10, dead=2))) as agent:
        shown = in_a_terminal("health", *agent.where)
        assert " 10 \x1b[33msuspect,\x1b[0m 0 unreachable, 2 \x1b[1;31mdead,\x1b[0m" in shown, shown

def times_are_passed_on_as_the_agent_reads_them():
    asked = []

    def noted(line, in_json):
        if line.startswith("EVENTS"):
            asked.append(line.strip())
        return ring()(line, in_json)

    def question_sent_for(*options):
        asked.clear()
        with StandIn(noted) as agent:
            done = tocsin.ask(agent, "events", *options, TZ="Europe/Berlin")
        expect((options, done.returncode, done.stderr), (options, 0, ""))
        return asked[-1]

    for options, question in (
            (["--since", "7"], "EVENTS 7"), (["--since", "90s"], "EVENTS 90s"),
            (["--since", "1795965000"], "EVENTS @1795965000.000000000"),
            (["--since", "@5.25", "--until", "2m"], "EVENTS @5.250000000 2m"),
            (["--until", "1970-01-01T00:00:09Z"], "EVENTS @0 @9.000000000"),
            # In Berlin it is an hour later than in Greenwich, in summer two.
            (["--since", "2026-11-29 15:10"], "EVENTS @1795961400.000000000"),
            (["--since", "2026-07-01"], "EVENTS @1782856800.000000000")):
        expect(question_sent_for(*options), question)
    before = time.time()
    clock = time.strftime("%H:%M:%S", time.localtime(before - 3600))
    with StandIn(noted) as agent:
        asked.clear()
        done = tocsin.ask(agent, "events", "--since", clock)
    since = float(asked[-1].split("@")[1])
    expect((done.returncode, since), (0, float(int(before - 3600))))
    for option in ("--since", "--until"):
        done = tocsin("events", option, "2026-03-29T02:30", TZ="Europe/Berlin")
        expect((done.returncode, done.stderr), (
            2, f'tocsin events: {option}: "2026-03-29T02:30" does not exist in local time: the '
               "clocks were set forward over it\n"))
    expect(tocsin("events", "--until", "5m", "--follow").returncode, 2)

def a_full_disk_is_no_success():
    for command in (["peers"], ["peers", "--json"], ["status"], ["maint", "n2", "on"]):
        with StandIn(ring()) as agent, open("/dev/full", "w", encoding="ascii") as full:
            done = tocsin.ask(agent, *command)
            expect(done.returncode, 0)
            done = tocsin(*command, *agent.where, stdout=full)
        expect((command, done.returncode), (command, 1))
        assert "cannot write the answer: No space left on device" in done.stderr, done.stderr

def a_closed_standard_output_is_no_success():
    for command in (["peers"], ["peers", "--json"], ["events"], ["events", "--json"],
                    ["top", "--count", "1"], ["top", "--count", "1", "--json"], ["status"]):
        for closed in (">&-", "<&- >&-"):
            with StandIn(ring()) as agent:
                done = subprocess.run(
                    ["sh", "-c", f'exec "$@" {closed}', "sh", tocsin.path, *command,
                     *agent.where], env=tocsin.environment(), text=True, check=False,
                    stderr=subprocess.PIPE, timeout=patience.HANG_SECONDS)
                expect((command, done.returncode), (command, 1))
                assert done.stderr.endswith("cannot write the answer: Bad file descriptor\n"), done
                for line in agent.lines:  # nothing was printed into the connection
                    assert line.split()[0].isupper(), agent.lines

def a_long_json_answer_on_a_full_disk_is_one_error():
    told = health(findings=[finding(f"n{n}", reason="AgentGone") for n in range(500)])
    for command, wanted in ((["status"], 1), (["peers"], 1), (["health"], 3)):
        with (StandIn(ring(told, [peer(f"n{n}") for n in range(500)])) as agent,
              open("/dev/full", "w", encoding="ascii") as full):
            done = tocsin(*command, "--json", *agent.where, stdout=full)
        expect((command, done.returncode), (command, wanted))
        assert done.stderr.startswith("tocsin: cannot write the answer"), done.stderr
        expect(done.stderr.count("\n"), 1)

def a_check_whose_answer_cannot_be_written_is_unknown():
    row = finding("n2", "alive", grade="ok", verdict="healthy", reason="None", evidence="",
                  advice="nothing")
    for arguments, wanted in (([], 3), (["--json"], 3), (["--line"], 3), (["--exit=npd"], 2),
                              (["n2", "--exit=drain", "--line"], 2),
                              (["n2", "--exit=drain"], 0)):  # which prints nothing
        with (StandIn(ring(health(findings=[row]))) as agent,
              open("/dev/full", "w", encoding="ascii") as full):
            expect((arguments, tocsin.ask(agent, "health", *arguments).returncode), (arguments, 0))
            done = tocsin("health", *arguments, *agent.where, stdout=full)
        expect((arguments, done.returncode), (arguments, wanted))
        said = "tocsin: cannot write the answer: No space left on device\n" if wanted != 0 else ""
        expect((arguments, done.stderr), (arguments, said))

def help_and_the_page_name_every_command_and_option():
    page = tocsin("--man").stdout.replace("\\-", "-")
    names = [line.split()[0] for line in
             tocsin("--help").stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
    for name in sorted({command[0] for command in COMMANDS}):
        assert name in names, (name, names)
    for name in names:
        shown = tocsin(name, "--help").stdout
        expect_fit(shown)
        assert "Exit status" in shown, shown
        assert f'.SS "tocsin {name} ' in page, name
        for word in shown.split():
            if word.startswith("--") and word[2:].isalpha():
                assert word in page, (name, word)
    for line in page.splitlines():
        assert not line.startswith("'"), line

def maintenance_is_listed_within_80_columns():
    rows = [{"node": "n2", "for_ns": 9 * 10**12, "left_ns": 3600 * 10**9, "user": "joe",
             "reason": "RMA 123: " + "the second disk fails " * 6, "uid": 0},
            {"node": "n" * 60, "for_ns": None, "left_ns": None, "user": None, "reason": None,
             "uid": 12}]
    with StandIn(lambda line, _: as_json({"maintenance": rows})) as agent:
        shown = tocsin.ask(agent, "maint").stdout
        expect(json.loads(tocsin.ask(agent, "maint", "--json").stdout), {"maintenance": rows})
    assert shown.startswith("2 in maintenance\n\nNODE "), shown
    assert "no end" in shown and "uid 12" in shown and "RMA 123" in shown, shown
    with StandIn(lambda line, _: as_json({"maintenance": []})) as agent:
        expect(tocsin.ask(agent, "maint").stdout, "no node is in maintenance\n")

def completion_knows_every_command_option_and_choice():
    script = tocsin("--completion", "bash").stdout
    ask = """COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_tocsin; printf '%s\\n' "${COMPREPLY[@]}" """
    for words, wanted in (
            (["tocsin", "ma"], {"maint"}), (["tocsin", "maint", "n1", "o"], {"on", "off"}),
            (["tocsin", "maint", "n1", "on", "--r"], {"--reason"}),
            (["tocsin", "maint", "n1", "on", "--for", "o"], set()),
            (["tocsin", "peers", "--j"], {"--json"}),
            (["tocsin", "log", ""], {"error", "warn", "info", "debug"})):
        done = subprocess.run(["bash", "-c", script + ask, "bash", *words], text=True, check=False,
                              capture_output=True)
        expect((words, set(done.stdout.split()), done.stderr), (words, wanted, ""))
    names = [line.split()[0] for line in
             tocsin("--help").stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
    page = tocsin("--completion", "zsh").stdout
    for name in names:
        assert f"\n\t{name})\n" in script and f"\n{name}) _arguments" in page, name
    expect(tocsin("--completion", "fish").returncode, 2)
    if shutil.which("zsh") is None:
        raise tap.Skip("zsh is not installed")
    done = subprocess.run(["zsh", "-n"], input=page, text=True, capture_output=True, check=False)
    expect((done.returncode, done.stderr), (0, ""))

def the_page_is_sound_for_groff():
    if shutil.which("groff") is None:
        raise tap.Skip("groff is not installed")
    page = tocsin("--man").stdout
    done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", "-"], input=page, text=True,
                          capture_output=True, check=False)
    expect((done.returncode, done.stderr), (0, ""))

TESTS = [
    each_command_puts_its_question,
    a_timeout_is_passed_on_in_whole_seconds,
    comms_refuses_a_timeout_that_is_no_whole_second,
    every_command_speaks_json_also_when_it_fails,
    a_no_is_1_and_says_why,
    an_agent_that_turns_clients_away_is_quoted,
    an_agent_that_closes_early_is_no_answer,
    an_agent_that_never_answers_is_given_up,
    ping_over_rdma_is_waited_for_as_long_as_its_reads_may_take,
    who_waits_for_a_frozen_agent_is_told_for_what_and_until_when,
    options_that_commands_share_may_stand_before_them,
    columns_are_cut_for_a_terminal_only,
    agents_of_other_versions_are_answered_as_far_as_they_go,
    what_is_no_agent_is_named_as_such,
    a_document_that_is_none_is_refused,
    documents_with_nothing_in_them_harm_nobody,
    an_answer_without_end_is_cut,
    no_order_to_the_terminal_comes_through,
    status_of_a_thousand_fits_a_screen,
    status_shows_versions_that_differ,
    status_shows_the_events_that_matter,
    names_that_are_no_hostlist_are_shown_as_they_are,
    health_exits_as_the_grade_says,
    a_mistake_in_a_check_is_unknown_not_critical,
    a_check_without_an_answer_says_so_where_checks_are_read,
    a_check_says_what_is_wrong_with_the_agent_itself,
    a_line_for_checks_is_escaped_once,
    status_says_which_neighbour_is_lost_and_when_strangers_came,
    mistakes_are_named_with_what_is_allowed,
    an_absent_agent_is_named_with_what_to_do,
    an_agent_that_is_just_starting_is_waited_for,
    the_way_to_the_agent_is_an_option_then_the_environment,
    users_find_their_own_agent_s_socket,
    version_is_told_with_and_without_an_agent,
    nccl_s_report_ends_with_its_connection,
    another_node_s_answer_that_breaks_off_says_so,
    events_keep_within_100_columns_in_a_pipe,
    events_are_followed_over_a_restart,
    colour_is_for_terminals_that_want_it,
    a_zero_is_no_reason_for_a_colour,
    times_are_passed_on_as_the_agent_reads_them,
    a_full_disk_is_no_success,
    a_closed_standard_output_is_no_success,
    a_long_json_answer_on_a_full_disk_is_one_error,
    a_check_whose_answer_cannot_be_written_is_unknown,
    help_and_the_page_name_every_command_and_option,
    the_page_is_sound_for_groff,
    maintenance_is_listed_within_80_columns,
    completion_knows_every_command_option_and_choice,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
