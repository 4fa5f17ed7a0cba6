#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf mesh --bandwidth` between machines whose links have a known rate.

    perf_rates_test.py TOCSIN-PERF few|many

Each machine is a network namespace with a host name of its own on one switch. Its cable has a
token bucket each way, and the processes have priority over other load. So the rates do not depend
on the processors.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import lab_ends
import netns
import patience
from netns import ip

PART = sys.argv[2]
# A window is in flight for longer than a busy machine delays a process.
RATE_MBITS, SLOW_SHARE = {"few": 10, "many": 40}[PART], 0.5
netns.CASE_SECONDS_MAX = 400
QUEUE_BYTES = 8 << 20  # more than is ever in flight, so that no packet is lost


def shape(number, rate_mbits):
    """Limits the cable of a machine in both directions."""
    words = f"root tbf rate {rate_mbits}mbit burst 16kb limit {QUEUE_BYTES}"
    for place in (["-n", f"m{number}", "qdisc", "replace", "dev", "eth0"],
                  ["qdisc", "replace", "dev", f"p{number}"]):
        subprocess.run(["tc", *place, *words.split()], check=True)


def make_machines(count, slow):
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    ip("link set lo up", "link add br0 type bridge", "link set br0 up")
    for number in range(count):
        subprocess.run(["ip", "netns", "add", f"m{number}"], check=True)
        ip(f"link add p{number} type veth peer name eth0 netns m{number}",
           f"link set p{number} master br0 up")
        for line in ("link set lo up", "link set eth0 up",
                     f"addr add 10.0.0.{number + 1}/24 dev eth0"):
            subprocess.run(["ip", "-n", f"m{number}", *line.split()], check=True)
        shape(number, RATE_MBITS * (SLOW_SHARE if number == slow else 1))
        netns.wait_for(lambda n=number: netns.is_running(f"p{n}"), f"p{number} to run")


def start(number, count, directory, *arguments):
    """Process `number` of the mesh, on a machine that is named after its number."""
    command = [lab_ends.PERF, "mesh", "--bandwidth", "--policy", "event", "--depth", "4",
               "--rank", str(number), "--ranks", str(count), "--rendezvous", "10.0.0.1",
               "--token-file", f"{directory}/token", *lab_ends.PATIENT, *arguments]
    return subprocess.Popen(
        ["nice", "-n", "-15", "ip", "netns", "exec", f"m{number}", "unshare", "--uts", "sh", "-c",
         f'hostname m{number}; exec "$@"', "sh", *command],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def play(count, slow, *arguments):
    """(status, text, JSON) of a mesh."""
    make_machines(count, slow)
    with tempfile.TemporaryDirectory() as directory:
        path, token = (pathlib.Path(directory) / name for name in ("m.json", "token"))
        token.write_text("0123456789abcdef" * 2 + "\n")
        token.chmod(0o600)
        first = start(0, count, directory, "--json", str(path), *arguments)
        others = [start(number, count, directory, *arguments) for number in range(1, count)]
        out, err = first.communicate(timeout=patience.HANG_SECONDS)
        for other in others:
            _, said = other.communicate(timeout=patience.HANG_SECONDS)
            assert other.returncode == 0, (other.args, other.returncode, said, out, err)
        verified = lab_ends.run("verify", str(path))
        assert verified.returncode == 0, (verified, out, err)
        print("".join(f"# {line}\n" for line in out.splitlines()), end="", flush=True)
        assert max(map(len, out.splitlines())) <= 80, out
        return first.returncode, out, json.loads(path.read_text())


def check_slow_process(status, out, result, count, slow):
    summary = result["summary"]
    assert status == 1, (status, out)
    assert summary["measured"] == summary["wanted"] == count * (count - 1), summary
    cause = summary["causes"][0]
    assert (cause["kind"], cause["one"]) == ("node", slow), out
    assert cause["cells"] >= 0.9 * cause["of"], out
    # The time of a MiB doubles if the rate halves.
    assert abs(cause["ratio"] * SLOW_SHARE - 1) < 0.15, out
    assert f"process {slow} (m{slow}), from it and to it" in out, out
    rates = [cell["figures"]["p50_gbits"] for cell in result["cells"]
             if slow not in (cell["from"], cell["to"])]
    assert all(rate is None or rate * 1e3 < RATE_MBITS * 1.05 for rate in rates), out


def one_slow_link_among_four_is_named():
    """One slow link among four machines is named with its share of the rate."""
    check_slow_process(*play(4, 2), 4, 2)


def one_slow_link_among_sixteen_is_named():
    """One slow link among sixteen machines is named with its share of the rate."""
    check_slow_process(*play(16, 11), 16, 11)


netns.run({"few": [one_slow_link_among_four_is_named],
           "many": [one_slow_link_among_sixteen_is_named]}[PART])
