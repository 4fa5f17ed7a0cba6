#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`./dev bench soft-rxe`: the software device beside the kernel's Soft-RoCE, in one guest.

    soft_rxe_bench.py BUILD-ROOT [--json | --help]

Both are driven by the same program (tocsin-soft-bench --rxe), in turn, each over a veth pair of its
own. The guest's processor is an emulated one: only the ratio says something. Exit status: the
program's, or what ./dev vm says of a guest that could not be had.
"""

import pathlib
import subprocess
import sys

SECONDS_MAX = 580


def main(build, *options):
    program = str(pathlib.Path(build, "perf", "bench", "tocsin-soft-bench").resolve())
    if "--help" in options:
        return subprocess.run([program, "--help"], check=False).returncode
    vm = str(pathlib.Path(__file__).parent / "vm.py")
    return subprocess.run(
        [sys.executable, vm, "--timeout", str(SECONDS_MAX), "--", program, "--rxe", *options],
        stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
