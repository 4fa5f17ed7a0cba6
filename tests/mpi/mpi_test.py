#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""libtocsin-mpi.so under real programs of Open MPI or MPICH, in C and Fortran.

    mpi_test.py SOURCE-ROOT BUILD-ROOT LIBRARY openmpi|mpich
"""

import contextlib
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile

import cluster
import tap

ROOT, BUILD, LIBRARY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(ROOT / "tests/nccl"))
sys.path.insert(0, str(ROOT / "tests/smoke"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import launch  # noqa: E402
import netns  # noqa: E402
import page  # noqa: E402
from launch import CHOSEN, MPICH, OPEN_MPI, Job, run  # noqa: E402

NEWEST = (2, 17)
NEEDED = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1",
          "ld-linux-x86-64.so.2"}
TOCSIN = BUILD / "agent/tocsin"
RANKS = 3
# Operations of tests/mpi/world.c before it waits, by communicator in order of creation.
WORLD = {"all_reduce": 10, "broadcast": 11, "gather": 10, "all_gather": 10, "barrier": 1,
         "other": 2, "send": 20, "receive": 20}
TWIN = {"barrier": 1, "all_reduce": 2, "broadcast": 10}
HALF = {"barrier": 10}
# The same for world.f90.
FORTRAN_WORLD = {"all_reduce": 11, "barrier": 1, "other": 1}
FORTRAN_TWIN = {"broadcast": 10, "barrier": 1, "all_reduce": 1}
CAUSES = {"elsewhere": "missing-enter", "self": "missing-enter", "order": "ordering-deadlock",
          "counts": "mismatch", "posted": "missing-enter", "messages": "call-deadlock",
          "unwaited": "missing-wait", "requests": "call-deadlock"}
# The words that name the call between two ranks, or the operation that is not waited for.
CALLS = {"elsewhere": "it is in MPI_Recv from rank 1 (tag 99), and waits for a rank that itself",
         "messages": " is in MPI_Ssend to rank 0 (tag 98), for ",
         "requests": " is in MPI_Waitall for a receive from rank 0 (tag 97), for ",
         "unwaited": "of 64 float64) and does not wait for it, in which 2 ranks have waited for "}
LATE = {"elsewhere": 2, "self": 2, "unwaited": 0}
HEALTHY = ("posted", "unwaited")

here = {}  # state shared by the tests


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def symbols_are_old():
    """It runs with glibc 2.17, needs the C library alone, and exports MPI's names alone."""
    if re.search(r"lib(asan|tsan|ubsan)\.so", said("readelf", "-d", LIBRARY)):
        raise tap.Skip("sanitizers bring symbols of their own")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", said("readelf", "-d", LIBRARY)))
    assert needed <= NEEDED, needed
    versions = {tuple(map(int, text.split("."))) for text in
                re.findall(r"GLIBC_([0-9.]+)", said("readelf", "--dyn-syms", "-W", LIBRARY))}
    assert versions and max(versions) <= NEWEST, max(versions)
    exported = [line.split()[-1] for line in
                said("nm", "-D", "--defined-only", LIBRARY).splitlines()]
    assert len(exported) > 400
    strangers = [name for name in exported if not re.match(r"P?MPIX?_[A-Z]", name)]
    assert not strangers, strangers


def programs():
    """Compile the programs once. Returns their paths by MPI and name."""
    if "programs" not in here:
        missing = [mpi.name for mpi in CHOSEN if not mpi.is_here()]
        if missing:
            raise tap.Skip(f"{' and '.join(missing)} not installed (./dev test mpi does that)")
        directory = here["directory"]
        here["programs"] = {
            (mpi.name, name): mpi.compile(directory, source, *options, target=name)
            for mpi in CHOSEN
            for name, source, *options in (("c", "world.c"), ("fortran", "world.f90"),
                                           ("f08", "world.f90", "-DF08"))}
    return here["programs"]


