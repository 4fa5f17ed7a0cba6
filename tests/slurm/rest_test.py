#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin slurm` by slurmrestd: a stand-in for it, also a hostile one, and for the agent.

Usage: rest_test.py BUILD-DIRECTORY"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import patience
import rest as rests
import tap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "smoke"))
from stand_in import StandIn, as_json, health  # noqa: E402

PLACE = tempfile.TemporaryDirectory(prefix="tocsin-rest-")
RECORD = pathlib.Path(PLACE.name) / "drains.json"
PROGRAM = str(pathlib.Path(sys.argv[1]) / "agent" / "tocsin")
NAMES = ["n1", "n2", "n3"]
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJyb290In0.c2lnbmF0dXJl"


def row(name, bad=False, **changed):
    return {"node": name, "state": "dead" if bad else "alive",
            "grade": "critical" if bad else "ok", "verdict": "node-down" if bad else "healthy",
            "reason": "NodeSilent" if bad else "None",
            "evidence": "2 of 2 observers cannot reach it" if bad else "",
            "advice": "drain" if bad else "nothing", "maint": False, "for_ns": 3600 * 10**9,
            **changed}


def run(rest, findings, *arguments, mode="sync", url=None, **environment):
    """One look, and what it said. Each node says of itself what all say of it."""
    def answer(line, _):
        node = line.split()[1] if line.startswith("NODE ") else NAMES[0]
        return as_json(health(node=node, findings=findings))

    with StandIn(answer) as agent:
        return subprocess.run(
            [PROGRAM, "slurm", mode, "--once", "--share=100", f"--record={RECORD}",
             "--rest", url or rest.url, "--socket", agent.path, *arguments], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience.HANG_SECONDS,
            check=False, env={"PATH": os.environ["PATH"], **environment})


def states(rest):
    return {name: (row["state"], row["reason"]) for name, row in rest.nodes.items()}


def a_bad_node_is_drained_with_its_reason_and_comes_back():
    with rests.Rest(NAMES) as rest:
        done = run(rest, [row("n1"), row("n2", True), row("n3")])
        assert done.returncode == 0, done
        assert "n2: drained: tocsin: NodeSilent: 2 of 2 observers" in done.stdout, done
        assert states(rest)["n2"] == (
            ["IDLE", "DRAIN"], "tocsin: NodeSilent: 2 of 2 observers cannot reach it"), states(rest)
        # All of them, then this one again, then the change, and who Slurm says has made it.
        assert [(verb, path) for verb, path, _ in rest.asked] == [
            ("GET", f"/slurm/{rests.API}/nodes/"), ("GET", f"/slurm/{rests.API}/node/n2"),
            ("POST", f"/slurm/{rests.API}/node/n2"), ("GET", f"/slurm/{rests.API}/node/n2")
        ], rest.asked
        done = run(rest, [row(name) for name in NAMES])
        assert "n2: undrained" in done.stdout, done
        assert json.loads(rest.asked[-1][2]) == {"state": ["UNDRAIN"]}, rest.asked
        assert states(rest) == {name: (["IDLE"], "") for name in NAMES}, states(rest)


def a_drain_whose_time_is_not_told_is_nobodys():
    with rests.Rest(NAMES) as rest:
        def change(name, wanted):
            rest.change(name, wanted)
            rest.nodes[name]["reason_changed_at"] = {"set": False, "number": 0}

        rest.update = change
        done = run(rest, [row("n2", True)])
        assert "stay until a person ends them: Slurm does not report" in done.stdout, done
        done = run(rest, [row(name) for name in NAMES])
        assert "DRAIN" in rest.nodes["n2"]["state"] and "see tocsin drains" in done.stdout, done


def a_drain_is_ours_also_if_nobody_says_that_it_was_done():
    """Slurm falls silent right after it."""
    with rests.Rest(NAMES) as rest:
        def change(name, wanted):
            rest.change(name, wanted)
            rest.hostile = said(500, "no")

        rest.update = change
        run(rest, [row("n2", True)])
        assert "DRAIN" in rest.nodes["n2"]["state"]
        rest.hostile, rest.update = None, rest.change
        run(rest, [row("n2", True)])
        done = run(rest, [row(name) for name in NAMES])
        assert "n2: undrained" in done.stdout, done


