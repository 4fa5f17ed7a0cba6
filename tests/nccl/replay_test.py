#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of NCCL's callbacks, replayed into the plugin: from a real job on a GPU (recordings/),
and generated for each interface (recording.py).

replay_test.py SOURCE-ROOT PLUGIN TOCSIN-REPLAY NCCL-CONF TASK-PROLOG
"""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import tap

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page import NEVER, counts_in, counts_of, pages_of  # noqa: E402
from recording import INTERFACES, Recording  # noqa: E402
from storm import LEVELS, Storm  # noqa: E402

ROOT, PLUGIN, REPLAY = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
NCCL_CONF, TASK_PROLOG = map(pathlib.Path, sys.argv[4:6])
REAL = ROOT / "tests/nccl/recordings"
NEWEST = (2, 17)
NEEDED = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1",
          "ld-linux-x86-64.so.2"}
PATIENCE_S = 60
KERNELS = {"TOCSIN_NCCL_LEVEL": "kernels-always"}


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def sanitized():
    return re.search(r"lib(asan|tsan|ubsan)\.so", said("readelf", "-d", PLUGIN)) is not None


def environment(**more):
    return {**{name: value for name, value in os.environ.items()
               if not name.startswith("TOCSIN_")}, **more}


def replay(*words, **more):
    return subprocess.run([REPLAY, "--library", PLUGIN, *map(str, words)], text=True,
                          capture_output=True, check=False, env=environment(**more),
                          timeout=PATIENCE_S)


def played(*words, **more):
    done = replay(*words, **more)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@contextlib.contextmanager
def held(*recordings, **more):
    """Start the processes of a job that hangs at the end of its recordings. One process per
    recording."""
    with subprocess.Popen([REPLAY, "--library", PLUGIN, "--hold", "1000", *map(str, recordings)],
                          stdout=subprocess.PIPE, text=True, env=environment(**more)) as parent:
        try:
            for _ in recordings:
                assert "played" in parent.stdout.readline()
            children = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
            yield [int(pid) for pid in children.read_text(encoding="ascii").split()]
        finally:
            parent.terminate()


def counted(recording, **more):
    """Return the counts that an agent reads from the process of a recording, by communicator."""
    with held(recording, **more) as pids:
        assert len(pids) == 1
        return counts_of(pids[0])


def in_place(test):
    def run():
        with tempfile.TemporaryDirectory(prefix="tocsin-nccl-") as place:
            test(pathlib.Path(place))
    run.__name__ = test.__name__
    return run


def expect(got, wanted):
    assert got == wanted, f"got {got!r}, not {wanted!r}"


def totals(counts):
    return counts.launched, counts.started, counts.completed


def plugin_asks_for_no_symbol_that_is_newer_than_glibc_2_17():
    if sanitized():
        raise tap.Skip("a sanitizer brings newer ones")
    versions = set(re.findall(r"GLIBC_(\d+)\.(\d+)", said("objdump", "-T", PLUGIN)))
    assert versions
    newer = [version for version in versions if tuple(map(int, version)) > NEWEST]
    assert not newer, newer
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", said("readelf", "-d", PLUGIN)))
    assert needed <= NEEDED, needed


def plugin_exports_the_seven_objects_and_no_more():
    names = set(re.findall(r" (\w) (\S+)$", said("nm", "-D", "--defined-only", PLUGIN), re.M))
    expect(names, {("D", f"ncclProfiler_v{number}") for number in INTERFACES})


@in_place
def each_interface_counts_what_its_descriptors_say(place):
    for interface in INTERFACES:
        job = Recording(interface)
        job.init(size=4, rank=3, name="world")
        job.launch(func="AllReduce", count=77, datatype="ncclBfloat16")
        job.launch(func="Broadcast", count=5, datatype="ncclInt32", root=2)
        job.launch(func="ReduceScatter", count=6, root=1)
        job.send(1)
        comms = counted(job.write(place / f"{interface}.txt"), TOCSIN_NCCL_RANKS="4")
        expect(len(comms), 1)
        counts = comms[1]
        expect(counts.kinds, {"all_reduce": 1, "broadcast": 1, "reduce_scatter": 1, "send": 1})
        expect(totals(counts), (3, 0, 0))
        expect((counts.started_from, counts.completed_from), (NEVER, NEVER))
        expect(counts.signatures, {1: ("all_reduce", 77, 9, -1), 2: ("broadcast", 5, 2, 2),
                                   3: ("reduce_scatter", 6, 7, -1)})


@in_place
def each_interface_with_kernel_events_tells_what_began_and_ended(place):
    for interface in INTERFACES:
        job = Recording(interface)
        job.init()
        if interface < 3:
            continue
        job.kernels(job.launch())
        operation = job.launch()
        job.kernel_begin(operation, 0)
        counts = counted(job.write(place / "job.txt"), TOCSIN_NCCL_RANKS="2", **KERNELS)[1]
        expect(totals(counts), (2, 2, 1))
        expect((counts.started_from, counts.completed_from), (1, 1))


@in_place
def old_interfaces_do_not_say_how_many_ranks_there_are_and_are_not_followed(place):
    for interface in (1, 2, 3):
        job = Recording(interface)
        job.init()
        job.launch()
        expect(counted(job.write(place / "job.txt")), {})


@in_place
def kernels_of_2_31_are_watched_all_the_time_only_where_somebody_insists(place):
    job = Recording(7)
    job.init()
    for _ in range(2000):
        job.kernels(job.launch())
    path = job.write(place / "job.txt")
    if int(time.time()) % 60 in range(3, 50):  # otherwise the second one of the minute may arrive
        expect(totals(counted(path, TOCSIN_NCCL_LEVEL="kernels")[1]), (2000, 0, 0))
    expect(totals(counted(path, **KERNELS)[1]), (2000, 2000, 2000))


def real_job_is_counted_as_its_ranks_called():
    wanted = {"broadcast": 3, "reduce": 3, "all_gather": 3, "reduce_scatter": 3, "all_reduce": 12}
    for name, level, told in [("v5-all", "launches", False), ("v5-all", "kernels", True),
                              ("v4-all", "kernels", True)]:
        text = (REAL / f"{name}-rank0.txt").read_text(encoding="ascii")
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            # Drop the end, because finalized communicators disappear.
            file.write(re.sub(r"^\d+ t\d+ finalize .*\n", "", text, flags=re.M))
            file.flush()
            comms = counted(file.name, TOCSIN_NCCL_LEVEL=level)
        expect(sorted(comms), [1, 2])
        collectives = {kind: count for kind, count in comms[1].kinds.items()
                       if kind not in ("send", "receive")}
        expect(collectives, wanted)
        expect(totals(comms[1]), (24, 24, 24) if told else (24, 0, 0))
        expect(comms[1].kinds["send"] + comms[1].kinds["receive"], 17)
        expect(comms[2].launched, 1)


def real_job_is_complete_at_the_network_level_too():
    text = (REAL / "v5-network-rank0.txt").read_text(encoding="ascii")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(re.sub(r"^\d+ t\d+ finalize .*\n", "", text, flags=re.M))
        file.flush()
        counts = counted(file.name, TOCSIN_NCCL_LEVEL="network")[1]
    expect((counts.launched, counts.completed), (24, 24))
    expect(counts.started_from, NEVER)


def real_hang_shows_who_did_not_come():
    with held(REAL / "v5-hang-rank0.txt", REAL / "v5-hang-rank1.txt",
              TOCSIN_NCCL_LEVEL="kernels") as pids:
        expect(sorted(totals(counts_of(pid)[1]) for pid in pids), [(5, 5, 5), (6, 6, 5)])


def real_hangs_of_other_causes_show_theirs():
    for name, ranks in {
            # Launched, but not started on the device.
            "behind": [{1: (6, 6, 5)}, {1: (6, 5, 5)}],
            # Each rank waits in the communicator that the other has not entered yet.
            "order": [{1: (0, 0, 0), 2: (4, 4, 3), 3: (3, 3, 3)},
                      {1: (0, 0, 0), 2: (3, 3, 3), 3: (4, 4, 3)}],
            "mismatch": [{1: (6, 6, 5)}, {1: (6, 5, 5)}]}.items():
        with held(*(REAL / f"v5-{name}-rank{rank}.txt" for rank in (0, 1)),
                  TOCSIN_NCCL_LEVEL="kernels") as pids:
            seen = [counts_of(pid) for pid in pids]
        got = [{number: totals(counts) for number, counts in comms.items()} for comms in seen]
        assert got in (ranks, ranks[::-1]), (name, got)
        if name == "mismatch":
            sixth = {comms[1].signatures[6][0] for comms in seen}
            expect(sixth, {"all_reduce", "broadcast"})


def graphs_of_a_real_job_are_not_in_the_sequence():
    for name in ("v5-graph", "v5-graph-kernels"):
        counts = counted(REAL / f"{name}-rank1.txt", TOCSIN_NCCL_LEVEL="launches")[1]
        expect(counts.launched, 4)  # two more went into a graph, which ran four times


def graphs_of_version_four_end_the_following():
    expect(counted(REAL / "v4-graph-rank0.txt"), {})


def real_recordings_of_the_old_interfaces_play():
    for name in ("v1-all-rank1", "v2-all-rank0", "v3-all-rank0"):
        out = played(REAL / f"{name}.txt", TOCSIN_NCCL_LEVEL="kernels")
        assert f"interface {name[1]}" in out, out


@in_place
def recording_of_a_replay_is_the_recording(place):
    def callbacks(path):
        lines = path.read_text(encoding="ascii").splitlines()
        return [re.sub(r"^\d+ (t\d+) | pid=\d+|mask=\d+ ?", "", line) for line in lines
                if line[0].isdigit()]

    for source in sorted(REAL.glob("*.txt")):
        for old in place.iterdir():
            old.unlink()
        played("--all", source, TOCSIN_NCCL_RECORD=place / "copy", TOCSIN_NCCL_RECORD_MASK="4095",
               TOCSIN_NCCL_LEVEL="kernels")
        (copy,) = place.iterdir()
        number = {}

        def renumbered(line):
            return re.sub(r"\be(\d+)", lambda m: f"e{number.setdefault(m[1], len(number))}", line)

        first = [renumbered(line) for line in callbacks(source)]
        number.clear()
        expect([renumbered(line) for line in callbacks(copy)], first)


@in_place
def recording_on_a_full_disk_ends_and_the_job_goes_on(place):
    job = Recording(6)
    job.init()
    for _ in range(200):
        job.launch()
    path = job.write(place / "job.txt")
    with open(place / "shell", "w", encoding="ascii") as script:
        script.write(f"ulimit -f 8; exec {REPLAY} --library {PLUGIN} {path}\n")
    done = subprocess.run(["sh", place / "shell"], capture_output=True, text=True, check=False,
                          env=environment(TOCSIN_NCCL_RECORD=str(place / "rec")))
    expect((done.returncode, done.stderr), (0, ""))
    (cut,) = place.glob("rec.*")
    assert cut.stat().st_size <= 8 * 1024
    played(cut)  # a truncated line is ignored


@in_place
def recording_that_cannot_be_made_leaves_the_job_alone(place):
    job = Recording(5)
    job.init()
    job.launch()
    path = job.write(place / "job.txt")
    played(path, TOCSIN_NCCL_RECORD="/nowhere/at/all")
    expect(totals(counted(path, TOCSIN_NCCL_RECORD="/nowhere/at/all")[1]), (1, 0, 0))


@in_place
def chained_plugin_gets_every_call_with_its_own_handles(place):
    # The same plugin under another name, so that it is a separate library with its own page.
    other = place / "other.so"
    other.write_bytes(pathlib.Path(PLUGIN).read_bytes())
    job = Recording(5)
    job.init()
    for _ in range(20):
        job.kernels(job.launch())
    job.kernel_begin(job.launch(), 0)
    path = job.write(place / "job.txt")
    with held(path, TOCSIN_NCCL_PROFILER_NEXT=str(other), **KERNELS) as (pid,):
        pages = [counts_in(page) for page in pages_of(pid)]
    expect([totals(page[1]) for page in pages], [(21, 21, 20), (21, 21, 20)])
    job.finalize()
    played(job.write(path), TOCSIN_NCCL_PROFILER_NEXT=str(other), **KERNELS)


@in_place
def next_plugin_that_cannot_be_used_is_left_out(place):
    job = Recording(5)
    job.init()
    job.kernels(job.launch())
    path = job.write(place / "job.txt")
    for wrong in (PLUGIN, "/nowhere.so", str(path), "libc.so.6"):
        expect(totals(counted(path, TOCSIN_NCCL_PROFILER_NEXT=wrong, **KERNELS)[1]), (1, 1, 1))


@in_place
def levels_that_are_none_are_launches(place):
    job = Recording(5)
    job.init()
    job.kernels(job.launch())
    path = job.write(place / "job.txt")
    for level in ("", "everything", "KERNELS", "1"):
        expect(totals(counted(path, TOCSIN_NCCL_LEVEL=level)[1]), (1, 0, 0))
    expect(counted(path, TOCSIN_NCCL_LEVEL="off"), None)


def example_of_nccl_conf_is_one_that_nccl_reads():
    # As in NCCL: '#' starts a comment, other lines are NAME=value without blanks around '='.
    lines = [line for line in NCCL_CONF.read_text(encoding="ascii").splitlines()
             if line and not line.startswith("#")]
    (line,) = lines
    name, value = line.split("=", 1)
    expect(name, "NCCL_PROFILER_PLUGIN")
    assert re.fullmatch(r"/\S+/tocsin/libnccl-profiler-tocsin\.so", value), value


def task_prolog_sets_what_a_task_needs_and_keeps_what_it_chose():
    def printed(**more):
        return subprocess.run(["sh", TASK_PROLOG], text=True, capture_output=True, check=True,
                              env={"PATH": os.environ["PATH"], **more}).stdout.splitlines()

    ours = {"TOCSIN_NCCL_PLUGIN": PLUGIN}
    mine = f"export NCCL_PROFILER_PLUGIN={PLUGIN}"
    expect(printed(TOCSIN_NCCL_PLUGIN="/not/there.so"), [])
    expect(printed(**ours), [mine])
    expect(printed(**ours, NCCL_PROFILER_PLUGIN="none"), [])
    expect(printed(**ours, NCCL_PROFILER_PLUGIN=PLUGIN), [])
    expect(printed(**ours, NCCL_PROFILER_PLUGIN="/opt/other.so"),
           ["export TOCSIN_NCCL_PROFILER_NEXT=/opt/other.so", mine])


@in_place
def callbacks_in_any_order_with_any_handle_end_no_process(place):
    other = place / "other.so"
    other.write_bytes(pathlib.Path(PLUGIN).read_bytes())
    for seed in range(1, 25):
        Storm(seed).write(place / "storm.txt")
        chosen = {"TOCSIN_NCCL_LEVEL": LEVELS[seed % len(LEVELS)],
                  "TOCSIN_NCCL_RANKS": "2" if seed % 3 else ""}
        if seed % 4 == 0:
            chosen["TOCSIN_NCCL_RECORD"] = str(place / "rec")
            chosen["TOCSIN_NCCL_RECORD_MASK"] = "65535"
        if seed % 5 == 0:
            chosen["TOCSIN_NCCL_PROFILER_NEXT"] = str(other)
        done = replay("--quiet", "--repeat", 2, "--all", place / "storm.txt", **chosen)
        assert (done.returncode, done.stderr) == (0, ""), (seed, chosen, done.stderr)


@in_place
def bad_recordings_are_refused_with_line_and_reason(place):
    head = "tocsin-nccl-recording 1\ninterface 5\n"
    for text, line, words in [
            ("", 0, "no recording"),
            ("something\n", 1, '"tocsin-nccl-recording 1"'),
            ("tocsin-nccl-recording 1\ninterface 8\n", 2, "1 to 7"),
            ("tocsin-nccl-recording 1\n0 t0 init comm=c0\n", 2, "which interface"),
            (head + "0 t0 jump comm=c0\n", 3, "init, start, stop, state or finalize"),
            (head + "0 x init comm=c0\n", 3, "no callback"),
            (head + "0 t0 init comm=c99999\n", 3, "99999"),
            (head + "0 t0 init hash=12\n", 3, '"comm" is missing'),
            (head + "0 t0 start event=e1 comm=c0 type=Nothing\n", 3, "no type of event"),
            (head + "0 t0 start comm=c0 type=Coll\n", 3, '"event" is missing'),
            (head + "0 t0 start event=e1 comm=c0 type=Coll gpu=3\n", 3, "no field of this type"),
            (head + "0 t0 start event=e1 type=Coll channels=256\n", 3, "256"),
            (head + "0 t0 start event=e1 type=Coll func=A\\x0\n", 3, "backslash"),
            (head + "0 t0 start event=e99999999999\n", 3, "99999999999"),
            (head + "0 t0 stop event\n", 3, "name=value"),
            (head + "0 t0 stop event=x1\n", 3, "x1"),
            (head + "0 t0 stop event=e1\x00\n", 3, "byte 0"),
            (head + "size 3\n", 3, "interface, pid or nccl")]:
        path = place / "bad.txt"
        path.write_bytes(text.encode("latin-1"))
        done = replay(path)
        expect((done.returncode, done.stdout), (1, ""))
        assert f"bad.txt:{line}: " in done.stderr and words in done.stderr, (text, done.stderr)


@in_place
def wrong_use_of_replay_is_told(place):
    for words, status, told in [
            ([], 2, "no recording is given"), (["--repeat", "0", "x"], 2, "--repeat"),
            (["--hold", "x", "x"], 2, "--hold"), (["--what"], 2, "what"),
            ([place / "none.txt"], 1, "No such file"), ([place], 1, "Invalid argument")]:
        done = replay(*words)
        expect(done.returncode, status)
        assert told in done.stderr, done.stderr
    out = said(REPLAY, "--help")
    assert all(len(line) <= 100 for line in out.splitlines())
    done = subprocess.run([REPLAY, "-l", "/nowhere.so", REAL / "v5-hang-rank0.txt"], text=True,
                          capture_output=True, check=False)
    expect(done.returncode, 1)
    assert "/nowhere.so" in done.stderr


TESTS = [
    plugin_asks_for_no_symbol_that_is_newer_than_glibc_2_17,
    plugin_exports_the_seven_objects_and_no_more,
    each_interface_counts_what_its_descriptors_say,
    each_interface_with_kernel_events_tells_what_began_and_ended,
    old_interfaces_do_not_say_how_many_ranks_there_are_and_are_not_followed,
    kernels_of_2_31_are_watched_all_the_time_only_where_somebody_insists,
    real_job_is_counted_as_its_ranks_called,
    real_job_is_complete_at_the_network_level_too,
    real_hang_shows_who_did_not_come,
    real_hangs_of_other_causes_show_theirs,
    graphs_of_a_real_job_are_not_in_the_sequence,
    graphs_of_version_four_end_the_following,
    real_recordings_of_the_old_interfaces_play,
    recording_of_a_replay_is_the_recording,
    recording_on_a_full_disk_ends_and_the_job_goes_on,
    recording_that_cannot_be_made_leaves_the_job_alone,
    chained_plugin_gets_every_call_with_its_own_handles,
    next_plugin_that_cannot_be_used_is_left_out,
    levels_that_are_none_are_launches,
    example_of_nccl_conf_is_one_that_nccl_reads,
    task_prolog_sets_what_a_task_needs_and_keeps_what_it_chose,
    callbacks_in_any_order_with_any_handle_end_no_process,
    bad_recordings_are_refused_with_line_and_reason,
    wrong_use_of_replay_is_told,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
