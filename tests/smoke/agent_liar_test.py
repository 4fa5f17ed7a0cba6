#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A member that lies, among seven honest ones: liars.py has the lies and what must hold.

    agent_liar_test.py BUILD-ROOT

`./dev bench hostile` tells each lie alone, and for longer.
"""

import sys

import agents
import liars
import tap

GROWN_MIB = 48


def tell(play, names):
    result = play.tell(names)
    agents.say(f"{result.sent} frames; named after {result.named_s} s; dead {result.dead}, "
               f"muted {result.muted}, verdicts {result.verdicts}, told {result.told}")
    assert not result.faults, "\n".join(result.faults)


def resident_mib(agent):
    with open(f"/proc/{agent.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def invent(play):
    before = {agent.name: resident_mib(agent) for agent in play.honest}
    tell(play, ["addresses"])
    grown = {agent.name: resident_mib(agent) - before[agent.name] for agent in play.honest}
    agents.say(f"grown by {max(grown.values()):.1f} MiB at most")
    assert max(grown.values()) < GROWN_MIB, grown


def main():
    # A new start or a refuted death of the victim would end what the other lies are about, and a
    # silent node takes long to be declared dead: the bench tells those lies.
    together = [name for name, lie in liars.LIES.items()
                if lie.holds and not (lie.freezes or lie.restarts or lie.dies)]
    with liars.Play(sys.argv[1]) as play:
        play.start()
        tap.run([
            ("no honest node is harmed by lies about it", lambda: tell(play, together)),
            ("a silent node is dead, and memory is bounded, while members are invented",
             lambda: invent(play)),
        ])


if __name__ == "__main__":
    main()
