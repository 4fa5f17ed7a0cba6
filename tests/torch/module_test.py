#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The module tocsin for Python, on the real library: a stand-in plays torch.distributed.

    module_test.py LIBRARY MODULES
"""

import gc
import inspect
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types

import tap

LIBRARY, MODULES = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, MODULES)
os.environ.update(TOCSIN_LIBRARY=LIBRARY, TOCSIN_JOB_SOCKET="/nowhere/job.sock")
import tocsin  # noqa: E402
import tocsin.torch as watcher  # noqa: E402

PATIENCE_S = 60
said = []


class Keep(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())


logging.getLogger("tocsin").addHandler(Keep())


class Tensor:
    def __init__(self, count, dtype="torch.float32"):
        self.count, self.dtype = count, dtype

    def numel(self):
        return self.count


class Work:
    """A handle, as torch gives one."""
    done = False

    def is_completed(self):
        return self.done


class Store:
    def __init__(self):
        self.values = {}

    def set(self, key, value):
        self.values[key] = value.encode()

    def wait(self, keys, _):
        if any(key not in self.values for key in keys):
            raise RuntimeError("Socket Timeout")

    def get(self, key):
        return self.values[key]


def fake(rank=0, size=4, backend="gloo", store=None):
    """A torch.distributed whose operations record their arguments and return at once."""
    dist, inner = types.ModuleType("dist"), types.ModuleType("distributed_c10d")
    dist.distributed_c10d, dist.calls, dist.world = inner, [], None
    dist.members = {}
    inner._pg_names = {}
    store = store or Store()

    def all_reduce(tensor, op=None, group=None, async_op=False):
        dist.calls.append(("all_reduce", tensor, op, group, async_op))
        if op == "raise":
            raise RuntimeError("Timed out")
        return dist.works.pop() if async_op else None

    def all_gather(tensor_list, tensor, group=None, async_op=False):
        dist.calls.append(("all_gather", tensor_list, tensor, group, async_op))

    def all_gather_object(object_list, obj, group=None):
        inner.all_gather([object_list], Tensor(8), group)
        inner.all_gather([object_list], Tensor(64), group)

    def reduce_scatter_tensor(output, input, op=None, group=None, async_op=False):
        return inner._reduce_scatter_base(output, input, op, group, async_op)

    def _reduce_scatter_base(output, input, op=None, group=None, async_op=False):
        dist.calls.append(("reduce_scatter", output, input))

    def broadcast(tensor, src, group=None, async_op=False):
        dist.calls.append(("broadcast", tensor, src))

    def barrier(group=None, async_op=False, device_ids=None):
        dist.calls.append(("barrier",))
        if getattr(dist, "held", None):
            dist.held.wait()

    def isend(tensor, dst, group=None, tag=0):
        return dist.works.pop()

    def batch_isend_irecv(ops):
        assert all(op in [inner.isend] for op, *_ in ops), "Invalid op"
        return [op(*rest) for op, *rest in ops]

    def init_process_group(backend=None):
        dist.world = object()
        dist.members[dist.world] = list(range(size))

    def new_group(ranks=None):
        group = object()
        ranks = ranks or list(range(size))
        dist.members[group] = sorted(ranks)
        inner._pg_names[group] = str(len(dist.members))
        return group if rank in ranks else inner.GroupMember

    def destroy_process_group(group=None):
        if group is None or group is dist.world:
            dist.world = None

    for function in (all_reduce, all_gather, all_gather_object, reduce_scatter_tensor,
                     _reduce_scatter_base, broadcast, barrier, isend, batch_isend_irecv,
                     init_process_group, new_group, destroy_process_group):
        setattr(dist, function.__name__, function)
        setattr(inner, function.__name__, function)
    inner.GroupMember = -100
    dist.is_available = lambda: True
    dist.is_initialized = lambda: dist.world is not None
    dist.get_backend = lambda group=None: backend
    dist.get_world_size = lambda group=None: size if group is None else \
        len(dist.members.get(group, [0]))
    dist.get_rank = lambda group=None: rank if group is None else \
        (dist.members[group].index(rank) if rank in dist.members.get(group, []) else -1)
    dist.get_process_group_ranks = lambda group: dist.members[group]
    inner._get_default_group = lambda: dist.world
    inner._get_default_store = lambda: store
    dist.works = []
    return dist


def watched(**how):
    dist = fake(**how)
    assert watcher.watch(dist)
    dist.init_process_group()
    return dist


def comm_of(dist, group=None):
    return watcher._watch.groups[group or dist.world].comm


def expect(got, wanted):
    assert got == wanted, f"got {got!r}, not {wanted!r}"


def wait_for(what, function):
    until = time.monotonic() + PATIENCE_S
    while not function():
        assert time.monotonic() < until, what
        time.sleep(0.01)


def the_library_counts_what_it_is_told():
    with tocsin.Job() as job:
        comm = job.register(comm_hash=17, size=4, rank=2, name="world")
        with comm.operation(tocsin.ALL_REDUCE, 1024, 7):
            expect(comm.counts(), (1, 1, 0))
        comm.launched(tocsin.BARRIER)
        expect(comm.counts(), (2, 1, 1))
        expect(comm.state()[0], "alone")
        comm.close()
        comm.launched(tocsin.BARRIER)  # nothing happens any more
        expect(comm.state(), ("alone", "closed"))
        comm.close()


def being_busy_lasts_for_a_block():
    with tocsin.Job() as job:
        with job.busy(60, "checkpoint \u20ac" + "x" * 100):
            pass
        with job.busy(60):
            job.close()
        with job.busy(60):  # nothing happens any more
            pass


def what_cannot_be_registered_is_told():
    with tocsin.Job() as job:
        for words in ({"size": 0, "rank": 0}, {"size": 4, "rank": 4}):
            try:
                job.register(comm_hash=1, **words)
            except OSError as wrong:
                expect(wrong.errno, 22)
            else:
                raise AssertionError(words)
        job.register(comm_hash=1, size=1, rank=0, name="\u20ac" * 100 + "\ud800").close()


def a_missing_library_is_said_and_changes_nothing():
    before = os.environ["TOCSIN_LIBRARY"]
    for path in ("/nowhere/libtocsin.so", __file__, "libc.so.6"):
        os.environ["TOCSIN_LIBRARY"] = path
        said.clear()
        dist = fake()
        first = dist.all_reduce
        assert not watcher.watch(dist)
        assert dist.all_reduce is first
        assert len(said) == 1 and "not watched" in said[0], said
    os.environ["TOCSIN_LIBRARY"] = before


def operations_are_counted_and_passed_on_as_they_are():
    dist = watched()
    tensor = Tensor(10)
    assert dist.all_reduce(tensor, "sum") is None
    dist.distributed_c10d.broadcast(tensor, src=3)
    dist.barrier()
    expect(dist.calls, [("all_reduce", tensor, "sum", None, False), ("broadcast", tensor, 3),
                        ("barrier",)])
    expect(comm_of(dist).counts(), (3, 3, 3))


def an_operation_that_another_one_makes_is_part_of_it():
    dist = watched()
    dist.reduce_scatter_tensor(Tensor(4), Tensor(16))
    expect(comm_of(dist).counts(), (1, 1, 1))
    dist.all_gather_object([], {})  # of which Python makes two
    expect(comm_of(dist).counts(), (3, 3, 3))


def an_exception_is_the_same_and_the_operation_is_no_longer_under_way():
    dist = watched()
    try:
        dist.all_reduce(Tensor(1), "raise")
    except RuntimeError as wrong:
        expect(str(wrong), "Timed out")
    expect(comm_of(dist).counts(), (1, 1, 1))
    dist.barrier()
    expect(comm_of(dist).counts(), (2, 2, 2))


def a_call_with_wrong_arguments_complains_as_before_and_launches_nothing():
    dist = watched()
    for arguments, words in (((Tensor(1),), {"nonsense": 1}), ((), {}), ((), {"op": "sum"}),
                             ((Tensor(1), "sum", None, False, 5), {}),
                             ((Tensor(1),), {"tensor": Tensor(2)})):
        complaints = []
        for call in (dist.all_reduce, dist.all_reduce.function):
            try:
                call(*arguments, **words)
            except TypeError as wrong:
                complaints.append(str(wrong))
        expect(len(complaints), 2)
        expect(*complaints)
    expect(comm_of(dist).counts(), (0, 0, 0))


def an_operation_under_way_is_seen_as_such():
    dist = watched()
    dist.held = threading.Event()
    thread = threading.Thread(target=dist.barrier)
    thread.start()
    wait_for("the barrier to begin", lambda: comm_of(dist).counts() == (1, 1, 0))
    dist.held.set()
    thread.join()
    expect(comm_of(dist).counts(), (1, 1, 1))


def an_operation_that_does_not_hold_the_main_thread_is_marked_as_posted():
    dist = watched()
    marks = []
    comm_of(dist).mark = lambda name, value=1: marks.append((name, value))
    dist.barrier()
    expect(marks, [])
    works = [Work(), Work()]
    dist.works = list(works)
    dist.all_reduce(Tensor(1), async_op=True)
    dist.isend(Tensor(1), 1)  # has no async_op
    expect(marks, [("posted", 1)])
    for work in works:
        work.done = True
    wait_for("their end", lambda: marks[1:] == [("posted", 0)])
    thread = threading.Thread(target=dist.barrier)
    thread.start()
    thread.join()
    expect(marks[2:], [("posted", 1), ("posted", 0)])


def a_library_without_the_mark_counts_as_before_and_blocks_nothing():
    """Found: the error of the mark reached the program, and its operation was not launched."""
    flags, mark, register = [], tocsin.Comm.mark, tocsin.Job.register

    def refuse(self, name, value=1):
        if name == "posted":
            raise OSError(22, "posted: Invalid argument")
        mark(self, name, value)

    def note(self, **words):
        flags.append(words["flags"])
        return register(self, **words)

    tocsin.Comm.mark, tocsin.Job.register = refuse, note
    try:
        dist = watched()
        dist.works = [Work()]
        work = dist.all_reduce(Tensor(1), async_op=True)
        work.done = True
        wait_for("its end", lambda: comm_of(dist).counts() == (1, 1, 1))
    finally:
        tocsin.Comm.mark, tocsin.Job.register = mark, register
    expect(flags, [("times", "blocks"), ("times",)])


def a_handle_that_is_dropped_completes_when_its_operation_does():
    dist = watched()
    works = [Work(), Work()]
    dist.works = list(works)
    assert dist.all_reduce(Tensor(1), async_op=True) is works[1]
    assert dist.isend(Tensor(1), 1) is works[0]
    expect(comm_of(dist).counts(), (1, 1, 0))
    gc.collect()
    for work in works:
        work.done = True
    wait_for("its end", lambda: comm_of(dist).counts() == (1, 1, 1))
    wait_for("the thread's end", lambda: all(thread.name != "tocsin-torch"
                                             for thread in threading.enumerate()))


def a_thousand_handles_under_way_make_no_call_slow():
    """Of them a call looks at some; a thread, at all."""
    dist, asked = watched(), []
    works = [Work() for _ in range(1000)]
    for work in works:
        work.is_completed = lambda work=work: asked.append(threading.get_ident()) or work.done
    dist.works = list(works)
    for _ in works:
        dist.all_reduce(Tensor(1), async_op=True)
    expect(comm_of(dist).counts(), (1000, 1000, 0))
    assert asked.count(threading.get_ident()) <= 8 * len(works), len(asked)
    for work in works:
        work.done = True
    wait_for("their end", lambda: comm_of(dist).counts() == (1000, 1000, 1000))


def a_handle_that_cannot_be_asked_is_no_longer_under_way():
    dist = watched()
    work = Work()
    work.is_completed = lambda: 1 / 0
    dist.works = [work]
    dist.all_reduce(Tensor(1), async_op=True)
    wait_for("its end", lambda: comm_of(dist).counts() == (1, 1, 1))


def functions_of_torch_are_still_known_by_what_they_were():
    dist = fake()
    first = dist.isend
    assert watcher.watch(dist)
    dist.init_process_group()
    dist.works = [Work(), Work()]
    expect(len(dist.batch_isend_irecv([(first, Tensor(1), 1), (dist.isend, Tensor(1), 1)])), 2)
    assert dist.isend == first and first == dist.isend and hash(first) == hash(dist.isend)
    expect(dist.isend.__name__, "isend")
    expect(inspect.signature(dist.isend), inspect.signature(first))


def all_ranks_give_a_group_the_same_hash_and_no_other_job_does():
    store, hashes = Store(), []
    real = tocsin.Job.register

    def register(self, **words):
        hashes.append(words["comm_hash"])
        return real(self, **words)

    tocsin.Job.register = register
    try:
        for how in ({"rank": 0, "store": store}, {"rank": 1, "store": store},
                    {"rank": 0}):
            dist = watched(**how)
            dist.new_group([0, 1])
            dist.new_group([0, 1])
            watcher.unwatch()
    finally:
        tocsin.Job.register = real
    expect(hashes[0:3], hashes[3:6])
    expect(len(set(hashes)), 6)


def a_rank_0_that_is_not_watched_holds_nobody_up_for_long():
    said.clear()
    dist = watched(rank=1)
    dist.barrier()
    expect(comm_of(dist).counts(), (1, 1, 1))
    assert "rank 0 has drawn no number" in said[0], said


def a_group_made_again_is_another_communicator():
    dist = watched()
    first = comm_of(dist)
    dist.barrier()
    group = dist.new_group([0, 1])
    dist.barrier(group)
    inner = comm_of(dist, group)
    dist.destroy_process_group(group)
    expect(inner.state(), ("alone", "closed"))
    expect(first.counts(), (1, 1, 1))
    dist.destroy_process_group()
    expect((first.state(), watcher._watch.groups), (("alone", "closed"), {}))
    dist.barrier()  # torch would refuse it
    dist.init_process_group()
    dist.barrier()
    expect(comm_of(dist).counts(), (1, 1, 1))


def who_is_no_member_of_a_group_counts_nothing_in_it():
    dist = watched()
    group = dist.new_group([2, 3])
    dist.barrier(group)
    expect(comm_of(dist).counts(), (0, 0, 0))
    expect(watcher._watch.groups[group], None)


def a_group_from_before_is_followed_from_its_next_operation_on():
    dist = fake()
    dist.init_process_group()
    group = dist.new_group([0, 1])
    assert watcher.watch(dist)
    dist.barrier()
    dist.barrier(group)
    expect((comm_of(dist).counts(), comm_of(dist, group).counts()), ((1, 1, 1), (1, 1, 1)))


def more_groups_than_have_place_are_said_once_and_not_followed():
    dist = watched()
    said.clear()
    groups = [dist.new_group([0, 1]) for _ in range(130)]
    for group in groups:
        dist.barrier(group)
    followed = [watcher._watch.groups[group] for group in groups]
    expect(sum(known is not None for known in followed), 126)  # and the world
    expect(len(said), 1)


def of_nccl_only_launches_are_told_and_nothing_where_its_plugin_is():
    dist = watched(backend="nccl")
    dist.all_reduce(Tensor(1))
    dist.works = [Work()]
    dist.all_reduce(Tensor(1), async_op=True)
    expect(comm_of(dist).counts(), (2, 0, 0))
    expect(watcher._watch.pending.works, [])   # no handle of a GPU is asked anything
    watcher.unwatch()
    os.environ["NCCL_PROFILER_PLUGIN"] = "/x/libnccl-profiler-tocsin.so"
    try:
        dist = watched(backend="nccl")
        dist.all_reduce(Tensor(1))
        expect(list(watcher._watch.groups.values()), [None])
    finally:
        del os.environ["NCCL_PROFILER_PLUGIN"]


def in_child(function):
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException as wrong:  # pylint: disable=broad-except
            print(f"# in the child: {wrong!r}", flush=True)
            os._exit(1)
    expect(os.waitpid(child, 0)[1], 0)


def a_child_of_fork_counts_nothing_and_hurts_no_count():
    dist = watched()
    dist.works = [Work()]
    dist.all_reduce(Tensor(1), async_op=True)

    def child():
        dist.barrier()
        expect(watcher._watch.groups, {})
        expect(watcher._watch.pending.works, [])

    in_child(child)
    expect(comm_of(dist).counts(), (1, 1, 0))


def a_child_that_meets_others_by_itself_begins_anew():
    dist = fake()
    assert watcher.watch(dist)

    def child():
        dist.init_process_group()
        dist.barrier()
        expect(comm_of(dist).counts(), (1, 1, 1))
        dist.destroy_process_group()

    in_child(child)


def a_mistake_of_its_own_ends_no_program():
    dist = fake()
    assert watcher.watch(dist)
    dist.get_world_size = lambda group=None: 1 // 0
    said.clear()
    dist.init_process_group()
    dist.barrier()
    expect(dist.calls, [("barrier",)])
    assert len(said) >= 1, said


def many_threads_lose_no_count():
    dist = watched()
    threads = [threading.Thread(target=lambda: [dist.barrier() for _ in range(200)])
               for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(comm_of(dist).counts(), (3200, 3200, 3200))


def what_a_call_costs_is_printed():
    """Of this thread's processor time; nothing is judged."""
    dist, tensor = watched(), Tensor(1)
    dist.calls = types.SimpleNamespace(append=lambda _: None)
    for name, call in (("bare", dist.all_reduce.function), ("watched", dist.all_reduce)):
        rounds = []
        for _ in range(9):
            began = time.thread_time()
            for _ in range(1000):
                call(tensor)
            rounds.append((time.thread_time() - began) * 1000)
        tap.comment(f"{name}: {statistics.median(rounds):.2f} us a call")


