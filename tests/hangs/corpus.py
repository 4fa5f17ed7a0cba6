# SPDX-License-Identifier: BSD-3-Clause
"""The corpus: odd and hanging programs under two real agents, and the reports about each.

catalogue.txt lists the programs. Play starts them; Run compares the reports of the agents with the
catalogue. Everything runs inside namespaces made by in_namespaces(), and ends with them.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import typing

import cluster as clusters

HERE = pathlib.Path(__file__).resolve().parent
for neighbour in ("mpi", "nccl", "smoke"):
    sys.path.insert(0, str(HERE.parent / neighbour))
import launch  # noqa: E402  pylint: disable=wrong-import-position
import nccl_ranks  # noqa: E402  pylint: disable=wrong-import-position

INSIDE = "CORPUS_IS_INSIDE"
SCRATCH = "/mnt"  # holds a tmpfs of the namespaces
NAMED_SECONDS = 20  # target of the issue: a hang is named within this time
GIVE_UP_SECONDS = 45  # a hang that is not named by then counts as missing
STAY_SECONDS = 6  # a named hang runs on for this time, so that a changed report is seen
HEALTHY_SECONDS_MAX = 240
ASK_SECONDS = 0.5
FIRST_JOB = 7000
STEPS_SECONDS = 0.2  # nccl: from the start of a recording until it becomes odd
# Options of the example ring for the programs that it plays; the fault begins after one second.
RINGS = {"ring-kill": ["--kill", "1"], "ring-count": ["--mismatch", "1"]}
# Causes that accuse a rank. No report about a healthy program may have one.
ACCUSING = {"dead-member", "mismatch", "ordering-deadlock", "call-deadlock", "transport",
            "device-behind", "symmetric-stall", "stopped-member"}
# Exceptions: a process that is stopped for 5 s may be reported as stopped.
EXCUSED = {"stopped-briefly": {"stopped-member"}}
GLOO = HERE.parent / "torch" / "gloo_job.py"


class Program(typing.NamedTuple):
    """One line of the catalogue."""
    name: str
    layer: str
    ranks: int
    play: str
    state: str
    who: list  # sets of ranks: each of them is right
    words: str

    @property
    def is_healthy(self):
        return self.state == "healthy"

    @property
    def ranks_allowed(self):
        return set().union(*self.who)


def read_catalogue():
    programs = {}
    for line in (HERE / "catalogue.txt").read_text(encoding="ascii").splitlines():
        if line and not line.startswith("#"):
            name, layer, ranks, play, state, who, words = re.split(r"\s{2,}", line)
            sets = [{int(rank) for rank in each.split(",") if rank != "-"}
                    for each in who.split("/")]
            programs[name] = Program(name, layer, int(ranks), play, state, sets,
                                     "" if words == "-" else words)
    return programs


def in_namespaces():
    """Play this program again inside namespaces of its own, and return its exit status: processes,
    network and scratch files all end with it, however it ends. Returns None inside."""
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", SCRATCH], check=True)
        return None
    # setpriv ends unshare with this process; unshare ends the first process of the namespace; the
    # kernel ends all others.
    command = ["setpriv", "--pdeathsig", "KILL", *unshare(), sys.executable, *sys.argv]
    with subprocess.Popen(command, env={**os.environ, INSIDE: str(os.getpid())}) as child:
        try:
            return child.wait()
        finally:
            child.kill()


def unshare():
    return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--mount",
            *(["--map-root-user"] if os.geteuid() != 0 else [])]


def can_have_namespaces():
    return subprocess.run([*unshare(), "mount", "-t", "tmpfs", "tmpfs", SCRATCH],
                          capture_output=True, check=False).returncode == 0


def processes_of(runner):
    """Return the process ids of all that this runner started inside its namespaces."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            text = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if f"{INSIDE}={runner}".encode() in text.split(b"\0"):
            found.append(int(entry.name))
    return found


def missing_software(program):
    """Return the name of the package that the program needs and this machine lacks, or None."""
    if program.layer in ("openmpi", "mpich"):
        mpi = launch.OPEN_MPI if program.layer == "openmpi" else launch.MPICH
        return None if mpi.is_here() else program.layer
    if program.layer == "gloo":
        return None if importlib.util.find_spec("torch") else "python3-torch"
    return None


