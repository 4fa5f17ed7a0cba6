#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tocsind --check-config: what contradicts itself, and what will not do on this machine.

    agent_config_test.py BUILD_DIRECTORY FAKE_CUDA
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

import cluster as clusters
import patience
import tap

BUILD = pathlib.Path(sys.argv[1])
FAKE_CUDA = sys.argv[2]
SHIPPED = pathlib.Path(__file__).resolve().parents[2] / "agent" / "deploy" / "systemd"
PATIENCE_S = patience.HANG_SECONDS


def tocsind(*arguments, user=None, program=BUILD / "agent" / "tocsind", **environment):
    return subprocess.run([str(program), *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S,
                          check=False, user=user, env={**os.environ, **environment})


def settings(pairs):
    return [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]


def in_place(test):
    def call():
        with tempfile.TemporaryDirectory(prefix="tocsin-config-") as place:
            test(pathlib.Path(place))
    call.__name__ = test.__name__
    return call


def make_key(place):
    subprocess.run([str(BUILD / "agent" / "tocsin"), "keygen", "--output", str(place / "key")],
                   check=True, stdout=subprocess.DEVNULL)
    return place / "key"


def sound(place):
    return {"node.state_directory": place / "state", "overlay.listen": "127.0.0.1"}


CONTRADICTIONS = [
    ({"overlay.listen": "10.1.2.3"}, "[overlay] listen = \"10.1.2.3\"", "without a key"),
    ({"overlay.listen": "0.0.0.0"}, "[overlay] listen = \"0.0.0.0\"", "without a key"),
    ({"overlay.advertise": "[::1]:5"}, "[overlay] advertise", "another address family"),
    ({"client.listen": "10.1.2.3"}, "[client] listen", "loopback only"),
    ({"client.listen": "127.0.0.1:28030"}, "[client] listen", "[overlay] listen"),
    ({"http.listen": "127.0.0.1:28030"}, "[http] listen", "[overlay] listen"),
    ({"http.listen": "127.0.0.1:28029"}, "[http] listen", "[client] listen"),
    ({"http.listen": "0.0.0.0"}, "[http] listen", "[http] allow is empty"),
    ({"http.listen": "[::]:80"}, "[http] listen", "[http] allow is empty"),
    ({"device.mlx5_0.wire": "udp"}, "[device mlx5_0] wire", "[device soft0], only"),
    ({"device.mlx5_0.faults": "loss=1%"}, "[device mlx5_0] faults", "[device soft0], only"),
    ({"device.soft0.expect_rate": "10"}, "[device soft0] expect_rate", "has no rate"),
    ({"check.a.command": "/bin/true", "check.a.timeout": "2m"}, "[check a] timeout",
     "less than interval, which is 30s by default"),
    ({"check.a.command": "/bin/true", "check.a.interval": "5s"}, "[check a] interval",
     "more than timeout, which is 5s by default"),
    ({"device.mlx5_0.expect_rate": "fast"}, "[device mlx5_0] expect_rate", "is not a rate such as"),
    ({"health.off": "drivers,disk"}, "[health] off", "is not a built-in check"),
    ({"check.x.command": "/bin/true", "check.x.interval": "4s", "check.x.timeout": "7s"},
     "[check x] timeout", "less than interval, which is 4s\n"),
    ({"check.a-b.command": "/bin/true", "check.a_b.command": "/bin/true"}, "[check a_b] command",
     "its reason CheckAB is too similar to that of [check a-b], CheckAB"),
    ({"check.drivers.command": "/bin/true"}, "[check drivers] command",
     "which a built-in check has already"),
    ({"check.-.command": "/bin/true"}, "[check -] command", "needs a letter or a digit"),
    ({"check.x.command": "true"}, "[check x] command", "absolute path, such as"),
    ({"check.x.command": "/bin/sh -c 'x"}, "[check x] command", "an unterminated quote"),
    ({"check.x.command": "/bin/true", "check.x.convention": "icinga"},
     "[check x] convention", "nagios"),
    ({"check.x.timeout": "3s"}, "[check x] needs the key command", ""),
    ({"device.soft0.wire": "tcp"}, "[device soft0] wire",
     "is not a wire; use udp or dpdk:DEVARGS\n"),
    ({"device.soft0.wire": "memory"}, "[device soft0] wire", "reaches no other process"),
    ({"device.soft0.address": "nowhere"}, "[device soft0] address", "nowhere"),
    ({"device.soft0.address": "0.0.0.0"}, "[device soft0] address", "is the wildcard address"),
    ({"device.soft0.address": "224.0.0.1"}, "[device soft0] address", "multicast"),
    ({"device.soft0.faults": "loss=200%"}, "[device soft0] faults", "loss"),
]


@in_place
def values_that_contradict_each_other_are_refused_by_check_and_start(place):
    for change, where, why in CONTRADICTIONS:
        for arguments in (["--check-config"], []):
            done = tocsind(*arguments, *settings({**sound(place), **change}))
            assert (done.returncode, done.stdout) == (2, ""), (change, done)
            assert done.stderr.count("\n") == 1, done.stderr
            assert where in done.stderr and why in done.stderr, done.stderr
            assert done.stderr.count("allowed") <= 1, done.stderr


@in_place
def ports_that_the_system_chooses_contradict_nothing(place):
    done = tocsind("--check-config", *settings({
        **sound(place), "overlay.listen": "127.0.0.1:0", "client.listen": "127.0.0.1:0",
        "http.listen": "127.0.0.1:0"}))
    assert done.returncode == 0, done.stderr


@in_place
def a_sound_configuration_is_said_to_be_and_leaves_nothing_behind(place):
    seeds = place / "seeds"
    seeds.write_text("127.0.0.2\n")
    key = make_key(place)
    before = sorted(place.iterdir())
    done = tocsind("--check-config", *settings({
        **sound(place), "overlay.key": key, "overlay.join": f"n[1-3],{seeds}",
        "client.group": "root", "worker.cores": ""}))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "sound" in done.stdout, done.stdout
    assert sorted(place.iterdir()) == before


@in_place
def what_will_not_do_on_this_machine_is_named_with_the_reason(place):
    open_key = make_key(place)
    open_key.chmod(0o644)
    garbage = place / "garbage"
    garbage.touch(0o600)
    garbage.write_text("no key\n")
    (place / "file").touch()
    (place / "open").touch()
    (place / "open").chmod(0o777)
    (place / "wide").mkdir()
    (place / "wide" / "file").touch(0o755)
    (place / "wide").chmod(0o777)
    for change, words in (
            ({"overlay.key": place / "none"}, ["[overlay] key", f"{place}/none"]),
            ({"overlay.key": open_key}, ["[overlay] key", "0600"]),
            ({"overlay.key": garbage}, ["[overlay] key", str(garbage)]),
            ({"overlay.join": f"n1,{place}/seeds"}, ["[overlay] join", f"{place}/seeds"]),
            ({"client.group": "nobody-has-this"}, ["[client] group", "nobody-has-this"]),
            ({"check.x.command": "/no/such x"}, ["[check x] command", "cannot run /no/such: No"]),
            ({"check.x.command": place / "file"}, ["[check x] command", "not executable"]),
            ({"check.x.command": place / "open"},
             ["[check x] command", "other users can write to this program (mode 0777)"]),
            ({"check.x.command": place / "wide" / "file"},
             ["[check x] command", f'"{place}/wide": other users can write to this directory']),
            ({"check.x.command": "/bin"}, ["[check x] command", "not a regular file"]),
            ({"check.x.command": "/bin/true", "check.x.user": "who-is-that"},
             ["[check x] user", "there is no user who-is-that"]),
            ({"health.webhook_user": "who-is-that"},
             ["[health] webhook_user", "there is no user who-is-that"]),
            ({"worker.cores": "0,1023"}, ["[worker] cores", "1023"]),
            ({"node.state_directory": place / "file"}, ["state_directory", "not a directory"]),
            ({"node.state_directory": "/tmp"}, ["state_directory", "/tmp: other users can write"]),
            ({"client.socket": place / "none" / "s"},
             ["[client] socket", f"cannot write to {place}/none: there is no such directory"]),
            ({"client.socket": place / "file"}, ["[client] socket", "exists and is not a socket"]),
            ({"http.listen": "192.0.2.1", "http.allow": "192.0.2.0/24"},
             ["[http] listen", "192.0.2.1:28031: Cannot assign requested address"]),
            ({"node.state_directory": place / "a" / "b"}, ["state_directory", f"{place}/a"]),
    ):
        done = tocsind("--check-config", *settings({**sound(place), **change}))
        assert (done.returncode, done.stdout) == (2, ""), (change, done)
        assert done.stderr.count("\n") == 1, done.stderr
        for word in words:
            assert word in done.stderr, (word, done.stderr)
        assert "no key" not in done.stderr, done.stderr  # never a byte of a key file


@in_place
def everything_that_will_not_do_is_named_at_once_with_its_place(place):
    path = place / "tocsin.conf"
    path.write_text("[node]\nstate_directory = /nowhere/at/all\n"
                    "[overlay]\nlisten = 127.0.0.1\nkey = /nowhere/key\njoin = /nowhere/seeds\n"
                    "[client]\ngroup = nobody-has-this\n[worker]\ncores = 1023\n")
    done = tocsind("--check-config", path)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, 5), done.stderr
    for number in (2, 5, 6, 8, 10):
        assert any(f"{path}:{number}: " in line for line in lines), (number, lines)


