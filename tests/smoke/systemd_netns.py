#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tocsind.service under a real systemd, which is process 1 of namespaces of its own.

    systemd_netns.py BUILD-ROOT

The tests follow each other. The unit is the one that is installed, but for its log (there is no
journal) and shorter times.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import agents
import cluster as clusters
import tap

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT_SCRIPT = pathlib.Path(__file__).with_name("systemd_root.sh")
SECCOMP_FILTER = 2
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES = ["--mount", "--pid", "--fork", "--uts", "--ipc", "--net", "--cgroup"]


def own_cgroup():
    """The directory of this process in the unified hierarchy."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        places = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    with open("/proc/self/cgroup", encoding="utf-8") as lines:
        own = [line.strip()[3:] for line in lines if line.startswith("0::")]
    if not places or not own:
        raise tap.Skip("no cgroup2 here")
    return pathlib.Path(places[0] + own[0])


class Machine:
    """A systemd, and what can be asked of it."""

    def __init__(self):
        self.scratch = tempfile.mkdtemp(prefix="tocsin-systemd-")
        self.cgroup = None
        self.outer = None
        self.pid = None

    def boot(self):
        agents.need_root("a systemd of one's own")
        if not os.path.exists("/lib/systemd/systemd"):
            raise tap.Skip("no systemd here")
        cgroup = own_cgroup() / f"tocsin-test-{os.getpid()}"
        try:
            cgroup.mkdir()
        except OSError as refused:
            raise tap.Skip(f"no cgroup of one's own: {refused}") from refused
        self.cgroup = cgroup
        # It has to be in its group before the namespace is made whose root that group is.
        self.outer = subprocess.Popen(
            ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(cgroup), "unshare",
             *NAMESPACES, "--kill-child", "sh", str(ROOT_SCRIPT), self.scratch, str(BUILD)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        agents.wait_until("systemd to be up", self.is_up)

    def is_up(self):
        if self.outer.poll() is not None:
            said = self.outer.stdout.read().decode(errors="replace").strip()
            raise tap.Skip(f"no systemd of one's own: {said[-200:]}")
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        self.pid = next(iter(children.read_text(encoding="ascii").split()), None)
        return self.pid and self.do("systemctl", "is-system-running").stdout == "running\n"

    def do(self, *command):
        if self.pid is None:
            raise tap.Skip("there is no systemd")
        return subprocess.run(
            ["nsenter", "--target", self.pid, "--mount", "--pid", "--uts", "--ipc", "--net",
             "--cgroup", "--root", "--wd", "env", "-i", f"PATH={PATH}", *command],
            capture_output=True, text=True, check=False, timeout=agents.WAIT_SECONDS)

    def must(self, *command):
        done = self.do(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr, self.log())
        return done.stdout

    def show(self, *names):
        """Properties of the unit."""
        said = self.must("systemctl", "show", "tocsind", *(f"--property={name}" for name in names))
        return dict(line.split("=", 1) for line in said.splitlines())

    def log(self):
        return self.do("cat", "/run/tocsind.log").stdout

    def is_file(self, path):
        return self.do("test", "-e", path).returncode == 0

    def hurt(self, signal_name):
        """A signal for the main process, and the properties once systemd has restarted it."""
        before = self.show("MainPID", "NRestarts")
        self.must("systemctl", "kill", "--kill-whom=main", f"--signal={signal_name}", "tocsind")

        def restarted():
            now = self.show("MainPID", "NRestarts", "ActiveState")
            return (now["ActiveState"] == "active" and now["MainPID"] != before["MainPID"] and
                    int(now["NRestarts"]) == int(before["NRestarts"]) + 1)

        agents.wait_until(f"a restart after {signal_name}", restarted)

    def end(self):
        if self.outer is not None:
            self.outer.send_signal(signal.SIGKILL)
            self.outer.wait()
            self.outer.stdout.close()
        if self.cgroup is not None:
            clusters.wait_until("the group to be empty", self.is_removed)
        os.rmdir(self.scratch)

    def is_removed(self):
        try:
            for place, _, _ in os.walk(self.cgroup, topdown=False):
                os.rmdir(place)
        except OSError:
            return False  # processes that were killed are on their way out
        return True


def test_ready(machine):
    """It is started when it says that it is ready, with its directories and its socket."""
    machine.boot()
    machine.must("systemctl", "start", "tocsind")
    shown = machine.show("ActiveState", "SubState", "StatusText", "NotifyAccess")
    assert shown == {"ActiveState": "active", "SubState": "running", "StatusText": "running",
                     "NotifyAccess": "main"}, shown
    assert machine.must("tocsin", "status").startswith("ok: 1 of 1 agents answer")
    assert machine.is_file("/run/tocsin/tocsind.sock")
    assert machine.is_file("/var/lib/tocsin/start")
    assert "started version=" in machine.log()


def test_upgrade(machine):
    """Key and state of an agent that ran as root now belong to user tocsin."""
    for path in ("/etc/tocsin/tocsin.key", "/var/lib/tocsin", "/var/lib/tocsin/start"):
        assert machine.must("stat", "--format=%U", path) == "tocsin\n", path
    assert machine.must("cat", "/var/lib/tocsin/start") == "42\n"
    assert "no_key" not in machine.log()


def test_power(machine):
    """The agent is not root, and has no capability."""
    pid = machine.show("MainPID")["MainPID"]
    status = dict(re.findall(r"^(\w+):\s*(\S+)$", machine.must("cat", f"/proc/{pid}/status"),
                             re.MULTILINE))
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0, status
    assert machine.must("stat", "--format=%U", f"/proc/{pid}") == "tocsin\n"
    assert int(status["NoNewPrivs"]) == 1 and int(status["Seccomp"]) == SECCOMP_FILTER, status


def test_watchdog_fed(machine):
    """Its loop feeds the watchdog, again and again."""
    seen = set()
    agents.wait_until("the watchdog to be fed", lambda: seen.add(
        machine.show("WatchdogTimestampMonotonic")["WatchdogTimestampMonotonic"]) or len(seen) > 3)
    assert machine.show("NRestarts") == {"NRestarts": "0"}


def test_reload(machine):
    """A reload is over when it was read, in the same process."""
    before = machine.show("MainPID")
    machine.must("systemctl", "reload", "tocsind")
    agents.wait_until("the reload", lambda: " reloaded " in machine.log())
    assert machine.show("MainPID", "ActiveState") == {**before, "ActiveState": "active"}


def test_root_helper(machine):
    """A check of another user runs once the socket of the root helper is started."""
    machine.must("sh", "-c", "printf '[check who]\ncommand = /usr/bin/id -un\nuser = nobody\n"
                 "interval = 2s\ntimeout = 1s\n' >>/etc/tocsin/tocsin.conf")
    machine.must("systemctl", "reload", "tocsind")
    agents.wait_until("the unit to be named", lambda: "needs the unit tocsin-root.socket" in
                      machine.must("tocsin", "checks"))
    machine.must("systemctl", "start", "tocsin-root.socket")
    agents.wait_until("the check to run", lambda: re.search(
        r"^who +ok .*\n  nobody$", machine.must("tocsin", "checks"), re.MULTILINE))
    machine.must("sed", "-i", "/^.check who/,$d", "/etc/tocsin/tocsin.conf")
    machine.must("systemctl", "reload", "tocsind")
    agents.wait_until("the check to be gone", lambda: "who " not in
                      machine.must("tocsin", "checks"))


def test_reload_gives_key(machine):
    """A key file that root replaced is the agent's after a reload."""
    read_before = machine.log().count(" reloaded key=read")
    machine.must("chown", "root", "/etc/tocsin/tocsin.key")
    machine.must("systemctl", "reload", "tocsind")
    assert machine.must("stat", "--format=%U", "/etc/tocsin/tocsin.key") == "tocsin\n"
    agents.wait_until("the reload", lambda: machine.log().count(" reloaded key=read") > read_before)


