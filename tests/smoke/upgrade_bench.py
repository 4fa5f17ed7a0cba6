#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench upgrade`: eight agents change between two adjacent builds, under load.

    upgrade_bench.py BUILD-ROOT [--json]

The first two builds are an earlier one, that of BASE, and this one. Then come this one and a later
one, whose versions are one higher and which sends unknown fields (tests/tools/later.py). Both are
kept in ~/.cache/tocsin. The table has a row for each play: the seconds until all agents are members
again, and the longest time for which a peer missed a member. A play fails if an agent died or lost
events, if a node got a bad verdict, or if the job was disturbed. Exit status 0 only if no play
fails and no target is missed. The last column is the load of the machine: agents that get no
processor for seconds miss targets.
"""

import argparse
import collections
import contextlib
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import urllib.request

import agents
import cluster as clusters
import earlier
import later

# The first commit with version 3 of the protocol and version 2 of the job socket. Earlier agents
# have no key, and the cluster refuses them.
BASE = "ead2e0bd"
AGENTS = 8
JOB_SECONDS = 3600
ROLLING_TARGET_S = 60
MISSED_TARGET_S = 3  # silence before suspicion: docs/internals/membership.md
# The verdicts that an upgrade may show: node-busy if an agent lacks processor time.
LOAD_VERDICTS = {"none", "healthy", "node-busy"}
BUSY_OF_EARLIER = ("check-warning", "ProcessorShort", "warn")  # node-busy, as that build shows it
# Reasons why the agent that is asked has no verdict: it has not joined, it does not probe yet, or
# it got no processor for seconds.
NOT_JUDGED = {"NotMember", "None", "OwnPause", "Settling"}
BAD_EVENTS = {"SUSPECT", "UNREACHABLE", "DEAD", "DECLARED_DEAD", "BRAKE_ON", "CONFLICT", "FORGED",
              "KEY_CHANGED", "KEY_REFUSED", "OTHER_VERSION", "JOIN_REFUSED", "DIVERGED"}
# Settings that the earlier build does not know. It does not start with them.
NEW_SETTINGS = {"history.size"}
KEPT_EVENTS = {"JOINED", "REJOINED", "LEFT", "MAINT"}
UNSUPPORTED_FILE = re.compile(r' warn (\w+) [^\n]*reason="the file has an unsupported version"')
ASK_SECONDS = 5
PAUSE_SECONDS = 0.1  # between two rounds of questions to one agent
HEAD = (f"{'builds':13} {'libtocsin':9} {'play':34} {'took':>7} {'target':>7} {'missed':>8}"
        "  load")


class Load:
    """Questions of clients and scrapes to each agent, and the verdicts that the agents show."""

    def __init__(self, cluster):
        self.ended = threading.Event()
        self.verdicts, self.asked = set(), 0
        self.threads = [threading.Thread(target=self.ask_again, args=[agent], daemon=True)
                        for agent in cluster.agents]

    def start(self):
        for thread in self.threads:
            thread.start()

    def ask_again(self, agent):
        while not self.ended.wait(PAUSE_SECONDS):
            # An agent that is away does not answer, or the answer breaks off.
            with contextlib.suppress(OSError, EOFError, ValueError):
                self.ask(agent)

    def ask(self, agent):
        for row in agent.ask("HEALTH *", ASK_SECONDS)["findings"]:
            self.verdicts.add((row["verdict"], row["reason"], row["advice"]))
        agent.ask("COMMS", ASK_SECONDS)
        agent.ask("PATHS", ASK_SECONDS)
        with urllib.request.urlopen(f"http://{agent.address}:28031/metrics", timeout=ASK_SECONDS):
            self.asked += 1

    def end(self):
        self.ended.set()
        for thread in self.threads:
            if thread.ident is not None:
                thread.join()


class Play:
    """A cluster under load and with a job, whose agents change their program."""

    def __init__(self, old_build, new_build, unknown_settings, states_differ):
        self.cluster = clusters.Cluster(new_build, AGENTS)
        self.new = self.cluster.tocsind
        self.old = old_build / "agent" / "tocsind"
        self.unknown_settings = unknown_settings  # those that the old program refuses
        self.states_differ = states_differ  # state files have other versions
        self.load = Load(self.cluster)
        self.job_output = self.cluster.directory / "ring"
        self.job = None
        self.faults = []
        self.seen = {agent.name: [] for agent in self.cluster.agents}  # its events so far

    def __enter__(self):
        self.cluster.__enter__()
        return self

    def __exit__(self, *exception):
        self.load.end()
        if self.job is not None:
            # Ranks of the earlier build do not end with their parent.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.job.pid, signal.SIGKILL)
            self.job.wait()
        self.cluster.__exit__(*exception)

    def use(self, agent, program):
        agent.program = program
        agent.without = set(self.unknown_settings) if program == self.old else set()

    def start(self, ring):
        for agent in self.cluster.agents:
            self.use(agent, self.old)
        self.cluster.start().wait_ring(agents.WAIT_SECONDS)
        agents.wait_one_view(self.cluster)
        self.ring = ring
        with open(self.job_output, "wb") as out:
            self.job = subprocess.Popen(
                self.ring_words("--seconds", str(JOB_SECONDS), "--compute", "100"), stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True)
        self.wait_ranks()
        self.load.start()

    def ring_words(self, *words):
        """The command of a job with a rank at each agent."""
        sockets = [word for agent in self.cluster.agents
                   for word in ("--socket", str(agent.directory / "job.sock"))]
        return [self.ring, "--ranks", str(AGENTS), *words, *sockets]

    def wait_ranks(self):
        agents.wait_until("a rank of the job at each agent", lambda: all(
            agent.counters()["job"]["ranks"] == 1 for agent in self.cluster.agents))

    def lose_rank(self):
        """A rank of another job dies. All its other ranks, at agents of both builds, receive the
        event with the same set."""
        done = subprocess.run(self.ring_words("--kill", "2"), capture_output=True, text=True,
                              timeout=agents.WAIT_SECONDS, check=False)
        sets = re.findall(r"^rank (\d): failed set in the end: agreed view (\w+): 2$", done.stdout,
                          re.MULTILINE)
        assert sorted(rank for rank, _ in sets) == list("0134567") and \
            len({view for _, view in sets}) == 1, done.stdout + done.stderr

    def keep_events(self, agent):
        """Store what an agent has seen in this run, before it ends."""
        self.seen[agent.name] += [event for event in agent.events() if event["sequence"] > 0]

    def stop(self, *leavers):
        for agent in leavers:
            self.keep_events(agent)
            agent.signal(15)
        for agent in leavers:
            status = agent.process.wait(agents.WAIT_SECONDS)
            assert status == 0, f"{agent.name} ended with status {status}"

    def restart(self, program, *leavers):
        self.stop(*leavers)
        for agent in leavers:
            self.use(agent, program)
            agent.start()

    def wait_members(self):
        self.cluster.wait_ring(agents.WAIT_SECONDS)
        agents.wait_one_view(self.cluster)


def when(event):
    stamp, fraction = re.fullmatch(r"(.*)\.(\d+)Z", event["time"]).groups()
    return time.mktime(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{fraction}")


def absence_seconds(play, leaver):
    """Return the seconds between leaving and return, as each other agent saw them."""
    for agent in play.cluster.agents:
        if agent is leaver:
            continue
        events = agent.events(node=leaver.name)
        left = [event for event in events if event["event"] == "LEFT"]
        back = [event for event in events if event["event"] in ("JOINED", "REJOINED")]
        assert left and back, f"{agent.name} lost the restart of {leaver.name}: {events}"
        yield when(back[-1]) - when(left[-1])


def roll(play, program):
    """Restart one agent after the other with this program."""
    missed = []
    for agent in play.cluster.agents:
        play.restart(program, agent)
        play.wait_members()
        missed += absence_seconds(play, agent)
        if agent is play.cluster.agents[AGENTS // 2 - 1]:
            check_mix(play)
            play.lose_rank()
    play.wait_ranks()
    return max(missed)


def check_mix(play):
    """Half of the agents have the other program: `tocsin status` shows both, with the client of
    either build."""
    first = play.cluster.agents[0]
    versions = {peer["version"] for peer in first.ask("PEERS")["peers"]}
    assert len(versions) == 2, versions
    for program in (play.old, play.new):
        said = subprocess.run([str(program.with_name("tocsin")), "status", "--socket",
                               str(first.socket)], capture_output=True, text=True,
                              check=True).stdout
        assert f"of {AGENTS} agents" in said, said
        if play.old.is_relative_to(earlier.CACHE) and play.old in (program, first.program):
            continue  # that build does not show versions
        assert all(version in said for version in versions), said


def check_journals(play):
    """Each agent still shows what it saw before it was upgraded."""
    for agent in play.cluster.agents:
        before, now = (collections.Counter(
            (event["event"], event["node"]) for event in events if event["event"] in KEPT_EVENTS)
            for events in (play.seen[agent.name], agent.ask("EVENTS 24h")["events"]))
        assert not before - now, f"{agent.name} lost events: {before - now}"


def upgrade_one_by_one(play):
    """upgrade, one after the other"""
    missed = roll(play, play.new)
    check_journals(play)
    return missed


def downgrade_one_by_one(play):
    """back, one after the other"""
    return roll(play, play.old)


def restart_all(play, program):
    play.restart(program, *play.cluster.agents)
    play.wait_members()
    play.wait_ranks()


def upgrade_at_once(play):
    """upgrade, all at once"""
    restart_all(play, play.new)


def downgrade_at_once(play):
    """back, all at once"""
    restart_all(play, play.old)


def order_maintenance(asker, node, switch):
    """Give the order with the client of the agent's build: an earlier agent refuses `on` of a newer
    client."""
    done = subprocess.run([str(asker.program.with_name("tocsin")), "maint", node, switch,
                           "--socket", str(asker.socket)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done


def wait_maintenance(play, *nodes):
    agents.wait_until(f"maintenance of {nodes} alone at all agents", lambda: all(
        {peer["node"] for peer in agent.ask("PEERS")["peers"] if peer["maint"]} == set(nodes)
        for agent in play.cluster.running()))


def keep_orders(play):
    """maintenance over restarts of all"""
    first, second = play.cluster.agents[:2]
    play.restart(play.new, first)
    play.wait_members()
    order_maintenance(first, "n7", "on")
    order_maintenance(second, "n8", "on")
    wait_maintenance(play, "n7", "n8")
    restart_all(play, play.new)
    wait_maintenance(play, "n7", "n8")
    play.stop(first)
    order_maintenance(second, "n8", "off")
    first.start()
    play.wait_members()
    wait_maintenance(play, "n7")
    # The old build does not read the file of the new one, and leaves it alone.
    restart_all(play, play.old)
    wait_maintenance(play)
    restart_all(play, play.new)
    wait_maintenance(play, "n7")
    order_maintenance(first, "n7", "off")
    wait_maintenance(play)
    restart_all(play, play.old)
    if play.states_differ:
        for agent in play.cluster.agents:
            ignored = set(UNSUPPORTED_FILE.findall(agent.log.read_text()))
            assert {"maintenance_ignored", "remembered_members_ignored"} <= ignored, (
                agent.name, ignored)


PLAYS = [(upgrade_one_by_one, ROLLING_TARGET_S), (downgrade_one_by_one, ROLLING_TARGET_S),
         (upgrade_at_once, None), (downgrade_at_once, None), (keep_orders, None)]


def faults_of(play):
    """Return all events, verdicts and failures of the job since the start that no play allows."""
    for agent in play.cluster.agents:
        for event in play.seen[agent.name] + agent.events():
            if event["event"] in BAD_EVENTS:
                yield f"{agent.name}: {event['event']} {event['node']} {event['detail']}"
    for verdict, reason, advice in sorted(play.load.verdicts):
        is_judged = verdict != "unknown" or reason not in NOT_JUDGED
        if advice in ("drain", "drain-later", "restart") or (
                is_judged and verdict not in LOAD_VERDICTS and
                (verdict, reason, advice) != BUSY_OF_EARLIER):
            yield f"verdict {verdict} ({reason}), advice {advice}"
    said = play.job_output.read_text()
    if play.job.poll() is not None or said:
        yield f"the job ended or received events: {play.job.poll()} {said[-500:]}"


def run(play, action, target):
    began = time.monotonic()
    row = {"play": action.__doc__, "target_s": target, "missed_s": None, "faults": []}
    try:
        row["missed_s"] = action(play)
        row["seconds"] = time.monotonic() - began
        row["faults"] = sorted(set(faults_of(play)))
    except Exception:  # any exception counts as a failure of this play
        row["seconds"] = time.monotonic() - began
        row["faults"].append(traceback.format_exc())
    row["load"] = os.getloadavg()[0]
    row["ok"] = (not row["faults"] and (target is None or row["seconds"] <= target) and
                 (row["missed_s"] or 0) < MISSED_TARGET_S)
    return row


def show(row):
    def format_seconds(value):
        return "-" if value is None else f"{value:.1f} s"

    print(f"{row['builds']:13} {row['libtocsin']:9} {row['play']:34} "
          f"{format_seconds(row['seconds']):>7} "
          f"{format_seconds(row['target_s']):>7} {format_seconds(row['missed_s']):>8} "
          f"{row['load']:5.0f}{'' if row['ok'] else '  FAILED'}", flush=True)
    for fault in row["faults"]:
        for line in fault.splitlines():
            print(f"    {line}", flush=True)


def rows_of_builds(old, new, unknown_settings=(), states_differ=False):
    """Yield the rows of all plays between two builds, each a name and a directory. The job runs
    with the library of each build, so that an older library also meets newer agents."""
    for name, build in (old, new):
        with Play(old[1], new[1], unknown_settings, states_differ) as play:
            play.start(build / "lib/job/examples/ring")
            for action, target in PLAYS:
                yield {"builds": f"{old[0]}, {new[0]}", "libtocsin": name,
                       **run(play, action, target),
                       "rounds": play.load.asked,
                       "verdicts": sorted({verdict for verdict, _, _ in play.load.verdicts})}


def main():
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = []
    if not asked.json:
        print(HEAD, flush=True)
    with later.build() as later_build:
        this = ("this", asked.build)
        for row in itertools.chain(
                rows_of_builds(("earlier", earlier.build(BASE)), this, NEW_SETTINGS),
                rows_of_builds(this, ("later", later_build), states_differ=True)):
            rows.append(row)
            if not asked.json:
                show(row)
    if asked.json:
        print(json.dumps({"bench": "upgrade", "base": BASE, "rows": rows}))
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
