#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin ifaces` on machines made for it.

    ifaces_netns.py TOCSIN UNIT-NETIF
"""

import subprocess
import sys

import netns
import tap
from ifaces import answer, chosen, expect, expect_refusal, named, nccl, reasons, run
from netns import ip, veth, wait_for

UNIT_NETIF = sys.argv[2]


def nothing_there():
    """a machine without an address has no choice, and says what exists."""
    expect_refusal(1, "nothing qualifies\n  lo: no IP address\n")
    expect(nccl(status=1), [])


def only_loopback():
    """loopback alone is no choice unless it is asked for."""
    ip("link set lo up")
    expect(chosen(status=1), [])
    expect(reasons()["lo 127.0.0.1/8"], "loopback address")
    expect(chosen("--ifname", "lo"), ["lo 127.0.0.1/8"])
    expect(nccl(), ["lo 127.0.0.1/8"])
    expect(nccl(status=1, NCCL_SOCKET_FAMILY="AF_INET6"), [])  # ::1 never


def plain_veth():
    """a veth that runs is chosen, as in any container."""
    ip("link set lo up")
    veth("eth0", "10.0.0.1/24")
    expect(chosen(), ["eth0 10.0.0.1/24"])
    expect(nccl(), ["eth0 10.0.0.1/24"])
    expect(answer()["chosen"][0]["class"], "veth")


def link_down():
    """a link that is down is dropped; nccl does not look."""
    veth("eth0", "10.0.0.1/24", up=False)
    veth("eth1", "10.1.0.1/24")
    expect(chosen(), ["eth1 10.1.0.1/24"])
    expect(reasons()["eth0 10.0.0.1/24"], "down")
    expect(nccl(), ["eth0 10.0.0.1/24", "eth1 10.1.0.1/24"])


def no_carrier():
    """a link without carrier is dropped; nccl does not look."""
    veth("eth0", "10.0.0.1/24", peer_up=False)
    expect(chosen(status=1), [])
    expect(reasons()["eth0 10.0.0.1/24"], "no carrier")
    expect(nccl(), ["eth0 10.0.0.1/24"])


def named_but_down():
    """an interface that is named but down is no choice, and the reason is told."""
    veth("eth0", "10.0.0.1/24", up=False)
    veth("eth1", "10.1.0.1/24")
    expect_refusal(1, "eth0 10.0.0.1/24: down", "--ifname", "eth0")
    expect_refusal(1, "eth1 10.1.0.1/24: not in the list", "--ifname", "eth0")


def link_local_only():
    """link-local addresses are dropped unless their network is asked for."""
    veth("eth0", "169.254.3.1/24", "fe80::1/64")
    expect(chosen(status=1), [])
    expect(reasons()["eth0 169.254.3.1/24"], "link-local address")
    expect(chosen("--ifname", "eth0", status=1), [])
    expect(chosen("--ifname", "fe80::/10"), ["eth0 fe80::1/64"])
    expect(chosen("--ifname", "169.254.0.0/16"), ["eth0 169.254.3.1/24"])
    expect(nccl(), ["eth0 169.254.3.1/24"])
    expect(nccl(NCCL_SOCKET_FAMILY="AF_INET6"), ["eth0 fe80::1/64"])


def docker0():
    """A bridge with one veth port, as docker leaves it."""
    ip(
        "link add docker0 type bridge", "link set docker0 addrgenmode none",
        "link add vh0 type veth peer name vc0", "link set vh0 master docker0",
        "link set vh0 addrgenmode none", "link set vc0 addrgenmode none",
        "link set docker0 up", "link set vh0 up", "link set vc0 up",
        "addr add 172.17.0.1/16 dev docker0",
    )
    wait_for(lambda: netns.is_running("docker0"), "docker0 to run")


def docker_only():
    """docker0 alone is no choice, for every host has its address; nccl falls back to it."""
    ip("link set lo up")
    docker0()
    expect(chosen(status=1), [])
    expect(reasons()["docker0 172.17.0.1/16"], "bridge without hardware")
    expect(chosen("--ifname", "docker0"), ["docker0 172.17.0.1/16"])
    expect(nccl(), ["docker0 172.17.0.1/16"])
    expect(nccl(NCCL_COMM_ID="172.17.9.9:1"), ["docker0 172.17.0.1/16"])


def docker_is_no_common_subnet():
    """a peer in docker's range does not make docker0 a choice."""
    docker0()
    veth("eth0", "10.0.0.1/24")
    ip("route add default via 10.0.0.254")
    expect(chosen("--peer", "172.17.0.9"), ["eth0 10.0.0.1/24"])


