#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A cluster is remembered: agents join through members of an earlier run.

    agent_remember_test.py BUILD-ROOT

Each test has a cluster of its own, of agents that join through n1.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

import agents
import cluster as clusters
import tap

BUILD = sys.argv[1]
VIEW_SECONDS = 30  # of the rule that no order of restarts leaves two views for longer


@contextlib.contextmanager
def ring_of(count, **settings):
    with clusters.Cluster(BUILD, count, settings=settings) as cluster:
        cluster.join = cluster.address(1)
        cluster.start().wait_ring(agents.WAIT_SECONDS)
        yield cluster


def members_file(agent):
    return agent.directory / "state" / "members"


def remembered(agent):
    """The names in the file."""
    try:
        return {member["node"]: member
                for member in json.loads(members_file(agent).read_text())["members"]}
    except FileNotFoundError:
        return {}


def wait_remembered(agent, *names):
    agents.wait_until(f"{agent.name} to keep {names}",
                      lambda: set(names) <= set(remembered(agent)))


def leave(agent):
    assert agent.leave() == 0, agent.log.read_text()[-2000:]


def log_since_start(agent):
    """Of the run under way, which remembered somebody."""
    return agent.log.read_text(errors="replace").rsplit(" members_remembered ", 1)[-1]


def wait_joined(agent):
    agents.wait_until(f"{agent.name} to be a member", lambda: agent.ask("PEERS")["joined"])


def only_seed_restarts():
    """the only seed is restarted: it joins its old ring and founds none beside it"""
    with ring_of(4) as cluster:
        seed = cluster.agents[0]
        leave(seed)
        assert set(remembered(seed)) == {"n2", "n3", "n4"}, remembered(seed)
        # Nobody shall call it: those of whom it hears are those whom it remembers.
        for agent in cluster.running():
            agents.wait_until("its goodbye",
                              lambda agent=agent: agent.peers().get("n1") == "left")
        assert cluster.agents[1].ask("FORGET n1") == {"ok": True}
        for agent in cluster.running():
            agents.wait_until("all to forget it",
                              lambda agent=agent: "n1" not in agent.peers())
        since = time.monotonic()
        seed.start()
        cluster.wait_ring(VIEW_SECONDS)
        agents.wait_one_view(cluster)
        agents.say(f"one view {time.monotonic() - since:.2f} s after its start")
        assert not seed.ask("HEALTH")["alone"]
        happened = re.findall(r"event=(JOIN\w+)", log_since_start(seed))
        assert happened.index("JOINED") < happened.index("JOIN_DONE"), happened
        agents.assert_no_death_but(cluster)
        agents.end(cluster)


def seeds_are_gone():
    """the seed is gone for good and forgotten: who restarts joins through whom it remembers"""
    with ring_of(4) as cluster:
        seed, _, third, fourth = cluster.agents
        leave(seed)
        leave(fourth)
        for agent in cluster.running():
            agents.wait_until("both goodbyes", lambda agent=agent: all(
                agent.peers().get(name) == "left" for name in ("n1", "n4")))
        for name in ("n1", "n4"):
            assert third.ask(f"FORGET {name}") == {"ok": True}
        for agent in cluster.running():
            agents.wait_until("all to forget them", lambda agent=agent: not (
                {"n1", "n4"} & set(agent.peers())))
        fourth.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.wait_one_view(cluster)
        agents.end(cluster)


def killed_agent_remembers():
    """one that is killed has written whom it knew soon after it knew them"""
    with ring_of(3) as cluster:
        victim = cluster.agents[2]
        agents.wait_until("a list", lambda: remembered(victim))
        victim.kill()
        assert set(remembered(victim)) & {"n1", "n2"}
        victim.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.wait_log(victim, "members_remembered count=")


def alone_says_so():
    """one without seeds that reaches nobody it remembers is alone after a while, and warns"""
    with ring_of(3) as cluster:
        first, others = cluster.agents[0], cluster.agents[1:]
        first.own["overlay.join"] = ""
        leave(first)
        for agent in others:
            leave(agent)
        first.start()
        agents.wait_until("an answer", first.answers)
        health = first.ask("HEALTH")
        assert not health["joined"] and health["grade"] == "unknown", health
        wait_joined(first)
        health = first.ask("HEALTH")
        assert health["alone"] and health["grade"] == "warning", health
        assert health["join_problem"].startswith(
            "this node is alone, but remembers 2 other members: n"), health
        for command in ("health", "status"):
            shown = subprocess.run(
                [str(cluster.tocsin), command, "--socket", str(first.socket)],
                capture_output=True, text=True, check=False)
            assert "This node sees none of the nodes that it should see." in shown.stdout, shown
            assert shown.stdout.startswith("warning: "), shown
        for agent in others:
            agent.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.wait_until("all to be well", lambda: not first.ask("HEALTH")["alone"])
        agents.end(cluster)