def counts_reach(pid, wanted):
    """Wait until the communicators, in order of creation, all have these counts."""
    counts = page.counts_of(pid) or {}
    comms = [counts[number] for number in sorted(counts)]
    return ([comm.kinds for comm in comms] == wanted and
            all(comm.launched == comm.completed for comm in comms) and comms)


def check_counts(name, wanted):
    hold = here["directory"] / f"hold-{name}"
    hold.touch()
    jobs = [(mpi, Job(mpi.words(RANKS, programs()[mpi.name, name], "count", hold),
                      LD_PRELOAD=LIBRARY)) for mpi in CHOSEN]
    try:
        for mpi, job in jobs:
            pids = cluster.wait_until("the ranks", lambda mpi=mpi, job=job: len(
                job.pids_of(programs()[mpi.name, name])) == RANKS and
                job.pids_of(programs()[mpi.name, name]))
            for pid in pids:
                comms = cluster.wait_until(
                    lambda pid=pid: f"{mpi.name} {name}: " + str(
                        [comm.kinds for comm in (page.counts_of(pid) or {}).values()]),
                    lambda pid=pid: counts_reach(pid, wanted), 30)
                for comm in comms:
                    assert comm.started == comm.completed, vars(comm)
                check_signatures(comms[0], name)
        hold.unlink()
        outputs = [job.process.communicate(timeout=launch.PATIENCE_S)[0] for _, job in jobs]
        assert not any(job.process.returncode for _, job in jobs), outputs
    finally:
        for _, job in jobs:
            job.end()


def check_signatures(comm, name):
    told = list(comm.signatures.values())
    if name == "c":
        assert ("broadcast", 16, 254, 0) in told, told  # bytes, for any type
        assert ("barrier", 0, 255, -1) in told, told
    else:
        assert ("all_reduce", 64, 8, -1) in told, told  # float64


def c_counts_once():
    """Each operation of a C program is counted once: blocking, posted, persistent, of two ranks."""
    check_counts("c", [WORLD, TWIN, HALF])


def fortran_counts_once():
    """So is each of a Fortran program with `use mpi`, though Open MPI's calls PMPI itself."""
    check_counts("fortran", [FORTRAN_WORLD, FORTRAN_TWIN])


def f08_counts_once():
    """So is each with `use mpi_f08`."""
    check_counts("f08", [FORTRAN_WORLD, FORTRAN_TWIN])


def results_are_equal():
    """A job writes and returns with the library what it does without, with no agent there."""
    for (name, language), program in programs().items():
        mpi = next(mpi for mpi in CHOSEN if mpi.name == name)
        words = mpi.words(RANKS, program, "count")
        alone, counted = run(words), run(words, LD_PRELOAD=LIBRARY,
                                         TOCSIN_JOB_SOCKET="/nowhere/job.sock")
        assert alone.returncode == 0 and alone.stdout, (language, alone)
        assert (alone.returncode, alone.stdout, alone.stderr) == (
            counted.returncode, counted.stdout, counted.stderr), (alone, counted)


def corners_are_equal():
    """Threads, children, a busy communicator freed, too many of them, mistakes: all as without."""
    programs()
    corners = ("threads", "children", "busy", "many", "mistakes", "groups", "abort")
    for mpi in CHOSEN:
        names = corners if mpi is OPEN_MPI else ("busy", "groups")  # MPICH's ranks busy-poll
        program = mpi.compile(here["directory"], "corners.c", "-lpthread")
        for corner in names:
            words = mpi.words(RANKS, program, corner)
            alone = run(words)
            counted = run(words, LD_PRELOAD=LIBRARY,
                          TOCSIN_JOB_SOCKET=here["cluster"].agents[0].directory / "job.sock")
            assert (alone.returncode, alone.stdout) == (counted.returncode, counted.stdout), (
                mpi.name, corner, alone, counted)
            assert corner in alone.stdout or corner == "abort", alone


OTHERS = {"openmpi": "libmpich.so.12", "mpich": "libmpi.so.40"}


