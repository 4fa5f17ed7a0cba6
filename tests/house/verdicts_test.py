#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/verdicts.md lists every reason and verdict as the program defines it.

verdicts_test.py SOURCE-ROOT
"""

import pathlib
import re
import sys

import tap

# A statement may give one of two reasons.
GIVES_A_REASON = r'(?:finding_set\w*\(|reason = |return )[^;]*;'


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def rows_of(document, heading, columns):
    """Return the cells of the table under a heading, without code marks."""
    part = document.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    rows = [tuple(cell.strip().strip("`") for cell in row) for row in rows[2:]]
    assert rows and all(len(row) == columns for row in rows), rows
    return rows


def reasons_of(source):
    """Return (name, verdict, meaning) of verdict_text_reasons[]; a name may be a macro."""
    table = source.split("verdict_text_reasons[] = {", 1)[1].split("};", 1)[0]
    for macro, name in re.findall(r'#define (\w+) ("[A-Z]\w+")',
                                  text_of("control/verdict/engine/inside.h") +
                                  text_of("control/verdict/engine/include/verdict/observation.h")):
        table = table.replace(f"{{{macro},", f"{{{name},")
    joined = re.sub(r'"\s*"', "", table)
    return re.findall(r'\{\s*"(\w+)",\s*"([\w-]+)",\s*"([^"]+)"\s*\}', joined)


def verdicts_of(source):
    """Return (name, grade, advice) of rows[]."""
    found = re.findall(r'\{"([\w-]+)", VERDICT_GRADE_(\w+), VERDICT_ADVICE_(\w+)\}',
                       re.sub(r"\s+", " ", source))
    return [(name, grade.lower(), advice.lower().replace("_", "-"))
            for name, grade, advice in found]


def reasons_are_documented():
    wanted = reasons_of(text_of("control/verdict/engine/verdict_text.c"))
    assert len(wanted) > 20, wanted
    found = rows_of(text_of("docs/verdicts.md"), "Reasons", 3)
    assert found == wanted, set(found) ^ set(wanted)


def verdicts_are_documented():
    wanted = verdicts_of(text_of("control/verdict/engine/verdict.c"))
    assert len(wanted) == 15, wanted
    found = [row[:3] for row in rows_of(text_of("docs/verdicts.md"), "Verdicts", 4)]
    assert found == wanted, set(found) ^ set(wanted)


def every_reason_that_is_given_is_in_the_table():
    names = {name for name, _, _ in reasons_of(text_of("control/verdict/engine/verdict_text.c"))}
    given = set()
    for path in (ROOT / "control/verdict/engine").glob("*.c"):
        for statement in re.findall(GIVES_A_REASON, path.read_text(encoding="utf-8")):
            given |= set(re.findall(r'"([A-Z]\w+)"', statement))
    assert len(given) > 20, given
    assert given <= names, given - names


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    tap.run([
        ("docs/verdicts.md has the reasons of verdict_text.c", reasons_are_documented),
        ("docs/verdicts.md has the verdicts of verdict.c", verdicts_are_documented),
        ("every reason that is given is in the table", every_reason_that_is_given_is_in_the_table),
    ])
