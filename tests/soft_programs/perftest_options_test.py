# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the section on perftest in tocsin-perf(1).

perftest_options_test.py PAGE
"""

import pathlib
import re
import shutil
import subprocess
import sys

import patience
import tap

PROGRAMS = [f"ib_{operation}_{kind}" for operation in ("read", "write", "send", "atomic")
            for kind in ("lat", "bw")]


def options_of(program):
    """Return the names of each option in the program's help: "-a" and "--all"."""
    if shutil.which(program) is None:
        raise tap.Skip("perftest is not installed: ./dev setup test")
    done = subprocess.run([program, "--help"], text=True, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=patience.HANG_SECONDS)
    lines = re.findall(r"(?m)^ +(-[A-Za-z-].*)", done.stdout + done.stderr)
    found = set()
    for line in lines:
        found.update(re.match(r"(?:(-\w), )?(--[\w-]+)|(-\w)\b", line).groups())
    return found - {None}


def the_page_maps_each_option_of_perftest():
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    for markup, text in [("\\-", "-"), ("\\fB", ""), ("\\fR", "")]:
        page = page.replace(markup, text)
    section = page.partition(".SH FOR USERS OF PERFTEST")[2].partition("\n.SH ")[0]
    heads = " ".join(re.findall(r"(?m)^\.TP\n(.*)$", section))
    known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", heads))
    for program in PROGRAMS:
        options = options_of(program)
        assert len(options) > 40, (program, options)
        assert options <= known, (program, options - known)
        assert program in heads, program


tap.run([("the page maps each option of perftest", the_page_maps_each_option_of_perftest)])
