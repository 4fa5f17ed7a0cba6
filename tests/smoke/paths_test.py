#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tocsin paths --matrix against a stand-in for the agent: squares of all sizes, in the terminal and
as pictures, of a sound agent and of a hostile one.

    paths_test.py TOCSIN
"""

import json
import os
import pathlib
import pty
import random
import re
import sys
import tempfile
import xml.etree.ElementTree

import tap
from stand_in import HOSTILE, StandIn, Tocsin, as_json, expect, expect_fit, expect_harmless

tocsin = Tocsin(sys.argv[1])

COLUMNS = ["node", "reads", "seen", "median_ns", "baseline_ns", "lost_permille", "answered", "lost"]
GOOD, STANDING, DEGRADED, LOSSY, SILENT, NO_PAIR = range(6)
SEEN = ["good", "standing", "degraded", "lossy", "silent", "no-pair"]
SVG = "{http://www.w3.org/2000/svg}"


def matrix(count, cells=None, names=None, dead=(), **changed):
    """What MATRIX says of so many nodes, who all read each other well where cells say nothing."""
    dice = random.Random(count)
    cells = cells or {}
    names = names or [f"node{n + 1:03}" for n in range(count)]
    order = list(range(count))
    dice.shuffle(order)  # the agent's order is none
    place = {n: order.index(n) for n in range(count)}
    rows, rails = [], []
    for a in range(count):
        for b in range(count):
            row = cells.get((a, b), (GOOD, 20000 + dice.randrange(3000), 20000, 0, 1200, 0))
            if a != b and row is not None:
                rows.append([place[a], place[b], *row[:6]])
                rails += [[place[a], place[b], stripe] for stripe in row[6:]]
    return {"cluster": "blue", "at": "2026-11-21T16:05:22.132Z", "members": count,
            "answered": count, "left_out": 0, "seen": SEEN, "columns": COLUMNS, "cells": rows,
            "rails": rails,
            "nodes": [{"node": names[n], "state": "dead" if n in dead else "alive"}
                      for n in order], **changed}


BAD = {(0, 1): (SILENT, 0, 20000, 0, 1200, 7), (2, 1): (SILENT, 0, 20000, 0, 1200, 9),
       (1, 2): (DEGRADED, 310000, 26000, 0, 1200, 0), (3, 0): (LOSSY, 21000, 20000, 412, 1170, 30),
       (2, 0): (STANDING, 21000, 20000, 0, 1200, 0), (0, 3): (NO_PAIR, 0, 0, 0, 0, 0), (1, 3): None}


def serve(document):
    return StandIn(lambda line, in_json: as_json(document) if line == "MATRIX" else b"OK\n")


def run(document, *arguments, **environment):
    with serve(document) as agent:
        return tocsin.ask(agent, "paths", "--matrix", *arguments, **environment)


def draw(document):
    """The picture's elements, and its text."""
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "a.svg"
        done = run(document, "--svg", str(file))
        expect((done.returncode, done.stderr), (0, ""))
        expect(sorted(os.listdir(directory)), ["a.svg"])
        expect(file.stat().st_mode & 0o777, 0o644)
        return xml.etree.ElementTree.fromstring(file.read_bytes()), file.read_text()


def few_nodes_are_shown_with_their_times():
    done = run(matrix(4, BAD))
    expect((done.returncode, done.stderr), (0, ""))
    expect_fit(done.stdout)
    rows = [line.split() for line in done.stdout.splitlines()]
    expect(done.stdout.splitlines()[0],
           "11 paths: 2 silent, 1 standing, 1 lossy, 1 degraded, 1 no pair, 5 good")
    expect(rows[3], ["node001", "node002", "node003", "node004"])
    expect([row[0] for row in rows[4:8]], ["node001", "node002", "node003", "node004"])
    expect(rows[4][1:3] + rows[4][-2:], ["\\", "silent", "no", "pair"])
    expect(rows[5][-4:], ["310", "us", "D", "-"])
    assert rows[7][1:4] == ["21", "us", "L"] and "stands" in rows[6], done.stdout
    assert ("  node001 reads node002: silent, 7 of 1207 lost; 1 other reads it badly too\n"
            in done.stdout), done.stdout
    assert "node002 reads node003: degraded, 310 us, usually 26 us, 0 of 1200 lost" in done.stdout


