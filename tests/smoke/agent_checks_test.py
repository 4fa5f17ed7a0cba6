#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Local checks with a real agent: programs that do what they should, and hostile ones.

    agent_checks_test.py BUILD_DIRECTORY
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import agents
import cluster as clusters
import fuse_hang
import tap

BUILD = sys.argv[1]
# A machine that is slow must not turn a check that is well into one that timed out.
PATIENT = {"interval": "60s", "timeout": "50s"}
HASTY = {"interval": "2s", "timeout": "1s"}
# What a terminal would obey, what is no UTF-8, and all else that is on one line.
BYTES = (b"\x1b[2J\xc2\x85\xe2\x80\xae\xc0\xaf\xad\x00" +
         bytes(byte for byte in range(256) if byte != 10)) * 12


def script(agent, name, text):
    path = agent.directory / f"{name}.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def give(agent, name, text, limits=None, **keys):
    """Adds a check whose program is this script."""
    settings = {"command": script(agent, name, text), **(limits or PATIENT), **keys}
    agent.configure(**{f"check__{name}__{key}": value for key, value in settings.items()})


def take_away(agent, name):
    agent.own = {key: value for key, value in agent.own.items()
                 if not key.startswith(f"check.{name}.")}
    agent.configure()


def checks(agent):
    return {row["name"]: row for row in agent.ask("CHECKS")["checks"]}


def wait_last(agent, name, result):
    """Until the last run of a check came to this; its row."""
    def found():
        row = checks(agent).get(name)
        return row if row and row["last"] and row["last"]["result"] == result else None

    agents.wait_until(f"{name} to be {result}", found)
    return found() or wait_last(agent, name, result)


def programs_run_and_their_exit_status_is_their_level(cluster):
    """Programs run, and what they exit with and say is what is told of the node."""
    agent = cluster.agents[0]
    give(agent, "fine", "echo all is well")
    give(agent, "hot", "echo 'TEMP WARNING - 81 C | t=81'; exit 1")
    give(agent, "broken", "echo; echo second line; exit 2")
    give(agent, "npd", "echo one is bad; exit 1", convention="npd")
    give(agent, "shell", "", command="/bin/sh -c 'echo \"$0\" $1; exit 2' 'a b' c")
    agents.wait_reloaded(agent)
    for name, result, evidence, reason in (
            ("fine", "ok", "all is well", ""),
            ("hot", "warning", "TEMP WARNING - 81 C", "CheckHot"),
            ("broken", "critical", "second line", "CheckBroken"),
            ("npd", "critical", "one is bad", "CheckNpd"),
            ("shell", "critical", "a b c", "CheckShell")):
        row = wait_last(agent, name, result)
        assert row["last"]["evidence"] == evidence, row
        assert row["reason"] == reason, row
        assert row["counts"][result] == 1, row
    counters = agent.counters()["check"]
    assert (counters["critical"], counters["warning"], counters["unknown"]) == (3, 1, 0), counters


