# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs, compiled for Open MPI and MPICH, and started by the launcher of each."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
PATIENCE_S = 120
# As root, only on loopback, with more ranks than processors, which yield while they wait.
OPENMPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_oob_tcp_if_include": "lo",
}
# Runs a command beside a watcher. The watcher reads the standard input, and at its end kills the
# session: the pipe has lost its writer, which is the test. The command reads nothing.
GUARD = ("exec 3<&0; { read -r _ <&3; pkill -KILL -s $$; } >/dev/null 2>&1 & "
         'exec "$@" </dev/null 3<&-')


class Mpi:
    """One MPI library, with its compilers and its launcher."""

    def __init__(self, name, launcher):
        self.name, self.launcher = name, launcher

    def is_here(self):
        return all(shutil.which(word) for word in
                   (f"mpicc.{self.name}", f"mpif90.{self.name}", self.launcher[0]))

    def compile(self, directory, source, *options, target=None):
        """Compile a program from a source of this directory."""
        compiler = "mpif90" if source.endswith("90") else "mpicc"
        program = directory / f"{target or pathlib.Path(source).stem}.{self.name}"
        # Fortran: the calls of mpif.h accept any type.
        words = [f"{compiler}.{self.name}", "-g", "-w", "-o", program, HERE / source, *options]
        if compiler == "mpif90":
            words[1:1] = ["-cpp", "-fallow-argument-mismatch"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return program

    def words(self, ranks, *command):
        return [*self.launcher, "-n", str(ranks), *map(str, command)]


OPEN_MPI = Mpi("openmpi", ["mpirun.openmpi"])
MPICH = Mpi("mpich", ["mpiexec.hydra", "-iface", "lo", "-hosts", "127.0.0.1"])
# The MPI libraries under test, as named on the command line.
CHOSEN = [mpi for mpi in (OPEN_MPI, MPICH) if mpi.name in sys.argv[4:]]


def environment(**more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("TOCSIN_", "OMPI_", "PMI", "SLURM_", "LD_PRELOAD"))}
    return {**clean, **OPENMPI, **{name: str(value) for name, value in more.items()}}


def guarded(words, reader, **more):
    """Return the arguments of a Popen whose session ends with the writer of this pipe."""
    return {"args": ["/bin/sh", "-c", GUARD, "sh", *words], "stdin": reader, "text": True,
            "env": environment(**more), "start_new_session": True}


def make_pipe():
    reader, writer = os.pipe()
    return open(reader, "rb"), open(writer, "wb")


def run(words, **more):
    """Run a command to its end."""
    reader, writer = make_pipe()
    with reader, writer:
        return subprocess.run(**guarded(words, reader, **more), capture_output=True, check=False,
                              timeout=PATIENCE_S)


class Job:
    """A job that runs beside the test, with its own process names. It ends with the test."""

    def __init__(self, words, **more):
        reader, self.guard = make_pipe()
        with reader:
            self.process = subprocess.Popen(
                **guarded(["nice", "-n", "19", *words], reader, **more), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT)

    def pids_of(self, program):
        """Return the processes of the ranks below the launcher."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                is_program = os.readlink(entry / "exe") == str(program)
                if is_program and self.is_above(int(entry.name)):
                    found.append(int(entry.name))
            except OSError:
                continue
        return sorted(found)

    def is_above(self, pid):
        while pid > 1:
            if pid == self.process.pid:
                return True
            stat = pathlib.Path(f"/proc/{pid}/stat").read_bytes()
            pid = int(stat.rpartition(b")")[2].split()[1])
        return False

    def end(self):
        """End the launcher, and then the ranks that it may leave behind."""
        self.process.terminate()
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            pass
        self.guard.close()
        self.process.communicate()
