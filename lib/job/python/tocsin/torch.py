# SPDX-License-Identifier: BSD-3-Clause
"""Watches torch.distributed: which collectives this process launches, starts and completes.

    import tocsin.torch
    tocsin.torch.watch()          # before the program calls torch.distributed

or, without a change of the program:

    python3 -m tocsin.torch PROGRAM [ARGUMENT]...

The module replaces functions of torch.distributed by functions that count and call the originals,
with the same arguments, results and exceptions. Calls from C++ are not counted, such as those of
DistributedDataParallel's reducer without a communication hook in Python. Groups of NCCL are left to
the profiler plugin, which sees the work of the GPU. docs/jobs-torch.md has the details.
"""

import datetime
import functools
import hashlib
import inspect
import logging
import os
import sys
import threading
import types

import tocsin

LOG = logging.getLogger("tocsin")
POLL_S = 0.1       # interval of checks of operations that no caller waits for
LOOKED_AT = 8      # operations checked in each call
SEED_KEY = "tocsin/seed"
SEED_WAIT_S = 10   # longest wait for rank 0 at the start of a job
PLUGIN_BACKENDS = ("nccl",)
# NCCL's numbers.
DATATYPES = {"int8": 0, "uint8": 1, "int32": 2, "int64": 4, "float16": 6, "float32": 7,
             "float64": 8, "bfloat16": 9}
# Name: kind, the argument with the data, the argument with the root or the peer. A count that may
# differ between ranks is not reported.
CALLS = {
    "all_reduce": (tocsin.ALL_REDUCE, "tensor", None),
    "all_reduce_coalesced": (tocsin.ALL_REDUCE, "tensors", None),
    "broadcast": (tocsin.BROADCAST, "tensor", "src"),
    "reduce": (tocsin.REDUCE, "tensor", "dst"),
    "all_gather": (tocsin.ALL_GATHER, "tensor", None),
    "all_gather_coalesced": (tocsin.ALL_GATHER, "input_tensor_list", None),
    "all_gather_into_tensor": (tocsin.ALL_GATHER, "input_tensor", None),
    "_all_gather_base": (tocsin.ALL_GATHER, "input_tensor", None),
    "gather": (tocsin.GATHER, "tensor", "dst"),
    "scatter": (tocsin.SCATTER, "tensor", "src"),
    "reduce_scatter": (tocsin.REDUCE_SCATTER, "output", None),
    "reduce_scatter_tensor": (tocsin.REDUCE_SCATTER, "output", None),
    "_reduce_scatter_base": (tocsin.REDUCE_SCATTER, "output", None),
    "all_to_all": (tocsin.ALL_TO_ALL, None, None),
    "all_to_all_single": (tocsin.ALL_TO_ALL, None, None),
    "barrier": (tocsin.BARRIER, None, None),
    "monitored_barrier": (tocsin.BARRIER, None, None),
    "send": (tocsin.SEND, "tensor", "dst"),
    "recv": (tocsin.RECEIVE, "tensor", "src"),
    "isend": (tocsin.SEND, "tensor", "dst"),
    "irecv": (tocsin.RECEIVE, "tensor", "src"),
}


class _Group:
    """A process group of torch, and its communicator."""

    def __init__(self, comm, ranks, tells_end, marks_posted):
        self.comm = comm
        self.ranks = ranks  # ranks in the world, by their rank in the group
        self.tells_end = tells_end
        self.marks_posted = marks_posted
        self.lock = threading.Lock()
        self.posted = 0  # open operations that do not hold the main thread

    def post(self, number):
        """Add to the number of open operations that do not hold the main thread."""
        if not self.marks_posted:
            return
        with self.lock:
            self.posted += number
            if self.posted == max(number, 0):  # the first, or none is left
                self.comm.mark("posted", int(self.posted > 0))


