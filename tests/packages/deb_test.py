#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages of this tree: reproducible, without complaints of lintian, installed in a bare
Debian and purged without a rest.

    deb_test.py SOURCE-ROOT

The packages are those of `./dev package deb` if it ran after the last change of the tree; else they
are built. A second build in another directory, without the compiler cache, must give the same
bytes. The bare Debian is kept in ~/.cache/tocsin/packages for all trees.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tap

ROOT = pathlib.Path(sys.argv[1]).resolve()
PACKAGES = {"tocsin", "tocsin-perf", "libtocsin1", "libtocsin-dev", "libtocsin-verbs",
            "tocsin-bridges", "python3-tocsin", "tocsin-doc"}
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                     "tocsin", "packages")
BARE = CACHE / "bookworm.tar"
MIRROR = "http://deb.debian.org/debian"
OVERRIDES_MAX = 3

INSTALL = """
apt-get -qq update
apt-get -qq install -y --no-install-recommends /packages/*.deb
"""
# An agent with the defaults, in the directories that systemd makes for its unit, and a question.
AGENT = """
set -e
install -d -o tocsin /run/tocsin /var/lib/tocsin
RUNTIME_DIRECTORY=/run/tocsin STATE_DIRECTORY=/var/lib/tocsin \\
    setpriv --reuid tocsin --regid tocsin --clear-groups /usr/sbin/tocsind 2>/agent.log &
until tocsin health >/dev/null 2>&1 || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
tocsin status || { cat /agent.log >&2; exit 1; }
kill $!
wait
rm -r /run/tocsin
"""
# Each step is a command that --check-config printed in the fresh installation.
FIRST_STEPS = r"""
set -e
tocsind --check-config
cp /usr/share/doc/tocsin/tocsin.conf /etc/tocsin/tocsin.conf
tocsin keygen >/dev/null
sed -i 's/^key/listen = 0.0.0.0\nkey/' /etc/tocsin/tocsin.conf
echo ---
tocsind --check-config
"""
MODULE = """
import importlib.metadata, tocsin
tocsin.binding.load()
print(importlib.metadata.version("tocsin"))
"""


def run(*words, **options):
    """Run a command and return its standard output. A failure shows the end of its output."""
    done = subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)
    assert done.returncode == 0, \
        f"{words}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def build(directory, **environment):
    """Build the packages of the tree in a directory."""
    script = '. tests/tools/setup.sh; . tests/tools/build.sh; . tests/tools/package.sh; ' \
             'say() { echo "$@" >&2; }; package_deb "$1"'
    run("sh", "-euc", script, "sh", directory, cwd=ROOT, env={**os.environ, **environment})


def newest_change():
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    paths = [ROOT / name for name in names.split("\0") if name]
    return max(path.stat().st_mtime for path in paths if path.is_file())


def built():
    """The directory of the packages; they are built unless they are newer than the tree."""
    directory = ROOT / "build-deb"
    finished = directory / "finished"
    if not finished.exists() or finished.stat().st_mtime < newest_change():
        build(directory)
    return directory


def debs(directory):
    """name -> file, without those of debug symbols."""
    return {path.name.split("_")[0]: path for path in directory.glob("*.deb")
            if "-dbgsym" not in path.name}


def all_packages_are_built():
    assert set(debs(built())) == PACKAGES, debs(built())


def two_builds_in_two_directories_give_the_same_bytes():
    with tempfile.TemporaryDirectory(prefix="tocsin-packages-") as place:
        other = pathlib.Path(place, "another", "place")
        build(other, CCACHE_DISABLE="1", TZ="Pacific/Apia")
        files = sorted(path.name for path in built().glob("*.deb"))
        assert files == sorted(path.name for path in other.glob("*.deb")), files
        different = [name for name in files
                     if (built() / name).read_bytes() != (other / name).read_bytes()]
    assert not different, different


