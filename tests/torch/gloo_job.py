#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a job of torch with gloo, on processors, that goes wrong as it is told.

    gloo_job.py MODE        with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment
"""

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.utils.data

WATCHED = os.environ.get("JOB_WATCHED", "1") == "1"
if WATCHED:
    import tocsin.torch
    tocsin.torch.watch()

STEPS = 3


def begin():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=900))
    tensor = torch.ones(1000)
    for _ in range(STEPS):
        dist.all_reduce(tensor)
    return dist.get_rank(), tensor


def mark():
    """Create the file that says from when on the job is odd or hangs, if one is named."""
    if "CORPUS_MARK" in os.environ:
        with open(os.environ["CORPUS_MARK"], "a", encoding="ascii"):
            pass


def missing():
    """Rank 1 sleeps elsewhere."""
    rank, tensor = begin()
    mark()
    if rank == 1:
        time.sleep(900)
    dist.all_reduce(tensor)


def elsewhere():
    """Rank 1 meets itself over and over: its totals rise, and not those of the world."""
    rank, tensor = begin()
    own = [dist.new_group([each]) for each in range(dist.get_world_size())]
    while rank == 1:
        dist.barrier(own[1])
        time.sleep(0.01)
    dist.all_reduce(tensor)


def order():
    """Rank 0 goes to one group first, the others to the other."""
    rank, tensor = begin()
    mark()
    groups = [dist.new_group([0, 1, 2]), dist.new_group([0, 1, 2])]
    for group in groups if rank == 0 else groups[::-1]:
        dist.all_reduce(tensor, group=group)


def root():
    """Each waits for another one to send."""
    rank, tensor = begin()
    mark()
    dist.broadcast(tensor, src=(rank + 1) % 3)


def killed():
    """Rank 1 ends by a signal."""
    rank, tensor = begin()
    mark()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(tensor)


def late():
    """Rank 1 sleeps for some time and comes."""
    rank, tensor = begin()
    mark()
    if rank == 1:
        time.sleep(float(os.environ.get("CORPUS_SECONDS", 30)))
    dist.all_reduce(tensor)


class SlowData(torch.utils.data.Dataset):
    """Items that take long to read."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(float(os.environ.get("CORPUS_SECONDS", 30)) / 2)
        return index


def loader():
    """Rank 1 waits for a worker of its DataLoader."""
    rank, tensor = begin()
    mark()
    if rank == 1:
        list(torch.utils.data.DataLoader(SlowData(), num_workers=1))
    dist.all_reduce(tensor)


def whole():
    """Nothing goes wrong: handles that are dropped, objects, points to points, groups made again,
    exceptions, workers of a DataLoader, and all is printed."""
    for again in range(2):
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + again)
        rank, tensor = begin()
        while rank == 0 and not os.path.exists(os.environ["JOB_GO"]):
            time.sleep(0.05)  # the others wait in what follows
        for _ in range(20):
            dist.all_reduce(torch.ones(1000), async_op=True)
        dist.barrier()
        objects = [None] * 3
        dist.all_gather_object(objects, {"rank": rank})
        pair = dist.new_group([0, 1])
        if rank < 2:
            work = dist.isend(tensor, 1) if rank == 0 else dist.irecv(tensor, 0)
            work.wait()
            dist.all_reduce(tensor, group=pair)
        try:
            dist.all_reduce(torch.ones(1), nonsense=1)
        except TypeError as wrong:
            print(rank, wrong)
        try:
            dist.all_reduce("no tensor")
        except Exception as wrong:  # pylint: disable=broad-except
            print(rank, type(wrong).__name__, wrong)
        loaded = torch.utils.data.DataLoader(list(range(8)), num_workers=2)
        print(rank, sum(int(each) for each in loaded), objects, float(tensor.sum()), flush=True)
        dist.destroy_process_group(pair)
        dist.destroy_process_group()
    print(rank, "ends", flush=True)


def spawned(rank):
    os.environ["RANK"] = str(rank)
    _, tensor = begin()
    if rank == 1:
        time.sleep(900)
    dist.all_reduce(tensor)


def spawn():
    """The ranks are made by torch itself, each with an interpreter of its own."""
    torch.multiprocessing.spawn(spawned, nprocs=3)


def hooked():
    """DistributedDataParallel, whose reducer is C++; its hook is Python."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    rank, _ = begin()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    for step in range(4):
        if rank == 1 and step == 3:
            time.sleep(900)
        model(torch.ones(2, 8)).sum().backward()


if __name__ == "__main__":
    torch.set_num_threads(1)
    {mode.__name__: mode for mode in (missing, elsewhere, order, root, killed, late, loader,
                                      whole, spawn, hooked)}[sys.argv[1]]()
