#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The feeds for Kubernetes, NHC, Flux and PBS: what they do with what an agent says, on a stand-in
for the agent and on fakes of those who act.

    feeds_test.py TOCSIN FEEDS-DIRECTORY
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import cluster as clusters
import patience
import stand_in
import tap

TOCSIN = pathlib.Path(sys.argv[1]).resolve()
FEEDS = pathlib.Path(sys.argv[2]).resolve()
PATIENCE_S = patience.HANG_SECONDS

# Facts are in files below $FAKES: what was drained and why, and each order that was given.
FAKE_FLUX = """#!/bin/sh
case "$*" in
"resource drain --no-header --include n2 --format {timestamp} {reason}") cat "$FAKES/reason" ;;
*) for word in "$@"; do printf '%s|' "$word"; done >>"$FAKES/orders"; echo >>"$FAKES/orders" ;;
esac
case "$*" in
"resource drain -u n2 "*) echo "1764028800.5 $5" >"$FAKES/reason" ;;
esac
"""
FAKE_PBSNODES = """#!/bin/sh
case "$*" in
n2) cat "$FAKES/node" ;;
*) for word in "$@"; do printf '%s|' "$word"; done >>"$FAKES/orders"; echo >>"$FAKES/orders" ;;
esac
case "$*" in
"-o -C "*) printf 'n2\\n     state = offline\\n     comment = %s\\n' "$3" >"$FAKES/node" ;;
esac
"""
BROKEN = "#!/bin/sh\necho 'cannot connect' >&2\nexit 1\n"

# What an agent may say of n2: grade, verdict, advice.
DRAIN = ("critical", "node-down", "drain")
HEALTHY = ("ok", "healthy", "nothing")
NEITHER = {
    "not confirmed": ("critical", "agent-frozen", "warn"),
    "a restart": ("critical", "agent-down", "restart"),
    "slow": ("warning", "path-degraded", "warn"),
    "unknown": ("unknown", "unknown", "show"),
    "in maintenance": ("ok", "node-down", "show"),
    "braked": ("critical", "fabric-down", "show"),
    "a word of the future": ("critical", "node-down", "reboot"),
}
DEAF = object()
OBSERVES = object()  # [health] act = no


def answer_of(say):
    """What the agent that is asked says, and beside it, if it is given, what n2's own says."""
    grade, verdict, advice, *itself = say
    observes = itself == [OBSERVES]
    itself = [] if observes else itself
    row = stand_in.finding("n2", grade=grade, verdict=verdict, advice=advice,
                           reason="NodeSilent", evidence="2 of 2 observers do not reach it",
                           would="drain" if observes and grade != "ok" else None)

    def answer(line, _):
        words = line.split()
        if words == ["NODE", "n2", "HEALTH", "n2"] and itself == [None]:
            return b'{"error": "n2 does not answer"}\n'
        if words == ["NODE", "n2", "HEALTH", "n2"] and itself:
            return answer_of(itself[0])("HEALTH n2", _)
        if words[-2:] != ["HEALTH", "n2"]:
            return b'{"error": "no node is called so"}\n'
        return stand_in.as_json(stand_in.health(grade=grade, findings=[row], act=not observes))

    return answer


class Bed:
    """tocsin, a stand-in that says so, and fakes of other programs, by PATH."""

    def __init__(self, say, **programs):
        self.agent = stand_in.StandIn(stand_in.hang if say is DEAF else answer_of(say))
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-feeds-"))
        (self.directory / "tocsin").symlink_to(TOCSIN)
        for name, text in programs.items():
            (self.directory / name).write_text(text)
            (self.directory / name).chmod(0o755)

    def __enter__(self):
        self.agent.__enter__()
        return self

    def __exit__(self, *_):
        self.agent.__exit__()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, *command, **environment):
        return subprocess.run(
            [str(word) for word in command], text=True, check=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S,
            env={**os.environ, "PATH": f"{self.directory}:{os.environ['PATH']}",
                 "TOCSIN_SOCKET": self.agent.path, "FAKES": str(self.directory), **environment})

    def orders(self):
        path = self.directory / "orders"
        return path.read_text().splitlines() if path.exists() else []


def exit_of(say, style):
    with Bed(say) as bed:
        return bed.run("tocsin", "health", f"--exit={style}", "--line", "--timeout", "1s",
                       "n2").returncode


