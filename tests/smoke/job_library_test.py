#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""libtocsin.so as others find it: its names, what it needs, and its header in C and C++.

    job_library_test.py SOURCE-ROOT LIBRARY RING
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

NEWEST = (2, 17)
# Nothing but these is needed: no library of ours, no other.
NEEDED = {"libc.so.6", "libpthread.so.0", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"}
SANITIZERS = re.compile(r"lib(asan|tsan|ubsan|m|gcc_s|dl|rt)\.so")


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def sanitized():
    return SANITIZERS.search(said("readelf", "-d", LIBRARY)) is not None


def library_asks_for_no_symbol_that_is_newer_than_glibc_2_17():
    if sanitized():
        raise tap.Skip("a sanitizer brings newer ones")
    versions = set(re.findall(r"GLIBC_(\d+)\.(\d+)", said("objdump", "-T", LIBRARY)))
    assert versions
    newer = [version for version in versions if tuple(map(int, version)) > NEWEST]
    assert not newer, newer


def library_needs_the_c_library_and_its_threads_alone():
    if sanitized():
        raise tap.Skip("a sanitizer is needed as well")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", said("readelf", "-d", LIBRARY)))
    assert needed <= NEEDED, needed


def library_exports_what_its_header_declares_and_no_more():
    header = pathlib.Path(ROOT, "lib/job/include/tocsin/job.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"\b(tocsin_\w+)\(", re.sub(r"//[^\n]*|typedef [^;]*;", "", header)))
    exported = set(re.findall(r"\b(tocsin_\w+)$", said("nm", "-D", "--defined-only", LIBRARY)
                              .replace("@@TOCSIN_1", ""), re.M))
    assert exported == declared, exported ^ declared


def manual_names_each_call():
    manual = pathlib.Path(ROOT, "lib/job/man/libtocsin.3.in").read_text(encoding="utf-8")
    text = manual.split(".SH DESCRIPTION")[1]
    calls = re.findall(r"\b(tocsin_\w+)$", said("nm", "-D", "--defined-only", LIBRARY)
                       .replace("@@TOCSIN_1", ""), re.M)
    family = {"tocsin_counter_started", "tocsin_counter_completed"}
    missing = [call for call in calls if f"{call} ()" not in text and call not in family]
    assert not missing, missing


def compiles(compiler, language, text):
    with tempfile.TemporaryDirectory(prefix="tocsin-job-") as name:
        words = [compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic",
                 "-I", str(ROOT / "lib/job/include"), "-c", "-o", f"{name}/user.o", "-"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def header_is_of_c99_and_of_c11():
    for standard in ("c99", "c11"):
        compiles("gcc", "c", f"#include <tocsin/job.h>\nint {standard}_user;\n")


def header_is_of_cxx():
    if shutil.which("g++") is None:
        raise tap.Skip("g++ is not installed")
    compiles("g++", "c++", "#include <tocsin/job.h>\nint user() "
             "{ tocsin_comm_config c; tocsin_comm_config_init(&c); return (int)c.size; }\n")


def job_without_an_agent_runs_as_if_there_were_no_library():
    environment = {**os.environ, "TOCSIN_JOB_SOCKET": "/nonexistent/job.sock"}
    done = subprocess.run([RING, "--ranks", "3", "--seconds", "1"], env=environment,
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done
    assert done.stderr == "", done.stderr


if __name__ == "__main__":
    ROOT, LIBRARY, RING = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    tap.run([(function.__name__.replace("_", " "), function) for function in (
        library_asks_for_no_symbol_that_is_newer_than_glibc_2_17,
        library_needs_the_c_library_and_its_threads_alone,
        library_exports_what_its_header_declares_and_no_more,
        manual_names_each_call,
        header_is_of_c99_and_of_c11,
        header_is_of_cxx,
        job_without_an_agent_runs_as_if_there_were_no_library,
    )])