def a_drain_of_somebody_else_stays():
    with rests.Rest(NAMES) as rest:
        rest.nodes["n1"] = rests.node("n1", "DRAIN", reason="bad DIMM")
        rest.nodes["n2"] = rests.node("n2", "DRAIN")
        rest.nodes["n3"] = rests.node("n3", "DRAIN", reason="was tocsin: NodeSilent: x")
        before = states(rest)
        run(rest, [row("n1"), row("n2", True), row("n3")])
        assert states(rest) == before and not any(each[0] == "POST" for each in rest.asked)


def a_state_that_is_not_understood_changes_nothing():
    for state in ([], ["STRUCK_BY_LIGHTNING"], "IDLE+MELTED", {}, [["IDLE"]], None, 7, ["IDLE", 7],
                  ["DOWN"], ["IDLE", "NOT_RESPONDING"]):
        with rests.Rest(["n1", "n2"]) as rest:
            rest.nodes["n1"]["state"] = state
            done = run(rest, [row("n1", True), row("n2")])
            assert not any(each[0] == "POST" for each in rest.asked), (state, done, rest.asked)
    for reason in ("note of a person", 7, ["tocsin: x"], {"tocsin: ": 1}):
        with rests.Rest(["n1"]) as rest:
            rest.nodes["n1"]["reason"] = reason
            run(rest, [row("n1", True)])
            rest.nodes["n1"]["state"] = ["IDLE", "DRAIN"]
            run(rest, [row("n1")])
            assert not any(each[0] == "POST" for each in rest.asked), (reason, rest.asked)


def a_name_that_would_be_an_address_is_left_out():
    with rests.Rest() as rest:
        for name in ("../../openapi", "n1?x=1", "n 1", "", "n\r\nX: y", "a" * 300, 7, None):
            rest.nodes[str(name)] = {**rests.node("x"), "name": name}
        rest.nodes["n1"] = rests.node("n1")
        findings = [row(str(name), True) for name in rest.nodes if name]
        run(rest, findings)
        assert [path for _, path, _ in rest.asked[1:]] == [f"/slurm/{rests.API}/node/n1"] * 3, \
            rest.asked


def a_unix_socket_does_as_well():
    with tempfile.TemporaryDirectory(prefix="tocsin-rest-") as place:
        with rests.Rest(NAMES, path=pathlib.Path(place) / "rest.sock") as rest:
            assert "n1: drained" in run(rest, [row("n1", True)]).stdout
            assert "X-SLURM-USER-TOKEN" not in rest.headers[0], rest.headers[0]


def a_node_can_do_so_for_itself():
    with rests.Rest(NAMES) as rest:
        done = run(rest, [row("n3", True)], mode="check", SLURMD_NODENAME="n3")
        assert done.returncode == 0 and "n3: drained" in done.stdout, done
        assert {path for _, path, _ in rest.asked} == {f"/slurm/{rests.API}/node/n3"}, rest.asked
        done = run(rest, [row("../n3", True)], mode="check", SLURMD_NODENAME="../n3")
        assert done.returncode == 1 and "not valid in Slurm" in done.stdout, done


def a_node_for_itself_asks_slurm_only_where_a_change_is_possible():
    """slurmd waits for its health program before it registers, and Slurm may not answer then."""
    RECORD.unlink(missing_ok=True)
    with rests.Rest(NAMES) as rest:
        for finding, words in ((row("n3"), ""),
                               (row("n3", True, advice="warn"), ""),
                               (row("n3", True, advice="restart"), ""),
                               (row("n3", True, grade="unknown", advice="show"), "do not know"),
                               (row("n2"), "do not know")):
            done = run(rest, [finding], mode="check", SLURMD_NODENAME="n3")
            assert done.returncode == 0 and words in done.stdout, (finding, done)
            assert bool(words) == bool(done.stdout), (finding, done)
            assert rest.asked == [], (finding, rest.asked)
        assert "n3: drained" in run(rest, [row("n3", True)], mode="check",
                                    SLURMD_NODENAME="n3").stdout
        done = run(rest, [row("n3")], "--settle=1s", mode="check", SLURMD_NODENAME="n3")
        assert "n3: undrained" in done.stdout, done
        # One more round to see that the drain is gone; then there is nothing to ask.
        run(rest, [row("n3")], mode="check", SLURMD_NODENAME="n3")
        count = len(rest.asked)
        run(rest, [row("n3")], mode="check", SLURMD_NODENAME="n3")
        assert len(rest.asked) == count, rest.asked[count:]


