#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev vm from outside: what goes into a guest and what comes out, however it ends.

    vm_test.py SOURCE-ROOT TOCSIN

A boot takes seconds, so that few boots serve many tests, two at a time.
"""

import concurrent.futures
import functools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import patience
import tap
import vm

OUTPUT_BYTES = 5 << 20
STATUS = 3
ARGUMENTS = ["two words", "it's", 'say "yes"', "", "two\nlines", "$HOME", "*", "ü", "\\"]
GOES_SECONDS_MAX = 20

# Tells on stderr what it was given, and on stdout what cannot be mistaken for anything else.
TELLS = """
import json, os, pathlib, random, sys
shared, other = map(pathlib.Path, sys.argv[1:3])
(shared / "written").write_bytes(b"x" * 300000)
(other / "written").touch()
json.dump({"arguments": sys.argv[3:], "stdin": sys.stdin.read(), "cwd": os.getcwd(),
           "root": os.getuid() == 0, "release": os.uname().release,
           "other": os.listdir(other)}, sys.stderr)
sys.stdout.buffer.write(random.Random(1).randbytes(%d))
sys.exit(%d)
""" % (OUTPUT_BYTES, STATUS)


def start(*words):
    return subprocess.Popen([sys.executable, vm.__file__, *words], cwd=ROOT,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ran(*words):
    """(exit status, stdout, stderr)"""
    with start(*words) as process:
        out, err = process.communicate(b"for us, not for the guest\n")
        return process.returncode, out, err.decode()


def run_telling():
    """A guest that tells of everything, and what it left in the two directories."""
    with tempfile.TemporaryDirectory(prefix="tocsin vm-") as name:
        shared, other = pathlib.Path(name) / "shared", pathlib.Path(name) / "other"
        shared.mkdir()
        other.mkdir()
        told = ran("--write", str(shared), "--", "python3", "-c", TELLS, str(shared), str(other),
                   *ARGUMENTS)
        sizes = {path.name: path.stat().st_size for path in shared.iterdir()}
        return (*told, sizes, os.listdir(other))


def run_lone():
    """A guest without devices but with a network, whose command is killed."""
    return ran("--devices", "none", "--net", "user,restrict=on", "--memory", "1024", "--", "sh",
               "-c", f"ls /sys/class/net; '{TOCSIN}' version; kill -9 $$")


@functools.cache
def guests():
    """Two at once, of which most tests look at one."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        both = pool.submit(run_telling), pool.submit(run_lone)
        return [one.result() for one in both]


def telling():
    return guests()[0]


def the_exit_status_is_the_commands():
    assert telling()[0] == STATUS, telling()[2]


def five_megabytes_arrive_intact():
    assert telling()[1] == random.Random(1).randbytes(OUTPUT_BYTES), len(telling()[1])


def the_command_is_told_what_it_was_given():
    told = json.loads(telling()[2])
    assert told["arguments"] == ARGUMENTS, told
    assert told["stdin"] == "", told
    assert told["cwd"] == ROOT and told["root"], told
    assert told["release"] != os.uname().release, told


def only_what_was_asked_for_is_written_on_the_host():
    _, _, err, shared, other = telling()
    assert shared == {"written": 300000} and other == [], (shared, other)
    assert json.loads(err)["other"] == ["written"], err


def a_killed_command_gives_the_shells_status():
    assert guests()[1][0] == 128 + signal.SIGKILL, guests()[1]


def a_guest_has_the_devices_that_were_asked_for():
    links = guests()[1][1].decode().split()
    assert "eth0" in links and "ve0" not in links, links


def programs_of_the_build_tree_run():
    own = subprocess.run([TOCSIN, "version"], capture_output=True,
                         check=False).stdout
    assert own and own in guests()[1][1], guests()[1]


