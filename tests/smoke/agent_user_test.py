#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents of a user without any capability, as tocsind.service starts them, and the root helper.

    agent_user_test.py BUILD_DIRECTORY

The test has a mount namespace of its own: /run is empty, and the users of the units exist.
"""

import ctypes
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import sys
import threading

import agents
import cluster as clusters
import tap

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
CLONE_NEWNS = 0x20000
AGENT_ID, HELPER_ID = 47110, 47111
SOCKET = pathlib.Path("/run/tocsin-root.sock")
CONFIG = pathlib.Path("/run/etc/tocsin.conf")  # of the root helper
UNITS = pathlib.Path("/run/units")
PATIENT = {"interval": "2s", "timeout": "1500ms"}


def must(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def own_machine():
    """A mount namespace with an empty /run, and with users tocsin and tocsin-root."""
    agents.need_root("agents of another user")
    if shutil.which("setpriv") is None:
        raise tap.Skip("setpriv is not installed")
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise tap.Skip(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    must("mount", "--make-rprivate", "/")
    must("mount", "-t", "tmpfs", "tmpfs", "/run", "-o", "mode=755")
    for name, text in (("passwd", "tocsin:x:{0}:{0}::/:/bin/false\n"
                                  "tocsin-root:x:{1}:{0}::/:/bin/false\n"),
                       ("group", "tocsin:x:{0}:\n")):
        lines = [line for line in pathlib.Path("/etc", name).read_text().splitlines(True)
                 if not line.startswith(("tocsin:", "tocsin-root:"))]
        copy = pathlib.Path("/run", name)
        copy.write_text("".join(lines) + text.format(AGENT_ID, HELPER_ID))
        must("mount", "--bind", copy, f"/etc/{name}")
    CONFIG.parent.mkdir()
    UNITS.mkdir()
    shutil.copy(BUILD / "agent" / "tocsind.service", UNITS)


def as_user(uid, *capabilities):
    """The words that start a program as the units do."""
    bounding = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    return ["setpriv", "--reuid", str(uid), "--regid", str(AGENT_ID), "--clear-groups",
            "--inh-caps", bounding, "--ambient-caps", bounding, "--bounding-set", bounding,
            "--no-new-privs"]


class Systemd:
    """Listens on the socket of the root helper, and starts the helper at a connection."""

    def __init__(self, cluster):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(SOCKET))
        os.chown(SOCKET, AGENT_ID, 0)
        SOCKET.chmod(0o600)
        self.listener.listen()
        self.log = open(cluster.directory / "root.log", "ab")
        self.process = None
        self.starts = 0
        self.ended = False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        listener = self.listener.fileno()
        while not self.ended:
            if not select.select([listener], [], [], 0.1)[0]:
                continue
            self.process = subprocess.Popen(
                ["sh", "-c", f'exec "$@" 3<&{listener}', "sh",
                 *as_user(HELPER_ID, "setuid", "setgid", "kill"),
                 BUILD / "agent" / "tocsin-root", "tocsin", CONFIG],
                stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                pass_fds=[listener], env={**os.environ, "LISTEN_FDS": "1"})
            self.starts += 1
            self.process.wait()

    def said(self):
        return pathlib.Path(self.log.name).read_text(encoding="utf-8", errors="replace")

    def end(self):
        self.ended = True
        if self.process is not None:
            self.process.kill()
        self.thread.join()
        self.listener.close()
        SOCKET.unlink()
        self.log.close()


def give(agent, name, text, **keys):
    """Add a check, also to the configuration of the root helper. The command is quoted."""
    path = CONFIG.with_name(f"{name}.sh")
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    agent.configure(**{f"check__{name}__{key}": value
                       for key, value in {"command": f"'{path}'", **PATIENT, **keys}.items()})
    shutil.copy(agent.config, CONFIG)
    agents.wait_reloaded(agent)


def wait_evidence(agent, name, evidence):
    """Until the last run of a check said this; its row."""
    def last():
        row = next(row for row in agent.ask("CHECKS")["checks"] if row["name"] == name)
        return row if row["last"] and evidence in row["last"]["evidence"] else None

    return agents.wait_until(f"{name} to say {evidence!r}", last)


def agents_without_root_and_capability_form_a_ring(cluster):
    """Two agents of user tocsin, without a capability, start and join; RDMA paths are read."""
    cluster.directory.chmod(0o755)
    os.chown(cluster.key, AGENT_ID, -1)  # as ExecStartPre= of the unit
    for agent in cluster.agents:
        os.chown(agent.directory, AGENT_ID, AGENT_ID)
        agent.start(around=as_user(AGENT_ID))
    cluster.wait_ring(agents.WAIT_SECONDS)
    for agent in cluster.agents:
        status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text(encoding="ascii")
        assert re.search(rf"^Uid:(\t{AGENT_ID}){{4}}$", status, re.MULTILINE), status
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE), status
        assert re.search(r"^CapBnd:\t0+$", status, re.MULTILINE), status
    agents.wait_until("paths to be read", cluster.paths_are_known)


def keys_are_replaced_while_it_runs(cluster):
    """Root replaces the key step by step; the file stays the agent's, and SIGHUP reads it."""
    for step in ("add", "swap", "drop"):
        must(cluster.tocsin, "keygen", "--output", cluster.key, "--rotate", step)
        status = cluster.key.stat()
        assert (status.st_uid, status.st_mode & 0o7777) == (AGENT_ID, 0o600), status
        for agent in cluster.agents:
            agents.wait_reloaded(agent)
    assert not any("key_not_reloaded" in agent.log.read_text() for agent in cluster.agents)
    agents.wait_until("old links to be ended", lambda: any(
        agent.counters()["transport"]["revoked"] for agent in cluster.agents))
    agents.assert_no_death_but(cluster)