def who_left_is_not_missed():
    """one whose others have all gone home is alone, and well"""
    with ring_of(2) as cluster:
        first, second = cluster.agents
        wait_remembered(first, "n2")
        leave(second)
        agents.wait_until("its goodbye", lambda: first.peers().get("n2") == "left")
        leave(first)
        assert remembered(first)["n2"]["left"], remembered(first)
        first.start()
        wait_joined(first)
        health = first.ask("HEALTH")
        assert not health["alone"] and health["grade"] == "ok", health
        second.start()
        cluster.wait_ring(agents.WAIT_SECONDS)


def forget_remembered():
    """tocsin forget --remembered empties the list, and who waited for those is alone at once"""
    with ring_of(3) as cluster:
        first = cluster.agents[0]
        first.own["overlay.join"] = ""
        for agent in cluster.agents:
            leave(agent)
        first.start()
        agents.wait_until("an answer", first.answers)
        assert not first.ask("PEERS")["joined"]
        shown = subprocess.run(
            [str(cluster.tocsin), "forget", "--remembered", "--socket", str(first.socket)],
            capture_output=True, text=True, check=False)
        assert shown.returncode == 0, shown
        wait_joined(first)
        agents.wait_until("an empty file", lambda: members_file(first).exists() and
                          not remembered(first))
        health = first.ask("HEALTH")
        assert not health["alone"] and health["grade"] == "ok", health
        for words in ([], ["n2", "--remembered"]):
            shown = subprocess.run(
                [str(cluster.tocsin), "forget", *words, "--socket", str(first.socket)],
                capture_output=True, text=True, check=False)
            assert shown.returncode == 2, shown


def taken_by_another_cluster():
    """a remembered address that another cluster's agent has today is dropped and ends no start"""
    with ring_of(3) as cluster:
        seed, second, third = cluster.agents
        wait_remembered(third, "n1", "n2")
        for agent in cluster.agents:
            leave(agent)
        second.own.update({"overlay.cluster": "another", "overlay.join": ""})
        second.start()
        agents.wait_log(second, 'remembered_members_ignored error=EXDEV')
        wait_joined(second)
        third.start()
        agents.wait_until("it to be dropped", lambda: third.events("JOIN_DROPPED"))
        event = third.events("JOIN_DROPPED")[0]
        assert f"{second.address}:28030, remembered as n2" in event["text"], event
        seed.start()
        agents.wait_until("one ring", lambda: third.peers() == {"n1": "alive", "n3": "alive"})
        assert len(third.events("JOIN_DROPPED")) == 1
        assert second.peers() == {"n2": "alive"}


def name_is_taken():
    """a clone of a node's disk founds no ring beside the one where its name lives"""
    with ring_of(2) as cluster:
        _, second = cluster.agents
        wait_remembered(second, "n1")
        clone = clusters.Agent(cluster, 9)
        cluster.agents.append(clone)
        shutil.copytree(second.directory / "state", clone.directory / "state")
        clone.own.update({"node.name": "n2", "overlay.join": ""})
        clone.start()
        agents.wait_until("its drop", lambda: clone.events("JOIN_DROPPED"))
        health = clone.ask("HEALTH")
        assert health["join_problem"].startswith("another live agent holds this node's name"), \
            health
        assert not health["joined"] and clone.running()
        agents.assert_no_death_but(cluster, among=cluster.agents[:2])


def names_do_not_resolve():
    """one whose names to join through cannot be looked up joins through whom it remembers"""
    with ring_of(3) as cluster:
        third = cluster.agents[2]
        leave(third)
        third.own["overlay.join"] = "no-such-host.invalid"
        third.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.end(cluster)


def hostile_file():
    """a list that is cut short, too long or a link elsewhere is ignored and written anew"""
    with ring_of(2) as cluster:
        second = cluster.agents[1]
        leave(second)
        good = members_file(second).read_text()
        for bad in (good[:-7], "", "x" * 70000, None):
            members_file(second).unlink()
            if bad is None:
                members_file(second).symlink_to("/etc/passwd")
            else:
                members_file(second).write_text(bad)
            before = second.log.read_text().count("remembered_members_ignored")
            second.start()
            cluster.wait_ring(agents.WAIT_SECONDS)
            assert second.log.read_text().count("remembered_members_ignored") == before + 1
            leave(second)
            assert set(remembered(second)) == {"n1"} and not members_file(second).is_symlink()
        assert os.stat("/etc/passwd").st_size > 0


def read_only():
    """a state directory that may only be read: the agent goes on, and joins by what is in it"""
    agents.need_root("a read-only mount")
    with ring_of(3) as cluster:
        third = cluster.agents[2]
        leave(third)
        kept = members_file(third).read_bytes()
        third.own["overlay.join"] = ""
        state = third.directory / "state"
        third.start(around=("unshare", "--mount", "sh", "-c",
                            'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && '
                            'exec "$@"', str(state)))
        cluster.wait_ring(agents.WAIT_SECONDS)
        agents.wait_log(third, "state_directory_read_only")
        agents.end(cluster)
        assert members_file(third).read_bytes() == kept


def wait_maintenance(cluster, name, wanted):
    agents.wait_until(f"{name} {'in' if wanted else 'out of'} maintenance", lambda: all(
        agents.peer(agent, name)["maint"] == wanted for agent in cluster.running()))


