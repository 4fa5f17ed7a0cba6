#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./dev run: a cluster by hand ends without a trace.

    dev_run_test.py RUN-PY BUILD-ROOT
"""

import pathlib
import re
import signal
import subprocess
import sys

import patience
import tap

RUN, BUILD = sys.argv[1:3]


def two_interrupts_in_a_row_stop_all():
    with subprocess.Popen([sys.executable, RUN, BUILD, "2"], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        said = ""
        while "stop all:" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=patience.HANG_SECONDS)
    assert process.returncode == 0 and rest == "", (process.returncode, rest)
    directory = pathlib.Path(re.search(r"logs in (/\S+)/n\*/log", said)[1])
    assert not directory.exists(), directory


tap.run([("two interrupts in a row stop all and leave no file", two_interrupts_in_a_row_stop_all)])
