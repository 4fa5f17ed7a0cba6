#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents among strangers who mean harm, and on a machine that runs out of things.

    agent_hostile_test.py BUILD-ROOT CLOCK-SHIFT [asan]

Nothing lost, whatever happens: no agent exits, nobody is declared dead, the ring heals.
"""

import contextlib
import datetime
import os
import random
import re
import resource
import socket
import struct
import subprocess
import sys
import threading

import agents
import between
import cluster as clusters
import netns

AGENTS = 5
TRIES = 6
SLOW_STRANGERS = 1000
OVERLAY_PORT = 28030
CLOCK_SHIFT = sys.argv[2]
ASAN = "asan" in sys.argv[3:]
HOUR = 3600
netns.CASE_SECONDS_MAX = 1200


def connect(address, port, source=None):
    """A stranger's connection; one that was turned away may be over before connect() is back."""
    made = socket.socket()
    made.settimeout(agents.WAIT_SECONDS)
    if source:
        made.bind((source, 0))
    with contextlib.suppress(ConnectionResetError):
        made.connect((address, port))
    return made


def drop(made):
    """Closes by a reset, so that nothing stays behind in the kernel."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.close()


def transport(agent):
    return agent.counters()["transport"]


def descriptors(agent):
    return len(os.listdir(f"/proc/{agent.process.pid}/fd"))


def test_ring(cluster):
    """The ring stands before anybody comes."""
    cluster.start()
    cluster.wait_ring(agents.WAIT_SECONDS)


def test_noise(cluster):
    """Random bytes harm neither the overlay's port nor the clients'."""
    victim, dice = cluster.agents[0], random.Random(1)
    before = victim.counters()
    for _ in range(200):
        for port in (OVERLAY_PORT, clusters.CLIENT_PORT):
            stranger = connect(victim.address, port)
            try:
                stranger.sendall(dice.randbytes(dice.randrange(1, 4000)))
            except OSError:
                pass  # turned away
            drop(stranger)
    agents.wait_until("the noise to be counted", lambda: (
        transport(victim)["proof_failures"] + transport(victim)["proof_unknown_key"] +
        transport(victim)["turned_away_rate"] > before["transport"]["proof_failures"]))
    agents.assert_unharmed(cluster)


def test_scan(cluster):
    """A port scan, connections that end at once by either way, harms nobody."""
    for agent in cluster.agents:
        for number in range(200):
            for port in (OVERLAY_PORT, clusters.CLIENT_PORT):
                try:
                    made = connect(agent.address, port)
                except OSError:
                    continue
                if number % 2:
                    made.close()
                else:
                    drop(made)
    agents.assert_unharmed(cluster)


def test_slow_handshakes(cluster):
    """A thousand that never finish the proof keep nobody out: another node still joins."""
    victim, joiner = cluster.agents[0], cluster.agents[3]
    joiner.leave()
    strangers = []
    try:
        for number in range(SLOW_STRANGERS):
            source = f"127.250.{number // 200 + 1}.{number % 200 + 1}"
            made = connect(victim.address, OVERLAY_PORT, source)
            strangers.append(made)
            try:
                made.send(b"\0")
            except OSError:
                pass  # turned away
        (joiner.directory / "state" / "members").unlink()  # through the victim alone
        joiner.configure(overlay__join=victim.address)
        joiner.start()
        agents.wait_for_state(cluster, joiner.name, "alive")
        agents.wait_until("the strangers to be given up", lambda: (
            transport(victim)["strangers_evicted"] + transport(victim)["proof_timeouts"] >=
            SLOW_STRANGERS))
    finally:
        for made in strangers:
            drop(made)
    agents.assert_unharmed(cluster)


def test_wrong_key(cluster):
    """One with another key learns nothing and joins nobody; it is counted by whom it asks."""
    key = cluster.directory / "other-key"
    subprocess.run([str(cluster.tocsin), "keygen", "--output", str(key)], check=True,
                   stdout=subprocess.DEVNULL)
    before = sum(transport(agent)["proof_unknown_key"] for agent in cluster.agents)
    stranger = clusters.Agent(cluster, 90)
    stranger.own = {"overlay.key": key}
    stranger.start()
    try:
        agents.wait_until("the wrong key to be counted", lambda: sum(
            transport(agent)["proof_unknown_key"] for agent in cluster.agents) > before)
        agents.wait_until("the stranger to be alone", lambda: stranger.events("JOIN_WAITING"))
        assert not stranger.ask("PEERS")["joined"]
        assert not any(agents.peer(agent, stranger.name) for agent in cluster.agents)
    finally:
        stranger.kill()
    agents.assert_log_is_clean(stranger)
    agents.assert_unharmed(cluster)


def test_other_cluster(cluster):
    """One of another cluster is not let in, even with the right key."""
    stranger = clusters.Agent(cluster, 91)
    stranger.own = {"overlay.cluster": "another"}
    stranger.start()
    try:
        agents.wait_until("the stranger to be alone or gone", lambda: not stranger.running() or
                          stranger.events("JOIN_WAITING"))
        assert not any(agents.peer(agent, stranger.name) for agent in cluster.agents)
    finally:
        stranger.kill()
    agents.assert_unharmed(cluster)


def test_man_in_the_middle(_):
    """Bytes that are flipped, repeated, swapped or cut on the way end a connection, no life."""
    with clusters.Cluster(sys.argv[1], 4) as cluster:
        # All that they say to each other goes through the middle.
        routes = []
        for number, agent in enumerate(cluster.agents, 1):
            stands_for = cluster.address(100 + number)
            routes.append(((stands_for, OVERLAY_PORT), (agent.address, OVERLAY_PORT)))
            agent.own = {"overlay.advertise": stands_for}
        cluster.join = ",".join(listen[0] for listen, _ in routes)
        with between.Between(routes) as middle:
            cluster.start()
            cluster.wait_ring(agents.WAIT_SECONDS)
            mischief(cluster, middle)
            agents.end(cluster)


def forged(cluster):
    return sum(transport(agent)["frames_forged"] for agent in cluster.agents)


def was_found_out(cluster, middle, what):
    """Whether it was; a connection without frames, such as one that only proves an address, has
    nothing to find out."""
    made, before = middle.made, forged(cluster)
    middle.do(what)
    agents.wait_until(f"a connection after: {what}",
                      lambda: middle.done() and middle.made > made)
    if what not in between.FORGERIES:
        return True
    try:
        agents.wait_until(f"to be found out: {what}", lambda: forged(cluster) > before, 20)
    except clusters.Timeout:
        return False
    return True


def mischief(cluster, middle):
    for what in between.MISCHIEF:
        for _ in range(TRIES):
            if was_found_out(cluster, middle, what):
                break
        else:
            raise clusters.Timeout(f"to be found out: {what}: not in {TRIES} tries")
        agents.assert_unharmed(cluster)
    replayed(middle, cluster.agents[0])
    agents.assert_unharmed(cluster)


def replayed(middle, reached):
    """What was recorded of one who has the key opens nothing for one who has not."""
    before = transport(reached)["proof_timeouts"] + transport(reached)["proof_failures"]
    peers = reached.peers()
    with connect(reached.address, OVERLAY_PORT) as stranger:
        stranger.sendall(middle.first_flight)
        agents.wait_until("the replay to fail", lambda: (
            transport(reached)["proof_timeouts"] + transport(reached)["proof_failures"] > before))
    assert reached.peers().keys() == peers.keys()


def test_descriptors(cluster):
    """With all descriptors used up an agent stays a member, and answers again when it has some."""
    victim = cluster.agents[1]
    before = resource.prlimit(victim.process.pid, resource.RLIMIT_NOFILE)
    few = descriptors(victim) + 3
    resource.prlimit(victim.process.pid, resource.RLIMIT_NOFILE, (few, before[1]))
    crowd = []
    try:
        for _ in range(40):
            crowd.append(connect(victim.address, clusters.CLIENT_PORT))
        agents.wait_until("strangers to be turned away", lambda: turned_away(victim))
    finally:
        resource.prlimit(victim.process.pid, resource.RLIMIT_NOFILE, before)
        for made in crowd:
            drop(made)
    agents.wait_until("an answer", victim.answers)
    agents.assert_unharmed(cluster)


def turned_away(victim):
    """Whether it is out of descriptors: another stranger is closed before it has said anything."""
    stranger = connect(victim.address, OVERLAY_PORT)
    stranger.settimeout(2)
    try:
        return stranger.recv(1) == b""
    except socket.timeout:
        return False
    except OSError:
        return True
    finally:
        drop(stranger)


def test_log_full(cluster):
    """A log that takes nothing more costs the log, not the agent."""
    victim = cluster.agents[2]
    assert victim.leave() == 0
    victim.start(log="/dev/full")
    cluster.wait_ring(agents.WAIT_SECONDS)
    victim.ask("LOG debug")
    victim.ask("MAINT n1 on")
    victim.ask("MAINT n1 off")
    assert victim.leave() == 0
    victim.start()
    agents.assert_unharmed(cluster)


def test_file_limit(cluster):
    """A limit on the size of files costs the journal and the log, not the agent."""
    victim = cluster.agents[2]
    before = resource.prlimit(victim.process.pid, resource.RLIMIT_FSIZE, (0, -1))
    failures = victim.counters()["journal"]["write_failures"]
    for order in ("on", "off"):
        victim.ask(f"MAINT n1 {order}")
    agents.wait_until("a failed write", lambda: victim.counters()["journal"]["write_failures"] >
                      failures)
    resource.prlimit(victim.process.pid, resource.RLIMIT_FSIZE, before)
    agents.assert_unharmed(cluster)


def fill(path):
    """The whole file system that it is on, to the last byte."""
    with open(path, "wb", buffering=0) as file:
        for piece in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(piece))


@netns.isolated
def journal_full():
    """In namespaces of its own: agents whose state, and the log of one, is on a disk that fills."""
    netns.ip("link set lo up")
    with clusters.Cluster(sys.argv[1], 3) as cluster:
        disk = cluster.directory / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
        for agent in cluster.agents:
            agent.own = {"node.state_directory": disk / agent.name}
        cluster.agents[1].log = disk / "log"
        for agent in cluster.agents:
            agent.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        filler = disk / "filler"
        fill(filler)
        victim, logger, other = cluster.agents

        def more():
            for order in ("on", "off"):
                victim.ask(f"MAINT n2 {order}")
            return victim.counters()["journal"]["write_failures"] > 0

        agents.wait_until("a failed write", more, pause=0.01)
        agents.assert_unharmed(cluster)
        other.kill()
        for agent in (victim, logger):
            agents.wait_until("a verdict", lambda agent=agent: "agent-down" in [
                row["verdict"] for row in agent.ask("HEALTH n3")["findings"]])
        failed = victim.counters()["journal"]["write_failures"]
        agents.wait_until("more of them", lambda: more() and victim.counters()["journal"][
            "write_failures"] > failed + 20, pause=0.01)
        said = re.findall(r"journal_write_failed .*", victim.log.read_text())
        assert len(said) == 1 and "ENOSPC" in said[0], said
        logged = len(logger.log.read_bytes())
        filler.unlink()
        other.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        written = victim.counters()["journal"]["events_written"]
        agents.wait_until("events to be written again", lambda: more() and
                          victim.counters()["journal"]["events_written"] > written)
        agents.wait_until("the log again", lambda: logger.log.read_bytes()[
            logged:].count(b"\n") > 2)
        joined = [line for line in logger.log.read_text().splitlines()
                  if len(re.findall(r"\d{4}-\d\d-\d\dT[0-9:.]+Z (?:info|warn|error) ", line)) > 1]
        assert not joined, joined
        agents.end(cluster)
        subprocess.run(["umount", str(disk)], check=True)


def test_journal_full(_):
    """A full disk costs events, said in one line, and no verdict; with room again it goes on."""
    agents.need_root("a small disk of its own")
    journal_full()


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_clock(cluster):
    """A clock that jumps by an hour, either way, is told by others and costs no life."""
    victim = cluster.agents[4]
    shift = cluster.directory / "shift"
    shift.write_text("0")
    assert victim.leave() == 0
    victim.start(environment={"LD_PRELOAD": CLOCK_SHIFT, "CLOCK_SHIFT": str(shift),
                              "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"})
    cluster.wait_ring(agents.WAIT_SECONDS)
    for seconds in (HOUR, -HOUR):
        shift.write_text(str(seconds))
        victim.ask("MAINT n1 on")
        victim.ask("MAINT n1 off")
        told = victim.events("MAINT")[-1]["time"]
        apart = seconds_of(told) - seconds_of(cluster.agents[0].events("MAINT")[-1]["time"])
        assert abs(apart - seconds) < HOUR / 2, f"{apart:.0f} s apart, not {seconds}"
        agents.assert_unharmed(cluster)
    shift.write_text("0")
    assert victim.leave() == 0
    victim.start()
    agents.assert_unharmed(cluster)


def test_memory(cluster):
    """Clients that ask and do not read are closed, within a limit on memory, and nobody else is."""
    victim = cluster.agents[0]
    before = resource.prlimit(victim.process.pid, resource.RLIMIT_AS)
    if not ASAN:  # which reserves terabytes
        with open(f"/proc/{victim.process.pid}/statm", encoding="ascii") as statm:
            now = int(statm.read().split()[0]) * resource.getpagesize()
        resource.prlimit(victim.process.pid, resource.RLIMIT_AS, (now + (8 << 20), before[1]))
    closed = victim.counters()["client"]["closed_slow"]
    crowd = []
    try:
        for _ in range(40):
            made = connect(victim.address, clusters.CLIENT_PORT)
            made.setblocking(False)
            crowd.append(made)
            try:
                made.send(b"SET FORMAT json\n" + b"COUNTERS\nPEERS\nEVENTS 0\n" * 4000)
            except (BlockingIOError, ConnectionError):
                pass  # as much as it took
        agents.wait_until("slow clients to be closed", lambda: victim.counters()["client"][
            "closed_slow"] > closed)
        assert victim.ask("HEALTH")["alive"] == AGENTS
    finally:
        for made in crowd:
            drop(made)
        resource.prlimit(victim.process.pid, resource.RLIMIT_AS, before)
    agents.assert_unharmed(cluster)


def flood(victim, stop, counts):
    """One client that asks for the report as fast as it comes."""
    while not stop.is_set():
        try:
            with clusters.Client((victim.address, clusters.CLIENT_PORT)) as client:
                client.send("STATUS\n")
                client.rest()
            counts.append(1)
        except (OSError, EOFError):
            pass


def test_flood(cluster):
    """Clients and strangers by the dozen, for as long as they like, delay no keep-alive."""
    victim = cluster.agents[0]
    before = victim.counters()
    sequence = {agent.name: agent.events()[-1]["sequence"] for agent in cluster.agents}
    stop, counts = threading.Event(), []
    crowd = [threading.Thread(target=flood, args=(victim, stop, counts)) for _ in range(60)]
    for thread in crowd:
        thread.start()
    try:
        for number in range(600):
            try:
                drop(connect(victim.address, OVERLAY_PORT, f"127.251.1.{number % 200 + 1}"))
            except OSError:
                pass
        agents.wait_until("reports", lambda: len(counts) > 300)
    finally:
        stop.set()
        for thread in crowd:
            thread.join()
    after = victim.counters()
    agents.say(f"{len(counts)} reports, "
               f"{after['transport']['accepted'] - before['transport']['accepted']} strangers")
    for agent in cluster.agents:
        bad = [event for event in agent.events(since=sequence[agent.name])
               if event["event"] in ("SUSPECT", "LINK_DELAYED", "DEAD", "PAUSED")
               and victim.name in (event["node"], agent.name)]
        assert not bad, f"{agent.name}: {bad}"
    agents.assert_unharmed(cluster)


def test_end(cluster):
    """After all of it every agent leaves with exit status 0."""
    agents.assert_no_death_but(cluster)
    agents.end(cluster)


TESTS = [
    test_ring, test_noise, test_scan, test_slow_handshakes, test_wrong_key, test_other_cluster,
    test_man_in_the_middle, test_descriptors, test_log_full, test_file_limit, test_journal_full,
    test_clock, test_memory, test_flood, test_end,
]

if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    agents.run(clusters.Cluster(sys.argv[1], AGENTS), TESTS)
