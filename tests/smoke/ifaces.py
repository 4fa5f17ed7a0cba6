# SPDX-License-Identifier: BSD-3-Clause
"""Asks `tocsin ifaces`, and says what it answered in few words."""

import json
import os
import subprocess
import sys

TOCSIN = sys.argv[1]
SETTINGS = ("TOCSIN_SOCKET_IFNAME", "TOCSIN_SOCKET_FAMILY", "NCCL_SOCKET_IFNAME",
            "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID")


def run(*arguments, **environment):
    """One run, with no setting but these."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [TOCSIN, "ifaces", *arguments], env={**kept, **environment}, text=True,
        capture_output=True, check=False)


def named(candidate):
    """eth0 10.0.0.1/24, or eth0 without an address."""
    if "address" not in candidate:
        return candidate["interface"]
    return f"{candidate['interface']} {candidate['address']}/{candidate['prefix_bits']}"


def answer(*arguments, status=0, **environment):
    """The whole answer of a run that has to exit with status."""
    done = run("--explain", "--json", *arguments, **environment)
    assert done.returncode == status, (done.returncode, done.stderr)
    return json.loads(done.stdout)


def chosen(*arguments, status=0, **environment):
    """What was chosen, in order."""
    return [named(one) for one in answer(*arguments, status=status, **environment)["chosen"]]


def nccl(status=0, **environment):
    """What NCCL's rules choose."""
    return chosen("--rules", "nccl", status=status, **environment)


def reasons(*arguments, **environment):
    """Of every candidate why it was taken or dropped."""
    done = run("--explain", "--json", *arguments, **environment)
    return {named(one): one["reason"] for one in json.loads(done.stdout)["candidates"]}


def expect(found, wanted):
    """Equality that shows both."""
    assert found == wanted, f"found {found}, wanted {wanted}"


def expect_refusal(status, words, *arguments, **environment):
    """A run that exits with status and has these words on stderr."""
    done = run(*arguments, **environment)
    assert done.returncode == status and words in done.stderr, (done.returncode, done.stderr)
