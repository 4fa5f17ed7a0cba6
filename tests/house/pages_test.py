#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""References of pages exist: functions and files of the tour and the glossary, links of all pages.

pages_test.py SOURCE-ROOT
"""

import pathlib
import re
import sys

import tap

WORDS_MAX, PARAGRAPH_WORDS_MAX = 5000, 80
PLACE = re.compile(r"`([\w./-]+\.(?:c|h|py)):(\w+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FILE = re.compile(r"`([\w-]+(?:/[\w.-]+)+)`")
SOURCE = re.compile(r"`<?([\w./-]+\.[ch])>?`")
CALL = re.compile(r"`(\w+)\(\)`")


def defines(text, function):
    """Return whether the source defines the function at the start of a line."""
    return re.search(rf"^(?!\s)(?:[^\n;]*[\s*])?{function}\((?:[^;{{]|\n)*\)\s*{{", text,
                     re.MULTILINE) is not None


def missing(text):
    """Return the references of the text that do not exist."""
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


def broken_links(path):
    """Return links of the page whose target file does not exist. Anchors and URLs are ignored."""
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    return [f"{path.relative_to(ROOT)}: {target}" for target in targets
            if "://" not in target and not (path.parent / target).exists()]


def check_links():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")]
    assert len(pages) > 10, "the pages are elsewhere"
    wrong = [line for page in pages for line in broken_links(page)]
    assert not wrong, "\n".join(wrong)


def check_page(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert PLACE.search(text) or FILE.search(text), f"{name} points at nothing"
    wrong = missing(text)
    assert not wrong, "\n".join(wrong)


def stale_names(page, text, sources, words):
    """Return sources and functions that the text names but that no longer exist."""
    gone = [name for name in SOURCE.findall(text)
            if not any(("/" + source).endswith("/" + name) for source in sources)]
    gone += [f"{name}()" for name in CALL.findall(text) if name not in words]
    return [f"{page}: {name}" for name in gone]


def test_stale_names_are_told():
    said = stale_names("page", "`a/b.c` `c.h` `<d/c.h>` `gone.c` `run()` `walk()`",
                       ["x/a/b.c", "x/d/c.h"], {"run"})
    assert said == ["page: gone.c", "page: walk()"], said


def check_names():
    sources = {str(path.relative_to(ROOT)): path for folder in
               ("lib", "dataplane", "control", "agent", "perf", "tests", "vendor")
               for pattern in ("*.c", "*.h") for path in (ROOT / folder).rglob(pattern)}
    words = {word for path in sources.values()
             for word in re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace"))}
    wrong = [line for page in [ROOT / "ARCHITECTURE.md", *(ROOT / "docs/internals").glob("*.md")]
             for line in stale_names(page.name, page.read_text(encoding="utf-8"), sources, words)]
    assert not wrong, "\n".join(wrong)


def check_length():
    """Overviews must be short, because they are read as a whole: details have their own pages."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    count = len(text.split())
    assert count <= WORDS_MAX, f"{count} words, {WORDS_MAX} at most: details go to docs/internals"
    long = [part[:60] for part in re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n")
            if not part.startswith("|") and len(part.split()) > PARAGRAPH_WORDS_MAX]
    assert not long, f"paragraphs of over {PARAGRAPH_WORDS_MAX} words: {long}"


ROOT = pathlib.Path(sys.argv[1])
tap.run([
    ("a definition is told from a declaration and a call", test_definition_is_found),
    ("a place that does not exist is told", test_wrong_places_are_told),
    ("each function of the tour exists", lambda: check_page("tour.md")),
    ("each file of the glossary exists", lambda: check_page("glossary.md")),
    ("each link of a page leads to a file", check_links),
    ("a name of what is gone is told", test_stale_names_are_told),
    ("each source and function that pages of internals name exists", check_names),
    ("ARCHITECTURE.md is an overview of short paragraphs", check_length),
])