def wait_stored(agent, name, version):
    """The file is written soon after a switch, not only at the end."""
    def stored():
        try:
            text = (agent.directory / "state" / "maintenance").read_text()
            return json.loads(text)["switches"].get(name) == version
        except (FileNotFoundError, ValueError, TypeError):
            return False

    agents.wait_until(f"{agent.name} to store the switch of {name}", stored)


def maintenance_survives_restart_of_all():
    """all agents restart together, one without its state: who was in maintenance still is"""
    with ring_of(2) as cluster:
        first, second = cluster.agents
        assert first.ask("MAINT n2 on") == {"ok": True}
        wait_maintenance(cluster, "n2", True)
        for agent in cluster.agents:
            wait_stored(agent, "n2", 1)
        for lost in (None, first, second):
            for agent in cluster.agents:
                leave(agent)
            if lost is not None:
                shutil.rmtree(lost.directory / "state")
            for agent in cluster.agents:
                agent.start()
            cluster.wait_ring(agents.WAIT_SECONDS)
            wait_maintenance(cluster, "n2", True)
            agents.wait_one_view(cluster)
            for agent in cluster.agents:
                wait_stored(agent, "n2", 1)
        agents.end(cluster)


def maintenance_ends_for_all():
    """a state directory that missed the end of a maintenance does not bring it back"""
    with ring_of(3) as cluster:
        first, second, third = cluster.agents
        assert first.ask("MAINT n2 on") == {"ok": True}
        wait_stored(third, "n2", 1)
        leave(third)
        assert second.ask("MAINT n2 off") == {"ok": True}
        wait_stored(first, "n2", 2)
        for agent in (first, second):
            leave(agent)
        # The older file is alone first, so its agent is sure that n2 is in maintenance.
        third.own["overlay.join"] = ""
        for agent in (third, second, first):
            agent.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        wait_stored(third, "n2", 2)
        wait_maintenance(cluster, "n2", False)
        agents.wait_one_view(cluster)
        assert second.ask("MAINT n2 on") == {"ok": True}
        wait_stored(third, "n2", 3)


def wait_order(cluster, name, reason):
    """All running agents know why the node is in maintenance."""
    def known(agent):
        return [(row["node"], row["reason"]) for row in agent.ask("MAINTENANCE")["maintenance"]]

    agents.wait_until(f"all to know the order for {name}", lambda: all(
        known(agent) == [(name, reason)] for agent in cluster.running()))


def maintenance_order_survives_and_ends():
    """an order of maintenance survives a restart of all, one without its state, and then ends"""
    with ring_of(3) as cluster:
        first, second, third = cluster.agents
        assert first.ask("MAINT n2 on 3600 joe RMA 123") == {"ok": True}
        wait_order(cluster, "n2", "RMA 123")
        for agent in cluster.agents:
            wait_stored(agent, "n2", 1)
            leave(agent)
        shutil.rmtree(third.directory / "state")
        for agent in (third, second, first):
            agent.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        wait_order(cluster, "n2", "RMA 123")
        row, = third.ask("MAINTENANCE")["maintenance"]
        assert (row["user"], row["version"]) == ("joe", 1), row
        assert 0 < row["left_ns"] <= 3600 * 10**9 and row["for_ns"] >= 0, row
        # The next order is short. Nobody orders its end, so it expires.
        assert second.ask("MAINT n2 on 3 joe a moment") == {"ok": True}
        wait_order(cluster, "n2", "a moment")
        wait_maintenance(cluster, "n2", False)
        for agent in cluster.agents:
            wait_stored(agent, "n2", 4)
            assert agent.ask("MAINTENANCE")["maintenance"] == []
        agents.wait_one_view(cluster)


def maintenance_file_is_hostile():
    """a list of switches that is damaged or of another cluster is ignored and written anew"""
    with ring_of(2) as cluster:
        _, second = cluster.agents
        assert second.ask("MAINT n1 on") == {"ok": True}
        wait_stored(second, "n1", 1)
        path = second.directory / "state" / "maintenance"
        good = path.read_text()
        for bad in (good[:-3], "[]", good.replace(":1", ":4294967296"), good.replace(":1", ':"x"'),
                    good.replace('"cluster":"', '"cluster":"x')):
            leave(second)
            path.write_text(bad)
            before = second.log.read_text().count("maintenance_ignored")
            second.start()
            cluster.wait_ring(agents.WAIT_SECONDS)
            assert second.log.read_text().count("maintenance_ignored") == before + 1, bad
            wait_stored(second, "n1", 1)


TESTS = (only_seed_restarts, seeds_are_gone, killed_agent_remembers, alone_says_so,
         who_left_is_not_missed, forget_remembered, taken_by_another_cluster, name_is_taken,
         names_do_not_resolve, hostile_file, read_only, maintenance_survives_restart_of_all,
         maintenance_ends_for_all, maintenance_order_survives_and_ends,
         maintenance_file_is_hostile)
tap.run([(test.__doc__, test) for test in TESTS])