def the_exit_status_says_what_to_do():
    assert exit_of(DRAIN, "drain") == 1
    assert exit_of(HEALTHY, "drain") == 0
    for name, say in NEITHER.items():
        assert exit_of(say, "drain") == 2, name
    assert exit_of(DEAF, "drain") == 2


def what_to_drain_is_asked_of_one_node():
    with Bed(DRAIN) as bed:
        done = bed.run("tocsin", "health", "--exit=drain", "--line")
        assert done.returncode not in (0, 1) and "NAME" in done.stderr, done
        assert bed.agent.lines == [], "an agent was asked"


class Page:
    """An agent's HTTP port that answers /health/node with this page, or not at all. If it stays
    open, the check has to give up."""

    def __init__(self, text, stays_open=False):
        self.text = text
        self.stays_open = stays_open or text is None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked = []

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def serve(self):
        try:
            peer, _ = self.listener.accept()
        except OSError:
            return
        with peer:
            request = ""
            while not request.endswith("\r\n\r\n"):
                request += peer.recv(4096).decode()
            self.asked.append(request)
            if self.text is not None:
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" +
                             self.text.encode())
            if self.stays_open:
                peer.recv(1)  # the check gives up


def node_check(kind, text, stays_open=False, **environment):
    with Page(text, stays_open) as page:
        done = subprocess.run(
            [FEEDS / "kubernetes" / "tocsin-node-check", kind, "127.0.0.1", str(page.port)],
            text=True, check=False, capture_output=True, timeout=PATIENCE_S,
            env={**os.environ, **environment})
    assert page.asked[0].startswith("GET /health/node HTTP/1.0\r\n"), page.asked
    return done.returncode, done.stdout


