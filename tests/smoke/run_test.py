#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tocsin run: a command that has it as its parent is as it would be alone.

    run_test.py TOCSIN TASK-PROLOG
"""

import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import tap

TOCSIN, TASK_PROLOG = map(os.path.abspath, sys.argv[1:3])
RUN = [TOCSIN, "run", "--quiet"]
PATIENCE_S = 60


def environment(**more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("TOCSIN_", "NCCL_", "LD_PRELOAD"))}
    return {**clean, "TOCSIN_JOB_SOCKET": "/nowhere/job.sock", **more}


def run(*words, around=(), stdin="", **more):
    return subprocess.run([*around, *words], input=stdin, capture_output=True, text=True,
                          check=False, env=environment(**more), timeout=PATIENCE_S)


def started(*words, **settings):
    return subprocess.Popen([*RUN, "--", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, env=environment(), **settings)


def python(*lines):
    return [sys.executable, "-c", "\n".join(lines)]


def streams_and_status():
    """Streams and exit status are the command's."""
    for script in ("cat; echo out; echo err >&2; exit 0", "exit 7", "exit 255", "kill -TERM $$",
                   "kill -SEGV $$", "kill -KILL $$", "trap '' HUP; kill -HUP $$; exit 3"):
        words = ["sh", "-c", script]
        alone, under = run(*words, stdin="in\n"), run(*RUN, "--", *words, stdin="in\n")
        assert (alone.returncode, alone.stdout, alone.stderr) == (
            under.returncode, under.stdout, under.stderr), (alone, under)


def what_cannot_run():
    """A command that cannot be run is told from one that ran."""
    for words, status, text in ((["/nowhere/x"], 127, "No such file"),
                                (["/etc/passwd"], 126, "Permission denied"),
                                (["no-such-program"], 127, "No such file")):
        done = run(*RUN, "--", *words)
        assert (done.returncode, text in done.stderr) == (status, True), done
    assert run(TOCSIN, "run").returncode == 125
    assert run(TOCSIN, "run", "--mpu", "--", "true").returncode == 125


def ignored_signals():
    """What was ignored or blocked before stays so for the command."""
    script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
    for before in ("trap '' HUP CHLD", "trap '' INT QUIT", ":"):
        words = [f"{before}; exec sh -c \"{script}\"", f"{before}; exec "
                 f"{' '.join(RUN)} -- sh -c \"{script}\""]
        alone, under = (run("sh", "-c", word).stdout for word in words)
        assert alone == under and alone, (alone, under)


def signals_reach_it():
    """A signal that is sent to the parent reaches the command, once."""
    process = started(*python(
        "import signal, sys, time", "seen = []",
        "signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))",
        "signal.signal(signal.SIGTERM, lambda *_: (print(len(seen)), sys.exit(9)))",
        "print('ready', flush=True)", "while True: time.sleep(0.01)"))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE_S)[0] == "1\n"
    assert process.returncode == 9


def stops_too():
    """A command that stops is seen to stop, and goes on with its parent."""
    process = started(*python(
        "import os, signal", "print('ready', flush=True)",
        "os.kill(os.getpid(), signal.SIGSTOP)", "print('again', flush=True)"))
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSTOP, status
    os.kill(process.pid, signal.SIGCONT)
    assert process.communicate(timeout=PATIENCE_S)[0] == "ready\nagain\n"
    assert process.returncode == 0


