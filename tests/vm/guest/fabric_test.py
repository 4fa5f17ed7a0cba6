#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the guest: agents with real RDMA devices, their pairs, and faults."""

import contextlib
import json
import os
import pathlib
import subprocess
import time

import cluster as clusters
import tap
from shared import SECONDS, Shared, is_ready, pairs, wait_ready

# Retries end after 0.1 s instead of half a second, because faults here are short.
DEVICE = {f"device rxe{n}.{key}": value for n in (0, 1)
          for key, value in (("timeout", 12), ("retry", 4))}


def said(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=True).stdout


class Ring(Shared):
    """Three agents on alternating devices: the first two are at the ends of the wire."""

    @classmethod
    def start(cls):
        cls.cluster = clusters.Cluster(os.environ["TOCSIN_BUILD"], 3, settings=DEVICE)
        for number, agent in enumerate(cls.cluster.agents):
            agent.own["node.device"] = f"nic:rxe{number % 2}"
        cls.cluster.start()


def wait_not_ready(agent, node):
    clusters.wait_until(f"{agent.name} has no pair with {node}",
                        lambda: not is_ready(agent, node), SECONDS)


def probe(agent, node, count=20, size=8):
    return agent.ask(f"PROBE {node} {count} {size}")


def reads(agent, node, size=8):
    """Return whether reads succeed."""
    return "p50_ns" in probe(agent, node, 10, size)


def neighbours_are_paired_and_each_device_with_itself():
    for agent in Ring.agents():
        answer = probe(agent, agent.name)
        assert answer["answered"] == 20, answer


def reads_of_all_sizes_are_timed_over_the_wire():
    one, two = Ring.agents()[:2]
    for size in (1, 8, 1024, 1025, 4096, 65536):
        answer = probe(one, two.name, 20, size)
        assert answer["answered"] == 20 and answer["min_ns"] > 0, answer
        assert not answer["in_process"], answer
    text = said(str(Ring.cluster.tocsin), "ping", "--rdma", two.name, "--count", "5", "--socket",
                str(one.socket))
    assert "5 reads of 8 bytes" in text, text


def tables_of_the_client_show_pairs_and_devices():
    one, two = Ring.agents()[:2]
    table = said(str(Ring.cluster.tocsin), "links", "--rdma", "--socket", str(one.socket))
    assert f"{two.name} " in table and "rxe0>rxe1" in table and "ready" in table, table
    assert all(len(line) <= 100 for line in table.splitlines()), table
    devices = one.ask("DEVICES")["devices"]
    assert devices[0]["name"] == "rxe0" and devices[0]["responder"] == "kernel", devices
    counters = one.counters()
    assert counters["rdma"]["devices_up"] == 1 and counters["pairing"]["ready"] >= 3, counters


def peer_whose_process_is_killed_is_paired_anew_when_it_is_back():
    one, two = Ring.agents()[:2]
    before = pairs(one, two.name)[0]["generation"]
    two.kill()
    wait_not_ready(one, two.name)
    two.start()
    Ring.agents()
    clusters.wait_until("reads succeed again", lambda: reads(one, two.name), SECONDS)
    assert pairs(one, two.name)[0]["generation"] != before


def frozen_peer_is_read_all_the_same_for_its_kernel_answers():
    one, two = Ring.agents()[:2]
    two.freeze()
    try:
        answer = probe(one, two.name, 50)
    finally:
        two.thaw()
    assert answer["answered"] == 50, answer


def is_off_the_fabric(agent, other):
    row = agent.ask(f"HEALTH {other.name}")["findings"][0]
    return (row["verdict"], row["reason"]) == ("fabric-down", "PortDown")


def cable_that_is_out_fails_pairs_and_they_are_back_when_it_is_in():
    one, two = Ring.agents()[:2]
    said("ip", "link", "set", "ve1", "down")
    try:
        clusters.wait_until("the device is seen down", lambda: one.ask("DEVICES")["devices"][0]
                            ["state"] == "down", SECONDS)
        assert not reads(one, two.name)
        wait_not_ready(one, two.name)
        clusters.wait_until("it says so itself", lambda: is_off_the_fabric(two, one), SECONDS)
    finally:
        said("ip", "link", "set", "ve1", "up")
    wait_ready(one, two.name)
    clusters.wait_until("reads succeed again", lambda: reads(one, two.name), SECONDS)


def device(agent):
    return agent.ask("DEVICES")["devices"][0]