def odd_programs_are_equal():
    """A program that starts another world, calls MPI after MPI_Finalize, or loads two MPIs: all as
    without, and what is not followed is said once by each world."""
    programs()
    for mpi, corner, said_of in ((OPEN_MPI, "spawn", "several worlds"),
                                 (OPEN_MPI, "afterwards", None), (MPICH, "afterwards", None),
                                 (OPEN_MPI, "two", "two libraries of MPI are loaded"),
                                 (MPICH, "two", "two libraries of MPI are loaded")):
        # The corner "two" needs both libraries, which only the run for MPICH has.
        if (MPICH if corner == "two" else mpi) not in CHOSEN:
            continue
        program = mpi.compile(here["directory"], "corners.c", "-lpthread", "-ldl")
        # Two worlds of Open MPI reach each other by TCP alone.
        more = {"CORNER_PROGRAM": program, "OMPI_MCA_btl": "self,vader,tcp",
                "OMPI_MCA_btl_tcp_if_include": "lo",
                **({"CORNER_OTHER": OTHERS[mpi.name]} if corner == "two" else {})}
        words = mpi.words(2, program, "threads" if corner == "two" else corner)
        alone = run(words, **more)
        counted = run(words, LD_PRELOAD=LIBRARY, TOCSIN_MPI_NOTES="stderr",
                      TOCSIN_JOB_SOCKET=here["cluster"].agents[0].directory / "job.sock", **more)
        what = (mpi.name, corner, alone, counted)
        assert (alone.returncode, alone.stdout) == (counted.returncode, counted.stdout), what
        assert alone.returncode == 0 or corner == "afterwards", what
        worlds = 2 if corner == "spawn" else 1
        assert said_of is None or 0 < counted.stderr.count(said_of) <= worlds, what


def mpi_inside_is_said():
    """A program with MPICH linked into it statically runs as alone, and is said once to be one."""
    programs()
    shared, archive = (said("gcc", f"-print-file-name=libmpich.{end}").strip()
                       for end in ("so", "a"))
    if "/" not in archive:
        raise tap.Skip("libmpich.a is not installed")
    needed = re.findall(r"=> (/\S+)", said("ldd", shared))
    program = MPICH.compile(here["directory"], "world.c", archive, "-Wl,--as-needed", *needed,
                            target="inside")
    assert not re.search(r"NEEDED.*libmpi", said("readelf", "-d", program))
    words = MPICH.words(2, program, "count")
    alone, counted = run(words), run([TOCSIN, "run", "--mpi", "--", *words])
    assert (alone.returncode, alone.stderr) == (0, ""), alone
    assert (counted.returncode, counted.stdout) == (0, alone.stdout), (alone, counted)
    assert counted.stderr == (
        f'tocsin run: "{program}" is not followed: MPI is linked into it statically\n'), counted


def a_handle_given_anew_is_followed():
    """A communicator that gets the handle of one that is just being freed is followed."""
    programs()
    for mpi in CHOSEN:
        program = mpi.compile(here["directory"], "corners.c", "-lpthread", "-ldl")
        shim = mpi.compile(here["directory"], "reuse.c", "-shared", "-fPIC", "-ldl")
        done = run(mpi.words(2, program, "reuse"), LD_PRELOAD=f"{LIBRARY}:{shim}",
                   TOCSIN_JOB_SOCKET="/nowhere/job.sock", TOCSIN_MPI_NOTES="stderr")
        assert (done.returncode, done.stdout) == (0, "end of reuse\n"), (mpi.name, done)
        assert "not followed" not in done.stderr, (mpi.name, done)


def crashed_rank_keeps_its_status():
    """The launcher ends with the same status whether or not tocsin run is between it and a rank."""
    programs()
    for mpi in CHOSEN:
        program = mpi.compile(here["directory"], "corners.c", "-lpthread", "-ldl")
        alone = run(mpi.words(RANKS, program, "crash"))
        for number in range(5):
            under = run(mpi.words(RANKS, TOCSIN, "run", "--mpi", "--", program, "crash"))
            assert alone.returncode == under.returncode != 0, (mpi.name, number, alone, under)


def fill(path):
    """Fill the file system of this path to the last byte."""
    with open(path, "wb", buffering=0) as file:
        for piece in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(piece))