def hostile_programs_are_unknown_and_the_others_go_on(cluster):
    """Programs without end, deaf ones, forking ones, silent ones: unknown, and all else goes on."""
    agent = cluster.agents[0]
    give(agent, "endless", "exec cat /dev/zero", HASTY)
    give(agent, "noisy", "while :; do echo line; echo line >&2; done", HASTY)
    give(agent, "deaf", "trap '' TERM; while :; do sleep 1000; done", HASTY)
    give(agent, "forks", "n=0; while [ $n -lt 200 ]; do sleep 1000 & n=$((n+1)); done; wait",
         HASTY)
    give(agent, "mute", "exec >&- 2>&-; sleep 1000", HASTY)
    (agent.directory / "bytes").write_bytes(BYTES)
    give(agent, "binary", f"cat {agent.directory}/bytes; exit 2")
    give(agent, "shot", "kill -SEGV $$")
    give(agent, "odd", "echo what; exit 77")
    agents.wait_reloaded(agent)
    for name, evidence in (("endless", "timed out"), ("noisy", "timed out"),
                           ("deaf", "timed out"), ("forks", "timed out"), ("mute", "timed out"),
                           ("shot", "ended by signal 11"), ("odd", "exit status 77: what")):
        row = wait_last(agent, name, "unknown")
        assert row["last"]["evidence"].startswith(evidence), row
        assert row["reason"] == f"CheckUnknown{name.capitalize()}", row
        assert row["said"] == "ok", row  # unknown fails nothing
    row = wait_last(agent, "binary", "critical")
    assert row["last"]["evidence"].isprintable() and len(row["last"]["evidence"]) <= 80, row
    assert row["last"]["evidence"].startswith(
        "\\x1b[2J\\xc2\\x85\\xe2\\x80\\xae\\xc0\\xaf\\xad"), row
    agents.wait_until("deaf to be run again",
                      lambda: checks(agent)["deaf"]["counts"]["unknown"] > 2)
    for name in ("endless", "noisy", "deaf", "forks", "mute"):
        take_away(agent, name)
    agents.wait_reloaded(agent)
    agents.wait_until("what they started to be gone", lambda: not processes_of(agent))


def processes_of(agent):
    """Return the command lines of the processes that scripts of an agent have left."""
    script = re.compile(re.escape(str(agent.directory)) + r"/.*\.sh")
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # the process has ended
        if script.search(words):
            found.append(words.replace("\0", " "))
    return found


def a_program_that_goes_away_is_unknown_and_comes_back(cluster):
    """A program deleted or made non-executable meanwhile is unknown until it is back."""
    agent = cluster.agents[0]
    path = agent.directory / "volatile.sh"
    give(agent, "volatile", "echo here; exit 2", {"interval": "1s", "timeout": "900ms"})
    agents.wait_reloaded(agent)
    wait_last(agent, "volatile", "critical")
    path.chmod(0o644)
    row = wait_last(agent, "volatile", "unknown")
    assert row["last"]["evidence"] == "not started: Permission denied", row
    assert row["said"] == "critical", row  # nothing was cleared by not knowing
    path.unlink()
    agents.wait_until("it to be missed", lambda: "No such file" in
                      checks(agent)["volatile"]["last"]["evidence"])
    script(agent, "volatile", "echo back")
    row = wait_last(agent, "volatile", "ok")
    assert row["said"] == "ok" and row["reason"] == "", row
    take_away(agent, "volatile")
    agents.wait_reloaded(agent)
    assert "volatile" not in checks(agent)


def a_program_that_others_may_write_is_not_run(cluster):
    """A program that other users may write to is not run; log and result name the directory"""
    agent = cluster.agents[0]
    place = agent.directory / "wide"
    place.mkdir()
    path = place / "run.sh"
    path.write_text(f"#!/bin/sh\ntouch {agent.directory}/ran\n")
    path.chmod(0o777)
    place.chmod(0o777)
    give(agent, "wide", "", command=path)
    agents.wait_reloaded(agent)
    row = wait_last(agent, "wide", "unknown")
    assert row["last"]["evidence"] == (
        f'could not run: "{place}": other users can write to this directory (mode 0777): '
        "run chmod go-w"), row
    agents.wait_log(agent, "program_unusable")
    assert not (agent.directory / "ran").exists()
    place.chmod(0o755)
    path.chmod(0o755)
    take_away(agent, "wide")
    agents.wait_reloaded(agent)


