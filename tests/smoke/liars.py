# SPDX-License-Identifier: BSD-3-Clause
"""Lies that a member tells, and what must hold: for `./dev bench hostile` and the test agent_liar.

The liar is the last agent of a cluster, the program tests/smoke/liar/tocsind-liar. LIES is the one
table of lies. A new lie needs a row here and a function of the same name in tests/smoke/liar.
"""

import datetime
import os
import re
import signal
import subprocess
import time
from typing import NamedTuple

import agents
import cluster as clusters

AGENTS = 8
LIAR = "n8"
# The lies are about an agent that is linked with the liar, another one each time: a verdict that
# changes more than three times a minute is unstable.
VICTIMS = ("n7", "n1", "n6", "n2")
FROZEN = "n4"  # falls silent while some lies are told
TOLD_LINE = re.compile(r"^(\S+)Z info lies_told sent=(\S+)", re.M)
GONE_LINE = re.compile(r"^rank \d+: rank \d+ is gone", re.M)
# Generous: what is measured is printed.
NAMED_SECONDS = 60
HEARD_SECONDS = 60
ECHO_SECONDS = 20
JOB_SECONDS = 600  # the job ends by then if this program is killed
CHECK = "#!/bin/sh\n[ -e '{}' ] && echo 'it is hot' && exit 1\nexit 0\n"


class Lie(NamedTuple):
    does: str
    provable: bool = False  # the victim names the liar: event FORGED
    dies: bool = False      # the victim may be held for dead until it refutes
    freezes: bool = False   # another node falls silent meanwhile, and must be declared dead
    restarts: bool = False  # the victim takes a new start number each 10 s
    holds: bool = True      # False: docs/security.md says what happens instead


# Against each: no honest node is dead, mute or blamed at any time or in the end, keeps its key and
# address, and no job hears of it. A row says what else must hold, or what is admitted.
LIES = {
    "check": Lie("a failing check, in the name of the victim", provable=True),
    "mute": Lie("notices of the victim with ids far ahead of its own", provable=True),
    "gone": Lie("ranks of other agents are gone"),
    "replay": Lie("notices of the victim, sent again after it withdrew them"),
    "change": Lie("notices of the victim, made worse on their way"),
    "grant": Lie("a drain of the victim is granted"),
    "paths": Lie("the victim is silent on overlay and fabric"),
    "forget": Lie("an order to forget the victim"),
    "census": Lie("counts far too large, then far too small", freezes=True),
    "relay": Lie("messages in the name of the victim, far ahead of its own", holds=False),
    "claim": Lie("the name of the victim with another key and address", restarts=True),
    "twin": Lie("a second name at the address of the victim"),
    "maint": Lie("the victim is in maintenance"),
    "death": Lie("two members saw the victim die", dies=True),
    "members": Lie("20,000 members without an address", freezes=True),
    "addresses": Lie("40,000 members where nobody listens", freezes=True),
    "left": Lie("the victim has left; then its name with another key"),
}


class Result(NamedTuple):
    names: list
    sent: int       # frames
    dead: int       # honest nodes that an honest agent held for dead or gone
    muted: int      # honest agents that did not hear the victim
    verdicts: int   # verdicts on honest nodes, and drains, that nothing but the lie explains
    told: int       # ranks of a job that heard of a loss
    named_s: float  # from the first lie to the first event FORGED; None: there was none
    faults: list    # sentences: what does not hold


class Play:
    """A cluster of honest agents with one liar; start() and then tell() as often as needed."""

    def __init__(self, build):
        self.build = build
        self.cluster = clusters.Cluster(build, AGENTS)
        self.honest = [agent for agent in self.cluster.agents if agent.name != LIAR]
        self.liar = next(agent for agent in self.cluster.agents if agent.name == LIAR)
        self.liar.program = os.path.join(build, "tests/smoke/liar/tocsind-liar")
        self.told = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cluster.stop()
        self.cluster.__exit__()

    def agent(self, name):
        return next(agent for agent in self.cluster.agents if agent.name == name)

    def start(self):
        """Starts the honest agents. Each possible victim has a check that reads a file."""
        for name in VICTIMS:
            agent = self.agent(name)
            script = agent.directory / "hot.sh"
            script.write_text(CHECK.format(agent.directory / "hot"))
            script.chmod(0o755)
            agent.own.update({"check.hot.command": script, "check.hot.interval": "1s",
                              "check.hot.timeout": "900ms"})
        for agent in self.honest:
            agent.own["device.soft0.faults"] = ""
            agent.start()
        self.cluster.wait_ring(agents.WAIT_SECONDS)

    def tell(self, names, seconds=0):
        """Plays these lies together for so long, or until all is seen."""
        return Telling(self, names, seconds).result()