def a_key_that_root_copied_is_refused_until_it_is_given_to_the_agent(cluster):
    """A key file of root is not read; the agent says as which user, and keeps its keys."""
    agent = cluster.agents[0]
    os.chown(cluster.key, 0, -1)
    agents.wait_reloaded(agent)
    assert f"cannot open it as user {AGENT_ID}: Permission denied" in agent.log.read_text()
    assert agent.peers()["n2"] == "alive"
    os.chown(cluster.key, AGENT_ID, -1)
    agents.wait_reloaded(agent)
    assert " reloaded key=read" in agent.log.read_text().splitlines()[-1]


def a_check_of_another_user_names_the_unit_that_it_needs(cluster):
    """Without the root helper, a check with user = is unknown and names the unit."""
    agent = cluster.agents[0]
    give(agent, "own", "id -un")
    wait_evidence(agent, "own", "tocsin")
    give(agent, "other", "echo I am $(id -un); exit 2", user="nobody")
    row = wait_evidence(agent, "other", "user = nobody needs the unit tocsin-root.socket")
    assert row["last"]["result"] == "unknown", row
    assert agent.log.read_text().count("root_helper_unreachable") == 1


def the_root_helper_runs_it_as_that_user(cluster):
    """With the root helper it runs as its user, without a capability."""
    agent = cluster.agents[0]
    cluster.systemd = Systemd(cluster)
    row = wait_evidence(agent, "other", "I am nobody")
    assert row["last"]["result"] == "critical", row
    give(agent, "caps", "grep CapEff /proc/self/status", user="nobody")
    wait_evidence(agent, "caps", "0000000000000000")
    give(agent, "root", "id -un", user="root")
    wait_evidence(agent, "root", "root")
    assert cluster.systemd.starts == 1  # one connection for all


def what_the_configuration_of_root_lacks_is_refused(cluster):
    """A program that is not in the configuration of root does not run, whatever the agent has."""
    agent = cluster.agents[0]
    text = CONFIG.read_text()
    CONFIG.write_text(text.replace("[check other]", "[check another]"))
    wait_evidence(agent, "other", "tocsin-root finds no such program with a user")
    CONFIG.write_text(text)
    os.chown(CONFIG, AGENT_ID, -1)
    wait_evidence(agent, "other", "tocsin-root cannot use its configuration")
    assert "configuration_refused" in cluster.systemd.said()
    os.chown(CONFIG, 0, -1)
    wait_evidence(agent, "other", "I am nobody")
    CONFIG.parent.chmod(0o1777)
    wait_evidence(agent, "other", "tocsin-root cannot use its configuration")
    assert "other users can write to this directory" in cluster.systemd.said()
    CONFIG.parent.chmod(0o755)
    wait_evidence(agent, "other", "I am nobody")


