# SPDX-License-Identifier: BSD-3-Clause
"""Builds of earlier commits, for tests of upgrades. Each is made once and kept in ~/.cache.

A build has the options of the product, and the programs of agents and of jobs only. Its version is
that of its commit with `+COMMIT` behind it, so that tests can tell two builds of one version apart.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess

import suites

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                     "tocsin", "earlier")
PROGRAMS = ("agent/tocsind", "agent/tocsin", "lib/job/examples/ring")


class BuildFailed(Exception):
    """The text has the command and the end of its output."""


def run(*words, **options):
    """Run a command and return its standard output."""
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False,
                          **options)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise BuildFailed(f"{words[0]}: exit status {done.returncode}\n{said[-3000:]}")
    return done.stdout


def environment():
    compiler = {"CC": "ccache gcc"} if shutil.which("ccache") and "CC" not in os.environ else {}
    return {**os.environ, "CCACHE_DEPEND": "1", **compiler}


def append_to_version(text, name):
    """Append +NAME to the version that a meson.build states."""
    text, count = re.subn(r"(?m)^(\tversion: '[^']*)'", rf"\1+{name}'", text, count=1)
    assert count == 1, f"{name}: meson.build states no version"
    return text


def write_source(commit, source):
    """Write the files of a commit, and append its name to the version."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    files = run("git", "-C", ROOT, "archive", commit)
    run("tar", "-x", "-C", source, input=files)
    project = source / "meson.build"
    project.write_text(append_to_version(project.read_text(), commit))


@contextlib.contextmanager
def locked(place):
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.with_suffix(".lock"), "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(commit):
    """Return the build directory of a commit. Build the commit first if the cache has none."""
    place = CACHE / commit
    directory = place / "build"
    with locked(place):
        if (place / "complete").exists():
            return directory
        write_source(commit, place)
        # Warnings are errors in the builds of ./dev too, so that ccache can share their objects.
        run(suites.tool("meson"), "setup", "-Dwerror=true", directory, place, env=environment())
        run(suites.tool("ninja"), "-C", directory, *PROGRAMS, env=environment())
        (place / "complete").touch()
    return directory