def end_on_full_disk(mpi, disk, program, is_followed, agent):
    """Run a job whose disk is full from the end of MPI_Init on. Returns status and output."""
    hold, output = here["directory"] / "hold-disk", disk / "output"
    hold.touch()
    job = Job(["sh", "-c", 'exec "$@" >"$0"', output,
               *([TOCSIN, "run", "--mpi", "--"] if is_followed else []),
               *mpi.words(2, program, "disk")], TMPDIR=disk, CORNER_DISK=disk, CORNER_HOLD=hold,
              TOCSIN_JOB_SOCKET=agent.directory / "job.sock")
    ready = [here["directory"] / f"hold-disk-{rank}" for rank in range(2)]
    try:
        cluster.wait_until("the ranks", lambda: all(path.exists() for path in ready))
        if is_followed:
            cluster.wait_until(f"{mpi.name} in comms", lambda: any(
                comm["size"] == 2 and comm["ranks"] == 2 for comm in comms(agent)), pause=0.3)
        fill(disk / "filler")
        hold.unlink()
        errors = job.process.communicate(timeout=launch.PATIENCE_S)[0]
        return job.process.returncode, output.read_bytes(), errors
    finally:
        for path in (hold, disk / "filler", *ready):
            path.unlink(missing_ok=True)
        job.end()


@netns.isolated
def play_full_disk():
    """TMPDIR, output and results of the job, state and log of the agent are all on one small disk.
    """
    netns.ip("link set lo up")
    disk = here["directory"] / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], check=True)
    with cluster.Cluster(BUILD, 1) as agents:
        agent = agents.agents[0]
        agent.own, agent.log = {"node.state_directory": disk / "state"}, disk / "log"
        agent.start()
        for mpi in CHOSEN:
            program = mpi.compile(here["directory"], "corners.c", "-lpthread", "-ldl")
            alone, counted = (end_on_full_disk(mpi, disk, program, is_followed, agent)
                              for is_followed in (False, True))
            assert alone[0] != 0, (mpi.name, alone)  # 5, or an error of the launcher
            assert alone[:2] == counted[:2], (mpi.name, alone, counted)
        assert agent.running() and comms(agent) is not None
        agent.kill()
    subprocess.run(["umount", disk], check=True)


def a_full_disk_is_equal():
    """On a full disk, its own and the agent's, a job that is followed ends as it would alone."""
    programs()
    if os.geteuid() != 0:
        raise tap.Skip("a small disk of its own needs root")
    play_full_disk()


def shimmed(mpi, ranks, corner, asked, **more):
    """Return command and environment of a corner with between.c behind the library."""
    program = mpi.compile(here["directory"], "corners.c", "-lpthread", "-ldl")
    shim = mpi.compile(here["directory"], "between.c", "-shared", "-fPIC", "-ldl")
    return mpi.words(ranks, program, corner), {
        "LD_PRELOAD": f"{LIBRARY}:{shim}", "BETWEEN": asked,
        "TOCSIN_JOB_SOCKET": "/nowhere/job.sock", **more}


def one_rank_is_looked_for():
    """For each communicator that is made MPI looks for one rank, whatever its size."""
    programs()
    for mpi in CHOSEN:
        words, given = shimmed(mpi, RANKS, "made", "")
        done = run(words, **given)
        assert done.returncode == 0 and "looked for 3\n" in done.stdout, (mpi.name, done)


def a_request_given_anew_stays_open():
    """An operation that gets the request of one that has just ended is open until it ends."""
    programs()
    for mpi in CHOSEN:
        hold = here["directory"] / f"hold-wait-{mpi.name}"
        hold.touch()
        words, given = shimmed(mpi, 2, "wait", "wait", CORNER_HOLD=hold)
        job = Job(words, **given)
        try:
            program = here["directory"] / f"corners.{mpi.name}"
            cluster.wait_until(
                lambda job=job, program=program: f"{mpi.name}: {state_of(job, program)}",
                lambda job=job, program=program: sorted(state_of(job, program)) ==
                [[1, 1], [1, 2]], 60)
            hold.unlink()
            out = job.process.communicate(timeout=launch.PATIENCE_S)[0]
            assert job.process.returncode == 0 and "same 1\n" in out, (mpi.name, out)
        finally:
            hold.unlink(missing_ok=True)
            job.end()


