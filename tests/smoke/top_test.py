#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tocsin top, on a terminal of the test's own and on a pipe.

    top_test.py TOCSIN
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import patience
import tap
from stand_in import (HOSTILE, Hang, StandIn, Tocsin, expect, expect_fit, expect_harmless, finding,
                      health, link, peer, ring)

tocsin = Tocsin(sys.argv[1])
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
PATIENCE_S = 60


class Terminal:
    """A terminal with a program on it, and what it shows now."""

    def __init__(self, rows, columns, *arguments, **environment):
        self.parent, self.child = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.child)
        self.said = ""
        self.process = subprocess.Popen(
            [tocsin.path, *arguments], stdin=self.child, stdout=self.child, stderr=self.child,
            env=tocsin.environment(**environment), start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.child)
        os.close(self.parent)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if not select.select([self.parent], [], [], seconds)[0]:
            return False
        self.said += os.read(self.parent, 65536).decode()
        return True

    def screen(self):
        """The last view that was drawn to its end, a line each, without colours."""
        views = self.said.split("\x1b[H")
        whole = [view for view in views[1:] if "\x1b[J" in view]
        if not whole:
            return []
        lines = whole[-1].split("\x1b[J")[0].split("\x1b[K\r\n")
        return [re.sub("\x1b\\[[0-9;]*m", "", line) for line in lines[:-1]]

    def until(self, what, seen):
        clock = patience.FairClock()
        while not seen():
            if clock.read() > PATIENCE_S:
                raise AssertionError(f"{what}: not on {self.said[-800:]!r}")
            self.read(0.1)

    def shows(self, words):
        """A view with these words in one of its lines."""
        self.until(words, lambda: any(words in line for line in self.screen()))

    def ended(self):
        """The exit status; all it said has been read then."""
        self.until("the end", lambda: self.process.poll() is not None)
        while self.read(0):
            pass
        return self.process.returncode

    def expect_restored(self):
        assert LEAVE in self.said[self.said.rindex(ENTER):], self.said[-200:]
        expect(termios.tcgetattr(self.child), self.before)

    def expect_within(self):
        screen = self.screen()
        assert len(screen) < self.rows, (self.rows, screen)
        for line in screen:
            assert len(line) <= self.columns, line
            expect_harmless(line)


def press(terminal, keys):
    os.write(terminal.parent, keys.encode())


def it_draws_the_whole_and_q_gives_the_terminal_back():
    told = health(grade="critical", alive=2, dead=1, findings=[finding("n2")])
    with StandIn(ring(told, [peer("n3"), peer("n1"), peer("n2", "dead")])) as agent:
        with Terminal(40, 100, "top", *agent.where) as terminal:
            terminal.shows("critical: 2 of 3 agents answer; cluster c, as n1 sees it")
            for words in ("q quits", "dead             1  n2", "RING  + alive", "+n1  xn2  +n3",
                          "n2                 dead", "links  2 up", "LINK ", "EVENTS",
                          "suspicions 4 (3 cleared), deaths 1"):
                terminal.shows(words)
            terminal.expect_within()
            assert "\x1b[1;31mxn2\x1b[0m" in terminal.said
            press(terminal, "q")
            expect(terminal.ended(), 0)
            terminal.expect_restored()


def evidence_that_is_too_long_ends_in_a_mark():
    told = health(grade="critical", alive=2, dead=1, findings=[finding("n2")])
    for columns, words in ((80, "its host answers, its ~"), (120, finding("n2")["evidence"])):
        with StandIn(ring(told)) as agent, Terminal(40, columns, "top", *agent.where) as terminal:
            terminal.shows(words)
            terminal.expect_within()
            press(terminal, "q")
            expect(terminal.ended(), 0)


def it_draws_anew_each_second_and_ends_by_itself_after_count():
    with StandIn(ring()) as agent, Terminal(24, 80, "top", "--count=3", *agent.where) as terminal:
        expect(terminal.ended(), 0)
        expect(terminal.said.count("\x1b[H"), 3)
        expect(agent.lines.count("HEALTH"), 3)
        expect(sum(line.startswith("CLIENT PROTOCOL") for line in agent.lines), 1)
        terminal.expect_restored()


def another_size_is_drawn_into():
    names = [peer(f"node{n:03}") for n in range(300)]
    with StandIn(ring(health(alive=300), names)) as agent:
        with Terminal(40, 100, "top", *agent.where) as terminal:
            terminal.shows("+" * 100)
            for rows, columns in ((24, 80), (10, 40), (4, 20), (60, 200)):
                drawn = terminal.said.count("\x1b[J")
                terminal.resize(rows, columns)
                terminal.process.send_signal(signal.SIGWINCH)
                terminal.until("a view", lambda drawn=drawn: terminal.said.count("\x1b[J") > drawn)
                terminal.expect_within()
            terminal.shows("+" * 200)
            press(terminal, "q")
            expect(terminal.ended(), 0)
            terminal.expect_restored()


def ten_thousand_nodes_are_counted_not_listed():
    dead = [finding(f"n{n:05}") for n in range(1, 9000, 2)]
    told = health(grade="critical", alive=5500, dead=4500, findings=dead)
    with StandIn(ring(told, links=[link(f"n{n}") for n in range(28)])) as agent:
        for rows, columns in ((24, 80), (50, 132)):
            with Terminal(rows, columns, "top", *agent.where) as terminal:
                terminal.shows("critical: 5500 of 10000 agents")
                terminal.shows("more: tocsin health")
                terminal.shows("EVENTS")
                terminal.expect_within()
                press(terminal, "q")
                expect(terminal.ended(), 0)
        assert "PEERS" not in agent.lines, agent.lines