@in_place
def contradictions_are_named_together_with_wrong_values(place):
    done = tocsind("--check-config", *settings({
        **sound(place), "log.level": "loud", "client.listen": "10.1.2.3",
        "device.mlx5_0.wire": "udp", "worker.cores": "0,1023"}))
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, 4), done.stderr
    for words in ("[log] level", "[client] listen", "[device mlx5_0] wire", "[worker] cores"):
        assert any(words in line for line in lines), (words, lines)


@in_place
def nothing_is_concluded_from_what_stands_in_for_a_wrong_value(place):
    for change in ({"overlay.key": "relative", "overlay.listen": "10.1.2.3"},
                   {"overlay.listen": "nowhere", "overlay.advertise": "[::1]:5"},
                   {"node.device": "soft", "device.soft0.wire": "tcp"},
                   {"node.device": "nic"}):
        done = tocsind("--check-config", *settings({**sound(place), **change}))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (change, done)


@in_place
def devices_that_this_machine_does_not_have_are_named(place):
    soft = {"node.device": "soft"}
    dpdk = {**soft, "device.soft0.address": "192.0.2.1"}
    for change, words in (
            ({"node.device": "nic:no-such"}, ["[node] device", '"nic:no-such" names no device']),
            ({"node.device": "auto,cpu:4095"}, ["[node] device", '"cpu:4095" names no NUMA node']),
            ({"node.device": "cuda:4095"}, ["[node] device", '"cuda:4095" ']),
            ({**soft, "device.soft0.address": "192.0.2.1"},
             ["[device soft0] address", "192.0.2.1 is not the address of an interface"]),
            ({**dpdk, "device.soft0.wire": "dpdk:net_af_packet0,iface=no-such"},
             ["[device soft0] wire", '"no-such" is not an interface']),
            ({**dpdk, "device.soft0.wire": "dpdk:net_af_packet0"},
             ["[device soft0] wire", "iface=NAME"]),
            ({**dpdk, "device.soft0.wire": "dpdk:net_foo0"},
             ["[device soft0] wire", "no driver supports net_foo0", "net_memif", "virtio"]),
            ({**dpdk, "device.soft0.wire": "dpdk:ffff:1f:1f.7"},
             ["[device soft0] wire", "no PCI device ffff:1f:1f.7"]),
            ({**dpdk, "device.soft0.wire": "dpdk:net_memif0,gateway=192.0.2.1"},
             ["[device soft0] wire", "ADDRESS/PREFIX"]),
    ):
        done = tocsind("--check-config", *settings({**sound(place), **change}))
        assert (done.returncode, done.stdout) == (2, ""), (change, done)
        assert done.stderr.count("\n") == 1, done.stderr
        for word in words:
            assert word in done.stderr, (word, done.stderr)


