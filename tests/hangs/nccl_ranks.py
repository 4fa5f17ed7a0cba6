# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the corpus at NCCL's host side: the calls of each rank, as recordings.

tocsin-replay plays them in real time, so that pauses between calls last as long as they say."""

import recording

INTERFACE = 5
STEPS = 20
STEP_NS = 10_000_000
SECOND_NS = 1_000_000_000


class Rank(recording.Recording):
    """One rank, with pauses between its calls."""

    def __init__(self, rank, digest, size=2):
        super().__init__(INTERFACE)
        self.rank, self.digest, self.size = rank, digest, size

    def join(self, comm=0):
        self.init(comm, self.size, self.rank, self.digest + comm)

    def pause(self, seconds):
        self.time += int(seconds * SECOND_NS)

    def run(self, func="AllReduce", count=1024, comm=0):
        """Launch an operation, which the device completes."""
        self.kernels(self.launch(comm, func, count), comm=comm)
        self.time += STEP_NS

    def steps(self, comm=0):
        for _ in range(STEPS):
            self.run(comm=comm)

    def hang(self, func="AllReduce", count=1024, comm=0):
        """Launch an operation that no device completes."""
        operation = self.launch(comm, func, count)
        for channel in range(2):
            self.kernel_begin(operation, channel, comm)


def idle(rank, seconds):
    """No rank calls NCCL for some time."""
    rank.join()
    rank.steps()
    rank.pause(seconds)
    rank.steps()


def late(rank, seconds):
    """Rank 1 launches late; the operation of rank 0 runs until then."""
    rank.join()
    rank.steps()
    if rank.rank == 1:
        rank.pause(seconds)
        rank.run()
    else:
        operation = rank.launch()
        begun = [rank.kernel_begin(operation, channel) for channel in range(2)]
        rank.pause(seconds)
        for kernel in begun:
            rank.kernel_end(kernel)
    rank.steps()


def late_init(rank, seconds):
    """Rank 1 initializes the second communicator late."""
    rank.join()
    rank.steps()
    rank.pause(seconds if rank.rank == 1 else 0)
    rank.join(1)
    rank.pause(0 if rank.rank == 1 else seconds)
    rank.steps(1)


def two_comms(rank, seconds):
    """Two communicators in turn, with a pause of a second."""
    rank.join(0)
    rank.join(1)
    for _ in range(int(seconds)):
        rank.run(comm=0)
        rank.run("AllGather", comm=1)
        rank.pause(1)


def missing(rank, _):
    """Rank 1 never launches."""
    rank.join()
    rank.steps()
    if rank.rank == 0:
        rank.hang()


def count(rank, _):
    """The ranks pass different counts."""
    rank.join()
    rank.steps()
    rank.hang(count=512 if rank.rank == 1 else 1024)


def other(rank, _):
    """Rank 1 calls another operation."""
    rank.join()
    rank.steps()
    rank.hang("AllGather" if rank.rank == 1 else "AllReduce")


def order(rank, _):
    """The ranks use two communicators in different order."""
    rank.join(0)
    rank.join(1)
    rank.steps(0)
    rank.steps(1)
    rank.hang(comm=rank.rank)
    rank.launch(1 - rank.rank)


HEALTHY = {"idle": idle, "late": late, "late-init": late_init, "two-comms": two_comms}
PLAYS = {**HEALTHY, "missing": missing, "count": count, "other": other, "order": order}


def write(name, number, digest, seconds, path):
    """Write the recording of one rank of the program."""
    rank = Rank(number, digest)
    PLAYS[name](rank, seconds)
    for comm in rank.comms if name in HEALTHY else ():
        rank.finalize(comm)
    return rank.write(path)