def a_check_without_a_binary_exits_with_the_words_of_the_page():
    line = "critical: n2 device-stuck DriverHangs: a call hangs"
    page = f"{line}\nnagios 2\nnpd 1\ndrain 0\n"
    for kind, status in (("nagios", 2), ("npd", 1), ("drain", 0)):
        assert node_check(kind, page) == (status, f"{line}\n"), kind
    long = page.replace("hangs\n", "hangs" * 40 + "\n", 1)
    status, shown = node_check("npd", long)
    assert status == 1 and len(shown) == 81, shown
    # Both a malformed answer and no answer yield the status unknown.
    for text in ("", "critical: n2\n", "Not found.\n", "npd x\nnagios\ndrain 77\n"):
        for kind, status in (("nagios", 3), ("npd", 2), ("drain", 2)):
            assert node_check(kind, text)[0] == status, (kind, text)
    with Page("") as page:
        pass  # nobody listens any more
    done = subprocess.run(
        [FEEDS / "kubernetes" / "tocsin-node-check", "drain", "127.0.0.1", str(page.port)],
        text=True, check=False, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and done.stdout.startswith("unknown: no agent answers"), done


def an_answer_that_came_counts_whatever_the_time_is():
    page = "critical: n2 device-stuck DriverHangs: a call hangs\nnagios 2\nnpd 1\ndrain 1\n"
    # bash takes SECONDS from the environment: its clock of whole seconds may turn over at once.
    for kind, status in (("nagios", 2), ("npd", 1), ("drain", 1)):
        assert node_check(kind, page, SECONDS="2")[0] == status, kind
    assert node_check("npd", page, stays_open=True) == (1, page.splitlines(True)[0])


def node_problem_detector_runs_the_check_for_both_conditions():
    definition = json.loads((FEEDS / "kubernetes" / "tocsin-health.json").read_text())
    assert definition["plugin"] == "custom"
    assert definition["pluginConfig"]["max_output_length"] == 80
    conditions = [one["type"] for one in definition["conditions"]]
    assert conditions == ["TocsinProblem", "TocsinDrain"]
    # node-problem-detector rejects a rule with a longer timeout than the global one.
    assert {rule["timeout"] for rule in definition["rules"]} == {"20s"}
    assert definition["pluginConfig"]["timeout"] == "20s"
    # The first result publishes both conditions, and only a drain has consequences.
    assert definition["pluginConfig"]["skip_initial_status"] is True
    for rule, condition, kind in zip(definition["rules"], reversed(conditions), ("hold", "npd")):
        assert rule["condition"] == condition and rule["args"] == [kind], rule
        assert rule["path"].endswith("/tocsin-node-check"), rule


def ends_before_the_deadline(port):
    """Run the check within the seconds of node-problem-detector, as a fair clock counts them."""
    definition = json.loads((FEEDS / "kubernetes" / "tocsin-health.json").read_text())
    seconds = int(definition["pluginConfig"]["timeout"].rstrip("s"))
    with subprocess.Popen(
            [FEEDS / "kubernetes" / "tocsin-node-check", "npd", "127.0.0.1", str(port)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as check:
        try:
            clusters.wait_until("the end of the check", lambda: check.poll() is not None, seconds)
        finally:
            check.kill()
        line = check.stdout.read()
    assert check.returncode == 2 and line.startswith("unknown: no agent answers"), line


def a_check_is_answered_before_its_deadline():
    """The script waits 3 s for the page, node-problem-detector 20 s for the script."""
    with Page(None) as page:
        ends_before_the_deadline(page.port)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first:
        first.connect(full.getsockname())  # fills the backlog: no later connect() ends
        port = full.getsockname()[1]
        with socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(full.getsockname())
            ends_before_the_deadline(port)


def the_drain_that_is_held_changes_with_a_certain_answer_only():
    with tempfile.TemporaryDirectory(prefix="tocsin-feeds-") as place:
        file = pathlib.Path(place, "last")

        def held(drain):
            return node_check("hold", f"ok: n2\nnagios 0\nnpd 0\ndrain {drain}\n",
                              TOCSIN_HOLD=str(file))

        assert held(2) == (0, "ok: n2\n") and not file.exists()
        for drain, status in ((0, 0), (2, 0), (1, 1), (2, 1), ("x", 1), (0, 0), (1, 1)):
            assert held(drain)[0] == status, (drain, status)
        assert node_check("hold", "", TOCSIN_HOLD=str(file))[0] == 1  # the agent died
        # An agent that was put back to observing releases the drain, other checks are as before.
        observes = "critical: n2 would be drained\nnagios 2\nnpd 1\ndrain 2\nact 0\n"
        for kind, status in (("npd", 1), ("drain", 2), ("hold", 0)):
            assert node_check(kind, observes, TOCSIN_HOLD=str(file))[0] == status, kind
        assert held(2)[0] == 0
        assert held("1\nact 1")[0] == 1
        for torn in ("", "2\n", "1 0\n", "$(exit)\n"):
            file.write_text(torn)
            assert held(2)[0] == 0, torn
        file.unlink()
        # A status that cannot be kept is still published, and the line says so.
        for page, status in (("critical: n2 x\ndrain 1\n", 1), ("critical: n2 x\ndrain 0\n", 0)):
            assert node_check("hold", page, TOCSIN_HOLD=f"{place}/none/last") == \
                (status, "cannot keep the last status; critical: n2 x\n"), page


def an_agent_that_only_observes_has_no_effect_and_is_quoted():
    say = ("critical", "node-down", "warn", OBSERVES)
    assert exit_of(say, "drain") == 2
    assert exit_of((*HEALTHY, OBSERVES), "drain") == 2, "nothing is undrained either"
    for path, program, text, facts in (
            ("flux/tocsin-flux", "flux", FAKE_FLUX, {"reason": ""}),
            ("pbs/tocsin-pbs", "pbsnodes", FAKE_PBSNODES,
             {"node": "n2\n     Mom = n2\n     state = free\n"})):
        with Bed(say, **{program: text}) as bed:
            for name, content in facts.items():
                (bed.directory / name).write_text(content)
            done = bed.run(FEEDS / path, "n2", TOCSIN_DRAINS=str(bed.directory / "drains"))
            assert bed.orders() == [] and "n2 would be drained" in done.stdout, (path, done)


def feed(say, path, program, text, facts):
    """The orders that a feed gives if the agent says so and these are the facts."""
    with Bed(say, **{program: text}) as bed:
        drains = bed.directory / "drains"
        drains.mkdir()
        for name, content in facts.items():
            (bed.directory / name).write_text(content)
        kept = (drains / "n2").read_text() if (drains / "n2").exists() else ""
        done = bed.run(FEEDS / path, "n2", TOCSIN_DRAINS=str(drains))
        assert done.returncode == 0, done
        if any("drain|-u" in order or order.startswith("-o") for order in bed.orders()):
            kept = (drains / "n2").read_text().strip()
            assert kept in ("1764028800.5 " + WHY, WHY), kept
        return bed.orders()


def flux(say, reason="", kept=None):
    """`reason` with its time, as Flux has it; `kept` as we have it: the same if it begins so."""
    kept = reason if kept is None and " tocsin: " in reason else kept
    return feed(say, "flux/tocsin-flux", "flux", FAKE_FLUX,
                {"reason": reason, **({"drains/n2": kept} if kept else {})})


def pbs(say, state="free", comment="", kept=None):
    node = f"n2\n     Mom = n2\n     state = {state}\n"
    node += f"     comment = {comment}\n" if comment else ""
    kept = comment if kept is None and comment.startswith("tocsin: ") else kept
    return feed(say, "pbs/tocsin-pbs", "pbsnodes", FAKE_PBSNODES,
                {"node": node, **({"drains/n2": kept + "\n"} if kept else {})})


WHY = "tocsin: n2 node-down NodeSilent: 2 of 2 observers do not reach it"
OURS = f"1764028800.5 {WHY}\n"  # in Flux


def flux_drains_and_takes_back_its_own():
    assert flux(DRAIN) == [f"resource|drain|-u|n2|{WHY}|"]
    assert flux(HEALTHY, OURS) == ["resource|undrain|n2|"]
    assert flux(DRAIN, OURS) == [], "said once"
    assert flux(HEALTHY) == []


def flux_leaves_what_is_foreign():
    for reason in ("1.5 replacing its cable\n", "1.5 see tocsin: ask Ann\n", "1.5 tocsin:x\n",
                   OURS, OURS.replace("\n", " -- HOLD\n"), OURS.replace("800.5", "900.5")):
        for kept in ("", OURS.replace("reach", "hear")):
            assert flux(DRAIN, reason, kept) == flux(HEALTHY, reason, kept) == [], (reason, kept)
    assert flux(HEALTHY, OURS.replace("\n", " -- HOLD\n"), OURS) == []
    assert flux(HEALTHY, OURS.replace("800.5", "900.5"), OURS) == []


def pbs_drains_and_takes_back_its_own():
    assert pbs(DRAIN) == [f"-o|-C|{WHY}|n2|"]
    assert pbs(DRAIN, "job-busy") == [f"-o|-C|{WHY}|n2|"]
    assert pbs(HEALTHY, "offline", WHY) == ["-r|-C||n2|"]
    assert pbs(HEALTHY, "down,offline", WHY) == ["-r|-C||n2|"]
    assert pbs(DRAIN, "offline", WHY) == [], "said once"
    assert pbs(HEALTHY) == []


def pbs_leaves_what_is_foreign():
    for state, comment in (("offline", ""), ("offline", "replacing its cable"),
                           ("free", "for Ann: only"), ("offline", "tocsin:x")):
        assert pbs(DRAIN, state, comment) == pbs(HEALTHY, state, comment) == [], (state, comment)
    assert pbs(HEALTHY, "offline", WHY, "") == pbs(HEALTHY, "offline", WHY + " -- HOLD", WHY) == []


def pbs_takes_its_words_off_a_node_that_a_person_brought_back():
    """Else whoever takes it offline without words would seem to be us."""
    assert pbs(HEALTHY, "free", WHY) == ["-C||n2|"]
    assert pbs(DRAIN, "free", WHY) == ["-C||n2|", f"-o|-C|{WHY}|n2|"]
    assert pbs(HEALTHY, "free", "for Ann: only", WHY) == []


def neither_drains_nor_takes_back_what_is_not_known():
    for say in (*NEITHER.values(), DEAF):
        assert flux(say) == flux(say, OURS) == [], say
        assert pbs(say) == pbs(say, "offline", WHY) == [], say


def nobody_is_taken_back_before_its_own_agent_says_so():
    for itself in (None, DRAIN, *NEITHER.values()):
        say = (*HEALTHY, itself)
        assert flux(say, OURS) == pbs(say, "offline", WHY) == [], itself
    assert flux((*HEALTHY, HEALTHY), OURS) == ["resource|undrain|n2|"]


def a_scheduler_that_fails_is_given_no_orders():
    for say in (DRAIN, HEALTHY):
        for path, program in (("flux/tocsin-flux", "flux"), ("pbs/tocsin-pbs", "pbsnodes")):
            with Bed(say, **{program: BROKEN}) as bed:
                bed.run(FEEDS / path, "n2", "n3")
                assert bed.orders() == []


def nhc(bed):
    """What the check makes NHC say and return."""
    script = (f'die() {{ printf "%s %s\\n" "$1" "$2"; }}; . "{FEEDS}/nhc/tocsin.nhc"; '
              "check_tocsin")
    done = bed.run("bash", "-c", script, HOSTNAME_S="n2",
                   TOCSIN_NHC_LAST=str(bed.directory / "last"))
    return done.returncode, done.stdout


def nhc_fails_while_the_node_would_be_drained():
    with Bed(DRAIN) as bed:
        status, said = nhc(bed)
        assert status == 1 and said.startswith("1 check_tocsin:  ") and "NodeSilent" in said
        bed.agent.answer = answer_of(HEALTHY)
        assert nhc(bed) == (0, "")


def nhc_keeps_its_answer_while_nothing_is_known():
    for name, say in NEITHER.items():
        with Bed(say) as bed:
            assert nhc(bed) == (0, ""), name
            bed.agent.answer = answer_of(DRAIN)
            assert nhc(bed)[0] == 1
            bed.agent.answer = answer_of(say)
            status, said = nhc(bed)
            assert status == 1 and "NodeSilent" in said, name


HOSTILE_NAME = 'n"1\\\n} 1 2\n# EOF'


def textfile(bed, *words, file=None):
    return bed.run("tocsin", "health", "--textfile", file or bed.directory / "tocsin.prom",
                   "--timeout", "1s", *words)


def checked(path):
    """What promtool has no objection to, as {series: value}."""
    text = path.read_text()
    if shutil.which("promtool") is not None:
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
    rows = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert not any(word.isdigit() for word in (name.split("}")[-1] for name in rows)), text
    return rows


def a_textfile_has_the_verdicts_and_when_it_was_written():
    with Bed(DRAIN) as bed:
        before = int(time.time())
        done = textfile(bed, "n2")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        path = bed.directory / "tocsin.prom"
        rows = checked(path)
        assert rows['tocsin_health_verdict{node="n2",verdict="node-down",reason="NodeSilent",'
                    'grade="critical",advice="drain",maint="0"}'] == "1", rows
        assert rows["tocsin_health_answered"] == "1" and rows["tocsin_health_grade"] == "2"
        assert before <= int(rows["tocsin_textfile_last_run_timestamp_seconds"]) <= time.time()
        assert path.stat().st_mode & 0o777 == 0o644
        assert not list(bed.directory.glob("tocsin.prom?*")), "nothing is left beside it"


def a_name_cannot_write_lines_of_its_own():
    with Bed(DRAIN) as bed:
        bed.agent.answer = lambda *_: stand_in.as_json(stand_in.health(
            grade="critical", findings=[stand_in.finding(HOSTILE_NAME)]))
        assert textfile(bed).returncode == 0
        rows = checked(bed.directory / "tocsin.prom")
        assert len([name for name in rows if "verdict" in name]) == 1, rows


def a_textfile_without_an_answer_says_so():
    with Bed(DEAF) as bed:
        done = textfile(bed)
        assert done.returncode == 0 and done.stderr, done
        rows = checked(bed.directory / "tocsin.prom")
        assert rows["tocsin_health_answered"] == "0" and rows["tocsin_health_grade"] == "3"


def a_directory_that_takes_nothing_keeps_the_old_file():
    with Bed(DRAIN) as bed:
        done = textfile(bed, "n2", file=bed.directory / "absent" / "tocsin.prom")
        assert done.returncode == 3 and done.stdout == "" and done.stderr.count("\n") == 1
        assert "absent/tocsin.prom" in done.stderr and "No such file" in done.stderr, done.stderr
        (bed.directory / "taken.prom").mkdir()  # rename() fails, also for root
        (bed.directory / "taken.prom" / "old").write_text("old")
        assert textfile(bed, file=bed.directory / "taken.prom").returncode == 3
        assert (bed.directory / "taken.prom" / "old").read_text() == "old"
        assert not list(bed.directory.glob("taken.prom?*"))


def what_excludes_each_other_is_refused():
    with Bed(DRAIN) as bed:
        for words in (["--line"], ["--exit=npd"], ["--all", "n2"]):
            done = textfile(bed, *words)
            assert done.returncode == 3 and "exclude" in done.stderr, (words, done)
        assert not (bed.directory / "tocsin.prom").exists()


def epilog_fails_only_on_a_node_that_is_to_be_drained():
    for say, status in ((DRAIN, 1), (HEALTHY, 0), *((say, 0) for say in NEITHER.values())):
        with Bed(say) as bed:
            done = bed.run(FEEDS / "tocsin-slurm-epilog", SLURMD_NODENAME="n2")
            assert done.returncode == status, (say, done)
            assert ("node-down" in done.stderr) == (status == 1), done
    with Bed(HEALTHY) as bed:
        done = bed.run(FEEDS / "tocsin-slurm-epilog", SLURMD_NODENAME="n2",
                       TOCSIN_SOCKET=f"{bed.directory}/none")
        assert (done.returncode, done.stderr) == (0, ""), done


def shellcheck_finds_nothing():
    if shutil.which("shellcheck") is None:
        raise tap.Skip("shellcheck is not installed")
    done = subprocess.run(
        ["shellcheck", "-x", FEEDS / "flux/tocsin-flux", FEEDS / "pbs/tocsin-pbs",
         FEEDS / "kubernetes/tocsin-node-check", FEEDS / "tocsin-slurm-epilog",
         FEEDS / "nhc/tocsin.nhc"], text=True, check=False, stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    tap.run([
        ("--exit=drain says drain, take back, or leave it as it is",
         the_exit_status_says_what_to_do),
        ("--exit=drain wants the name of a node", what_to_drain_is_asked_of_one_node),
        ("a check without a binary exits with the words of /health/node",
         a_check_without_a_binary_exits_with_the_words_of_the_page),
        ("an answer that came counts, whatever the time is",
         an_answer_that_came_counts_whatever_the_time_is),
        ("a drain that is held changes only with a certain answer",
         the_drain_that_is_held_changes_with_a_certain_answer_only),
        ("node-problem-detector runs the check for both conditions",
         node_problem_detector_runs_the_check_for_both_conditions),
        ("an agent that hangs is unknown before node-problem-detector's deadline",
         a_check_is_answered_before_its_deadline),
        ("an agent that only observes has no effect, and is quoted",
         an_agent_that_only_observes_has_no_effect_and_is_quoted),
        ("Flux: drains with -u, takes back its own", flux_drains_and_takes_back_its_own),
        ("Flux: what another drained is left alone", flux_leaves_what_is_foreign),
        ("PBS: takes offline, brings back its own", pbs_drains_and_takes_back_its_own),
        ("PBS: what another took offline or commented on is left alone",
         pbs_leaves_what_is_foreign),
        ("PBS: our words leave a node that a person brought back",
         pbs_takes_its_words_off_a_node_that_a_person_brought_back),
        ("what is not known neither drains nor takes back",
         neither_drains_nor_takes_back_what_is_not_known),
        ("nobody is taken back before its own agent says so",
         nobody_is_taken_back_before_its_own_agent_says_so),
        ("a scheduler that fails is given no orders", a_scheduler_that_fails_is_given_no_orders),
        ("NHC: the check fails while the node would be drained",
         nhc_fails_while_the_node_would_be_drained),
        ("NHC: the last answer stands while nothing is known",
         nhc_keeps_its_answer_while_nothing_is_known),
        ("a textfile has the verdicts and when it was written",
         a_textfile_has_the_verdicts_and_when_it_was_written),
        ("a node's name cannot write lines of its own", a_name_cannot_write_lines_of_its_own),
        ("a textfile without an answer says so", a_textfile_without_an_answer_says_so),
        ("a directory that takes nothing keeps the old file",
         a_directory_that_takes_nothing_keeps_the_old_file),
        ("--textfile excludes what it cannot go with", what_excludes_each_other_is_refused),
        ("Slurm's Epilog fails only on a node that is to be drained",
         epilog_fails_only_on_a_node_that_is_to_be_drained),
        ("shellcheck finds nothing", shellcheck_finds_nothing),
    ])
