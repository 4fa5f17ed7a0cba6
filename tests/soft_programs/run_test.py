#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of tocsin soft-run: options, exit statuses, output, and the symbols of the preloaded
library.

run_test.py NAMES TOCSIN LIBRARY [SANITIZER]

NAMES are libibverbs' names and their versions.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap
from pairs import Kit, free_port, needs

NAMES = pathlib.Path(sys.argv[1])
LIBRARY = sys.argv[3]
KIT = Kit(sys.argv[2], *sys.argv[4:])
COLUMNS_MAX = 100
MANY = 12

# Names of libibverbs that use no device object, or an object that software devices lack. The
# preloaded library replaces all other exports.
UNTOUCHED = set("""
    ibv_copy_ah_attr_from_kern ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern
    ibv_copy_qp_attr_from_kern ibv_destroy_ah ibv_dofork_range ibv_dontfork_range
    ibv_event_type_str ibv_fork_init ibv_get_sysfs_path ibv_import_device ibv_is_fork_initialized
    ibv_node_type_str ibv_port_state_str ibv_rate_to_mbps ibv_rate_to_mult ibv_read_sysfs_file
    ibv_register_driver ibv_unimport_dm ibv_unimport_mr ibv_unimport_pd ibv_wc_status_str
    mbps_to_ibv_rate mult_to_ibv_rate
""".split())
# The same for libibverbs after 1.14: objects that a software device never creates.
UNTOUCHED_NEWER = set("""
    ibv_destroy_comp_cntr ibv_export_buf_dmabuf_fd ibv_inc_comp_cntr ibv_inc_err_comp_cntr
    ibv_read_comp_cntr ibv_read_err_comp_cntr ibv_set_comp_cntr ibv_set_err_comp_cntr
""".split())
# Exported for rdma-core only, with a changing version; ibv_devinfo uses one of them.
PRIVATE = {"ibv_query_gid_type"}
# Functions by which programs reach libibverbs and its device node.
OF_OTHERS = set("""
    __xstat __xstat64 access dlopen open open64 rdma_create_event_channel stat stat64
""".split())


def expect(got, wanted):
    assert got == wanted, f"got {got!r}, not {wanted!r}"


def expect_refused(status, words, *options, program=("true",), **environment):
    done = subprocess.run(
        [KIT.tocsin, "soft-run", *options, "--", *program], env={**KIT.environment, **environment},
        capture_output=True, text=True, check=False)
    expect((done.returncode, done.stdout), (status, ""))
    assert words in done.stderr, done.stderr
    expect(done.stderr.count("\n"), 1)
    assert done.stderr.startswith("tocsin soft-run: "), done.stderr


def wrong_options_are_named_before_anything_is_started():
    for words, *options in (
            ('--wire: "tcp" is not a wire; use udp or dpdk:DEVARGS', "--wire", "tcp"),
            ('--wire: "memory" connects only devices of one process', "--wire=memory"),
            ("--address: must be given: a DPDK port has no", "--wire", "dpdk:net_null0"),
            ('--address: "224.0.0.1" is a multicast', "--address", "224.0.0.1"),
            ('--address: "host" ', "--address", "host"),
            ("--address: 203.0.113.9 is not an address of this machine", "--address",
             "203.0.113.9"),
            ('--faults: "los=1%" ', "--faults", "los=1%"),
            ('--device: "a b" is not a device name', "--device", "a b"),
            ('unknown option "--adress"; did you mean "--address"?', "--adress", "::1")):
        expect_refused(125, words, *options, program=("touch", "/nonexistent/started"))
    expect_refused(125, 'TOCSIN_SOFT_FAULTS: "x" ', TOCSIN_SOFT_FAULTS="x")
    expect_refused(125, "PROGRAM is missing: tocsin soft-run [OPTION]... PROGRAM [ARGUMENT]...",
                   program=())


def the_status_is_that_of_the_program():
    expect(KIT.run("sh", "-c", "exit 7").returncode, 7)
    expect(KIT.run("sh", "-c", "kill -9 $$").returncode, -9)
    expect_refused(127, 'cannot run "no-such-program": No such file', program=("no-such-program",))
    expect_refused(126, 'cannot run "/etc/passwd": Permission denied', program=("/etc/passwd",))