@in_place
def key_of_the_agent_that_would_end_a_start_is_named(place):
    key = make_key(place)
    (place / "state").mkdir(0o700)
    own = place / "state" / "agent.key"
    for prepare, words in (
            (own.mkdir, "not a regular file"),
            (lambda: own.touch(0o600), "not a key file; remove it"),
            (lambda: shutil.copy(key, own), "this is the cluster's key"),
            (lambda: os.symlink("not-mounted", own), "No such file or directory")):
        prepare()
        done = tocsind("--check-config", *settings({**sound(place), "overlay.key": key}))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
        assert "[node] state_directory" in done.stderr and f'{own}": ' in done.stderr, done.stderr
        assert words in done.stderr, (words, done.stderr)
        shutil.rmtree(own) if own.is_dir() else own.unlink()
    done = tocsind("--check-config", *settings({**sound(place), "overlay.key": key}))
    assert (done.returncode, done.stderr) == (0, ""), done


@in_place
def devices_that_it_has_are_sound(place):
    for change in ({"node.device": "soft"}, {"node.device": "nic:soft0,cpu:0"},
                   {"node.device": "none", "device.soft0.address": "192.0.2.1"},
                   {"node.device": "soft", "device.soft0.address": "127.90.1.2"},
                   {"node.device": "soft", "device.soft0.address": "192.0.2.1",
                    "device.soft0.wire": "dpdk:net_memif0,socket=@no-such,role=client"},
                   {"node.device": "soft", "device.soft0.address": "192.0.2.1",
                    "device.soft0.wire": "dpdk:net_af_packet0,iface=lo"}):
        done = tocsind("--check-config", *settings({**sound(place), **change}))
        assert (done.returncode, done.stderr) == (0, ""), (change, done)


