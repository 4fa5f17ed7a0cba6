#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The rules for Prometheus, by promtool: each alert fires for what it is for, once for a node
whoever tells of it, and neither in maintenance nor while the tellers are braked.

    rules_test.py FEEDS-DIRECTORY
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

RULES = pathlib.Path(sys.argv[1]) / "prometheus" / "tocsin.rules.yml"
LONG = "x90"  # of samples 15 s apart: longer than any "for"
AT = "20m"
AGENT = '{instance="a:28031"}'

# alert, verdict, severity, whether it waits, summary, description
NODE_ALERTS = [
    ("NodeDown", "node-down", "critical", True, "is down",
     "Neither the overlay nor the fabric reaches it."),
    ("FabricDown", "fabric-down", "critical", True, "has lost its fabric",
     "Its agent answers, its fabric does not: jobs on it hang or fail."),
    ("DeviceStuck", "device-stuck", "critical", True, "has a driver that hangs",
     "A call into an RDMA driver does not return; mostly only a reboot helps."),
    ("AgentFrozen", "agent-frozen", "critical", True, "has an agent that is frozen",
     "Its host answers, its agent does not: stopped, swapping or starved."),
    ("ManagementNetDown", "mgmt-net-down", "critical", True, "is off the management network",
     "Its pulse advances on the fabric, the overlay does not reach it."),
    ("CheckFailed", "check-failed", "critical", True, "fails a local check",
     "See: tocsin checks, on that node."),
    ("AgentDown", "agent-down", "warning", True, "has no agent",
     "Its host answers, its agent's process is gone."),
    ("PathDegraded", "path-degraded", "warning", True, "has slow paths",
     "Slower than their own past and than paths like them."),
    ("PathLossy", "path-lossy", "warning", True, "has paths that lose large packets",
     "Small messages pass, large ones do not: often the MTU or a cable."),
    ("NodeUnstable", "unstable", "warning", True, "changes its verdict all the time",
     "A loose cable, a service that restarts, a hole in the MTU; neither drain nor undrain it by "
     "this."),
    ("NodeBusy", "node-busy", "warning", True, "gives its agent too little processor time",
     "Its measurements are late; nothing else is wrong."),
    ("CheckWarning", "check-warning", "warning", True, "warns by a local check",
     "See: tocsin checks, on that node."),
    ("NodeUnknown", "unknown", "warning", True, "cannot be judged",
     "Nothing is known of it for sure; neither drain nor undrain it by this."),
]

# alert, series, bad values, good values, severity, whether it waits, summary, description
AGENT_ALERTS = [
    ("AgentHung", "tocsin_snapshot_age_seconds", "42", "0.3", "critical", True,
     "The agent at a:28031 hangs: its numbers are 42 s old", None),
    ("AgentAlone", "tocsin_joined", "0", "1", "warning", True,
     "The agent at a:28031 is no member of its cluster, or alone in it", None),
    ("LogLost", "tocsin_log_lost_lines_total", "0+1", "7", "warning", True,
     "The agent at a:28031 cannot write its log", None),
    ("JournalLost", "tocsin_journal_events_lost_total", "0+1", "7", "warning", True,
     "The agent at a:28031 cannot keep its events on disk", None),
    ("SpawnHelperLost", "tocsin_spawn_helper_lost_total", "1", "0", "warning", False,
     "The agent at a:28031 runs no checks any more",
     "The process that starts programs for it is gone; only a restart brings it back."),
    ("CheckStuck", "tocsin_check_stuck_now", "2", "0", "warning", True,
     "2 checks at a:28031 hang in the kernel", "Which, and where: tocsin checks, on that node."),
]


def tellers(names="abc", brake=0, drains_brake=0, age=0.5, cluster=""):
    """What agents say of themselves."""
    rows = {}
    for name in names:
        labels = f'{{{cluster}instance="{name}"}}'
        rows.update({
            f"tocsin_build_info{labels}": 1, f"tocsin_brake{labels}": brake,
            f"tocsin_verdict_brake{labels}": drains_brake,
            f"tocsin_snapshot_age_seconds{labels}": age,
        })
    return rows


GRADES = {row[1]: row[2] for row in NODE_ALERTS}


def told(verdict, names="abc", maint=0, cluster="", grade=None):
    """What agents say of n7."""
    return {f'tocsin_node_verdict{{{cluster}instance="{name}",node="n7",verdict="{verdict}",'
            f'reason="R",grade="{grade or GRADES[verdict]}",advice="a",maint="{maint}"}}': 1
            for name in names}


