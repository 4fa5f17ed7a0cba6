#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev try` and `./dev debug`: one test of one build, with nothing around it.

    one.py try KIND NAME             builds what the test needs, and becomes the test
    one.py debug KIND NAME [WORD...] becomes gdb on the test, or on an agent of ./dev run that is
                                     called so or has this process id; WORDs are gdb's
"""

import os
import pathlib
import subprocess
import sys

import runner
import suites


def fail(text):
    print(f"dev: {text}", file=sys.stderr)
    sys.exit(2)


def find_test(kind, name):
    """Find a group of unit tests, else a test, by NAME or SUITE/NAME. If a fuzz target has the same
    name, the unit test is returned."""
    tests = sorted(suites.read(kind), key=lambda test: test.suite == "fuzz")
    for test in tests:
        suite, _, group = name.rpartition("/")
        if group in test.groups and suite in ("", *test.suites):
            return test.narrowed_to(group)
    for test in tests:
        if name in (test.name, f"{test.suite}/{test.name}"):
            return test
    names = {word for test in tests for word in (test.name, *test.groups)}
    close = sorted(word for word in names if name and name in word)
    hint = f"; there are: {' '.join(close)}" if close else ""
    return fail(f"'{name}' is no test of the {kind} build{hint}")


def built(test):
    """The test, with what it needs up to date."""
    if not test.needs:
        return test
    done = subprocess.run([suites.tool("ninja"), "-C", suites.DIRECTORIES[test.kind], "--quiet",
                           *test.needs], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          check=False)
    if done.returncode != 0:
        sys.stdout.buffer.write(done.stdout)
        sys.exit(done.returncode)
    return test


def become(words, environment, directory=None):
    sys.stdout.flush()
    if directory:
        os.chdir(directory)
    os.execvpe(words[0], words, environment)


def try_test(kind, name):
    test = built(find_test(kind, name))
    become(runner.command_of(test, runner.isolation()), os.environ, test.directory)


def is_agent_of_ours(process, name):
    """Whether it is an agent of ./dev run in this tree that goes by this name."""
    try:
        program = os.readlink(process / "exe").removesuffix(" (deleted)")  # built anew since
        words = (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:  # it has ended meanwhile, or is somebody else's
        return False
    if program not in {str(pathlib.Path(directory, "agent/tocsind").resolve())
                       for directory in suites.DIRECTORIES.values()}:
        return False
    config = words[words.index("--config") + 1] if "--config" in words[:-1] else ""
    return name in (process.name, pathlib.Path(config).parent.name)


def parent_of(pid):
    stat = pathlib.Path("/proc", pid, "stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()[1]


def agents_called(name):
    """Their process ids. The helper that an agent forks has its name and is its child."""
    found = [process.name for process in pathlib.Path("/proc").iterdir()
             if process.name.isdigit() and is_agent_of_ours(process, name)]
    return [pid for pid in found if parent_of(pid) not in found]


def debug(kind, name, *words):
    agents = agents_called(name)
    if len(agents) > 1:
        fail(f"several agents are called {name}; ./dev debug takes one of these processes: "
             f"{' '.join(agents)}")
    if agents:
        become(["gdb", "-p", agents[0], *words], os.environ)
    test = find_test(kind, name)
    if test.command[-1].endswith(".py") or any(word.endswith(".py") for word in test.command):
        fail(f"'{name}' is a script. ./dev debug takes a test that is a program, or an agent of "
             "./dev run: n1")
    built(test)
    # What is traced already cannot be searched for leaks.
    options = {"ASAN_OPTIONS": "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")}
    become(["gdb", *words, "--args", *test.command], {**os.environ, **test.environment, **options},
           test.directory)


if __name__ == "__main__":
    {"try": try_test, "debug": debug}[sys.argv[1]](*sys.argv[2:])