def denials(place, change, units):
    libraries = place / "libraries"
    libraries.mkdir(exist_ok=True)
    if not (libraries / "libcuda.so.1").exists():
        os.symlink(FAKE_CUDA, libraries / "libcuda.so.1")
    done = tocsind("--check-config", *settings({**sound(place), **change}),
                   LD_LIBRARY_PATH=str(libraries),
                   SYSTEMD_UNIT_PATH=":".join(str(unit) for unit in units))
    assert (done.returncode, done.stderr) == (0, ""), (change, done)
    return [line for line in done.stdout.splitlines()
            if line.startswith("note: tocsind.service denies")]


@in_place
def what_the_unit_denies_is_named_with_the_drop_in_that_allows_it(place):
    first, last = place / "etc", place / "lib"
    drop_ins = first / "tocsind.service.d"
    for directory in (drop_ins, last):
        directory.mkdir(parents=True)
    soft = {"node.device": "soft", "device.soft0.address": "192.0.2.1"}
    packet = {**soft, "device.soft0.wire": "dpdk:net_af_packet0,iface=lo"}
    memif = {**soft, "device.soft0.wire": "dpdk:net_memif0,socket=@no-such,role=client"}
    cuda = {"node.device": "cuda:0"}
    assert not denials(place, packet, [first, last])  # there is no unit
    (last / "tocsind.service").write_text(
        (BUILD / "agent" / "tocsind.service").read_text())
    for change, drop_in, words in ((packet, "dpdk.conf", "AF_PACKET"),
                                   (cuda, "cuda.conf", "char-nvidia*")):
        said = denials(place, change, [first, last])
        assert len(said) == 1 and drop_in in said[0] and words in said[0], said
        (drop_ins / drop_in).write_text((SHIPPED / drop_in).read_text())
        assert not denials(place, change, [first, last]), change
    assert not denials(place, memif, [first, last])
    assert not denials(place, {"node.device": "soft"}, [first, last])
    # DPDK sets the address of the interface, so CAP_NET_RAW alone does not suffice.
    (drop_ins / "zz.conf").write_text(
        "[Service]\nAmbientCapabilities=\nAmbientCapabilities=CAP_NET_RAW\n")
    said = denials(place, packet, [first, last])
    assert len(said) == 1 and "CAP_NET_ADMIN" in said[0], said
    # A unit of root lacks the capabilities to become another user; those of root.conf suffice.
    other = {"check.x.command": "/bin/true", "check.x.user": "nobody"}
    (drop_ins / "zz.conf").write_text("[Service]\nUser=root\n")
    said = denials(place, other, [first, last])
    assert len(said) == 1 and "CAP_SETUID CAP_SETGID CAP_KILL" in said[0], said
    (drop_ins / "zz.conf").write_text((SHIPPED / "root.conf").read_text())
    assert not denials(place, other, [first, last])
    # Drop-ins count in the order of their names, and an empty assignment forgets.
    (drop_ins / "zz.conf").write_text("[Service]\nDeviceAllow=\nRestrictAddressFamilies=AF_UNIX\n")
    assert len(denials(place, cuda, [first, last])) == 1
    assert not denials(place, packet, [first, last])
    (drop_ins / "zz.conf").write_text("[Service]\nRestrictAddressFamilies=\n"
                                      "RestrictAddressFamilies=~AF_PACKET\n"
                                      "[Other]\nRestrictAddressFamilies=AF_PACKET\n")
    assert len(denials(place, packet, [first, last])) == 1
    assert not denials(place, cuda, [first, last])
    # A unit in an earlier directory hides the other.
    (drop_ins / "zz.conf").unlink()
    (first / "tocsind.service").write_text("[Service]\nPrivateDevices=yes\n")
    assert len(denials(place, cuda, [first, last])) == 1
    (first / "tocsind.service").write_text("[Service]\nExecStart=/x\n")
    for name in ("cuda.conf", "dpdk.conf"):
        (drop_ins / name).unlink()
    assert not denials(place, cuda, [first, last]) and not denials(place, packet, [first, last])


