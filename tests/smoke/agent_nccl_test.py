#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""NCCL jobs under two agents: recordings of a real job, played by tocsin-replay.

    agent_nccl_test.py BUILD-ROOT PLUGIN TOCSIN-REPLAY RECORDINGS
"""

import contextlib
import itertools
import json
import os
import pathlib
import re
import socketserver
import subprocess
import sys
import threading

import agents
import cluster as clusters
import tap


DIGITS = itertools.count(1)


def tocsin(agent, *words):
    return subprocess.run([TOCSIN, *words, "--socket", str(agent.socket)], capture_output=True,
                          text=True, check=False)


def ordered(agent, *words):
    done = tocsin(agent, *words)
    assert done.returncode == 0, done
    return done.stdout


@contextlib.contextmanager
def hang(cluster, name, job):
    """Rank n of the recorded job under agent n, standing where the recording ends: as another job,
    whose communicators have hashes of their own."""
    ranks = []
    digit = next(DIGITS)
    try:
        for number, agent in enumerate(cluster.agents):
            environment = {word: value for word, value in os.environ.items()
                           if not word.startswith(("TOCSIN_", "SLURM_"))}
            environment.update(TOCSIN_JOB_SOCKET=str(agent.directory / "job.sock"),
                               SLURM_JOB_ID=str(job))
            text = (RECORDINGS / f"{name}-rank{number}.txt").read_text(encoding="ascii")
            path = agent.directory / f"{name}-{digit}.txt"
            path.write_text(re.sub(r"hash=0x.", f"hash=0x{digit}", text), encoding="ascii")
            ranks.append(subprocess.Popen(
                [REPLAY, "--library", PLUGIN, "--hold", "600", str(path)],
                env=environment, stdout=subprocess.PIPE, text=True))
        for rank in ranks:
            assert "played" in rank.stdout.readline()
        yield ranks
    finally:
        for rank in ranks:
            rank.terminate()
            rank.communicate()


def rows(agent, job):
    return json.loads(tocsin(agent, "comms", "--json", "--job", str(job)).stdout)["communicators"]


def finding(agent, job):
    """Of its communicator that lives; those of jobs that were played before have ended."""
    return next((row["finding"] for row in rows(agent, job)
                 if row["finding"]["state"] != "ended"), {})


def wait_finding(agent, job, wanted):
    agents.wait_until(lambda: f"job {job}: {rows(agent, job)}",
                      lambda: wanted(finding(agent, job)), 60, 0.5)
    return finding(agent, job)


class Ras(socketserver.ThreadingTCPServer):
    """What answers as a job's own RAS does: the report is `told`."""
    allow_reuse_address = daemon_threads = True
    told = {"communicators": []}

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            for line in self.rfile:
                if line == b"STATUS\n":
                    self.wfile.write(json.dumps(self.server.told, indent=2).encode() + b"\n")
                    return
                self.wfile.write(b"SERVER PROTOCOL 2\n" if b"PROTOCOL" in line else b"OK\n")

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def a_rank_is_named_with_the_gpu_that_nccl_tells(cluster):
    """Of that node's own process alone, and only of the rank that it is."""
    def ranks():
        done = tocsin(cluster.agents[1], "why", "5", "--json")
        return [{"hash": comm["hash"], **rank}
                for comm in json.loads(done.stdout).get("communicators", [])
                for rank in comm["ranks"]]

    def told():
        return {rank["rank"]: (rank["cuda_dev"], rank["nvml_dev"], rank["gpu_from"])
                for rank in ranks()}

    with hang(cluster, "v5-hang", 5):
        agents.wait_until("both ranks", lambda: len(ranks()) == 2, pause=0.5)
        RAS.told = {"communicators": [{"hash": ranks()[0]["hash"], "size": 2, "ranks": [
            {"rank": rank["rank"], "pid": rank["pid"], "cuda_dev": 0, "nvml_dev": 6}
            for rank in ranks()]}]}
        agents.wait_until(lambda: f"GPUs: {told()}", lambda: told() == {
            0: (0, 6, "nccl-ras"), 1: (None, None, None)}, 60, 0.5)


def a_cause_that_launches_cannot_tell_is_not_told(cluster):
    """All have launched what one device has not begun: without more there is nothing to name."""
    with hang(cluster, "v5-behind", 1):
        found = wait_finding(cluster.agents[0], 1, lambda found: found.get("state") == "quiet")
        assert "started" not in found["told"] and "completed" not in found["told"], found
        assert found["cause"] in ("none", ""), found


def a_level_asked_for_at_one_agent_lets_the_cause_be_told_at_all(cluster):
    one, other = cluster.agents
    said = ordered(one, "level", "kernels", "--for", "5m", "--job", "slurm:2")
    assert said == "job slurm:2 is asked for level kernels for 300 s\n", said
    agents.wait_log(other, "job_level level=kernels job=slurm:2")
    with hang(cluster, "v5-behind", 2):
        found = wait_finding(other, 2, lambda found: found.get("cause") == "device-behind")
        agents.say(found["sentence"])
        assert {"started", "completed"} <= set(found["told"]), found
    with hang(cluster, "v5-behind", 3):  # another job
        found = wait_finding(one, 3, lambda found: found.get("state") == "quiet")
        assert "started" not in found["told"], found


def a_level_that_is_taken_back_is_taken_back_everywhere(cluster):
    one, other = cluster.agents
    ordered(other, "level", "default", "--for", "1s")
    agents.wait_log(one, "job_level level=default")
    with hang(cluster, "v5-behind", 2):
        found = wait_finding(one, 2, lambda found: found.get("state") == "quiet")
        assert "started" not in found["told"], found


def main():
    with clusters.Cluster(BUILD, 2) as cluster:
        for agent in cluster.agents:
            agent.configure(job__waiting="1s")
        cluster.agents[0].configure(job__nccl_ras=f"127.0.0.1:{RAS.server_address[1]}")
        cluster.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        tap.run([(test.__name__.replace("_", " "), lambda test=test: test(cluster))
                 for test in (a_cause_that_launches_cannot_tell_is_not_told,
                              a_level_asked_for_at_one_agent_lets_the_cause_be_told_at_all,
                              a_level_that_is_taken_back_is_taken_back_everywhere,
                              a_rank_is_named_with_the_gpu_that_nccl_tells)])


if __name__ == "__main__":
    BUILD, PLUGIN, REPLAY, RECORDINGS = *sys.argv[1:4], pathlib.Path(sys.argv[4])
    RAS = Ras()
    TOCSIN = str(pathlib.Path(BUILD) / "agent" / "tocsin")
    main()