def unwatch_leaves_what_was_there():
    dist = fake()
    before = dict(vars(dist)), dict(vars(dist.distributed_c10d))
    assert watcher.watch(dist) and watcher.watch(dist)
    assert dist.barrier is not before[0]["barrier"]
    watcher.unwatch()
    expect((dict(vars(dist)), dict(vars(dist.distributed_c10d))), before)
    watcher.unwatch()


def a_program_is_run_as_python_runs_it():
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "program.py"
        path.write_text("import sys, pickle, multiprocessing\n"
                        "def told(): return 7\n"
                        "print(__name__, sys.argv[1:], __file__ == sys.argv[0], sys.path[0])\n"
                        "assert pickle.loads(pickle.dumps(told))() == 7\n"
                        "sys.exit(5)\n", encoding="utf-8")
        run = [sys.executable, "-m", "tocsin.torch"]
        environment = {**os.environ, "PYTHONPATH": MODULES}

        def done(*words):
            return subprocess.run([*run, *words], capture_output=True, text=True, check=False,
                                  env=environment, cwd=place)

        ran = done(str(path), "-x", "a b")
        expect((ran.returncode, ran.stdout), (5, f"__main__ ['-x', 'a b'] True {place}\n"))
        ran = done("nothing.py")
        expect(ran.returncode, 2)
        assert "nothing.py: No such file" in ran.stderr, ran.stderr
        expect(done().returncode, 2)
        expect(done("--help").returncode, 0)


