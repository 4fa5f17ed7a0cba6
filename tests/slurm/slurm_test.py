# SPDX-License-Identifier: BSD-3-Clause
"""Drains and undrains of a real Slurm by verdicts: those of a stand-in, which says what a test
wants, and those of real agents.

Usage: slurm_test.py BUILD-DIRECTORY"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import bed
import cluster as clusters
import rest as rests
import tap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "smoke"))
from stand_in import StandIn, as_json, hang, health  # noqa: E402

build = pathlib.Path(sys.argv[1])
program = str(build / "agent" / "tocsin")
NAMES = ["n1", "n2", "n3", "n4", "n5"]
EVIDENCE = "2 of 2 observers cannot reach it on either plane"
FAST = {"interval": "1s", "settle": "1s", "share": "100", "per_interval": "100"}


def row(node, verdict="healthy", **changed):
    """What HEALTH * says of a node."""
    bad = verdict != "healthy"
    return {"node": node, "state": "dead" if bad else "alive",
            "grade": "critical" if bad else "ok", "verdict": verdict,
            "reason": "NodeSilent" if bad else "None", "evidence": EVIDENCE if bad else "",
            "advice": "drain" if bad else "nothing", "maint": False, "for_ns": 3600 * 10**9,
            **changed}


class Verdicts:
    """A stand-in agent whose rows a test changes at any time."""

    def __init__(self):
        self.rows = {name: row(name) for name in NAMES}
        self.facts = {}
        self.itself = {}
        self.agent = StandIn(self.answer)

    def answer(self, line, _):
        if line.startswith("NODE "):
            return self.answer_itself(line.split()[1])
        wanted = line.split()[1]
        rows = [each for each in self.rows.values() if wanted in ("*", each["node"])]
        return as_json(health(findings=rows, **self.facts))

    def answer_itself(self, node):
        """What the node's own agent says of itself when it is asked over the overlay."""
        own = self.itself.get(node, self.rows.get(node))
        if own == "hangs":
            return hang()
        if own is None:
            return as_json({"error": f"{node} does not answer"})
        return as_json(own if "findings" in own or not own else health(node=node, findings=[own]))


def record_of(slurm):
    return slurm.directory / "drains.json"


def options(slurm, changed):
    words = {**FAST, "record": record_of(slurm), **changed}
    return [f"--{name.replace('_', '-')}={value}" for name, value in words.items()]


class Sync:
    """`tocsin slurm sync` for as long as the block runs."""

    def __init__(self, slurm, where):
        self.log = slurm.directory / "sync.log"
        self.log.write_text("")
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                [program, "slurm", "sync", *where, *options(slurm, {})], env=slurm.environment,
                stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        assert status == 0, (status, self.said())

    def said(self):
        return self.log.read_text()

    def wait_said(self, words):
        try:
            clusters.wait_until(words, lambda: words in self.said())
        except clusters.Timeout as error:
            raise AssertionError(f"{error}\n{self.said()}") from error


def once(slurm, verdicts, *flags, where=None, **changed):
    """One look; what it said."""
    done = slurm.run(program, "slurm", "sync", *(where or verdicts.agent.where), "--once", *flags,
                     *options(slurm, changed))
    assert done.returncode != 2, done.stderr
    return done.stdout


def reset(slurm, verdicts):
    verdicts.rows = {name: row(name) for name in NAMES}
    verdicts.facts = {}
    verdicts.itself = {}
    for name in NAMES:
        state = slurm.state(name)
        if "drain" in state or "reboot" in state:  # sinfo calls a drained node "reboot^" as well
            slurm.update(name, State="RESUME")
        clusters.wait_until(f"{name} idle", lambda name=name: slurm.state(name) == "idle")


