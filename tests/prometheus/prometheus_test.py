#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A real Prometheus that scrapes real agents by the rules that are installed.

    prometheus_test.py BUILD-ROOT FEEDS-DIRECTORY
"""

import http.client
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import cluster as clusters
import patience
import tap

FEEDS = pathlib.Path(sys.argv[2])
PORT = 9090
AGENT_PORT = 28031
INFINIBAND = pathlib.Path("/sys/class/infiniband")
# So a path has learnt what is usual after 20 s.
PROBES = {"probe.interval": "200ms", "probe.packets": "400"}
WAIT_SECONDS = 120


def get(address, port, path):
    connection = http.client.HTTPConnection(address, port, timeout=patience.HANG_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Prometheus:
    """The server, on an address of the cluster's own block, with rules that wait a second only."""

    def __init__(self, cluster):
        self.address = cluster.address(250)
        self.directory = cluster.directory / "prometheus"
        self.directory.mkdir()
        self.log = self.directory / "log"
        rules = (FEEDS / "prometheus" / "tocsin.rules.yml").read_text()
        (self.directory / "rules.yml").write_text(re.sub(r"for: \d+[ms]", "for: 1s", rules))
        targets = [f"{agent.address}:{AGENT_PORT}" for agent in cluster.agents]
        (self.directory / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "tocsin", "static_configs": [{"targets": targets}]}],
        }))
        self.process = None

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.directory / 'prometheus.yml'}",
                 f"--storage.tsdb.path={self.directory / 'data'}",
                 f"--web.listen-address={self.address}:{PORT}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, path, **query):
        status, text = get(self.address, PORT, f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
        answer = json.loads(text)
        assert status == 200 and answer["status"] == "success", (path, query, text)
        return answer["data"]

    def query(self, expression):
        """labels and value of each series now."""
        return [(row["metric"], float(row["value"][1]))
                for row in self.ask("query", query=expression)["result"]]

    def firing(self, name, **labels):
        return [alert for alert in self.ask("alerts")["alerts"]
                if alert["state"] == "firing" and alert["labels"]["alertname"] == name
                and labels.items() <= alert["labels"].items()]

    def wait(self, what, function):
        def asked():
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            try:
                return function()
            except (OSError, http.client.HTTPException, ValueError):
                return False  # it is still starting

        return clusters.wait_until(what, asked, WAIT_SECONDS, pause=0.2)


def every_agent_is_scraped(cluster, prometheus):
    count = len(cluster.agents)
    prometheus.wait("all targets up", lambda: prometheus.query("sum(up)") == [({}, count)])
    prometheus.wait("all healthy", lambda: prometheus.query(
        'min(tocsin_nodes{verdict="healthy"})') == [({}, count)])
    assert prometheus.firing("TocsinAgentDown") == []


def every_query_of_the_dashboard_is_answered(_, prometheus):
    board = json.loads((FEEDS / "prometheus" / "tocsin-grafana.json").read_text())
    asked = 0
    for panel in board["panels"]:
        for target in panel["targets"]:
            # Grafana replaces the variable $cluster by this pattern if all clusters are chosen.
            prometheus.query(target["expr"].replace("$__rate_interval", "10s")
                             .replace("$cluster", ".*"))
            asked += 1
    assert asked >= len(board["panels"]) >= 10


def promtool_finds_nothing_in_the_page(cluster, prometheus):
    """Also not in the metrics of paths, which come with the first window."""
    if shutil.which("promtool") is None:
        raise tap.Skip("promtool is not installed (Debian package prometheus)")
    prometheus.wait("times of paths", lambda: prometheus.query("tocsin_path_latency_seconds"))
    page = get(cluster.agents[0].address, AGENT_PORT, "/metrics")[1]
    done = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, check=False,
                          capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, ""), done


def every_metric_that_is_named_exists(cluster, _):
    page = get(cluster.agents[0].address, AGENT_PORT, "/metrics")[1]
    served = set(re.findall(r"^# TYPE (\w+) ", page, re.MULTILINE))
    for name in ("tocsin-grafana.json", "tocsin.rules.yml"):
        text = (FEEDS / "prometheus" / name).read_text()
        named = set(re.findall(r"(?<![:\w\"])tocsin_\w+", text))
        assert named and named <= served, (name, named - served)