def nodes_with_several_rails_have_a_stripe_below_their_times():
    cells = {(0, 1): (LOSSY, 21000, 20000, 412, 1170, 30, "..L."),
             (0, 2): (GOOD, 21000, 20000, 0, 1170, 0, "."*16),
             (1, 0): (SILENT, 0, 20000, 0, 1170, 30, "X.?D"),
             (2, 0): (GOOD, 20000, 20000, 0, 1170, 0, "<b>\x1b"),  # nobody says that
             (2, 1): (GOOD, 20000, 20000, 0, 1170, 0, "")}
    done = run(matrix(3, cells))
    expect_fit(done.stdout)
    lines = done.stdout.splitlines()
    begin = [n for n, line in enumerate(lines) if line.startswith("  its rails ")]
    expect(len(begin), 2)
    expect(lines[begin[0]].split()[2:], ["..L.", "."*8])
    expect(lines[begin[0] + 1].split(), ["."*8])  # all sixteen are shown
    expect(lines[begin[1]].split()[2:], ["X.?D"])
    assert "\nRails, in order of their names: . good  D degraded" in done.stdout, done.stdout
    assert "Rails, in order" not in run(matrix(3)).stdout


def signs(stdout):
    """The square of a larger cluster, row by row."""
    return [match[1] for line in stdout.splitlines()
            if (match := re.match(r" *\d+ node\d.{10}(.*)$", line))]


def more_nodes_are_shown_as_signs_that_need_no_colour():
    for count in (9, 40, 64, 80):
        done = run(matrix(count, BAD, dead=[5]))
        expect((done.returncode, done.stderr), (0, ""))
        expect_fit(done.stdout)
        assert "\x1b" not in done.stdout
        square = signs(done.stdout)
        expect(len(square), count)
        square = [row[::2] if count <= 40 else row for row in square]
        expect([len(row) for row in square], [count] * count)
        expect(square[0][:4], "\\X.?")
        expect(square[1][:4], ".\\D ")
        expect(square[2][:4], "SX\\.")
        expect((square[3][0], square[4][5], square[5][5]), ("L", "x", "\\"))
        assert "X silent  S standing  L lossy  D degraded  ? no pair  x dead" in done.stdout
        assert re.search(r"From  \.  2\d us   :  ", done.stdout), done.stdout


def hundreds_of_nodes_are_grouped_and_it_says_so():
    for count, size in ((81, 2), (300, 4), (500, 7)):
        done = run(matrix(count, BAD))
        expect((done.returncode, done.stderr), (0, ""))
        expect_fit(done.stdout)
        groups = (count + size - 1) // size
        assert (f"{count} nodes in {groups} groups of {size}, by name: a cell shows the worst of "
                f"up to {size * size} paths\n") in done.stdout, done.stdout
        square = signs(done.stdout)
        expect((len(square), square[0][0]), (groups, "X"))


def who_did_not_answer_and_what_was_left_out_is_said():
    done = run(matrix(4, answered=3, left_out=2))
    assert "1 of 4 agents did not answer: how they read others is not shown\n" in done.stdout
    assert "2 parts of answers were left out: there were too many paths\n" in done.stdout
    drawn = draw(matrix(4, answered=3, left_out=2))[1]
    assert "1 of 4 agents did not answer" in drawn and "2 parts of answers" in drawn


def on_a_terminal(document, **environment):
    """What a terminal gets; it is read at the end only, so it must not be long."""
    ours, theirs = pty.openpty()
    with serve(document) as agent:
        done = tocsin("paths", "--matrix", *agent.where, stdout=theirs, **environment)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # all was read
    os.close(ours)
    expect(done.returncode, 0)
    return shown


def without_colour(shown):
    return re.sub(rb"\x1b\[[0-9;]*m", b"", shown).replace(b"\r", b"").decode()


