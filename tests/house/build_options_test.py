#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two builds without tests: the plain build installs the product, a build with -Ddpdk=off links no
DPDK.

    build_options_test.py SOURCE-ROOT

Each build has a directory of its own below a temporary one. ccache does not hash that directory's
name, so both builds and the next run share objects.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

INSTALLED = ("sbin/tocsind", "bin/tocsin", "bin/tocsin-perf", "libtocsin.so",
             "tocsin/libtocsin-verbs.so", "man8/tocsind.8", "man1/tocsin.1", "man1/tocsin-perf.1",
             "man5/tocsin.conf.5")
WIRE = "dpdk:net_af_packet0,iface=none"
REFUSAL = f'"{WIRE}" needs DPDK, which this build lacks; use udp, or build with -Ddpdk=shared'
CONFIG = f"""[node]
name = a
device = soft
[overlay]
listen = 127.0.0.1
[device soft0]
wire = {WIRE}
"""


def run(*words, **options):
    """Run a command and return its standard output. A failure shows the end of its output."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False, **options)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr}"
    return done.stdout


def environment():
    compiler = {"CC": "ccache gcc"} if shutil.which("ccache") and "CC" not in os.environ else {}
    return {**os.environ, "CCACHE_DEPEND": "1", "CCACHE_NOHASHDIR": "1", **compiler}


def build(name, *options):
    """Configure and build in a directory of this name, once. Return the directory."""
    directory = PLACE / name
    if not directory.exists():
        run("meson", "setup", directory, ROOT, *options, env=environment())
        run("ninja", "-C", directory, env=environment())
    return directory


def build_plain():
    return build("plain")


def build_without_dpdk():
    return build("off", "-Djobs=false", "-Ddpdk=off")


def dependencies(directory):
    """Names of the dependencies that meson found."""
    found = json.loads(run("meson", "introspect", "--dependencies", directory))
    return {dependency["name"] for dependency in found}


def plain_build_needs_nothing_of_the_tests():
    names = dependencies(build_plain())
    assert "libibverbs" in names, names
    assert "cmocka" not in names, names
    assert not (build_plain() / "tests").exists()


def plain_build_installs_the_product():
    target = PLACE / "installed"
    run("meson", "install", "--no-rebuild", "-C", build_plain(),
        env={**os.environ, "DESTDIR": target})
    files = [str(path) for path in target.rglob("*") if path.is_file()]
    missing = [name for name in INSTALLED if not any(path.endswith(f"/{name}") for path in files)]
    assert not missing, f"{missing} of {files}"


def build_without_dpdk_links_none_of_it():
    names = dependencies(build_without_dpdk())
    assert "libdpdk" not in names, names
    for program in ("agent/tocsind", "agent/tocsin", "dataplane/soft/preload/libtocsin-verbs.so"):
        assert "librte" not in run("ldd", build_without_dpdk() / program), program
    rules = (build_without_dpdk() / "build.ninja").read_text()
    assert not re.search("include/dpdk|librte_|-lrte_", rules)
    assert not list(build_without_dpdk().rglob("libtocsin-wire-dpdk.so"))


def agent_without_dpdk_prints_its_version():
    printed = run(build_without_dpdk() / "agent/tocsind", "--version")
    assert re.fullmatch(r"tocsind \d+\.\d+\.\d+\n", printed), printed


def stderr_line_of_failed(*command):
    """Run a command that must fail. Return the one line that it printed on standard error."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False)
    assert done.returncode != 0 and done.stdout == "", done
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def agent_without_dpdk_refuses_a_dpdk_wire_in_one_line():
    config = PLACE / "tocsin.conf"
    config.write_text(CONFIG, encoding="utf-8")
    for how in ("--check-config", "--foreground"):
        line = stderr_line_of_failed(build_without_dpdk() / "agent/tocsind", how,
                                     "--config", config)
        assert f"{config}:7: [device soft0] wire: {REFUSAL}" in line, line


def soft_run_without_dpdk_refuses_a_dpdk_wire_in_one_line():
    line = stderr_line_of_failed(build_without_dpdk() / "agent/tocsin", "soft-run", "--wire", WIRE,
                                 "--address", "192.0.2.1", "--", "true")
    assert line == f"tocsin soft-run: --wire: {REFUSAL}", line


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="tocsin-house-") as name:
        PLACE = pathlib.Path(name)
        tap.run([
            ("the plain build needs nothing of the tests", plain_build_needs_nothing_of_the_tests),
            ("the plain build installs the product", plain_build_installs_the_product),
            ("a build without DPDK links none of it", build_without_dpdk_links_none_of_it),
            ("an agent without DPDK prints its version", agent_without_dpdk_prints_its_version),
            ("an agent without DPDK refuses a dpdk wire in one line",
             agent_without_dpdk_refuses_a_dpdk_wire_in_one_line),
            ("soft-run without DPDK refuses a dpdk wire in one line",
             soft_run_without_dpdk_refuses_a_dpdk_wire_in_one_line),
        ])
