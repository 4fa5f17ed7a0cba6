# SPDX-License-Identifier: BSD-3-Clause
"""What tests with real agents share: questions to all of them, and what must hold after anything.

Times are never judged: the machine may be slow. What is waited for has a generous limit, and what
was measured is printed as a comment.
"""

import os
import re
import time

import cluster as clusters
import tap

WAIT_SECONDS = 120  # for a cluster under a sanitizer on a busy machine
say = tap.comment
SANITIZER = re.compile(r"(AddressSanitizer|LeakSanitizer|runtime error|must\()")


def need_root(why):
    if os.geteuid() != 0:
        raise tap.Skip(f"{why} needs root")


def wait_until(what, function, seconds=WAIT_SECONDS, pause=0.1):
    """As clusters.wait_until(), where an agent that does not answer has just not answered yet."""
    def asked():
        try:
            return function()
        except (OSError, EOFError):
            return False

    return clusters.wait_until(what, asked, seconds, pause)


def wait_for_state(cluster, name, state, among=None):
    """Until all who run, or those among, see it so; the seconds that it took."""
    since = time.monotonic()
    wait_until(f"{name} {state} everywhere",
               lambda: cluster.agree([name], state, among), pause=0.05)
    return time.monotonic() - since


def peer(agent, name):
    """What an agent knows of a peer; None if nothing."""
    return next((row for row in agent.ask("PEERS")["peers"] if row["node"] == name), None)


def wait_one_view(cluster, among=None):
    """Until the digests of the tables are the same everywhere."""
    agents = among or cluster.running()
    wait_until("one view", lambda: len({agent.ask("PEERS")["digest"] for agent in agents}) == 1)


def wait_reloaded(agent):
    """Sends SIGHUP, and waits until the log says that it was obeyed."""
    before = agent.log.read_text().count(" reloaded ")
    agent.signal(1)
    wait_until(f"{agent.name} to reload",
               lambda: agent.log.read_text().count(" reloaded ") > before)


def wait_log(agent, text):
    wait_until(f"{agent.name} to say {text!r}",
               lambda: text in agent.log.read_text(errors="replace"))


def deaths(cluster, among=None):
    """(observer, node) of every death that anybody has seen."""
    return {(agent.name, event["node"]) for agent in among or cluster.running()
            for event in agent.events("DEAD")}


def assert_no_death_but(cluster, *names, among=None):
    """No agent has seen another one die than these."""
    false = {death for death in deaths(cluster, among) if death[1] not in names}
    assert not false, f"false deaths (observer, node): {sorted(false)}"


def assert_log_is_clean(agent):
    """Nothing that only a mistake in the agent would make it say."""
    for line in agent.log.read_text(errors="replace").splitlines():
        assert not SANITIZER.search(line), f"{agent.name}: {line}"


def assert_unharmed(cluster, *dead):
    """Nothing lost: all run and see each other, nobody died who should not have."""
    gone = [agent.name for agent in cluster.agents if not agent.running()
            and agent.name not in dead]
    assert not gone, f"exited: {gone}\n{cluster.logs()[-4000:]}"
    cluster.wait_ring(WAIT_SECONDS)
    assert_no_death_but(cluster, *dead)


def end(cluster):
    """All leave: each exits with 0, and none has said anything that it must not."""
    running = cluster.running()
    for agent in running:
        agent.signal(15)
    status = {agent.name: agent.process.wait(WAIT_SECONDS) for agent in running}
    bad = {name: code for name, code in status.items() if code != 0}
    assert not bad, f"exit status: {bad}\n{cluster.logs()[-4000:]}"
    for agent in cluster.agents:
        if agent.log.exists():
            assert_log_is_clean(agent)


def run(cluster, tests):
    """Runs functions of the cluster, whose docstring is the sentence; ends the program."""
    def bound(test):
        return lambda: test(cluster)

    with cluster:
        tap.run([(test.__doc__.strip().rstrip("."), bound(test)) for test in tests])