def bridge_and_port():
    """an address on a bridge's port is dropped, the bridge is taken when named."""
    veth("eth0", "10.0.0.1/24")
    ip(
        "link add br0 type bridge", "link set br0 addrgenmode none", "link set eth0 master br0",
        "link set br0 up", "addr add 10.5.0.1/24 dev br0",
    )
    wait_for(lambda: netns.is_running("br0"), "br0 to run")
    expect(reasons()["eth0 10.0.0.1/24"], "port of a bridge")
    expect(reasons()["br0 10.5.0.1/24"], "bridge without hardware")
    expect(chosen("--ifname", "=br0"), ["br0 10.5.0.1/24"])
    expect(nccl(), ["eth0 10.0.0.1/24", "br0 10.5.0.1/24"])


def duplicate_subnets():
    """of two links in one subnet the kernel's route decides, else the lower index."""
    veth("eth0", "10.0.0.1/24")
    veth("eth1", "10.0.0.2/24")
    expect(chosen(), ["eth0 10.0.0.1/24"])
    ip("route add 10.0.0.128/25 dev eth1")
    expect(chosen("--peer", "10.0.0.200"), ["eth1 10.0.0.2/24"])
    expect(chosen("--peer", "10.0.0.9"), ["eth0 10.0.0.1/24"])
    expect(nccl(NCCL_COMM_ID="10.0.0.200:1"), ["eth0 10.0.0.1/24"])


def address_on_lo():
    """a global /32 on lo is chosen where links have none of their own, and by a route's source."""
    ip("link set lo up", "addr add 192.0.2.7/32 dev lo")
    veth("eth0", "fe80::1/64")
    expect(chosen(), ["lo 192.0.2.7/32"])
    ip("addr add 10.0.0.1/31 dev eth0", "route add 198.51.100.0/24 dev eth0 src 192.0.2.7")
    expect(chosen(), ["eth0 10.0.0.1/31"])
    expect(chosen("--peer", "198.51.100.3"), ["lo 192.0.2.7/32"])
    expect(nccl(), ["eth0 10.0.0.1/31"])


def ipv6_only():
    """a machine with IPv6 alone is served by it."""
    ip("link set lo up")
    veth("eth0", "fd00::1/64", "fe80::1/64")
    expect(chosen(), ["eth0 fd00::1/64"])
    expect(chosen("--peer", "fd00::9"), ["eth0 fd00::1/64"])
    expect(nccl(), ["eth0 fd00::1/64"])
    expect(nccl(NCCL_COMM_ID="[fd00::9]:1"), ["eth0 fd00::1/64"])


def family_conflict():
    """a family that nothing has is no choice, one that contradicts the peer a mistake."""
    veth("eth0", "10.0.0.1/24")
    expect(chosen(status=1, TOCSIN_SOCKET_FAMILY="ipv6"), [])
    expect(reasons(TOCSIN_SOCKET_FAMILY="ipv6")["eth0 10.0.0.1/24"], "other address family")
    expect_refusal(
        2, "--peer is IPv6, but TOCSIN_SOCKET_FAMILY asks for IPv4",
        "--peer", "fd00::1", TOCSIN_SOCKET_FAMILY="ipv4")
    expect(nccl(status=1, NCCL_SOCKET_FAMILY="AF_INET6"), [])
    expect(nccl(NCCL_SOCKET_FAMILY="nonsense"), ["eth0 10.0.0.1/24"])