class _Pending:
    """Operations that returned before they ended. The caller has torch's handle; a thread checks
    the handles, and ends when none is left."""

    def __init__(self):
        self.lock = threading.Lock()
        self.works = []
        self.running = False
        self.more = threading.Event()

    def add(self, work, group, kind):
        """Add an operation to be checked."""
        with self.lock:
            self.works.append((work, group, kind))
            start, self.running = not self.running, True
        if start:
            threading.Thread(target=self._run, name="tocsin-torch", daemon=True).start()

    def look(self, most=None):
        """Count the ended ones of the oldest `most`, or of all. Return whether any is left."""
        with self.lock:
            left = []
            for work, group, kind in self.works[:most]:
                if _has_ended(work):
                    group.comm.completed(kind)
                    group.post(-1)
                else:
                    left.append((work, group, kind))
            self.works[:most] = left
            self.running = self.running and bool(self.works)
            return bool(self.works)

    def _run(self):
        while self.look():
            self.more.wait(POLL_S)


def _has_ended(work):
    try:
        return work.is_completed()
    except Exception:  # pylint: disable=broad-except
        return True  # an operation that cannot be asked no longer runs


class _Watch:
    """The watch of torch.distributed in this process."""

    def __init__(self, dist):
        self.dist = dist
        self.replaced = []  # module, name, the replaced function
        self.said = set()
        self.clear()

    def clear(self):
        """Reset to the state before the first process group."""
        self.job = None
        self.inside = threading.local()  # a call within another call is part of the outer one
        self.pending = _Pending()
        self.groups = {}
        self.seed, self.inits = None, 0

    def say(self, what, *words):
        """Log each text once."""
        if what not in self.said:
            self.said.add(what)
            LOG.warning(what, *words)

    def safely(self, function, *arguments):
        """Call the function; an exception must not reach the program."""
        try:
            function(*arguments)
        except Exception as wrong:  # pylint: disable=broad-except
            self.say("counting of torch.distributed failed, counts may be incomplete: %r", wrong)

    # ------------------------------------------------------------------------------- groups

    def world(self):
        """Return torch's default group, or None."""
        return self.dist.distributed_c10d._get_default_group() \
            if self.dist.is_initialized() else None

    def begin(self):
        """Begin once the default group exists."""
        world = self.world()
        if world is None or world in self.groups:
            return
        self.inits += 1
        self.job = self.job or tocsin.Job()
        self.seed = _seed_of(self)
        self.follow(world)

    def follow(self, group):
        """Register a group. None in self.groups: the group is not followed."""
        if self.job is None or group is None or group in self.groups:
            return
        self.groups[group] = None
        world = self.world()
        size, rank = self.dist.get_world_size(group), self.dist.get_rank(group)
        if rank < 0 or _is_left_to_plugin(self.dist, group):
            return
        ranks = list(range(size)) if group is world else self.dist.get_process_group_ranks(group)
        name = "world" if group is world else _name_of(self.dist, group)
        text = f"{self.seed} {name} {' '.join(map(str, ranks))}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        tells_end = _backend_of(self.dist, group) not in PLUGIN_BACKENDS
        words = {"comm_hash": int.from_bytes(digest, "little") or 1, "size": size, "rank": rank,
                 "name": name}
        comm = self.job.register(
            flags=("times", "blocks") if tells_end else ("no_started", "no_completed"), **words)
        marks_posted = tells_end
        if tells_end:
            try:
                comm.mark("posted", 0)
            except OSError:  # an older libtocsin has no such mark
                comm.close()
                comm = self.job.register(flags=("times",), **words)
                marks_posted = False
        self.groups[group] = _Group(comm, ranks, tells_end, marks_posted)

    def forget(self, group):
        """Forget a group; with the default group, all groups."""
        for each in list(self.groups) if group in (None, self.world()) else [group]:
            known = self.groups.pop(each, None)
            if known is not None:
                self.pending.look()
                known.comm.mark("finalized")
                known.comm.mark("destroyed")
                known.comm.close()

    # ------------------------------------------------------------------------------ counting

    def group_of(self, given):
        """Return the group of a call, or None if it is not followed."""
        group = given.get("group")
        if group is None:
            group = self.world()
        if group not in self.groups and self.job is not None:
            self.safely(self.follow, group)
        return self.groups.get(group)

    def call(self, function, row, parameters, arguments, words):
        """Count one operation and call the function of torch."""
        kind, what, who = row
        known = None
        if self.job is not None and not getattr(self.inside, "is_inside", False):
            given = parameters.given(arguments, words)
            known = self.group_of(given) if given is not None else None
        if known is None:
            return function(*arguments, **words)
        comm, work = known.comm, None
        count, datatype = _size_of(given.get(what)) if what else (0, 255)
        posts = known.tells_end and (
            given.get("async_op") or
            threading.current_thread() is not threading.main_thread())
        if posts:
            known.post(1)
        comm.launched(kind, count, datatype, _root_of(known, given, who))
        if known.tells_end:
            comm.started(kind)
        self.inside.is_inside = True
        try:
            work = function(*arguments, **words)
            return work
        except BaseException:
            comm.mark("async_error")
            raise
        finally:
            self.inside.is_inside = False
            if known.tells_end:
                self.end(work, known, kind, posts)

    def end(self, work, group, kind, posts):
        """Count the end of an operation, or keep its handle, after the call returned."""
        if hasattr(work, "is_completed"):
            if not posts:
                group.post(1)  # isend() and irecv() return early without async_op
            self.pending.add(work, group, kind)
        else:
            group.comm.completed(kind)
            if posts:
                group.post(-1)
        if self.pending.works:
            self.pending.look(LOOKED_AT)  # the thread checks the rest