def a_killed_agent_is_one_alert(cluster, prometheus):
    cluster.agents[2].kill()
    prometheus.wait("n3's alert", lambda: prometheus.firing("TocsinAgentDown", node="n3"))
    prometheus.wait("both to tell", lambda: prometheus.query(
        'tocsin:node_verdict:votes{node="n3",verdict="agent-down"}') == [
            ({"__name__": "tocsin:node_verdict:votes", "node": "n3", "verdict": "agent-down"}, 2)])
    assert len(prometheus.firing("TocsinAgentDown")) == 1
    told = prometheus.query('tocsin_node_verdict{node="n3"}')
    assert told and {row["reason"] for row, _ in told} == {"AgentGone"}, told
    assert prometheus.firing("TocsinNodeDown") == []


def maintenance_ends_the_alert(cluster, prometheus):
    with cluster.agents[0].client() as client:
        client.ask("MAINT n3 on")
    prometheus.wait("no alert", lambda: prometheus.firing("TocsinAgentDown") == [])
    prometheus.wait("it to be shown", lambda: prometheus.query(
        'tocsin_node_verdict{node="n3",maint="1"}'))
    with cluster.agents[0].client() as client:
        client.ask("MAINT n3 off")
    prometheus.wait("the alert again", lambda: prometheus.firing("TocsinAgentDown", node="n3"))


def one_that_comes_back_ends_the_alert(cluster, prometheus):
    cluster.agents[2].start()
    prometheus.wait("no alert", lambda: prometheus.firing("TocsinAgentDown") == [])
    prometheus.wait("all healthy", lambda: prometheus.query(
        'min(tocsin_nodes{verdict="healthy"})') == [({}, len(cluster.agents))])


def a_query_shows_a_path_degrade(cluster, prometheus):
    """n2 comes back with packets that take 20 ms: who knew it before sees its paths degrade."""
    if INFINIBAND.is_dir() and any(INFINIBAND.iterdir()):
        raise tap.Skip("this machine has an RDMA device, which no software fault slows down")
    readers = {f"{cluster.agents[n].address}:{AGENT_PORT}" for n in (0, 2)}
    prometheus.wait("what is usual for n2", lambda: readers <= {
        row["instance"] for row, _ in prometheus.query('tocsin_path_baseline_seconds{peer="n2"}')})
    slow = ('tocsin_path_latency_seconds{peer="n2",quantile="0.5"} '
            '/ ignoring (quantile) tocsin_path_baseline_seconds > 2')
    victim = cluster.agents[1]
    assert victim.leave() == 0
    victim.configure(device__soft0__faults="delay=20ms")
    victim.start()
    prometheus.wait("both to see n2's paths degraded", lambda: readers <= {
        row["instance"]
        for row, _ in prometheus.query('tocsin_path_seen{peer="n2",seen="degraded"} == 1')})
    assert readers <= {row["instance"] for row, _ in prometheus.query(slow)}
    # Who is read as before is slow for nobody.
    others = prometheus.query('tocsin_path_seen{peer!="n2",seen="degraded"}')
    assert not readers & {row["instance"] for row, _ in others}, others


TESTS = [
    ("every agent is scraped, and nothing is alarmed", every_agent_is_scraped),
    ("every query of the dashboard is answered", every_query_of_the_dashboard_is_answered),
    ("promtool finds nothing in the page", promtool_finds_nothing_in_the_page),
    ("every metric that dashboard and rules name is served", every_metric_that_is_named_exists),
    ("an agent that is killed is one alert, told by all others", a_killed_agent_is_one_alert),
    ("maintenance ends the alert, and its end brings it back", maintenance_ends_the_alert),
    ("an agent that comes back ends the alert", one_that_comes_back_ends_the_alert),
    ("a query shows a path degrade", a_query_shows_a_path_degrade),
]


def main():
    def skip():
        raise tap.Skip("prometheus is not installed")

    if shutil.which("prometheus") is None:
        tap.run([(sentence, skip) for sentence, _ in TESTS])
    with clusters.Cluster(sys.argv[1], 3, settings=PROBES) as cluster:
        cluster.start()
        with Prometheus(cluster) as prometheus:
            tap.run([(sentence, lambda test=test: test(cluster, prometheus))
                     for sentence, test in TESTS])


if __name__ == "__main__":
    main()