def twenty_interfaces():
    """of twenty interfaces nccl returns the first sixteen, and tocsin judges all."""
    for number in range(20):
        veth(f"eth{number}", f"10.0.{number}.1/24")
    names = [f"eth{number} 10.0.{number}.1/24" for number in range(20)]
    expect(nccl(), names[:16])
    expect(nccl(NCCL_SOCKET_IFNAME="^eth0,p-"), names[1:17])
    told = list(reasons("--ifname", "eth").values())
    expect((told.count("taken"), len([one for one in told if one.startswith("qualified, ")])),
           (1, 19))
    expect(chosen("--ifname", "=eth19"), ["eth19 10.0.19.1/24"])
    expect_refusal(1, "eth19 10.0.19.1/24", "--ifname", "ib")  # listed to the last


def long_names():
    """names of fifteen characters are told apart to the last."""
    veth("fifteen-chars-a", "10.0.0.1/24")
    veth("fifteen-chars-b", "10.1.0.1/24")
    expect(chosen("--ifname", "=fifteen-chars-b"), ["fifteen-chars-b 10.1.0.1/24"])
    expect(chosen("--ifname", "^fifteen-chars-a"), ["fifteen-chars-b 10.1.0.1/24"])
    expect(nccl(NCCL_SOCKET_IFNAME="=fifteen-chars-b"), ["fifteen-chars-b 10.1.0.1/24"])
    expect(run("--ifname", "fifteen-chars-ab").returncode, 2)


def hostile_name():
    """a name with control characters is shown harmless, in table, JSON, note and error."""
    veth("a\x1b[31m", "10.0.0.1/24")
    expect(chosen(), ["a\\x1b[31m 10.0.0.1/24"])
    expect(nccl(), ["a\\x1b[31m 10.0.0.1/24"])
    for arguments in ([], ["--explain"], ["--ifname", "ib"], ["--family", "ipv6"],
                      ["--peer", "10.0.0.9", "--explain"]):
        done = run(*arguments)
        assert "\x1b" not in done.stdout + done.stderr, done
        assert "a\\x1b[31m 10.0.0.1/24" in " ".join((done.stdout + done.stderr).split()), done


def default_route():
    """default-route follows the lowest metric, and is an error where there is none."""
    veth("eth0", "10.0.0.1/24")
    veth("eth1", "10.1.0.1/24")
    expect_refusal(1, "matches nothing: there is no default route", "--ifname", "default-route")
    ip("route add default via 10.0.0.254 metric 200", "route add default via 10.1.0.254 metric 100")
    expect(chosen("--ifname", "default-route"), ["eth1 10.1.0.1/24"])
    ip("route del default via 10.1.0.254")
    expect(chosen("--ifname", "default-route"), ["eth0 10.0.0.1/24"])
    expect(chosen("--ifname", "^default-route"), ["eth1 10.1.0.1/24"])


def peer_route():
    """the route to the peer comes before everything but the list."""
    veth("eth0", "10.0.0.1/24")
    veth("eth1", "10.1.0.1/24")
    ip("route add 198.51.100.0/24 via 10.1.0.254", "route add 198.51.100.128/25 via 10.0.0.254")
    expect(chosen("--peer", "198.51.100.5"), ["eth1 10.1.0.1/24"])
    expect(chosen("--peer", "198.51.100.200"), ["eth0 10.0.0.1/24"])
    expect(chosen("--ifname", "peer:198.51.100.5:4000"), ["eth1 10.1.0.1/24"])
    expect(answer("--ifname", "peer:198.51.100.5:4000")["chosen"][0]["port"], 4000)
    expect(chosen("--peer", "198.51.100.5", "--ifname", "eth0"), ["eth0 10.0.0.1/24"])


