#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench verdict-table`: what eight real agents on machines of their own (namespaces on a
switch) say of faults, how soon, and how soon all is well again.

    verdict_table.py BUILD-ROOT [--json] [FAULT...]

A fault is named when all others say the word; all is well when everybody says so of everybody. Each
fault is of another node than the one before it, or it would be one that flaps. Of a pair the second
begins while the first one lasts, and both end together. The agents have the
settings of a fresh installation. Exit status 1 if something was late or a wrong word was said.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "tools"), str(TESTS / "smoke")]

import agents  # noqa: E402
import cluster as clusters  # noqa: E402
import netns  # noqa: E402

AGENTS = 8
PAUSE_SECONDS = 0.1
GIVE_UP_SECONDS = 120
SPLIT_SECONDS = 90
SAMPLE_SECONDS = 0.5
BLIND_SECONDS = 15  # so long one of the other part may be called healthy
HOLE_SECONDS = 120
FREEZE_SECONDS = 30
HEALED_SECONDS = 10
SLOW_TIMES = 3
OVERLAP_SECONDS = 4  # the second of a pair begins so long after the first
PAIR_SECONDS = 20  # and so long both last
PAIR_GRACE_SECONDS = 5  # one of a pair may take so much longer to be named
TEXT_MAX = 400
NAME_CHARS = 26
CALM = {"healthy", "unknown"}  # what is said of who is well, in the moments around a fault
FABRIC_PORT, OVERLAY_PORT = 4791, 28030


def table(*rules):
    """Rules at both hooks."""
    return "\n".join(["table inet fault {",
                      "chain in { type filter hook input priority 0;", *rules, "}",
                      "chain out { type filter hook output priority 0;", *rules, "}", "}"])


class Machines:
    """Namespaces m1, m2, ... with eth0 on the switch br0, and an agent on each."""

    def __init__(self, build, count, settings=None):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        netns.ip("link set lo up", "link add br0 type bridge", "link set br0 up")
        for number in range(1, count + 1):
            subprocess.run(["ip", "netns", "add", f"m{number}"], check=True)
            netns.ip(f"link add p{number} type veth peer name eth0 netns m{number}",
                     f"link set p{number} master br0 up")
            subprocess.run(["ip", "-n", f"m{number}", "-batch", "-"], text=True, check=True,
                           input="link set lo up\nlink set eth0 addrgenmode none\n"
                           f"link set eth0 up\naddr add 10.0.0.{number}/24 dev eth0\n")
        self.cluster = clusters.Cluster(build, count, settings={
            "client.listen": "", "http.listen": "", "device.soft0.faults": "",
            **(settings or {})})
        self.cluster.join = "10.0.0.1,10.0.0.2"

    def start(self, agent):
        agent.own["overlay.listen"] = f"10.0.0.{agent.name[1:]}"
        agent.start(around=["ip", "netns", "exec", f"m{agent.name[1:]}"])

    def nft(self, agent, rules=""):
        subprocess.run(["ip", "netns", "exec", f"m{agent.name[1:]}", "nft", "-f", "-"], text=True,
                       input=f"flush ruleset\n{rules}\n", check=True)


@contextlib.contextmanager
def running(build, count):
    machines = Machines(build, count)
    with machines.cluster as cluster:
        for agent in cluster.agents:
            machines.start(agent)
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.wait_until("all healthy and known", lambda: not ill(cluster) and
                          cluster.paths_are_known(), GIVE_UP_SECONDS)
        yield machines
        for agent in cluster.running():
            agent.thaw()
            agent.signal(15)


def words(agent):
    """node -> what this agent says of it; nothing if it does not answer."""
    try:
        return {row["node"]: row["verdict"] for row in agent.ask("HEALTH *", 1)["findings"]}
    except (OSError, EOFError, ValueError):
        return {}


def ill(cluster):
    """(who says it, of whom, what) of all that is not healthy, and who does not answer."""
    names = {agent.name for agent in cluster.agents}
    found = []
    for agent in cluster.agents:
        said = words(agent)
        found += [(agent.name, name, said.get(name, "nothing"))
                  for name in names if said.get(name) != "healthy"]
    return found