def a_helper_that_is_killed_is_started_again(cluster):
    """The agent connects again after the helper was killed."""
    agent = cluster.agents[0]
    cluster.systemd.process.kill()
    agents.wait_until("another helper", lambda: cluster.systemd.starts > 1)
    agents.wait_log(agent, "root_helper_lost")
    wait_evidence(agent, "other", "I am nobody")


def only_the_user_of_the_agent_is_served(cluster):
    """Another user, even root, is turned away."""
    agent = cluster.agents[0]
    agent.leave()
    agents.wait_until("the helper to end", lambda: cluster.systemd.process.poll() is not None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.settimeout(agents.WAIT_SECONDS)
        stranger.connect(str(SOCKET))
        assert stranger.recv(100) == b""
    agents.wait_until("a refusal", lambda: "connection_refused user=0" in
                      cluster.systemd.said())


def a_verdict_is_told_to_a_webhook_of_another_user(cluster):
    """The root helper runs the webhook, and passes the change on to its standard input."""
    agent, other = cluster.agents
    told = pathlib.Path("/run/told")
    told.touch()
    os.chown(told, 65534, -1)
    path = CONFIG.with_name("hook.sh")
    path.write_text(f"#!/bin/sh\n{{ id -un; cat; }} >>{told}\n")
    path.chmod(0o755)
    agent.configure(health__webhook=path, health__webhook_user="nobody")
    shutil.copy(agent.config, CONFIG)
    agent.start(around=as_user(AGENT_ID))
    cluster.wait_ring(agents.WAIT_SECONDS)
    other.kill()
    agents.wait_until("the webhook", lambda: '"node":"n2"' in told.read_text())
    assert told.read_text().startswith("nobody\n{"), told.read_text()


def check_config(cluster, **change):
    agent = cluster.agents[0]
    agent.configure(**change)
    done = subprocess.run([cluster.tocsind, "--check-config", agent.config], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env={**os.environ, "SYSTEMD_UNIT_PATH": str(UNITS)})
    assert (done.returncode, done.stderr) == (0, ""), done
    return [line for line in done.stdout.splitlines() if "tocsind.service" in line]


def root_learns_what_the_user_of_the_unit_may_not_do(cluster):
    """--check-config of root names files that user tocsin cannot use, and a missing unit."""
    cluster.systemd.end()
    said = check_config(cluster)
    missing = [line for line in said if "needs the unit tocsin-root.socket" in line]
    assert len(missing) == len(said) == 4, said  # three checks and the webhook
    cluster.agents[0].own = {}
    assert not check_config(cluster)
    os.chown(cluster.key, 0, -1)
    said = check_config(cluster)
    assert len(said) == 1 and "user tocsin, who cannot use the key" in said[0], said
    assert f"chown tocsin {cluster.key}" in said[0], said
    os.chown(cluster.key, AGENT_ID, -1)
    secret = CONFIG.with_name("secret")
    secret.write_text("#!/bin/sh\n")
    secret.chmod(0o700)
    said = check_config(cluster, check__x__command=secret)
    assert len(said) == 1 and f"cannot run {secret} (check x): Permission denied" in said[0], said


TESTS = [
    agents_without_root_and_capability_form_a_ring,
    keys_are_replaced_while_it_runs,
    a_key_that_root_copied_is_refused_until_it_is_given_to_the_agent,
    a_check_of_another_user_names_the_unit_that_it_needs,
    the_root_helper_runs_it_as_that_user,
    what_the_configuration_of_root_lacks_is_refused,
    a_helper_that_is_killed_is_started_again,
    only_the_user_of_the_agent_is_served,
    a_verdict_is_told_to_a_webhook_of_another_user,
    root_learns_what_the_user_of_the_unit_may_not_do,
]


def main():
    try:
        own_machine()
    except tap.Skip as reason:
        print(f"1..0 # SKIP {reason}")
        return
    # A device in software: this machine's RDMA devices are not the subject.
    cluster = clusters.Cluster(BUILD, 2, settings={"node.device": "soft"})
    cluster.systemd = None
    try:
        agents.run(cluster, TESTS)
    finally:
        if cluster.systemd is not None and not cluster.systemd.ended:
            cluster.systemd.end()


if __name__ == "__main__":
    main()