def colour_is_for_terminals_only():
    shown = on_a_terminal(matrix(9, BAD))
    assert b"\x1b[1;97;48;5;160mX \x1b[0m" in shown, shown
    # A terminal has shorter lines.
    expect(without_colour(shown).split(), run(matrix(9, BAD)).stdout.split())


def a_terminal_gets_80_columns():
    cells = dict(BAD)
    cells[(0, 2)] = (GOOD, 21000, 20000, 0, 1170, 0, "."*16)
    for count in (2, 6, 7, 8, 9, 30, 31, 60, 61, 300):
        shown = without_colour(on_a_terminal(matrix(count, cells), NO_COLOR="1"))
        for line in shown.splitlines():
            assert len(line) <= 80, (count, line)
    names = [line.split() for line in
             without_colour(on_a_terminal(matrix(8, cells))).splitlines()]
    for first in (1, 5):  # two blocks, each with all rows
        expect(names.count([f"node{n:03}" for n in range(first, first + 4)]), 1)


def picture_is_xml_with_a_cell_and_a_tooltip_for_each_pair():
    for count in (1, 2, 4, 8, 12, 64, 128):
        root, _ = draw(matrix(count, BAD, dead=[5]))
        cells = root.findall(f"{SVG}g")
        expect(len(cells), count * count)
        for cell in cells:
            assert cell.find(f"{SVG}title").text and cell.find(f"{SVG}rect") is not None
        texts = [text.text for text in root.iter(f"{SVG}text")]
        assert "How the nodes of blue read each other over RDMA" in texts, texts
        if count > 1:
            assert {"node that is read →", "← node that reads", "median time to read 8 bytes",
                    "silent: nothing comes back", "an agent is dead",
                    "not read yet"} <= set(texts), texts
            scale = [text for text in root.iter(f"{SVG}text")
                     if text.text in ("median time to read 8 bytes",)
                     or (text.text or "").endswith(" (the fastest)")]
            heading, first = (int(text.get("y")) for text in scale)
            assert first - heading >= 20, (heading, first)  # a line, as between all others
        width, height = int(root.get("width")), int(root.get("height"))
        for rect in root.iter(f"{SVG}rect"):
            assert int(rect.get("x", 0)) + int(rect.get("width")) <= width
            assert int(rect.get("y", 0)) + int(rect.get("height")) <= height
        kinds = [cell.find(f"{SVG}rect").get("class") for cell in cells]
        if count >= 4:
            expect(kinds[:4], ["self", "silent", kinds[2], "nopair"])
            assert re.fullmatch("l[0-7]", kinds[2]) and kinds[count + 3] == "nothing", kinds
        if count >= 8:
            expect((kinds[5], kinds[5 * count + 5]), ("dead", "self"))


def picture_of_hundreds_is_grouped_and_stays_small():
    root, text = draw(matrix(400, BAD))
    expect(len(root.findall(f"{SVG}g")), 100 * 100)
    assert "400 nodes in 100 groups of 4" in text and len(text) < 3 << 20, len(text)


def names_of_others_break_neither_picture_nor_terminal():
    names = ["<script>alert(1)</script>", "a&b\"c'd", "]]>", "\ufffe\uffff\x01\x1f", HOSTILE,
             "x" + "\u00e9" * 60, "\u20ac" * 40, "n" * 200, ""]
    document = matrix(9, BAD, names=names, cluster="</title><script>&")
    root, text = draw(document)
    assert not list(root.iter(f"{SVG}script")) and "\x1b" not in text
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert any("<script>alert(1)</script>" in title for title in titles), titles
    done = run(document)
    expect(done.returncode, 0)
    expect_fit(done.stdout)
    expect_harmless(done.stdout)


