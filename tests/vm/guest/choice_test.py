#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: `tocsin devices` on real devices. The build directory is TOCSIN_BUILD."""

import json
import os
import subprocess
import time

import tap

BOTH = ["rxe0", "rxe1"]
SECONDS_MAX = 300


def run(*words, status=0):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    assert done.returncode == status, done
    return done


def devices(*options, status=0):
    return run(os.environ["TOCSIN_BUILD"] + "/agent/tocsin", "devices", *options, status=status)


def answer(*options, status=0):
    return json.loads(devices("--json", "--explain", *options, status=status).stdout)


def port_state(device):
    with open(f"/sys/class/infiniband/{device}/ports/1/state", encoding="ascii") as file:
        return file.read().split()[1]


def set_wire(state, seen):
    """Set the wire and wait, because ports follow their links with a delay."""
    run("ip", "link", "set", "ve0", state)
    end = time.monotonic() + SECONDS_MAX
    while [port_state(device) for device in BOTH] != [seen, seen]:
        assert time.monotonic() < end, [port_state(device) for device in BOTH]
        time.sleep(0.02)


def facts_are_those_of_the_kernel():
    for number, one in enumerate(answer()["devices"]):
        expected = {
            "name": f"rxe{number}", "kind": "RoCE", "transport": "IB", "port": 1,
            "state": "active", "link": "Ethernet", "mtu_bytes": 1024, "lid": None,
            "gid": {"index": 1, "type": "RoCE v2", "address": f"10.0.0.{number + 1}"},
            "netdev": f"ve{number}", "pci": None, "numa_node": None, "responder": "kernel",
            "usable": True, "reason": None, "class": "unknown"}
        found = {key: one[key] for key in expected}
        assert found == expected, (found, expected)


def equal_devices_are_all_chosen_for_every_place():
    for target in ("auto", "cpu:0"):
        assert answer("--for", target)["chosen"] == BOTH, target
    assert answer("--for", "nic:rxe1")["chosen"] == ["rxe1"]
    assert "the nearest   2 of 2: not in the PCI tree" in devices("--explain").stdout


def without_an_active_port_only_a_name_chooses():
    set_wire("down", "DOWN")
    try:
        listed = answer("--for", "auto", status=1)
        assert listed["chosen"] == [], listed
        assert all(one["verdict"] == "awaits-port" and one["reason"].endswith("is down")
                   for one in listed["devices"]), listed
        assert devices().stdout.count("not usable: port 1 of rxe") == 2
        named = answer("--for", "nic:rxe0")
        assert named["chosen"] == ["rxe0"], named
        assert named["why"].endswith("although port 1 of rxe0 is down"), named
    finally:
        set_wire("up", "ACTIVE")


def a_name_that_is_not_there_is_told_with_the_nearest():
    done = devices("--for", "nic:rxe2", status=1)
    assert done.stderr.endswith('names no device; did you mean "rxe0"?\n'), done


def iwarp_beside_it_is_refused_with_its_reason():
    """The kernel's siw connects through a connection manager only."""
    if subprocess.run(["modprobe", "siw"], capture_output=True, check=False).returncode != 0:
        raise tap.Skip("the guest's kernel has no siw")
    run("rdma", "link", "add", "siw0", "type", "siw", "netdev", "ve0")
    try:
        listed = answer()
        siw = [one for one in listed["devices"] if one["name"] == "siw0"]
        assert [(one["transport"], one["usable"], one["reason"]) for one in siw] == [
            ("iWARP", False, "iWARP: its queue pairs can be connected by rdma_cm only")], siw
        assert answer("--for", "auto")["chosen"] == BOTH
    finally:
        run("rdma", "link", "delete", "siw0")


TESTS = [
    facts_are_those_of_the_kernel,
    equal_devices_are_all_chosen_for_every_place,
    iwarp_beside_it_is_refused_with_its_reason,
    without_an_active_port_only_a_name_chooses,
    a_name_that_is_not_there_is_told_with_the_nearest,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