def bad_node_is_drained_with_reason_and_evidence(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    said = once(slurm, verdicts)
    assert slurm.is_drained("n2"), said
    assert slurm.reason("n2") == f"tocsin: NodeSilent: {EVIDENCE}", slurm.reason("n2")
    assert "n2: drained: tocsin: NodeSilent" in said, said
    assert not any(slurm.is_drained(name) for name in NAMES if name != "n2"), said


def healthy_node_comes_back_once_it_has_settled(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    verdicts.rows["n2"] = row("n2", for_ns=5 * 10**9)
    said = once(slurm, verdicts, settle="60s")
    assert slurm.is_drained("n2") and "not for long enough" in said, said
    verdicts.rows["n2"] = row("n2", for_ns=61 * 10**9)
    said = once(slurm, verdicts, settle="60s")
    assert "n2: undrained" in said, said
    clusters.wait_until("n2 idle", lambda: slurm.state("n2") == "idle")


def node_whose_own_agent_does_not_confirm_stays_drained(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    verdicts.rows["n2"] = row("n2")
    for itself in (None, "hangs", {}, health(node="n2"), health(node="n2", findings=[row("n1")]),
                   health(node="n1", findings=[row("n2")]),
                   health(node="n2", findings=[row("n2")], joined=False),
                   health(node="n2", findings=[row("n2")], brake=True),
                   row("n2", "check-failed", state="alive", reason="CheckDisk"),
                   row("n2", "unknown", state="alive", grade="unknown", advice="show"),
                   row("n2", maint=True)):
        verdicts.itself["n2"] = itself
        said = once(slurm, verdicts)
        assert slurm.is_drained("n2"), (itself, said)
        assert "but its own agent does not" in said, (itself, said)
    del verdicts.itself["n2"]
    said = once(slurm, verdicts)
    assert "n2: undrained" in said and "NODE n2 HEALTH n2" in verdicts.agent.lines, said


def node_that_denies_what_it_is_said_to_report_stays_in_service(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "check-failed", state="alive", reason="DiskFailed",
                              observers=["n2"])
    for itself in (row("n2"), row("n2", "check-warning", grade="warning", advice="warn")):
        verdicts.itself["n2"] = itself
        said = once(slurm, verdicts)
        assert not slurm.is_drained("n2"), said
        assert "n2: left as it is: not drained: its own agent does not report" in said, said
    # Others need no agreement, and an agent without an answer prevents nothing.
    verdicts.rows["n3"] = row("n3", "fabric-down", state="alive", observers=["n1", "n4"])
    verdicts.itself["n3"] = row("n3")
    verdicts.itself["n2"] = None
    said = once(slurm, verdicts)
    assert slurm.reason("n3") == f"tocsin: NodeSilent: {EVIDENCE}", (slurm.reason("n3"), said)
    assert slurm.reason("n2") == (f"tocsin: DiskFailed: {EVIDENCE}; "
                                  "its agent: n2 does not answer"), (slurm.reason("n2"), said)


def agents_that_do_not_answer_keep_nobody_waiting(slurm, verdicts):
    for name in NAMES[:4]:
        verdicts.rows[name] = row(name, "node-down")
    once(slurm, verdicts)
    for name in NAMES[:4]:
        verdicts.rows[name] = row(name)
        verdicts.itself[name] = "hangs"
    verdicts.rows["n5"] = row("n5", "node-down")
    asked = len(verdicts.agent.lines)
    said = once(slurm, verdicts)
    assert slurm.is_drained("n5") and "n5: drained" in said, said
    lines = verdicts.agent.lines[asked:]
    assert sum(line.startswith("NODE ") for line in lines) == 3, lines


def agents_that_never_answer_keep_no_other_drained(slurm, verdicts):
    for name in NAMES[:4]:
        verdicts.rows[name] = row(name, "node-down")
    once(slurm, verdicts)
    for name in NAMES[:4]:
        verdicts.rows[name] = row(name)
    for name in NAMES[:3]:
        verdicts.itself[name] = None
    with Sync(slurm, verdicts.agent.where) as sync:
        sync.wait_said("n4: undrained")
    assert all(slurm.is_drained(name) for name in NAMES[:3]), sync.said()


def drain_of_a_person_stays_whatever_is_said(slurm, verdicts):
    slurm.update("n3", State="DRAIN", Reason="bad DIMM, ticket 4711")
    said = once(slurm, verdicts)
    assert slurm.reason("n3") == "bad DIMM, ticket 4711" and slurm.is_drained("n3"), said
    verdicts.rows["n3"] = row("n3", "node-down")
    said += once(slurm, verdicts)
    assert slurm.reason("n3") == "bad DIMM, ticket 4711" and slurm.is_drained("n3"), said
    assert "drained by somebody else" in said, said


def reason_that_a_person_edited_is_not_ours_any_more(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    slurm.update("n2", Reason="kept for the vendor (was tocsin: NodeSilent)")
    verdicts.rows["n2"] = row("n2")
    said = once(slurm, verdicts)
    assert slurm.is_drained("n2"), said
    assert slurm.reason("n2") == "kept for the vendor (was tocsin: NodeSilent)", said


def drains(slurm, *flags):
    """`tocsin drains`: its exit status, and node -> whether it is ours."""
    done = slurm.run(program, "drains", "--json", f"--record={record_of(slurm)}", *flags)
    rows = json.loads(done.stdout)["drains"] if done.stdout else []
    return done.returncode, {each["node"]: each["ours"] for each in rows}


def words_that_a_person_adds_to_our_reason_hold_the_node(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    assert drains(slurm) == (0, {"n2": True})
    held = slurm.reason("n2") + " -- HOLD for vendor, do not resume"
    slurm.update("n2", Reason=held)
    verdicts.rows["n2"] = row("n2")
    for _ in range(2):
        said = once(slurm, verdicts)
        assert slurm.is_drained("n2") and slurm.reason("n2") == held, said
        assert "but is not in the record" in said, said
    assert drains(slurm) == (0, {"n2": False})


def reason_of_a_person_in_our_words_stays_until_it_is_adopted(slurm, verdicts):
    slurm.update("n3", State="DRAIN", Reason="tocsin: cables are being changed")
    said = once(slurm, verdicts)
    assert slurm.is_drained("n3") and "see tocsin drains" in said, said
    assert drains(slurm, "--adopt", "n4")[0] == 1
    assert drains(slurm) == (0, {"n3": False})
    assert drains(slurm, "--adopt", "n3") == (0, {"n3": True})
    assert "n3: undrained" in once(slurm, verdicts)


def our_own_words_given_again_by_a_person_are_his(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    words, given = slurm.reason("n2"), time.time()
    clusters.wait_until("another second", lambda: time.time() > given + 1)
    slurm.update("n2", State="RESUME")
    slurm.update("n2", State="DRAIN", Reason=words)
    verdicts.rows["n2"] = row("n2")
    said = once(slurm, verdicts)
    assert slurm.is_drained("n2") and drains(slurm) == (0, {"n2": False}), said


def drains_of_a_record_that_is_lost_or_broken_stay_and_bad_nodes_are_drained(slurm, verdicts):
    for loss, words in ((record_of(slurm).unlink, "but is not in the record"),
                        (lambda: record_of(slurm).write_text("{"), "is not a record of drains")):
        verdicts.rows["n2"] = row("n2", "node-down")
        once(slurm, verdicts)
        loss()
        verdicts.rows["n2"] = row("n2")
        verdicts.rows["n4"] = row("n4", "node-down")
        said = once(slurm, verdicts)
        assert slurm.is_drained("n2") and slurm.is_drained("n4") and words in said, said
        record_of(slurm).unlink(missing_ok=True)
        reset(slurm, verdicts)


def two_controllers_undrain_each_what_it_drained(slurm, verdicts):
    first, second = (slurm.directory / f"{name}.json" for name in ("first", "second"))
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts, record=first)
    reason = slurm.reason("n2")
    said = once(slurm, verdicts, record=second)
    assert slurm.reason("n2") == reason, said
    verdicts.rows["n2"] = row("n2")
    said = once(slurm, verdicts, record=second)
    assert slurm.is_drained("n2"), said
    verdicts.rows["n3"] = row("n3", "node-down")
    once(slurm, verdicts, record=second)
    said = once(slurm, verdicts, record=first)
    assert not slurm.is_drained("n2") and slurm.is_drained("n3"), said
    verdicts.rows["n3"] = row("n3")
    assert "n3: undrained" in once(slurm, verdicts, record=second)


def sync_that_is_killed_goes_on_with_its_record(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    sync = Sync(slurm, verdicts.agent.where)
    clusters.wait_until("n2 drained", lambda: slurm.is_drained("n2"))
    sync.process.kill()
    sync.process.wait()
    verdicts.rows["n2"] = row("n2")
    if drains(slurm) == (0, {"n2": True}):
        assert "n2: undrained" in once(slurm, verdicts)
    else:  # killed between the drain and the record: a person has to say whose it is
        assert slurm.is_drained("n2")


def node_that_a_person_sets_down_stays_down(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    slurm.update("n2", State="DOWN", Reason="power supply is being changed")
    verdicts.rows["n2"] = row("n2")
    for _ in range(2):
        said = once(slurm, verdicts)
        assert slurm.reason("n2") == "power supply is being changed", said
        assert slurm.state("n2").startswith(("down", "drain")), (slurm.state("n2"), said)
    slurm.update("n2", State="RESUME")


def node_that_is_resumed_too_early_is_drained_again(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    slurm.update("n2", State="RESUME")
    with Sync(slurm, verdicts.agent.where) as sync:
        sync.wait_said("n2: drained")
    assert slurm.is_drained("n2") and drains(slurm) == (0, {"n2": True}), sync.said()


def drain_outlives_a_controller_that_reads_its_configuration_again(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    assert slurm.run("scontrol", "reconfigure").returncode == 0
    assert slurm.is_drained("n2") and drains(slurm) == (0, {"n2": True})
    verdicts.rows["n2"] = row("n2")
    assert "n2: undrained" in once(slurm, verdicts)


def undrain_waits_for_nodes_that_a_new_controller_does_not_know_yet(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    verdicts.rows["n2"] = row("n2")
    slurm.stop_controller()
    slurm.start_controller()
    with Sync(slurm, verdicts.agent.where) as sync:
        sync.wait_said("n2: undrained")
        clusters.wait_until("n2 idle", lambda: slurm.state("n2") == "idle")
    assert "could not be undrained" not in sync.said(), sync.said()


def slurmd_that_starts_again_takes_back_no_drain(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    slurmd = slurm.processes.pop("slurmd.n2")
    slurmd.send_signal(signal.SIGTERM)
    slurmd.wait()
    slurm.spawn("slurmd.n2", "slurmd", "-D", "-N", "n2")
    clusters.wait_until("n2 drained", lambda: slurm.state("n2") == "drained")
    assert drains(slurm) == (0, {"n2": True})
    verdicts.rows["n2"] = row("n2")
    assert "n2: undrained" in once(slurm, verdicts)


def maintenance_reservation_hinders_no_undrain_and_stays(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    done = slurm.run("scontrol", "create", "reservation", "reservation=work", "user=root",
                     "starttime=now", "duration=10", "flags=maint,ignore_jobs", "nodes=n2")
    assert done.returncode == 0, done
    try:
        verdicts.rows["n2"] = row("n2")
        assert "n2: undrained" in once(slurm, verdicts)
        assert "Nodes=n2" in slurm.run("scontrol", "show", "reservation", "-o").stdout
    finally:
        slurm.run("scontrol", "delete", "reservation=work")


def reboot_n2(slurm, verdicts, *words):
    """A person reboots what we drained; Slurm does so a second later, and writes that behind our
    reason. Healthy since it was asked for."""
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    # If slurmd answers a ping after Slurm has issued the reboot, Slurm takes the node into service
    # and never clears REBOOT_ISSUED. So slurmd stops first.
    slurmd = slurm.processes.pop("slurmd.n2")
    slurmd.send_signal(signal.SIGTERM)
    slurmd.wait()
    done = slurm.run("scontrol", "reboot", *words, "n2")
    assert done.returncode == 0, done
    verdicts.rows["n2"] = row("n2")
    said = once(slurm, verdicts)
    assert "n2: undrained" not in said and slurm.state("n2") != "idle", (said, slurm.state("n2"))
    # A slurmd that starts before the reboot is issued, or in the same second, has not rebooted.
    clusters.wait_until("reboot issued", lambda: "REBOOT_ISSUED" in slurm.run(
        "scontrol", "show", "node", "n2", "-o").stdout)
    second = int(time.time())
    clusters.wait_until("the next second", lambda: int(time.time()) > second)
    slurm.spawn("slurmd.n2", "slurmd", "-D", "-b", "-N", "n2")
    with Sync(slurm, verdicts.agent.where) as sync:
        clusters.wait_until("n2 idle", lambda: slurm.state("n2") == "idle")
    assert drains(slurm) == (0, {}), (said, sync.said())
    return sync.said()


def reboot_that_is_asked_for_under_our_drain_is_waited_for(slurm, verdicts):
    """`scontrol reboot ASAP`: Slurm reboots the node at once, for it is idle."""
    reboot_n2(slurm, verdicts, "ASAP", "nextstate=RESUME")


def node_that_stays_drained_by_us_over_a_reboot_comes_back(slurm, verdicts):
    """Found: what Slurm wrote behind our reason made the drain nobody's, and it stayed."""
    assert "n2: undrained" in reboot_n2(slurm, verdicts)


def node_that_slurm_sets_down_itself_is_undrained_once_it_registers(slurm, verdicts):
    """Its slurmd is gone for SlurmdTimeout: first our drain, then Slurm's DOWN."""
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    ours = slurm.reason("n2")
    slurmd = slurm.processes.pop("slurmd.n2")
    slurmd.kill()
    slurmd.wait()
    clusters.wait_until("n2 down", lambda: "DOWN" in slurm.run(
        "scontrol", "show", "node", "n2", "-o").stdout)
    assert slurm.reason("n2") == ours, slurm.reason("n2")
    verdicts.rows["n2"] = row("n2")
    said = once(slurm, verdicts)
    shown = slurm.run("scontrol", "show", "node", "n2", "-o").stdout
    assert "DRAIN" in shown or "n2: undrained" in said, (said, shown)
    slurm.spawn("slurmd.n2", "slurmd", "-D", "-N", "n2")
    with Sync(slurm, verdicts.agent.where) as sync:
        clusters.wait_until("n2 idle", lambda: slurm.state("n2") == "idle")
    assert drains(slurm) == (0, {}), (said, sync.said())


def node_that_slurm_has_down_already_keeps_its_reason(slurm, verdicts):
    slurmd = slurm.processes.pop("slurmd.n2")
    slurmd.kill()
    slurmd.wait()
    clusters.wait_until("n2 down", lambda: slurm.state("n2").startswith("down"))
    reason = slurm.reason("n2")
    verdicts.rows["n2"] = row("n2", "node-down")
    said = once(slurm, verdicts)
    assert slurm.reason("n2") == reason and not slurm.is_drained("n2"), said
    verdicts.rows["n2"] = row("n2")
    slurm.spawn("slurmd.n2", "slurmd", "-D", "-N", "n2")
    clusters.wait_until("n2 idle", lambda: slurm.state("n2") == "idle")


def evidence_of_any_text_is_found_again_as_ours(slurm, verdicts):
    """Slurm's parser has quotes and line ends for itself, and what it keeps is compared whole."""
    texts = ["disk \"sda\" says 'I/O' error\nand more\tof it; State=RESUME", "x" * 300,
             "ends in a blank ", "50 % of = and , and # and \\ and \u00fc", " ", "a  b   c"]
    for text in texts:
        verdicts.rows["n2"] = row("n2", "node-down", evidence=text)
        said = once(slurm, verdicts)
        assert slurm.is_drained("n2"), (text, said)
        assert drains(slurm) == (0, {"n2": True}), (text, slurm.reason("n2"), said)
        verdicts.rows["n2"] = row("n2")
        said = once(slurm, verdicts)
        assert "n2: undrained" in said, (text, said)
        clusters.wait_until("n2 idle", lambda: slurm.state("n2") == "idle")


def reasons_of_people_of_any_text_are_left_and_said_in_one_line(slurm, verdicts):
    for text in ("y" * 300, "bad \"DIMM\" in 'A1'", "tocsin: " + "z" * 250, "first\nsecond"):
        slurm.update("n3", State="DRAIN", Reason=text)
        shown = slurm.reason("n3")
        verdicts.rows["n3"] = row("n3", "node-down")
        said = once(slurm, verdicts)
        assert slurm.reason("n3") == shown, (text, said)
        assert len(said.splitlines()) == 1 and " n3: left as it is: " in said, (text, said)
        verdicts.rows["n3"] = row("n3")
        once(slurm, verdicts)
        assert slurm.is_drained("n3") and slurm.reason("n3") == shown, text
        slurm.update("n3", State="RESUME")


def two_at_once_with_one_record_drain_and_undrain_once(slurm, verdicts):
    """A controller that was failed over to while the old one's unit still runs."""
    with Sync(slurm, verdicts.agent.where) as one, Sync(slurm, verdicts.agent.where) as two:
        for _ in range(3):
            verdicts.rows["n2"] = row("n2", "node-down")
            clusters.wait_until("n2 drained", lambda: slurm.is_drained("n2"))
            verdicts.rows["n2"] = row("n2")
            clusters.wait_until("n2 idle", lambda: slurm.state("n2") == "idle")
    said = one.said() + two.said()
    assert "could not" not in said, said
    assert drains(slurm) == (0, {}), said


def node_that_is_taken_out_of_the_configuration_is_forgotten_and_hinders_nobody(slurm, verdicts):
    """Removed from slurm.conf with our drain on it, and back later."""
    whole = slurm.conf.read_text()
    verdicts.rows["n5"] = row("n5", "node-down")
    once(slurm, verdicts)
    slurm.stop_controller()
    slurm.conf.write_text("".join(
        line + "\n" for line in whole.replace("n4,n5", "n4").splitlines()
        if not line.startswith("NodeName=n5 ")))
    slurm.start_controller()
    try:
        clusters.wait_until("n2 idle", lambda: slurm.state("n2") == "idle")
        verdicts.rows["n2"] = row("n2", "node-down")
        said = once(slurm, verdicts)
        assert slurm.is_drained("n2"), said
        verdicts.rows["n2"] = verdicts.rows["n5"] = row("n2")
        verdicts.rows["n5"] = row("n5")
        said = once(slurm, verdicts)
        assert "n2: undrained" in said, said
    finally:
        slurm.stop_controller()
        slurm.conf.write_text(whole)
        slurm.start_controller()
        clusters.wait_until("n5 is back", lambda: slurm.state("n5") != "" and
                            slurm.state("n2") == "idle")
    with Sync(slurm, verdicts.agent.where) as sync:
        clusters.wait_until("n5 idle", lambda: slurm.state("n5") == "idle")
    assert drains(slurm) == (0, {}), sync.said()


def node_that_is_switched_off_is_not_drained(slurm, verdicts):
    """One that waits for its machine (FUTURE) is missed by the agents, and no fault of it."""
    slurm.update("n4", State="FUTURE")
    verdicts.rows["n4"] = row("n4", "node-down")
    said = once(slurm, verdicts)
    assert "n4: drained" not in said, said
    verdicts.rows["n4"] = row("n4")
    once(slurm, verdicts)
    slurm.stop_controller()
    slurm.start_controller()
    clusters.wait_until("n4 idle", lambda: slurm.state("n4") == "idle")


def node_that_slurm_does_not_know_hinders_nobody(slurm, verdicts):
    verdicts.rows["new-name"] = row("new-name", "node-down")
    verdicts.rows["n2"] = row("n2", "node-down")
    said = once(slurm, verdicts)
    assert slurm.is_drained("n2"), said
    verdicts.rows["n2"] = row("n2")
    assert "n2: undrained" in once(slurm, verdicts)


def drain_that_cannot_be_kept_is_not_made_or_stays(slurm, verdicts):
    """A disk without room: nothing is undrained that no record holds, and it is said."""
    full = slurm.directory / "full"
    full.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", full], check=True)
    try:
        (full / "filler").write_bytes(b"x" * 4096)
        verdicts.rows["n2"] = row("n2", "node-down")
        done = slurm.run(program, "slurm", "sync", *verdicts.agent.where, "--once",
                         *options(slurm, {"record": full / "drains.json"}))
        told = done.stdout + done.stderr
        assert str(full / "drains.json") in told and "No space left" in told, told
        verdicts.rows["n2"] = row("n2")
        was = slurm.is_drained("n2")
        once(slurm, verdicts, record=full / "drains.json")
        assert slurm.is_drained("n2") == was
    finally:
        subprocess.run(["umount", full], check=True)


def unknown_neither_drains_nor_undrains(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    once(slurm, verdicts)
    for name in ("n1", "n2"):
        verdicts.rows[name] = row(name, "unknown", advice="show", grade="unknown")
    verdicts.rows["n3"] = row("n3", "unknown", state="missing", reason="NeverSeen", advice="show",
                              grade="unknown", for_ns=None)
    del verdicts.rows["n4"]
    verdicts.rows["n5"] = row("n5", "struck-by-lightning", advice="teleport")
    said = once(slurm, verdicts)
    assert slurm.is_drained("n2"), said
    assert not any(slurm.is_drained(name) for name in ("n1", "n3", "n4", "n5")), said


def agent_in_doubt_is_not_acted_on(slurm, verdicts):
    for facts in ({"joined": False}, {"brake": True}):
        verdicts.facts = facts
        verdicts.rows["n1"] = row("n1", "node-down")
        said = once(slurm, verdicts)
        assert not slurm.is_drained("n1"), (facts, said)


def warned_about_and_in_maintenance_stay_in_service(slurm, verdicts):
    verdicts.rows["n1"] = row("n1", "path-degraded", advice="warn", grade="warning")
    verdicts.rows["n2"] = row("n2", "agent-down", advice="restart", grade="warning")
    verdicts.rows["n3"] = row("n3", "node-down", maint=True)
    said = once(slurm, verdicts)
    assert not any(slurm.is_drained(name) for name in NAMES), said


def brake_holds_the_number_and_the_share(slurm, verdicts):
    for name in NAMES:
        verdicts.rows[name] = row(name, "node-down")
    said = once(slurm, verdicts, per_interval=2)
    assert sum(slurm.is_drained(name) for name in NAMES) == 2, said
    assert "as many as allowed" in said, said
    said = once(slurm, verdicts, share=60)
    assert sum(slurm.is_drained(name) for name in NAMES) == 3, said
    said = once(slurm, verdicts, share=60)
    assert sum(slurm.is_drained(name) for name in NAMES) == 3, said


def dry_run_says_and_does_nothing(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    said = once(slurm, verdicts, "--dry-run")
    assert "n2: would be drained: tocsin: NodeSilent" in said, said
    assert not slurm.is_drained("n2"), said


def each_change_is_said_once(slurm, verdicts):
    with Sync(slurm, verdicts.agent.where) as sync:
        verdicts.rows["n2"] = row("n2", "node-down")
        sync.wait_said("n2: drained")
        slurm.update("n3", State="DRAIN", Reason="mine")
        verdicts.rows["n3"] = row("n3", "node-down")
        sync.wait_said("n3: left as it is")
        asked = len(verdicts.agent.lines)
        clusters.wait_until("three more looks", lambda: len(verdicts.agent.lines) > asked + 9)
        said = sync.said()
    assert said.count("n2: drained") == 1 and said.count("n3: left") == 1, said


def controller_that_is_down_is_said_once_and_waited_for(slurm, verdicts):
    with Sync(slurm, verdicts.agent.where) as sync:
        slurm.stop_controller()
        sync.wait_said("nothing is done: ")
        verdicts.rows["n4"] = row("n4", "node-down")
        slurm.start_controller()
        sync.wait_said("n4: drained")
        assert sync.said().count("nothing is done") <= 2, sync.said()
        assert "working again" in sync.said(), sync.said()
    assert slurm.is_drained("n4")


def agent_that_is_gone_is_said_once_and_nothing_is_done(slurm, verdicts):
    nobody = ["--socket", str(slurm.directory / "nobody.sock")]
    done = slurm.run(program, "slurm", "sync", *nobody, "--once",
                     *options(slurm, {}))
    assert done.returncode == 3 and "nothing is done: " in done.stdout, done
    assert not any(slurm.is_drained(name) for name in NAMES)


def scontrol_that_misbehaves_leads_to_nothing(slurm, verdicts):
    verdicts.rows["n2"] = row("n2", "node-down")
    for name, script, words in (
            ("fails", "echo 'slurm_load: oops' >&2; exit 1", "exit status 1: slurm_load: oops"),
            ("dies", "kill -9 $$", "ended by signal 9"),
            ("babbles", "echo nonsense; head -c 100000 /dev/urandom", "lists no node"),
            ("vanishes", None, "no such program"),
            ("hangs", "trap '' TERM; while :; do sleep 1; done", "did not end within 10 s"),
            ("leaves-one", "sleep 1000 & echo NodeName=n2 State=IDLE", "did not end within 10 s"),
            ("has-no-end", "yes", "printed more than"),
            ("is-cut-off", "printf 'NodeName=n2 State=IDLE+DRA'", "is not understood"),
            ("is-odd", "echo 'NodeName=n2 State=QUANTUM'", "is not understood")):
        path = slurm.directory / name
        if script is not None:
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        said = once(slurm, verdicts, scontrol=path)
        assert words in said and "drained" not in said, (name, said)
    assert not slurm.is_drained("n2")


def health_program_drains_its_own_node(_, verdicts):
    wrapper, scontrol = verdicts.directory / "health", verdicts.directory / "scontrol"
    log = verdicts.directory / "health.log"
    slurm = bed.Slurm(["n1", "n2"], health=wrapper)
    # The wrapper does the same as tocsin-slurm-health, with the paths of this test.
    wrapper.write_text(
        f"#!/bin/sh\nexport SLURM_CONF={slurm.conf} PATH={os.environ['PATH']}\n"
        f"exec {program} slurm check {' '.join(verdicts.agent.where)} --settle 1s "
        f"--scontrol {scontrol} --record {record_of(slurm)} >>{log} 2>&1\n")
    # Healthy nodes register although scontrol hangs, as it does while slurmd starts (nhc#159).
    scontrol.write_text("#!/bin/sh\nexec sleep 1000\n")
    for script in (wrapper, scontrol):
        script.chmod(0o755)
    with slurm:
        assert log.exists() and log.read_text() == "", log.read_text()
        scontrol.write_text('#!/bin/sh\nexec scontrol "$@"\n')
        verdicts.rows["n2"] = row("n2", "check-failed", state="alive", reason="CheckDisk")
        clusters.wait_until("n2 drained", lambda: slurm.is_drained("n2"))
        assert slurm.reason("n2").startswith("tocsin: CheckDisk: "), slurm.reason("n2")
        assert not slurm.is_drained("n1")
        verdicts.rows["n2"] = row("n2")
        # With its flag gone it is back; slurmctld shows a '*' until it has pinged it.
        clusters.wait_until("n2 back", lambda: slurm.state("n2").startswith("idle"))


def frozen_agent_is_drained_after_its_time_and_comes_back(slurm, _):
    with clusters.Cluster(build, 5, settings={"health.confirm": "1s"}) as ring:
        ring.start()
        ring.wait_ring()
        where = ["--socket", str(ring.agents[0].socket)]
        with Sync(slurm, where) as sync:
            ring.agents[4].freeze()
            sync.wait_said("n5: drained: tocsin: ")
            assert slurm.reason("n5").startswith("tocsin: Agent"), slurm.reason("n5")
            assert "; its agent: n5 " in slurm.reason("n5"), slurm.reason("n5")
            ring.agents[4].thaw()
            sync.wait_said("n5: undrained")
            clusters.wait_until("n5 idle", lambda: slurm.state("n5") == "idle")


def killed_agent_is_a_matter_of_its_service_and_drains_nothing(slurm, _):
    with clusters.Cluster(build, 5, settings={"health.confirm": "1s"}) as ring:
        ring.start()
        ring.wait_ring()
        ring.agents[3].kill()
        first = ring.agents[0]
        clusters.wait_until("agent-down", lambda: any(
            finding["verdict"] == "agent-down" for finding in first.ask("HEALTH n4")["findings"]))
        said = once(slurm, None, where=["--socket", str(first.socket)])
        assert "drained" not in said and not slurm.is_drained("n4"), said


PROBED = {"probe.interval": "200ms", "probe.packets": "1000", "device.soft0.faults": ""}


def says(agent, name, verdict):
    return agent.ask(f"HEALTH {name}")["findings"][0]["verdict"] == verdict


def reads(agent, name, seen):
    """Whether it reads another steadily, and sees it so."""
    return any(path["peer"] == name and path["steady"] and path["seen"] == seen
               for path in agent.ask("PATHS")["paths"])


def path_that_is_cut_drains_neither_of_its_ends(slurm, _):
    with clusters.Cluster(build, 5, settings=PROBED) as ring:
        ring.start()
        ring.wait_ring()
        # Who is whose neighbour is not the same in each ring.
        one, other = clusters.wait_until("a path", lambda: next(
            ((one, other) for one in ring.agents for other in ring.agents if one is not other
             and reads(one, other.name, "good") and reads(other, one.name, "good")), None))
        one.set_faults(f"loss=100%,to={other.address}")
        clusters.wait_until("both ends to see it", lambda: reads(one, other.name, "silent")
                            and reads(other, one.name, "silent"))
        for agent in ring.agents:
            said = once(slurm, None, where=["--socket", str(agent.socket)])
            assert "drained" not in said, (agent.name, said)
        assert not any(slurm.is_drained(name) for name in NAMES)


def node_with_slow_paths_stays_in_service(slurm, _):
    with clusters.Cluster(build, 5, settings=PROBED) as ring:
        ring.start()
        ring.wait_ring()
        clusters.wait_until("what is usual on all paths", ring.paths_are_known, 120)
        ring.agents[3].set_faults("delay=20ms")
        first = ring.agents[0]
        clusters.wait_until("path-degraded", lambda: says(first, "n4", "path-degraded"), 120)
        said = once(slurm, None, where=["--socket", str(first.socket)])
        assert "drained" not in said and not slurm.is_drained("n4"), said


def node_that_nobody_reads_is_drained_and_comes_back(slurm, _):
    with clusters.Cluster(build, 5, settings=PROBED) as ring:
        ring.start()
        ring.wait_ring()
        clusters.wait_until("two who read it", lambda: sum(
            reads(agent, "n5", "good") for agent in ring.agents[:4]) >= 2)
        with Sync(slurm, ["--socket", str(ring.agents[0].socket)]) as sync:
            ring.agents[4].set_faults("loss=100%")
            sync.wait_said("n5: drained: tocsin: PulseUnread: ")
            assert slurm.reason("n5").startswith("tocsin: PulseUnread: "), slurm.reason("n5")
            ring.agents[4].set_faults("")
            sync.wait_said("n5: undrained")
            clusters.wait_until("n5 idle", lambda: slurm.state("n5") == "idle")


def asked_over_unix(path, what):
    """What the real slurmrestd says."""
    asked = http.client.HTTPConnection("localhost")
    asked.sock = socket.socket(socket.AF_UNIX)
    try:
        asked.sock.connect(str(path))
        asked.request("GET", f"/slurm/v0.0.38/{what}")
        answer = asked.getresponse()
        assert answer.status == 200, answer.status
        return json.loads(answer.read())
    finally:
        asked.close()


def needs_restd():
    if shutil.which("slurmrestd") is None:
        raise tap.Skip("no slurmrestd here")


def slurmrestd_of_debian_reads_and_says_that_it_changes_nothing(slurm, verdicts):
    needs_restd()
    slurm.update("n1", State="DRAIN", Reason="bad-DIMM")
    slurm.update("n3", State="DRAIN", Reason="tocsin: X: y")
    verdicts.rows["n2"] = row("n2", "node-down")
    with slurm.restd() as path:
        way = ["--rest", f"unix:{path}", "--rest-api", "v0.0.38"]
        said = once(slurm, verdicts, *way, "--dry-run")
        assert "n1: left as it is: drained by somebody else" in said, said
        assert "n2: would be drained: tocsin: NodeSilent" in said, said
        assert "n3: left as it is: its reason is like ours" in said, said
        assert drains(slurm, *way, "--adopt", "all") == (0, {"n3": True})
        assert "n3: would be undrained" in once(slurm, verdicts, *way, "--dry-run")
        said = once(slurm, verdicts, *way)
        assert "n2: could not be drained: " in said and "since v0.0.39" in said, said
        said = once(slurm, verdicts, "--rest", f"unix:{path}")
        assert "nothing is done: " in said and "HTTP status 404" in said, said


def drains_over_rest_are_what_sinfo_shows(slurm, verdicts):
    """Nodes as the real slurmrestd has them, in the shape of newer versions; changes by scontrol,
    since slurmrestd of Slurm 22.05 makes none."""
    needs_restd()
    with slurm.restd() as path, rests.Rest() as rest:
        rest.rows = lambda: [
            {"name": each["name"], "state": [each["state"].upper(), *each["state_flags"]],
             **{key: value for key, value in each.items() if key.startswith("reason")}}
            for each in asked_over_unix(path, "nodes/")["nodes"]]
        rest.update = lambda name, change: slurm.update(
            name, State=change["state"][0],
            **({"Reason": change["reason"]} if "reason" in change else {}))
        verdicts.rows["n2"] = row("n2", "node-down")
        said = once(slurm, verdicts, "--rest", rest.url)
        assert "n2: drained: tocsin: NodeSilent" in said, said
        assert slurm.reason("n2") == f"tocsin: NodeSilent: {EVIDENCE}", slurm.reason("n2")
        slurm.update("n4", State="DRAIN", Reason="bad-DIMM")
        verdicts.rows["n2"] = row("n2")
        said = once(slurm, verdicts, "--rest", rest.url)
        assert "n2: undrained" in said and not slurm.is_drained("n2"), said
        assert slurm.reason("n4") == "bad-DIMM", slurm.reason("n4")


CASES = [
    bad_node_is_drained_with_reason_and_evidence,
    healthy_node_comes_back_once_it_has_settled,
    node_whose_own_agent_does_not_confirm_stays_drained,
    node_that_denies_what_it_is_said_to_report_stays_in_service,
    agents_that_do_not_answer_keep_nobody_waiting,
    agents_that_never_answer_keep_no_other_drained,
    drain_of_a_person_stays_whatever_is_said,
    reason_that_a_person_edited_is_not_ours_any_more,
    words_that_a_person_adds_to_our_reason_hold_the_node,
    reason_of_a_person_in_our_words_stays_until_it_is_adopted,
    our_own_words_given_again_by_a_person_are_his,
    drains_of_a_record_that_is_lost_or_broken_stay_and_bad_nodes_are_drained,
    two_controllers_undrain_each_what_it_drained,
    sync_that_is_killed_goes_on_with_its_record,
    node_that_a_person_sets_down_stays_down,
    node_that_is_resumed_too_early_is_drained_again,
    drain_outlives_a_controller_that_reads_its_configuration_again,
    undrain_waits_for_nodes_that_a_new_controller_does_not_know_yet,
    slurmd_that_starts_again_takes_back_no_drain,
    maintenance_reservation_hinders_no_undrain_and_stays,
    reboot_that_is_asked_for_under_our_drain_is_waited_for,
    node_that_stays_drained_by_us_over_a_reboot_comes_back,
    node_that_slurm_sets_down_itself_is_undrained_once_it_registers,
    node_that_slurm_has_down_already_keeps_its_reason,
    evidence_of_any_text_is_found_again_as_ours,
    reasons_of_people_of_any_text_are_left_and_said_in_one_line,
    two_at_once_with_one_record_drain_and_undrain_once,
    node_that_is_taken_out_of_the_configuration_is_forgotten_and_hinders_nobody,
    node_that_is_switched_off_is_not_drained,
    node_that_slurm_does_not_know_hinders_nobody,
    drain_that_cannot_be_kept_is_not_made_or_stays,
    unknown_neither_drains_nor_undrains,
    agent_in_doubt_is_not_acted_on,
    warned_about_and_in_maintenance_stay_in_service,
    brake_holds_the_number_and_the_share,
    dry_run_says_and_does_nothing,
    each_change_is_said_once,
    controller_that_is_down_is_said_once_and_waited_for,
    agent_that_is_gone_is_said_once_and_nothing_is_done,
    scontrol_that_misbehaves_leads_to_nothing,
    slurmrestd_of_debian_reads_and_says_that_it_changes_nothing,
    drains_over_rest_are_what_sinfo_shows,
    health_program_drains_its_own_node,
    frozen_agent_is_drained_after_its_time_and_comes_back,
    killed_agent_is_a_matter_of_its_service_and_drains_nothing,
    path_that_is_cut_drains_neither_of_its_ends,
    node_with_slow_paths_stays_in_service,
    node_that_nobody_reads_is_drained_and_comes_back,
]


def sentence(case):
    return case.__name__.replace("_", " ")


def skipped():
    raise tap.Skip(bed.missing())


def main():
    if bed.missing():
        tap.run([(sentence(case), skipped) for case in CASES])
    verdicts = Verdicts()
    with verdicts.agent, bed.Slurm(NAMES) as slurm:
        verdicts.directory = slurm.directory

        def bound(case):
            def run():
                reset(slurm, verdicts)
                case(slurm, verdicts)
            return run

        tap.run([(sentence(case), bound(case)) for case in CASES])


main()
