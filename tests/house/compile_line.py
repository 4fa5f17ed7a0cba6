# SPDX-License-Identifier: BSD-3-Clause
"""How the build really compiles a component: read from its compile database."""

import json
import pathlib
import shlex
import subprocess

# Include prefix of each component, and where its public headers are.
INCLUDE_DIRECTORIES = {
    "lib": "lib/include/lib",
    "dataplane": "dataplane/include/dataplane",
    "ras": "control/ras/include/ras",
    "control": "control/include/control",
    "agent": "agent/include/agent",
    "perf": "perf/include/perf",
}
SOURCE_DIRECTORIES = {
    "lib": "lib/", "dataplane": "dataplane/", "ras": "control/ras/", "control": "control/",
    "agent": "agent/", "perf": "perf/", "support": "tests/",
}


class Line:
    """One unit's flags, without what names its input and output."""

    def __init__(self, entry, source):
        words = [word for word in shlex.split(entry["command"]) if word != "ccache"]
        self.source = source
        self.flags = []
        skip = False
        for word in words[1:]:
            if skip or word in ("-MD", "-c"):
                skip = False
            elif word in ("-MQ", "-MF", "-o"):
                skip = True
            elif not word.endswith(".c"):
                self.flags.append(word)


def component_of(path):
    """The longest match wins: control/ras is ras, not control."""
    names = [name for name, start in SOURCE_DIRECTORIES.items() if path.startswith(start)]
    return max(names, key=lambda name: len(SOURCE_DIRECTORIES[name])) if names else None


def lines_by_component(root, build):
    """Component -> Lines, one for each distinct set of flags."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    found = {}
    for entry in entries:
        source = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if not source.is_relative_to(root):
            continue
        path = str(source.relative_to(root))
        component = component_of(path)
        line = Line(entry, path)
        if component:
            found.setdefault(component, []).append(line)
    return found


def compiles(compiler, flags, text, directory):
    """(whether the text compiles, what the compiler said)."""
    words = [compiler, *flags, "-fdiagnostics-color=never", "-fsyntax-only", "-x", "c", "-"]
    if compiler.startswith("clang"):
        words.insert(1, "-Wno-unknown-warning-option")
    done = subprocess.run(words, cwd=directory, input=text, capture_output=True, text=True,
                          check=False)
    return done.returncode == 0, done.stderr