def a_program_takes_its_own_options():
    for words in ([], ["--"]):
        done = subprocess.run([KIT.tocsin, "soft-run", *words, "echo", "-n", "--help", "--wire"],
                              env=KIT.environment, capture_output=True, text=True, check=False)
        expect((done.returncode, done.stdout, done.stderr), (0, "--help --wire", ""))


def the_environment_has_what_was_given_and_keeps_the_rest():
    done = KIT.run("env", soft=["--faults", "loss=1%", "--device", "a,b"],
                   TOCSIN_SOFT_ADDRESS="127.64.9.1,127.64.9.2", TOCSIN_SOFT_NAME="c")
    got = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    expect({name: value for name, value in got.items() if name.startswith("TOCSIN_SOFT_")},
           {"TOCSIN_SOFT_FAULTS": "loss=1%", "TOCSIN_SOFT_NAME": "a,b", "TOCSIN_SOFT_SAY": "1",
            "TOCSIN_SOFT_ADDRESS": "127.64.9.1,127.64.9.2"})
    for before, options, after in (("0", [], "0"), ("0", ["--verbose"], "2"), ("2", [], "2")):
        done = KIT.run("sh", "-c", "echo $TOCSIN_SOFT_SAY", soft=options, TOCSIN_SOFT_SAY=before)
        expect(done.stdout, f"{after}\n")
    for before, after in (("a=1", "a=1:verify_asan_link_order=0"),
                          ("verify_asan_link_order=1", "verify_asan_link_order=1")):
        done = KIT.run("sh", "-c", "echo $ASAN_OPTIONS", ASAN_OPTIONS=before)
        expect(done.stdout, f"{after}\n")


REFUSED = ("libtocsin-verbs.so: {}: not supported by a software device; use {} "
           "(TOCSIN_SOFT_SAY=0 hides this)")


def what_is_refused_is_said_once_with_what_to_use():
    needs("ibv_ud_pingpong")
    needs("ib_send_bw")
    if len(sys.argv) > 4:
        raise tap.Skip("the sanitizer is another library's")
    for program, asked, instead in (
            (("ibv_ud_pingpong", "-p", free_port()), "a UD queue pair", "IBV_QPT_RC"),
            (("ibv_uc_pingpong", "-p", free_port()), "a UC queue pair", "IBV_QPT_RC"),
            (("ib_send_bw", "-R", "-p", free_port()),
             "the connection manager (librdmacm, -R of perftest)",
             "an exchange of addresses by the program, for example over TCP")):
        for say, count in ((None, 1), ("0", 0)):
            done = KIT.run(*program, **({} if say is None else {"TOCSIN_SOFT_SAY": say}))
            assert done.returncode != 0, done
            expect(done.stderr.splitlines().count(REFUSED.format(asked, instead)), count)


def a_device_has_the_guid_of_its_address():
    needs("ibv_devinfo")
    guids = [re.search(r"node_guid:\s+(\S+)",
                       KIT.run("ibv_devinfo", soft=["--address", "127.64.9.7"]).stdout).group(1)
             for _ in range(2)]
    expect(guids, ["0254:4300:7f40:0907"] * 2)