def worker_share(agent, seconds):
    """Return the processor time of the agent's worker, in percent."""
    def ticks():
        total = 0
        for task in pathlib.Path(f"/proc/{agent.process.pid}/task").iterdir():
            if (task / "comm").read_text().strip() == "tocsin-w1":
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                total += int(fields[11]) + int(fields[12])
        return total

    before, begin = ticks(), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begin
    return 100 * (ticks() - before) / os.sysconf("SC_CLK_TCK") / took


def device_that_is_removed_is_let_go_of_and_taken_again_when_it_is_back():
    one, two, three = Ring.agents()
    processes = [agent.process.pid for agent in (one, two, three)]
    subprocess.run(["rdma", "link", "delete", "rxe0"], check=True, timeout=SECONDS)
    try:
        clusters.wait_until("both wait for it", lambda: device(one)["state"] == "waiting" and
                            device(three)["state"] == "waiting", SECONDS)
        clusters.wait_until("the reason is told", lambda: "no device 'rxe0'" in
                            device(one)["reason"], SECONDS)
        clusters.wait_until("it says so itself", lambda: is_off_the_fabric(two, one), SECONDS)
        before = one.counters()["worker"]["blocks"]
        share = worker_share(one, 10)
        wakes = one.counters()["worker"]["blocks"] - before
        tap.comment(f"without its device a worker takes {share:.2f} % of a processor and wakes "
                    f"{wakes} times in 10 s")
        assert wakes < 1000, wakes  # an unhandled error would cause tens of thousands per second
        assert not any(pair["state"] == "ready" for pair in pairs(one))
        links = said(str(Ring.cluster.tocsin), "links", "--rdma", "--socket", str(one.socket))
        assert "DeviceGone" in links, links
    finally:
        said("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "ve0")
        back = time.monotonic()
    clusters.wait_until("both have it again", lambda: device(one)["state"] == "up" and
                        device(three)["state"] == "up", SECONDS)
    tap.comment(f"taken again {time.monotonic() - back:.2f} s after it was back")
    wait_ready(one, two.name)
    clusters.wait_until("reads succeed again", lambda: reads(one, two.name), SECONDS)
    begin = time.monotonic()
    clusters.wait_until("nothing is held against them", lambda: all(
        row["verdict"] in ("healthy", "node-busy")
        for row in two.ask("HEALTH")["findings"]), SECONDS)
    tap.comment(f"all healthy {time.monotonic() - begin:.2f} s after reads succeeded again")
    assert device(one)["opened"] >= 2
    assert processes == [agent.process.pid for agent in (one, two, three)]
    assert all(agent.running() for agent in (one, two, three))


@contextlib.contextmanager
def netem(*links, how):
    for link in links:
        said("tc", "qdisc", "add", "dev", link, "root", "netem", *how.split())
    try:
        yield
    finally:
        for link in links:
            said("tc", "qdisc", "del", "dev", link, "root")


def lost_replies_fail_reads_with_the_reason_and_the_pair_comes_back():
    one, two = Ring.agents()[:2]
    with netem("ve1", how="loss 100%"):
        # The peer's own reads are lost too, so the peer may be the first to end the pair.
        clusters.wait_until("reads fail by their retries", lambda: "RETRY_EXC_ERR" in
                            probe(one, two.name).get("error", ""), SECONDS)
    wait_ready(one, two.name)
    clusters.wait_until("reads succeed again", lambda: reads(one, two.name), SECONDS)


def lossy_and_slow_wire_is_slow_and_nothing_else():
    one, two = Ring.agents()[:2]
    with netem("ve0", "ve1", how="loss 2% delay 1ms"):
        answer = probe(one, two.name, 50)
    assert answer["answered"] == 50 and answer["p50_ns"] > 2000000, answer


def agents_that_leave_close_their_pairs_and_nothing_is_left_in_the_kernel():
    agents = Ring.agents()
    for agent in reversed(agents):
        assert agent.leave() == 0
    Ring.end()
    left = json.loads(said("rdma", "-j", "resource", "show"))
    for device in left:
        assert device["qp"] <= 1 and device["mr"] == 0, left  # the kernel's own objects


def node_without_the_device_that_was_named_says_so_once_and_is_a_member():
    with clusters.Cluster(os.environ["TOCSIN_BUILD"], 2) as cluster:
        cluster.agents[1].own["node.device"] = "nic:none"
        cluster.start()
        cluster.wait_ring()
        log = cluster.agents[1].log.read_text()
        assert log.count("rdma_missing") == 1, log
        answer = probe(cluster.agents[0], "n2")
        assert "no RDMA device" in answer["error"], answer


def node_whose_ports_are_down_at_its_start_has_its_device_when_one_comes_up():
    said("ip", "link", "set", "ve0", "down")
    try:
        with clusters.Cluster(os.environ["TOCSIN_BUILD"], 1) as cluster:
            cluster.agents[0].own["node.device"] = "auto"
            cluster.start()
            clusters.wait_until("it answers", cluster.agents[0].answers, SECONDS)
            clusters.wait_until("it awaits its port", lambda: "port 1" in
                                device(cluster.agents[0])["reason"], SECONDS)
            said("ip", "link", "set", "ve0", "up")
            clusters.wait_until("it has it", lambda: device(cluster.agents[0])["state"] == "up",
                                SECONDS)
    finally:
        said("ip", "link", "set", "ve0", "up")


def devices(agent, state=None):
    return {one["name"] for one in agent.ask("DEVICES")["devices"]
            if state in (None, one["state"])}


def told_of_rails(agent):
    """Return the peers to which the agent has announced both devices."""
    return {event["node"] for event in agent.events("RAILS_CHANGED")
            if event["detail"].endswith("measures with rxe0, rxe1")}


def agents_that_began_on_soft0_move_to_devices_that_come_and_peers_learn_of_it():
    for number in (0, 1):
        said("rdma", "link", "delete", f"rxe{number}")
    try:
        with clusters.Cluster(os.environ["TOCSIN_BUILD"], 2) as cluster:
            for agent in cluster.agents:
                agent.own["node.device"] = "auto"
            cluster.start()
            cluster.wait_ring()
            one, two = cluster.agents
            # soft0 may stay down: the kernel's Soft-RoCE keeps its port even without a device.
            clusters.wait_until("both begin on soft0", lambda: all(
                devices(agent) == {"soft0"} for agent in cluster.agents), SECONDS)
            begin = time.monotonic()
            for number in (0, 1):
                said("rdma", "link", "add", f"rxe{number}", "type", "rxe", "netdev", f"ve{number}")
            clusters.wait_until("both have moved", lambda: all(
                devices(agent) == devices(agent, "up") == {"rxe0", "rxe1"}
                for agent in cluster.agents), SECONDS)
            tap.comment(f"moved {time.monotonic() - begin:.2f} s after the first command")
            for agent, peer in ((one, two), (two, one)):
                clusters.wait_until("pairs are of both rails", lambda: {
                    pair["device"] for pair in pairs(agent, peer.name)
                    if pair["state"] == "ready"} == {"rxe0", "rxe1"}, SECONDS)
            # Both rails pair with the first rail that a peer announces.
            for agent in cluster.agents:
                clusters.wait_until(lambda: f"{agent.name} tells of both: {agent.ask('EVENTS 0')}",
                                    lambda: told_of_rails(agent) == {one.name, two.name}, SECONDS)
    finally:
        for number in (0, 1):
            subprocess.run(["rdma", "link", "add", f"rxe{number}", "type", "rxe", "netdev",
                            f"ve{number}"], check=False, capture_output=True)


def worker_has_its_memory_on_the_node_of_its_core():
    for core in ("0", "1"):
        with clusters.Cluster(os.environ["TOCSIN_BUILD"], 1) as cluster:
            cluster.agents[0].own.update({"worker.pin": "yes", "worker.cores": core})
            cluster.start()
            clusters.wait_until("the worker does not start", lambda: "worker_started" in
                                cluster.agents[0].log.read_text(), SECONDS)
            log = cluster.agents[0].log.read_text()
            started = next(line for line in log.splitlines() if "worker_started" in line)
            assert f" cores={core} " in started, started
            assert f" memory_node={core} " in started, started


if __name__ == "__main__":
    Ring.run(
        neighbours_are_paired_and_each_device_with_itself,
        reads_of_all_sizes_are_timed_over_the_wire,
        tables_of_the_client_show_pairs_and_devices,
        peer_whose_process_is_killed_is_paired_anew_when_it_is_back,
        frozen_peer_is_read_all_the_same_for_its_kernel_answers,
        cable_that_is_out_fails_pairs_and_they_are_back_when_it_is_in,
        device_that_is_removed_is_let_go_of_and_taken_again_when_it_is_back,
        lost_replies_fail_reads_with_the_reason_and_the_pair_comes_back,
        lossy_and_slow_wire_is_slow_and_nothing_else,
        agents_that_leave_close_their_pairs_and_nothing_is_left_in_the_kernel,
        node_without_the_device_that_was_named_says_so_once_and_is_a_member,
        node_whose_ports_are_down_at_its_start_has_its_device_when_one_comes_up,
        agents_that_began_on_soft0_move_to_devices_that_come_and_peers_learn_of_it,
        worker_has_its_memory_on_the_node_of_its_core,
    )
