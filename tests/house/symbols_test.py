#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Undefined symbols that objects may have.

symbols_test.py SOURCE-ROOT BUILD-ROOT

A poll step must not allocate, lock, log or make system calls. So release objects of *_fast.c only
use symbols of hot_symbols.txt and of other *_fast.c. The protocol core has no socket, clock, thread
or allocator. So objects of control/ras only use symbols of ras_symbols.txt and of each other. The
same holds for control/verdict/engine with control/fabric/probe (verdict_symbols.txt) and for
control/jobs/diagnosis (jobs_symbols.txt). control/fabric/pairing (pairing_symbols.txt) may also
allocate.
"""

import fnmatch
import pathlib
import subprocess
import sys
import tempfile

import tap


def nm(option, *objects):
    """Return symbol names of the objects: "-u" undefined ones, "-U" defined ones."""
    words = ["nm", "-P", "--undefined-only" if option == "-u" else "--defined-only", *objects]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in said.splitlines() if len(line.split()) > 1}


def allowed_from(path):
    """Read patterns, one per line; # starts the reason."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [words[0] for words in (line.split("#")[0].split() for line in lines) if words]


def strangers(objects, patterns):
    """Return undefined symbols that match no pattern and that no object defines."""
    if not objects:
        return set()
    wanted = nm("-u", *objects) - nm("-U", *objects)
    return {name for name in wanted
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}


def compiled(text):
    """Return undefined symbols of a probe that hot code must not use."""
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        target = str(pathlib.Path(name) / "probe.o")
        subprocess.run(["gcc", "-O2", "-fPIC", "-c", "-x", "c", "-o", target, "-"], input=text,
                       text=True, check=True)
        return strangers([target], allowed_from(HOT))


def probe_that_allocates_is_refused():
    text = "#include <stdlib.h>\nvoid *step(void);\nvoid *step(void) { return malloc(8); }\n"
    assert compiled(text) == {"malloc"}


def probe_that_calls_the_system_is_refused():
    text = "#include <unistd.h>\nint step(void);\nint step(void) { return close(3); }\n"
    assert compiled(text) == {"close"}


def probe_that_only_copies_is_accepted():
    text = "#include <string.h>\nvoid step(char *a, char *b, unsigned long n);\n"
    text += "void step(char *a, char *b, unsigned long n) { memcpy(a, b, n); }\n"
    assert compiled(text) == set()


def sources(patterns):
    found = [path.relative_to(ROOT) for one in patterns.split() for path in ROOT.glob(one)]
    return [path for path in found if not path.parts[0].startswith("build")]


def objects_test(source_pattern, object_pattern, allowed):
    def test():
        wanted = {path.name + ".o" for path in sources(source_pattern)}
        if not wanted:
            raise tap.Skip(f"there is no {source_pattern} yet")
        # Only objects of the libraries: a test may compile the same source with fakes.
        objects = [str(path) for path in sorted(BUILD.glob(object_pattern))
                   if any(path.name.endswith(name) for name in wanted)]
        assert len(objects) >= len(wanted), f"{wanted} are not all built: {objects}"
        found = strangers(objects, allowed_from(allowed))
        assert not found, f"not allowed by {allowed.name}: {' '.join(sorted(found))}"
    return test


def main():
    tap.run([
        ("a hot object that allocates is refused", probe_that_allocates_is_refused),
        ("a hot object that calls the system is refused", probe_that_calls_the_system_is_refused),
        ("a hot object that only copies is accepted", probe_that_only_copies_is_accepted),
        ("hot objects ask for nothing outside hot_symbols.txt",
         objects_test("**/*_fast.c", "**/*.a.p/*_fast.c.o", HOT)),
        ("the protocol core asks for nothing outside ras_symbols.txt",
         objects_test("control/ras/**/*.c", "control/ras/*.a.p/*.o", RAS)),
        ("the verdict engine asks for nothing outside verdict_symbols.txt",
         objects_test("control/verdict/engine/*.c control/fabric/probe/*.c",
                      "control/verdict/engine/*.a.p/*.o", VERDICT)),
        ("the judgement of jobs asks for nothing outside jobs_symbols.txt",
         objects_test("control/jobs/diagnosis/*.c", "control/jobs/diagnosis/*.a.p/*.o", JOBS)),
        ("pairing asks for nothing outside pairing_symbols.txt",
         objects_test("control/fabric/pairing/*.c", "control/*.a.p/fabric_pairing_*.o", PAIRING)),
    ])


if __name__ == "__main__":
    ROOT, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    HOT = ROOT / "tests/house/hot_symbols.txt"
    RAS = ROOT / "tests/house/ras_symbols.txt"
    VERDICT = ROOT / "tests/house/verdict_symbols.txt"
    JOBS = ROOT / "tests/house/jobs_symbols.txt"
    PAIRING = ROOT / "tests/house/pairing_symbols.txt"
    main()