def a_check_that_hangs_in_the_kernel_is_told_and_not_waited_for(cluster):
    """A check that hangs in the kernel is told with pid and place, not waited for, not repeated."""
    agent = cluster.agents[0]
    agents.need_root("a file system that hangs")
    if not os.path.exists("/dev/fuse"):
        raise tap.Skip("no /dev/fuse")
    directory = agent.directory / "hang"
    directory.mkdir()
    with fuse_hang.Hang(directory) as hang:
        give(agent, "quick", "true", {"interval": "1s", "timeout": "900ms"})
        # The shell ends at its deadline; the child that it has left is what hangs.
        give(agent, "mount", f"echo looking; cat {hang.path}; exit 0", HASTY)
        agents.wait_reloaded(agent)
        agents.wait_until("it to hang", lambda: checks(agent)["mount"]["stuck"])
        row = checks(agent)["mount"]
        agents.say(f"told: {row['stuck']}")
        assert row["stuck"]["state"] == "D" and row["stuck"]["comm"] == "cat", row
        assert row["reason"] == "CheckStuckMount" and row["running"], row
        before = checks(agent)
        agents.wait_until("others to go on", lambda: checks(agent)["quick"]["counts"]["ok"]
                          > before["quick"]["counts"]["ok"] + 5)
        assert len(hang.held) == 1, "it was started again"
        assert "pid" in agent.log.read_text().split(" check_stuck ")[1].splitlines()[0]
        # An agent with a program that hangs still leaves when it is told to.
        hang.let_go()
        wait_last(agent, "mount", "unknown")
        agents.wait_until("it to be over", lambda: not checks(agent)["mount"]["stuck"]
                          or len(hang.held) > 0)
        take_away(agent, "mount")
        agents.wait_reloaded(agent)
        hang.let_go()


def the_client_lists_them(cluster):
    """tocsin checks lists them in 100 columns, and in JSON."""
    agent = cluster.agents[0]
    command = [str(cluster.tocsin), "checks", "--socket", str(agent.socket)]
    text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    assert all(len(line) <= 100 for line in text.splitlines()), text
    assert "CheckBroken: second line" in text, text
    for line in text.splitlines():
        agents.say(line)
    answer = json.loads(subprocess.run([*command, "--json"], check=True, text=True,
                                       stdout=subprocess.PIPE).stdout)
    assert {"fine", "hot", "broken"} <= {row["name"] for row in answer["checks"]}, answer


def a_mistake_in_a_check_changes_nothing(cluster):
    """A reload with a mistake in a check is refused, and the checks of before go on."""
    agent = cluster.agents[0]
    before = agent.log.read_text().count(" reload_failed ")
    agent.configure(**{"check__fine__timeout": "70s"})
    agent.signal(1)
    agents.wait_until("it to be refused",
                      lambda: agent.log.read_text().count(" reload_failed ") > before)
    assert "must be less than interval" in agent.log.read_text()
    agent.configure(**{"check__fine__timeout": "50s"})
    agents.wait_reloaded(agent)
    assert checks(agent)["fine"]["timeout_ns"] == 50 * 10**9


def it_ends_though_a_check_runs(cluster):
    """The agent leaves in time although a deaf check runs, and takes it along."""
    agent = cluster.agents[0]
    give(agent, "last", "trap '' TERM; while :; do sleep 1000; done",
         {"interval": "3600s", "timeout": "3000s"})
    agents.wait_reloaded(agent)
    agents.wait_until("it to run", lambda: checks(agent)["last"]["running"])
    since = time.monotonic()
    agents.end(cluster)
    agents.say(f"left within {time.monotonic() - since:.1f} s")
    agents.wait_until("its processes to be gone", lambda: not processes_of(agent))


TESTS = [
    programs_run_and_their_exit_status_is_their_level,
    hostile_programs_are_unknown_and_the_others_go_on,
    a_program_that_goes_away_is_unknown_and_comes_back,
    a_program_that_others_may_write_is_not_run,
    a_check_that_hangs_in_the_kernel_is_told_and_not_waited_for,
    the_client_lists_them,
    a_mistake_in_a_check_changes_nothing,
    it_ends_though_a_check_runs,
]

if os.geteuid() == 0:
    fuse_hang.own_mounts()
with clusters.Cluster(BUILD, 1, settings={"node.device": "none"}) as one:
    one.start()
    agents.wait_until("an answer", one.agents[0].answers)
    tap.run([(test.__doc__.strip().rstrip("."), lambda test=test: test(one)) for test in TESTS])
