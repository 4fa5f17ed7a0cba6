# SPDX-License-Identifier: BSD-3-Clause
"""How the build really compiles each unit: its compile database, read once for all tools."""

import json
import pathlib
import shlex


class Line:
    """One unit: its path in the tree, its compiler, and its flags without input and output."""

    def __init__(self, entry, root):
        self.directory = pathlib.Path(entry["directory"])
        self.file = (self.directory / entry["file"]).resolve()
        self.source = str(self.file.relative_to(root)) if self.file.is_relative_to(root) else None
        words = [word for word in shlex.split(entry["command"]) if word != "ccache"]
        self.compiler, self.flags, skip = words[0], [], False
        for word in words[1:]:
            if skip or word in ("-MD", "-c"):
                skip = False
            elif word in ("-MQ", "-MF", "-o"):
                skip = True
            elif not word.endswith(".c"):
                self.flags.append(word)


def lines_of(root, build):
    """A Line for every command whose source lies in the tree, sorted by source."""
    text = pathlib.Path(build, "compile_commands.json").read_text(encoding="utf-8")
    lines = [Line(entry, root) for entry in json.loads(text)]
    return sorted((line for line in lines if line.source), key=lambda line: line.source)
