#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs test programs in one guest, all in one boot, and hands on what they say.

    guest_test.py DEVICES PROGRAM...

DEVICES is a word of `./dev vm --devices`. `./dev vm-ports` runs ports_long_test.py behind
those that `./dev test` runs in the guest with ports.
To add one: a file tests/vm/guest/NAME_test.c (cmocka, as any unit test) or NAME_test.py (tap.py),
and NAME in its list in tests/vm/meson.build. It runs as root and has twenty minutes; the devices
and their wire are as `./dev vm --help` says, and those behind it must find them so. What it breaks
otherwise is gone with the guest.
"""

import os
import pathlib
import sys

import vm

HANDED_ON = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "PYTHONPATH", "TOCSIN_BUILD",
             "TOCSIN_OPERATIONS")
SECONDS_MAX = 3600  # for what hangs when nobody else watches: the test has a limit of its own


def main(devices, *programs):
    vm.skip_if_unavailable()
    environment = [f"{name}={os.environ[name]}" for name in HANDED_ON if name in os.environ]
    runner = pathlib.Path(__file__).parent / "guest" / "run.py"
    return vm.main(["--devices", devices, "--timeout", str(SECONDS_MAX), "--", "env", *environment,
                    "CMOCKA_MESSAGE_OUTPUT=TAP", "python3", str(runner), *programs])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
