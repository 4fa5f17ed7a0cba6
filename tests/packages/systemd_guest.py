#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in a guest whose process 1 is systemd: the Debian packages, their units, and every feature
that the units confine.

    systemd_guest.py PACKAGE-DIRECTORY RING FAKE-CUDA

The tests follow each other. RING is the example job of the tree.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import agents
import tap

PACKAGES, RING, FAKE_CUDA = pathlib.Path(sys.argv[1]), *sys.argv[2:4]
ADDRESS = "10.0.0.1"
SECONDS_MAX = 1200  # emulated, on a machine that may be busy
EXPOSURE_MAX = 3.0  # "OK" of systemd-analyze security ends at 4.9
EARLIER = "0.1.0~earlier"
CONFIG = f"""
[overlay]
listen = {ADDRESS}
key = /etc/tocsin/tocsin.key
[node]
device = {{device}}
[history]
interval = 10s
"""
CHECK = """
[check who]
command = /usr/bin/id -un
user = nobody
interval = 3s
timeout = 2s
"""


def do(*command):
    return subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=SECONDS_MAX)


def must(*command):
    done = do(*command)
    assert done.returncode == 0, (command, done.stdout, done.stderr, log())
    return done.stdout


def log():
    """What the unit has logged since its last start."""
    start = do("systemctl", "show", "tocsind", "--property=InvocationID", "--value").stdout.strip()
    return do("journalctl", "-q", "-o", "cat", f"_SYSTEMD_INVOCATION_ID={start}").stdout


def wait_until(what, function):
    return agents.wait_until(what, function, SECONDS_MAX)


def wait_log(text):
    wait_until(lambda: f"{text} in the log:\n{log()}", lambda: text in log())


def show(*names, unit="tocsind"):
    said = must("systemctl", "show", unit, *(f"--property={name}" for name in names))
    return dict(line.split("=", 1) for line in said.splitlines())


def main_pid():
    return int(show("MainPID")["MainPID"])


def package(name):
    found, = PACKAGES.glob(f"{name}_*.deb")
    return found


def configure(more="", device="auto"):
    pathlib.Path("/etc/tocsin/tocsin.conf").write_text(CONFIG.format(device=device) + more,
                                                       encoding="ascii")


def wait_answer(question, pattern):
    """Ask until the answer of the client matches."""
    def asked():
        return re.search(pattern, do("tocsin", *question).stdout, re.MULTILINE)

    return wait_until(
        lambda: f"{pattern} in the answer to {question}: {do('tocsin', *question)}", asked)


def install_earlier():
    """Install the package of the agent, repacked with a lower version."""
    with tempfile.TemporaryDirectory() as place:
        root, deb = pathlib.Path(place, "root"), pathlib.Path(place, "earlier.deb")
        must("dpkg-deb", "-R", package("tocsin"), root)
        control = root / "DEBIAN" / "control"
        control.write_text(re.sub(r"(?m)^Version: .*", f"Version: {EARLIER}", control.read_text()))
        must("dpkg-deb", "--root-owner-group", "-Znone", "-b", root, deb)
        must("dpkg", "-i", deb)


def package_starts_the_agent_as_its_user():
    # A host that is a container itself may forbid packages to start units.
    pathlib.Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    for directory in ("/etc/tocsin", "/var/lib/tocsin"):  # of the host
        shutil.rmtree(directory, ignore_errors=True)
    assert pathlib.Path("/proc/1/comm").read_text() == "systemd\n"
    install_earlier()
    wait_until("the unit to be active",
                      lambda: show("ActiveState") == {"ActiveState": "active"})
    wait_answer(["status"], "1 of 1 agents answer")
    assert must("stat", "--format=%U", f"/proc/{main_pid()}") == "tocsin\n"
    assert must("systemctl", "is-enabled", "tocsind") == "enabled\n"
    for user in ("tocsin", "tocsin-root"):
        must("id", user)
    for path, owner in (("/var/lib/tocsin", "tocsin 750"), ("/run/tocsin", "tocsin 755")):
        assert must("stat", "--format=%U %a", path) == f"{owner}\n", path


def configured_agent_uses_the_network_and_the_devices():
    must("tocsin", "keygen")
    configure()
    said = must("tocsind", "--check-config")
    assert "denies access" not in said, said
    must("systemctl", "restart", "tocsind")
    wait_answer(["status"], "1 of 1 agents answer")
    assert must("stat", "--format=%U %a", "/etc/tocsin/tocsin.key") == "tocsin 600\n"
    for name in [path.name for path in pathlib.Path("/sys/class/infiniband").glob("rxe*")]:
        configure(device=f"nic:{name}")
        must("systemctl", "restart", "tocsind")
        wait_log(f"rdma_device device={name} state=up")
    warnings = [line for line in log().splitlines() if "EPERM" in line or "EACCES" in line]
    assert not warnings, warnings


def running_units_expose_little():
    must("systemctl", "start", "tocsin-root.socket", "tocsin-root.service")
    for unit in ("tocsind", "tocsin-root"):
        assert show("ActiveState", unit=unit) == {"ActiveState": "active"}, unit
        said = must("systemd-analyze", "security", "--no-pager", f"{unit}.service")
        level = float(re.search(r"Overall exposure level for \S+: (\S+) ", said)[1])
        tap.comment(f"{unit}.service: exposure {level}")
        assert level <= EXPOSURE_MAX, said
    must("systemctl", "stop", "tocsin-root.socket", "tocsin-root.service")