def alone(test):
    def run():
        try:
            test()
        finally:
            watcher.unwatch()
    run.__name__ = test.__name__
    return run


TESTS = [
    the_library_counts_what_it_is_told, what_cannot_be_registered_is_told,
    being_busy_lasts_for_a_block,
    a_missing_library_is_said_and_changes_nothing,
    operations_are_counted_and_passed_on_as_they_are,
    an_operation_that_another_one_makes_is_part_of_it,
    an_exception_is_the_same_and_the_operation_is_no_longer_under_way,
    a_call_with_wrong_arguments_complains_as_before_and_launches_nothing,
    an_operation_under_way_is_seen_as_such,
    an_operation_that_does_not_hold_the_main_thread_is_marked_as_posted,
    a_library_without_the_mark_counts_as_before_and_blocks_nothing,
    a_handle_that_is_dropped_completes_when_its_operation_does,
    a_thousand_handles_under_way_make_no_call_slow,
    a_handle_that_cannot_be_asked_is_no_longer_under_way,
    functions_of_torch_are_still_known_by_what_they_were,
    all_ranks_give_a_group_the_same_hash_and_no_other_job_does,
    a_rank_0_that_is_not_watched_holds_nobody_up_for_long,
    a_group_made_again_is_another_communicator,
    who_is_no_member_of_a_group_counts_nothing_in_it,
    a_group_from_before_is_followed_from_its_next_operation_on,
    more_groups_than_have_place_are_said_once_and_not_followed,
    of_nccl_only_launches_are_told_and_nothing_where_its_plugin_is,
    a_child_of_fork_counts_nothing_and_hurts_no_count,
    a_child_that_meets_others_by_itself_begins_anew,
    a_mistake_of_its_own_ends_no_program, many_threads_lose_no_count,
    what_a_call_costs_is_printed,
    unwatch_leaves_what_was_there, a_program_is_run_as_python_runs_it,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), alone(test)) for test in TESTS])
