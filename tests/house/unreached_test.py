#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Public functions that no program reaches.

unreached_test.py SOURCE-ROOT BUILD-ROOT

A function that only tests call is unnecessary code. A function counts as reached if an object of
another file refers to it, or if product code mentions it more than once (a call from its own file).
Test hooks are in unreached_functions.txt, each with its reason. A hook without a test is an error.
"""

import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

import tap

PRODUCT = ("lib", "dataplane", "control", "agent", "perf")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def symbols(objects):
    """Return the functions that the objects define, and all names that they refer to."""
    said = subprocess.run(["nm", "-P", "-g", *objects], capture_output=True, text=True, check=True)
    rows = [line.split() for line in said.stdout.splitlines()]
    return ({row[0] for row in rows if len(row) > 1 and row[1] == "T"},
            {row[0] for row in rows if len(row) > 1 and row[1] == "U"})


def words(texts):
    """Count each identifier in the texts, without comments."""
    count = collections.Counter()
    for text in texts:
        count.update(re.findall(r"\b[A-Za-z_]\w*\b", COMMENT.sub("", text)))
    return count


def unreached(defined, wanted, count):
    """Return the defined functions that nothing calls."""
    return {name for name in defined - wanted
            if name != "main" and not name.startswith("__wrap_") and count[name] <= 1}


def product_objects():
    return [str(path) for folder in PRODUCT for path in (BUILD / folder).rglob("*.c.o")]


def product_texts():
    return [path.read_text(encoding="utf-8") for folder in PRODUCT
            for path in (ROOT / folder).rglob("*.c")]


def excepted():
    """Read names, one per line, each with a reason after #."""
    lines = (ROOT / "tests/house/unreached_functions.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.partition("#") for line in lines if line and not line.startswith("#")]
    nameless = [row[0] for row in rows if not row[2].strip()]
    assert not nameless, f"without a reason: {', '.join(nameless)}"
    return {row[0].strip() for row in rows}


def function_that_nothing_calls_is_found():
    count = words(["void a(void) {b();} // a() is told of\nvoid b(void) {}\nvoid c(void) {c2();}"])
    assert unreached({"a", "b", "c"}, {"c"}, count) == {"a"}


def every_public_function_is_reached_by_a_program():
    defined, wanted = symbols(product_objects())
    # The loader and libibverbs call the exports of the preloaded library; jobs call those of
    # libtocsin.
    exported = {line.strip().rstrip(";")
                for folder in ("dataplane/soft/preload", "lib/job", "lib/job/mpi")
                for path in (ROOT / folder).glob("*.map")
                for line in path.read_text(encoding="utf-8").splitlines()} - {"*"}
    alone = {name for name in unreached(defined, wanted, words(product_texts()))
             if not any(fnmatch.fnmatchcase(name, pattern) for pattern in exported)}
    new = sorted(alone - excepted())
    gone = sorted(excepted() - alone)
    assert not new, f"no program reaches {', '.join(new)}: remove it, or make it static"
    assert not gone, f"unreached_functions.txt names what is reached or gone: {', '.join(gone)}"


def every_hook_is_called_by_a_test():
    objects = [str(path) for path in (BUILD / "tests").rglob("*.c.o")]
    idle = sorted(excepted() - symbols(objects)[1])
    assert not idle, f"no test calls {', '.join(idle)}: remove it"


if __name__ == "__main__":
    ROOT, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    tap.run([
        ("a function that nothing calls is found", function_that_nothing_calls_is_found),
        ("every public function is reached by a program",
         every_public_function_is_reached_by_a_program),
        ("every hook is called by a test", every_hook_is_called_by_a_test),
    ])
