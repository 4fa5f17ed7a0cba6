# SPDX-License-Identifier: BSD-3-Clause
"""libtocsin for Python: a process reports its progress to the Tocsin agent of its node.

    import tocsin
    job = tocsin.Job()
    world = job.register(comm_hash=17, size=4, rank=0, name="world")
    with world.operation(tocsin.ALL_REDUCE, count=1024):
        ...
    job.close()

The module needs no build. Without an agent the calls have no effect. libtocsin(3) has the rules;
`tocsin.torch` watches torch.distributed.
"""

from tocsin import binding
from tocsin.binding import (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BARRIER, BROADCAST, GATHER,
                            KINDS, ONE_SIDED, OTHER, RECEIVE, REDUCE, REDUCE_SCATTER, SCAN,
                            SCATTER, SEND, Comm, Job, LibraryMissing)

__all__ = ["binding", "ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "BARRIER", "BROADCAST", "GATHER",
           "KINDS", "ONE_SIDED", "OTHER", "RECEIVE", "REDUCE", "REDUCE_SCATTER", "SCAN", "SCATTER",
           "SEND", "Comm", "Job", "LibraryMissing"]