class Seen:
    """What was said from the beginning of a fault on."""

    def __init__(self, cluster, victims):
        self.cluster, self.victims = cluster, victims
        self.since = {agent.name: self.latest(agent) for agent in cluster.running()}
        self.begun = time.monotonic()

    @staticmethod
    def latest(agent):
        return max((event["sequence"] for event in agent.events()), default=0) + 1

    def told(self, agent):
        try:
            events = agent.events("VERDICT", since=self.since.get(agent.name, 0))
        except (OSError, EOFError):
            return []
        return [(agent.name, event["node"], event["text"].split(",")[0]) for event in events]

    def told_of(self, agent, victim):
        return [(who, what) for who, node, what in self.told(agent) if node == victim.name]

    def of_victims(self, but=()):
        """Words of other agents about the victims, in the order of the first of each."""
        return list(dict.fromkeys(
            what for agent in self.cluster.running() if agent.name not in self.victims
            for _, node, what in self.told(agent) if node in self.victims and what not in but))

    def wrong(self):
        """Bad words about others than the victims, by anybody, and by the victims about anybody."""
        return sorted({f"{who}: {node} {what}" for agent in self.cluster.running()
                       for who, node, what in self.told(agent)
                       if what not in CALM and node not in self.victims})


def wait_word(seen, word, among, victim):
    """(seconds to the first, to all of them), None where it did not come."""
    first = None
    while time.monotonic() - seen.begun < GIVE_UP_SECONDS:
        say = [words(agent).get(victim) == word for agent in among]
        now = time.monotonic() - seen.begun
        if any(say) and first is None:
            first = now
        if all(say):
            return first, now
        time.sleep(PAUSE_SECONDS)
    return first, None


def wait_healthy(cluster, since):
    last = []
    while time.monotonic() - since < GIVE_UP_SECONDS:
        last = ill(cluster) or last
        if not ill(cluster):
            return time.monotonic() - since, last
        time.sleep(PAUSE_SECONDS)
    return None, last


class Fault:
    """One row. begin() makes it, end() repairs it; it lasts so long at least."""

    def __init__(self, name, word, limit, begin, end, lasts=0, prepare=None):
        self.name, self.word, self.limit, self.lasts = name, word, limit, lasts
        self.begin, self.end, self.prepare = begin, end, prepare

    def play(self, machines, number):
        cluster = machines.cluster
        victim = cluster.agents[number]
        others = [agent for agent in cluster.agents if agent != victim]
        if self.prepare is not None:
            self.prepare(machines, victim)
        seen = Seen(cluster, {victim.name})
        self.begin(machines, victim)
        first, named = wait_word(seen, self.word, others, victim.name)
        before = {agent.name: len(seen.told_of(agent, victim)) for agent in others}
        time.sleep(max(0, seen.begun + self.lasts - time.monotonic()))
        changed = [what for agent in others
                   for what in seen.told_of(agent, victim)[before[agent.name]:]]
        since = time.monotonic()
        self.end(machines, victim)
        healed, last = wait_healthy(cluster, since)
        return {
            "fault": self.name, "word": self.word, "first": first, "named": named,
            "limit": self.limit, "healed": healed, "changes": len(changed),
            "changed": list(dict.fromkeys(" ".join(what) for what in changed))[:4],
            "last": last[:3],
            "words": seen.of_victims(CALM | {self.word}), "wrong": seen.wrong(),
            "ok": named is not None and named <= self.limit and healed is not None
            and healed <= HEALED_SECONDS and not changed and not seen.wrong()}