def many_and_a_late_member_are_followed():
    """A process may have 200 communicators, and a group that waits for a member names the member.
    """
    programs()
    agent = here["cluster"].agents[0]
    for mpi in CHOSEN:
        hold = here["directory"] / f"hold-member-{mpi.name}"
        hold.touch()
        program = mpi.compile(here["directory"], "corners.c", "-lpthread", "-ldl")
        job = Job(mpi.words(2, program, "held"), LD_PRELOAD=LIBRARY, CORNER_HOLD=hold,
                  TOCSIN_JOB_SOCKET=agent.directory / "job.sock")
        try:
            found = cluster.wait_until("the group", lambda: [
                comm["finding"]["sentence"] for comm in comms(agent) if comm["missing"] == 1 and
                comm["finding"]["state"] == "waiting"], 60, pause=1)
            assert found[0].startswith(
                "rank 1 is held by no agent that answered; in operation 1 (MPI_Comm_create_group)"
            ), (mpi.name, found)
            alive = [comm for comm in comms(agent) if comm["finding"]["state"] != "ended"]
            assert sum(comm["ranks"] == comm["size"] == 2 for comm in alive) == 201, len(alive)
            hold.unlink()
            out = job.process.communicate(timeout=launch.PATIENCE_S)[0]
            assert (job.process.returncode, out) == (0, "end of held\n"), (mpi.name, out)
        finally:
            hold.unlink(missing_ok=True)
            job.end()


def threads_that_wait_apart_are_no_deadlock():
    """Threads of two ranks that wait in different communicators do not wait for each other."""
    programs()
    agent = here["cluster"].agents[0]
    for mpi in CHOSEN:
        hold = here["directory"] / f"hold-apart-{mpi.name}"
        hold.touch()
        program = mpi.compile(here["directory"], "corners.c", "-lpthread", "-ldl")
        job = Job(mpi.words(2, program, "apart"), LD_PRELOAD=LIBRARY, CORNER_HOLD=hold,
                  TOCSIN_JOB_SOCKET=agent.directory / "job.sock")
        try:
            pids = cluster.wait_until("the ranks", lambda job=job, program=program: len(
                job.pids_of(program)) == 2 and job.pids_of(program))
            found = cluster.wait_until("both waits", lambda pids=pids: len(
                standing(agent, pids, "missing-enter") + standing(
                    agent, pids, "ordering-deadlock")) == 2 and standing(
                        agent, pids, "missing-enter"), 60, pause=0.5)
            assert [comm["finding"]["state"] for comm in found] == ["waiting"] * 2, found
            hold.unlink()
            out = job.process.communicate(timeout=launch.PATIENCE_S)[0]
            assert (job.process.returncode, out) == (0, "end of apart\n"), (mpi.name, out)
        finally:
            hold.unlink(missing_ok=True)
            job.end()


def an_abort_is_named_with_its_code():
    """The rank that called MPI_Abort is named first, with its code, and the others behind it."""
    programs()
    agent = here["cluster"].agents[0]
    for mpi in CHOSEN:
        program = mpi.compile(here["directory"], "corners.c", "-lpthread", "-ldl")
        job = Job(mpi.words(RANKS, program, "abort"), LD_PRELOAD=LIBRARY,
                  TOCSIN_JOB_SOCKET=agent.directory / "job.sock")
        job.process.communicate(timeout=launch.PATIENCE_S)
        found = cluster.wait_until("the abort", lambda: [
            comm["finding"]["sentence"] for comm in comms(agent)
            if comm["size"] == RANKS and "MPI_Abort with code 7" in comm["finding"]["sentence"]],
            pause=0.5)
        assert re.match(r"rank 1 \(pid \d+ on n1\) is gone, after it called", found[0]), found


