# SPDX-License-Identifier: BSD-3-Clause
"""A whole Slurm on loopback in one directory: munged, slurmctld and a slurmd for each node.

No systemd, no files of the system. Needs root, since slurmd does. Ports are taken from the process,
so that two beds at once do not meet.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import cluster as clusters
import patience

PROGRAMS = ("munged", "slurmctld", "slurmd", "scontrol", "sinfo")
CONF = """
ClusterName=bed
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={directory}/munge.sock
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SchedulerType=sched/backfill
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=15
SlurmctldTimeout=60
SlurmdParameters=config_overrides
TreeWidth=65533
MailProg=/bin/true
RebootProgram=/bin/true
CommunicationParameters=NoAddrCache
{health}
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """What this bed needs and is not here, in words; "" if nothing."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)} here"
    return "" if os.geteuid() == 0 else "slurmd needs root"


class Slurm:
    """Nodes of these names. `health`: a program that slurmd runs each second."""

    made = 0

    def __init__(self, names, health=None):
        self.names = list(names)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-slurm-"))
        self.conf = self.directory / "slurm.conf"
        self.environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        self.host = subprocess.run(["hostname", "-s"], capture_output=True, text=True,
                                   check=True).stdout.strip()
        self.processes = {}
        self.write_conf(health)

    def write_conf(self, health):
        base = 20000 + (os.getpid() * 37 + Slurm.made * 101) % 30000
        Slurm.made += 1
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={self.host} NodeAddr=127.0.0.1 Port={base + 1 + n} "
            "CPUs=2 RealMemory=64 State=UNKNOWN" for n, name in enumerate(self.names))
        checks = (f"HealthCheckProgram={health}\nHealthCheckInterval=1\nHealthCheckNodeState=ANY"
                  if health else "")
        self.conf.write_text(CONF.format(host=self.host, port=base, directory=self.directory,
                                         health=checks, nodes=nodes, names=",".join(self.names)))
        (self.directory / "cgroup.conf").write_text("CgroupPlugin=autodetect\n")
        (self.directory / "state").mkdir(exist_ok=True)
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.directory.chmod(0o755)

    def spawn(self, name, *command):
        with open(self.directory / f"{name}.out", "ab") as out:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=self.environment)

    def start_controller(self):
        self.spawn("slurmctld", "slurmctld", "-D", "-i")

    def start(self):
        d = self.directory
        self.spawn("munged", "munged", "--foreground", "--force", f"--socket={d}/munge.sock",
                   f"--key-file={d}/munge.key", f"--pid-file={d}/munged.pid",
                   f"--log-file={d}/munged.log", f"--seed-file={d}/munged.seed")
        clusters.wait_until("munge", lambda: (d / "munge.sock").exists())
        self.start_controller()
        for name in self.names:
            (d / f"spool.{name}").mkdir()
            self.spawn(f"slurmd.{name}", "slurmd", "-D", "-N", name)
        clusters.wait_until("all nodes registered", lambda: all(
            self.state(name).startswith("idle") for name in self.names))
        return self

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()  # what came up goes again
            raise

    def __exit__(self, *_):
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes.values()):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def stop_controller(self):
        process = self.processes.pop("slurmctld")
        process.send_signal(signal.SIGTERM)
        process.wait(30)

    def run(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=patience.HANG_SECONDS, check=False)

    def update(self, name, **changes):
        words = [f"{key}={value}" for key, value in changes.items()]
        done = self.run("scontrol", "update", f"NodeName={name}", *words)
        if done.returncode != 0:
            raise AssertionError(f"scontrol update {name} {words}: {done.stderr}")

    def state(self, name):
        """As sinfo has it: idle, drained, ...; "" while nobody answers."""
        return self.run("sinfo", "-h", "-n", name, "-o", "%T").stdout.strip()

    def reason(self, name):
        """As `sinfo -R` has it; "" if there is none."""
        rows = [line.split("|") for line in
                self.run("sinfo", "-R", "-h", "-N", "-o", "%N|%E").stdout.splitlines()]
        return next((row[1] for row in rows if row[0] == name), "")

    def is_drained(self, name):
        return "drain" in self.state(name)

    @contextlib.contextmanager
    def restd(self):
        """slurmrestd as nobody on a Unix socket that anybody reaches; its path."""
        place = self.directory / "rest"
        place.mkdir()
        place.chmod(0o777)
        path = place / "rest.sock"
        self.spawn("slurmrestd", "slurmrestd", "-s", "openapi/v0.0.38", "-a", "rest_auth/local",
                   "-u", "nobody", "-g", "nogroup", f"unix:{path}")
        try:
            clusters.wait_until("slurmrestd", path.exists)
            yield path
        finally:
            process = self.processes.pop("slurmrestd")
            process.kill()
            process.wait()
            shutil.rmtree(place)
