#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the selection of ./dev lint: since which commit, and which units again.

The repositories and trees are made for the test. gcc reports the files that a unit reads. The
analyser is a script that logs its arguments and complains about the word BUG.
"""

import contextlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import time

import clean_cache
import lint
import lint_history
import tap
import tidy

ANALYSER = """#!/bin/sh
printf '%s\\n' "$2 $*" >>"$(dirname "$0")/calls"
[ ! -f "$(dirname "$0")/meanwhile" ] || sh "$(dirname "$0")/meanwhile"
! grep -q BUG "$2" || { echo "$2: a bug"; exit 1; }
"""
FILES = {
    "inc/a.h": "#pragma once\n",
    "inc/b.h": "#include <a.h>\n",
    "first/empty": "",
    "src/one.c": "#include <b.h>\n",
    "src/two.c": "#include <a.h>\n",
    "src/three.c": "int three;\n",
    ".clang-tidy": "Checks: all\n",
    "src/.clang-tidy": "Checks: most\n",
}
FLAGS = ["-Iprivate.p", "-I../first", "-I../inc", '-DHERE="@/here"']


class Bed:
    """A directory with its own cache and analyser, and any number of trees."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()
        self.analyser = self.directory / "analyser"
        self.calls = self.directory / "calls"
        self.analyser.write_text(ANALYSER, encoding="utf-8")
        self.analyser.chmod(0o755)

    def tree(self, name="tree", commands=()):
        root = self.directory / name
        for file, text in FILES.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        build = root / "build"
        build.mkdir()
        commands = [*((f"src/{source}.c", []) for source in ("one", "two", "three")), *commands]
        entries = []
        for source, extra in commands:
            flags = [flag.replace("@", str(root)) for flag in [*FLAGS, *extra]]
            command = shlex.join(["gcc", *flags, "-o", "x", "-c", f"../{source}"])
            entries.append({"directory": str(build), "file": f"../{source}", "command": command})
        (build / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
        return root

    def lint(self, root, changed=None, analyser="1"):
        """Run lint anew. Returns the analysed sources, the complaints, and the summary."""
        with contextlib.suppress(FileNotFoundError):
            self.calls.unlink()
        names = sorted(str(path.relative_to(root)) for path in root.rglob("*")
                       if path.is_file() and not path.is_relative_to(root / "build"))
        os.chdir(root)
        said, note = tidy.run(root, "build", names, changed, analyser, clean_cache.Digests())
        calls = self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []
        return sorted(pathlib.Path(call.split()[0]).stem for call in calls), said, note


@contextlib.contextmanager
def bed():
    before = tidy.TIDY, os.environ.get("XDG_CACHE_HOME"), os.getcwd()
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        made = Bed(name)
        tidy.TIDY = str(made.analyser)
        os.environ["XDG_CACHE_HOME"] = f"{name}/cache"
        try:
            yield made
        finally:
            os.chdir(before[2])
            tidy.TIDY = before[0]
            os.environ.pop("XDG_CACHE_HOME")
            if before[1] is not None:
                os.environ["XDG_CACHE_HOME"] = before[1]


def append(path, text):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def a_unit_is_analysed_again_when_a_file_it_read_changes():
    with bed() as made:
        root = made.tree()
        assert made.lint(root)[0] == ["one", "three", "two"]
        for file, again in (("nothing", []), ("src/three.c", ["three"]), ("inc/b.h", ["one"]),
                            ("inc/a.h", ["one", "two"]), ("first/empty", []),
                            (".clang-tidy", ["one", "three", "two"])):
            if file != "nothing":
                append(root / file, "\n")
            assert made.lint(root)[0] == again, file
        assert made.lint(root, analyser="2")[0] == ["one", "three", "two"]


def nothing_is_compiled_where_nothing_changed():
    with bed() as made:
        root = made.tree()
        made.lint(root)
        path = root / "build/compile_commands.json"
        text = path.read_text(encoding="utf-8").replace("gcc ", "no-such-compiler ")
        path.write_text(text, encoding="utf-8")
        # A file of the same name in a directory that no unit searches.
        (root / "elsewhere").mkdir()
        (root / "elsewhere/a.h").touch()
        assert made.lint(root) == ([], [], "3 remembered")


def another_clone_finds_what_one_left():
    with bed() as made:
        made.lint(made.tree("one"))
        assert made.lint(made.tree("another-of-other-length")) == ([], [], "3 remembered")


def a_state_that_comes_back_is_not_analysed_again():
    with bed() as made:
        root = made.tree()
        before = (root / "src/one.c").read_text(encoding="utf-8")
        made.lint(root)
        append(root / "src/one.c", "#include <stddef.h>\n")
        assert made.lint(root)[0] == ["one"]
        (root / "src/one.c").write_text(before, encoding="utf-8")
        assert made.lint(root)[0] == []


def a_header_that_hides_another_is_seen():
    with bed() as made:
        root = made.tree()
        made.lint(root)
        (root / "first/a.h").write_text("// in front of inc/a.h\n", encoding="utf-8")
        assert made.lint(root)[0] == ["one", "two"]
        # After its removal inc/a.h is found again: a known state.
        (root / "first/a.h").unlink()
        assert made.lint(root)[0] == []


def a_header_beside_the_file_that_includes_it_by_quotes_is_seen():
    with bed() as made:
        root = made.tree()
        (root / "src/three.c").write_text('#include "a.h"\n', encoding="utf-8")
        made.lint(root)
        (root / "src/a.h").touch()
        assert made.lint(root)[0] == ["three"]


def a_unit_is_analysed_once_however_many_targets_compile_it_alike():
    with bed() as made:
        alike = [("src/one.c", ["-Iother.p"]), ("src/one.c", ["-I../src"]), ("src/one.c", [])]
        root = made.tree(commands=[*alike, ("src/one.c", ["-DOTHER"])])
        calls, _, note = made.lint(root)
        # The private directory has no header; src is not in this unit's search path.
        assert (calls, note) == (["one", "one", "three", "two"], "4 checked, 1 remembered")
        assert made.lint(root)[0] == []


def a_finding_is_told_again_until_it_is_mended():
    with bed() as made:
        root = made.tree()
        append(root / "src/two.c", "// BUG\n")
        for _ in range(2):
            assert made.lint(root)[1] == [f"{root}/src/two.c: a bug"]
        (root / "src/two.c").write_text(FILES["src/two.c"], encoding="utf-8")
        assert made.lint(root)[:2] == (["two"], [])


def a_unit_that_does_not_compile_is_given_to_the_analyser():
    with bed() as made:
        root = made.tree()
        append(root / "src/two.c", "#include <no/such/header.h>\n")
        assert made.lint(root, changed=set())[0] == ["two"]
        assert made.lint(root)[0] == ["one", "three", "two"]


def what_was_edited_while_it_was_analysed_is_not_remembered():
    with bed() as made:
        root = made.tree()
        append(root / "src/three.c", "// BUG\n")
        script = made.directory / "meanwhile"
        script.write_text(f"sed -i /BUG/d '{root}/src/three.c'\n", encoding="utf-8")
        assert made.lint(root)[1] == []
        script.unlink()
        append(root / "src/three.c", "// BUG\n")
        assert made.lint(root)[1] == [f"{root}/src/three.c: a bug"]


def only_units_of_changed_files_are_analysed():
    with bed() as made:
        root = made.tree()
        for changed, wanted in ((set(), []), ({"inc/b.h"}, ["one"]), ({"inc/a.h"}, ["two"]),
                                ({"src/.clang-tidy"}, ["three"])):
            assert made.lint(root, changed)[0] == wanted, changed
        assert made.lint(root) == ([], [], "3 remembered")


def what_the_build_makes_itself_is_left_out():
    with bed() as made:
        root = made.tree(commands=[("build/made.c", [])])  # a generated file may not exist yet
        assert made.lint(root)[:2] == (["one", "three", "two"], [])


def what_no_run_used_for_a_month_is_removed():
    with bed() as made:
        root = made.tree()
        made.lint(root)
        cache = made.directory / "cache/tocsin/tidy"
        entries = sorted(cache.iterdir())
        old, used = time.time() - 31 * clean_cache.DAY_S, time.time() - 29 * clean_cache.DAY_S
        stranger = cache / "stranger"
        stranger.touch()
        os.utime(stranger, (old, old))
        for entry in entries:
            os.utime(entry, (used, used))
        assert made.lint(root)[0] == []
        assert sorted(cache.iterdir()) == entries
        assert all(entry.stat().st_mtime > used + clean_cache.DAY_S for entry in entries)


def without_a_cache_all_is_analysed():
    with bed() as made:
        root = made.tree()
        (made.directory / "cache").write_text("in the way", encoding="utf-8")
        for _ in range(2):
            assert made.lint(root)[0] == ["one", "three", "two"]
        (made.directory / "cache").unlink()
        made.lint(root)
        for entry in (made.directory / "cache/tocsin/tidy").iterdir():
            entry.write_text("{", encoding="utf-8")
        assert made.lint(root)[0] == ["one", "three", "two"]


def a_file_that_was_found_clean_is_judged_again_when_it_changes():
    with bed() as made:
        root = made.tree()

        def unknown(identity="1", save=True):
            clean = clean_cache.CleanFiles("check", identity, clean_cache.Digests(), root)
            names = clean.unknown(["src/one.c", "src/two.c"])
            clean.save(names if save else [])
            return names

        assert unknown(save=False) == ["src/one.c", "src/two.c"]
        assert unknown() == ["src/one.c", "src/two.c"]
        assert unknown() == []
        append(root / "src/two.c", "\n")
        assert unknown() == ["src/two.c"]
        assert unknown("2") == ["src/one.c", "src/two.c"]


class Repository:
    """A repository with one file, on which lint runs."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words):
        whole = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *words]
        done = subprocess.run(whole, cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, name, subject="lib: add a thing"):
        append_or_make(self.root / name, "text\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", subject, "-m", "It was missing.")
        return self.git("rev-parse", "HEAD")

    def passes(self, meanwhile=lambda: None):
        head = lint_history.clean_head(self.root)
        meanwhile()
        lint_history.remember(self.root, head)

    def commits(self):
        """Return the number of messages that lint checks."""
        before, lint.ROOT = lint.ROOT, self.root
        try:
            return lint.check_commits([])[1]
        finally:
            lint.ROOT = before

    def changed(self):
        base = lint_history.base(self.root)
        return base and sorted(lint_history.changed_since(self.root, base))


def append_or_make(path, text):
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


@contextlib.contextmanager
def repository():
    if shutil.which("git") is None:
        raise tap.Skip("git is not installed")
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        yield Repository(f"{name}/repository")


def lint_looks_at_what_changed_since_it_passed():
    with repository() as made:
        made.commit("one")
        assert (made.changed(), made.commits()) == (None, "1 commits")
        made.passes()
        assert (made.changed(), made.commits()) == ([], "0 commits")
        made.commit("two")
        append_or_make(made.root / "one", "more\n")
        append_or_make(made.root / "untracked", "")
        assert (made.changed(), made.commits()) == (["one", "two", "untracked"], "1 commits")
        # With uncommitted changes a passed run says nothing about the commit.
        made.passes()
        assert (made.changed(), made.commits()) == (["one", "two", "untracked"], "1 commits")


def lint_does_not_remember_a_commit_that_it_did_not_see_whole():
    with repository() as made:
        made.commit("one")
        made.passes(meanwhile=lambda: made.commit("two"))
        made.passes(meanwhile=lambda: append_or_make(made.root / "two", "more\n"))
        assert made.changed() is None
        made.commit("two")
        made.passes()
        assert made.changed() == []


def lint_after_a_rebase_looks_since_where_the_commits_part():
    with repository() as made:
        made.commit("one")
        made.commit("two")
        made.passes()
        made.git("commit", "-q", "--amend", "-m", "lib: add another thing", "-m", "Why.")
        made.commit("three")
        assert (made.changed(), made.commits()) == (["three", "two"], "2 commits")


def lint_remembers_for_each_of_several_branches():
    with repository() as made:
        made.commit("one")
        made.git("checkout", "-q", "-b", "left")
        made.commit("two")
        made.passes()
        made.git("worktree", "add", "-q", "-b", "right", "../right", "main")
        other = Repository.__new__(Repository)
        other.root = made.root.parent / "right"
        other.commit("three")
        assert other.changed() == ["three"]
        other.passes()
        assert other.changed() == [] and made.changed() == []


def lint_without_a_record_looks_at_what_no_remote_has():
    with repository() as origin:
        origin.commit("one", "Not a title as it should be")
        clone = Repository.__new__(Repository)
        clone.root = origin.root.parent / "clone"
        origin.git("clone", "-q", ".", str(clone.root))
        assert (clone.changed(), clone.commits()) == ([], "0 commits")
        clone.commit("two")
        assert (clone.changed(), clone.commits()) == (["two"], "1 commits")


def lint_without_record_and_remote_looks_since_the_accepted_history():
    before = lint_history.BASELINE
    with repository() as made:
        try:
            lint_history.BASELINE = made.commit("one", "Not a title as it should be")
            assert (made.changed(), made.commits()) == ([], "0 commits")
            made.commit("two")
            assert (made.changed(), made.commits()) == (["two"], "1 commits")
        finally:
            lint_history.BASELINE = before
        assert (made.changed(), made.commits()) == (None, "2 commits")


def lint_does_without_a_record_that_is_of_no_use():
    with repository() as made:
        made.commit("one")
        for text in ("", "not a commit\n", "f" * 40 + "\n", "-" * 40 + "\n"):
            (made.root / ".git/tocsin-lint-passed").write_text(text, encoding="ascii")
            assert (made.changed(), made.commits()) == (None, "1 commits"), text
        made.passes()
        assert made.changed() == []


def a_file_of_others_is_as_its_digest_says():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        folder = root / "vendor/plot"
        folder.mkdir(parents=True)
        (folder / "LICENSE").write_text("free\n", encoding="ascii")
        (folder / "plot.js").write_text("draw();\n", encoding="ascii")
        sums = subprocess.run(["sha256sum", "LICENSE", "plot.js"], cwd=folder, check=True,
                              capture_output=True, text=True).stdout
        (folder / "SHA256SUMS").write_text(sums, encoding="ascii")
        assert lint.check_vendor(None, root) == ([], "2 files")
        append(folder / "plot.js", "send();\n")
        (folder / "more.js").write_text("\n", encoding="ascii")
        (folder / "LICENSE").unlink()
        said = [text.split(":")[0] for text in lint.check_vendor(None, root)[0]]
        assert said == ["vendor/plot/LICENSE", "vendor/plot/more.js", "vendor/plot/plot.js",
                        "vendor/plot"]


if __name__ == "__main__":
    tap.run([
        ("a unit is analysed again when a file it read changes",
         a_unit_is_analysed_again_when_a_file_it_read_changes),
        ("nothing is compiled where nothing changed", nothing_is_compiled_where_nothing_changed),
        ("another clone finds what one left", another_clone_finds_what_one_left),
        ("a state that comes back is not analysed again",
         a_state_that_comes_back_is_not_analysed_again),
        ("a header that hides another is seen", a_header_that_hides_another_is_seen),
        ("a header beside the file that includes it by quotes is seen",
         a_header_beside_the_file_that_includes_it_by_quotes_is_seen),
        ("a unit is analysed once however many targets compile it alike",
         a_unit_is_analysed_once_however_many_targets_compile_it_alike),
        ("a finding is told again until it is mended", a_finding_is_told_again_until_it_is_mended),
        ("a unit that does not compile is given to the analyser",
         a_unit_that_does_not_compile_is_given_to_the_analyser),
        ("what was edited while it was analysed is not remembered",
         what_was_edited_while_it_was_analysed_is_not_remembered),
        ("only units of changed files are analysed", only_units_of_changed_files_are_analysed),
        ("what the build makes itself is left out", what_the_build_makes_itself_is_left_out),
        ("what no run used for a month is removed", what_no_run_used_for_a_month_is_removed),
        ("without a cache all is analysed", without_a_cache_all_is_analysed),
        ("a file that was found clean is judged again when it changes",
         a_file_that_was_found_clean_is_judged_again_when_it_changes),
        ("lint looks at what changed since it passed", lint_looks_at_what_changed_since_it_passed),
        ("lint does not remember a commit that it did not see whole",
         lint_does_not_remember_a_commit_that_it_did_not_see_whole),
        ("lint after a rebase looks since where the commits part",
         lint_after_a_rebase_looks_since_where_the_commits_part),
        ("lint remembers for each of several branches",
         lint_remembers_for_each_of_several_branches),
        ("lint without a record looks at what no remote has",
         lint_without_a_record_looks_at_what_no_remote_has),
        ("lint without record and remote looks since the accepted history",
         lint_without_record_and_remote_looks_since_the_accepted_history),
        ("lint does without a record that is of no use",
         lint_does_without_a_record_that_is_of_no_use),
        ("a file of others is as its digest says", a_file_of_others_is_as_its_digest_says),
    ])
