#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The relocatable archives of this tree: which symbols they need, and whether they run in a bare
Debian 11, which lacks their libraries, and in a bare Debian 12. qemu runs the programs of aarch64.
"""

import pathlib
import re
import shutil
import tempfile

import bare
import tap

MACHINES = ("x86_64", "aarch64")
GLIBC_MAX = (2, 31)
# Debian 11 has rdma-core 33.
IBVERBS_MAX = (1, 11)
# Debian's programs for libibverbs, without the libraries that they depend on.
PROGRAMS = """
mkdir /programs
cd /tmp
apt-get -qq update
apt-get -qq download ibverbs-utils:MACHINE
dpkg-deb --fsys-tarfile ibverbs-utils_*_MACHINE.deb | tar -C /programs --strip-components=3 -x \
    ./usr/bin
"""
# Two processes, each with a device of its own, on loopback.
PINGPONG = """
export LD_LIBRARY_PATH=/moved/lib/tocsin/own
pingpong() { /moved/bin/tocsin soft-run -- /programs/ibv_rc_pingpong -g 0 "$@" 2>>/tmp/errors; }
pingpong >/dev/null &
until pingpong 127.0.0.1; do kill -0 $! || { cat /tmp/errors; exit 1; }; sleep 0.1; done
wait $!
"""
# qemu is linked statically, so LD_PRELOAD has no effect on it but on the program that it runs.
AARCH64 = """
export LD_LIBRARY_PATH=/moved/lib/tocsin/own
/qemu-aarch64-static /moved/bin/tocsin --version
/qemu-aarch64-static /moved/bin/tocsin soft-run -- /qemu-aarch64-static /programs/ibv_devinfo
"""
UNPACKED = {}
SYSTEMS = []


def archive(machine):
    return bare.built("archive") / f"tocsin-{bare.version()}-linux-{machine}.tar.gz"


def unpacked(machine):
    """The directory of the archive; unpacked once."""
    if machine not in UNPACKED:
        bare.need_root()
        place = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-packages-"))
        UNPACKED[machine] = place
        bare.run("tar", "-C", place, "-xzf", archive(machine))
    return next(UNPACKED[machine].iterdir())


def debian(suite, machine="x86_64"):
    """A bare Debian with the archive in /moved."""
    system = bare.Bare(suite, [archive(machine)])
    SYSTEMS.append(system)
    system.run("mkdir /moved; tar -C /moved --strip-components=1 -xzf /packages/*.tar.gz")
    return system


def objects(machine):
    return [path for path in unpacked(machine).rglob("*")
            if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def versions(path, prefix):
    """The versions of symbols of a library that an object needs."""
    table = bare.run("objdump", "--dynamic-syms", path)
    return {tuple(int(part) for part in found.split(".")): line
            for line in table.splitlines() if "*UND*" in line
            for found in re.findall(rf"\b{prefix}_([0-9.]+)", line)}


def no_symbol_is_newer_than_the_oldest_supported_libraries():
    # A program of this machine, Debian 12, must be found too new.
    assert max(versions("/bin/true", "GLIBC")) > GLIBC_MAX
    for machine in MACHINES:
        assert len(objects(machine)) > 2, objects(machine)
        for prefix, newest in (("GLIBC", GLIBC_MAX), ("IBVERBS", IBVERBS_MAX)):
            needed = {version: (path, line) for path in objects(machine)
                      for version, line in versions(path, prefix).items()}
            assert needed and max(needed) <= newest, needed[max(needed)]


def every_library_of_the_archive_has_its_licence():
    for machine in MACHINES:
        licences = {path.name for path in (unpacked(machine) / "licenses").iterdir()}
        own = {path.name.split(".so")[0].removesuffix("-3") for path in objects(machine)
               if path.parent.name == "own"}
        for name in own | {"libjansson", "libsodium", "libxxhash", "tocsin"}:
            assert any(licence.startswith(name) for licence in licences), (name, licences)


def client_runs_in_a_bare_debian_11_with_its_own_libraries():
    system = debian("bullseye")
    printed = system.run("/moved/bin/tocsin --version", network=False)
    assert printed == f"tocsin {bare.version()}\n", printed
    loaded = system.run("ldd /moved/bin/tocsin", network=False)
    assert "not found" not in loaded, loaded
    for name in ("libibverbs.so.1", "libhwloc.so.15", "libmnl.so.0", "libnl-3.so.200"):
        assert re.search(rf"{re.escape(name)} => /moved/.*/own/", loaded), (name, loaded)
    devices = system.run("/moved/bin/tocsin devices", network=False)
    assert "this machine has no RDMA device" in devices, devices


def program_without_libibverbs_gets_the_device_and_the_library_of_the_archive():
    system = debian("bullseye")
    system.run(PROGRAMS.replace("MACHINE", "amd64"))
    printed = system.run(PINGPONG, network=False)
    assert "1000 iters" in printed, printed
    assert system.run("/moved/bin/tocsin soft-run -- echo ran", network=False) == "ran\n"


def program_of_a_system_with_libibverbs_gets_the_device():
    system = debian("bookworm")
    system.run("apt-get -qq update; "
               "apt-get -qq install -y --no-install-recommends ibverbs-utils")
    printed = system.run("/moved/bin/tocsin soft-run -- ibv_devinfo", network=False)
    assert "soft0" in printed and "PORT_ACTIVE" in printed, printed
    loaded = system.run("ldd /moved/bin/tocsin /moved/lib/tocsin/libtocsin-verbs.so")
    assert len(re.findall(r"libibverbs\.so\.1 => /usr/", loaded)) == 2, loaded


def programs_of_aarch64_run_in_a_debian_11_with_its_c_library():
    qemu = shutil.which("qemu-aarch64-static")
    if qemu is None:
        raise tap.Skip("no qemu-aarch64-static")
    system = debian("bullseye", "aarch64")
    shutil.copy(qemu, system.root)
    system.run("dpkg --add-architecture arm64; apt-get -qq update; "
               "apt-get -qq install -y --no-install-recommends libc6:arm64")
    system.run(PROGRAMS.replace("MACHINE", "arm64"))
    printed = system.run(AARCH64, network=False)
    assert printed.startswith(f"tocsin {bare.version()}\n"), printed
    assert "soft0" in printed and "PORT_ACTIVE" in printed, printed


if __name__ == "__main__":
    try:
        tap.run([(test.__name__.replace("_", " "), test) for test in (
            no_symbol_is_newer_than_the_oldest_supported_libraries,
            every_library_of_the_archive_has_its_licence,
            client_runs_in_a_bare_debian_11_with_its_own_libraries,
            program_without_libibverbs_gets_the_device_and_the_library_of_the_archive,
            program_of_a_system_with_libibverbs_gets_the_device,
            programs_of_aarch64_run_in_a_debian_11_with_its_c_library)])
    finally:
        for made in SYSTEMS:
            made.close()
        for directory in UNPACKED.values():
            shutil.rmtree(directory)