def file_that_cannot_be_written_is_named_and_nothing_is_left():
    with tempfile.TemporaryDirectory() as directory:
        there = pathlib.Path(directory) / "there.svg"
        there.write_text("as it was")
        fifo = pathlib.Path(directory) / "fifo"
        os.mkfifo(fifo)
        link = pathlib.Path(directory) / "link.svg"
        link.symlink_to("there.svg")
        for file, why in ((f"{directory}/none/a.svg", "No such file or directory"),
                          (directory, "Is a directory"), (f"{there}/a", "Not a directory"),
                          ("", "No such file or directory"), ("x" * 5000, "File name too long"),
                          (str(fifo), "not a regular file"), (str(link), "not a regular file")):
            done = run(matrix(4), "--svg", file)
            expect((done.returncode, done.stdout), (1, ""))
            assert "--svg: " in done.stderr and why in done.stderr, done.stderr
        expect(there.read_text(), "as it was")
        expect(sorted(os.listdir(directory)), ["fifo", "link.svg", "there.svg"])
        assert link.is_symlink()
        expect(run(matrix(4), "--svg", str(there)).returncode, 0)
        assert there.read_text().endswith("</svg>\n")


def json_is_the_answer_and_comes_with_the_picture():
    document = matrix(4, BAD)
    expect(json.loads(run(document, "--json").stdout), document)
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "a.svg"
        expect(json.loads(run(document, "--json", "--svg", str(file)).stdout), document)
        assert file.exists()


def options_that_do_not_go_together_are_told_apart():
    for arguments, why in ((["--svg", "a"], "--svg needs --matrix"),
                           (["--all", "--matrix"], "give it without --all"),
                           (["--matrix", "--svg"], "needs a value"), (["n1"], "takes no argument")):
        with serve(matrix(4)) as agent:
            done = tocsin.ask(agent, "paths", *arguments)
        expect(done.returncode, 2)
        assert why in done.stderr, done.stderr


def answer_that_is_no_matrix_is_refused():
    good = matrix(4)
    for document in ({}, {**good, "nodes": 7}, {**good, "nodes": [{"node": "n1"}]},
                     {**good, "nodes": [{"node": 1, "state": "alive"}]},
                     {**good, "cells": [[0, 1, 0, 1, 1, 0, 1]]},
                     {**good, "cells": [[0, 4, 0, 1, 1, 0, 1, 0]]},
                     {**good, "cells": [7]}):
        done = run(document)
        expect((done.returncode, done.stdout), (3, ""))
        assert "not a matrix" in done.stderr, done.stderr
    # Odd, but harmless.
    largest = 2 ** 63 - 1
    for document in ({**good, "cells": []}, {**good, "nodes": [], "cells": []},
                     {**good, "seen": 7}, {**good, "cluster": 7, "members": -1, "answered": "x"},
                     {**good, "cells": [[0, 1, largest, largest, largest, largest, largest,
                                         largest], [1, 0, 0, -1, -1, -1, -1, -1]]}):
        done = run(document)
        expect((done.returncode, done.stderr), (0, ""))
        expect_fit(done.stdout)
        draw(document)


def agent_that_says_no_is_heard():
    with StandIn(lambda line, in_json: as_json({"error": "too many questions"})) as agent:
        done = tocsin.ask(agent, "paths", "--matrix", "--svg", "/nonexistent/a")
    expect((done.returncode, done.stdout), (1, ""))
    assert "too many questions" in done.stderr, done.stderr


TESTS = [
    few_nodes_are_shown_with_their_times,
    nodes_with_several_rails_have_a_stripe_below_their_times,
    more_nodes_are_shown_as_signs_that_need_no_colour,
    hundreds_of_nodes_are_grouped_and_it_says_so,
    who_did_not_answer_and_what_was_left_out_is_said,
    colour_is_for_terminals_only,
    a_terminal_gets_80_columns,
    picture_is_xml_with_a_cell_and_a_tooltip_for_each_pair,
    picture_of_hundreds_is_grouped_and_stays_small,
    names_of_others_break_neither_picture_nor_terminal,
    file_that_cannot_be_written_is_named_and_nothing_is_left,
    json_is_the_answer_and_comes_with_the_picture,
    options_that_do_not_go_together_are_told_apart,
    answer_that_is_no_matrix_is_refused,
    agent_that_says_no_is_heard,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
