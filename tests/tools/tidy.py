#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""clang-tidy over the units of a compile database, one file per process.

(With several files in one process, version 14 reports a false valist.Uninitialized.) The
database is that of the clang build, so that clang's own warnings count too. A unit that
came out clean is remembered by a digest of everything that was looked at.
"""

import concurrent.futures
import hashlib
import os
import pathlib
import subprocess

import compile_line

TIDY = "clang-tidy-14"


def quiet_run(words, directory):
    return subprocess.run(words, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)


def reads_of(line, root):
    """The files of this tree that the unit is made of."""
    words = [line.compiler, *line.flags, "-MM", str(line.file)]
    names = quiet_run(words, line.directory).stdout.replace("\\\n", " ").split()[1:]
    paths = {(line.directory / name).resolve() for name in names} | {line.file}
    return sorted(path for path in paths if path.is_relative_to(root))


def digest_of(line, reads, root, versions):
    state = hashlib.sha256(versions.encode())
    state.update("\0".join([line.compiler, *line.flags]).encode())
    for path in reads:
        state.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def run(root, database, changed, versions):
    """Checks the units made of a changed file (all if changed is None).

    Returns the complaints and a line on what was done.
    """
    cache = pathlib.Path(database) / "tidy-clean"
    cache.mkdir(exist_ok=True)
    settings = sorted(root.glob("**/.clang-tidy"))  # a walk through the whole tree

    def check(line):
        reads = reads_of(line, root)
        names = {str(path.relative_to(root)) for path in reads}
        if changed is not None and not names & changed:
            return "untouched", ""
        known = cache / digest_of(line, reads + settings, root, versions)
        if known.exists():
            return "remembered", ""
        done = quiet_run([TIDY, "--quiet", "-p", database, str(line.file)], root)
        if done.returncode == 0 and not done.stdout.strip():
            known.touch()
            return "checked", ""
        return "checked", done.stdout.strip() or done.stderr.strip()

    # A source that several targets compile is checked once, with the first one's flags.
    units = {line.source: line for line in reversed(compile_line.lines_of(root, database))}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, reversed(units.values())))
    counts = {what: sum(1 for result in results if result[0] == what)
              for what in ("checked", "remembered", "untouched")}
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return [text for _, text in results if text], said
