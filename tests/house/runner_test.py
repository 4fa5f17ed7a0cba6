#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the test runner: where and beside which other tests a test runs, how it is ended, and
which results are stored."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import patience
import runner
import suites
import tally
import tap
import verb_test

WAIT_SECONDS = 60


def entry(name, script="echo 1..1; echo ok 1 - a", suite="unit", **more):
    """Return meson's entry of a test that is this shell script."""
    return {"name": name, "suite": [f"tocsin:{suite}"], "cmd": ["sh", "-c", script], "env": {},
            "workdir": None, "timeout": 60, "protocol": "tap", "is_parallel": True, "priority": 0,
            "depends": [], **more}


def made(*arguments, kind="release", **more):
    return suites.Test(kind, entry(*arguments, **more))


@contextlib.contextmanager
def pool_of(*tests, around=(), times="", processors=4):
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        path = pathlib.Path(name) / "times"
        path.write_text(times, encoding="utf-8")
        pool = runner.Pool(runner.Times(path), list(around), processors)
        pool.add(list(tests))
        try:
            yield pool
        finally:
            pool.end(kill=True)
            run_all(pool)


def run_all(pool):
    """name -> record"""
    records, until = {}, time.monotonic() + WAIT_SECONDS
    while not pool.is_done():
        assert time.monotonic() < until, records
        for record in pool.step():
            records[record["name"]] = record
        time.sleep(0.01)
    return records


