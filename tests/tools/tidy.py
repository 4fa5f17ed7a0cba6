#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""clang-tidy over the units of a compile database, one file per process.

(With several files in one process, version 14 reports a false valist.Uninitialized.) The
database is that of the clang build, so that clang's own warnings count too. A unit that
came out clean is remembered by a digest of everything that was looked at.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess

TIDY = "clang-tidy-14"


def quiet_run(words, directory):
    return subprocess.run(words, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)


class Unit:
    def __init__(self, entry, root):
        self.directory = pathlib.Path(entry["directory"])
        self.file = (self.directory / entry["file"]).resolve()
        self.path = str(self.file.relative_to(root))
        self.words = [word for word in shlex.split(entry["command"]) if word != "ccache"]

    def reads(self, root):
        """The files of this tree that the unit is made of."""
        words, skip = [self.words[0]], False
        for word in self.words[1:]:
            if skip or word in ("-MD", "-c"):
                skip = False
            elif word in ("-MQ", "-MF", "-o"):
                skip = True
            else:
                words.append(word)
        rule = quiet_run(words + ["-MM"], self.directory).stdout
        names = rule.replace("\\\n", " ").split()[1:] or [str(self.file)]
        paths = {(self.directory / name).resolve() for name in names}
        return sorted(path for path in paths if path.is_relative_to(root) and path.exists())


def units_of(database, root):
    text = pathlib.Path(database, "compile_commands.json").read_text(encoding="utf-8")
    units = {}
    for entry in json.loads(text):
        unit = Unit(entry, root)
        units.setdefault(unit.path, unit)
    return [units[path] for path in sorted(units)]


def digest_of(unit, reads, root, versions):
    state = hashlib.sha256(versions.encode())
    state.update("\0".join(unit.words).encode())
    for path in reads + sorted(root.glob("**/.clang-tidy")):
        state.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def run(root, database, changed, versions):
    """Checks the units made of a changed file (all if changed is None).

    Returns the complaints and a line on what was done.
    """
    cache = pathlib.Path(database) / "tidy-clean"
    cache.mkdir(exist_ok=True)

    def check(unit):
        reads = unit.reads(root)
        names = {str(path.relative_to(root)) for path in reads}
        if changed is not None and not names & changed:
            return "untouched", ""
        known = cache / digest_of(unit, reads, root, versions)
        if known.exists():
            return "remembered", ""
        done = quiet_run([TIDY, "--quiet", "-p", database, str(unit.file)], root)
        if done.returncode == 0 and not done.stdout.strip():
            known.touch()
            return "checked", ""
        return "checked", done.stdout.strip() or done.stderr.strip()

    units = units_of(database, root)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, units))
    counts = {what: sum(1 for result in results if result[0] == what)
              for what in ("checked", "remembered", "untouched")}
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return [text for _, text in results if text], said
