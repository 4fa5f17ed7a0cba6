#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A soak that is long enough to see that soaking works.

    soak_test.py BUILD-ROOT
"""

import pathlib
import subprocess
import sys

import tap

SECONDS = 20
SOAK = pathlib.Path(__file__).parent.parent / "tools" / "soak.py"


def short_soak(build):
    done = subprocess.run([sys.executable, SOAK, build,
                           str(SECONDS), "7"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr


if __name__ == "__main__":
    tap.run([("a cluster with a fault a second has no false death and heals",
              lambda: short_soak(sys.argv[1]))])