def the_library_goes_behind_what_is_preloaded_already():
    before = KIT.environment.get("LD_PRELOAD")
    done = KIT.run("sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=(before or "libdl.so.2"))
    expect(done.stdout.strip(), f"{before or 'libdl.so.2'}:{os.path.realpath(LIBRARY)}")


def a_program_that_gains_privileges_is_refused_with_the_reason():
    if os.geteuid() != 0:
        raise tap.Skip("a file of another user needs root")
    with tempfile.TemporaryDirectory(prefix="tocsin-soft-run-") as place:
        path = pathlib.Path(place) / "true"
        shutil.copy("/bin/true", path)
        os.chown(path, 65534, 65534)
        path.chmod(0o4755)
        expect_refused(126, f'"{path}" is setuid, so the loader ignores the', program=(path,))


def a_bad_variable_is_told_in_one_line_and_leaves_no_device():
    needs("ibv_devices")
    for name, value in (("WIRE", "x"), ("ADDRESS", "x"), ("FAULTS", "x"), ("NAME", "x y")):
        preload = KIT.environment.get("LD_PRELOAD", "") + ":" + LIBRARY
        done = subprocess.run(
            ["ibv_devices"], capture_output=True, text=True, check=False,
            env={**KIT.environment, "LD_PRELOAD": preload.lstrip(":"),
                 "TOCSIN_SOFT_" + name: value})
        lines = [line for line in done.stderr.splitlines() if "libtocsin" in line]
        expect(len(lines), 1)
        assert lines[0].startswith(f'libtocsin-verbs.so: TOCSIN_SOFT_{name}: "{value}" '), lines
        assert lines[0].endswith("; no software device is created"), lines
        assert "soft0" not in done.stdout, done.stdout


def devices_have_the_names_that_were_given():
    needs("ibv_devices")
    done = KIT.run("ibv_devices", soft=["--device", "left,right"])
    expect(re.findall(r"^\s+(\S+)\s+[0-9a-f]{16}$", done.stdout, re.MULTILINE), ["left", "right"])


def programs_started_at_once_have_addresses_of_their_own():
    needs("ibv_rc_pingpong")
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(KIT.started("ibv_rc_pingpong", "-g", 1, "-p", free_port()))
                   for _ in range(MANY)]
        addresses = {server.address() for server in servers}
    expect(len(addresses), MANY)
    for address in addresses:
        assert address.startswith("127.64."), address


def an_address_that_is_taken_is_refused_with_its_holder():
    needs("ibv_rc_pingpong")
    with KIT.started("ibv_rc_pingpong", "-g", 1, "-p", free_port()) as server:
        address = server.address()
        done = KIT.run("ibv_devinfo", soft=["--address", address])
        line = next(line for line in done.stderr.splitlines() if "soft0" in line)
        wanted = f"libtocsin-verbs.so: soft0: cannot open the device: {address}"
        assert line.startswith(wanted), line
        assert "ibv_rc_pingpong" in line and str(server.process.pid) in line, line
        assert done.returncode != 0, done


def where_a_device_is_and_what_it_sent_is_told_on_standard_error():
    needs("ibv_devinfo")
    done = KIT.run("ibv_devinfo")
    assert re.fullmatch(r"soft0 on 127\.64\.\d+\.\d+ \(udp\)\n", done.stderr), done.stderr
    expect(KIT.run("true").stderr, "")