def unreachable_peer():
    """a peer without a route is noted; as an item of the list it is an error."""
    veth("eth0", "10.0.0.1/24")
    ip("route add blackhole 203.0.113.0/24", "route add unreachable 198.51.100.0/24")
    for peer in ("192.0.2.1", "203.0.113.1", "198.51.100.1"):
        found = answer("--peer", peer)
        expect([named(one) for one in found["chosen"]], ["eth0 10.0.0.1/24"])
        assert "no route" in found["notes"][0], found["notes"]
        expect_refusal(1, f'"peer:{peer}" cannot be reached', "--ifname", f"peer:{peer}")


def networks():
    """a network chooses by address, among several of one link as well."""
    veth("eth0", "10.0.0.1/24", "192.168.7.1/24", "fd00::1/64")
    veth("eth1", "10.1.0.1/24")
    expect(chosen("--ifname", "192.168.0.0/16"), ["eth0 192.168.7.1/24"])
    expect(chosen("--ifname", "10.1.0.0/16,10.0.0.0/8"), ["eth1 10.1.0.1/24"])
    expect(chosen("--ifname", "^10.0.0.0/15"), ["eth0 192.168.7.1/24"])
    expect(chosen("--ifname", "fd00::/8"), ["eth0 fd00::1/64"])
    expect_refusal(1, '"172.16.0.0/12" contains no address', "--ifname", "172.16.0.0/12")


def tentative_address():
    """an IPv6 address is not used before it is known to be unique."""
    veth("eth0")
    with open("/proc/sys/net/ipv6/conf/eth0/dad_transmits", "w", encoding="ascii") as file:
        file.write("60")
    ip("addr add fd00::1/64 dev eth0")
    expect(chosen(status=1), [])
    expect(reasons()["eth0 fd00::1/64"], "address is tentative")
    expect(nccl(), ["eth0 fd00::1/64"])


def duplicate_address():
    """an address that another host has is dropped."""
    veth("eth0")
    ip("addr add fd00::1/64 dev p-eth0 nodad", "addr add fd00::1/64 dev eth0")
    wait_for(
        lambda: any(one.get("dadfailed") for one in netns.address_flags("eth0")),
        "the duplicate to be seen",
    )
    expect(reasons()["eth0 fd00::1/64"], "address is a duplicate")


def deprecated_address():
    """an address that is being given up is dropped."""
    veth("eth0")
    ip("addr add fd00::1/64 dev eth0 nodad preferred_lft 0", "addr add fd00::2/64 dev eth0 nodad")
    expect(reasons()["eth0 fd00::1/64"], "address is deprecated")
    expect(chosen(), ["eth0 fd00::2/64"])


def classes_of_kinds():
    """macvlan, vxlan and tap are classed by kind, whatever their names."""
    veth("ib0", "10.0.0.1/24")
    ip("link add eth9 link ib0 type macvlan", "link set eth9 up", "addr add 10.1.0.1/24 dev eth9")
    ip("link add eth8 type vxlan id 7 dstport 4789 local 10.0.0.1", "addr add 10.2.0.1/24 dev eth8")
    ip("tuntap add mode tap name eth7", "addr add 10.3.0.1/24 dev eth7")
    found = {one["interface"]: one["class"] for one in answer()["candidates"]}
    expect(found["ib0"], "veth")
    expect(found["eth9"], "macvlan")
    expect(found["eth8"], "tunnel")
    expect(found["eth7"], "tunnel")
    expect(nccl(), ["ib0 10.0.0.1/24"])


def kinds_of_larger_kernels():
    """dummy, VLAN and bond are classed live as they are in the recording."""
    veth("eth0")
    try:
        ip(
            "link add dummy0 type dummy", "link set dummy0 up", "addr add 10.0.0.1/24 dev dummy0",
            "link add link eth0 name v5 type vlan id 5", "link set v5 up",
            "addr add 10.1.0.1/24 dev v5",
            "link add bond0 type bond", "link set eth0 down", "link set eth0 master bond0",
            "link set bond0 up", "addr add 10.2.0.1/24 dev bond0", "addr add 10.3.0.1/24 dev eth0",
        )
    except AssertionError as refused:
        said = str(refused).splitlines()[0]
        raise tap.Skip(f"this kernel says: {said} The recorded rack has them.") from refused
    found = {one["interface"]: one["class"] for one in answer()["candidates"]}
    expect([found[name] for name in ("dummy0", "v5", "bond0")], ["dummy", "vlan", "bond"])
    expect(reasons()["eth0 10.3.0.1/24"], "port of a bond")


