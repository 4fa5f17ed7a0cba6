#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What docs/tour.md and docs/glossary.md point at exists.

    tour_test.py SOURCE-ROOT
"""

import pathlib
import re
import sys

import tap

PLACE = re.compile(r"`([\w./-]+\.(?:c|h|py)):(\w+)`")
FILE = re.compile(r"`([\w-]+(?:/[\w.-]+)+)`")


def defines(text, function):
    """Whether the source text has the body of such a function, at the start of a line."""
    return re.search(rf"^(?!\s)(?:[^\n;]*[\s*])?{function}\((?:[^;{{]|\n)*\)\s*{{", text,
                     re.MULTILINE) is not None


def missing(text):
    """What the text points at and is not there."""
    wrong = []
    for name, function in PLACE.findall(text):
        path = ROOT / name
        if not path.is_file():
            wrong.append(f"{name} does not exist")
        elif not defines(path.read_text(encoding="utf-8"), function):
            wrong.append(f"{name} has no function {function}")
    wrong += [f"{name} does not exist" for name in FILE.findall(text)
              if not (ROOT / name).exists()]
    return wrong


def test_definition_is_found():
    assert defines("static int ask(void) {\n}\n", "ask")
    assert defines("static void\nask(\n\tint a\n) {\n", "ask")
    assert not defines("int ask(void);\n", "ask")
    assert not defines("\tif (ask(1)) {\n", "ask")
    assert not defines("static int task(void) {\n", "ask")


def test_wrong_places_are_told():
    assert missing("`docs/none.c:run`") == ["docs/none.c does not exist"]
    assert missing("`lib/clock.c:no_such_function`") == [
        "lib/clock.c has no function no_such_function"]
    assert missing("`lib/nowhere`") == ["lib/nowhere does not exist"]


def check_page(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert PLACE.search(text) or FILE.search(text), f"{name} points at nothing"
    wrong = missing(text)
    assert not wrong, "\n".join(wrong)


ROOT = pathlib.Path(sys.argv[1])
tap.run([
    ("a definition is told from a declaration and a call", test_definition_is_found),
    ("a place that does not exist is told", test_wrong_places_are_told),
    ("each function of the tour exists", lambda: check_page("tour.md")),
    ("each file of the glossary exists", lambda: check_page("glossary.md")),
])
