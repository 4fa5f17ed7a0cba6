# SPDX-License-Identifier: BSD-3-Clause
"""Has the ranks that a hang waits for write PyTorch's flight recorder.

    python3 -m tocsin.dump JOB [--socket PATH] [--dry-run]

JOB is as for `tocsin comms --job`. The agent of this node is asked whom its communicators wait for;
each of these ranks that runs here, and whose environment names TORCH_NCCL_DEBUG_INFO_PIPE_FILE,
gets a byte into its pipe, upon which PyTorch (2.4 and later, NCCL) writes what the rank did last.
To be run on each node of the job, by root or the user of the job. Exit status: 0 at least one was
told, 1 none was, 2 a mistake in the command line, 3 no agent answered.
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
    """Why a rank is not told."""


def late_ranks(tocsin, job, where):
    """Whom the communicators of a job wait for: pid and node, each process once."""
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
    """What the agent that is asked calls itself."""
    done = subprocess.run([*tocsin, "version", "--json", *where], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise OSError(errno.EIO, done.stderr.strip() or "tocsin failed")
    return json.loads(done.stdout)["agent"]["node"]


def environment_of(pid):
    """Of a process, and its user."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            rows = file.read().split(b"\0")
            return dict(row.split(b"=", 1) for row in rows if b"=" in row), os.fstat(
                file.fileno()).st_uid
    except OSError as wrong:
        raise CannotTell(wrong.strerror) from wrong


def pipe_of(pid):
    """Its path, and the user whose it must be. PyTorch adds the rank of the world."""
    environment, user = environment_of(pid)
    stem, rank = environment.get(PIPE.encode()), environment.get(b"RANK", b"")
    if not stem:
        raise CannotTell(f"{PIPE} is not set there")
    if not rank.isdigit():
        raise CannotTell("RANK is not set there")
    return stem + rank + b".pipe", user


def tell(path, user):
    """What the path names is the job's word: it is opened only if it is a pipe of its own user."""
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as wrong:
        raise CannotTell(wrong.strerror) from wrong
    try:
        status = os.fstat(place)
        if not stat.S_ISFIFO(status.st_mode):
            raise CannotTell("it is no pipe")
        if status.st_uid != user:
            raise CannotTell(f"it is of user {status.st_uid}, and the process of user {user}")
        pipe = os.open(f"/proc/self/fd/{place}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(pipe, b"1")
        finally:
            os.close(pipe)
    except OSError as wrong:
        raise CannotTell("nobody reads it" if wrong.errno in (errno.ENXIO, errno.EAGAIN) else
                         wrong.strerror) from wrong
    finally:
        os.close(place)


def tell_all(late, node, dry_run):
    """How many were told; a line for each."""
    told = 0
    for (where, pid), rank in sorted(late.items()):
        who = f"rank {rank} (pid {pid} on {where})"
        if where != node:
            print(f"{who}: on another node, where this is to be run as well")
            continue
        path = b""
        try:
            path, user = pipe_of(pid)
            if not dry_run:
                tell(path, user)
        except CannotTell as why:
            print(f"{who}: {os.fsdecode(path)}{': ' if path else ''}{why}")
            continue
        print(f"{who}: {'would be told' if dry_run else 'is told'} by {os.fsdecode(path)}")
        told += 1
    return told


def main(words):
    """The program."""
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
        print(f"no communicator of {given.job} waits for anybody")
    return 0 if tell_all(late, node, given.dry_run) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
