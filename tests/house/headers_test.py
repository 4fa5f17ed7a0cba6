#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every public header compiles alone, with each available compiler and all warnings.

headers_test.py SOURCE-ROOT BUILD-ROOT
"""

import pathlib
import re
import shutil
import sys

import components
import tap

COMPILERS = ("gcc", "clang-14")
INCLUDED = re.compile(r"<([\w./-]+\.h)>")


def users_by_header(lines):
    """Return the compile lines of the units that include each header, by the name between <>."""
    users = {}
    for line in (line for every in lines.values() for line in every):
        text = pathlib.Path(ROOT, line.source).read_text(encoding="utf-8")
        for header in set(INCLUDED.findall(text)):
            users.setdefault(header, []).append(line)
    return users


def flags_for(header, component, lines, users):
    """Return the flags of a unit that includes the header (dataplane/dpdk.h has special flags),
    else those of a unit of its component, else those of lib, which every component includes."""
    start = components.SOURCE_DIRECTORIES[component]
    own = [line for line in users if line.source.startswith(start)]
    return (own or lines.get(component) or users or lines["lib"])[0].flags


def header_test(header, compiler, flags):
    def test():
        if shutil.which(compiler) is None:
            raise tap.Skip(f"{compiler} is not installed")
        # Twice: the second include must add nothing.
        text = f"#include <{header}>\n#include <{header}>\n"
        done, said = components.compiles(compiler, flags, text, BUILD)
        assert done, said
    return test


def main():
    lines = components.lines_by_component(ROOT, BUILD)
    users = users_by_header(lines)
    tests = []
    for path in sorted(ROOT.glob("**/include/**/*.h")):
        if path.relative_to(ROOT).parts[0].startswith("build"):
            continue
        header = path.relative_to(next(up for up in path.parents if up.name == "include"))
        component = components.component_of(str(path.relative_to(ROOT)))
        flags = flags_for(header, component, lines, users.get(str(header), []))
        for compiler in COMPILERS:
            tests.append((f"<{header}> compiles alone with {compiler}",
                          header_test(header, compiler, flags)))
    tap.run(tests)


if __name__ == "__main__":
    ROOT, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    main()
