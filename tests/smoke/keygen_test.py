#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tocsin keygen: the files it makes, what it refuses, and a replacement from end to end.

    keygen_test.py TOCSIN
"""

import os
import pathlib
import pty
import re
import stat
import subprocess
import sys
import tempfile

import tap

TOCSIN = sys.argv[1]
COLUMNS_MAX = 100
LINE = re.compile(r"^tocsin-key-1 ([0-9a-f]{64})$", re.MULTILINE)
ID = re.compile(r"^  ([0-9a-f]{16})  (.*)$", re.MULTILINE)
IN_USE, ACCEPTED = "starts connections", "is accepted"


def keygen(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([TOCSIN, "keygen", *map(str, arguments)], text=True, stdout=stdout,
                          stderr=subprocess.PIPE, check=False)


def expect(got, wanted):
    assert got == wanted, f"got {got!r}, not {wanted!r}"


def expect_done(*arguments):
    done = keygen(*arguments)
    expect((done.returncode, done.stderr), (0, ""))
    for line in done.stdout.splitlines():
        assert len(line) <= COLUMNS_MAX, line
    return done.stdout


def expect_refused(status, words, *arguments):
    done = keygen(*arguments)
    expect((done.returncode, done.stdout), (status, ""))
    assert words in done.stderr, done.stderr
    expect(done.stderr.count("\n"), 1)


def in_place(test):
    def run():
        with tempfile.TemporaryDirectory(prefix="tocsin-keygen-") as place:
            test(pathlib.Path(place))
    run.__name__ = test.__name__
    return run


def keys_in(path):
    return LINE.findall(path.read_text(encoding="ascii"))


def a_new_file_is_for_its_owner_only_and_says_what_comes_next(place):
    path = place / "key"
    said = expect_done("--output", path)
    status = path.lstat()
    expect((stat.S_IMODE(status.st_mode), status.st_uid), (0o600, os.geteuid()))
    expect(len(keys_in(path)), 1)
    assert keys_in(path)[0] not in said, "the key is shown"
    assert str(path) in said and "every node" in said and "tocsind" in said, said
    expect([role for _, role in ID.findall(said)], [IN_USE])
    expect(os.listdir(place), ["key"])


def no_two_keys_are_the_same(place):
    for name in "ab":
        expect_done("--output", place / name)
    assert keys_in(place / "a") != keys_in(place / "b")


def a_file_that_is_there_is_not_overwritten(place):
    path = place / "key"
    expect_done("--output", path)
    before = path.read_bytes()
    expect_refused(1, "File exists; an existing file is never overwritten: see --rotate",
                   "--output", path)
    expect(path.read_bytes(), before)


def a_place_that_does_not_do_is_named(place):
    expect_refused(1, f'"{place}/no/key": cannot find its directory: No such file or directory: '
                   "create the directory first, with mode 0755", "--output", place / "no" / "key")
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    expect_refused(1, f'"{place}/open": other users can write to this directory (mode 0777)',
                   "--output", place / "open" / "key")
    expect(os.listdir(place / "open"), [])


def the_default_directory_is_made_if_it_is_missing():
    if os.geteuid() != 0:
        raise tap.Skip("an empty /etc needs root")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'umask 077; mount -t tmpfs none /etc && "$0" keygen && '
         'chmod 0755 /etc && stat -c "%a %n" /etc/tocsin /etc/tocsin/tocsin.key; '
         '"$0" keygen --show', TOCSIN],
        capture_output=True, text=True, check=False)
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        raise tap.Skip(done.stderr)
    expect((done.returncode, done.stderr), (0, ""))
    for words in ("Made the directory /etc/tocsin", "755 /etc/tocsin\n",
                  "600 /etc/tocsin/tocsin.key\n"):
        assert words in done.stdout, done.stdout


def a_replacement_goes_through_its_steps_and_ends_with_the_new_key(place):
    path = place / "key"
    expect_done("--output", path)
    old, = keys_in(path)
    path.chmod(0o400)
    roles = [IN_USE, ACCEPTED]
    said = expect_done("--output", path, "--rotate", "add")
    first, new = keys_in(path)
    expect((first, [role for _, role in ID.findall(said)]), (old, roles))
    assert "run --rotate swap" in said, said
    said = expect_done("--output", path, "--rotate", "swap")
    expect(keys_in(path), [new, old])
    assert "run --rotate drop" in said, said
    said = expect_done("--output", path, "--rotate", "drop")
    expect((keys_in(path), len(ID.findall(said))), ([new], 1))
    expect(stat.S_IMODE(path.stat().st_mode), 0o400)
    expect(os.listdir(place), ["key"])


def a_new_key_can_be_taken_back_before_it_is_used(place):
    path = place / "key"
    expect_done("--output", path)
    old = keys_in(path)
    expect_done("--output", path, "--rotate", "add")
    expect_done("--output", path, "--rotate", "drop")
    expect(keys_in(path), old)


def a_step_that_makes_no_sense_changes_nothing(place):
    path = place / "key"
    expect_done("--output", path)
    before = path.read_bytes()
    expect_refused(1, "there is one key; --rotate add comes first",
                   "--output", path, "--rotate", "swap")
    expect_refused(1, "there is one key; the last one is never dropped",
                   "--output", path, "--rotate", "drop")
    expect_refused(2, '"twist" is neither add, swap nor drop',
                   "--output", path, "--rotate", "twist")
    expect(path.read_bytes(), before)
    expect_done("--output", path, "--rotate", "add")
    expect_refused(1, "there are two keys already", "--output", path, "--rotate", "add")


def show_checks_the_file_and_prints_ids_alone(place):
    path = place / "key"
    made = ID.findall(expect_done("--output", path))
    shown = expect_done("--output", path, "--show")
    expect(ID.findall(shown), made)
    assert keys_in(path)[0] not in shown, "the key is shown"
    path.chmod(0o640)
    expect_refused(1, f'"{path}": mode 0640; it must be 0600 or 0400: run chmod 0600',
                   "--output", path, "--show")
    expect_refused(1, "mode 0640", "--output", path, "--rotate", "add")
    path.chmod(0o600)
    path.write_text("tocsin-key-1 secret\n", encoding="ascii")
    expect_refused(1, f'"{path}": line 1: tocsin-key-1 must be followed',
                   "--output", path, "--show")
    assert "secret" not in keygen("--output", path, "--show").stderr
    path.unlink()
    expect_refused(1, f'"{path}": cannot open it as user {os.geteuid()}: No such file',
                   "--output", path, "--show")


def standard_output_gets_a_key_file_and_nothing_else():
    done = keygen("--output", "-")
    expect((done.returncode, done.stderr, len(LINE.findall(done.stdout))), (0, "", 1))
    for line in done.stdout.splitlines():
        assert line.startswith("#") or LINE.match(line), line
    with open("/dev/full", "w", encoding="ascii") as full:
        expect(keygen("--output", "-", stdout=full).returncode, 1)


def a_terminal_gets_no_key():
    ours, theirs = pty.openpty()
    try:
        done = keygen("--output", "-", stdout=theirs)
        expect(done.returncode, 2)
        assert "standard output is a terminal" in done.stderr, done.stderr
        os.set_blocking(ours, False)
        try:
            said = os.read(ours, 4096)
        except BlockingIOError:
            said = b""
        expect(said, b"")
    finally:
        os.close(ours)
        os.close(theirs)


def options_that_contradict_each_other_are_refused():
    expect_refused(2, "--rotate and --show do not go together", "--rotate", "add", "--show")
    expect_refused(2, "--output - does not go with --show", "--output", "-", "--show")
    expect_refused(2, "--output - does not go with --rotate", "--output", "-", "--rotate", "add")
    expect_refused(1, '"": this is not a file name', "--output=")


def the_help_tells_the_procedure():
    said = expect_done("--help")
    for word in ("--output PATH", "--rotate STEP", "--show", "/etc/tocsin/tocsin.key", "0600",
                 "keygen --rotate swap", "Exit status"):
        assert word in said, word


TESTS = [
    in_place(a_new_file_is_for_its_owner_only_and_says_what_comes_next),
    in_place(no_two_keys_are_the_same),
    in_place(a_file_that_is_there_is_not_overwritten),
    in_place(a_place_that_does_not_do_is_named),
    the_default_directory_is_made_if_it_is_missing,
    in_place(a_replacement_goes_through_its_steps_and_ends_with_the_new_key),
    in_place(a_new_key_can_be_taken_back_before_it_is_used),
    in_place(a_step_that_makes_no_sense_changes_nothing),
    in_place(show_checks_the_file_and_prints_ids_alone),
    standard_output_gets_a_key_file_and_nothing_else,
    a_terminal_gets_no_key,
    options_that_contradict_each_other_are_refused,
    the_help_tells_the_procedure,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
