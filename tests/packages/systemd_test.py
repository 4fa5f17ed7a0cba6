#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages under a real systemd: runs systemd_guest.py in a guest of ./dev vm whose
process 1 is systemd.

    systemd_test.py RING FAKE-CUDA
"""

import os
import sys

import deb_test
import vm

SECONDS_MAX = 3600  # emulated, on a machine that may be busy


def main(ring, fake_cuda):
    vm.skip_if_unavailable()
    guest = deb_test.ROOT / "tests" / "packages" / "systemd_guest.py"
    return vm.main(["--systemd", "--timeout", str(SECONDS_MAX), "--", "env",
                    f"PYTHONPATH={os.environ['PYTHONPATH']}", "python3", str(guest),
                    str(deb_test.built()), ring, fake_cuda])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