def names_as_nccl():
    """nccl matches prefixes, exact names and exclusions as the seed does, live."""
    ip("link set lo up")
    veth("eth0", "10.0.0.1/24", "10.0.9.1/24")
    veth("eth1", "10.1.0.1/24")
    ip("addr add 10.2.0.1/24 dev eth1 label eth1:5")
    both = ["eth0 10.0.0.1/24", "eth1 10.1.0.1/24", "eth1 10.2.0.1/24"]
    expect(nccl(NCCL_SOCKET_IFNAME="eth"), both)
    expect(nccl(NCCL_SOCKET_IFNAME="^lo"), both)
    expect(nccl(NCCL_SOCKET_IFNAME="=eth1"), ["eth1 10.1.0.1/24"])
    expect(nccl(NCCL_SOCKET_IFNAME="eth1:4000"), ["eth1 10.1.0.1/24", "eth1 10.2.0.1/24"])
    expect(nccl(NCCL_SOCKET_IFNAME="e"), both)
    expect(nccl(NCCL_SOCKET_IFNAME="=,"), ["lo 127.0.0.1/8"] + both)
    expect(nccl(NCCL_SOCKET_IFNAME="^=", status=1), [])
    expect(nccl(NCCL_SOCKET_IFNAME="nosuch", status=1), [])
    expect(nccl(NCCL_COMM_ID="10.0.9.77:1"), ["eth0 10.0.9.1/24"])
    expect(nccl(NCCL_COMM_ID="[bad"), both)


def same_order_as_getifaddrs():
    """addresses, aliases among them, come in the order and by the names of getifaddrs."""
    ip("link set lo up")
    for number in (5, 1, 3):
        veth(f"eth{number}", f"10.0.{number}.1/24", f"fd00:{number}::1/64")
        ip(f"addr add 10.9.{number}.1/24 dev eth{number} label eth{number}:x")
    done = subprocess.run([UNIT_NETIF, "--filter", "netif_facts"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def foreign_sysfs():
    """the /sys of another namespace is not believed, and kinds are known all the same."""
    veth("eth0", "10.0.0.1/24")
    subprocess.run(["umount", "/sys"], check=True)
    candidate = [one for one in answer()["candidates"] if one["interface"] == "eth0"][0]
    expect((candidate["class"], candidate["sysfs"], candidate["speed_mbps"]), ("veth", False, None))


def record_and_explain():
    """what --record wrote, --from explains as the machine itself would."""
    ip("link set lo up")
    veth("eth0", "10.0.0.1/24", "fd00::1/64")
    ip("route add default via 10.0.0.254")
    arguments = ("--ifname", "default-route,peer:192.0.2.1,eth")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)
    expect(run("--record", "/mnt/here", *arguments).returncode, 0)
    live = answer(*arguments)
    ip("link set eth0 down")
    expect(answer("--from", "/mnt/here", *arguments), live)
    expect_refusal(1, "File exists", "--record", "/mnt/here")


CASES = [
    nothing_there,
    only_loopback,
    plain_veth,
    link_down,
    no_carrier,
    named_but_down,
    link_local_only,
    docker_only,
    docker_is_no_common_subnet,
    bridge_and_port,
    duplicate_subnets,
    address_on_lo,
    ipv6_only,
    family_conflict,
    twenty_interfaces,
    long_names,
    hostile_name,
    default_route,
    peer_route,
    unreachable_peer,
    networks,
    tentative_address,
    duplicate_address,
    deprecated_address,
    classes_of_kinds,
    kinds_of_larger_kernels,
    names_as_nccl,
    same_order_as_getifaddrs,
    foreign_sysfs,
    record_and_explain,
]

if __name__ == "__main__":
    netns.run(CASES)