def every_signal_gives_the_terminal_back():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT,
                   signal.SIGSEGV, signal.SIGPIPE):
        with StandIn(ring()) as agent, Terminal(24, 80, "top", *agent.where) as terminal:
            terminal.shows("q quits")
            terminal.process.send_signal(number)
            expect(terminal.ended(), -number)
            terminal.expect_restored()


def a_stop_gives_the_terminal_to_the_shell_and_takes_it_again():
    with StandIn(ring()) as agent, Terminal(24, 80, "top", *agent.where) as terminal:
        terminal.shows("q quits")
        terminal.process.send_signal(signal.SIGTSTP)
        until = time.monotonic() + PATIENCE_S
        while os.waitid(os.P_PID, terminal.process.pid,
                        os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is None:
            assert time.monotonic() < until
            terminal.read(0.05)
        terminal.until("the way out", lambda: terminal.said.endswith(LEAVE))
        expect(termios.tcgetattr(terminal.child), terminal.before)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until("the way in", lambda: terminal.said.count(ENTER) == 2)
        terminal.until("a view", lambda: "\x1b[J" in terminal.said.split(ENTER)[2])
        press(terminal, "q")
        expect(terminal.ended(), 0)
        terminal.expect_restored()


def a_terminal_that_goes_away_ends_it():
    with StandIn(ring()) as agent:
        terminal = Terminal(24, 80, "top", *agent.where)
        terminal.shows("q quits")
        os.close(terminal.child)
        os.close(terminal.parent)
        terminal.process.wait(patience.HANG_SECONDS)


def an_agent_that_is_silent_does_not_hold_the_keys():
    facts = ring()
    state = {"asked": 0}

    def answer(line, in_json):
        state["asked"] += line == "HEALTH"
        if state["asked"] > 1:
            raise Hang
        return facts(line, in_json)

    with StandIn(answer) as agent, Terminal(24, 80, "top", *agent.where) as terminal:
        terminal.shows("q quits")
        terminal.until("the second question", lambda: state["asked"] > 1)
        press(terminal, "q")
        expect(terminal.ended(), 0)
        terminal.expect_restored()


def an_agent_that_goes_away_is_waited_for():
    facts = ring()
    state = {"away": False}

    def answer(line, in_json):
        return None if state["away"] else facts(line, in_json)

    with StandIn(answer) as agent, Terminal(24, 100, "top", *agent.where) as terminal:
        terminal.shows("ok: 3 of 3 agents answer")
        state["away"] = True
        terminal.shows("no answer: the agent on")
        terminal.shows("ok: 3 of 3 agents answer")  # what was known last
        state["away"] = False
        terminal.until("the view", lambda: not any("no answer" in line
                                                   for line in terminal.screen()))
        press(terminal, "q")
        expect(terminal.ended(), 0)


def no_order_to_the_terminal_comes_through():
    told = health(grade=HOSTILE, node=HOSTILE, cluster=HOSTILE, dead=1,
                  findings=[finding(HOSTILE, evidence=HOSTILE)])
    with StandIn(ring(told, [peer(HOSTILE), peer("n1")], links=[link(HOSTILE)])) as agent:
        with Terminal(40, 120, "top", *agent.where) as terminal:
            terminal.shows("n\\x1b[31m")
            terminal.expect_within()
            press(terminal, "q")
            expect(terminal.ended(), 0)


def on_a_pipe_it_is_a_line_a_second():
    with StandIn(ring()) as agent:
        done = tocsin.ask(agent, "top", "--count", "2")
        expect((done.returncode, done.stderr, done.stdout.count("\n")), (0, "", 2))
        expect_fit(done.stdout)
        for line in done.stdout.splitlines():
            assert line.split(" ", 1)[1].startswith("ok: alive 3, suspect 0"), line
        done = tocsin.ask(agent, "top", "--json", "--count", "2")
        for line in done.stdout.splitlines():
            expect(json.loads(line)["health"]["alive"], 3)


def on_a_pipe_an_agent_that_goes_away_is_said_in_its_line():
    facts = ring()
    state = {"asked": 0}

    def answer(line, in_json):
        state["asked"] += line == "HEALTH"
        return None if state["asked"] == 2 else facts(line, in_json)

    with StandIn(answer) as agent:
        done = tocsin.ask(agent, "top", "--count", "3")
    lines = done.stdout.splitlines()
    expect((done.returncode, len(lines)), (0, 3))
    assert " no answer: the agent on " in lines[1] and " ok: " in lines[2], lines
    with StandIn(lambda *_: None) as agent:
        expect(tocsin.ask(agent, "top").returncode, 3)


TESTS = [
    it_draws_the_whole_and_q_gives_the_terminal_back,
    evidence_that_is_too_long_ends_in_a_mark,
    it_draws_anew_each_second_and_ends_by_itself_after_count,
    another_size_is_drawn_into,
    ten_thousand_nodes_are_counted_not_listed,
    every_signal_gives_the_terminal_back,
    a_stop_gives_the_terminal_to_the_shell_and_takes_it_again,
    a_terminal_that_goes_away_ends_it,
    an_agent_that_is_silent_does_not_hold_the_keys,
    an_agent_that_goes_away_is_waited_for,
    no_order_to_the_terminal_comes_through,
    on_a_pipe_it_is_a_line_a_second,
    on_a_pipe_an_agent_that_goes_away_is_said_in_its_line,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
