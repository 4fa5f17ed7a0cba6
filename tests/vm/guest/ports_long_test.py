#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in a guest with PCI ports: foreign traffic on a cable, and ports that are unplugged, bound
to other drivers, requested twice, or whose program is killed."""

import contextlib
import signal
import subprocess

import cluster as clusters
import ports
import tap
from ports import PORT, dpdk, operations, perftest, rxe, sockets

LAT = ("-n", "50", "-s", "1025")


def large_packets_between_two_ports():
    server, client = dpdk("e1000", more=",mtu=4200"), dpdk("virtio", more=",mtu=4200")
    said = client.ended("ibv_devinfo", "-v")
    assert "active_mtu:\t\t4096" in said, said
    perftest("ib_write_bw", server, client, "-n", "50", "-s", "65536")


def the_other_way_round():
    assert operations(dpdk("virtio"), rxe()) == 1024
    for server, client in ((dpdk("e1000"), rxe()), (dpdk("e1000"), sockets())):
        perftest("ib_send_lat", server, client, "-e", *LAT)


def addresses_of_ip6():
    for kind in ("virtio", "e1000"):
        perftest("ib_read_lat", rxe("fd00"), dpdk(kind, "fd00::8"), *LAT, "-o", "16")


def behind_a_router():
    """The peer's address is in no local prefix; its host forwards packets for it."""
    ports.said("ip", "addr", "add", "10.9.0.1/24", "dev", "eth0")
    ports.said("ip", "route", "add", "10.0.0.8/32", "dev", "eth0")
    try:
        perftest("ib_write_lat", rxe("0000:0000:0000:0000:0000:ffff:0a09:0001"),
                 dpdk("virtio", more=",gateway=10.0.0.1/24"), *LAT)
    finally:
        ports.said("ip", "route", "del", "10.0.0.8/32", "dev", "eth0")
        ports.said("ip", "addr", "del", "10.9.0.1/24", "dev", "eth0")


def cables_are_followed():
    for kind in ("virtio", "e1000"):
        with ports.Watched(dpdk(kind)) as watched:
            MONITOR.cable(kind, up=False)
            watched.wait("PORT_ERR")
            MONITOR.cable(kind, up=True)
            watched.wait("PORT_ACTIVE")


def pulled_for_a_moment():
    """The interruption is shorter than the retries."""
    server, client = rxe(), dpdk("virtio")
    with ports.running_perftest("ib_write_bw", server, client, "-D", "8") as told:
        for _ in range(2):
            ports.wait_traffic()
            MONITOR.cable("virtio", up=False)
            ports.wait_silence()
            MONITOR.cable("virtio", up=True)
    assert "Failed" not in told[1], told


def pulled_for_longer_than_retries():
    """The pair ends with an error, and the next pair is not affected."""
    server, client = rxe(), dpdk("virtio")
    with ports.running_perftest("ib_write_bw", server, client, "-D", "120", fails=True) as told:
        ports.wait_traffic()
        MONITOR.cable("virtio", up=False)
    MONITOR.cable("virtio", up=True)
    assert "Failed status 12" in told[1], told  # retries exceeded
    perftest("ib_write_lat", server, client, *LAT)


def no_link_at_the_start():
    MONITOR.cable("virtio", up=False)
    try:
        said = dpdk("virtio").ended("ibv_devinfo")
        assert "PORT_DOWN" in said, said
        with ports.Watched(dpdk("virtio")) as watched:
            MONITOR.cable("virtio", up=True)
            watched.wait("PORT_ACTIVE")
    finally:
        MONITOR.cable("virtio", up=True)


def a_peer_with_another_hardware_address():
    """The peer has booted with another card, so the known hardware address is wrong."""
    for mac in ("52:54:00:00:02:01", "52:54:00:00:02:02"):
        for words in (f"link set eth0 address {mac}", "link set eth0 down", "link set eth0 up"):
            ports.said("ip", *words.split())
        ports.said("ip", "addr", "replace", f"{ports.RXE6}/64", "dev", "eth0", "nodad")
        clusters.wait_until("the kernel's device", lambda: "ACTIVE" in ports.said(
            "rdma", "link", "show", "rxe0/1"), ports.SECONDS)
        perftest("ib_write_lat", rxe(), dpdk("virtio"), *LAT)