def until(condition):
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def has_ended(pid):
    """Return whether the process is gone, or a zombie that init has not reaped yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").split()[2] == "Z"
    except OSError:
        return True


def names(pool):
    return [run.test.name for run in pool.running]


def a_record_holds_what_was_said_and_how_it_ended():
    with pool_of(made("a", "echo out; echo err >&2; exit 3"), made("b", "kill -11 $$")) as pool:
        records = run_all(pool)
    assert (records["a"]["stdout"], records["a"]["stderr"]) == ("out\n", "err\n"), records
    assert (records["a"]["returncode"], records["b"]["returncode"]) == (3, -11), records


def what_a_test_leaves_in_its_group_is_ended():
    with tempfile.NamedTemporaryFile("r") as told:
        with pool_of(made("a", f"sleep 600 & echo $! >{told.name}")) as pool:
            run_all(pool)
        until(lambda: has_ended(told.read().strip() or 0))


def a_process_group_of_its_own_does_not_outlive_its_test():
    with tempfile.NamedTemporaryFile("r") as told:
        leaver = (f"{sys.executable} -c 'import os, time; os.setpgid(0, 0); "
                  f"open(\"{told.name}\", \"w\").write(str(os.getpid())); time.sleep(600)' & "
                  f"until [ -s {told.name} ]; do sleep 0.01; done")
        with pool_of(made("a", leaver)) as pool:
            run_all(pool)
        until(lambda: has_ended(told.read().strip() or 0))


def a_test_past_its_limit_is_asked_to_end_and_then_killed():
    runner.END_SECONDS, before = 5, runner.END_SECONDS
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        polite, stubborn = (made(who, f"trap '{trap}' TERM; >{name}/{who}; "
                                 "while :; do sleep 0.1; done")
                            for who, trap in (("polite", "echo ended; exit 0"), ("stubborn", "")))
        try:
            with pool_of(polite, stubborn) as pool:
                until(lambda: pool.step() or len(list(pathlib.Path(name).iterdir())) == 2)
                polite.limit = stubborn.limit = 0
                records = run_all(pool)
        finally:
            runner.END_SECONDS = before
    assert records["polite"]["stdout"] == "ended\n", records
    assert all("timed out" in record["ended_by"] for record in records.values()), records
    assert records["stubborn"]["returncode"] == -9, records
    assert tally.Program(records["polite"]).failed, records


def a_test_that_writes_without_end_is_ended():
    runner.OUTPUT_BYTES_MAX, before = 1 << 20, runner.OUTPUT_BYTES_MAX
    try:
        with pool_of(made("a", "yes")) as pool:
            record = run_all(pool)["a"]
    finally:
        runner.OUTPUT_BYTES_MAX = before
    assert "wrote more than 1 MiB" in record["ended_by"], record["ended_by"]


def a_test_that_cannot_be_started_is_a_record():
    with pool_of(made("a", workdir="/proc/nowhere"), made("b")) as pool:
        records = run_all(pool)
    assert "could not be started" in records["a"]["ended_by"], records
    assert records["b"]["returncode"] == 0, records


def what_is_preloaded_for_a_test_is_not_for_what_stands_around_it():
    test = made("a", "echo 1..1; echo ok 1 - $SEEN", env={"SEEN": "by the test"})
    with pool_of(test, around=["sh", "-c", '[ -z "$SEEN" ] && exec "$@"', "sh"]) as pool:
        record = run_all(pool)["a"]
    assert record["stdout"].endswith("ok 1 - by the test\n"), record


def in_a_network_of_its_own_a_test_can_make_cgroups():
    if not runner.isolation():
        raise tap.Skip("no network namespaces here")
    for look in ("test -e /sys/class/net/lo", "ip -br link show lo up"):
        done = subprocess.run([*runner.ISOLATE, *look.split()], capture_output=True, check=False)
        assert done.returncode == 0, (look, done)
    groups = ["find", "/sys/fs/cgroup", "-maxdepth", "2", "-type", "d"]
    here, there = (subprocess.run([*around, *groups], capture_output=True, check=False).stdout
                   for around in ([], runner.ISOLATE))
    assert here == there, (here, there)


def seconds_count_by_the_share_of_a_processor_that_was_to_be_had():
    times, threads = iter([0.0, 1.0, 2.0, 3.0, 73.0]), iter([1, 8, 1000, 1])
    clock = patience.FairClock(lambda: next(times), lambda: next(threads), 2)
    assert clock.read() == 1.0   # no other process
    assert clock.read() == 1.25  # eight threads on two processors
    assert clock.read() == 1.35  # no limit grows to more than ten times its length
    assert clock.read() == 2.35  # after a gap only one second counts: the program could not run


def tests_start_as_far_as_their_shares_go_and_the_longest_first():
    times = "".join(f"release unit/t{n} {10 + n}.0 {(10 + n) * 0.8}\n" for n in range(4))
    with pool_of(*(made(f"t{n}", "sleep 600") for n in range(4)), times=times,
                 processors=2) as pool:
        pool.step()
        assert names(pool) == ["t3", "t2", "t1"], names(pool)  # 2.4 of 2.5


def tests_that_wait_run_many_at_a_time():
    with pool_of(*(made(f"t{n}", "sleep 600", suite="agent") for n in range(9)),
                 processors=2, around=["env"]) as pool:
        pool.step()
        assert len(pool.running) == 9, names(pool)


def a_test_that_is_to_run_alone_has_only_what_computes_beside_it():
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name, \
            pool_of(made("lonely", "sleep 600", is_parallel=False),
                    made("lonely2", "sleep 600", is_parallel=False),
                    made("waits", f"until [ -e {name}/go ]; do sleep 0.01; done", suite="agent"),
                    made("computes", "sleep 600"), around=["env"], processors=4) as pool:
        pool.step()
        assert sorted(names(pool)) == ["computes", "waits"], names(pool)
        pathlib.Path(name, "go").touch()
        until(lambda: pool.step() == [] and sorted(names(pool)) == ["computes", "lonely"])
        pool.add([made("late", suite="agent"), made("more", "sleep 600")])
        pool.step()
        assert sorted(names(pool)) == ["computes", "lonely", "more"], names(pool)


def what_computes_gives_way_to_the_sessions_of_others():
    own = pathlib.Path("/proc/self/autogroup")
    for suite, session, process in (("unit", "19", "19"), ("agent", "0", str(os.nice(0)))):
        with pool_of(made("a", f"nice; cat {own}", suite=suite)) as pool:
            words = run_all(pool)["a"]["stdout"].split()
        assert words[0] == process, (suite, words)
        assert not own.exists() or words[-1] == session, (suite, words)


def a_test_runs_in_two_builds_at_a_time_only_with_a_network_of_its_own():
    for around, wanted in (([], ["a"]), (["env"], ["a", "a"])):
        with pool_of(made("a", "sleep 600"), made("a", "sleep 600", kind="asan"),
                     around=around) as pool:
            pool.step()
            assert names(pool) == wanted, (around, names(pool))


def times_are_remembered_for_the_next_run():
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        path = pathlib.Path(name) / "deep" / "times"
        times = runner.Times(path)
        times.learn(made("a"),
                    {"seconds": 20.0, "fair_seconds": 10.0, "processor_seconds": 2.5})
        times.save()
        again = runner.Times(path)
        assert (again.seconds(made("a")), again.share(made("a"))) == (20.0, 0.25)
        # One run under high load does not make the test look cheap.
        again.learn(made("a"), {"seconds": 20.0, "fair_seconds": 10.0, "processor_seconds": 0.1})
        assert again.share(made("a")) == 0.25 * runner.SHARE_FALL
        # Time spent waiting is not processor time.
        again.learn(made("w", suite="agent"),
                    {"seconds": 20.0, "fair_seconds": 2.0, "processor_seconds": 2.0})
        assert again.share(made("w", suite="agent")) == 0.1
        path.write_text("of another version\n", encoding="utf-8")
        assert runner.Times(path).seconds(made("a", timeout=200)) == 20.0
        # In a new directory the test is assumed to take as long as elsewhere.
        elsewhere = pathlib.Path(name, "elsewhere")
        elsewhere.write_text("# seconds\nrelease unit/a 7 3.5\n", encoding="utf-8")
        first = runner.Times(path, elsewhere)
        assert (first.seconds(made("a")), first.share(made("a"))) == (7.0, 0.5)
        again.save()
        assert runner.Times(path, elsewhere).seconds(made("a")) == 20.0


# Suites of a test -> the builds that run it at level one, at level two, and at level three.
WANTED = [
    (["unit"], ["release", "asan"], ["release", "asan"]),
    (["unit", "threads"], ["release", "asan"], ["release", "asan", "tsan"]),
    (["fuzz"], ["release", "asan"], ["release", "asan", "fuzz"]),
    (["house"], ["release"], ["release"]),
    (["house", "long"], [], ["release"]),
    (["sim"], ["release"], ["release"]),
    (["sim", "sanitized"], ["release", "asan"], ["release", "asan"]),
    (["netns"], ["release"], ["release"]),
    (["agent", "sanitized-all"], ["release"], ["release", "asan"]),
    (["unit", "slurm"], ["release", "asan"], ["release", "asan"]),
    (["slurm"], [], ["release"]),
    (["smoke", "release-only"], ["release"], ["release"]),
    (["packages"], [], [], ["release"]),
]


def each_suite_runs_in_the_builds_where_it_can_break():
    for of_test, *of_levels in WANTED:
        for level, kinds in enumerate(of_levels, 1):
            got = [kind for kind in suites.DIRECTORIES
                   if suites.is_wanted_in(kind, of_test, level)]
            assert got == kinds, (of_test, level, got)


def tests_are_listed_by_suite_within_100_columns():
    tests = [made("tidy", suite="house"), *(made(f"name{n:02}") for n in range(40))]
    lines = verb_test.list_by_suite(tests)
    assert lines[0] == "  house: tidy" and lines[1].startswith("  unit: name00 name01 "), lines
    assert " ".join(lines).split()[3:] == [f"name{n:02}" for n in range(40)], lines
    assert all(len(line) <= 100 for line in lines) and len(lines) == 5, lines


class Ninja:
    """A build directory whose ninja is a script."""

    def __init__(self, script):
        self.script = script

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="tocsin-house-")
        program = pathlib.Path(self.directory.name) / "ninja"
        program.write_text(f"#!/bin/sh\n{self.script}\n", encoding="utf-8")
        program.chmod(0o755)
        self.before = suites.tool, suites.DIRECTORIES
        suites.tool = lambda _: str(program)
        suites.DIRECTORIES = {"release": self.directory.name}
        return self

    def __exit__(self, *_):
        suites.tool, suites.DIRECTORIES = self.before
        self.directory.cleanup()


def session_of(script, *tests, broken=False, interrupted=False, whole=False):
    """Run with this ninja. Returns the session and its output."""
    said = io.StringIO()
    with Ninja(script), contextlib.redirect_stdout(said):
        session = verb_test.Session({"release": list(tests)}, "--all" if whole else "a")
        session.times.path = pathlib.Path("/proc/nowhere/times")
        if broken:
            session.step = lambda _: 1 / 0
        if interrupted:  # once in order, then at once
            step, session.pool.around = session.step, []
            session.step = lambda kinds: step(kinds) or setattr(
                session, "signals", session.signals + len(session.pool.running) // len(tests))
        session.run()
    return session, said.getvalue()


def a_build_that_fails_is_told_and_counted_and_none_of_its_tests_runs():
    session, said = session_of("echo '[1/2] CC a.o'; echo 'FAILED: b.o'; echo why; exit 1",
                               made("a"))
    assert session.missing and not session.programs, session.missing
    assert "FAILED: b.o\nwhy\n" in said and "CC a.o" not in said, said


def what_a_build_says_is_not_told_if_it_succeeds():
    session, said = session_of("echo '[1/2] CC a.o'", made("a"), made("b", "exit 1"))
    assert not session.missing and len(session.programs) == 2, session.missing
    assert re.match(r"FAILED: release unit/b after \d+ s: exit status 1\n", said), said


def what_failed_beside_others_runs_once_more_alone_and_is_told_as_unstable():
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        well = "echo 1..1; echo ok 1 - a"
        once = f"mkdir {name}/$0 2>/dev/null && exit 1; {well}"
        crash = f"mkdir {name}/crash 2>/dev/null && kill -SEGV $$; {well}"
        broken = f"mkdir {name}/broken 2>/dev/null && echo AddressSanitizer: x && exit 1; {well}"
        group = (f"mkdir {name}/group 2>/dev/null && echo 1..1 && "
                 f"echo not ok 1 - g ended with signal 11 after 0 of 1 tests && exit 1; {well}")
        session, said = session_of(
            "", made("a"), made("b", once.replace("$0", "b")), made("c", "exit 1"),
            made("d", crash), made("e", broken), made("f", group), whole=True)
        assert [program.name for program in session.unstable()] == ["b"], session.unstable()
        failed = {program.name for program in session.programs if program.failed}
        assert failed == {"c", "d", "e", "f"}, failed
        assert "FAILED beside others: release unit/b" in said, said
        # More failures than this are not treated as accidental.
        session, _ = session_of("", *(made(f"m{n}", once.replace("$0", f"m{n}"))
                                      for n in range(verb_test.AGAIN_MAX + 1)), whole=True)
        assert len(session.unstable()) == verb_test.AGAIN_MAX
        assert sum(bool(program.failed) for program in session.programs) == 1


def a_run_that_breaks_is_told_and_counted():
    session, _ = session_of("", made("a"), broken=True)
    assert len(session.missing) == 1 and "ZeroDivisionError" in session.missing[0], session.missing
    assert list(verb_test.lost_of(session)) == ["release: 1 of 1 programs did not run"]


def an_interrupted_run_ends_its_tests_and_counts_as_failed():
    session, _ = session_of("", made("a", "sleep 600"), made("b", "trap '' TERM; sleep 600"),
                            interrupted=True)
    assert session.missing == [verb_test.INTERRUPTED], session.missing
    assert all(program.failed for program in session.programs), session.programs


def what_has_not_passed_is_remembered_until_it_does():
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        unpassed = verb_test.Unpassed(pathlib.Path(name) / "unpassed")
        assert unpassed.read() is None  # no run is stored yet
        unpassed.begin([made("a"), made("b"), made("c")])
        assert len(unpassed.read()) == 3  # if the run ended here, none would have passed
        session, _ = session_of("", made("a", "exit 1"), made("b"))
        unpassed.end(session.programs)
        assert unpassed.read() == {"release unit/a", "release unit/c"}
        unpassed.path.write_text("[", encoding="utf-8")
        assert unpassed.read() is None


def a_group_that_was_chosen_is_remembered_apart_from_its_program():
    program = made("unit-lib")
    program.groups = ["cidr", "wire"]
    group = program.narrowed_to("cidr")
    assert (group.title, group.command[-2:]) == ("release unit/unit-lib:cidr", ["--filter", "cidr"])
    assert program.title == "release unit/unit-lib" and "--filter" not in program.command
    read = verb_test.Unpassed.read
    try:
        for titles in ({group.title}, {program.title}, {group.title, program.title}):
            verb_test.Unpassed.read = lambda _, titles=titles: titles
            assert {test.title for test in verb_test.chosen_of([program], "--failed")} == titles
    finally:
        verb_test.Unpassed.read = read


if __name__ == "__main__":
    tap.run([(function.__name__.replace("_", " "), function) for function in (
        a_record_holds_what_was_said_and_how_it_ended,
        what_a_test_leaves_in_its_group_is_ended,
        a_process_group_of_its_own_does_not_outlive_its_test,
        a_test_past_its_limit_is_asked_to_end_and_then_killed,
        a_test_that_writes_without_end_is_ended,
        a_test_that_cannot_be_started_is_a_record,
        what_is_preloaded_for_a_test_is_not_for_what_stands_around_it,
        in_a_network_of_its_own_a_test_can_make_cgroups,
        seconds_count_by_the_share_of_a_processor_that_was_to_be_had,
        tests_start_as_far_as_their_shares_go_and_the_longest_first,
        tests_that_wait_run_many_at_a_time,
        a_test_that_is_to_run_alone_has_only_what_computes_beside_it,
        what_computes_gives_way_to_the_sessions_of_others,
        a_test_runs_in_two_builds_at_a_time_only_with_a_network_of_its_own,
        times_are_remembered_for_the_next_run,
        each_suite_runs_in_the_builds_where_it_can_break,
        tests_are_listed_by_suite_within_100_columns,
        a_build_that_fails_is_told_and_counted_and_none_of_its_tests_runs,
        what_a_build_says_is_not_told_if_it_succeeds,
        what_failed_beside_others_runs_once_more_alone_and_is_told_as_unstable,
        a_run_that_breaks_is_told_and_counted,
        an_interrupted_run_ends_its_tests_and_counts_as_failed,
        what_has_not_passed_is_remembered_until_it_does,
        a_group_that_was_chosen_is_remembered_apart_from_its_program,
    )])