def dies_with_it():
    """If the parent is killed, so is the command."""
    process = started("sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == "ready\n"
    process.kill()
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert process.stdout.read() == ""  # the command held it, and nobody does any more


def holds_nothing():
    """A descriptor that the command closes is closed: the parent keeps none."""
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    process = started("sh", "-c", f"exec {write_end}>&- >&-; exec sleep 1000",
                      pass_fds=[write_end])
    os.close(write_end)
    assert os.read(read_end, 1) == b"" and process.stdout.read() == ""
    assert process.poll() is None
    process.terminate()
    assert process.wait(PATIENCE_S) == -signal.SIGTERM
    os.close(read_end)


def status_under_hydra():
    """A launcher that kills a rank when the rank's connection closes gets the command's status."""
    for script, status in (("kill -SEGV $$", -signal.SIGSEGV), ("exit 3", 3)):
        own, other = socket.socketpair()
        own.settimeout(PATIENCE_S)
        with own:
            process = subprocess.Popen([*RUN, "--", "sh", "-c", script], pass_fds=[other.fileno()],
                                       env=environment(PMI_FD=str(other.fileno())))
            other.close()
            assert own.recv(1) == b""
            process.kill()
            assert process.wait(PATIENCE_S) == status, (script, process.returncode)


def closed_streams():
    """Streams that are closed are so for the command, too, and signals reach it all the same."""
    with tempfile.TemporaryDirectory(prefix="tocsin-run-") as name:
        for closed in ("<&-", "<&- >&-", "<&- >&- 2>&-"):
            shown = []
            for before in ([], [*RUN, "--"]):
                fifo, place = (os.path.join(name, word) for word in ("fifo", "open"))
                os.mkfifo(fifo)
                script = f"ls /proc/$$/fd >{place}; trap 'exit 9' TERM; echo ready >{fifo}; " \
                    "while :; do sleep 0.01; done"
                process = subprocess.Popen(
                    ["sh", "-c", f'exec "$@" {closed}', "sh", *before, "sh", "-c", script],
                    env=environment())
                with open(fifo, encoding="ascii") as ready:
                    assert ready.read() == "ready\n"
                process.terminate()
                try:
                    assert process.wait(10) == 9, (before, closed)
                finally:
                    process.kill()
                with open(place, encoding="ascii") as descriptors:
                    shown.append(descriptors.read())
                os.unlink(fifo)
            assert shown[0] == shown[1], (closed, shown)


def terminal():
    """On a terminal the command reads it, and the key that interrupts reaches it once."""
    pid, master = pty.fork()
    if pid == 0:
        os.execve(TOCSIN, [*RUN, "--", *python(
            "import signal, sys, time", "seen = []",
            "signal.signal(signal.SIGINT, lambda *_: seen.append(1))",
            "print('line', sys.stdin.readline().strip(), flush=True)",
            "while not seen: time.sleep(0.01)", "time.sleep(0.2)",
            "print('interrupts', len(seen), flush=True)", "sys.exit(4)")], environment())
    os.write(master, b"hello\n")
    seen = b""
    while b"line hello" not in seen:
        seen += os.read(master, 1000)
    os.write(master, b"\x03")
    while b"interrupts 1" not in seen:
        seen += os.read(master, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
    os.close(master)


def variables():
    """MPI's and NCCL's variables are set, and what was there before stays."""
    show = ["sh", "-c", "echo \"$LD_PRELOAD|$NCCL_PROFILER_PLUGIN|$TOCSIN_NCCL_PROFILER_NEXT\""]

    def shown(*options, **more):
        preload, plugin, following = run(TOCSIN, "run", *options, "--", *show,
                                         **more).stdout.strip().split("|")
        return [pathlib.Path(text).name for text in preload.split(":")], plugin, following

    mpi, nccl = "libtocsin-mpi.so", "libnccl-profiler-tocsin.so"
    for options in ([], ["--auto"], ["--mpi", "--nccl"]):
        preload, plugin, following = shown(*options)
        assert (preload, pathlib.Path(plugin).name, following) == ([mpi], nccl, "")
    assert shown("--mpi")[1:] == ("", "") and shown("--nccl")[0] == [""]
    assert shown(LD_PRELOAD="libc.so.6")[0] == ["libc.so.6", mpi]
    assert shown(NCCL_PROFILER_PLUGIN="none")[1:] == ("none", "")
    assert shown(NCCL_PROFILER_PLUGIN="/other.so")[2] == "/other.so"


def without_library():
    """Without its libraries the command runs all the same, and one line of each says so."""
    with tempfile.TemporaryDirectory(prefix="tocsin-run-") as name:
        shutil.copy(TOCSIN, name)
        copy = str(pathlib.Path(name) / "tocsin")
        done = run(copy, "run", "--", "sh", "-c", "echo out; exit 5")
        assert (done.returncode, done.stdout) == (5, "out\n"), done
        assert done.stderr.count("\n") == 2 and "COMMAND runs without" in done.stderr, done
        assert run(copy, "run", "--quiet", "--", "true").stderr == ""


def linked_statically():
    """That a program was linked statically is said; it runs all the same."""
    program = "int PMPI_Init(void); int PMPI_Init(void) { return 0; }\n" \
              "int main(void) { return PMPI_Init() + 6; }\n"
    with tempfile.TemporaryDirectory(prefix="tocsin-run-") as name:
        for option, text in (("-static", "it is linked statically"),
                             ("-pie", "MPI is linked into it statically")):
            target = str(pathlib.Path(name) / "program")
            subprocess.run(["gcc", "-fPIE", option, "-x", "c", "-o", target, "-"], input=program,
                           text=True, check=True)
            done = run(TOCSIN, "run", "--mpi", "--", target)
            assert done.returncode == 6 and text in done.stderr, done
            assert run(TOCSIN, "run", "--mpi", "--quiet", "--", target).stderr == ""
            # Behind a launcher, twice: said once, and by the first rank alone.
            words = ["run", "--mpi", "--", "sh", "-c", '"$0" || "$1"', target, target]
            done = run(TOCSIN, *words)
            assert done.returncode == 6 and done.stderr.count(text) == 1, done
            assert done.stderr.count("\n") == 1 and f'"{target}"' in done.stderr, done
            for variable in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"):
                assert run(TOCSIN, *words, **{variable: "0"}).stderr == done.stderr
                assert run(TOCSIN, *words, **{variable: "1"}).stderr == ""


def words_are_no_programs():
    """Words of a command that only look like programs are left alone."""
    with tempfile.TemporaryDirectory(prefix="tocsin-run-") as name:
        pipe = pathlib.Path(name) / "pipe"
        os.mkfifo(pipe, 0o700)
        done = run(TOCSIN, "run", "--mpi", "--", "echo", pipe, name, "", "true", "/nowhere/x")
        assert (done.returncode, done.stderr) == (0, ""), done
        assert done.stdout == f"{pipe} {name}  true /nowhere/x\n", done


def task_prolog():
    """Slurm's TaskProlog gives each task the library, behind what it loads already."""
    def said(**more):
        done = subprocess.run(["sh", TASK_PROLOG], capture_output=True, text=True, check=True,
                              env=environment(**more))
        assert done.stderr == "", done
        return done.stdout

    library = str(pathlib.Path(TOCSIN).parent.parent / "lib/job/mpi/libtocsin-mpi.so")
    assert said(TOCSIN_MPI_LIBRARY=library) == f"export LD_PRELOAD={library}\n"
    assert said(TOCSIN_MPI_LIBRARY=library, LD_PRELOAD="libc.so.6") == \
        f"export LD_PRELOAD=libc.so.6:{library}\n"
    assert said(TOCSIN_MPI_LIBRARY=library, LD_PRELOAD=f"libc.so.6:{library}") == ""
    assert said(TOCSIN_MPI_LIBRARY="/nowhere/x.so") == ""
    installed = re.search(r"TOCSIN_MPI_LIBRARY:-(.*)}", pathlib.Path(TASK_PROLOG).read_text(
        encoding="ascii")).group(1)
    assert installed.endswith("/tocsin/libtocsin-mpi.so"), installed


if __name__ == "__main__":
    tap.run([(test.__doc__, test) for test in (
        streams_and_status, what_cannot_run, ignored_signals, signals_reach_it, stops_too,
        dies_with_it, holds_nothing, status_under_hydra, closed_streams, terminal, variables,
        without_library, linked_statically, words_are_no_programs, task_prolog)])