class Pair:
    """Two faults of two nodes that overlap: both are named as each alone would be."""

    def __init__(self, one, other):
        self.faults = [fault(name) for name in (one, other)]
        self.name = f"{one} + {other}"

    def begin(self, machines, victims):
        """When each began."""
        begun = []
        for kind, victim in zip(self.faults, victims):
            if begun:
                time.sleep(OVERLAP_SECONDS)
            begun.append(time.monotonic())
            kind.begin(machines, victim)
        return begun

    def are_named(self, victims, others):
        """For each of the two whether all others say its word."""
        said = [words(agent) for agent in others]
        return [all(row.get(victim.name) == kind.word for row in said)
                for kind, victim in zip(self.faults, victims)]

    def wait_named(self, victims, others, begun):
        """The seconds to each word, None where it did not come."""
        named = [None, None]
        while None in named and time.monotonic() - begun[1] < GIVE_UP_SECONDS:
            for place, well in enumerate(self.are_named(victims, others)):
                if well and named[place] is None:
                    named[place] = time.monotonic() - begun[place]
            time.sleep(PAUSE_SECONDS)
        return named

    def play(self, machines, number):
        cluster = machines.cluster
        victims = [cluster.agents[place] for place in (number, (number + 3) % AGENTS)]
        others = [agent for agent in cluster.agents if agent not in victims]
        seen = Seen(cluster, {victim.name for victim in victims})
        begun = self.begin(machines, victims)
        named = self.wait_named(victims, others, begun)
        time.sleep(max(0, begun[1] + PAIR_SECONDS - time.monotonic()))
        kept = self.are_named(victims, others)
        since = time.monotonic()
        for kind, victim in zip(self.faults, victims):
            kind.end(machines, victim)
        healed, last = wait_healthy(cluster, since)
        late = [value is None or value > kind.limit + PAIR_GRACE_SECONDS
                for value, kind in zip(named, self.faults)]
        lost = [f"{victim.name} is not {kind.word} everywhere at the end"
                for well, kind, victim in zip(kept, self.faults, victims) if not well]
        return {
            "fault": self.name, "word": " + ".join(kind.word for kind in self.faults),
            "first": named[0], "named": named[1],
            "limit": max(kind.limit for kind in self.faults) + PAIR_GRACE_SECONDS,
            "healed": healed, "changes": 0, "changed": [], "last": last[:3],
            "words": seen.of_victims(CALM | {kind.word for kind in self.faults}),
            "wrong": seen.wrong() + lost,
            "ok": not any(late) and healed is not None and not seen.wrong() + lost}


class Said:
    """Who says which bad word of whom, from when to when, in samples of all agents."""

    def __init__(self, parts):
        self.open, self.closed, self.drains = {}, [], set()
        self.parts = parts
        self.blind = {}  # who calls one of the other part healthy -> until when

    def sample(self, cluster, now):
        said = {}
        for agent in cluster.agents:
            for row in agent.ask("HEALTH *")["findings"]:
                if row["verdict"] not in CALM:
                    said[agent.name, row["node"], row["verdict"], row["reason"]] = now
                elif row["verdict"] == "healthy" and any(
                        agent.name in part and row["node"] not in part for part in self.parts):
                    self.blind[agent.name, row["node"]] = now
                if row["advice"] in ("drain", "drain-later"):
                    self.drains.add(f"{agent.name}: {row['node']} {row['advice']}")
        for key in set(self.open) - set(said):
            self.closed.append((*self.open.pop(key), *key))
        for key in said:
            self.open[key] = (self.open.get(key, (now,))[0], now)

    def rows(self):
        return sorted(self.closed + [(*times, *key) for key, times in self.open.items()])

    def told(self):
        """A line for each word: how often, how long, from when to when, by whom of whom."""
        words_said = {}
        for begun, until, who, node, verdict, reason in self.rows():
            words_said.setdefault((verdict, reason), []).append((begun, until, who, node))
        return [f"{verdict} ({reason}): {len(said)} times, {max(u - b for b, u, *_ in said):.0f} s "
                f"at most, {min(b for b, *_ in said):.0f} to {max(u for _, u, *_ in said):.0f} s, "
                + ", ".join(dict.fromkeys(f"{who} of {node}" for _, _, who, node in said))
                for (verdict, reason), said in sorted(words_said.items())]


