#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin devices` on this machine, whatever it has.

    devices_test.py TOCSIN FAKE-LIBCUDA
"""

import json
import os
import subprocess
import sys
import tempfile

import patience
import tap

TOCSIN = sys.argv[1]
FAKE_CUDA = sys.argv[2]
COLUMNS_MAX = 80


def devices(*arguments, **environment):
    return subprocess.run([TOCSIN, "devices", *arguments], text=True, capture_output=True,
                          check=False, timeout=patience.HANG_SECONDS,
                          env={**os.environ, **environment})


def names():
    """Of the kernel."""
    try:
        return set(os.listdir("/sys/class/infiniband"))
    except FileNotFoundError:
        return set()


def every_device_of_the_kernel_is_listed():
    done = devices("--json")
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    assert {one["name"] for one in answer["devices"]} == names(), (answer, names())
    assert answer["chosen"] == [one["name"] for one in answer["devices"] if one["chosen"]]
    assert all(one["usable"] or one["reason"] for one in answer["devices"]), answer


def a_machine_without_devices_says_so_and_that_is_no_failure():
    if names():
        raise tap.Skip("this machine has RDMA devices")
    done = devices()
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout == (
        "For auto: no device: this machine has no RDMA device\n"
        "Agents take the software device then, and tocsin soft-run gives it to programs.\n"), done
    answer = json.loads(devices("--json", "--explain").stdout)
    assert (answer["devices"], answer["agents_take"]) == ([], "soft0"), answer
    # Only who asked for one is told no.
    assert devices("--for", "auto").returncode == 1
    assert devices("--for", "cpu:0").returncode == 1
    assert devices("--for", "none").returncode == 0


def the_software_device_is_to_be_had_on_every_machine():
    for target in ("soft", "nic:soft0"):
        done = devices("--for", target)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "For soft: the software device" in done.stdout, done
        answer = json.loads(devices("--for", target, "--json").stdout)
        assert (answer["chosen"], answer["agents_take"]) == ([], "soft0"), answer


def text_and_json_name_the_same():
    for target in ("auto", "cpu:0", "soft", "none"):
        text = devices("--for", target, "--explain")
        answer = json.loads(devices("--for", target, "--json", "--explain").stdout)
        assert answer["for"] == target, answer
        chosen = {line.split()[1] for line in text.stdout.splitlines() if line.startswith("* ")}
        assert chosen == set(answer["chosen"]), (text.stdout, answer)
        assert all(len(line) <= COLUMNS_MAX for line in text.stdout.splitlines()), text.stdout


def a_target_that_is_not_there_is_told_with_what_is():
    for target, words in (
            ("cpu:4095", '"cpu:4095" names no NUMA node; known are: 0'),
            ("nic:no-such", '"nic:no-such" names no device'),
            ("cuda:4095", '"cuda:4095" ')):
        done = devices("--for", target)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert done.stderr.startswith(f"tocsin devices: --for: {words}"), done


def gpus_are_where_their_driver_says():
    """A fake of two, at 1a and 1b."""
    with tempfile.TemporaryDirectory(prefix="tocsin-") as directory:
        os.symlink(FAKE_CUDA, f"{directory}/libcuda.so.1")
        for ordinal, pci in enumerate(("0000:1a:00.0", "0000:1b:00.0")):
            done = devices("--for", f"cuda:{ordinal}", "--json", LD_LIBRARY_PATH=directory)
            assert json.loads(done.stdout)["for_pci"] == pci, done
        done = devices("--for", "cuda:2", LD_LIBRARY_PATH=directory)
        assert done.returncode == 1, done
        assert done.stderr.endswith("names no GPU; known are: cuda:0 to cuda:1\n"), done
        # Nobody else needs it.
        os.remove(f"{directory}/libcuda.so.1")
        with open(f"{directory}/libcuda.so.1", "w", encoding="ascii") as file:
            file.write("no library")
        assert devices("--for", "none", LD_LIBRARY_PATH=directory).returncode == 0
        done = devices("--for", "cuda:0", LD_LIBRARY_PATH=directory)
        assert '"cuda:0" ' in done.stderr, done


def a_malformed_target_is_a_mistake_that_says_what_is_allowed():
    for target in ("", "auto:", "mlx5_0", "cpu:", "cpu:-1", "cuda:x", "nic:", "nic:a/b"):
        done = devices("--for", target)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert f'"{target}" is not allowed: ' in done.stderr, done
        assert done.stderr.count("\n") == 1, done


def help_says_what_a_target_is():
    done = devices("--help")
    assert done.returncode == 0, done
    for word in ("auto", "cpu:N", "cuda:N", "nic:NAME", "soft", "none", "--explain", "--json"):
        assert word in done.stdout, word
    assert all(len(line) <= COLUMNS_MAX for line in done.stdout.splitlines()), done.stdout


TESTS = [
    every_device_of_the_kernel_is_listed,
    a_machine_without_devices_says_so_and_that_is_no_failure,
    the_software_device_is_to_be_had_on_every_machine,
    text_and_json_name_the_same,
    a_target_that_is_not_there_is_told_with_what_is,
    gpus_are_where_their_driver_says,
    a_malformed_target_is_a_mistake_that_says_what_is_allowed,
    help_says_what_a_target_is,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
