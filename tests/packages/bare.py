# SPDX-License-Identifier: BSD-3-Clause
"""Bare systems in directories, and the packages of this tree in build-KIND.

A package is that of `./dev package KIND` if it was built after the last change of the tree; else it
is built. The bare systems are kept in ~/.cache/tocsin/packages for all trees.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

import tap

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*words, **options):
    """Run a command and return its standard output. A failure shows the end of its output."""
    done = subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)
    assert done.returncode == 0, \
        f"{words}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def package_function(*words, network=True, **environment):
    """Call a function of tests/tools/package.sh and return its output."""
    script = '. tests/tools/setup.sh; . tests/tools/build.sh; . tests/tools/package.sh; ' \
             'say() { echo "$@" >&2; }; "$@"'
    loopback = "" if network else "ip link set lo up; "
    own_network = [] if network else ["unshare", "--net"]
    return run(*own_network, "sh", "-euc", loopback + script, "sh", *words, cwd=ROOT,
               env={**os.environ, **environment})


def version():
    return package_function("tree_version").strip()


def newest_change():
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    paths = [ROOT / name for name in names.split("\0") if name]
    return max(path.stat().st_mtime for path in paths if path.is_file())


@functools.cache
def built(kind, *others):
    """Return the directory of the packages of a kind; build them unless they are newer than the
    tree. The other directories are those of the packages that the build uses. A change of the tree
    during a test has no effect on the test."""
    directory = ROOT / f"build-{kind}"
    finished = directory / "finished"
    if not finished.exists() or finished.stat().st_mtime < newest_change():
        package_function(f"package_{kind}", directory, *others)
    return directory


def need_root():
    if os.geteuid() != 0:
        raise tap.Skip("a root directory needs root")


def debs(directory):
    """name -> file, without those of debug symbols."""
    return {path.name.split("_")[0]: path for path in directory.glob("*.deb")
            if "-dbgsym" not in path.name}


class Bare:
    """A bare Debian of a suite in a directory, with files in /packages."""

    def __init__(self, suite, files):
        need_root()
        tar = package_function("bare_debian", suite)
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-packages-"))
        self.root = self.place / "root"
        package_function("unpack_root", tar, self.root)
        (self.root / "packages").mkdir()
        for path in files:
            shutil.copy(path, self.root / "packages")

    def run(self, script, network=True):
        """Run a script in this system. Its processes and mounts end with it."""
        return package_function("in_root", self.root, script, network=network)

    def files(self):
        """Return the files and directories with this project's name. The users of the units stay
        in /etc/passwd, as Debian has it, so that no other user gets their number."""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")
                if "tocsin" in path.name and not path.is_relative_to(self.root / "packages")}

    def close(self):
        shutil.rmtree(self.place)
