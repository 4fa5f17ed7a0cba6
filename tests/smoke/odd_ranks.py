#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a healthy job that does something odd between two operations.

    odd_ranks.py PYTHON-LIBRARY SOCKET JOB SIZE RANK [ODDITY]

A rank with an oddity does it until its standard input ends, and then launches the second operation.
The ranks without one wait in that operation until their standard input ends. All end with status 0.
"""

import ctypes
import os
import select
import subprocess
import sys
import threading

ALL_REDUCE = 4
CLONE_VFORK, SIGCHLD, SYS_CLONE = 0x4000, 17, 56
BUSY = ("import os, select, time\n"
        "while not select.select([0], [], [], 0.1)[0]:\n"
        "    until = time.monotonic() + 0.05\n"
        "    while time.monotonic() < until: pass\n")


def input_has_ended(wait=0.0):
    return bool(select.select([0], [], [], wait)[0])


def write_to_a_slow_pipe():
    """The reader takes a few bytes a second; at the end it takes all."""
    os.write(1, bytes(4 << 20))


def wait_for_a_child():
    subprocess.run([sys.executable, "-c", BUSY], check=True)


def wait_for_a_grandchild():
    """Started by another thread, as a loader of data does."""
    thread = threading.Thread(target=lambda: subprocess.run(
        ["/bin/sh", "-c", '"$0" -c "$1"; true', sys.executable, BUSY], check=True))
    thread.start()
    thread.join()


def wait_for_input():
    os.read(0, 1)


def wait_for_a_lock():
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lambda: (os.read(0, 1), lock.release())).start()
    lock.acquire()


def sleep_uninterruptibly():
    """In the kernel's words: the parent of a vfork() is in state D until the child ends. The child
    has its own memory, so that it may run Python."""
    if ctypes.PyDLL(None).syscall(SYS_CLONE, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0:
        os.read(0, 1)
        os._exit(0)
    os.wait()


def compute_by_quota():
    """The test has put the process into a cgroup that may compute 2 ms in 400 ms."""
    while not input_has_ended():
        pass


def wake_now_and_then():
    while not input_has_ended(0.2):
        pass


def be_stopped():
    """No healthy one: the test stops or freezes the process."""
    input_has_ended(None)


def main():
    library, socket, job_id, size, rank = sys.argv[1:6]
    sys.path.insert(0, library)
    from tocsin import binding  # pylint: disable=import-error,import-outside-toplevel
    job = binding.Job(socket, job_id)
    comm = job.register(int(job_id.split(":")[1]), int(size), int(rank), flags=["blocks"])
    with comm.operation(ALL_REDUCE, 1024, 7):
        pass
    print("ready", file=sys.stderr, flush=True)
    if sys.argv[6:]:
        globals()[sys.argv[6]]()
    with comm.operation(ALL_REDUCE, 1024, 7):
        if not sys.argv[6:]:
            input_has_ended(None)
    comm.mark("finalized")
    job.close()


if __name__ == "__main__":
    main()