class Split:
    """Two parts of the first so many do not reach each other for a while: nobody is drained."""

    def __init__(self, name, sizes, *verbs):
        self.name, self.sizes, self.verbs = name, sizes, verbs

    def play(self, machines, _):
        cluster = machines.cluster
        left = cluster.agents[:self.sizes[0]]
        far = ", ".join(f"10.0.0.{number}" for number in
                        range(self.sizes[0] + 1, sum(self.sizes) + 1))
        right = cluster.agents[self.sizes[0]:sum(self.sizes)]
        said = Said([{agent.name for agent in part} for part in (left, right)])
        begun = time.monotonic()
        for agent in left:
            machines.nft(agent, table(*[f"ip {end} {{ {far} }} {verb}" for end in ("saddr", "daddr")
                                        for verb in self.verbs]))
        while time.monotonic() - begun < SPLIT_SECONDS:
            said.sample(cluster, time.monotonic() - begun)
            time.sleep(SAMPLE_SECONDS)
        since = time.monotonic()
        for agent in left:
            machines.nft(agent)
        healed, last = wait_healthy(cluster, since)
        wrong = sorted(said.drains) + sorted(
            f"{who}: {node} healthy until {now:.0f} s" for (who, node), now in said.blind.items()
            if now > BLIND_SECONDS)
        return {
            "fault": self.name, "word": "-", "first": None, "named": None, "limit": None,
            "healed": healed, "changes": 0, "changed": [], "last": last[:3], "words": said.told(),
            "wrong": wrong, "drains": sorted(said.drains),
            "blind": max(said.blind.values(), default=None),
            "ok": healed is not None and healed <= HEALED_SECONDS and not wrong}


