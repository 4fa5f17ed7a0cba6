#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tocsind --check-config: what contradicts itself, and what will not do on this machine.

    agent_config_test.py BUILD_DIRECTORY
"""

import pathlib
import subprocess
import sys
import tempfile

import tap

BUILD = pathlib.Path(sys.argv[1])
PATIENCE_S = 30


def tocsind(*arguments):
    return subprocess.run([str(BUILD / "agent" / "tocsind"), *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S,
                          check=False)


def settings(pairs):
    return [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]


def in_place(test):
    def call():
        with tempfile.TemporaryDirectory(prefix="tocsin-config-") as place:
            test(pathlib.Path(place))
    call.__name__ = test.__name__
    return call


def make_key(place):
    subprocess.run([str(BUILD / "agent" / "tocsin"), "keygen", "--output", str(place / "key")],
                   check=True, stdout=subprocess.DEVNULL)
    return place / "key"


def sound(place):
    return {"node.state_directory": place / "state", "overlay.listen": "127.0.0.1"}


CONTRADICTIONS = [
    ({"overlay.listen": "10.1.2.3"}, "[overlay] listen = \"10.1.2.3\"", "without a key"),
    ({"overlay.listen": "0.0.0.0"}, "[overlay] listen = \"0.0.0.0\"", "without a key"),
    ({"overlay.advertise": "[::1]:5"}, "[overlay] advertise", "another family"),
    ({"client.listen": "10.1.2.3"}, "[client] listen", "loopback only"),
    ({"client.listen": "127.0.0.1:28030"}, "[client] listen", "[overlay] listen"),
    ({"http.listen": "127.0.0.1:28030"}, "[http] listen", "[overlay] listen"),
    ({"http.listen": "127.0.0.1:28029"}, "[http] listen", "[client] listen"),
    ({"device.mlx5_0.wire": "udp"}, "[device mlx5_0] wire", "[device soft0], alone"),
    ({"device.mlx5_0.faults": "loss=1%"}, "[device mlx5_0] faults", "[device soft0], alone"),
    ({"device.soft0.wire": "tcp"}, "[device soft0] wire", "udp"),
    ({"device.soft0.wire": "memory"}, "[device soft0] wire", "nobody outside"),
    ({"device.soft0.address": "nowhere"}, "[device soft0] address", "nowhere"),
    ({"device.soft0.address": "0.0.0.0"}, "[device soft0] address", "every address"),
    ({"device.soft0.address": "224.0.0.1"}, "[device soft0] address", "multicast"),
    ({"device.soft0.faults": "loss=200%"}, "[device soft0] faults", "loss"),
]


@in_place
def values_that_contradict_each_other_are_refused_by_check_and_start(place):
    for change, where, why in CONTRADICTIONS:
        for arguments in (["--check-config"], []):
            done = tocsind(*arguments, *settings({**sound(place), **change}))
            assert (done.returncode, done.stdout) == (2, ""), (change, done)
            assert done.stderr.count("\n") == 1, done.stderr
            assert where in done.stderr and why in done.stderr, done.stderr


@in_place
def ports_that_the_system_chooses_contradict_nothing(place):
    done = tocsind("--check-config", *settings({
        **sound(place), "overlay.listen": "127.0.0.1:0", "client.listen": "127.0.0.1:0",
        "http.listen": "127.0.0.1:0"}))
    assert done.returncode == 0, done.stderr


@in_place
def a_sound_configuration_is_said_to_be_and_leaves_nothing_behind(place):
    seeds = place / "seeds"
    seeds.write_text("127.0.0.2\n")
    key = make_key(place)
    before = sorted(place.iterdir())
    done = tocsind("--check-config", *settings({
        **sound(place), "overlay.key": key, "overlay.join": f"n[1-3],{seeds}",
        "client.group": "root", "worker.cores": ""}))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "sound" in done.stdout, done.stdout
    assert sorted(place.iterdir()) == before


@in_place
def what_will_not_do_on_this_machine_is_named_with_the_reason(place):
    open_key = make_key(place)
    open_key.chmod(0o644)
    garbage = place / "garbage"
    garbage.touch(0o600)
    garbage.write_text("no key\n")
    (place / "file").touch()
    for change, words in (
            ({"overlay.key": place / "none"}, ["[overlay] key", f"{place}/none"]),
            ({"overlay.key": open_key}, ["[overlay] key", "0600"]),
            ({"overlay.key": garbage}, ["[overlay] key", str(garbage)]),
            ({"overlay.join": f"n1,{place}/seeds"}, ["[overlay] join", f"{place}/seeds"]),
            ({"client.group": "nobody-has-this"}, ["[client] group", "nobody-has-this"]),
            ({"worker.cores": "0,1023"}, ["[worker] cores", "1023"]),
            ({"node.state_directory": place / "file"}, ["state_directory", "no directory"]),
            ({"node.state_directory": place / "a" / "b"}, ["state_directory", f"{place}/a"]),
    ):
        done = tocsind("--check-config", *settings({**sound(place), **change}))
        assert (done.returncode, done.stdout) == (2, ""), (change, done)
        assert done.stderr.count("\n") == 1, done.stderr
        for word in words:
            assert word in done.stderr, (word, done.stderr)
        assert "no key" not in done.stderr, done.stderr  # never a byte of a key file


@in_place
def everything_that_will_not_do_is_named_at_once_with_its_place(place):
    path = place / "tocsin.conf"
    path.write_text("[node]\nstate_directory = /nowhere/at/all\n"
                    "[overlay]\nlisten = 127.0.0.1\nkey = /nowhere/key\njoin = /nowhere/seeds\n"
                    "[client]\ngroup = nobody-has-this\n[worker]\ncores = 1023\n")
    done = tocsind("--check-config", path)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, 5), done.stderr
    for number in (2, 5, 6, 8, 10):
        assert any(f"{path}:{number}: " in line for line in lines), (number, lines)


TESTS = [
    values_that_contradict_each_other_are_refused_by_check_and_start,
    ports_that_the_system_chooses_contradict_nothing,
    a_sound_configuration_is_said_to_be_and_leaves_nothing_behind,
    what_will_not_do_on_this_machine_is_named_with_the_reason,
    everything_that_will_not_do_is_named_at_once_with_its_place,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