def state_of(job, program):
    """Return completed and launched of MPI_COMM_WORLD, by rank."""
    found = [page.counts_of(pid) for pid in job.pids_of(program)]
    return [[counts[min(counts)].completed, counts[min(counts)].launched]
            for counts in found if counts]


def ranks_end_with_the_test():
    """The ranks of a test that is killed end, however much they spin."""
    for mpi in CHOSEN:
        hold = here["directory"] / f"hold-killed-{mpi.name}"
        hold.touch()
        program = programs()[mpi.name, "c"]
        job = Job(mpi.words(RANKS, program, "elsewhere", hold))
        # Another process takes the place of the test, which keeps the pipe of the job open.
        with subprocess.Popen(["sleep", "infinity"], pass_fds=[job.guard.fileno()]) as test:
            try:
                job.guard.close()
                cluster.wait_until("the ranks", lambda job=job, program=program: len(
                    job.pids_of(program)) == RANKS)
                ranks = [os.pidfd_open(pid) for pid in job.pids_of(program)]
                hold.unlink()
            finally:
                test.kill()
        for rank in ranks:
            ended, _, _ = select.select([rank], [], [], launch.PATIENCE_S)
            os.close(rank)
            assert ended, mpi.name
        job.end()


def a_handler_may_abort():
    """A handler of a signal that aborts while a communicator is being entered aborts."""
    programs()
    for mpi in CHOSEN:
        words, given = shimmed(mpi, 2, "interrupted", "size")
        done = run(words, **given)
        assert done.returncode == 7, (mpi.name, done)


def the_loader_is_not_waited_for():
    """A library that calls MPI while it is loaded waits for no thread that looks for MPI."""
    programs()
    for mpi in CHOSEN:
        late = mpi.compile(here["directory"], "late.c", "-shared", "-fPIC")
        words, given = shimmed(mpi, 1, "loader", "", CORNER_LATE=late)
        done = run(words, **given)
        assert (done.returncode, done.stdout) == (0, "end of loader\n"), (mpi.name, done)


def python_is_followed():
    """A program of mpi4py, which loads MPI while it runs, is followed and gets what it would."""
    script = here["directory"] / "sums.py"
    script.write_text("from mpi4py import MPI\n"
                      "comm = MPI.COMM_WORLD.Dup()\n"
                      "total = sum(comm.allreduce(comm.rank + n) for n in range(5))\n"
                      "if comm.rank == 0: print(total, comm.bcast('x'), flush=True)\n"
                      "else: comm.bcast(None)\n"
                      "import os, struct, sys\n"
                      "places = [f'/proc/self/fd/{name}' for name in os.listdir('/proc/self/fd')]\n"
                      "print(any('memfd:tocsin' in os.readlink(place) for place in places\n"
                      "          if os.path.islink(place)), file=sys.stderr)\n")
    words = OPEN_MPI.words(2, "/usr/bin/python3", script)
    programs()
    if run(["/usr/bin/python3", "-c", "import mpi4py"]).returncode != 0:
        raise tap.Skip("mpi4py is not installed")
    alone, counted = run(words), run(words, LD_PRELOAD=LIBRARY)
    assert alone.returncode == counted.returncode == 0, (alone, counted)
    assert alone.stdout == counted.stdout == "25 x\n", (alone, counted)
    # Two ranks write to one place: a line may end after the next word.
    words = [re.findall("True|False", done.stderr) for done in (alone, counted)]
    assert words == [["False"] * 2, ["True"] * 2], (alone, counted)


def ask(agent, *words):
    """Return the agent's answer; status 1 means that something is stuck. At most five questions per
    second."""
    def answer():
        done = subprocess.run([TOCSIN, *words, "--socket", agent.socket], capture_output=True,
                              text=True, check=False)
        assert done.returncode in (0, 1), done
        return "try again" not in done.stderr and done

    done = cluster.wait_until("an answer", answer, pause=0.3)
    assert not done.stderr, done
    return done.stdout


