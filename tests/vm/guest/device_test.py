#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: its setup is as the help of ./dev vm says. All other guest tests need this."""

import os
import re
import subprocess
import time

import tap

ITERATIONS = 100
PINGPONG = ["ibv_rc_pingpong", "-g", "1", "-n", str(ITERATIONS)]
PAIRED_SECONDS_MAX = 300


def said(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=True).stdout


def both_ports_are_active():
    for device in ("rxe0", "rxe1"):
        assert "PORT_ACTIVE" in said("ibv_devinfo", "-d", device), device


def sent(link):
    with open(f"/sys/class/net/{link}/statistics/tx_bytes", encoding="ascii") as file:
        return int(file.read())


def listening(port, *prefix):
    return f":{port} " in said(*prefix, "ss", "-Hltn")


def pingpong(port, *options, sides=((), ()), to="127.0.0.1"):
    """Run both ends of rc_pingpong, rxe0 against rxe1. `sides` is the command prefix of each."""
    words = [*PINGPONG, "-p", str(port), *options]
    with subprocess.Popen([*sides[0], *words, "-d", "rxe0"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        end = time.monotonic() + PAIRED_SECONDS_MAX
        while not listening(port, *sides[0]):
            assert server.poll() is None and time.monotonic() < end, server.stdout.read()
            time.sleep(0.05)
        told = [said(*sides[1], *words, "-d", "rxe1", to), server.communicate()[0]]
    for text in told:
        assert f"{ITERATIONS} iters in" in text, text
    assert server.returncode == 0, told


def pingpong_crosses_the_wire(*options):
    before = sent("ve0"), sent("ve1")
    pingpong(18515, *options)
    for link, was in zip(("ve0", "ve1"), before):
        moved = sent(link) - was
        assert moved > ITERATIONS * 4096, f"{link} sent {moved} bytes only"


def processes_in_namespaces_of_their_own_have_the_devices():
    for name in ("a", "b"):
        said("ip", "netns", "add", name)
    said("ip", "link", "add", "va", "netns", "a", "type", "veth", "peer", "name", "vb",
         "netns", "b")
    for name, address in (("a", "10.0.1.1/24"), ("b", "10.0.1.2/24")):
        said("ip", "-n", name, "addr", "add", address, "dev", f"v{name}")
        said("ip", "-n", name, "link", "set", f"v{name}", "up")
    try:
        pingpong(18516, sides=[("ip", "netns", "exec", name) for name in ("a", "b")],
                 to="10.0.1.1")
    finally:
        for name in ("a", "b"):
            said("ip", "netns", "del", name)


def under_soft_run_they_stand_behind_soft0_and_work():
    with open(os.environ["TOCSIN_BUILD"] + "/dataplane/soft/preload/libtocsin-verbs.so",
              "rb") as library:
        if b"__asan_init" in library.read():
            raise tap.Skip("a sanitizer's library does not go into foreign programs by itself")
    soft_run = (os.environ["TOCSIN_BUILD"] + "/agent/tocsin", "soft-run", "--")
    names = re.findall(r"^\s+(\S+)\s+[0-9a-f]{16}$", said(*soft_run, "ibv_devices"), re.MULTILINE)
    assert names[0] == "soft0" and sorted(names[1:]) == ["rxe0", "rxe1"], names
    for options in ((), ("-e",)):
        pingpong(18517, *options, sides=(soft_run, soft_run))


def memory_can_be_locked_without_limit():
    with open("/proc/self/limits", encoding="ascii") as file:
        assert re.search(r"^Max locked memory +unlimited", file.read(), re.MULTILINE)


def the_hosts_processes_are_not_seen():
    count = sum(name.isdigit() for name in os.listdir("/proc"))
    assert os.path.basename(os.readlink("/proc/1/exe")) in ("dash", "bash"), count


if __name__ == "__main__":
    tap.run([
        ("both ports are active", both_ports_are_active),
        ("an RC pingpong crosses the wire, polling", pingpong_crosses_the_wire),
        ("an RC pingpong crosses the wire, sleeping on events",
         lambda: pingpong_crosses_the_wire("-e")),
        ("processes in namespaces of their own, joined by another wire, have the devices",
         processes_in_namespaces_of_their_own_have_the_devices),
        ("under tocsin soft-run they stand behind soft0 and work",
         under_soft_run_they_stand_behind_soft0_and_work),
        ("memory can be locked without limit", memory_can_be_locked_without_limit),
        ("the host's processes are not seen", the_hosts_processes_are_not_seen),
    ])
