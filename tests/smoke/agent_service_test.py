#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The daemon as a service: what it tells systemd, how it ends, and what it exits with.

    agent_service_test.py BUILD_DIRECTORY
"""

import contextlib
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

import cluster
import patience
import tap

BUILD = pathlib.Path(sys.argv[1])
TOCSIND = BUILD / "agent" / "tocsind"
PATIENCE_S = patience.HANG_SECONDS
WATCHDOG_S = 0.3


class Manager:
    """Plays the service manager: the socket that NOTIFY_SOCKET names."""

    def __init__(self, directory, abstract):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if abstract:
            name = f"tocsin-test-{os.getpid()}-{time.monotonic_ns()}"
            self.socket.bind("\0" + name)
            self.environment = {"NOTIFY_SOCKET": "@" + name}
        else:
            path = str(directory / "notify")
            self.socket.bind(path)
            self.environment = {"NOTIFY_SOCKET": path}
        self.socket.settimeout(PATIENCE_S)

    def next(self):
        """One message, as a dictionary."""
        text = self.socket.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def wait(self, key):
        while key not in (message := self.next()):
            pass
        return message

    def drain(self):
        while select.select([self.socket], [], [], 0)[0]:
            self.socket.recv(4096)


@contextlib.contextmanager
def one_agent(key=False, settings=None, environment=None):
    """A cluster of one, started with these variables."""
    before = dict(os.environ)
    with cluster.Cluster(BUILD, 1, key=key, settings=settings or {}) as ring:
        os.environ.update(environment(ring.directory) if environment else {})
        try:
            agent = ring.agents[0].start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        try:
            yield agent
        except Exception:
            tap.comment(ring.logs())
            raise


def ended(agent, status):
    code = agent.process.wait(PATIENCE_S)
    log = agent.log.read_text()
    assert code == status, f"exit {code}, not {status}\n{log}"
    return log


@contextlib.contextmanager
def managed(abstract=False, watchdog=False, variables=None):
    manager = None

    def environment(directory):
        nonlocal manager
        manager = Manager(directory, abstract)
        extra = {"WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))} if watchdog else {}
        return {**manager.environment, **extra, **(variables or {})}

    with one_agent(environment=environment) as agent:
        yield agent, manager
        manager.socket.close()


def a_whole_life_is_told_through_a_socket_of_either_kind():
    for abstract in (False, True):
        with managed(abstract) as (agent, manager):
            message = manager.wait("READY")
            assert message["READY"] == "1" and message["STATUS"], message
            agent.signal(signal.SIGTERM)
            message = manager.wait("STOPPING")
            assert message["STOPPING"] == "1" and "leaving" in message["STATUS"], message
            ended(agent, 0)


def ready_is_told_once_clients_are_answered():
    with managed() as (agent, manager):
        manager.wait("READY")
        assert agent.ask("COUNTERS", PATIENCE_S) is not None


def a_reload_is_announced_with_its_time_and_ended_by_ready():
    with managed() as (agent, manager):
        manager.wait("READY")
        before = time.monotonic_ns() // 1000
        agent.signal(signal.SIGHUP)
        message = manager.wait("RELOADING")
        after = time.monotonic_ns() // 1000
        assert message["RELOADING"] == "1", message
        assert before <= int(message["MONOTONIC_USEC"]) <= after, (before, message, after)
        assert manager.wait("READY")["READY"] == "1"


def the_watchdog_is_fed_three_times_within_its_time():
    with managed(watchdog=True) as (_, manager):
        manager.wait("WATCHDOG")
        begin = time.monotonic()
        for _ in range(9):
            assert manager.wait("WATCHDOG")["WATCHDOG"] == "1"
        # A slow machine makes it later, nothing makes it earlier.
        assert time.monotonic() - begin > 9 * WATCHDOG_S / 3 * 0.8


def a_stopped_agent_feeds_no_watchdog_until_it_goes_on():
    with managed(watchdog=True) as (agent, manager):
        manager.wait("WATCHDOG")
        agent.freeze()
        os.waitid(os.P_PID, agent.process.pid, os.WSTOPPED | os.WNOWAIT)
        manager.drain()
        assert not select.select([manager.socket], [], [], 2 * WATCHDOG_S)[0], manager.next()
        agent.thaw()
        manager.wait("WATCHDOG")


def a_watchdog_meant_for_another_process_is_not_fed():
    with managed(watchdog=True, variables={"WATCHDOG_PID": "1"}) as (agent, manager):
        manager.wait("READY")
        agent.signal(signal.SIGTERM)
        while "STOPPING" not in (message := manager.next()):
            assert "WATCHDOG" not in message, message
        ended(agent, 0)


def an_agent_without_a_manager_runs_as_well():
    for variables in ({"NOTIFY_SOCKET": "/nowhere/at-all"}, {"NOTIFY_SOCKET": "relative"},
                      {"WATCHDOG_USEC": "soon"}, {}):
        with one_agent(environment=lambda _, given=variables: given) as agent:
            cluster.wait_until("an answer", agent.answers, PATIENCE_S)
            assert agent.leave() == 0


def interrupt_and_terminate_leave_with_zero():
    for number in (signal.SIGINT, signal.SIGTERM):
        with one_agent() as agent:
            cluster.wait_until("an answer", agent.answers, PATIENCE_S)
            agent.signal(number)
            assert " leaving" in ended(agent, 0)


def a_second_terminate_ends_at_once():
    with cluster.Cluster(BUILD, 2) as ring:
        first, second = ring.start().agents
        ring.wait_ring(PATIENCE_S)
        second.freeze()  # so that the farewell is not answered
        first.signal(signal.SIGTERM)
        cluster.wait_until("the farewell", lambda: " leaving" in first.log.read_text(), PATIENCE_S)
        first.signal(signal.SIGINT)
        assert "leaving_cut_short" in ended(first, 0)


def a_port_in_use_is_named_and_exits_one():
    with socket.socket() as holder, cluster.Cluster(BUILD, 1) as ring:
        agent = ring.agents[0]
        holder.bind((agent.address, 0))
        holder.listen()
        port = holder.getsockname()[1]
        ring.settings["overlay.listen"] = f"{agent.address}:{port}"
        log = ended(agent.start(), 1)
        assert "start_failed part=overlay" in log and f"{agent.address}:{port}" in log, log


def a_start_that_a_limit_fails_says_which():
    for files in (8, *range(16, 31, 2)):
        with cluster.Cluster(BUILD, 1) as ring:
            log = ended(ring.agents[0].start(around=["prlimit", f"--nofile={files}"]), 1)
            assert f'low_limits="{files} open files (ulimit -n, LimitNOFILE)"' in log, log
            assert 'reason=""' not in log, log


def a_held_state_directory_is_named_and_exits_one():
    with one_agent() as agent:
        cluster.wait_until("an answer", agent.answers, PATIENCE_S)
        state = agent.directory / "state"
        with cluster.Cluster(BUILD, 1, settings={"node.state_directory": state}) as other:
            log = ended(other.agents[0].start(), 1)
            assert "start_failed part=state" in log and str(state) in log, log


def the_second_holder_of_a_name_exits_three_and_names_both_addresses():
    with cluster.Cluster(BUILD, 3) as ring:
        first, second, third = ring.agents
        first.start()
        second.start()
        ring.wait_ring(PATIENCE_S)
        ring.settings["node.name"] = second.name
        log = ended(third.start(), 3)
        line = next(line for line in log.splitlines() if " refused " in line)
        assert f"node={second.name} " in line and "cause=conflict" in line, line
        assert f"address={third.address}:28030" in line, line
        assert f"by={second.address}:28030" in line, line
        assert first.running() and second.running()
        assert first.peers()[second.name] == "alive"


def strangers(agent):
    return (agent.ask("HEALTH")["strangers"] or {"count": 0})["count"]


def an_agent_whose_names_to_join_do_not_resolve_says_which():
    with cluster.Cluster(BUILD, 1, settings={"overlay.join": "no-such-host.invalid",
                                             "log.level": "debug"}) as ring:
        agent = ring.agents[0]
        agent.start()
        cluster.wait_until("words", lambda: agent.answers() and
                           agent.ask("HEALTH")["join_problem"], PATIENCE_S)
        problem = agent.ask(f"WHY {agent.name}")["join_problem"]
        assert problem.startswith("no join address can be used: "), problem
        assert "no-such-host.invalid" in problem, problem
        # Tried every few seconds: a warning once, not each time.
        cluster.wait_until("a second try", lambda: " debug join_addresses_unusable" in
                           agent.log.read_text(), PATIENCE_S)
        warnings = [line for line in agent.log.read_text().splitlines() if " warn " in line]
        for event in ("join_addresses_unusable", "alone"):
            assert sum(f" {event} " in line for line in warnings) == 1, warnings


def an_agent_of_another_cluster_goes_on_trying_and_is_let_in_nowhere():
    # Before the proof nothing is disclosed: another cluster looks like another key, and keys are
    # replaced while agents run.
    with cluster.Cluster(BUILD, 2) as ring:
        first, second = ring.agents
        first.start()
        cluster.wait_until("an answer", first.answers, PATIENCE_S)
        ring.settings["overlay.cluster"] = "another"
        second.start()
        cluster.wait_until("three tries", lambda: strangers(first) >= 3, PATIENCE_S)
        assert first.log.read_text().count("proof_failed") < strangers(first)
        assert second.ask("HEALTH")["join_problem"] == (
            f"this node has another key or cluster name than the agent at {first.address}:28030")
        assert second.peers() == {second.name: "alive"} and first.peers() == {first.name: "alive"}
        assert second.leave() == 0


FIVE_MISTAKES = """\
[node]
name = two words
journal_size = 1
[overlay]
jion = 10.0.0.1
profile = faster
[log]
level = loud
"""


def a_file_with_five_mistakes_has_all_five_reported_and_exits_two():
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "tocsin.conf"
        path.write_text(FIVE_MISTAKES)
        for arguments in (["--check-config", path], ["--config", path]):
            done = subprocess.run([TOCSIND, *arguments], stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False)
            lines = done.stderr.splitlines()
            assert (done.returncode, done.stdout, len(lines)) == (2, "", 5), done
            places = [re.match(r"tocsind: (.*):(\d+): ", line) for line in lines]
            assert all(places), lines
            assert [int(place.group(2)) for place in places] == [2, 3, 5, 6, 8], lines
            assert "join" in lines[2] and "fast" in lines[3], lines


def a_key_that_is_not_there_exits_two_and_leaves_the_state_directory_alone():
    with tempfile.TemporaryDirectory() as place:
        state = pathlib.Path(place) / "state"
        done = subprocess.run([TOCSIND, "--set", "overlay.key=/nowhere/key", "--set",
                               f"node.state_directory={state}"], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False)
        assert done.returncode == 2 and "part=key" in done.stderr, done
        assert not state.exists()


def a_missing_file_is_told_in_words():
    done = subprocess.run([TOCSIND, "--check-config", "/nowhere/tocsin.conf"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S,
                          check=False)
    assert "No such file or directory" in done.stderr, done


def an_unknown_option_or_a_missing_file_exits_two():
    for arguments in (["--frobnicate"], ["--config"], ["--check-config", "/nowhere/tocsin.conf"],
                      ["--set", "node.title=x"], ["stray"]):
        done = subprocess.run([TOCSIND, *arguments], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False)
        assert done.returncode == 2 and done.stderr.startswith("tocsind: "), (arguments, done)


TESTS = [
    a_whole_life_is_told_through_a_socket_of_either_kind,
    ready_is_told_once_clients_are_answered,
    a_reload_is_announced_with_its_time_and_ended_by_ready,
    the_watchdog_is_fed_three_times_within_its_time,
    a_stopped_agent_feeds_no_watchdog_until_it_goes_on,
    a_watchdog_meant_for_another_process_is_not_fed,
    an_agent_without_a_manager_runs_as_well,
    interrupt_and_terminate_leave_with_zero,
    a_second_terminate_ends_at_once,
    a_port_in_use_is_named_and_exits_one,
    a_start_that_a_limit_fails_says_which,
    a_held_state_directory_is_named_and_exits_one,
    the_second_holder_of_a_name_exits_three_and_names_both_addresses,
    an_agent_whose_names_to_join_do_not_resolve_says_which,
    an_agent_of_another_cluster_goes_on_trying_and_is_let_in_nowhere,
    a_file_with_five_mistakes_has_all_five_reported_and_exits_two,
    a_key_that_is_not_there_exits_two_and_leaves_the_state_directory_alone,
    a_missing_file_is_told_in_words,
    an_unknown_option_or_a_missing_file_exits_two,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