class _Parameters:
    """Parameters of a function. Ten times faster than inspect.Signature.bind()."""

    def __init__(self, function):
        each = inspect.signature(function).parameters.values()
        self.names = [one.name for one in each if one.kind is one.POSITIONAL_OR_KEYWORD]
        self.all = {one.name for one in each}
        self.needed = [one.name for one in each
                       if one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty]

    def given(self, arguments, words):
        """Return the arguments by name, or None if the function will reject them."""
        if len(arguments) > len(self.names):
            return None
        given = dict(zip(self.names, arguments))
        for name in words:
            if name in given or name not in self.all:
                return None
        given.update(words)
        return None if any(name not in given for name in self.needed) else given


def _size_of(tensor):
    if isinstance(tensor, (list, tuple)):
        sizes = [_size_of(each) for each in tensor]
        return sum(size for size, _ in sizes), sizes[0][1] if sizes else 255
    try:
        return tensor.numel(), DATATYPES.get(str(tensor.dtype).removeprefix("torch."), 255)
    except AttributeError:
        return 0, 255


def _root_of(known, given, who):
    if who is None:
        return -1
    rank = given.get(who)
    if rank in known.ranks:
        return known.ranks.index(rank)
    rank = given.get("group_" + who)
    return rank if rank is not None else -1


def _name_of(dist, group):
    """Return torch's name of the group, which is the same on all ranks."""
    module = dist.distributed_c10d
    names = getattr(getattr(module, "_world", None), "pg_names", None) or \
        getattr(module, "_pg_names", {})
    return f"group {names.get(group, '')}"


def _backend_of(dist, group):
    try:
        return str(dist.get_backend(group)).lower()
    except (RuntimeError, ValueError):
        return ""


def _is_left_to_plugin(dist, group):
    return _backend_of(dist, group) in PLUGIN_BACKENDS and \
        "tocsin" in os.environ.get("NCCL_PROFILER_PLUGIN", "")


def _seed_of(watch):
    """Return a random number that only the ranks of this job have. Rank 0 draws it, and the store
    of torch distributes it. If it does not arrive, use the address of the job instead."""
    try:
        store = watch.dist.distributed_c10d._get_default_store()
        key = f"{SEED_KEY}/{watch.inits}"
        if watch.dist.get_rank() == 0:
            store.set(key, os.urandom(16).hex())
        store.wait([key], datetime.timedelta(seconds=SEED_WAIT_S))
        return store.get(key).decode()
    except Exception as wrong:  # pylint: disable=broad-except
        watch.say("rank 0 has drawn no number for the job (%s): its address is used instead", wrong)
        return " ".join(os.environ.get(name, "") for name in
                        ("MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"))


