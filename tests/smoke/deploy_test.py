#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` puts where, and whether it is sound: man pages, unit, example.

    deploy_test.py BUILD_DIRECTORY
"""

import fnmatch
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

import patience
import tap

BUILD = pathlib.Path(sys.argv[1])
TOCSIND = BUILD / "agent" / "tocsind"
TOCSIN = BUILD / "agent" / "tocsin"
PATIENCE_S = patience.HANG_SECONDS

OPTIONS = json.loads((BUILD / "meson-info" / "intro-buildoptions.json").read_text())
LIBDIR = next(option["value"] for option in OPTIONS if option["name"] == "libdir")
VERSION = json.loads((BUILD / "meson-info" / "intro-projectinfo.json").read_text())["version"]
VERBS = f"{LIBDIR}/tocsin/libtocsin-verbs.so"

# Below the prefix.
INSTALLED = {
    VERBS: 0o755,
    f"{LIBDIR}/tocsin/libtocsin-wire-dpdk.so": 0o755,
    f"{LIBDIR}/libtocsin.so": 0o755,  # a link, and so is the next one
    f"{LIBDIR}/libtocsin.so.1": 0o755,
    f"{LIBDIR}/libtocsin.so.1.0.0": 0o755,
    f"{LIBDIR}/pkgconfig/tocsin.pc": 0o644,
    "include/tocsin/job.h": 0o644,
    "bin/tocsin": 0o755,
    f"{LIBDIR}/tocsin/libnccl-profiler-tocsin.so": 0o755,
    f"{LIBDIR}/tocsin/libtocsin-mpi.so": 0o755,
    "bin/tocsin-perf": 0o755,
    "libexec/tocsin/tocsin-root": 0o755,
    "libexec/tocsin/tocsin-slurm-epilog": 0o755,
    "libexec/tocsin/tocsin-slurm-health": 0o755,
    "libexec/tocsin/tocsin-slurm-requeue": 0o755,
    "sbin/tocsind": 0o755,
    "lib/systemd/system/tocsin-root.service": 0o644,
    "lib/systemd/system/tocsin-root.socket": 0o644,
    "lib/systemd/system/tocsind.service": 0o644,
    "lib/sysusers.d/tocsin.conf": 0o644,
    "share/bash-completion/completions/tocsin.bash": 0o644,
    "share/doc/tocsin/alerts.md": 0o644,
    "share/doc/tocsin/checks.md": 0o644,
    "share/doc/tocsin/feeds.md": 0o644,
    "share/doc/tocsin/hardware.md": 0o644,
    "share/doc/tocsin/install.md": 0o644,
    "share/doc/tocsin/kubernetes.md": 0o644,
    "share/doc/tocsin/libtocsin.md": 0o644,
    "share/doc/tocsin/jobs.md": 0o644,
    "share/doc/tocsin/jobs-mpi.md": 0o644,
    "share/doc/tocsin/jobs-nccl.md": 0o644,
    "share/doc/tocsin/jobs-torch.md": 0o644,
    "share/doc/tocsin/perf-json.md": 0o644,
    "share/doc/tocsin/perf.md": 0o644,
    "share/doc/tocsin/soft-device.md": 0o644,
    "share/doc/tocsin/tocsin.conf": 0o644,
    "share/doc/tocsin/security.md": 0o644,
    "share/doc/tocsin/verdicts.md": 0o644,
    "share/man/man1/tocsin.1": 0o644,
    "share/man/man1/tocsin-perf.1": 0o644,
    "share/man/man3/libtocsin.3": 0o644,
    "share/man/man5/tocsin.conf.5": 0o644,
    "share/man/man8/tocsind.8": 0o644,
    "share/tocsin/jobs/nccl.conf": 0o644,
    "share/tocsin/jobs/tocsin-task-prolog": 0o755,
    "share/tocsin/jobs/tocsin-task-prolog-mpi": 0o755,
    "share/tocsin/kubernetes/node-problem-detector.yaml": 0o644,
    "share/tocsin/kubernetes/node-readiness-rule.yaml": 0o644,
    "share/tocsin/kubernetes/secret.yaml.example": 0o644,
    "share/tocsin/kubernetes/tocsin-health.json": 0o644,
    "share/tocsin/kubernetes/tocsin.yaml": 0o644,
    "share/tocsin/kubernetes/tocsin-node-check": 0o755,
    "share/tocsin/nhc/tocsin.nhc": 0o644,
    "share/tocsin/prometheus/tocsin-grafana.json": 0o644,
    "share/tocsin/prometheus/tocsin.rules.yml": 0o644,
    "share/tocsin/python/tocsin/__init__.py": 0o644,
    "share/tocsin/python/tocsin/binding.py": 0o644,
    "share/tocsin/python/tocsin/dump.py": 0o644,
    "share/tocsin/python/tocsin/torch.py": 0o644,
    f"share/tocsin/python/tocsin-{VERSION}.dist-info/METADATA": 0o644,
    "share/tocsin/systemd/cuda.conf": 0o644,
    "share/tocsin/systemd/dpdk.conf": 0o644,
    "share/tocsin/systemd/root.conf": 0o644,
    "share/tocsin/tocsin-flux": 0o755,
    "share/tocsin/tocsin-pbs": 0o755,
    "share/zsh/site-functions/_tocsin": 0o644,
}
# A page for each call of libtocsin, which leads to the one of all.
ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB_MAP = ROOT / "lib" / "job" / "libtocsin.map"
DEBIAN = ROOT / "debian"
INSTALLED |= {f"share/man/man3/{call}.3": 0o644
              for call in re.findall(r"\btocsin_\w+", JOB_MAP.read_text(encoding="utf-8"))}



def run(*command, **options):
    return subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False, **options)


def needs(program):
    if shutil.which(program) is None:
        raise tap.Skip(f"{program} is not installed")


def in_installation(test):
    """Calls test with the directory that stands for / and the prefix within it."""
    def call():
        with tempfile.TemporaryDirectory(prefix="tocsin-deploy-") as place:
            root = pathlib.Path(place)
            root.chmod(0o755)
            done = run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
            assert done.returncode == 0, done.stdout + done.stderr
            test(root, next(root.rglob("sbin/tocsind")).parent.parent)
    call.__name__ = test.__name__
    return call


def all_that_is_installed_is_built_for_this_test():
    """`./dev test` builds no more than the tests name, and the installation builds nothing."""
    info = {name: json.loads((BUILD / "meson-info" / f"intro-{name}.json").read_text())
            for name in ("targets", "tests")}
    needs = next(test["depends"] for test in info["tests"] if test["name"] == "deploy")
    missing = [target["name"] for target in info["targets"]
               if target["installed"] and target["id"] not in needs]
    assert not missing, missing


@in_installation
def everything_is_installed_where_it_is_looked_for(_, prefix):
    for name, mode in INSTALLED.items():
        path = prefix / name
        assert path.is_file(), name
        got = stat.S_IMODE(path.stat().st_mode)
        assert got == mode, f"{name}: {got:o}, not {mode:o}"


@in_installation
def nothing_else_is_installed(_, prefix):
    names = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    assert names == set(INSTALLED), names ^ set(INSTALLED)


def packages_with(name):
    """The Debian packages that take an installed file, which is named below the prefix."""
    return [path.stem for path in DEBIAN.glob("*.install")
            for pattern in (line.split()[0] for line in path.read_text().splitlines())
            if any(fnmatch.fnmatch(f"usr/{name}", shape) for shape in (pattern, pattern + "/*"))]


def every_file_is_in_one_debian_package():
    wrong = {name: packages_with(name) for name in INSTALLED if len(packages_with(name)) != 1}
    assert not wrong, wrong


def debian_package_has_the_version_and_the_symbols_of_the_tree():
    changelog = (DEBIAN / "changelog").read_text(encoding="utf-8")
    assert changelog.startswith(f"tocsin ({VERSION})"), changelog.splitlines()[0]
    symbols = (DEBIAN / "libtocsin1.symbols").read_text(encoding="utf-8")
    calls = re.findall(r"\btocsin_\w+", JOB_MAP.read_text(encoding="utf-8"))
    assert re.findall(r"\btocsin_\w+", symbols) == calls, symbols


UNITS = {"tocsind.service": TOCSIND, "tocsin-root.service": BUILD / "agent" / "tocsin-root",
         "tocsin-root.socket": None}
# systemd's exposure of a unit, in tenths of 0 to 10. The most of both services is 20.
EXPOSURE_MAX = 20


def copy_units(root, prefix):
    """Units for systemd-analyze, which looks for programs and manual pages on this machine: so
    programs are those of the build, and pages are not named."""
    for name, program in UNITS.items():
        text = (prefix / "lib/systemd/system" / name).read_text()
        if program is not None:
            command = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE).group(1)
            assert os.access(str(root) + command, os.X_OK), command
            text = text.replace(command, str(program.resolve()))
        (root / name).write_text(re.sub(r"^Documentation=.*$", "", text, flags=re.MULTILINE))


def verify_units(root):
    done = run("systemd-analyze", "verify", "--man=no", *(root / name for name in UNITS))
    said = [line for line in done.stderr.splitlines() if "tocsin" in line or ".conf" in line]
    assert done.returncode == 0 and not said, done.stderr


@in_installation
def the_units_start_what_is_installed_and_systemd_finds_nothing(root, prefix):
    needs("systemd-analyze")
    copy_units(root, prefix)
    verify_units(root)


@in_installation
def systemd_finds_nothing_in_the_drop_ins(root, prefix):
    needs("systemd-analyze")
    copy_units(root, prefix)
    drop_ins = root / "tocsind.service.d"
    drop_ins.mkdir()
    for path in (prefix / "share/tocsin/systemd").iterdir():
        shutil.copy(path, drop_ins)
    verify_units(root)


@in_installation
def the_services_expose_little_and_no_agent_runs_as_root(root, prefix):
    needs("systemd-analyze")
    for name in ("tocsind.service", "tocsin-root.service"):
        text = (prefix / "lib/systemd/system" / name).read_text()
        assert re.search(r"^User=tocsin(-root)?$", text, re.MULTILINE), text
        done = run("systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_MAX}",
                   "--no-pager", prefix / "lib/systemd/system" / name)
        if "unrecognized option" in done.stderr:
            raise tap.Skip("this systemd-analyze has no --offline")
        assert done.returncode == 0, done.stdout[-300:] + done.stderr


@in_installation
def users_of_the_units_are_made(root, prefix):
    needs("systemd-sysusers")
    if os.geteuid() != 0:
        raise tap.Skip("systemd-sysusers --root needs root")
    place = root / "machine"
    (place / "etc").mkdir(parents=True)
    done = run("systemd-sysusers", f"--root={place}", prefix / "lib/sysusers.d/tocsin.conf")
    assert done.returncode == 0, done.stderr
    users = {line.split(":")[0] for line in (place / "etc/passwd").read_text().splitlines()}
    assert users == {"tocsin", "tocsin-root"}, users


@in_installation
def the_unit_restarts_no_agent_that_a_restart_does_not_help(_, prefix):
    text = (prefix / "lib/systemd/system/tocsind.service").read_text()
    assert "\nRestartPreventExitStatus=2 3 4\n" in text
    page = (prefix / "share/man/man8/tocsind.8").read_text()
    for status in range(5):
        assert re.search(rf"^\.TP\n\.B {status}$", page, re.MULTILINE), status


@in_installation
def the_example_is_sound(root, prefix):
    key = root / "key"
    done = run(TOCSIN, "keygen", "--output", key)
    assert done.returncode == 0, done.stderr
    done = run(TOCSIND, "--check-config", prefix / "share/doc/tocsin/tocsin.conf",
               "--set", f"overlay.key={key}", "--set", f"node.state_directory={root}/state",
               "--set", "overlay.listen=127.0.0.1")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@in_installation
def what_the_example_has_in_comments_is_sound_too(_, prefix):
    text = (prefix / "share/doc/tocsin/tocsin.conf").read_text()
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "tocsin.conf"
        path.write_text(re.sub(r"^#(\w+ = )", r"\1", text, flags=re.MULTILINE))
        done = run(TOCSIND, "--print-config", "--config", path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@in_installation
def groff_finds_nothing_in_the_manual(_, prefix):
    needs("groff")
    for name in INSTALLED:
        if "/man/" not in name:
            continue
        done = run("groff", "-man", "-ww", "-Tutf8", prefix / name)
        assert (done.returncode, done.stderr) == (0, ""), f"{name}: {done.stderr}"


@in_installation
def mandoc_finds_nothing_in_the_manual(_, prefix):
    needs("mandoc")
    for name in INSTALLED:
        if "/man/" in name:
            done = run("mandoc", "-T", "lint", "-W", "warning", prefix / name)
            # A page has the date of its release, which the source does not know.
            said = [line for line in done.stdout.splitlines() if "missing date" not in line]
            assert not said, f"{name}: {said}"


@in_installation
def the_pages_of_the_manual_agree_on_what_they_belong_to(_, prefix):
    named = {re.search(r'^\.TH \S+ \d "" (.*)$', (prefix / name).read_text(), re.MULTILINE)[1]
             for name in INSTALLED if "/man/" in name}
    version = run(TOCSIN, "--version").stdout.split()[1]
    assert named == {f'"Tocsin {version}" "Tocsin Manual"'}, named


@in_installation
def the_manual_has_every_key(_, prefix):
    page = (prefix / "share/man/man5/tocsin.conf.5").read_text().replace("\\-", "-")
    config = run(TOCSIND, "--print-config", "--config", os.devnull).stdout
    keys = re.findall(r"^(\w+) = ", config, re.MULTILINE)
    assert len(keys) > 20, config
    for key in keys:
        assert f"\\fB{key}\\fR (" in page, key
    for section in re.findall(r"^\[(\w+)\]$", config, re.MULTILINE):
        assert f'.SS "[{section}]"' in page, section


@in_installation
def the_manual_has_every_option(_, prefix):
    page = (prefix / "share/man/man8/tocsind.8").read_text().replace("\\-", "-")
    for option in re.findall(r"--[a-z-]+", run(TOCSIND, "--help").stdout):
        assert option in page, option


@in_installation
def soft_run_finds_the_library_wherever_all_was_moved_to(root, prefix):
    if "libasan" in run("ldd", TOCSIN).stdout:
        raise tap.Skip("a sanitized library does not load into a plain shell")
    moved = root / "moved"
    prefix.rename(moved)
    done = run(moved / "bin/tocsin", "soft-run", "--", "sh", "-c", "echo $LD_PRELOAD")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout == f"{moved / VERBS}\n", done.stdout
    (moved / VERBS).unlink()
    done = run(moved / "bin/tocsin", "soft-run", "--", "true")
    assert done.returncode == 125 and "cannot find libtocsin-verbs.so in" in done.stderr, done


TESTS = [
    all_that_is_installed_is_built_for_this_test,
    soft_run_finds_the_library_wherever_all_was_moved_to,
    everything_is_installed_where_it_is_looked_for,
    nothing_else_is_installed,
    every_file_is_in_one_debian_package,
    debian_package_has_the_version_and_the_symbols_of_the_tree,
    the_units_start_what_is_installed_and_systemd_finds_nothing,
    systemd_finds_nothing_in_the_drop_ins,
    the_services_expose_little_and_no_agent_runs_as_root,
    users_of_the_units_are_made,
    the_unit_restarts_no_agent_that_a_restart_does_not_help,
    the_example_is_sound,
    what_the_example_has_in_comments_is_sound_too,
    groff_finds_nothing_in_the_manual,
    mandoc_finds_nothing_in_the_manual,
    the_pages_of_the_manual_agree_on_what_they_belong_to,
    the_manual_has_every_key,
    the_manual_has_every_option,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