def killed_and_opened_again():
    for kind in ("virtio", "e1000"):
        for _ in range(2):
            with ports.Watched(dpdk(kind)) as watched:
                watched.process.send_signal(signal.SIGKILL)
                watched.process.wait()
        perftest("ib_write_lat", rxe(), dpdk(kind), *LAT)


def refused(end, *words):
    """Check that an unusable device is reported with these words, and that its program exits."""
    done = subprocess.run([*end.prefix, "ibv_devinfo", "-d", "soft0"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=ports.SECONDS, check=False)
    assert done.returncode > 0, done
    for word in words:
        assert word in done.stderr, (word, done)


def in_use():
    with ports.Watched(dpdk("virtio")):
        refused(dpdk("virtio", "10.0.0.7"), PORT["virtio"], "another program uses it")


@contextlib.contextmanager
def bound(kind, driver):
    before = ports.driver(kind)
    ports.bind(kind, driver)
    try:
        yield
    finally:
        ports.bind(kind, before)


def bound_to_others():
    for driver, says in (("virtio-pci", "is bound to the driver virtio-pci"),
                         ("", "is bound to no driver")):
        with bound("virtio", driver):
            refused(dpdk("virtio"), PORT["virtio"], says, "vfio-pci")
    refused(ports.End(*ports.soft_run("dpdk:0000:7f:00.0", "10.0.0.7")),
            "no PCI device 0000:7f:00.0")


#
def with_little_memory_to_lock():
    end = dpdk("virtio")
    end.prefix = ("sh", "-c", 'ulimit -l 64; exec setpriv --bounding-set=-ipc_lock --inh-caps='
                  '-ipc_lock -- "$@"', "sh", *end.prefix)
    refused(end, PORT["virtio"], "RLIMIT_MEMLOCK")


def unplugged_in_use():
    for _ in range(2):
        with ports.Watched(dpdk("virtio")) as watched:
            MONITOR.ask("device_del", id="port0")
            watched.wait("DEVICE_FATAL")
            clusters.wait_until("the port is gone", lambda: not ports.is_there("virtio"),
                                ports.SECONDS)
            assert watched.process.poll() is None
        refused(dpdk("virtio"), f"no PCI device {PORT['virtio']}")
        MONITOR.plug()
        clusters.wait_until("the port is back", lambda: ports.driver("virtio"), ports.SECONDS)
        ports.bind("virtio", "vfio-pci")
    perftest("ib_write_lat", rxe(), dpdk("virtio"), *LAT)


def unplugged_beside_traffic():
    server, client = rxe(), dpdk("virtio")
    with ports.running_perftest("ib_write_bw", server, client, "-D", "8", fails=True) as told:
        ports.wait_traffic()
        MONITOR.ask("device_del", id="port0")
        clusters.wait_until("the port is gone", lambda: not ports.is_there("virtio"),
                            ports.SECONDS)
    assert told, told
    MONITOR.plug()
    clusters.wait_until("the port is back", lambda: ports.driver("virtio"), ports.SECONDS)
    ports.bind("virtio", "vfio-pci")
    perftest("ib_write_lat", rxe(), dpdk("virtio"), *LAT)


if __name__ == "__main__":
    ports.set_up()
    MONITOR = ports.Monitor()
    tap.run([
        ("packets of 4 KiB pass between two ports that are told of a larger MTU",
         large_packets_between_two_ports),
        ("servers on ports answer both kinds of client", the_other_way_round),
        ("addresses of IPv6 find each other", addresses_of_ip6),
        ("who is behind a router is reached", behind_a_router),
        ("programs are told when a cable is pulled and put back", cables_are_followed),
        ("a cable that is pulled for a moment costs no pair", pulled_for_a_moment),
        ("a cable that is away for longer than retries ends the pair, and no other",
         pulled_for_longer_than_retries),
        ("a port without a link is opened, and comes up later", no_link_at_the_start),
        ("a peer that comes back with another hardware address is found",
         a_peer_with_another_hardware_address),
        ("a port whose program was killed can be opened again", killed_and_opened_again),
        ("a port that somebody has is refused by name", in_use),
        ("a port of another driver is refused by name", bound_to_others),
        ("too little memory that may be locked is said", with_little_memory_to_lock),
        ("a port that is unplugged in use is given back and told to be gone", unplugged_in_use),
        ("a port that is unplugged beside traffic ends no program by a signal",
         unplugged_beside_traffic),
    ])
