# SPDX-License-Identifier: BSD-3-Clause
"""libtocsin for Python: a process tells the Tocsin agent of its node how far it is.

    import tocsin
    job = tocsin.Job()
    world = job.register(comm_hash=17, size=4, rank=0, name="world")
    with world.operation(tocsin.ALL_REDUCE, count=1024):
        ...
    job.close()

Nothing needs to be built, and without the library or an agent nothing happens. libtocsin(3) has the
rules; `tocsin.torch` watches torch.distributed.
"""

from tocsin import binding
from tocsin.binding import (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BARRIER, BROADCAST, GATHER,
                            KINDS, ONE_SIDED, OTHER, RECEIVE, REDUCE, REDUCE_SCATTER, SCAN,
                            SCATTER, SEND, Comm, Job, LibraryMissing)

__all__ = ["binding", "ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "BARRIER", "BROADCAST", "GATHER",
           "KINDS", "ONE_SIDED", "OTHER", "RECEIVE", "REDUCE", "REDUCE_SCATTER", "SCAN", "SCATTER",
           "SEND", "Comm", "Job", "LibraryMissing"]
