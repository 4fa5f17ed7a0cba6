#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of ./dev and .ci/run on other systems: the package tools are stubs.

door_test.py SOURCE-ROOT

Each system is a directory of commands that is the whole PATH. Every stub writes its name and
arguments to a log.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

REAL = ("sh", "awk", "cat", "cut", "dirname", "env", "grep", "printf", "sed", "sort", "uniq", "wc",
        "xargs", "cp", "rm", "date", "mkdir", "tail")
VERBS = ("help setup build run demo soak swarm vm test try debug lint bench fuzz package "
         "release clean").split()
DPKG_ALL = 'shift 2\nfor one in "$@"; do echo "ii  $one"; done'


class Machine:
    """A system that has only the named commands."""

    def __init__(self, **stand_ins):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-house-"))
        self.log = self.directory / "calls"
        self.log.touch()
        self.commands = self.directory / "bin"
        self.commands.mkdir()
        for name in REAL:
            (self.commands / name).symlink_to(shutil.which(name))
        for name, body in {"id": "echo 0", **stand_ins}.items():
            path = self.commands / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\necho \"{path.name} $*\" >>'{self.log}'\n{body}\n",
                            encoding="utf-8")
            path.chmod(0o755)

    def run(self, *words):
        return subprocess.run(words, cwd="/", env={"PATH": str(self.commands)}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def dev(self, *arguments):
        return self.run("/bin/sh", str(ROOT / "dev"), *arguments)

    def calls(self, name):
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.split()[0] == name]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)


def lacks(package):
    """Return a dpkg-query stub that knows every package but one."""
    return f'shift 2\nfor one in "$@"; do [ "$one" = {package} ] || echo "ii  $one"; done'


def help_explains_every_verb():
    with Machine() as machine:
        for words in ([], ["help"], ["--help"]):
            done = machine.dev(*words)
            assert done.returncode == 0
            for verb in VERBS:
                assert re.search(rf"^  {verb}\b", done.stdout, re.MULTILINE), verb


def wrong_words_are_refused_by_name():
    with Machine(dpkg_query=DPKG_ALL, apt_get="exit 9") as machine:
        for words in (["frobnicate"], ["build", "frobnicate"], ["lint", "frobnicate"],
                      ["bench", "frobnicate"], ["bench", "--frobnicate"], ["fuzz", "6frobnicate"],
                      ["fuzz", "frobnicate"], ["fuzz", "5", "frobnicate"],
                      ["fuzz", "--frobnicate"]):
            done = machine.dev(*words)
            assert done.returncode == 2, (words, done)
            assert "frobnicate" in done.stderr or words[0] == "lint", done.stderr


def words_too_many_or_empty_are_refused():
    with Machine(dpkg_query=DPKG_ALL, apt_get="exit 9") as machine:
        for words, wrong in ((["help", "x"], "help takes no argument"),
                             (["test", ""], "'' is neither a suite nor a test"),
                             (["build", ""], "'' is not one of"),
                             (["fuzz", ""], "'' is not one of"),
                             (["test", "a", "b"], "test takes one"),
                             (["try"], "try takes a NAME"),
                             (["try", "a", "asan", "b"], "try takes a NAME"),
                             (["try", "a", "fuzz"], "'fuzz' is not one of: release asan tsan"),
                             (["package"], "package takes one word: "),
                             (["package", "snap"], "package takes one word: "),
                             (["debug"], "debug takes a NAME"),
                             (["debug", "--", "-q"], "debug takes a NAME"),
                             (["debug", "a", "x", "--", "-q"], "debug: 'x' is not one of")):
            done = machine.dev(*words)
            assert done.returncode == 2 and wrong in done.stderr and not done.stdout, done


def run_explains_itself_without_building():
    with Machine() as machine:
        done = machine.dev("run", "--help")
        assert done.returncode == 0 and done.stdout.startswith("./dev run [N]"), done


def run_takes_a_number_of_agents_that_one_machine_bears():
    with Machine(dpkg_query=DPKG_ALL, apt_get="exit 9") as machine:
        for count in ("", "0", "00", "-1", "+4", "4x", "1.5", " 4", "201", "1000", "9" * 40):
            done = machine.dev("run", count)
            wanted = f"dev: run: '{count}' is not a number of agents from 1 to 200\n"
            assert (done.returncode, done.stdout, done.stderr) == (2, "", wanted), done
        for words, wrong in ((["run", "4", "4"], "run takes one number of agents"),
                             (["demo", "4"], "demo takes no argument")):
            done = machine.dev(*words)
            assert (done.returncode, done.stderr) == (2, f"dev: {wrong}\n"), done


