#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The module tocsin for Python beside a real agent, and tocsin.dump; no torch is needed.

    agent_test.py BUILD-ROOT LIBRARY MODULES
"""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

import tap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "smoke"))
import agents  # noqa: E402
import cluster as clusters  # noqa: E402

# Rank 1 has not launched the second operation. Each stays until its input ends.
RANK = """
import sys, tocsin
rank = int(sys.argv[1])
job = tocsin.Job()
comm = job.register(comm_hash=int(sys.argv[2]), size=3, rank=rank, name="world")
for _ in range(2 if rank != 1 else 1):
    comm.launched(tocsin.ALL_REDUCE, 1000, 7)
    comm.started(tocsin.ALL_REDUCE)
    if _ == 0:
        comm.completed(tocsin.ALL_REDUCE)
print("up", flush=True)
sys.stdin.read()
if sys.argv[3] == "closes":
    job.close()
"""


def environment(agent, **more):
    words = {name: value for name, value in os.environ.items()
             if not name.startswith(("TOCSIN_", "SLURM_", "PYTHON", "TORCH_"))}
    return {**words, "TOCSIN_JOB_SOCKET": str(agent.directory / "job.sock"),
            "TOCSIN_LIBRARY": LIBRARY, "PYTHONPATH": MODULES, "TOCSIN_COMMAND": TOCSIN, **more}


class Ranks:
    def __init__(self, agent, number, **more):
        self.ranks = [subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(number), "closes"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=environment(agent, RANK=str(rank), SLURM_JOB_ID=str(number), **more))
            for rank in range(3)]
        for rank in self.ranks:
            assert rank.stdout.readline() == "up\n"

    def __enter__(self):
        return self.ranks

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.communicate("")


def findings(agent, number):
    done = subprocess.run([TOCSIN, "comms", "--json", "--job", str(number), "--socket",
                           str(agent.socket)], capture_output=True, text=True, check=False)
    return [row["finding"] for row in json.loads(done.stdout).get("communicators", [])]


def wait_named(agent, number):
    agents.wait_until(lambda: f"job {number}: {findings(agent, number)}",
                      lambda: any(row["cause"] == "missing-enter" and "rank 1 " in row["sentence"]
                                  for row in findings(agent, number)), 60, 0.3)


def dump(agent, number, *words):
    return subprocess.run([sys.executable, "-m", "tocsin.dump", str(number), "--socket",
                           str(agent.socket), *words], capture_output=True, text=True,
                          check=False, env=environment(agent))


def a_rank_that_did_not_come_is_named(agent):
    with Ranks(agent, 41):
        wait_named(agent, 41)
    agents.wait_until("all to leave", lambda: agent.counters()["job"]["ranks"] == 0)
    assert agent.counters()["job"]["gone"] == 0, "a process that closes its job leaves on purpose"


def the_flight_recorder_of_whom_all_wait_for_is_asked_and_no_other(agent):
    with tempfile.TemporaryDirectory() as place:
        pipes = []
        for rank in range(3):
            os.mkfifo(f"{place}/fr{rank}.pipe")
            pipes.append(os.open(f"{place}/fr{rank}.pipe", os.O_RDONLY | os.O_NONBLOCK))
        with Ranks(agent, 42, TORCH_NCCL_DEBUG_INFO_PIPE_FILE=f"{place}/fr"):
            wait_named(agent, 42)
            done = dump(agent, 42, "--dry-run")
            assert done.returncode == 0 and "would be notified" in done.stdout, done
            assert os.read(pipes[1], 9) == b""
            done = dump(agent, 42)
            assert done.returncode == 0 and "rank 1 " in done.stdout, done
            assert os.read(pipes[1], 9) == b"1"
            assert os.read(pipes[0], 9) == os.read(pipes[2], 9) == b""
        for pipe in pipes:
            os.close(pipe)


def what_is_no_pipe_of_the_job_is_left_alone(agent):
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "fr1.pipe"
        with Ranks(agent, 43, TORCH_NCCL_DEBUG_INFO_PIPE_FILE=f"{place}/fr"):
            wait_named(agent, 43)

            def says(word):
                done = dump(agent, 43)
                assert done.returncode == 1 and word in done.stdout, done

            says("No such file")
            path.write_text("mine", encoding="ascii")
            says("it is not a pipe")
            assert path.read_text(encoding="ascii") == "mine"
            path.unlink()
            os.mkfifo(path)
            says("no process reads it")
            path.rename(f"{place}/real")
            path.symlink_to(f"{place}/real")
            says("it is not a pipe")
            path.unlink()
            if os.geteuid() == 0:
                os.mkfifo(path)
                os.chown(path, 65534, 65534)
                reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                says("it belongs to user 65534")
                assert os.read(reader, 9) == b"" and stat.S_ISFIFO(os.fstat(reader).st_mode)
                os.close(reader)
    with Ranks(agent, 44):
        wait_named(agent, 44)
        done = dump(agent, 44)
        word = "PIPE_FILE is not set in its environment"
        assert done.returncode == 1 and word in done.stdout, done


def who_waits_for_nobody_and_no_agent_are_told_apart(agent):
    done = dump(agent, 999)
    assert (done.returncode, done.stdout) == (
        1, "no communicator of job 999 waits for a rank\n"), done
    done = subprocess.run([sys.executable, "-m", "tocsin.dump", "1", "--socket", "/nowhere"],
                          capture_output=True, text=True, check=False, env=environment(agent))
    assert done.returncode == 3 and "/nowhere" in done.stderr, done
    assert dump(agent, 1, "--what").returncode == 2


def main():
    with clusters.Cluster(BUILD, 1) as cluster:
        cluster.agents[0].configure(job__waiting="1s")
        cluster.start()
        agents.wait_until("the agent", cluster.agents[0].answers)
        tap.run([(test.__name__.replace("_", " "), lambda test=test: test(cluster.agents[0]))
                 for test in (a_rank_that_did_not_come_is_named,
                              the_flight_recorder_of_whom_all_wait_for_is_asked_and_no_other,
                              what_is_no_pipe_of_the_job_is_left_alone,
                              who_waits_for_nobody_and_no_agent_are_told_apart)])


if __name__ == "__main__":
    BUILD, LIBRARY, MODULES = map(os.path.abspath, sys.argv[1:4])
    TOCSIN = str(pathlib.Path(BUILD) / "agent" / "tocsin")
    main()