def a_guest_that_dies_is_told_with_its_console():
    status, _, err = ran("--", "sh", "-c", "echo c >/proc/sysrq-trigger")
    assert status == vm.DIED and "Kernel panic" in err, (status, err)


def a_time_limit_ends_the_guest():
    status, out, err = ran("--timeout", "1", "--", "sleep", "600")
    assert (status, out) == (vm.TIMED_OUT, b""), (status, out)
    assert err.endswith("vm: ended after the time limit of 1 s\n"), err


def a_time_limit_ends_a_guest_that_never_stops_talking():
    with tempfile.TemporaryDirectory(prefix="tocsin-vm-") as name:
        qemu = pathlib.Path(name) / vm.QEMU
        qemu.write_text("#!/bin/sh\nexec yes\n", encoding="ascii")
        qemu.chmod(0o755)
        done = subprocess.run([sys.executable, vm.__file__, "--timeout", "1", "--", "true"],
                              env={**os.environ, "PATH": f"{name}:{os.environ['PATH']}"},
                              stdout=subprocess.DEVNULL, check=False)
        assert done.returncode == vm.TIMED_OUT, done


def runs(pid):
    """Not so a zombie, which is a name that nobody has asked for yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def within(condition, what):
    clock = patience.FairClock()
    while not condition():
        assert clock.read() < GOES_SECONDS_MAX, what
        time.sleep(0.01)


def qemu_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        children = file.read().split()
    for child in children:
        with open(f"/proc/{child}/comm", encoding="ascii") as file:
            if file.read().startswith("qemu"):
                return child
    return None


def the_guest_ends_with_the_command_that_started_it():
    for sent in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        with start("--", "sleep", "600") as process:
            within(lambda: qemu_of(process.pid), "no QEMU")
            qemu = qemu_of(process.pid)
            process.send_signal(sent)
            assert process.wait() == -sent
            within(lambda: not runs(qemu), f"QEMU survives {sent.name}")


def wrong_words_are_refused_by_name():
    for words, wrong in ((["--memory", "1", "--", "true"], "'1' is not a number from 256"),
                         (["--timeout", "0", "--", "true"], "'0' is not a number from 1"),
                         (["--devices", "mlx5", "--", "true"], "'mlx5'"),
                         (["--write", "/nowhere", "--", "true"], "'/nowhere' is not a directory"),
                         (["--frobnicate", "--", "true"], "--frobnicate"),
                         (["--", "true", "x" * vm.JOB_BYTES_MAX], "bytes, 65536 are allowed"),
                         (["true"], "true"), (["--"], "no COMMAND"), ([], "no COMMAND")):
        status, out, err = ran(*words)
        assert (status, out) == (vm.WRONG_USE, b"") and wrong in err, (words, status, err)


if __name__ == "__main__":
    ROOT, TOCSIN = map(os.path.realpath, sys.argv[1:])
    vm.skip_if_unavailable()
    tap.run([
        ("the exit status is the command's", the_exit_status_is_the_commands),
        ("five megabytes of output arrive intact", five_megabytes_arrive_intact),
        ("the command has its arguments, this directory, root's rights, and no input",
         the_command_is_told_what_it_was_given),
        ("only what was asked for is written on the host",
         only_what_was_asked_for_is_written_on_the_host),
        ("a killed command gives the shell's status", a_killed_command_gives_the_shells_status),
        ("a guest has the devices that were asked for",
         a_guest_has_the_devices_that_were_asked_for),
        ("programs of the build tree run", programs_of_the_build_tree_run),
        ("a guest that dies is told with its console", a_guest_that_dies_is_told_with_its_console),
        ("a time limit ends the guest", a_time_limit_ends_the_guest),
        ("a time limit ends a guest that never stops talking",
         a_time_limit_ends_a_guest_that_never_stops_talking),
        ("the guest ends with the command that started it",
         the_guest_ends_with_the_command_that_started_it),
        ("wrong words are refused by name", wrong_words_are_refused_by_name),
    ])