def check_of_another_user_runs_by_the_root_helper():
    configure(CHECK)
    assert "needs the unit tocsin-root.socket: systemctl enable --now tocsin-root.socket" in \
        must("tocsind", "--check-config")
    must("systemctl", "enable", "--now", "-q", "tocsin-root.socket")
    assert "tocsin-root.socket" not in must("tocsind", "--check-config")
    must("systemctl", "reload", "tocsind")
    wait_until("the check to run", lambda: re.search(
        r"^who +ok .*\n  nobody$", must("tocsin", "checks"), re.MULTILINE))


def check_config_names_the_drop_in_of_what_the_unit_denies():
    directory = pathlib.Path("/etc/systemd/system/tocsind.service.d")
    directory.mkdir(parents=True)
    shutil.copy(FAKE_CUDA, "/usr/lib/libcuda.so.1")
    for drop_in, device, more in (
            ("dpdk.conf", "soft", "[device soft0]\nwire = dpdk:net_af_packet0,iface=ve0\n"),
            ("cuda.conf", "cuda:0", "")):
        configure(more, device)
        said = must("tocsind", "--check-config")
        assert "denies access" in said and f"systemd/{drop_in}" in said, said
        path = pathlib.Path("/usr/share/tocsin/systemd", drop_in)
        (directory / drop_in).write_bytes(path.read_bytes())
        must("systemctl", "daemon-reload")
        said = must("tocsind", "--check-config")
        assert "denies access" not in said, (drop_in, said)
        (directory / drop_in).unlink()
        must("systemctl", "daemon-reload")
    configure()
    must("systemctl", "reload", "tocsind")


def dpdk_wire_works_with_its_drop_in():
    directory = pathlib.Path("/etc/systemd/system/tocsind.service.d")
    (directory / "dpdk.conf").write_bytes(
        pathlib.Path("/usr/share/tocsin/systemd/dpdk.conf").read_bytes())
    must("systemctl", "daemon-reload")
    configure("[device soft0]\naddress = 10.9.0.1\nwire = dpdk:net_af_packet0,iface=ve0\n", "soft")
    must("systemctl", "restart", "tocsind")
    wait_log("rdma_device device=soft0 state=up")
    (directory / "dpdk.conf").unlink()
    must("systemctl", "daemon-reload")
    configure()
    must("systemctl", "restart", "tocsind")


def job_registers_and_shows():
    with subprocess.Popen(["setpriv", "--reuid", "nobody", "--clear-groups", RING, "--ranks", "3",
                           "--kill", "1", "--signal", "--seconds", "600"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        wait_until("three ranks", lambda: [
            comm["ranks"] for comm in json.loads(must("tocsin", "comms", "--json"))[
                "communicators"]] == [3])
        job.send_signal(10)
        said = job.communicate(timeout=SECONDS_MAX)[0]
    for rank in (0, 2):
        assert f"rank {rank}: rank 1 is gone (its process " in said, said


def history_is_recorded_and_answers():
    wait_until("a period of the history", lambda: do(
        "tocsin", "history", must("hostname").strip()).returncode == 0)
    assert pathlib.Path("/var/lib/tocsin/history").stat().st_size > 0


def slurm_feed_and_metrics_answer():
    done = do("/usr/libexec/tocsin/tocsin-slurm-health", "--help")
    assert done.returncode == 0, done
    wait_until("the node to be healthy", lambda: do("tocsin", "health").returncode == 0)
    must("python3", "-c", "import urllib.request; "
         "print(urllib.request.urlopen('http://127.0.0.1:28031/metrics').status)")


def upgrade_restarts_the_agent_and_keeps_its_state():
    directory = pathlib.Path("/var/lib/tocsin")
    before, key, start = main_pid(), (directory / "agent.key").read_bytes(), \
        int((directory / "start").read_text())
    must("dpkg", "-i", package("tocsin"), package("libtocsin-verbs"))
    wait_answer(["status"], "1 of 1 agents answer")
    assert main_pid() != before
    assert (directory / "agent.key").read_bytes() == key
    assert int((directory / "start").read_text()) > start
    socket = show("ActiveState", "Result", unit="tocsin-root.socket")
    assert socket == {"ActiveState": "active", "Result": "success"}, (
        socket, do("journalctl", "-q", "-u", "tocsin-root.socket", "-u", "tocsin-root").stdout)
    wait_answer(["events", "--since", "1h"], "LEFT|JOIN|START")
    assert EARLIER not in must("dpkg-query", "-W", "tocsin")


def purge_stops_the_units_and_leaves_no_file():
    must("dpkg", "-P", "tocsin", "libtocsin-verbs")
    for unit in ("tocsind.service", "tocsin-root.socket", "tocsin-root.service"):
        assert show("ActiveState", "LoadState", unit=unit) == {
            "ActiveState": "inactive", "LoadState": "not-found"}, unit
    for path in ("/etc/tocsin", "/var/lib/tocsin", "/run/tocsin", "/usr/sbin/tocsind"):
        assert not pathlib.Path(path).exists(), path
    assert do("pgrep", "-u", "tocsin").returncode == 1


TESTS = [
    package_starts_the_agent_as_its_user,
    configured_agent_uses_the_network_and_the_devices,
    running_units_expose_little,
    check_of_another_user_runs_by_the_root_helper,
    check_config_names_the_drop_in_of_what_the_unit_denies,
    job_registers_and_shows,
    history_is_recorded_and_answers,
    slurm_feed_and_metrics_answer,
    dpdk_wire_works_with_its_drop_in,
    upgrade_restarts_the_agent_and_keeps_its_state,
    purge_stops_the_units_and_leaves_no_file,
]

if __name__ == "__main__":
    assert pathlib.Path("/run/job").exists(), "this is no guest of ./dev vm"
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
