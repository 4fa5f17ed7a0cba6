#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A forbidden include must not compile with the flags of the build.

layering_test.py SOURCE-ROOT BUILD-ROOT

A shadow of the tree has one probe header per component in its public header directory, even if the
component has no header yet. The include flags of each unit, which are relative to the build
directory, are then used in the shadow's build directory.
"""

import pathlib
import sys
import tempfile

import components
import tap

FORBIDDEN = [
    ("lib", "dataplane"), ("lib", "ras"), ("lib", "control"), ("lib", "agent"), ("lib", "perf"),
    ("dataplane", "ras"), ("dataplane", "control"), ("dataplane", "agent"), ("dataplane", "perf"),
    ("ras", "dataplane"), ("ras", "control"), ("ras", "agent"), ("ras", "perf"),
    ("ras", "verdict"), ("lib", "verdict"), ("dataplane", "verdict"), ("perf", "verdict"),
    ("verdict", "dataplane"), ("verdict", "control"), ("verdict", "agent"), ("verdict", "perf"),
    ("ras", "jobs"), ("verdict", "jobs"), ("lib", "jobs"), ("dataplane", "jobs"),
    ("perf", "jobs"), ("jobs", "dataplane"), ("jobs", "control"), ("jobs", "agent"),
    ("jobs", "verdict"), ("jobs", "perf"),
    ("control", "agent"), ("control", "perf"),
    ("perf", "ras"), ("perf", "control"), ("perf", "agent"),
    ("tocsin", "lib"), ("tocsin", "dataplane"), ("tocsin", "control"), ("lib", "tocsin"),
]
# Check of the probe itself: permitted includes must compile.
ALLOWED = [(component, "lib" if component != "tocsin" else "tocsin")
           for component in components.INCLUDE_DIRECTORIES]
ALLOWED += [("dataplane", "dataplane")]


def shadow_make(shadow):
    (shadow / "build").mkdir()
    for component, directory in components.INCLUDE_DIRECTORIES.items():
        (shadow / directory).mkdir(parents=True)
        probe = shadow / directory / "house_probe.h"
        probe.write_text(f"#pragma once\n#define HOUSE_PROBE_{component}\n", encoding="utf-8")


def include_flags(line, root, shadow):
    """Return the search path of a unit. Absolute paths are moved to the shadow."""
    flags = [flag for flag in line.flags if flag.startswith(("-I", "-isystem", "-iquote"))]
    return tuple(flag.replace(str(root), str(shadow)) for flag in flags)


def probe_test(lines, root, shadow, source, target, expected):
    def test():
        if source not in lines:
            raise tap.Skip(f"{source} has no source file yet")
        text = f"#include <{target}/house_probe.h>\nint HOUSE_PROBE_{target};\n"
        text += f"#ifndef HOUSE_PROBE_{target}\n#error not the probe\n#endif\n"
        for flags in {include_flags(line, root, shadow) for line in lines[source]}:
            done, said = components.compiles("gcc", flags, text, shadow / "build")
            assert done == expected, f"{source} includes {target}: {' '.join(flags)}\n{said}"
            if not done:
                assert "No such file" in said, said
    return test


def main(root, build):
    lines = components.lines_by_component(root, build)
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        shadow = pathlib.Path(name)
        shadow_make(shadow)
        tests = []
        for source, target in FORBIDDEN:
            tests.append((f"{source} that includes {target} does not compile",
                          probe_test(lines, root, shadow, source, target, False)))
        for source, target in ALLOWED:
            tests.append((f"{source} that includes {target} compiles",
                          probe_test(lines, root, shadow, source, target, True)))
        tap.run(tests)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