@in_place
def a_port_that_another_program_holds_is_named_with_its_holder(place):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.90.1.3", 4791))
        held = {**sound(place), "device.soft0.address": "127.90.1.3"}
        done = tocsind("--check-config", *settings({**held, "node.device": "soft"}))
        assert done.returncode == 2 and str(os.getpid()) in done.stderr, done
        assert "[device soft0] address" in done.stderr, done
        # Who has no use for it does not care.
        done = tocsind("--check-config", *settings({**held, "node.device": "none"}))
        assert done.returncode == 0, done


@in_place
def an_address_that_another_program_holds_is_named_with_its_holder(place):
    for key in ("overlay.listen", "client.listen", "http.listen"):
        with socket.create_server(("127.90.1.4", 0)) as holder:
            address = f"127.90.1.4:{holder.getsockname()[1]}"
            done = tocsind("--check-config", *settings({**sound(place), key: address}))
        section = key.split(".", maxsplit=1)[0]
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert f"[{section}] listen" in done.stderr and str(os.getpid()) in done.stderr, done
        assert f"{address}: " in done.stderr and "listens there" in done.stderr, done


@in_place
def keys_that_a_new_cluster_needs_are_named_with_their_commands(place):
    steps = {"overlay.key": (make_key(place), "  tocsin keygen\n"),
             "overlay.join": ("127.0.0.1", "join = node[001-003]\n"),
             "overlay.expect": ("n1", "expect = node[001-128]\n")}
    for missing in ((), *((name,) for name in steps), tuple(steps)):
        change = {name: value for name, (value, _) in steps.items() if name not in missing}
        if "overlay.key" in change:
            change["overlay.listen"] = "0.0.0.0"
        done = tocsind("--check-config", *settings({
            "node.state_directory": place / "state", "node.name": "n1", **change}))
        assert (done.returncode, done.stderr) == (0, ""), done
        for name, (_, command) in steps.items():
            assert (command in done.stdout) == (name in missing), (missing, done.stdout)
            assert (f"{name.replace('overlay.', '[overlay] ')} is not set" in
                    done.stdout) == (name in missing), done.stdout
        assert ("systemctl restart tocsind" in done.stdout) == bool(missing), done.stdout
        if missing and not pathlib.Path("/etc/tocsin/tocsin.conf").exists():
            assert "/doc/tocsin/tocsin.conf /etc/tocsin/tocsin.conf\n" in done.stdout, done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout


@in_place
def key_file_that_does_not_exist_is_named_with_the_command_that_makes_it(place):
    done = tocsind("--check-config", *settings({**sound(place), "overlay.key": place / "none"}))
    assert done.returncode == 2 and "No such file" in done.stderr, done
    assert "make a key with tocsin keygen" in done.stderr, done


@in_place
def what_an_agent_holds_that_runs_is_told_and_no_mistake(_):
    with clusters.Cluster(BUILD, 1) as ring:
        ring.start()
        ring.wait_ring()
        agent = ring.agents[0]
        done = tocsind("--check-config", agent.config)
        assert (done.returncode, done.stderr) == (0, ""), done
        notes = [line for line in done.stdout.splitlines()
                 if not line.startswith(("[history] size of 2.0 MiB holds ", " "))]
        assert len(done.stdout.splitlines()) == len(notes) + 4, "the history has four lines"
        assert notes[0].endswith("the configuration is sound") and len(notes) == 4, done.stdout
        for section in ("overlay", "client", "http"):
            words = f"note: [{section}] listen: an agent already runs on {agent.address}:"
            assert any(words in note and f"process {agent.process.pid}" in note
                       for note in notes), done.stdout
        assert agent.answers(), "it was not disturbed"


@in_place
def directory_is_the_same_with_slashes_behind_it(place):
    done = tocsind("--check-config", *settings({
        **sound(place), "node.state_directory": f"{place}/state//"}))
    assert done.returncode == 0 and not (place / "state").exists(), done


