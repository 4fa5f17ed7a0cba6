#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""RPM packages of this tree: accepted by rpmlint, with the files of the Debian packages."""

import os
import pathlib
import re
import subprocess
import tempfile

import bare
import tap
from bare import ROOT, run

# RPM package -> Debian package, where the names differ.
NAMES = {"libtocsin-devel": "libtocsin-dev"}
# Places that differ, by the rules of each family: docs/install.md lists them.
DEB_PLACES = [
    (r"^usr/lib/[^/]+-linux-gnu[^/]*/", "LIBRARIES/"),
    (r"^lib/systemd/", "usr/lib/systemd/"),
    (r"^usr/lib/python3/dist-packages/", "PYTHON/"),
    (r"^usr/share/zsh/vendor-completions/", "usr/share/zsh/site-functions/"),
    (r"^(usr/share/man/.*)\.gz$", r"\1"),
]
RPM_PLACES = [
    (r"^usr/lib64/", "LIBRARIES/"),
    (r"^usr/lib/python3[^/]*/site-packages/", "PYTHON/"),
    (r"^(usr/share/man/.*)\.gz$", r"\1"),
]
OF_DEB_ONLY = re.compile(r"^usr/share/doc/[^/]+/(copyright|changelog.*)$")
OF_RPM_ONLY = re.compile(r"^usr/share/licenses/")


def built():
    return bare.built("rpm")


def rpms():
    """name -> file."""
    return {run("rpm", "-qp", "--qf", "%{NAME}", path): path for path in built().glob("*.rpm")}


def placed(path, places):
    for pattern, place in places:
        path = re.sub(pattern, place, path)
    return path


def compared(rows, own, places):
    """(mode, path) of files and links, and of /etc/tocsin, without what only this family has.
    Debian installs libraries without the right to execute, so their modes are not compared."""
    return {("" if ".so" in path else mode, placed(path, places)) for mode, path in rows
            if (mode[0] != "d" or path == "etc/tocsin") and not own.match(path)}


def files_of_deb(path):
    rows = [line.split(None, 5) for line in run("dpkg-deb", "--contents", path).splitlines()]
    return compared([(row[0], row[5].split(" -> ")[0].removeprefix("./").rstrip("/"))
                     for row in rows], OF_DEB_ONLY, DEB_PLACES)


def files_of_rpm(path):
    rows = run("rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", path).splitlines()
    return compared([row.split(" /", 1) for row in rows], OF_RPM_ONLY, RPM_PLACES)


def every_package_has_the_files_of_its_debian_package():
    debs = bare.debs(bare.built("deb"))
    packages = rpms()
    assert {NAMES.get(name, name) for name in packages} == set(debs), packages
    for name, path in packages.items():
        wanted = files_of_deb(debs[NAMES.get(name, name)])
        found = files_of_rpm(path)
        assert len(found) > 0 and found == wanted, (name, sorted(found ^ wanted))


def rpmbuild_has_no_warning():
    output = (built() / "build.txt").read_text(encoding="utf-8")
    assert "RPM build warnings" not in output, output[-1000:]


def licence_of_a_foreign_part_is_in_its_package():
    listed = run("rpm", "-qp", "--licensefiles", rpms()["tocsin-perf"]).split()
    names = {pathlib.Path(name).name for name in listed}
    assert names == {"LICENSE", "LICENSE.uPlot"}, listed


def rpmlint_finds_no_error():
    done = subprocess.run(["rpmlint", "--config", ROOT / "packaging/rpm/rpmlint.toml",
                           *rpms().values(), built() / "tocsin.spec"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    errors = [line for line in done.stdout.splitlines() if ": E: " in line]
    assert done.returncode == 0 and not errors, errors or done.stdout
    assert "0 errors" in done.stdout, done.stdout


def programs_of_the_packages_print_the_version():
    version = bare.version()
    with tempfile.TemporaryDirectory(prefix="tocsin-packages-") as place:
        for path in rpms().values():
            run("sh", "-euc", 'cd "$1"; rpm2cpio "$2" | cpio --quiet -idm', "sh", place, path)
        for program in ("bin/tocsin", "bin/tocsin-perf", "sbin/tocsind"):
            printed = run(pathlib.Path(place, "usr", program), "--version")
            assert printed == f"{os.path.basename(program)} {version}\n", printed
        printed = run(pathlib.Path(place, "usr/bin/tocsin"), "soft-run", "--", "ibv_devinfo")
        assert "soft0" in printed, printed


def scripts_of_the_packages_are_sound():
    for path in rpms().values():
        scripts = run("rpm", "-qp", "--scripts", path)
        assert "%" not in scripts, (path, scripts)
        bodies = re.split(r"(?m)^\w+ (?:scriptlet \(using|program: ).*$", scripts)
        for body in bodies:
            run("sh", "-nc", body)


if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in (
        every_package_has_the_files_of_its_debian_package,
        rpmbuild_has_no_warning,
        licence_of_a_foreign_part_is_in_its_package,
        rpmlint_finds_no_error,
        scripts_of_the_packages_are_sound,
        programs_of_the_packages_print_the_version)])
