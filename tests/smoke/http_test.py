#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""HTTP of real agents: what monitoring systems and people with a browser get.

    http_test.py BUILD-ROOT
"""

import http.client
import json
import pathlib
import shutil
import select
import socket
import subprocess
import sys
import threading
import time

import agents
import cluster as clusters
import netns
import patience
import tap

PORT = 28031
IDLE_SECONDS = 1  # after which the server looks at its connections, whatever happens
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def get(agent, path, method="GET", headers=None, body=None):
    """(status, headers, text) of one request."""
    connection = http.client.HTTPConnection(agent.address, PORT, timeout=patience.HANG_SECONDS)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def value(text, name):
    return next((float(line.split()[-1]) for line in text.splitlines()
                 if line.startswith(name + " ")), None)


def numbers_follow_the_cluster(cluster):
    agent = cluster.agents[0]
    names = len(cluster.agents)

    def alive():
        return value(get(agent, "/metrics")[2], 'tocsin_peers{state="alive"}') == names

    clusters.wait_until("all counted alive", alive)
    text = get(agent, "/metrics")[2]
    assert value(text, "tocsin_joined") == 1
    assert value(text, "tocsin_missing") == 1, "the roster names one more"
    assert value(text, "tocsin_overlay_frames_sent_total") > 0
    assert "# TYPE tocsin_loop_timer_late_longest_seconds gauge" in text
    assert value(text, "tocsin_loop_turn_longest_seconds") > 0
    assert value(text, "tocsin_spawn_helper_lost_total") == 0
    assert value(text, "tocsin_keeper_stuck_total") == 0
    assert "# TYPE tocsin_keeper_longest_seconds gauge" in text
    assert agent.counters()["spawn"]["helper_lost"] == agent.counters()["keeper"]["stuck"] == 0


def memory_is_told_by_what_it_is_for(cluster):
    agent = cluster.agents[0]
    memory = agent.counters()["memory"]
    # Its parts are of what malloc() has handed out; a sanitizer has its own malloc(), which does
    # not tell.
    parts = sum(memory[part] for part in ("core_bytes", "buffer_bytes", "verdict_bytes"))
    if b"__asan_init" not in cluster.tocsind.read_bytes():
        assert parts <= memory["heap_used_bytes"], memory
    assert 0 < memory["history_bytes"] <= memory["core_bytes"], memory
    assert memory["buffer_bytes"] > 0 and memory["verdict_bytes"] > 0, memory
    text = get(agent, "/metrics")[2]
    assert "# TYPE tocsin_memory_heap_free_bytes gauge" in text
    assert value(text, "tocsin_memory_core_bytes") == value(text, "tocsin_memory_bytes")


def promtool_finds_nothing(cluster):
    if shutil.which("promtool") is None:
        raise tap.Skip("promtool is not installed (Debian package prometheus)")
    text = get(cluster.agents[0], "/metrics")[2]
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def open_metrics_is_served_to_who_asks(cluster):
    status, headers, text = get(cluster.agents[0], "/metrics", headers={"Accept": OPEN_METRICS})
    assert status == 200 and headers["Content-Type"].startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
    families = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in families, f"{name} is opened twice"
            assert not name.endswith("_total"), name
            families.add(name)
        elif not line.startswith("#"):
            name = line.split("{")[0].split()[0]
            assert name in families or name.removesuffix("_total") in families, line


def parts_are_served_to_who_chooses_them(cluster):
    agent = cluster.agents[0]
    names = {"self": "tocsin_joined", "verdicts": "tocsin_nodes", "paths": "tocsin_paths_left_out",
             "jobs": "tocsin_job_processes_left_out"}

    def families(*chosen):
        query = "&".join(f"collect%5B%5D={part}" for part in chosen)
        status, _, text = get(agent, f"/metrics?{query}")
        assert status == 200, text
        return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}

    whole = families()
    assert set(names.values()) <= whole, whole
    parts = {part: families(part) for part in names}
    for part, family in names.items():
        assert [one for one in names if family in parts[one]] == [part], (part, parts)
    assert set.union(*parts.values()) == whole
    assert families("jobs", "self") == parts["jobs"] | parts["self"]
    status, _, text = get(agent, "/metrics?collect[]=job")
    assert (status, text) == (400, "collect[] is self, verdicts, paths or jobs.\n")


def documents_parse(cluster):
    for path in ("/health", "/status.json"):
        status, headers, text = get(cluster.agents[0], path)
        assert status == 200 and headers["Content-Type"] == "application/json"
        assert json.loads(text)["node"] == "n1" and json.loads(text)["age_ns"] >= 0, text
    peers = json.loads(get(cluster.agents[0], "/status.json")[2])["peers"]
    assert {peer["node"] for peer in peers} == {agent.name for agent in cluster.agents}


def health_node_has_exit_statuses_of_the_node(cluster):
    agent = cluster.agents[0]
    status, headers, text = get(agent, "/health/node")
    assert (status, text) == (200, "ok: n1 healthy\nnagios 0\nnpd 0\ndrain 0\nact 1\n"), \
        (status, text)
    assert headers["Content-Type"].startswith("text/plain"), headers
    source = pathlib.Path(__file__).resolve().parents[2]
    check = source / "agent/feeds/kubernetes/tocsin-node-check"
    for kind in ("nagios", "npd", "drain"):
        done = subprocess.run([check, kind, agent.address, str(PORT)], capture_output=True,
                              text=True, timeout=patience.HANG_SECONDS, check=False)
        assert (done.returncode, done.stdout) == (0, "ok: n1 healthy\n"), done


def the_process_has_the_metrics_of_client_libraries(cluster):
    text = get(cluster.agents[0], "/metrics?collect[]=self")[2]
    assert value(text, "process_cpu_seconds_total") > 0
    resident = value(text, "process_resident_memory_bytes")
    assert 2**20 < resident < value(text, "process_virtual_memory_bytes")
    assert 5 < value(text, "process_open_fds") < value(text, "process_max_fds")
    assert value(text, "process_threads") > 2
    assert abs(value(text, "process_start_time_seconds") - time.time()) < 86400


def only_reading_is_served(cluster):
    agent = cluster.agents[0]
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        status, headers, _ = get(agent, "/health", method, body="x" * 100000)
        assert status == 405 and headers["Allow"] == "GET, HEAD", (method, status)
    status, _, text = get(agent, "/metrics", "HEAD")
    assert status == 200 and text == ""


def an_unknown_path_names_the_known_ones(cluster):
    for path in ("/", "/metrics/", "/../etc/passwd", "/%00", "/metric"):
        status, _, text = get(cluster.agents[0], path)
        assert status == 404 and "/status.json" in text, (path, status, text)


def garbage_and_silence_harm_nobody(cluster):
    agent = cluster.agents[0]
    held = []
    for bytes_ in (b"", b"\0" * 4096, b"GET ", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 1000,
                   b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 20000):
        peer = socket.create_connection((agent.address, PORT), timeout=patience.HANG_SECONDS)
        try:
            peer.sendall(bytes_)
        except OSError:
            pass  # closed in the middle: its right
        held.append(peer)
    status, _, _ = get(agent, "/health")
    assert status == 200
    for peer in held:
        peer.close()


def eighty_that_trickle_keep_nobody_from_health(cluster):
    agent = cluster.agents[0]
    address = (agent.address, PORT)
    held = [socket.create_connection(address, timeout=patience.HANG_SECONDS) for _ in range(80)]
    for _ in range(20):
        for number, peer in enumerate(held):
            try:
                peer.sendall(b"G")
            except OSError:  # cut off: a stubborn one comes back
                peer.close()
                held[number] = socket.create_connection(address, timeout=patience.HANG_SECONDS)
        assert get(agent, "/health")[0] == 200
    for peer in held:
        peer.close()


def a_crowd_that_comes_at_once_keeps_nobody_from_health(cluster):
    """Of whom the server cuts off the places are free at once, not when it next looks by itself."""
    agent = cluster.agents[0]
    address = (agent.address, PORT)
    held = [socket.create_connection(address, timeout=patience.HANG_SECONDS) for _ in range(56)]
    get(agent, "/health")  # they have been let in
    agent.freeze()
    held += [socket.create_connection(address, timeout=patience.HANG_SECONDS) for _ in range(60)]
    asker = socket.create_connection(address, timeout=patience.HANG_SECONDS)
    asker.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    agent.thaw()
    clusters.wait_until("the answer", lambda: select.select([asker], [], [], 0)[0], IDLE_SECONDS)
    assert asker.recv(9) == b"HTTP/1.1 "
    for peer in [*held, asker]:
        peer.close()


def many_that_take_no_answer_keep_nobody_from_health(cluster):
    agent = cluster.agents[0]
    held = []
    for _ in range(80):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        peer.settimeout(patience.HANG_SECONDS)
        peer.connect((agent.address, PORT))
        try:
            peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        except OSError:
            pass  # cut off for a newer one
        held.append(peer)
        assert get(agent, "/health")[0] == 200
    for peer in held:
        peer.close()


def many_readers_suspect_nobody(cluster):
    agent = cluster.agents[0]
    stop = threading.Event()

    def read():
        while not stop.is_set():
            try:
                get(agent, "/status.json")
            except (OSError, http.client.HTTPException):
                pass  # as many as may are connected

    before = agent.ask("COUNTERS")["overlay"]["suspicions"]
    threads = [threading.Thread(target=read) for _ in range(16)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        agent.ask("PEERS")
    stop.set()
    for thread in threads:
        thread.join()
    after = [other.ask("COUNTERS")["overlay"]["suspicions"] for other in cluster.agents]
    assert after[0] == before and sum(after) == 0, after


def one_that_never_came_is_unknown_as_tocsin_health_says(cluster):
    def judged():
        status, _, text = get(cluster.agents[0], "/health")
        health = json.loads(text)
        return (status, health["grade"], health["reason"]) == (200, "unknown", "PeersMissing")

    clusters.wait_until("the missing one makes it unknown", judged)


def grades(agent):
    """(HTTP status, grade, reason) of /health, and the grade that HEALTH gives."""
    status, _, text = get(agent, "/health")
    health = json.loads(text)
    return status, health["grade"], health["reason"], agent.ask("HEALTH")["grade"]


def wait_grades(agent, *wanted):
    clusters.wait_until(f"{wanted} instead of {grades(agent)}", lambda: grades(agent) == wanted)


def a_death_that_only_one_saw_is_unknown_to_both(_):
    with clusters.Cluster(sys.argv[1], 2) as two:
        two.start().wait_ring()
        wait_grades(two.agents[0], 200, "ok", "None", "ok")
        two.agents[1].kill()
        wait_grades(two.agents[0], 200, "unknown", "PeersDeadSole", "unknown")


def one_that_is_no_member_is_unknown_to_both_and_unavailable(_):
    with clusters.Cluster(sys.argv[1], 2) as two:
        alone = two.agents[0]
        alone.own = {"overlay.join": two.address(2)}
        alone.start()
        clusters.wait_until("the agent", alone.answers)
        wait_grades(alone, 503, "unknown", "NotJoined", "unknown")


def a_dead_peer_is_critical_with_its_name(cluster):
    agent, victim = cluster.agents[0], cluster.agents[-1]
    victim.kill()

    def told():
        return 'node="n3",state="dead"' in get(agent, "/metrics")[2]

    clusters.wait_until("the dead one is named", told)

    wait_grades(agent, 200, "critical", "PeersDead", "critical")
    assert agent.ask("MAINT n3 on") == {"ok": True}
    wait_grades(agent, 200, "unknown", "PeersMissing", "unknown")


def a_busy_port_is_an_error_that_names_it(cluster):
    agent = cluster.agents[0]
    done = subprocess.run(
        [str(cluster.tocsind), "--config", "/dev/null", "--set", "node.state_directory=",
         "--set", f"overlay.listen={agent.address}:0", "--set", "client.listen=",
         "--set", f"client.socket={cluster.directory}/other.sock",
         "--set", f"http.listen={agent.address}"], capture_output=True, text=True,
        timeout=patience.HANG_SECONDS,
        check=False)
    assert done.returncode == 1, done.stderr
    assert f"{agent.address}:{PORT}" in done.stderr and "in use" in done.stderr, done.stderr


ASK = """
import http.client, sys
peer = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=30)
peer.connect()
try:
    peer.request("GET", "/health")
    print(peer.getresponse().status)