def test_frozen(machine):
    """One that stands still is ended by the watchdog and started again."""
    machine.hurt("SIGSTOP")


def test_killed(machine):
    """One that is killed is started again, past what the one before left behind."""
    machine.hurt("SIGKILL")
    assert machine.must("tocsin", "status").startswith("ok: 1 of 1 agents answer")


def test_stopped(machine):
    """A stop is a goodbye: exit status 0, nothing left running, the state kept."""
    machine.must("systemctl", "stop", "tocsind")
    shown = machine.show("ActiveState", "Result", "ExecMainStatus")
    assert shown == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}, shown
    assert "stopped exit=0" in machine.log().splitlines()[-1], machine.log()
    assert not machine.is_file("/run/tocsin")
    assert machine.is_file("/var/lib/tocsin/journal")


def test_mistake(machine):
    """A mistake in the configuration is told, and nothing is tried again."""
    machine.must("sh", "-c", "printf '[overlay]\\njion = x\\n' >/etc/tocsin/tocsin.conf")
    assert machine.do("systemctl", "start", "tocsind").returncode != 0
    shown = machine.show("ActiveState", "SubState", "Result", "ExecMainStatus", "NRestarts")
    assert shown == {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code",
                     "ExecMainStatus": "2", "NRestarts": "0"}, shown
    assert 'did you mean "join"?' in machine.log(), machine.log()


TESTS = [
    test_ready, test_upgrade, test_power, test_watchdog_fed, test_reload, test_root_helper,
    test_reload_gives_key, test_frozen, test_killed, test_stopped, test_mistake,
]


def main():
    machine = Machine()
    try:
        tap.run([(test.__doc__.strip().rstrip("."), lambda test=test: test(machine))
                 for test in TESTS])
    finally:
        machine.end()


if __name__ == "__main__":
    main()