def _replace(watch, name, make):
    """Replace a function in each module of torch.distributed that has it by this name."""
    modules = [watch.dist, watch.dist.distributed_c10d]
    first = getattr(modules[1], name, None) or getattr(modules[0], name, None)
    if first is None:
        return
    ours = make(first)
    for module in modules:
        if getattr(module, name, None) is first:
            watch.replaced.append((module, name, first))
            setattr(module, name, ours)


class _Call:
    """A replaced function of torch. Equal to the original, because torch compares some."""

    def __init__(self, function, row):
        self.function, self.row = function, row
        self.parameters = _Parameters(function)
        functools.update_wrapper(self, function)

    def __call__(self, *arguments, **words):
        if _watch is None:
            return self.function(*arguments, **words)
        return _watch.call(self.function, self.row, self.parameters, arguments, words)

    def __eq__(self, other):
        return other is self or other is self.function

    def __hash__(self):
        return hash(self.function)


def _counted(row):
    return lambda function: _Call(function, row)


def _with_groups(watch):
    """Wrap the functions that create and destroy groups."""
    def init_process_group(function):
        @functools.wraps(function)
        def call(*arguments, **words):
            result = function(*arguments, **words)
            if _watch is not None:
                _watch.safely(_watch.begin)
            return result
        return call

    def new_group(function):
        @functools.wraps(function)
        def call(*arguments, **words):
            group = function(*arguments, **words)
            if _watch is not None:
                _watch.safely(_watch.follow, group)
            return group
        return call

    def destroy_process_group(function):
        @functools.wraps(function)
        def call(group=None, **words):
            if _watch is not None:
                _watch.safely(_watch.forget, group)
            return function(group, **words)
        return call

    for wrap in (init_process_group, new_group, destroy_process_group):
        _replace(watch, wrap.__name__, wrap)


_watch = None


def watch(dist=None):
    """Begin; a second call has no effect. Return False, and log the reason once, if
    torch.distributed or libtocsin is missing. The program then runs unchanged."""
    global _watch
    if _watch is not None:
        return True
    if dist is None:
        try:
            import torch.distributed as dist
        except ImportError as wrong:
            LOG.warning("nothing is watched: %s", wrong)
            return False
    if not dist.is_available():
        LOG.warning("nothing is watched: this torch has no torch.distributed")
        return False
    try:
        tocsin.binding.load()
    except tocsin.LibraryMissing as wrong:
        LOG.warning("torch.distributed is not watched: %s", wrong.strerror)
        return False
    _watch = _Watch(dist)
    for name, row in CALLS.items():
        _replace(_watch, name, _counted(row))
    _with_groups(_watch)
    _watch.safely(_watch.begin)
    return True


def unwatch():
    """End: restore the replaced functions, and notify the agent that this process leaves the
    job on purpose."""
    global _watch
    ended, _watch = _watch, None
    if ended is None:
        return
    for module, name, first in ended.replaced:
        setattr(module, name, first)
    if ended.job is not None:
        ended.job.close()


def _forget_in_child():
    """Reset in a child of fork(), such as a worker of a DataLoader: it is not part of the job. A
    child that creates a process group of its own begins anew."""
    if _watch is not None:
        _watch.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def _run(words):
    """Run `python3 PROGRAM ARGUMENT...` with torch.distributed watched."""
    if not words or words[0] in ("-h", "--help"):
        print(__doc__.strip() if words else "usage: python3 -m tocsin.torch PROGRAM [ARGUMENT]...",
              file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    try:
        with open(words[0], "rb") as file:
            code = compile(file.read(), words[0], "exec")
    except OSError as wrong:
        print(f"tocsin.torch: {words[0]}: {wrong.strerror}", file=sys.stderr)
        return 2
    import tocsin.torch  # under its own name: this one is __main__
    tocsin.torch.watch()
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=words[0], __builtins__=__builtins__, __cached__=None)
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    sys.modules["__main__"] = main  # child processes import it by this name
    exec(code, main.__dict__)  # pylint: disable=exec-used
    return 0


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1:]))