@in_place
def directories_that_cannot_be_written_are_named(place):
    if os.geteuid() != 0:
        raise tap.Skip("another user is needed, for whom files are not writable")
    place.chmod(0o755)
    # The other user may have no access to the directory of the build.
    reachable = {"user": 65534, "program": shutil.copy(BUILD / "agent" / "tocsind", place)}
    done = tocsind("--check-config", *settings({**sound(place), "client.socket": place / "s"}),
                   **reachable)
    assert done.returncode == 2 and done.stderr.count("\n") == 2, done
    assert f"cannot create {place}/state in {place}: Permission denied" in done.stderr, done
    assert f"cannot write to {place}: Permission denied" in done.stderr, done
    (place / "mine").mkdir()
    os.chown(place / "mine", 65534, -1)
    done = tocsind("--check-config", *settings({
        **sound(place), "node.state_directory": place / "mine" / "state",
        "client.socket": place / "mine" / "s", "check.x.command": "/bin/true",
        "check.x.user": "root"}), **reachable)
    assert done.returncode == 2, done
    assert "the unit tocsin-root.socket is out of reach" in done.stderr, done
    for base in ("", str(place / "mine"), str(place)):
        done = tocsind("--check-config", *settings({
            **sound(place), "node.state_directory": place / "mine" / "state"}), **reachable,
            XDG_RUNTIME_DIR=base, RUNTIME_DIRECTORY="")
        assert done.returncode == (0 if base.endswith("mine") else 2), done
        assert not (place / "mine" / "state").exists() and not (place / "tocsin").exists()


@in_place
def every_contradiction_is_told_though_a_key_is_missing(place):
    done = tocsind("--check-config", *settings({
        **sound(place), "check.x.timeout": "3s", "client.listen": "10.1.2.3",
        "overlay.lisen": "x"}))
    assert (done.returncode, done.stderr.count("\n")) == (2, 3), done
    for words in ("[check x] needs the key command", "[client] listen", '"lisen"'):
        assert words in done.stderr, (words, done.stderr)


@in_place
def a_host_name_that_is_no_node_name_is_refused(place):
    """Regression: "(none)" became the name of a node, and a sound one of 63 bytes was refused."""
    if os.geteuid() != 0:
        raise tap.Skip("another host name needs root")
    script = 'printf %s "$1" > /proc/sys/kernel/hostname && shift && exec "$@"'
    for name, code in (("(none)", 2), ("a b", 2), ("n" * 64, 2), ("n" * 63, 0), ("N1.x_y-z", 0)):
        done = tocsind("--uts", "sh", "-c", script, "sh", name, BUILD / "agent" / "tocsind",
                       "--check-config", *settings(sound(place)), program="unshare")
        assert done.returncode == code, (name, done)
        assert code == 0 or "at most 63 letters, digits" in done.stderr, done


def words_too_many_are_named():
    for arguments, words in (
            (["status"], 'takes no argument "status"'),
            (["--check-config", "/etc/hosts", "extra"], 'takes no argument "extra"'),
            (["--config", "/a", "--check-config", "/b"], '"/b" is a second one'),
            (["--check-config=/a", "--config", "/b"], '"/b" is a second one')):
        done = tocsind(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert words in done.stderr, (words, done.stderr)


TESTS = [
    values_that_contradict_each_other_are_refused_by_check_and_start,
    ports_that_the_system_chooses_contradict_nothing,
    a_sound_configuration_is_said_to_be_and_leaves_nothing_behind,
    what_will_not_do_on_this_machine_is_named_with_the_reason,
    everything_that_will_not_do_is_named_at_once_with_its_place,
    contradictions_are_named_together_with_wrong_values,
    nothing_is_concluded_from_what_stands_in_for_a_wrong_value,
    devices_that_this_machine_does_not_have_are_named,
    key_of_the_agent_that_would_end_a_start_is_named,
    devices_that_it_has_are_sound,
    what_the_unit_denies_is_named_with_the_drop_in_that_allows_it,
    a_port_that_another_program_holds_is_named_with_its_holder,
    an_address_that_another_program_holds_is_named_with_its_holder,
    keys_that_a_new_cluster_needs_are_named_with_their_commands,
    key_file_that_does_not_exist_is_named_with_the_command_that_makes_it,
    what_an_agent_holds_that_runs_is_told_and_no_mistake,
    directory_is_the_same_with_slashes_behind_it,
    directories_that_cannot_be_written_are_named,
    every_contradiction_is_told_though_a_key_is_missing,
    a_host_name_that_is_no_node_name_is_refused,
    words_too_many_are_named,
]

if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in TESTS])