def fires(severity, summary, description=None, **labels):
    annotations = {"summary": summary}
    if description:
        annotations["description"] = description
    return [{"exp_labels": {"severity": severity, **labels}, "exp_annotations": annotations}]


def case(alert, expected, *series, at=AT):
    """At that time this alert, with these series, is as expected."""
    for one in expected:
        one["exp_annotations"]["runbook_url"] = (
            f"file:///usr/share/doc/tocsin/alerts.md#tocsin{alert.lower()}")
    rows = {name: value for part in series for name, value in part.items()}
    return {
        "interval": "15s",
        "input_series": [{"series": name, "values": f"{value}{LONG}"}
                         for name, value in rows.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": f"Tocsin{alert}",
                             "exp_alerts": expected}],
    }


def judge(*cases):
    """Has promtool run cases on the rules."""
    if shutil.which("promtool") is None:
        raise tap.Skip("promtool is not installed (Debian package prometheus)")
    with tempfile.TemporaryDirectory(prefix="tocsin-rules-") as place:
        path = pathlib.Path(place) / "cases.yml"  # JSON is YAML
        path.write_text(json.dumps({"rule_files": [str(RULES.resolve())],
                                    "evaluation_interval": "15s", "tests": cases}))
        done = subprocess.run(["promtool", "test", "rules", path], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout[-4000:]


def of_n7(row, agents, **labels):
    _, verdict, severity, _, summary, description = row
    return fires(severity, f"n7 {summary}, say {agents} agents",
                 f"{description} Why: tocsin why n7", node="n7", verdict=verdict, **labels)


def promtool_finds_nothing_in_the_rules():
    if shutil.which("promtool") is None:
        raise tap.Skip("promtool is not installed (Debian package prometheus)")
    done = subprocess.run(["promtool", "check", "rules", RULES], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def every_alert_is_tried_here():
    names = set(re.findall(r"- alert: Tocsin(\w+)", RULES.read_text()))
    tried = {row[0] for row in NODE_ALERTS + AGENT_ALERTS} | {
        "PauseStorm", "Brake", "DrainsWithheld", "NodesMissing", "NotScraped", "MaintenanceOld"}
    assert names == tried, names ^ tried


def every_alert_has_its_section():
    names = re.findall(r"- alert: (\w+)", RULES.read_text())
    page = pathlib.Path(sys.argv[1]).resolve().parents[1] / "docs" / "alerts.md"
    sections = re.findall(r"^## (\w+)$", page.read_text(), re.MULTILINE)
    assert sorted(names) == sorted(sections), set(names) ^ set(sections)
    links = re.findall(r"alerts\.md#(\w+)", RULES.read_text())
    assert links == [name.lower() for name in names], links


def old_maintenance_raises_an_alert():
    def oldest(days):
        return {'tocsin_maintenance_oldest_seconds{instance="a"}': days * 86400}

    old = fires("warning", "A node has been in maintenance for 8d 0h 0m 0s",
                "Nodes in maintenance raise no alert. `tocsin maint` lists them with reason "
                "and author.")
    judge(case("MaintenanceOld", old, tellers(), oldest(8)),
          case("MaintenanceOld", [], tellers(), oldest(6)),
          case("MaintenanceOld", [], tellers(), oldest(8), at="5m"))


def a_bad_node_is_one_alert_however_many_tell():
    judge(*(case(row[0], of_n7(row, 3), tellers(), told(row[1])) for row in NODE_ALERTS))


def what_heals_by_itself_is_waited_for():
    judge(*(case(row[0], [] if row[3] else of_n7(row, 3), tellers(), told(row[1]), at="0s")
            for row in NODE_ALERTS))


def other_verdicts_do_not_fire_it():
    judge(*(case(row[0], [], tellers(), told(other[1]))
            for row, other in zip(NODE_ALERTS, NODE_ALERTS[1:] + NODE_ALERTS[:1])))


def maintenance_is_none_though_one_agent_has_not_heard_of_it():
    judge(*(case(row[0], [], tellers(), told(row[1], "ab", maint=1), told(row[1], "c"))
            for row in NODE_ALERTS))


def braked_agents_alarm_nobody():
    judge(*(case(row[0], [], tellers(brake=1), told(row[1])) for row in NODE_ALERTS))
    judge(*(case(row[0], [], tellers(drains_brake=1), told(row[1])) for row in NODE_ALERTS))


def agents_that_hang_alarm_nobody():
    judge(*(case(row[0], [], tellers(age=99), told(row[1])) for row in NODE_ALERTS))


def one_braked_agent_does_not_silence_the_others():
    judge(case("NodeDown", of_n7(NODE_ALERTS[0], 2), tellers("z", brake=1), tellers("bc"),
               told("node-down", "bcz")))


def a_critical_alert_needs_more_than_half_of_the_votes():
    for row in NODE_ALERTS:
        some = of_n7(row, 3) if row[2] == "warning" else []
        judge(case(row[0], some, tellers("abcdefg"), told(row[1], "abc")),
              case(row[0], of_n7(row, 4), tellers("abcdefg"), told(row[1], "abcd")),
              case(row[0], some and of_n7(row, 1), tellers("ab"), told(row[1], "a")))


def what_one_alone_holds_for_dead_is_no_critical_alert():
    judge(*(case(row[0], [], tellers(), told(row[1], grade="unknown"))
            for row in NODE_ALERTS if row[2] == "critical"))


def clusters_are_kept_apart():
    x, y = 'cluster="x",', 'cluster="y",'
    judge(case("NodeDown", of_n7(NODE_ALERTS[0], 3, cluster="x"), tellers(cluster=x),
               tellers(cluster=y), told("node-down", cluster=x)))


def the_dashboard_adds_clusters():
    """Two clusters, each told of by two agents: the panels show nodes of the chosen ones."""
    if shutil.which("promtool") is None:
        raise tap.Skip("promtool is not installed (Debian package prometheus)")
    board = json.loads((RULES.parent / "tocsin-grafana.json").read_text())
    verdicts = ("healthy", "node-down", "device-stuck", "agent-frozen", "path-lossy")
    series = {f'tocsin_nodes{{cluster="{cluster}",instance="{cluster}{n}",verdict="{verdict}"}}': 1
              for cluster in "xy" for n in "12" for verdict in verdicts}
    shown = {panel["title"]: panel["targets"][0]["expr"] for panel in board["panels"]}
    asked = [(shown[title], 1) for title in ("Healthy", "Node down", "Fabric down",
                                             "Agent down or frozen", "Paths degraded or lossy")]
    with tempfile.TemporaryDirectory(prefix="tocsin-rules-") as place:
        path = pathlib.Path(place) / "cases.yml"  # JSON is YAML
        path.write_text(json.dumps({"rule_files": [], "evaluation_interval": "15s", "tests": [{
            "interval": "15s",
            "input_series": [{"series": name, "values": f"{value}{LONG}"}
                             for name, value in series.items()],
            "promql_expr_test": [
                {"expr": expr.replace("$cluster", chosen), "eval_time": AT,
                 "exp_samples": [{"labels": "{}", "value": value * count}]}
                for expr, value in asked for chosen, count in ((".*", 2), ("x", 1), ("x|y", 2))],
        }]}))
        done = subprocess.run(["promtool", "test", "rules", path], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout[-4000:]


def the_dashboard_asks_for_chosen_clusters_only():
    board = json.loads((RULES.parent / "tocsin-grafana.json").read_text())
    for panel in board["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
        for target in panel["targets"]:
            metrics = re.findall(r"\btocsin_\w+\S*", target["expr"])
            assert metrics and all('{cluster=~"$cluster"' in one for one in metrics), target
    assert [one["name"] for one in board["templating"]["list"]] == ["datasource", "cluster"]


def a_brake_is_one_alert():
    def braked(count):
        return fires("critical", f"{count} agents see too many nodes go bad at once to believe it",
                     "Most likely a network, not the nodes. Alerts on single nodes are held by "
                     "these agents, and so are drains.")

    judge(case("Brake", braked(3), tellers(brake=1)),
          case("Brake", braked(3), tellers(brake=1, drains_brake=1)),
          case("Brake", braked(1), tellers("z", drains_brake=1), tellers("ab")),
          case("Brake", [], tellers(brake=1), at="0s"),
          case("Brake", [], tellers()))


def who_never_came_is_told_after_ten_minutes():
    never = {row.replace('"R"', '"NeverSeen"'): value for row, value in told("unknown").items()}
    judge(case("NodeUnknown", [], tellers(), never))
    missing = fires("warning", "2 nodes of the roster never came", "Which: tocsin health")
    judge(case("NodesMissing", missing, tellers(), {'tocsin_missing{instance="a"}': 2}),
          case("NodesMissing", [], tellers(), {'tocsin_missing{instance="a"}': 2}, at="5m"),
          case("NodesMissing", [], tellers(), {'tocsin_missing{instance="a"}': 0}))


def drains_that_are_withheld_are_told():
    withheld = fires("warning", "2 nodes would be drained, and are not",
                     "More than the cluster may spare, or a common cause. Which, and why: "
                     "tocsin health")
    some = {'tocsin_drains_withheld{instance="a"}': 2}
    judge(case("DrainsWithheld", withheld, tellers(), some),
          case("DrainsWithheld", [], tellers(), some, at="1m"),
          case("DrainsWithheld", [], tellers(brake=1), some))


def a_scrape_without_agents_is_told():
    blind = fires("critical", "No agent of Tocsin is scraped: none of these alerts can fire")
    judge(case("NotScraped", blind, {"up": 0}), case("NotScraped", [], tellers()))


def a_port_that_pauses_its_switch_is_told():
    def paused(share, direction="sent"):
        return {'tocsin_port_paused_ratio{instance="a:28031",device="mlx5_0",port="1",'
                f'direction="{direction}"}}': share}

    storm = fires(
        "warning", "mlx5_0 port 1 at a:28031 pauses its switch nearly all the time",
        "It holds back what is behind that switch: a slow receiver, PCIe, or firmware. See: "
        "tocsin checks, on that node.",
        instance="a:28031", device="mlx5_0", port="1", direction="sent")
    judge(case("PauseStorm", storm, paused(0.7)), case("PauseStorm", [], paused(0.4)),
          case("PauseStorm", [], paused(0.9, "received")),
          case("PauseStorm", [], paused(0.7), at="0s"))


def what_an_agent_says_of_itself_is_told():
    judge(*(case(alert, fires(severity, summary, description, instance="a:28031"),
                 {series + AGENT: bad})
            for alert, series, bad, _, severity, _, summary, description in AGENT_ALERTS))
    judge(*(case(row[0], [], {row[1] + AGENT: row[3]}) for row in AGENT_ALERTS))
    judge(*(case(row[0], [], {row[1] + AGENT: row[2]}, at="0s")
            for row in AGENT_ALERTS if row[5]))


if __name__ == "__main__":
    tap.run([
        ("promtool finds nothing in the rules", promtool_finds_nothing_in_the_rules),
        ("every alert is tried here", every_alert_is_tried_here),
        ("every alert has a section in docs/alerts.md", every_alert_has_its_section),
        ("maintenance of more than a week raises an alert", old_maintenance_raises_an_alert),
        ("a bad node is one alert, however many agents tell of it",
         a_bad_node_is_one_alert_however_many_tell),
        ("what heals by itself is waited for", what_heals_by_itself_is_waited_for),
        ("another verdict does not fire it", other_verdicts_do_not_fire_it),
        ("a node in maintenance is no alert, though one agent has not heard of it",
         maintenance_is_none_though_one_agent_has_not_heard_of_it),
        ("agents that are braked alarm nobody", braked_agents_alarm_nobody),
        ("agents that hang alarm nobody", agents_that_hang_alarm_nobody),
        ("one braked agent does not silence the others",
         one_braked_agent_does_not_silence_the_others),
        ("a critical alert needs more than half of the votes",
         a_critical_alert_needs_more_than_half_of_the_votes),
        ("what one agent alone holds for dead is no critical alert",
         what_one_alone_holds_for_dead_is_no_critical_alert),
        ("clusters are kept apart by their label", clusters_are_kept_apart),
        ("the dashboard adds clusters", the_dashboard_adds_clusters),
        ("the dashboard asks for the chosen clusters only",
         the_dashboard_asks_for_chosen_clusters_only),
        ("a port that pauses its switch is told", a_port_that_pauses_its_switch_is_told),
        ("a brake is one alert, with the number of agents that hold it", a_brake_is_one_alert),
        ("nodes that never came are told after ten minutes",
         who_never_came_is_told_after_ten_minutes),
        ("drains that are withheld are told after two minutes",
         drains_that_are_withheld_are_told),
        ("a scrape that finds no agent is told", a_scrape_without_agents_is_told),
        ("what an agent says of itself is told, and only then",
         what_an_agent_says_of_itself_is_told),
    ])
