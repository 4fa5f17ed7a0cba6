# SPDX-License-Identifier: BSD-3-Clause
"""Makes the ranks that a hang waits for write PyTorch's flight recorder.

    python3 -m tocsin.dump JOB [--socket PATH] [--dry-run]

JOB is as for `tocsin comms --job`. The program asks the agent of this node which ranks the
communicators of the job wait for. It writes a byte into the pipe of each of these ranks that runs
on this node and has TORCH_NCCL_DEBUG_INFO_PIPE_FILE in its environment. PyTorch (2.4 and later,
NCCL) then writes the last operations of the rank. Run the program on each node of the job, as root
or as the user of the job. Exit status: 0: at least one rank was notified; 1: none; 2: a mistake in
the command line; 3: no agent answered.
"""

import argparse
import errno
import json
import os
import stat
import subprocess
import sys

PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"


class CannotTell(Exception):
    """The reason why a rank was not notified."""


def late_ranks(tocsin, job, where):
    """Return the late ranks of a job by node and pid, each process once."""
    done = subprocess.run([*tocsin, "comms", "--json", "--job", job, *where],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(errno.EIO, done.stderr.strip() or "tocsin failed")
    seen = {}
    for comm in json.loads(done.stdout).get("communicators", []):
        finding = comm.get("finding", {})
        if finding.get("state") not in ("waiting", "stuck"):
            continue
        for late in finding.get("late", []):
            seen.setdefault((late["node"], late["pid"]), late["rank"])
    return seen


def own_node(tocsin, where):
    """Return the name of the node of the agent that answers."""
    done = subprocess.run([*tocsin, "version", "--json", *where], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise OSError(errno.EIO, done.stderr.strip() or "tocsin failed")
    return json.loads(done.stdout)["agent"]["node"]


def environment_of(pid):
    """Return the environment of a process, and its user."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            rows = file.read().split(b"\0")
            return dict(row.split(b"=", 1) for row in rows if b"=" in row), os.fstat(
                file.fileno()).st_uid
    except OSError as wrong:
        raise CannotTell(wrong.strerror) from wrong


def pipe_of(pid):
    """Return the path of the pipe, which PyTorch ends with the rank, and its expected owner."""
    environment, user = environment_of(pid)
    stem, rank = environment.get(PIPE.encode()), environment.get(b"RANK", b"")
    if not stem:
        raise CannotTell(f"{PIPE} is not set in its environment")
    if not rank.isdigit():
        raise CannotTell("RANK is not set in its environment")
    return stem + rank + b".pipe", user


def tell(path, user):
    """Write a byte. The job names the path, so open only a pipe that belongs to the job's user."""
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as wrong:
        raise CannotTell(wrong.strerror) from wrong
    try:
        status = os.fstat(place)
        if not stat.S_ISFIFO(status.st_mode):
            raise CannotTell("it is not a pipe")
        if status.st_uid != user:
            raise CannotTell(f"it belongs to user {status.st_uid}, but the process to user {user}")
        pipe = os.open(f"/proc/self/fd/{place}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(pipe, b"1")
        finally:
            os.close(pipe)
    except OSError as wrong:
        raise CannotTell("no process reads it" if wrong.errno in (errno.ENXIO, errno.EAGAIN) else
                         wrong.strerror) from wrong
    finally:
        os.close(place)


def tell_all(late, node, dry_run):
    """Notify each rank and print a line for it. Return the number of notified ranks."""
    told = 0
    for (where, pid), rank in sorted(late.items()):
        who = f"rank {rank} (pid {pid} on {where})"
        if where != node:
            print(f"{who}: on another node: run this program there as well")
            continue
        path = b""
        try:
            path, user = pipe_of(pid)
            if not dry_run:
                tell(path, user)
        except CannotTell as why:
            print(f"{who}: {os.fsdecode(path)}{': ' if path else ''}{why}")
            continue
        print(f"{who}: {'would be notified' if dry_run else 'notified'} by {os.fsdecode(path)}")
        told += 1
    return told


def main(words):
    """Run the program. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tocsin.dump", usage=__doc__.split("\n\n")[1])
    parser.add_argument("job")
    parser.add_argument("--socket")
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args(words)
    where = ["--socket", given.socket] if given.socket else []
    tocsin = [os.environ.get("TOCSIN_COMMAND", "tocsin")]
    try:
        late = late_ranks(tocsin, given.job, where)
        node = own_node(tocsin, where) if late else ""
    except (OSError, ValueError, KeyError) as wrong:
        print(f"tocsin.dump: {wrong}", file=sys.stderr)
        return 3
    if not late:
        print(f"no communicator of job {given.job} waits for a rank")
    return 0 if tell_all(late, node, given.dry_run) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
