#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs rdma-core's own tests of libibverbs, from Debian's python3-pyverbs, on a software device.

pyverbs_test.py TOCSIN

Vendor-specific tests are excluded. Each skipped test needs a known reason, matched by its text. A
new reason is a failure, and so is a test that is no longer run.
"""

import gzip
import pathlib
import re
import shutil
import sys
import tempfile

import tap
from pairs import Kit

SUITE = pathlib.Path("/usr/share/doc/rdma-core/tests")
PYTHON = "/usr/bin/python3"  # the interpreter of Debian's packages
KIT = Kit(sys.argv[1])
VENDORS = re.compile(r"test_(mlx5|efa)")
# A test and its verdict; output of the test may stand between.
VERDICT = re.compile(r"^(test_\w+) \((\S+?)\)(?:.*\n)*?.*?"
                     r"\b(ok|FAIL|ERROR|skipped (['\"].*['\"]))$", re.MULTILINE)
PASS_MIN = 38

# Known reasons of skips, with the text of the skip.
REASONS = {
    "datagrams, raw packets, XRC and UC come later":
        r"UD QP|UC QP|Raw Packet QP|Create QP type [48] |XRCD|Create AH",
    "ibv_wr_...() comes later": r"Extended QP",
    "of extended queues time stamps are there, not all that may be asked for": r"Extended CQ",
    "pages are not faulted in: on-demand paging is for hardware": r"ODP",
    "there is no memory on the device": r"Device memory",
    "memory windows are not offered": r"MW access|memory window|additional access flags",
    "a region is as it was registered": r"Rereg MR",
    "parent and thread domains are not offered": r"Parent Domain",
    "the connection manager asks the kernel": r"doesn't have net interface",
    "there is no empty GID index to try": r"All gid indices populated",
    "this machine lacks it": r"dmabuf|huge pages|cuda",
}


def unpack(place):
    for path in SUITE.iterdir():
        if VENDORS.match(path.name):
            continue
        if path.suffix == ".gz":
            (place / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.suffix == ".py":
            shutil.copy(path, place)


def reason_of(words):
    found = [reason for reason, pattern in REASONS.items() if re.search(pattern, words)]
    assert found, f"a skip for a reason that is not known: {words}"
    return found[0]


def rdma_cores_own_tests_pass_or_are_skipped_for_a_known_reason():
    if not SUITE.is_dir() or not list(pathlib.Path("/usr/lib/python3").rglob("pyverbs/pd.*")):
        raise tap.Skip("python3-pyverbs is not installed")
    with tempfile.TemporaryDirectory(prefix="tocsin-pyverbs-") as directory:
        place = pathlib.Path(directory, "tests")
        place.mkdir()
        unpack(place)
        done = KIT.run(PYTHON, place / "run_tests.py", "--dev", "soft0", "--gid", "0", "-v",
                       TOCSIN_SOFT_SAY="0", PYTHONDONTWRITEBYTECODE="1", PYTHONPATH="")
    verdicts = [(found[1], found[3], found[4]) for found in VERDICT.finditer(done.stderr)]
    ran = int(re.search(r"^Ran (\d+) tests", done.stderr, re.MULTILINE).group(1))
    skipped = {}
    for name, verdict, words in verdicts:
        assert verdict not in ("FAIL", "ERROR"), (name, done.stderr)
        if words:
            skipped.setdefault(reason_of(words), []).append(name)
    passed = sum(verdict == "ok" for _, verdict, _ in verdicts)
    assert done.returncode == 0, done.stderr
    assert passed + sum(map(len, skipped.values())) == len(verdicts)
    assert len(verdicts) >= ran - 2, (len(verdicts), ran, done.stderr)
    assert passed >= PASS_MIN, (passed, done.stderr)
    print(f"# {ran} tests: {passed} passed, {ran - passed} skipped")
    for reason, names in sorted(skipped.items(), key=lambda item: -len(item[1])):
        print(f"# {len(names):3} {reason}")


if __name__ == "__main__":
    tap.run([("rdma-core's own tests pass or are skipped for a known reason",
              rdma_cores_own_tests_pass_or_are_skipped_for_a_known_reason)])