def lintian_finds_neither_errors_nor_warnings():
    changes = next(built().glob("*.changes"))
    as_root = ["--allow-root"] if os.geteuid() == 0 else []
    done = subprocess.run(["lintian", "--profile", "debian", "--fail-on", "error,warning",
                           *as_root, str(changes)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    overrides = [line for path in (ROOT / "debian").glob("*.lintian-overrides")
                 for line in path.read_text(encoding="utf-8").splitlines()
                 if line and not line.startswith("#")]
    assert len(overrides) <= OVERRIDES_MAX, overrides


class Debian:
    """A bare Debian in a directory, with the packages in /packages."""

    def __init__(self):
        if os.geteuid() != 0:
            raise tap.Skip("a bare Debian needs root")
        if not BARE.exists():
            make_bare_debian()
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-packages-"))
        run("tar", "-C", self.root, "-xf", BARE)
        shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")
        (self.root / "packages").mkdir()
        for path in debs(built()).values():
            shutil.copy(path, self.root / "packages")

    def run(self, script, network=True):
        """Run a script in this system. Its processes and mounts end with it."""
        inside = 'mount -t proc proc "$1/proc"; mount -t sysfs sysfs "$1/sys"; ' \
                 'mount --bind /dev "$1/dev"; exec chroot "$1" /bin/sh -c "$2"'
        own_network = [] if network else ["--net"]
        loopback = "" if network else "ip link set lo up; "
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", *own_network,
                   "sh", "-euc", loopback + inside, "sh", self.root, script,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                        "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"})

    def files(self):
        """The files and directories with this project's name. The users of the units stay in
        /etc/passwd, as Debian has it, so that no other user gets their number."""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")
                if "tocsin" in path.name and not path.is_relative_to(self.root / "packages")}

    def close(self):
        shutil.rmtree(self.root)


def make_bare_debian():
    """Make the bare Debian; its name appears when it is whole."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tocsin-packages-") as place:
        run("debootstrap", "--variant=minbase", "bookworm", place, MIRROR)
        for path in pathlib.Path(place, "var/cache/apt/archives").glob("*.deb"):
            path.unlink()
        fresh = BARE.with_suffix(".new")
        run("tar", "-C", place, "-cf", fresh, ".")
        fresh.replace(BARE)


DEBIAN = []


def debian():
    """The bare Debian with our packages installed; made once."""
    if not DEBIAN:
        DEBIAN.append(Debian())
        DEBIAN[0].run(INSTALL)
    return DEBIAN[0]


def packages_install_in_a_bare_debian_and_print_the_version():
    version = run("dpkg-parsechangelog", "-SVersion", cwd=ROOT).strip()
    printed = debian().run("tocsin --version; tocsind --version; tocsin-perf --version")
    assert printed == f"tocsin {version}\ntocsind {version}\ntocsin-perf {version}\n", printed


def agent_of_the_packages_answers_its_client():
    printed = debian().run(AGENT, network=False)
    assert "1 of 1 agents answer" in printed, printed


def check_of_a_fresh_installation_leads_to_a_sound_configuration():
    before, after = debian().run(FIRST_STEPS, network=False).split("---\n")
    for command in ("cp /usr/share/doc/tocsin/tocsin.conf /etc/tocsin/tocsin.conf", "tocsin keygen",
                    "join =", "expect =", "systemctl restart tocsind"):
        assert command in before, before
    assert "the configuration is sound" in after and "is not set" not in after, after


def module_of_python_finds_its_library_and_version():
    version = run("dpkg-parsechangelog", "-SVersion", cwd=ROOT).strip()
    assert debian().run(f"python3 -c '{MODULE}'") == f"{version}\n"
    debian().run("PYTHONPATH=/usr/share/tocsin/python python3 -S -c 'import tocsin'")


def purge_leaves_no_file():
    names = " ".join(sorted(PACKAGES))
    debian().run("touch /var/lib/tocsin/history; systemctl enable -q tocsin-root.socket; "
                 f"apt-get -qq purge -y {names}")
    assert not debian().files(), debian().files()


if __name__ == "__main__":
    try:
        tap.run([(test.__name__.replace("_", " "), test) for test in (
            all_packages_are_built,
            lintian_finds_neither_errors_nor_warnings,
            packages_install_in_a_bare_debian_and_print_the_version,
            agent_of_the_packages_answers_its_client,
            check_of_a_fresh_installation_leads_to_a_sound_configuration,
            module_of_python_finds_its_library_and_version,
            purge_leaves_no_file,
            two_builds_in_two_directories_give_the_same_bytes)])
    finally:
        for made in DEBIAN:
            made.close()