def slow(machines, victim):
    paths = [path["baseline_ns"] for agent in machines.cluster.running()
             for path in agent.ask("PATHS")["paths"]
             if path["peer"] == victim.name and path["steady"] and path["baseline_ns"]]
    added = (SLOW_TIMES - 1) * sorted(paths)[len(paths) // 2] // 1000
    victim.set_faults(f"delay={added}us")


def say_rail(machines, state):
    path = machines.cluster.directory / "rails"
    path.with_suffix(".new").write_text(f"mlx5_0 {state}\n")
    path.with_suffix(".new").replace(path)
    return path


def start_with_rail(machines, victim):
    """The agent anew with a second device, of a driver that can hang."""
    cluster = machines.cluster
    library = pathlib.Path(cluster.tocsind).resolve().parents[1] / "tests/smoke/fake_rails.so"
    victim.leave()
    victim.own["node.device"] = "nic:mlx5_0,soft"
    victim.own["overlay.listen"] = f"10.0.0.{victim.name[1:]}"
    victim.start(around=["ip", "netns", "exec", f"m{victim.name[1:]}"], environment={
        "LD_PRELOAD": str(library), "FAKE_RAILS": "1",
        "FAKE_RAILS_FILE": str(say_rail(machines, "up"))})
    agents.wait_until("all well with the second device", lambda: victim.answers() and all(
        device["state"] == "up" for device in victim.ask("DEVICES")["devices"])
        and not ill(cluster), GIVE_UP_SECONDS)


def hang(machines, victim):
    """The driver hangs, and the devices are looked at, as for a message of the kernel's."""
    say_rail(machines, "stuck")
    victim.signal(signal.SIGHUP)


def start_well(machines, victim):
    victim.own.pop("node.device", None)
    if victim.running():
        victim.leave()
    machines.start(victim)


def cut(*rules):
    return lambda machines, victim: machines.nft(victim, table(*rules))


def mend(machines, victim):
    machines.nft(victim)


def link(state):
    return lambda _, victim: netns.ip(f"link set p{victim.name[1:]} {state}")


FAULTS = [
    Fault("agent killed", "agent-down", 10, lambda _, victim: victim.kill(), start_well),
    Fault("agent frozen, 30 s", "agent-frozen", 10, lambda _, victim: victim.freeze(),
          lambda _, victim: victim.thaw(), FREEZE_SECONDS),
    Fault("host gone", "node-down", 5, link("down"), link("up"), 20),
    Fault("fabric cut", "fabric-down", 10, cut(f"udp dport {FABRIC_PORT} drop"), mend),
    Fault("management net cut", "mgmt-net-down", 10, cut("meta l4proto tcp drop"), mend, 20),
    Fault("30 % of its packets lost", "path-lossy", 20,
          cut("numgen random mod 100 < 30 drop"), mend, 30),
    Fault("60 % of its packets lost", "path-lossy", 20,
          cut("numgen random mod 100 < 60 drop"), mend, 30),
    Fault("MTU hole, 120 s", "path-lossy", 10,
          cut(f"udp dport {FABRIC_PORT} meta length > 1000 drop"), mend, HOLE_SECONDS),
    Fault(f"slow x{SLOW_TIMES}", "path-degraded", 10, slow,
          lambda _, victim: victim.set_faults("")),
    Fault("device stuck", "device-stuck", 10, hang, start_well, prepare=start_with_rail),
    Split("split 4|4, 90 s, dropped", (4, 4), "drop"),
    Split("split 4|4, 90 s, rejected", (4, 4), "reject with tcp reset", "drop"),
    Split("split 3|5, 90 s, dropped", (3, 5), "drop"),
    Split("split 3|5, 90 s, rejected", (3, 5), "reject with tcp reset", "drop"),
]


def fault(name):
    return next(kind for kind in FAULTS if kind.name == name)


PAIRS = [Pair(one, other) for one, other in (
    ("agent killed", "agent frozen, 30 s"),
    ("host gone", "fabric cut"),
    ("management net cut", "agent killed"),
    ("fabric cut", "60 % of its packets lost"),
    ("agent frozen, 30 s", "host gone"),
    ("slow x3", "fabric cut"),
    ("30 % of its packets lost", "management net cut"),
    ("MTU hole, 120 s", "agent frozen, 30 s"),
)]


def seconds(value):
    return "-" if value is None else f"{value:.1f}"


def show(row):
    if len(row["fault"]) > NAME_CHARS:
        print(f"{row['fault']}: {row['word']}")
    name, word = (row["fault"], row["word"]) if len(row["fault"]) <= NAME_CHARS else ("", "")
    print(f"{name:<26} {word:<14} {seconds(row['first']):>6} "
          f"{seconds(row['named']):>6} {seconds(row['limit']):>6} {seconds(row['healed']):>7} "
          f"{row['changes']:>8}  {'ok' if row['ok'] else 'MISSED'}", flush=True)
    if row.get("blind") is not None:
        print(f"    one of the other part is called healthy for {row['blind']:.0f} s at most")
    for what in ("words", "changed", "wrong"):
        for text in row[what] if len("; ".join(row[what])) > TEXT_MAX else ["; ".join(row[what])]:
            if text:
                print(f"    {what}: {text}"[:TEXT_MAX], flush=True)
    if row["healed"] is None or row["healed"] > HEALED_SECONDS:
        print("    last:", "; ".join(" ".join(what) for what in row["last"])[:90], flush=True)


def play(build, wanted, as_json):
    rows = []
    # The smaller part of a split is declared dead, and has no votes for two minutes after it.
    splits = [kind for kind in FAULTS if isinstance(kind, Split)]
    chosen = [kind for kind in [kind for kind in FAULTS if kind not in splits] + PAIRS + splits
              if not wanted or any(word in kind.name for word in wanted)]
    if not as_json:
        print(f"{'fault of one of eight':<26} {'verdict':<14} {'first':>6} {'all':>6} {'limit':>6} "
              f"{'healed':>7} {'changes':>8}", flush=True)
    with running(build, AGENTS) as machines:
        for place, kind in enumerate(chosen):
            rows.append(kind.play(machines, 3 + place % (AGENTS - 3)))
            if not as_json:
                show(rows[-1])
    if as_json:
        print(json.dumps({"bench": "verdict-table", "rows": rows}))
    assert all(row["ok"] for row in rows), "late or wrong: see above"


def main():
    names = [word for word in sys.argv[2:] if not word.startswith("--")]
    if os.geteuid() != 0:
        sys.exit("verdict-table: network namespaces need root")
    netns.CASE_SECONDS_MAX = 3600
    try:
        netns.isolated(lambda: play(sys.argv[1], names, "--json" in sys.argv))()
    except AssertionError as error:
        sys.exit(f"verdict-table: {str(error).strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
