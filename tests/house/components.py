# SPDX-License-Identifier: BSD-3-Clause
"""Location of the components, and compilation of a text with the flags of a unit."""

import subprocess

import compile_line

# Include prefix of each component, and the directory of its public headers.
INCLUDE_DIRECTORIES = {
    "lib": "lib/include/lib",
    "tocsin": "lib/job/include/tocsin",
    "dataplane": "dataplane/include/dataplane",
    "ras": "control/ras/include/ras",
    "verdict": "control/verdict/engine/include/verdict",
    "jobs": "control/jobs/diagnosis/include/jobs",
    "records": "control/records/include/records",
    "control": "control/include/control",
    "agent": "agent/include/agent",
    "perf": "perf/include/perf",
}
SOURCE_DIRECTORIES = {
    "lib": "lib/", "tocsin": "lib/job/", "dataplane": "dataplane/", "ras": "control/ras/",
    "verdict": "control/verdict/engine/", "jobs": "control/jobs/diagnosis/",
    "probe": "control/fabric/probe/", "records": "control/records/", "control": "control/",
    "agent": "agent/",
    "perf": "perf/", "support": "tests/",
}


def component_of(path):
    """Return the component of a path. The longest match wins: control/ras is ras, not control. The
    library of verdict includes probe."""
    names = [name for name, start in SOURCE_DIRECTORIES.items() if path.startswith(start)]
    return max(names, key=lambda name: len(SOURCE_DIRECTORIES[name])) if names else None


def lines_by_component(root, build):
    found = {}
    for line in compile_line.lines_of(root, build):
        found.setdefault(component_of(line.source), []).append(line)
    return found


def compiles(compiler, flags, text, directory):
    """Return whether the text compiles, and the compiler's output."""
    words = [compiler, *flags, "-fdiagnostics-color=never", "-fsyntax-only", "-x", "c", "-"]
    if compiler.startswith("clang"):
        words.insert(1, "-Wno-unknown-warning-option")
    done = subprocess.run(words, cwd=directory, input=text, capture_output=True, text=True,
                          check=False)
    return done.returncode == 0, done.stderr
