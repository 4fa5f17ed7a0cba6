# SPDX-License-Identifier: BSD-3-Clause
"""Tests on machines made for them.

Each test runs in a process of its own, in network and mount namespaces of its own that have
no name: they go with the process, however that ends, so nothing can be left behind.
"""

import ctypes
import json
import os
import signal
import subprocess
import time
import traceback

import patience
import tap

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
CASE_SECONDS_MAX = patience.HANG_SECONDS
WAIT_SECONDS_MAX = 20
PASSED, FAILED, SKIPPED = range(3)


def enter_namespaces():
    """Puts this process into fresh namespaces, with a /sys that fits."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        raise tap.Skip(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    try:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)
        subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True, capture_output=True)
    except subprocess.CalledProcessError as refused:
        raise tap.Skip(f"no /sys of our own: {refused.stderr.decode().strip()}") from refused


def run_inside(function, out):
    """The child's part: its end as a number, and what it has to say into out."""
    os.setpgid(0, 0)  # so that what the test started can be ended with it
    signal.alarm(CASE_SECONDS_MAX)
    try:
        enter_namespaces()
        function()
    except tap.Skip as reason:
        out.write(str(reason))
        return SKIPPED
    except BaseException:  # a test that ends by anything but returning has failed
        out.write(traceback.format_exc())
        return FAILED
    return PASSED


def isolated(function):
    """The function as one that runs in a child with namespaces of its own."""

    def run():
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with os.fdopen(writer, "w") as out:
                status = run_inside(function, out)
            os._exit(status)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        with os.fdopen(reader) as said:
            text = said.read()
        if os.WIFSIGNALED(status):
            raise AssertionError(f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
        if os.WEXITSTATUS(status) == SKIPPED:
            raise tap.Skip(text)
        if os.WEXITSTATUS(status) != PASSED:
            raise AssertionError(text)

    return run


def run(cases):
    """Runs functions whose docstring is the sentence; ends the program."""
    if os.geteuid() != 0:
        print("1..0 # SKIP network namespaces need root")
        raise SystemExit(0)
    tap.run([(case.__doc__.strip().rstrip("."), isolated(case)) for case in cases])


def wait_for(condition, what):
    """Until condition() holds. The kernel tells link states late, by a timer of its own."""
    clock = patience.FairClock()
    while not condition():
        assert clock.read() < WAIT_SECONDS_MAX, f"waited {WAIT_SECONDS_MAX} s for {what}"
        time.sleep(0.01)


def ip(*lines):
    """Runs ip with these lines."""
    done = subprocess.run(
        ["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, capture_output=True,
        check=False)
    assert done.returncode == 0, done.stderr


def is_running(name):
    """Whether the kernel says that the link carries."""
    with open(f"/sys/class/net/{name}/operstate", encoding="ascii") as file:
        return file.read().strip() == "up"


def address_flags(name):
    """What ip tells of each address of a link."""
    told = subprocess.run(
        ["ip", "-j", "addr", "show", "dev", name], capture_output=True, check=True)
    return json.loads(told.stdout)[0]["addr_info"]


def veth(name, *addresses, up=True, peer_up=True):
    """A veth pair, name here and p-NAME at the other end, with these addresses and no others."""
    peer = "p-" + name[-13:]
    ip(f"link add {name} type veth peer name {peer}",
       f"link set {name} addrgenmode none",
       f"link set {peer} addrgenmode none",
       *([f"link set {peer} up"] if peer_up else []),
       *([f"link set {name} up"] if up else []),
       *[f"addr add {address} dev {name}" + (" nodad" if ":" in address else "")
         for address in addresses])
    if up and peer_up:  # each end is told to run by itself, in whichever order
        wait_for(lambda: is_running(name) and is_running(peer), f"{name} and {peer} to run")