class Run:
    """One program that runs: its processes, and the reports about it."""

    def __init__(self, play, program, number):
        self.play, self.program, self.job = play, program, f"slurm:{number}"
        self.directory = play.directory / program.name
        self.directory.mkdir()
        self.mark = self.directory / "mark"
        self.began = time.time()
        self.processes = []
        self.world = {}  # pid -> rank in the world
        self.named_s = self.named = self.last = None
        self.faults = []
        self.environment = {
            **launch.environment(), "SLURM_JOB_ID": str(number), "CORPUS_MARK": str(self.mark),
            "CORPUS_SECONDS": str(play.seconds), "TMPDIR": "/var/tmp"}
        getattr(self, f"start_{program.layer}")()

    def start(self, words, **more):
        out = open(self.directory / f"out-{len(self.processes)}", "wb")
        with out:
            self.processes.append(subprocess.Popen(
                ["nice", "-n", "19", *map(str, words)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, env={**self.environment, **more}, start_new_session=True))

    def start_openmpi(self):
        self.start_mpi(launch.OPEN_MPI)

    def start_mpich(self):
        self.start_mpi(launch.MPICH)

    def start_mpi(self, mpi):
        """Start the ranks in turn beside the agents. Only the ranks get the library."""
        program = self.play.mpi_program(mpi)
        sockets = self.play.sockets
        del self.environment["SLURM_JOB_ID"]  # only the ranks have it: the launchers use it too
        script = (f"rank=${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK:-0}}}}; "
                  f"[ $((rank % 2)) = 0 ] && socket={sockets[0]} || socket={sockets[1]}; "
                  f"exec env CORPUS_RANK=$rank SLURM_JOB_ID={self.job[6:]} "
                  f"TOCSIN_JOB_SOCKET=$socket LD_PRELOAD={self.play.mpi_library} "
                  f"{program} {self.program.play}")
        self.start(mpi.words(self.program.ranks, "/bin/sh", "-c", script),
                   CORPUS_PROGRAM=self.play.spawned_program(mpi, self.job[6:]), TMPDIR=SCRATCH,
                   OMPI_MCA_btl="self,vader,tcp", OMPI_MCA_btl_tcp_if_include="lo")

    def start_libtocsin(self):
        name, ranks, sockets = self.program.play, self.program.ranks, self.play.sockets
        if name in RINGS:
            words = [self.play.build / "lib/job/examples/ring", "--ranks", ranks, *RINGS[name]]
            self.start(words + [word for path in sockets for word in ("--socket", path)])
        else:
            self.start([self.play.build / "tests/hangs/tocsin-hangs-job", name, ranks, *sockets])

    def start_nccl(self):
        digest = (int(self.job[6:]) << 32) + 1
        hold = 1 if self.program.is_healthy else 600
        for rank in range(self.program.ranks):
            path = self.directory / f"rank{rank}.txt"
            nccl_ranks.write(self.program.play, rank, digest, self.play.seconds, path)
            self.start([self.play.build / "tests/replay/tocsin-replay", "--real-time", "--library",
                        self.play.build / "lib/job/nccl/libnccl-profiler-tocsin.so", "--hold",
                        hold, path], CORPUS_RANK=str(rank), TOCSIN_NCCL_LEVEL="kernels-always",
                       TOCSIN_JOB_SOCKET=str(self.play.sockets[rank % 2]))

    def start_gloo(self):
        for rank in range(self.program.ranks):
            self.start(
                [sys.executable, GLOO, self.program.play], RANK=str(rank), CORPUS_RANK=str(rank),
                WORLD_SIZE=str(self.program.ranks), MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(20000 + int(self.job[6:])), GLOO_SOCKET_IFNAME="lo",
                OMP_NUM_THREADS="1", PYTHONPATH=str(HERE.parents[1] / "lib/job/python"),
                TOCSIN_LIBRARY=str(self.play.build / "lib/job/libtocsin.so.1"),
                TOCSIN_JOB_SOCKET=str(self.play.sockets[rank % 2]))

    def odd_since(self):
        """Return the time at which the program became odd, or None before."""
        if self.mark.exists():
            return self.mark.stat().st_mtime
        seconds = {"nccl": STEPS_SECONDS, "libtocsin": 1}.get(self.program.layer)
        is_timed = self.program.layer == "nccl" or self.program.play in RINGS
        if is_timed and time.time() > self.began + seconds:
            return self.began + seconds
        return None

    def has_ended(self):
        return all(process.poll() is not None for process in self.processes)

    def output(self):
        return b"".join(path.read_bytes() for path in sorted(self.directory.glob("out-*"))).decode(
            errors="replace")

    def world_rank(self, late):
        """Return the rank in the world of a late rank, whose number is that of its communicator."""
        pid = late["pid"]
        if pid not in self.world:
            try:
                text = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                text = b""
            found = re.search(rb"(?:^|\0)CORPUS_RANK=(\d+)", text)
            if not found and late["rank"] < 0:
                return late["rank"]
            self.world[pid] = int(found[1]) if found else late["rank"]
        return self.world[pid]

    def learn_ranks(self, rows):
        """Record the rank in the world of each process while it lives."""
        for row in rows:
            for late in row["finding"]["late"]:
                self.world_rank(late)

    def compare_reports(self, rows):
        """Compare the present reports with the catalogue."""
        self.learn_ranks(rows)
        since = self.odd_since()
        age = None if since is None else time.time() - since
        for finding in (row["finding"] for row in rows):
            if finding["state"] in ("waiting", "stuck") or finding["cause"] == "dead-member":
                self.judge(finding, age)

    def ranks_named(self, finding):
        """Return the ranks that a finding accuses. A mismatch names a rank that deviates and a
        witness, with its number alone. Of dead ranks the first is the one that ended first."""
        if finding["cause"] == "mismatch":
            return {int(rank) for rank in re.findall(r"rank (\d+) \(pid", finding["sentence"])}
        if finding["cause"] == "dead-member":
            first = re.match(r"rank (\d+) \(|ranks [\d, ]+ are gone.*\(rank (\d+), the first",
                             finding["sentence"])
            if first:
                return {int(first[1] or first[2])}
        if finding["cause"] == "ordering-deadlock":
            pids = re.findall(r"\(pid (\d+) on", finding["sentence"])
            return {self.world_rank({"pid": int(pid), "rank": -1}) for pid in pids}
        return {self.world_rank(late) for late in finding["late"]}

    def judge(self, finding, age):
        ranks = self.ranks_named(finding)
        text = (f"{finding['state']} {finding['cause']} "
                f"{','.join(map(str, sorted(ranks))) or '-'}: {finding['sentence']}")
        self.last = text
        is_gone = finding["cause"] == "dead-member"
        program = self.program
        if program.is_healthy:
            if self.has_ended():
                return
            if is_gone:
                self.add_fault("false gone", text)
            elif (finding["state"] == "stuck"
                  and finding["cause"] not in EXCUSED.get(program.name, ())):
                self.add_fault("false stuck", text)
            elif finding["cause"] in ACCUSING - EXCUSED.get(program.name, set()):
                self.add_fault("false cause", text)
            elif ranks - program.ranks_allowed:
                self.add_fault("wrong rank", text)
            return
        right_state = {"gone": is_gone, "stuck": finding["state"] == "stuck" or is_gone,
                       "waiting": True}[program.state]
        if right_state and ranks in program.who and re.search(program.words, finding["sentence"]):
            if self.named is None:
                self.named_s, self.named = age, text
        elif ranks - program.ranks_allowed:
            self.add_fault("wrong rank", text)
        elif is_gone and program.state != "gone":
            self.add_fault("false gone", text)

    def add_fault(self, kind, text):
        if kind not in [known for known, _ in self.faults]:
            self.faults.append((kind, text))

    def is_over(self):
        since = self.odd_since()
        age = 0 if since is None else time.time() - since
        if self.program.is_healthy:
            return self.has_ended() or time.time() - self.began > HEALTHY_SECONDS_MAX
        if self.named is not None:
            return age > (self.named_s or 0) + STAY_SECONDS
        limit = self.play.give_up_seconds
        return age > limit or time.time() - self.began > limit * 3

    def finish(self):
        """End the processes, and return the result as a row."""
        if self.program.is_healthy and (
                not self.has_ended() or any(process.returncode for process in self.processes)):
            self.add_fault("failed", f"status {[one.returncode for one in self.processes]}: "
                           f"{self.output()[-300:]}")
        end_all(self.processes)
        program = self.program
        if not program.is_healthy and self.named is None:
            self.add_fault("missing", self.last or "nothing was said; " + self.output()[-200:])
        elif not program.is_healthy and (self.named_s or 0) > NAMED_SECONDS:
            self.add_fault("late", f"named after {self.named_s:.0f} s")
        return {"name": program.name, "layer": program.layer, "state": program.state,
                "who": sorted(map(sorted, program.who)), "words": program.words,
                "said": self.named or self.last, "seconds": self.named_s,
                "faults": [{"kind": kind, "said": text} for kind, text in self.faults]}


def descendants(pids):
    """Return these processes and all their descendants."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(entry.name)] = int(stat[1])
        except OSError:
            continue
    found, grown = set(pids), True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        grown = bool(more)
        found |= more
    return found


def end_all(processes):
    """Kill the processes and their descendants: a launcher would leave stopped ranks behind."""
    for pid in descendants([process.pid for process in processes]):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for process in processes:
        process.wait()


class Play:
    """Two agents, and the programs that run under them."""

    def __init__(self, build, seconds=30, give_up_seconds=GIVE_UP_SECONDS):
        self.build, self.seconds = pathlib.Path(build).resolve(), seconds
        self.give_up_seconds = give_up_seconds
        self.directory = pathlib.Path(SCRATCH) / "corpus"
        self.directory.mkdir()
        (self.directory / "agents").mkdir()
        self.mpi_library = self.build / "lib/job/mpi/libtocsin-mpi.so"
        self.cluster = clusters.Cluster(self.build, 2, directory=self.directory / "agents")
        self.sockets = [agent.directory / "job.sock" for agent in self.cluster.agents]
        self.programs, self.runs, self.number = {}, [], FIRST_JOB

    def __enter__(self):
        self.cluster.start()
        self.cluster.wait_ring()
        return self

    def __exit__(self, *_):
        for run in self.runs:
            end_all(run.processes)
        self.cluster.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def mpi_program(self, mpi):
        if mpi.name not in self.programs:
            self.programs[mpi.name] = mpi.compile(
                self.directory, str(HERE / "mpi_program.c"), HERE / "mpi_healthy.c",
                HERE / "mpi_hanging.c", HERE / "behaviours.c", "-lpthread", target="mpi_program")
        return self.programs[mpi.name]

    def spawned_program(self, mpi, number):
        """Return a program that starts a rank of a spawned world. It belongs to the same job."""
        path = self.directory / f"spawned-{number}"
        path.write_text(
            f"#!/bin/sh\nexec env CORPUS_RANK=9 SLURM_JOB_ID={number} TOCSIN_JOB_SOCKET="
            f"{self.sockets[0]} LD_PRELOAD={self.mpi_library} {self.programs[mpi.name]} \"$@\"\n",
            encoding="ascii")
        path.chmod(0o755)
        return str(path)

    def communicators(self):
        """Return the rows of `tocsin comms` by job; None if no answer came."""
        done = subprocess.run(
            [self.build / "agent/tocsin", "comms", "--all", "--json", "--socket",
             self.cluster.agents[0].socket], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            return None
        rows = {}
        for row in json.loads(done.stdout)["communicators"]:
            rows.setdefault((row["job"] or "").split(".")[0], []).append(row)
        return rows

    def play(self, programs, at_once):
        """Play the programs, at most `at_once` at a time. Yields a row for each that has ended."""
        waiting = list(programs)
        while waiting or self.runs:
            while waiting and len(self.runs) < at_once:
                self.number += 1
                self.runs.append(Run(self, waiting.pop(0), self.number))
            time.sleep(ASK_SECONDS)
            said = self.communicators()
            for run in list(self.runs):
                if said is not None:
                    run.compare_reports(said.get(run.job, []))
                if run.is_over():
                    yield run.finish()
                    self.runs.remove(run)


def totals(rows):
    """Count the faults of all rows by kind, and the hangs named in time."""
    counts = {kind: sum(kind == fault["kind"] for row in rows for fault in row["faults"])
              for kind in ("false stuck", "false gone", "false cause", "wrong rank", "missing",
                           "late", "failed")}
    hangs = [row for row in rows if row["state"] != "healthy"]
    counts["hangs"] = len(hangs)
    counts["named"] = sum(row["seconds"] is not None and row["seconds"] <= NAMED_SECONDS
                          for row in hangs)
    return counts


def is_reached(counts):
    """Return whether no report is false and at most one hang in 15 was not named in time."""
    false = sum(counts[kind] for kind in ("false stuck", "false gone", "false cause", "wrong rank",
                                          "failed"))
    return false == 0 and counts["named"] >= counts["hangs"] - counts["hangs"] // 15