def finding(agent, name):
    return agent.ask(f"HEALTH {name}")["findings"][0]


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.rstrip("Z") + "+00:00").timestamp()


class Telling:
    """One start of the liar."""

    def __init__(self, play, names, seconds):
        self.play = play
        self.names = names
        self.seconds = seconds
        self.victim = play.agent(VICTIMS[play.told % len(VICTIMS)])
        self.others = [agent for agent in play.honest if agent != self.victim]
        self.begin = play.liar.directory / f"begin{play.told}"
        self.out = play.liar.directory / f"ring{play.told}"
        self.hot = self.victim.directory / "hot"
        self.since = {}
        self.faults = []
        play.told += 1

    def admits(self, what):
        """Whether one of these lies has this in its row."""
        return any(getattr(LIES[name], what) for name in self.names)

    def fails(self, what, function, seconds=agents.WAIT_SECONDS):
        """Waits; whether that was in vain, which is a fault."""
        try:
            agents.wait_until(what, function, seconds)
        except clusters.Timeout as late:
            self.faults.append(str(late))
            return True
        return False

    def result(self):
        """Tells the lies, and says what came of it."""
        liar = self.play.liar
        liar.log.write_text("")
        liar.start(environment={"TOCSIN_LIE": ",".join(self.names),
                                "TOCSIN_LIE_VICTIM": self.victim.name,
                                "TOCSIN_LIE_BEGIN": str(self.begin)})
        self.play.cluster.wait_ring(agents.WAIT_SECONDS)
        job = self.start_job()
        try:
            among = [agent for agent in self.play.honest if agent.name != FROZEN]
            agents.wait_until("all ranks to be registered", lambda: sum(
                agent.counters()["job"]["ranks"] for agent in among) == len(among))
            self.hot.touch()
            agents.wait_until("a warning", lambda: not self.unheard("check-warning"))
            before = self.identities()
            self.since = {agent.name: agent.events()[-1]["sequence"] for agent in self.play.honest}
            self.begin.touch()
            until = time.monotonic() + self.seconds
            muted = self.withdraw()
            if self.admits("freezes"):
                self.freeze()
            named_s = self.named()
            while time.monotonic() < until and not self.faults:
                time.sleep(1)  # the lie goes on for as long as was asked
            sent = sum(number for _, number in self.sent().values())
            liar.leave()
            names = [agent.name for agent in self.play.honest]
            self.fails("all honest nodes to be alive", lambda: self.play.cluster.agree(
                names, "alive", self.play.honest))
            changed = {row[1] for row in self.identities() ^ before}
            if changed:
                self.faults.append(f"another key or address: {sorted(changed)}")
            return self.judge(sent, muted, named_s)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            self.hot.unlink(missing_ok=True)

    def start_job(self):
        """One rank at each honest agent that is not to fall silent. Its ranks wait and do not
        compute: six that do would leave the agents no processor."""
        among = [agent for agent in self.play.honest if agent.name != FROZEN]
        words = [word for agent in among for word in ("--socket", agent.directory / "job.sock")]
        with open(self.out, "wb") as out:
            return subprocess.Popen(
                [os.path.join(self.play.build, "lib/job/examples/ring"), "--ranks",
                 str(len(among)), *words, "--seconds", str(self.seconds + JOB_SECONDS),
                 "--compute", "0"],
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    def unheard(self, wanted):
        """The others that do not hold this verdict on the victim."""
        return [agent.name for agent in self.others
                if finding(agent, self.victim.name)["verdict"] != wanted]

    def identities(self):
        """What each honest agent holds for the key and the address of each."""
        names = {agent.name for agent in self.play.honest}
        return {(agent.name, row["node"], row["key"], row["address"])
                for agent in self.play.honest for row in agent.ask("PEERS")["peers"]
                if row["node"] in names}

    def sent(self):
        """name -> (time of the first, number sent), by the log of the liar."""
        sent = {}
        for when, text in TOLD_LINE.findall(self.play.liar.log.read_text()):
            for word in filter(None, text.split(",")):
                name, number = word.split(":")
                first = sent[name][0] if name in sent else seconds_of(when)
                sent[name] = (first, int(number))
        return sent

    def withdraw(self):
        """While the liar speaks the victim withdraws its warning, and asks all others for an echo.
        Returns the number of others that miss either."""
        # This lie waits for a notice of the victim.
        early = set(self.names) - {"change"}
        agents.wait_until("the first lies", lambda: early <= set(self.sent()))
        self.hot.unlink()
        muted = set()
        if self.fails("the victim's withdrawal to be heard", lambda: not self.unheard("healthy"),
                      HEARD_SECONDS):
            muted |= set(self.unheard("healthy"))
        for agent in self.others if not muted else ():
            if self.fails(f"{agent.name} to answer {self.victim.name}", lambda agent=agent:
                          "round_trip_ns" in self.victim.ask(f"PING {agent.name}"), ECHO_SECONDS):
                muted.add(agent.name)
        agents.wait_until("all lies", lambda: set(self.names) <= set(self.sent()))
        return len(muted)

    def freeze(self):
        """Another node falls silent: in spite of the lie it is declared dead, and comes back."""
        node = self.play.agent(FROZEN)
        among = [agent for agent in self.play.honest if agent != node]
        node.freeze()
        since = time.monotonic()
        try:
            if not self.fails(f"{FROZEN}, which is silent, to be dead",
                              lambda: self.play.cluster.agree([FROZEN], "dead", among)):
                agents.say(f"{FROZEN} dead everywhere after {time.monotonic() - since:.1f} s")
        finally:
            node.thaw()
        self.fails(f"{FROZEN} to be back", lambda: self.play.cluster.agree(
            [FROZEN], "alive", self.play.honest))

    def events(self, kind, node=None):
        return [event for agent in self.play.honest
                for event in agent.events(kind, node, self.since[agent.name])]

    def named(self):
        """Seconds from the first lie to the first event that names the liar; None: none."""
        if self.admits("provable"):
            self.fails("the liar to be named", lambda: self.events("FORGED", LIAR), NAMED_SECONDS)
        found = [seconds_of(event["time"]) for event in self.events("FORGED", LIAR)]
        begun = [when for when, _ in self.sent().values()]
        return max(0.0, min(found) - min(begun)) if found else None

    def judge(self, sent, muted, named_s):
        honest = {agent.name for agent in self.play.honest} - {FROZEN}
        dead = {event["node"] for kind in ("DEAD", "LEFT") for event in self.events(kind)} & honest
        blamed = [event for event in self.events("VERDICT") if event["node"] in honest and
                  not event["text"].startswith(("healthy", "unknown", "none", "node-busy")) and
                  not (event["node"] == self.victim.name and "CheckHot" in event["text"])]
        blamed += [row for agent in self.play.honest for row in agent.ask("HEALTH")["findings"]
                   if row["node"] in honest and row["advice"] in ("drain", "drain-later")]
        invented = {row["node"] for agent in self.play.honest
                    for row in agent.ask("PEERS")["peers"] if row["node"].startswith("ghost")}
        if invented:
            self.faults.append(f"invented nodes are members: {sorted(invented)[:3]}")
        told = len(GONE_LINE.findall(self.out.read_text()))
        if dead and not self.admits("dies"):
            self.faults.append(f"held for dead: {sorted(dead)}")
        if blamed:
            self.faults.append(f"a verdict on an honest node: {blamed[0]}")
        if told:
            self.faults.append(f"{told} ranks heard of a loss")
        return Result(self.names, sent, len(dead), muted, len(blamed), told, named_s, self.faults)
