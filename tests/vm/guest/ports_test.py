#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in a guest with PCI ports: the dpdk wire against the kernel's Soft-RoCE and against the udp
wire, which are at other ends of the same cable."""

import ports
import tap
from ports import dpdk, operations, perftest, rxe, sockets


def every_operation_between_virtio_and_rxe():
    assert operations(rxe(), dpdk("virtio")) == 1024


def every_operation_between_sockets_and_virtio():
    assert operations(sockets(), dpdk("virtio")) == 1024


def e1000_with_both():
    """Both ends check every packet's ICRC."""
    perftest("ib_write_bw", rxe(), dpdk("e1000"), "-n", "50", "-s", "65536")
    perftest("ib_read_lat", sockets(), dpdk("e1000"), "-n", "50", "-s", "4096", "-o", "16")


if __name__ == "__main__":
    ports.set_up()
    tap.run([
        ("every operation is right between virtio and the kernel's device",
         every_operation_between_virtio_and_rxe),
        ("every operation is right between sockets and virtio",
         every_operation_between_sockets_and_virtio),
        ("an e1000 exchanges data with the kernel's device and with sockets", e1000_with_both),
    ])
