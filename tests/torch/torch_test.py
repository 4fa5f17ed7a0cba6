#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Real jobs of torch with gloo under two agents: what `tocsin comms` and `tocsin why` name.

    torch_test.py BUILD-ROOT LIBRARY MODULES

`./dev test torch` installs Debian's python3-torch; without it all is skipped.
"""

import importlib.util
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import tap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "smoke"))
import agents  # noqa: E402
import cluster as clusters  # noqa: E402

JOB = str(pathlib.Path(__file__).parent / "gloo_job.py")
RANKS = 3
SEEN_SECONDS = 60
# Mode: cause, words of the sentence.
HANGS = {
    "missing": ("missing-enter", "rank 1 "), "elsewhere": ("missing-enter", "rank 1 "),
    "order": ("ordering-deadlock", "wait for each other"), "root": ("mismatch", "root"),
    "killed": ("dead-member", "killed by signal 9"), "spawn": ("missing-enter", "rank 1 "),
    "hooked": ("missing-enter", "rank 1 "),
}


def number_of(mode):
    return 3000 + [*HANGS, "whole", "bare"].index(mode)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def go_of(cluster, number):
    return cluster.directory / f"go-{number}"


def start(cluster, mode, number, watched=True):
    """Ranks 0 and 1 beside the first agent, the last one beside the second. Where all goes well
    they wait until go_of() is there: on a quick machine they would be gone before they are seen."""
    port, ranks = free_port(), []
    for rank in range(1 if mode == "spawn" else RANKS):
        agent = cluster.agents[rank == RANKS - 1]
        environment = {word: value for word, value in os.environ.items()
                       if not word.startswith(("TOCSIN_", "SLURM_", "PYTHON"))}
        environment.update(
            RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1",
            JOB_GO=str(go_of(cluster, number)),
            SLURM_JOB_ID=str(number), PYTHONPATH=MODULES, TOCSIN_LIBRARY=LIBRARY,
            TOCSIN_JOB_SOCKET=str(agent.directory / "job.sock"), JOB_WATCHED=str(int(watched)))
        ranks.append(subprocess.Popen([sys.executable, JOB, mode], env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      start_new_session=True))
    return ranks


def end(ranks):
    for rank in ranks:
        try:
            os.killpg(rank.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        rank.communicate()


def tocsin(agent, *words):
    return subprocess.run([TOCSIN, *words, "--socket", str(agent.socket)], capture_output=True,
                          text=True, check=False)


def findings(agent, number):
    answer = json.loads(tocsin(agent, "comms", "--json", "--job", str(number)).stdout)
    return [row["finding"] for row in answer.get("communicators", [])]


def is_named(agent, mode, number):
    cause, words = HANGS[mode]
    return any(row["cause"] == cause and words in row["sentence"]
               for row in findings(agent, number))


def each_hang_of_a_real_job_is_named(cluster):
    for mode in HANGS:
        began = time.monotonic()
        ranks = start(cluster, mode, number_of(mode))
        try:
            agents.wait_until(lambda: f"{mode}: {findings(cluster.agents[1], number_of(mode))}",
                              lambda mode=mode: is_named(cluster.agents[1], mode, number_of(mode)),
                              SEEN_SECONDS, 0.5)
            said = [row["sentence"] for row in findings(cluster.agents[1], number_of(mode))
                    if row["sentence"]][0]
            agents.say(f"{mode}: {time.monotonic() - began:.1f} s after its start: {said}")
            if mode == "missing":
                shown = tocsin(cluster.agents[1], "why", str(number_of(mode))).stdout
                assert "world" in shown or "missing-enter" in shown, shown
        finally:
            end(ranks)


def harmless(text):
    return re.sub(r"0x[0-9a-f]+|MASTER_PORT=\d+", "", text)


def output_and_status_are_those_of_a_job_that_is_not_watched(cluster):
    """With an agent that is killed and comes back while it runs."""
    told = {}
    for name, watched in (("bare", False), ("whole", True)):
        ranks = start(cluster, "whole", number_of(name), watched)
        if watched:
            agents.wait_until("the job", lambda: findings(cluster.agents[1], number_of("whole")),
                              SEEN_SECONDS, 0.2)
            cluster.agents[0].kill()
            cluster.agents[0].start()
        go_of(cluster, number_of(name)).touch()
        told[name] = []
        for rank in ranks:
            out, err = rank.communicate(timeout=300)
            told[name].append((rank.returncode, harmless(out), harmless(err)))
    assert told["bare"] == told["whole"], told
    assert all(status == 0 and "ends" in out for status, out, _ in told["whole"]), told
    assert not [row for row in findings(cluster.agents[1], number_of("whole"))
                if row["cause"] == "dead-member"]


def no_torch():
    raise tap.Skip("python3-torch is not installed: ./dev test torch installs it (629 MB)")


def main():
    if importlib.util.find_spec("torch") is None:
        tap.run([("each hang of a real job is named", no_torch)])
    with clusters.Cluster(BUILD, 2) as cluster:
        for agent in cluster.agents:
            agent.configure(job__waiting="1s")
        cluster.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        tap.run([(test.__name__.replace("_", " "), lambda test=test: test(cluster))
                 for test in (each_hang_of_a_real_job_is_named,
                              output_and_status_are_those_of_a_job_that_is_not_watched)])


if __name__ == "__main__":
    BUILD, LIBRARY, MODULES = map(os.path.abspath, sys.argv[1:4])
    TOCSIN = str(pathlib.Path(BUILD) / "agent" / "tocsin")
    main()