def comms(agent):
    return json.loads(ask(agent, "comms", "--json"))["communicators"]


def standing(agent, pids, cause):
    """Return the communicators of these processes that are stuck for this cause."""
    def concerns(finding):
        return {late["pid"] for late in finding["late"]} & set(pids) or any(
            f"(pid {pid} on " in finding["sentence"] for pid in pids)

    return [comm for comm in comms(agent)
            if comm["finding"]["state"] in ("waiting", "stuck") and
            comm["finding"]["cause"] == cause and concerns(comm["finding"])]


def start_hangs():
    """Start one job per cause and MPI. The jobs hang while other tests run."""
    agent = here["cluster"].agents[0]
    here["hangs"] = []
    for mpi in CHOSEN:
        # MPICH's ranks spin. One mode per language shows that both MPIs are followed alike.
        modes = CAUSES if mpi is OPEN_MPI else ["order", "messages"]
        for name, mode in [("c", mode) for mode in modes] + [("fortran", "elsewhere")]:
            program = programs()[mpi.name, name]
            here["hangs"].append((mpi.name, name, mode, program, Job(
                mpi.words(RANKS, program, mode), LD_PRELOAD=LIBRARY,
                TOCSIN_JOB_SOCKET=agent.directory / "job.sock")))


def hangs_are_named():
    """A hang is named by its cause and its rank: in C and Fortran, of both MPIs, as it is built."""
    start_hangs()
    try:
        check_hangs(here["cluster"].agents[0])
    finally:
        for *_, job in here["hangs"]:
            job.end()


def check_hangs(agent):
    for mpi, name, mode, program, job in here["hangs"]:
        what = f"{mpi} {name} {mode}"
        pids = cluster.wait_until(what, lambda job=job, program=program: len(
            job.pids_of(program)) == RANKS and job.pids_of(program))
        found = cluster.wait_until(
            lambda what=what: f"{what}: {[(comm['finding']) for comm in comms(agent)]}",
            lambda pids=pids, mode=mode: standing(agent, pids, CAUSES[mode]),
            pause=0.5)
        ranks = {late["rank"] for comm in found for late in comm["finding"]["late"]}
        assert mode not in LATE or ranks == {LATE[mode]}, (what, found)
        assert mode not in CALLS or any(
            comm["finding"]["state"] == ("waiting" if mode in HEALTHY else "stuck") and
            CALLS[mode] in comm["finding"]["sentence"] for comm in found), found
        # A healthy one: no rank blocks, so neither a cycle nor a proof is claimed.
        assert mode not in HEALTHY or {comm["finding"]["state"] for comm in found} == {"waiting"}
        assert mode not in HEALTHY or not standing(agent, pids, "ordering-deadlock")
        why = ask(agent, "why", f"{int(found[0]['hash'], 16):016x}")
        assert CAUSES[mode] in why and all(f" {pid} " in why for pid in pids), why


def main():
    with tempfile.TemporaryDirectory(prefix="tocsin-mpi-") as name, \
            cluster.Cluster(BUILD, 1) as agents:
        here["directory"], here["cluster"] = pathlib.Path(name), agents
        agents.start()
        # Only MPICH has a static library. Debian builds mpi4py for Open MPI.
        own = {"openmpi": (symbols_are_old, python_is_followed), "mpich": (mpi_inside_is_said,)}
        tap.run([(test.__doc__.split("\n")[0], test) for test in (
            c_counts_once, fortran_counts_once, f08_counts_once,
            results_are_equal, corners_are_equal, odd_programs_are_equal,
            crashed_rank_keeps_its_status, many_and_a_late_member_are_followed,
            threads_that_wait_apart_are_no_deadlock,
            an_abort_is_named_with_its_code, ranks_end_with_the_test, a_full_disk_is_equal,
            a_handle_given_anew_is_followed, one_rank_is_looked_for,
            a_request_given_anew_stays_open, a_handler_may_abort, the_loader_is_not_waited_for,
            *(test for mpi in CHOSEN for test in own[mpi.name]), hangs_are_named)])


if __name__ == "__main__":
    main()
