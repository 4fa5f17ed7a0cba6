#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in a guest with PCI ports. One agent has a software device on a port, with only the
capabilities of its unit; the other one uses sockets. The cable is unplugged, then the port
itself."""

import os
import subprocess

import cluster as clusters
import ports
from ports import PORT, RXE, UDP
from shared import SECONDS, Shared, wait_ready

SETTINGS = {"client.listen": "", "http.listen": "", "node.device": "soft"}
AS_UNIT = ("setpriv", "--bounding-set=-all,+net_raw", "--inh-caps=-all", "--")


def start(cluster):
    cluster.join = f"{RXE},{UDP}"
    one, two = cluster.agents
    one.own.update({"overlay.listen": RXE, "device.soft0.wire": f"dpdk:{PORT['virtio']}",
                    "device.soft0.address": "10.0.0.8"})
    two.own.update({"overlay.listen": UDP, "device.soft0.wire": "udp",
                    "device.soft0.address": UDP})
    one.start(around=AS_UNIT)
    two.start(around=("ip", "netns", "exec", "udp"))


class Pair(Shared):
    @classmethod
    def start(cls):
        cls.cluster = clusters.Cluster(os.environ["TOCSIN_BUILD"], 2, settings=SETTINGS)
        start(cls.cluster)


def reads(asker, asked):
    return subprocess.run([str(Pair.cluster.tocsin), "ping", "--rdma", asked.name, "--count", "5",
                           "--bytes", "4096", "--socket", str(asker.socket)],
                          capture_output=True, check=False).returncode == 0


def wait_reads():
    one, two = Pair.cluster.agents
    for asker, asked in ((one, two), (two, one)):
        wait_ready(asker, asked.name)
        clusters.wait_until(f"{asker.name} reads {asked.name}",
                            lambda asker=asker, asked=asked: reads(asker, asked), SECONDS)


def wait_device(agent, *words):
    """Wait until state and reason of the device contain these words."""
    def seen():
        row = agent.ask("DEVICES")["devices"][0]
        return all(word in f"{row['state']} {row['reason']}" for word in words)
    clusters.wait_until(f"the device to be {words}", seen, SECONDS)


def agents_pair_over_a_port():
    Pair.agents()
    wait_reads()


def a_pulled_cable_is_seen_and_mended():
    one, _ = Pair.agents()
    MONITOR.cable("virtio", up=False)
    wait_device(one, "down", "port 1 of soft0 is down")
    MONITOR.cable("virtio", up=True)
    wait_device(one, "up")
    wait_reads()


def a_port_that_is_pulled_out_is_taken_again():
    one, _ = Pair.agents()
    MONITOR.ask("device_del", id="port0")
    clusters.wait_until("the port is gone", lambda: not ports.is_there("virtio"), SECONDS)
    wait_device(one, f"no PCI device {PORT['virtio']}")
    MONITOR.plug()
    clusters.wait_until("the port is back", lambda: ports.driver("virtio"), SECONDS)
    ports.bind("virtio", "vfio-pci")
    wait_device(one, "up")
    wait_reads()


if __name__ == "__main__":
    ports.set_up()
    MONITOR = ports.Monitor()
    Pair.run(agents_pair_over_a_port, a_pulled_cable_is_seen_and_mended,
             a_port_that_is_pulled_out_is_taken_again)
