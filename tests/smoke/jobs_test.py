#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that go wrong under real agents: what `tocsin comms` and `tocsin why` name.

    jobs_test.py BUILD-ROOT RING LIBRARY

All jobs run at once on the first of two agents, each with a number of its own; at the end one of
two ranks runs under each agent, and the path between the two is cut on the software device.
"""

import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys

import agents
import cluster as clusters
import tap

SEEN_SECONDS = 90
# Arguments of the example, and what is said of the job: cause, state, words of the sentence.
JOBS = {
    "freeze": (["--freeze", "3"], "missing-enter", "stuck", "rank 3 ", "is stopped"),
    "deadlock": (["--deadlock"], "symmetric-stall", "waiting", "none has completed it", ""),
    "mismatch": (["--mismatch", "2"], "mismatch", "stuck", "rank 2 ", "2048 float32"),
    "cycle": (["--cycle"], "ordering-deadlock", "stuck", "wait for each other", ""),
    "pause": (["--pause", "3"], "missing-enter", "waiting", "rank 3 ", "it is busy"),
    "straggle": (["--straggle", "1"], "straggler", "moving", "rank 1 ", "came last"),
}


def number_of(name):
    return 1000 + list(JOBS).index(name)


def tocsin(agent, *words):
    return subprocess.run([TOCSIN, *words, "--socket", str(agent.socket)], capture_output=True,
                          text=True, check=False)


def findings(agent, job):
    answer = json.loads(tocsin(agent, "comms", "--json", "--job", str(job)).stdout)
    return [row["finding"] for row in answer.get("communicators", [])]


def wait_until(job, agent, function):
    """Asked twice a second: an agent asks all others at most five times."""
    agents.wait_until(lambda: f"job {job}: {findings(agent, job)}", function, SEEN_SECONDS, 0.5)


def start_jobs(agent):
    started = {}
    for name, row in JOBS.items():
        environment = dict(os.environ, TOCSIN_JOB_SOCKET=str(agent.directory / "job.sock"),
                           SLURM_JOB_ID=str(number_of(name)))
        environment.pop("SLURM_STEP_ID", None)
        started[name] = subprocess.Popen(
            [RING, "--ranks", "4", "--seconds", "600", "--compute", "5000", *row[0]],
            env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    return started


def end_jobs(started):
    for process in started.values():
        os.killpg(process.pid, 9)
        process.wait()


def is_named(agent, name):
    _, cause, state, *words = JOBS[name]
    return any(row["cause"] == cause and row["state"] == state and
               all(word in row["sentence"] for word in words)
               for row in findings(agent, number_of(name)))


def each_job_is_named_as_it_fails(cluster):
    """A pause is looked for first: it ends by itself. Nobody says that it is stuck."""
    one, other = cluster.agents
    started = start_jobs(one)
    try:
        for name in ("pause", *JOBS):
            wait_until(number_of(name), other, lambda name=name: name in named or
                       is_named(other, name))
            named.add(name)
        said = tocsin(other, "why", str(number_of("freeze"))).stdout
        assert "4 of 4 ranks: stuck (missing-enter)" in said, said
        assert " stopped\n" in said, said
        table = tocsin(other, "comms").stdout
        assert max(map(len, table.splitlines())) <= 100, table
        assert table.index("stuck") < table.index("moving"), table
    finally:
        end_jobs(started)


def ranks_that_were_killed_are_shown_as_gone(cluster):
    one, other = cluster.agents
    wait_until(number_of("deadlock"), other, lambda: any(
        row["state"] == "ended" and row["cause"] == "dead-member"
        for row in findings(other, number_of("deadlock"))))
    assert "no node, job or communicator 99" in tocsin(one, "why", "99").stderr


class JobConfig(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("socket", ctypes.c_char_p), ("job", ctypes.c_char_p),
                ("event", ctypes.c_void_p), ("context", ctypes.c_void_p),
                ("flags", ctypes.c_uint32)]


class CommConfig(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("comm_hash", ctypes.c_uint64),
                ("host_hash", ctypes.c_uint64), ("process_hash", ctypes.c_uint64),
                ("size", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                ("cuda", ctypes.c_int16), ("nvml", ctypes.c_int16),
                ("configuration", ctypes.c_uint64), ("flags", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("name", ctypes.c_char_p)]


RANK = """
import ctypes, sys
sys.path[:0] = {path!r}
import jobs_test
jobs_test.be_rank({library!r}, {socket!r}, {rank})
"""


def be_rank(path, where, number):
    """In a process of its own: one of two ranks whose second operation has begun and stands."""
    library = ctypes.CDLL(path)
    library.tocsin_job_open.argtypes = [ctypes.POINTER(JobConfig), ctypes.c_void_p]
    library.tocsin_comm_register.argtypes = [ctypes.c_void_p, ctypes.POINTER(CommConfig),
                                             ctypes.c_void_p]
    library.tocsin_comm_launched.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64,
                                             ctypes.c_uint8, ctypes.c_int32]
    library.tocsin_comm_started.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.tocsin_comm_completed.argtypes = [ctypes.c_void_p, ctypes.c_int]
    job, comm, config = ctypes.c_void_p(), ctypes.c_void_p(), CommConfig()
    wanted = JobConfig(ctypes.sizeof(JobConfig), where.encode(), b"slurm:2000", None, None, 0)
    assert library.tocsin_job_open(ctypes.byref(wanted), ctypes.byref(job)) == 0
    config.struct_size, config.cuda, config.nvml = ctypes.sizeof(CommConfig), -1, -1
    config.comm_hash, config.size, config.rank = 0x2000, 2, number
    assert library.tocsin_comm_register(job, ctypes.byref(config), ctypes.byref(comm)) == 0
    for operation in range(2):
        library.tocsin_comm_launched(comm, 4, 1024, 7, -1)
        library.tocsin_comm_started(comm, 4)
        if operation == 0:
            library.tocsin_comm_completed(comm, 4)
    sys.stdin.read()


def silent_seconds(agent):
    return max((float(seconds) for row in findings(agent, 2000)
                for seconds in re.findall(r"not answered for ([\d.]+) s", row["sentence"])),
               default=0)


def cut_path_is_named_with_its_timing(cluster):
    one, other = cluster.agents
    agents.wait_until("what is usual on all paths", cluster.paths_are_known, SEEN_SECONDS)
    ranks = [subprocess.Popen(
        [sys.executable, "-c", RANK.format(path=sys.path[:3], library=LIBRARY, rank=number,
                                           socket=str(agent.directory / "job.sock"))],
        stdin=subprocess.PIPE) for number, agent in enumerate(cluster.agents)]
    try:
        one.set_faults(f"loss=100%,to={other.address}")
        wait_until(2000, one, lambda: any(
            row["cause"] == "transport" and row["state"] == "stuck" and
            "the path n" in row["sentence"] and "not answered for" in row["sentence"]
            for row in findings(one, 2000)))
        # Since it fell silent; its last probe was sent some seconds ago at most.
        wait_until(2000, one, lambda: silent_seconds(one) >= 15)
        agents.say(findings(one, 2000)[0]["sentence"])
    finally:
        one.set_faults("")
        for rank in ranks:
            rank.kill()
            rank.communicate()


def main():
    with clusters.Cluster(BUILD, 2) as cluster:
        for agent in cluster.agents:
            agent.configure(probe__interval="200ms", probe__packets="800",
                            device__soft0__faults="")
        cluster.start()
        cluster.wait_ring(agents.WAIT_SECONDS)
        tap.run([(test.__name__.replace("_", " "), lambda test=test: test(cluster))
                 for test in (each_job_is_named_as_it_fails,
                              ranks_that_were_killed_are_shown_as_gone,
                              cut_path_is_named_with_its_timing)])


named = set()
if __name__ == "__main__":
    BUILD, RING, LIBRARY = sys.argv[1:4]
    TOCSIN = str(pathlib.Path(BUILD) / "agent" / "tocsin")
    main()