def the_library_shows_the_names_that_it_stands_in_front_of_and_no_other():
    needs("nm")
    lines = [line.split() for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    wanted = {name: version for name, version in lines if name not in UNTOUCHED | UNTOUCHED_NEWER}
    ours = names_in(LIBRARY)
    expect({name: version for name, version in ours.items() if version}, wanted)
    # Names without version match every version.
    expect({name for name, version in ours.items() if not version}, PRIVATE | OF_OTHERS)


def the_names_and_versions_of_the_library_behind_are_known():
    """A libibverbs newer than the list of names is reported here, not by a crashing program."""
    needs("nm")
    known = dict(line.split() for line in NAMES.read_text().splitlines() if line[0] != "#")
    theirs = names_in(subprocess.run(
        ["sh", "-c", "ldd \"$0\" | sed -n 's/.*libibverbs.* => \\(\\S*\\) .*/\\1/p'", LIBRARY],
        capture_output=True, text=True, check=True, env=KIT.environment).stdout.strip())
    public = {name: version for name, version in theirs.items() if "PRIVATE" not in version}
    assert len(public) > 60, theirs
    expect({name: version for name, version in public.items() if known.get(name) != version}, {})
    assert PRIVATE <= set(theirs)


def what_every_process_loads_has_nothing_of_dpdk():
    """The library is loaded into each process that the program starts."""
    needs("readelf")
    def readelf(*options):
        return subprocess.run(["readelf", "-W", *options, LIBRARY], capture_output=True, text=True,
                              check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(\S+)\]", readelf("-d"))
    assert "libibverbs.so.1" in needed, needed
    assert not re.search("rte_|numa|hwloc", " ".join(needed)), needed
    assert not re.search(r"\s_*rte_\w+$", readelf("-s"), re.MULTILINE)
    if len(sys.argv) == 4:  # a sanitizer has a constructor for each unit
        size = int(re.search(r"\.init_array\s+INIT_ARRAY\s+\S+\s+\S+\s+(\S+)",
                             readelf("-S")).group(1), 16)
        assert size <= 4 * 8, size


def a_dpdk_wire_without_its_module_is_refused_with_the_path():
    needs("ibv_devinfo")
    with tempfile.TemporaryDirectory(prefix="tocsin-soft-run-") as place:
        library = shutil.copy(LIBRARY, place)
        module = pathlib.Path(place) / "libtocsin-wire-dpdk.so"
        environment = {**KIT.environment, "TOCSIN_SOFT_ADDRESS": "198.51.100.1",
                       "TOCSIN_SOFT_WIRE": "dpdk:net_memif0,role=server,socket=tocsin-none"}
        environment["LD_PRELOAD"] = ":".join(
            filter(None, [environment.get("LD_PRELOAD"), library]))
        for damage, words in ((lambda: None, "No such file"),
                              (lambda: module.write_text("no library"), "")):
            damage()
            done = subprocess.run(["ibv_devinfo"], capture_output=True, text=True, check=False,
                                  env=environment)
            lines = [line for line in done.stderr.splitlines() if "libtocsin-verbs.so" in line]
            expect(len(lines), 1)
            assert lines[0].startswith(
                f"libtocsin-verbs.so: soft0: cannot open the device: {module}: "), lines
            assert words in lines[0] and done.returncode != 0, done


def names_in(library):
    """Return exported functions: name to default version, which newly built programs use."""
    said = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                          check=True).stdout
    words = [line.split() for line in said.splitlines()]
    parts = [word[-1].partition("@") for word in words if word[-2] in ("T", "W")]
    return {name: version.lstrip("@") for name, _, version in parts
            if version == "" or version.startswith("@")}


def help_fits_and_names_what_there_is():
    done = subprocess.run([KIT.tocsin, "soft-run", "--help"], capture_output=True, text=True,
                          check=False, env=KIT.environment)
    expect((done.returncode, done.stderr), (0, ""))
    for line in done.stdout.splitlines():
        assert len(line) <= COLUMNS_MAX, line
    for word in ("--wire", "--address", "--faults", "--device", "--verbose", "TOCSIN_SOFT_WIRE"):
        assert word in done.stdout, word


if __name__ == "__main__":
    tap.run([
        ("help fits and names what there is", help_fits_and_names_what_there_is),
        ("wrong options are named before anything is started",
         wrong_options_are_named_before_anything_is_started),
        ("the status is that of the program", the_status_is_that_of_the_program),
        ("a program takes its own options", a_program_takes_its_own_options),
        ("the environment has what was given and keeps the rest",
         the_environment_has_what_was_given_and_keeps_the_rest),
        ("the library goes behind what is preloaded already",
         the_library_goes_behind_what_is_preloaded_already),
        ("a program that gains privileges is refused with the reason",
         a_program_that_gains_privileges_is_refused_with_the_reason),
        ("the library shows the names that it stands in front of and no other",
         the_library_shows_the_names_that_it_stands_in_front_of_and_no_other),
        ("the names and versions of the library behind are known",
         the_names_and_versions_of_the_library_behind_are_known),
        ("what every process loads has nothing of DPDK",
         what_every_process_loads_has_nothing_of_dpdk),
        ("a dpdk wire without its module is refused with the path",
         a_dpdk_wire_without_its_module_is_refused_with_the_path),
        ("what is refused is said once, with what to use",
         what_is_refused_is_said_once_with_what_to_use),
        ("a device has the GUID of its address", a_device_has_the_guid_of_its_address),
        ("a bad variable is told in one line and leaves no device",
         a_bad_variable_is_told_in_one_line_and_leaves_no_device),
        ("devices have the names that were given", devices_have_the_names_that_were_given),
        ("where a device is is told on standard error",
         where_a_device_is_and_what_it_sent_is_told_on_standard_error),
        ("programs started at once have addresses of their own",
         programs_started_at_once_have_addresses_of_their_own),
        ("an address that is taken is refused with its holder",
         an_address_that_is_taken_is_refused_with_its_holder),
    ])