def a_reason_of_another_program_is_neither_replaced_nor_ended():
    for reason in ("slurm-operator: pod is cordoned", "slurm-operator: tocsin: NodeSilent",
                   "NHC: check_fs_mount", "[node_problem] gpu", "Epilog error", "Tocsin: x"):
        with rests.Rest(NAMES) as rest:
            rest.nodes["n2"].update(state=["IDLE", "DRAIN"], reason=reason)
            for findings in ([row("n2", True)], [row("n2")]):
                for mode in ("sync", "check"):
                    done = run(rest, findings, mode=mode, SLURMD_NODENAME="n2")
                    assert done.returncode == 0, done
            assert states(rest)["n2"] == (["IDLE", "DRAIN"], reason), (reason, states(rest))
            assert {verb for verb, _, _ in rest.asked} == {"GET"}, rest.asked
            assert "drained by somebody else" in run(rest, [row("n2", True)]).stdout


def the_token_goes_along_from_file_or_environment():
    with rests.Rest(NAMES, token=TOKEN) as rest, tempfile.TemporaryDirectory() as place:
        file = pathlib.Path(place) / "token"
        file.touch(0o600)
        for text in (TOKEN, TOKEN + "\n", f"SLURM_JWT={TOKEN}\n"):
            file.write_text(text)
            done = run(rest, [row(name) for name in NAMES], "--rest-token", str(file),
                       "--rest-user", "slurm")
            assert (done.returncode, done.stdout) == (0, ""), done
            assert rest.headers[-1]["X-SLURM-USER-NAME"] == "slurm", rest.headers[-1]
        done = run(rest, [row(name) for name in NAMES], SLURM_JWT=TOKEN)
        assert (done.returncode, done.stdout) == (0, ""), done
        done = run(rest, [row("n1", True)])
        assert done.returncode == 1 and "HTTP status 401: \"Authentication failure\"" in \
            done.stdout and "--rest-token" in done.stdout, done


def a_token_that_is_none_is_refused_and_never_said():
    with rests.Rest(NAMES) as rest, tempfile.TemporaryDirectory() as place:
        file = pathlib.Path(place) / "token"
        file.touch(0o600)
        for text in ("", "\n", "two words", TOKEN + "\x01", "a\tb", "é"):
            file.write_text(text)
            done = run(rest, [], "--rest-token", str(file))
            assert done.returncode == 1 and "the token is not valid" in done.stdout, (text, done)
        file.write_text(TOKEN)
        file.chmod(0o640)
        done = run(rest, [], "--rest-token", str(file))
        assert done.returncode == 1 and "other users may read it" in done.stdout, done
        done = run(rest, [], "--rest-token", place)
        assert done.returncode == 1 and "it is not a regular file" in done.stdout, done
        done = run(rest, [], "--rest-token", place + "/not")
        assert done.returncode == 1 and "No such file" in done.stdout, done
        done = run(rest, [], SLURM_JWT="x\r\nX-Evil: 1")
        assert done.returncode == 1 and "the token is not valid" in done.stdout, done
        assert rest.asked == [], rest.asked


def raw(data):
    def answer(handler):
        handler.wfile.write(data)
        handler.close_connection = True
    return answer


def said(status, answer):
    return lambda handler: rests.Rest.respond(handler, status, answer)