except (OSError, http.client.HTTPException):
    print("refused")
"""


def asked_from(network, address):
    """What another network namespace gets from an address of this one."""
    done = subprocess.run(["ip", "netns", "exec", network, sys.executable, "-c", ASK, address,
                           str(PORT)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@netns.isolated
def a_machine_and_a_stranger():
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    subprocess.run(["ip", "netns", "add", "s"], check=True)
    netns.ip("link set lo up", "link add v0 type veth peer name v1 netns s",
             "addr add 192.0.2.1/24 dev v0", "link set v0 up")
    subprocess.run(["ip", "-n", "s", "-batch", "-"], text=True, check=True,
                   input="addr add 192.0.2.2/24 dev v1\nlink set v1 up\n")
    with clusters.Cluster(sys.argv[1], 1) as one:
        agent = one.agents[0]
        agent.own = {"http.listen": f"0.0.0.0:{PORT}", "http.allow": "203.0.113.0/24"}
        one.start()
        clusters.wait_until("the agent", agent.answers)
        agent.address = "192.0.2.1"
        assert get(agent, "/health")[0] in (200, 503)
        assert asked_from("s", "192.0.2.1") == "refused"


def this_machine_may_ask_by_any_of_its_addresses_and_a_stranger_may_not(_):
    agents.need_root("a network namespace")
    a_machine_and_a_stranger()


def main(build):
    with clusters.Cluster(build, 3, settings={"overlay.expect": "n[1-4]"}) as cluster:
        cluster.start().wait_ring()
        cases = [
            ("the numbers follow the cluster", numbers_follow_the_cluster),
            ("memory is told by what it is for", memory_is_told_by_what_it_is_for),
            ("one that never came is unknown, as tocsin health says",
             one_that_never_came_is_unknown_as_tocsin_health_says),
            ("promtool finds nothing to complain about", promtool_finds_nothing),
            ("OpenMetrics is served to who asks for it", open_metrics_is_served_to_who_asks),
            ("parts of the metrics are served to who chooses them",
             parts_are_served_to_who_chooses_them),
            ("health and status are JSON that parses", documents_parse),
            ("/health/node has the exit statuses of the node",
             health_node_has_exit_statuses_of_the_node),
            ("the process has the metrics of client libraries",
             the_process_has_the_metrics_of_client_libraries),
            ("only reading is served", only_reading_is_served),
            ("an unknown path names the known ones", an_unknown_path_names_the_known_ones),
            ("garbage and silence harm nobody", garbage_and_silence_harm_nobody),
            ("eighty that trickle keep nobody from /health",
             eighty_that_trickle_keep_nobody_from_health),
            ("a crowd that comes at once keeps nobody from /health",
             a_crowd_that_comes_at_once_keeps_nobody_from_health),
            ("eighty that take no answer keep nobody from /health",
             many_that_take_no_answer_keep_nobody_from_health),
            ("many readers make nobody suspect", many_readers_suspect_nobody),
            ("a busy port is an error that names it", a_busy_port_is_an_error_that_names_it),
            ("a death that only one saw is unknown to HTTP and to health",
             a_death_that_only_one_saw_is_unknown_to_both),
            ("one that is no member is unknown to both, and unavailable",
             one_that_is_no_member_is_unknown_to_both_and_unavailable),
            ("this machine may ask by any of its addresses, and a stranger may not",
             this_machine_may_ask_by_any_of_its_addresses_and_a_stranger_may_not),
            ("a dead peer is critical, with its name", a_dead_peer_is_critical_with_its_name),
        ]
        tests = [(name, lambda case=case: case(cluster)) for name, case in cases]
        tap.run(tests)


if __name__ == "__main__":
    main(sys.argv[1])