def fuzzed(targets, *arguments):
    """Run ./dev fuzz with these targets in the tree. Returns exit status and the calls of the tool.
    """
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        root = pathlib.Path(name)
        for directory in ("tests/tools", "tests/fuzz"):
            (root / directory).mkdir(parents=True)
        for target in targets:
            (root / "tests/fuzz" / f"{target}_fuzz.c").touch()
        for part in ("setup", "build", "test", "package", "release"):
            (root / "tests/tools" / f"{part}.sh").touch()
        stand_ins = "tool() { echo echo; }\nbuild() { :; }\n"
        (root / "tests/tools/build.sh").write_text(stand_ins, encoding="utf-8")
        shutil.copy(ROOT / "dev", root / "dev")
        done = subprocess.run(["/bin/sh", root / "dev", "fuzz", *arguments], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return done.returncode, done.stdout.split()[1:]


def a_name_that_fuzz_targets_begin_with_stands_for_all_of_them():
    targets = ("raster", "ras_core", "ras_relay", "seal", "seal_keys", "wire")
    for words, wanted in (
            (("5", "ras"), ["build-fuzz", "5", "ras_core", "ras_relay"]),
            (("ras",), ["build-fuzz", "60", "ras_core", "ras_relay"]),
            (("5", "seal", "wire"), ["build-fuzz", "5", "seal", "seal_keys", "wire"]),
            (("5", "ras_core"), ["build-fuzz", "5", "ras_core"]),
            (("5",), ["build-fuzz", "5"]),
            ((), ["build-fuzz", "60"])):
        assert fuzzed(targets, *words) == (0, wanted), words
    for word in ("ra", "ras_", "ras_c", "core", "*"):
        assert fuzzed(targets, "5", word) == (2, []), word


def fuzzing_for_ever_is_refused():
    with Machine(dpkg_query=DPKG_ALL, apt_get="exit 9") as machine:
        for seconds in ("0", "00", "-1", "1000000", "9" * 40):
            done = machine.dev("fuzz", seconds, "wire")
            assert done.returncode == 2 and f"'{seconds}' is not" in done.stderr, done


def setup_with_nothing_missing_calls_no_apt():
    with Machine(dpkg_query=DPKG_ALL, apt_get="exit 9", apt_cache="exit 9") as machine:
        done = machine.dev("setup")
        assert done.returncode == 0, done
        assert not machine.calls("apt-get") and not machine.calls("apt-cache")


def setup_installs_only_what_is_missing():
    with Machine(dpkg_query=lacks("ninja-build"), apt_get="", apt_cache="") as machine:
        done = machine.dev("setup")
        assert done.returncode == 0, done
        assert "installing ninja-build" in done.stderr, done.stderr
        calls = machine.calls("apt-get")
        assert len(calls) == 1, calls
        assert calls[0].endswith("install -y --no-install-recommends ninja-build"), calls


def setup_refreshes_lists_that_do_not_know_a_package():
    with Machine(dpkg_query=lacks("meson"), apt_get="", apt_cache="exit 100") as machine:
        assert machine.dev("setup").returncode == 0
        calls = machine.calls("apt-get")
        assert len(calls) == 2 and "update" in calls[0] and "install" in calls[1], calls


def setup_refreshes_lists_that_are_too_old_to_download_from():
    once = 'case "$*" in *install*) [ -e "$0.1" ] || { : >"$0.1"; echo 404; exit 100; } ;; esac'
    with Machine(dpkg_query=lacks("meson"), apt_get=once, apt_cache="") as machine:
        assert machine.dev("setup").returncode == 0
        assert len(machine.calls("apt-get")) == 3


def setup_waits_for_another_apt_and_gives_up_in_the_end():
    locked = "echo 'E: Could not get lock /var/lib/dpkg/lock-frontend'; exit 100"
    twice = f"n=$(grep -c ^apt-get \"${{0%/*}}/../calls\"); [ \"$n\" -gt 2 ] || {{ {locked}; }}"
    with Machine(dpkg_query=lacks("meson"), apt_get=twice, apt_cache="", sleep="") as machine:
        assert machine.dev("setup").returncode == 0
        assert len(machine.calls("sleep")) == 2
    with Machine(dpkg_query=lacks("meson"), apt_get=locked, apt_cache="", sleep="") as machine:
        assert machine.dev("setup").returncode != 0
        assert 2 < len(machine.calls("sleep")) < 1000


def setup_without_a_package_manager_lists_what_to_install():
    with Machine() as machine:
        done = machine.dev("setup")
        assert done.returncode == 1, done
        for package in ("meson", "libdpdk-dev", "clang-tidy-14", "shellcheck"):
            assert re.search(rf"^ *{package}$", done.stderr, re.MULTILINE), done.stderr


def setup_that_is_not_root_goes_through_sudo_or_says_so():
    others = {"dpkg_query": lacks("meson"), "apt_get": "", "apt_cache": "", "id": "echo 1000"}
    with Machine(sudo="shift\n\"$@\"", **others) as machine:
        done = machine.dev("setup")
        assert done.returncode == 0, done
        # -n, because nobody can type a password.
        wanted = "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get"
        assert machine.calls("sudo")[0].startswith(wanted)
    with Machine(**others) as machine:
        done = machine.dev("setup")
        assert done.returncode != 0 and "meson" in done.stderr and "sudo" in done.stderr
        assert not machine.calls("apt-get")


def every_package_says_why():
    for line in (ROOT / "tests/tools/packages.txt").read_text(encoding="utf-8").splitlines():
        assert not line or line[0] in "#[" or re.match(r"[a-z0-9.+-]+ +# \S", line), line


def sourced(directory, *lines):
    """Run shell lines with the functions of ./dev, a build directory and a stub tool."""
    tool = directory / "tool"
    tool.write_text(f"#!/bin/sh\necho \"$*\" >>'{directory}/calls'\n", encoding="utf-8")
    tool.chmod(0o755)
    tools = [f". '{ROOT}/tests/tools/{name}.sh'" for name in ("build", "test")]
    stand_ins = ["need() { :; }", f"build_dir() {{ echo '{directory}'; }}",
                 f"tool() {{ echo '{tool}'; }}"]
    return subprocess.run(["/bin/sh", "-c", "\n".join([*tools, *stand_ins, *lines])], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)


def an_old_build_directory_is_brought_up_to_date():
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        directory = pathlib.Path(name)
        (directory / "build.ninja").touch()
        for calls in (f"configure {name} -Dwerror=true -Dtests=true\n", ""):
            assert sourced(directory, "configure release").returncode == 0
            wanted = f"{calls}-C {name} build.ninja\n"
            assert (directory / "calls").read_text(encoding="utf-8") == wanted
            (directory / "calls").unlink()


def a_build_with_nothing_to_do_is_silent():
    # The ninja stub prints what it would do, and whether it was called with -n.
    for would, told in (("ninja: no work to do.", ""), ("[1/2] CC a.o", "[1/2] CC a.o\n")):
        with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
            (pathlib.Path(name) / "build.ninja").touch()
            ninja = f"ninja_stand_in() {{ echo '{would}'; }}"
            done = sourced(pathlib.Path(name), ninja, "tool() { echo ninja_stand_in; }",
                           "build release")
            assert (done.returncode, done.stdout) == (0, told), done


def ci_status(lint, test):
    """Return exit status and last line of .ci/run with a ./dev that has these results."""
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        root = pathlib.Path(name)
        (root / ".ci").mkdir()
        shutil.copy(ROOT / ".ci/run", root / ".ci/run")
        (root / "dev").write_text(
            "#!/bin/sh\necho \"$*\"\n"
            f"case $1 in lint) echo bad.c:1; exit {lint} ;;"
            "test) echo \"$TOCSIN_ALSO_FAILED\" >seen; echo '7 passed';"
            f" exit {test} ;; esac\n",
            encoding="utf-8")
        (root / "dev").chmod(0o755)
        done = subprocess.run([root / ".ci/run"], env={**os.environ, "CI": "true"}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.stdout.splitlines()[0] == "lint --all"
        told = "bad.c:1" in (root / "seen").read_text(encoding="utf-8")
        assert told == (lint != 0), "the test run counts a failed lint and repeats it"
        return done.returncode != 0, done.stdout.splitlines()[-1]


def ci_ends_with_the_count_and_fails_if_either_part_fails():
    assert ci_status(0, 0) == (False, "7 passed")
    assert ci_status(1, 0) == (True, "7 passed")
    assert ci_status(0, 1) == (True, "7 passed")


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    tap.run([
        ("help explains every verb", help_explains_every_verb),
        ("wrong words are refused by name", wrong_words_are_refused_by_name),
        ("words too many or empty are refused", words_too_many_or_empty_are_refused),
        ("run explains itself without building", run_explains_itself_without_building),
        ("run takes a number of agents that one machine bears",
         run_takes_a_number_of_agents_that_one_machine_bears),
        ("a name that fuzz targets begin with stands for all of them",
         a_name_that_fuzz_targets_begin_with_stands_for_all_of_them),
        ("fuzzing for ever is refused", fuzzing_for_ever_is_refused),
        ("setup with nothing missing calls no apt", setup_with_nothing_missing_calls_no_apt),
        ("setup installs only what is missing", setup_installs_only_what_is_missing),
        ("setup refreshes lists that do not know a package",
         setup_refreshes_lists_that_do_not_know_a_package),
        ("setup refreshes lists that are too old to download from",
         setup_refreshes_lists_that_are_too_old_to_download_from),
        ("setup waits for another apt, and gives up in the end",
         setup_waits_for_another_apt_and_gives_up_in_the_end),
        ("setup without a package manager lists what to install",
         setup_without_a_package_manager_lists_what_to_install),
        ("setup that is not root goes through sudo or says so",
         setup_that_is_not_root_goes_through_sudo_or_says_so),
        ("every package says why it is there", every_package_says_why),
        ("an old build directory is brought up to date",
         an_old_build_directory_is_brought_up_to_date),
        ("a build with nothing to do is silent", a_build_with_nothing_to_do_is_silent),
        ("CI ends with the count and fails if either part fails",
         ci_ends_with_the_count_and_fails_if_either_part_fails),
    ])