def without_end(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n{\"nodes\":[")
    chunk = b" " * (1 << 20)
    for _ in range(80):
        handler.wfile.write(chunk)


HOSTILE = [
    (raw(b""), ""), (raw(b"\x00\xff nonsense"), ""),
    (raw(b"HTTP/1.1 200 OK\r\n\r\n"), "not a JSON object"),
    (said(200, "hello"), "not a JSON object"), (said(200, "[]"), "not a JSON object"),
    (said(200, "{"), "not a JSON object"), (said(200, "[" * 100000), "not a JSON object"),
    (said(200, {}), "has no nodes"), (said(200, {"nodes": {"n1": 1}}), "has no nodes"),
    (said(200, {"nodes": []}), "lists no node"),
    (said(200, {"nodes": [1, None, {}, []]}), "lists no node"),
    (said(200, {"errors": [{"error": "broken\x1b[31m"}], "nodes": [rests.node("n1")]}),
     "HTTP status 200: \"broken\\x1b[31m\""),
    (said(200, {"errors": [7], "nodes": [rests.node("n1")]}), "an error without a description"),
    (said(500, {"errors": [{"description": "slurmctld is down"}]}), "\"slurmctld is down\""),
    (said(503, "busy"), "HTTP status 503"), (said(404, "what?"), "--rest-api"),
    (raw(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
     "HTTP status 302"),
    (without_end, "the answer is too long"),
]


def answers_that_make_no_sense_change_nothing_and_are_said():
    for hostile, words in HOSTILE:
        with rests.Rest(["n1"]) as rest:
            rest.hostile = hostile
            done = run(rest, [row("n1", True)])
            assert done.returncode == 1 and "nothing is done: " in done.stdout, (words, done)
            assert words in done.stdout and "\x1b" not in done.stdout, (words, done)
            assert not any(each[0] == "POST" for each in rest.asked), rest.asked


def an_update_that_is_refused_is_said():
    with rests.Rest(["n1"]) as rest:
        def no_updates(handler):
            if handler.command == "POST":
                rests.Rest.respond(handler, 405, "Requested REST method is not defined at URL.")
            else:
                rests.Rest.respond(handler, *rest.decide(handler, None))

        rest.hostile = no_updates
        done = run(rest, [row("n1", True)])
        assert "n1: could not be drained" in done.stdout and "since v0.0.39" in done.stdout, done


def nobody_who_answers_is_waited_for_without_end():
    with rests.Rest(["n1"]) as rest:
        rest.hostile = rest.hang
        done = run(rest, [row("n1", True)])
        assert done.returncode == 1 and "nothing is done" in done.stdout, done
    done = run(None, [row("n1", True)], url="http://127.0.0.1:1")
    assert done.returncode == 1 and "nothing is done" in done.stdout, done
    done = run(None, [row("n1", True)], url="unix:/no/such/socket")
    assert done.returncode == 1 and "nothing is done" in done.stdout, done


def no_proxy_of_the_environment_sees_the_token():
    with rests.Rest(NAMES) as rest, rests.Rest(NAMES) as proxy:
        run(rest, [row(name) for name in NAMES], http_proxy=proxy.url, ALL_PROXY=proxy.url,
            SLURM_JWT=TOKEN)
        assert proxy.asked == [] and rest.asked != [], (proxy.asked, rest.asked)


def options_that_contradict_each_other_are_refused():
    for arguments, words in (
            (["--rest", "ftp://x"], "http://HOST:PORT"), (["--rest", "unix:"], "unix:/PATH"),
            (["--rest", "http://h/"], "http://HOST:PORT"),
            (["--rest", "https://me:secret@h"], "https://HOST"),
            (["--rest", "http://h/?a=b"], "http://HOST:PORT"),
            (["--rest", "http://h", "--scontrol", "x"], "give either --rest or --scontrol"),
            (["--rest", "http://h", "--rest-api", "v0/.."], "such as v0.0.40"),
            (["--rest", "http://h", "--rest-user", "a\nb"], "name of a user"),
            (["--rest-token", "/x"], "needs --rest"),
            (["--rest-api", "v0.0.40"], "needs --rest")):
        done = subprocess.run([PROGRAM, "slurm", "sync", *arguments], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=patience.HANG_SECONDS)
        assert done.returncode == 2 and words in done.stderr, (arguments, done)
        assert "secret" not in done.stderr, done


if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in (
        a_bad_node_is_drained_with_its_reason_and_comes_back,
        a_drain_whose_time_is_not_told_is_nobodys,
        a_drain_is_ours_also_if_nobody_says_that_it_was_done, a_drain_of_somebody_else_stays,
        a_state_that_is_not_understood_changes_nothing,
        a_name_that_would_be_an_address_is_left_out, a_unix_socket_does_as_well,
        a_node_can_do_so_for_itself,
        a_node_for_itself_asks_slurm_only_where_a_change_is_possible,
        a_reason_of_another_program_is_neither_replaced_nor_ended,
        the_token_goes_along_from_file_or_environment,
        a_token_that_is_none_is_refused_and_never_said,
        answers_that_make_no_sense_change_nothing_and_are_said, an_update_that_is_refused_is_said,
        nobody_who_answers_is_waited_for_without_end, no_proxy_of_the_environment_sees_the_token,
        options_that_contradict_each_other_are_refused)])
