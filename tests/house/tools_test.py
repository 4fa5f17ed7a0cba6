#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the tools behind ./dev fuzz and ./dev lint, on targets and repositories made for the
test.

tools_test.py SOURCE-ROOT
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import later
import lint
import tap

QUIET_TARGET = "echo 'stat::number_of_executed_units: 1234'"
BROKEN_TARGET = "echo 'Test unit written to out/broken-crash-1'; exit 77"
IDLE_TARGET = "exit 0"


def fuzz(target, *names, until=None):
    """Run fuzz.py on one target with this behaviour. Returns exit status and output, or the result
    of `until`."""
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        root = pathlib.Path(name)
        (root / "tests/fuzz/corpus/one").mkdir(parents=True)
        (root / "tests/fuzz/one_fuzz.c").touch()
        program = root / "out/tests/fuzz/fuzz-one"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{target}\n", encoding="utf-8")
        program.chmod(0o755)
        os.mkfifo(root / "pid")
        with subprocess.Popen([sys.executable, str(FUZZ), "out", "1", *names], cwd=root, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            if until is not None:
                until(root, process)
            said = process.communicate()[0]
        return process.returncode, said


def fuzz_prints_executions_of_a_target_without_finding():
    code, said = fuzz(QUIET_TARGET)
    assert code == 0 and "1234" in said, said


def fuzz_fails_on_a_finding_and_says_where_it_is():
    code, said = fuzz(BROKEN_TARGET)
    assert code == 1 and "out/broken-crash-1" in said, said


def fuzz_fails_on_a_target_that_executed_nothing():
    code, said = fuzz(IDLE_TARGET)
    assert code == 1 and "FINDING" in said, said


def fuzz_refuses_an_unknown_target_by_name():
    code, said = fuzz(QUIET_TARGET, "other")
    assert code == 2 and "'other'" in said and "one" in said, said


def fuzz_runs_a_target_that_is_named_twice_once():
    code, said = fuzz(QUIET_TARGET, "one", "one")
    assert code == 0 and said.startswith("1 targets"), said


def fuzz_ends_its_targets_with_itself():
    for number in (signal.SIGINT, signal.SIGTERM):
        pids = []

        def end(root, process):
            # Both ends of the FIFO block until the target is running.
            pids.append(int((root / "pid").read_text(encoding="ascii")))
            process.send_signal(number)  # pylint: disable=cell-var-from-loop

        code, said = fuzz("echo $$ >pid; exec sleep 600", until=end)
        assert code == 128 + number and "FINDING" not in said, (code, said)
        assert not pathlib.Path(f"/proc/{pids[0]}").exists()


def commits_said(subject, body):
    """Return the output of lint on a repository with this one commit."""
    if shutil.which("git") is None:
        raise tap.Skip("git is not installed")
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        git = ["git", "-C", name, "-c", "user.name=t", "-c", "user.email=t@localhost"]
        subprocess.run(git + ["init", "-q"], check=True)
        words = ["commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", subject]
        subprocess.run(git + words + (["-m", body] if body else []), check=True)
        before, lint.ROOT = lint.ROOT, pathlib.Path(name)
        try:
            return lint.check_commits([])[0]
        finally:
            lint.ROOT = before


def lint_wants_commits_of_area_verb_and_reason():
    assert commits_said("lib: add a thing", "It was missing.") == []
    for subject, body in (("lib: add a thing", ""), ("add a thing", "Why."), ("Lib: add", "Why."),
                          ("lib: Add a thing", "Why."), ("lib: " + "a" * 60, "Why.")):
        assert len(commits_said(subject, body)) == 1, subject


def unit_list_said(table, *tests):
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        path = pathlib.Path(name) / "tests/unit/meson.build"
        path.parent.mkdir(parents=True)
        path.write_text(table, encoding="utf-8")
        before, lint.ROOT = lint.ROOT, pathlib.Path(name)
        try:
            return lint.check_unit_list(["tests/unit/" + test for test in tests])[0]
        finally:
            lint.ROOT = before


def each_edit_of_the_later_release_applies_to_this_tree():
    for name in (*later.EDITS, "meson.build"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert later.edit(name, text) != text, name


def lint_wants_a_program_for_each_unit_test():
    table = ("\t'lib': {'groups': {'lib': 'a b ' +\n\t\t'x_c'}},\n"
             "\t'd': ['lib', 'unit', lib_dep],\n")
    assert unit_list_said(table, "a_test.c", "x/b_test.c", "x/y/x_c_test.c", "d_test.c",
                          "x/bed.c") == []
    for test in ("c_test.c", "x/c_test.c", "x/y/e_test.c", "lib_dep_test.c"):
        said = unit_list_said(table, test)
        assert len(said) == 1 and pathlib.Path(test).name in said[0], said


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    FUZZ = ROOT / "tests/tools/fuzz.py"
    tap.run([
        ("fuzz prints the executions of a target without finding",
         fuzz_prints_executions_of_a_target_without_finding),
        ("fuzz fails on a finding and says where it is",
         fuzz_fails_on_a_finding_and_says_where_it_is),
        ("fuzz fails on a target that executed nothing",
         fuzz_fails_on_a_target_that_executed_nothing),
        ("fuzz refuses an unknown target by name", fuzz_refuses_an_unknown_target_by_name),
        ("fuzz runs a target that is named twice once",
         fuzz_runs_a_target_that_is_named_twice_once),
        ("fuzz ends its targets with itself", fuzz_ends_its_targets_with_itself),
        ("each edit of the later release applies to this tree",
         each_edit_of_the_later_release_applies_to_this_tree),
        ("lint wants commits of area, verb and reason", lint_wants_commits_of_area_verb_and_reason),
        ("lint wants one row for each unit test, by name",
         lint_wants_a_program_for_each_unit_test),
    ])
