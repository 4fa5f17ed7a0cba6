#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages of this tree: reproducible, without complaints of lintian, installed in a bare
Debian and purged without a rest.

A second build in another directory, without the compiler cache, must give the same bytes.
"""

import os
import pathlib
import subprocess
import tempfile

import bare
import tap
from bare import ROOT, debs, run

PACKAGES = {"tocsin", "tocsin-perf", "libtocsin1", "libtocsin-dev", "libtocsin-verbs",
            "tocsin-bridges", "python3-tocsin", "tocsin-doc"}
OVERRIDES_MAX = 3

INSTALL = """
apt-get -qq update
apt-get -qq install -y --no-install-recommends /packages/*.deb
"""
# An agent with the defaults, in the directories that systemd makes for its unit, and a question.
AGENT = """
set -e
install -d -o tocsin /run/tocsin /var/lib/tocsin
RUNTIME_DIRECTORY=/run/tocsin STATE_DIRECTORY=/var/lib/tocsin \\
    setpriv --reuid tocsin --regid tocsin --clear-groups /usr/sbin/tocsind 2>/agent.log &
until tocsin health >/dev/null 2>&1 || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
tocsin status || { cat /agent.log >&2; exit 1; }
kill $!
wait
rm -r /run/tocsin
"""
# Each step is a command that --check-config printed in the fresh installation.
FIRST_STEPS = r"""
set -e
tocsind --check-config
cp /usr/share/doc/tocsin/tocsin.conf /etc/tocsin/tocsin.conf
tocsin keygen >/dev/null
sed -i 's/^key/listen = 0.0.0.0\nkey/' /etc/tocsin/tocsin.conf
echo ---
tocsind --check-config
"""
MODULE = """
import importlib.metadata, tocsin
tocsin.binding.load()
print(importlib.metadata.version("tocsin"))
"""


def built():
    return bare.built("deb")


def all_packages_are_built():
    assert set(debs(built())) == PACKAGES, debs(built())


def two_builds_in_two_directories_give_the_same_bytes():
    with tempfile.TemporaryDirectory(prefix="tocsin-packages-") as place:
        other = pathlib.Path(place, "another", "place")
        bare.package_function("package_deb", other, CCACHE_DISABLE="1", TZ="Pacific/Apia")
        files = sorted(path.name for path in built().glob("*.deb"))
        assert files == sorted(path.name for path in other.glob("*.deb")), files
        different = [name for name in files
                     if (built() / name).read_bytes() != (other / name).read_bytes()]
    assert not different, different


def lintian_finds_neither_errors_nor_warnings():
    changes = next(built().glob("*.changes"))
    as_root = ["--allow-root"] if os.geteuid() == 0 else []
    done = subprocess.run(["lintian", "--profile", "debian", "--fail-on", "error,warning",
                           *as_root, str(changes)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    overrides = [line for path in (ROOT / "debian").glob("*.lintian-overrides")
                 for line in path.read_text(encoding="utf-8").splitlines()
                 if line and not line.startswith("#")]
    assert len(overrides) <= OVERRIDES_MAX, overrides


DEBIAN = []


def debian():
    """The bare Debian with our packages installed; made once."""
    if not DEBIAN:
        DEBIAN.append(bare.Bare("bookworm", debs(built()).values()))
        DEBIAN[0].run(INSTALL)
    return DEBIAN[0]


def packages_install_in_a_bare_debian_and_print_the_version():
    version = run("dpkg-parsechangelog", "-SVersion", cwd=ROOT).strip()
    printed = debian().run("tocsin --version; tocsind --version; tocsin-perf --version")
    assert printed == f"tocsin {version}\ntocsind {version}\ntocsin-perf {version}\n", printed


def agent_of_the_packages_answers_its_client():
    printed = debian().run(AGENT, network=False)
    assert "1 of 1 agents answer" in printed, printed


def check_of_a_fresh_installation_leads_to_a_sound_configuration():
    before, after = debian().run(FIRST_STEPS, network=False).split("---\n")
    for command in ("cp /usr/share/doc/tocsin/tocsin.conf /etc/tocsin/tocsin.conf", "tocsin keygen",
                    "join =", "expect =", "systemctl restart tocsind"):
        assert command in before, before
    assert "the configuration is sound" in after and "is not set" not in after, after


def module_of_python_finds_its_library_and_version():
    version = run("dpkg-parsechangelog", "-SVersion", cwd=ROOT).strip()
    assert debian().run(f"python3 -c '{MODULE}'") == f"{version}\n"
    debian().run("PYTHONPATH=/usr/share/tocsin/python python3 -S -c 'import tocsin'")


def purge_leaves_no_file():
    names = " ".join(sorted(PACKAGES))
    debian().run("touch /var/lib/tocsin/history; systemctl enable -q tocsin-root.socket; "
                 f"apt-get -qq purge -y {names}")
    assert not debian().files(), debian().files()


if __name__ == "__main__":
    try:
        tap.run([(test.__name__.replace("_", " "), test) for test in (
            all_packages_are_built,
            lintian_finds_neither_errors_nor_warnings,
            packages_install_in_a_bare_debian_and_print_the_version,
            agent_of_the_packages_answers_its_client,
            check_of_a_fresh_installation_leads_to_a_sound_configuration,
            module_of_python_finds_its_library_and_version,
            purge_leaves_no_file,
            two_builds_in_two_directories_give_the_same_bytes)])
    finally:
        for made in DEBIAN:
            made.close()
