#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""libtocsin.so as others find it: its names, what it needs, and its header in C and C++.

    job_library_test.py SOURCE-ROOT LIBRARY RING
"""

import errno
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import cluster as clusters
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
    calls = re.sub(r"//[^\n]*|typedef [^;]*;|inline [^}]*}", "", header)
    declared = set(re.findall(r"\b(tocsin_\w+)\(", calls))
    exported = set(re.findall(r"\b(tocsin_\w+)$", said("nm", "-D", "--defined-only", LIBRARY)
                              .replace("@@TOCSIN_1", ""), re.M))
    assert exported == declared, exported ^ declared


def without_comments(name):
    text = pathlib.Path(ROOT, "lib/job/include/tocsin", name).read_text(encoding="utf-8")
    return re.sub(r"//[^\n]*", "", text)


def layout():
    """Return the lines of the layout: constants, sizes, members (offset and size), symbols"""
    headers = ("job.h", "job_page.h", "job_socket.h")
    prints = []
    for text in map(without_comments, headers):
        for name in re.findall(r"#define ((?:TOCSIN|JOB)_\w+) (?:\(?\d|\()", text):
            prints.append(f'printf("{name} %lu\\n", (unsigned long){name});')
        for body in re.findall(r"\benum \w+ {([^}]*)}", text):
            for name in re.findall(r"(\w+)(?: = \d+)?,", body):
                prints.append(f'printf("{name} %lu\\n", (unsigned long){name});')
        for struct, body in re.findall(r"\bstruct (\w+) {([^}]*)}", text):
            prints.append(f'printf("sizeof {struct} %zu\\n", sizeof(struct {struct}));')
            for member in re.findall(r"(\w+)(?:\[[^;]*\])?(?=[,;])", body):
                prints.append(f'printf("{struct}.{member} %zu %zu\\n", offsetof(struct {struct}, '
                              f"{member}), sizeof(((struct {struct} *)0)->{member}));")
    program = "".join(f"#include <tocsin/{name}>\n" for name in headers)
    program += f"#include <stdio.h>\nint main(void) {{ {' '.join(prints)} return 0; }}\n"
    with tempfile.TemporaryDirectory(prefix="tocsin-job-") as place:
        subprocess.run(["gcc", "-x", "c", "-I", str(ROOT / "lib/job/include"), "-o",
                        f"{place}/layout", "-"], input=program, text=True, check=True)
        lines = said(f"{place}/layout").splitlines()
    symbols = re.findall(r"\b(tocsin_\w+@@TOCSIN_\d+)$", said("nm", "-D", LIBRARY), re.M)
    return lines + [f"symbol {name}" for name in symbols]


def layout_is_that_of_programs_built_before():
    """Nothing moves, ends or changes its value. A struct may grow at its end."""
    path, now = pathlib.Path(ROOT, "lib/job/libtocsin.abi"), layout()
    if os.environ.get("TOCSIN_RENEW_ABI"):
        path.write_text("\n".join(now) + "\n", encoding="ascii")
    stored = path.read_text(encoding="ascii").splitlines()
    changed = [line for line in stored if line not in now and not line.startswith("sizeof ")]
    sizes = {line.split()[1]: int(line.split()[2]) for line in now if line.startswith("sizeof ")}
    changed += [line for line in stored if line.startswith("sizeof ") and
                sizes.get(line.split()[1], 0) < int(line.split()[2])]
    renew = "to accept: TOCSIN_RENEW_ABI=1 ./dev try job_library release"
    assert not changed, f"programs built with the old header break; {renew}: {changed}"
    added = [line for line in now if line not in stored]
    assert not added, f"not in lib/job/libtocsin.abi yet; {renew}: {added}"


def python_has_the_same_layout():
    sys.path.insert(0, str(ROOT / "lib/job/python"))
    binding = importlib.import_module("tocsin.binding")
    structs = {"tocsin_job_config": "_JobConfig", "tocsin_comm_config": "_CommConfig",
               "tocsin_counts": "_Counts"}
    compared = 0
    for line in layout():
        struct, dot, rest = line.partition(".")
        if not dot or struct not in structs:
            continue
        member, offset, size = rest.split()
        field = getattr(getattr(binding, structs[struct]), member)
        assert (field.offset, field.size) == (int(offset), int(size)), line
        compared += 1
    assert compared > 20


def python_refuses_calls_on_a_closed_job():
    """The handle is gone, so no call may reach the library with it."""
    sys.path.insert(0, str(ROOT / "lib/job/python"))
    binding = importlib.import_module("tocsin.binding")
    if sanitized():
        raise tap.Skip("Python cannot load a library with a sanitizer")
    job = binding.Job("/nonexistent/job.sock", library=LIBRARY)
    comm = job.register(comm_hash=1, size=1, rank=0)
    job.close()
    assert job.state() == comm.state() == ("alone", "closed")
    try:
        job.register(comm_hash=2, size=1, rank=0)
    except OSError as error:
        assert error.errno == errno.EBADF, error
    else:
        raise AssertionError("a closed job accepted a communicator")


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
             "{ tocsin_comm_config c; tocsin_comm_config_init(&c); "
             "tocsin_event e = TOCSIN_INIT(tocsin_event); return (int)(c.size + e.rank); }\n")


def job_without_an_agent_runs_as_if_there_were_no_library():
    environment = {**os.environ, "TOCSIN_JOB_SOCKET": "/nonexistent/job.sock"}
    done = subprocess.run([RING, "--ranks", "3", "--seconds", "1"], env=environment,
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done
    assert done.stderr == "", done.stderr


def process_state(pid):
    """R, S, T, Z and so on; nothing if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1][1]
    except FileNotFoundError:
        return ""


def ranks_end_with_the_job_that_started_them():
    """A frozen one as well."""
    environment = {**os.environ, "TOCSIN_JOB_SOCKET": "/nonexistent/job.sock"}
    with subprocess.Popen([RING, "--ranks", "4", "--freeze", "2", "--after", "0", "--seconds",
                           "3600"], env=environment, stdout=subprocess.DEVNULL) as ring:
        children = pathlib.Path(f"/proc/{ring.pid}/task/{ring.pid}/children")

        def states():
            return {pid: process_state(pid) for pid in children.read_text().split()}

        try:
            clusters.wait_until("a frozen rank", lambda: len(states()) == 4 and
                                "T" in states().values())
            ranks = list(states())
        finally:
            ring.kill()
    clusters.wait_until("all ranks to end", lambda: all(
        process_state(pid) in ("", "Z") for pid in ranks))


if __name__ == "__main__":
    ROOT, LIBRARY, RING = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    tap.run([(function.__name__.replace("_", " "), function) for function in (
        library_asks_for_no_symbol_that_is_newer_than_glibc_2_17,
        library_needs_the_c_library_and_its_threads_alone,
        library_exports_what_its_header_declares_and_no_more,
        layout_is_that_of_programs_built_before,
        python_has_the_same_layout,
        python_refuses_calls_on_a_closed_job,
        manual_names_each_call,
        header_is_of_c99_and_of_c11,
        header_is_of_cxx,
        job_without_an_agent_runs_as_if_there_were_no_library,
        ranks_end_with_the_job_that_started_them,
    )])
