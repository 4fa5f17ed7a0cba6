// SPDX-License-Identifier: BSD-3-Clause
// Arguments of the DPDK wire: DPDK devargs with defaults filled in, and two additional keys:
//
//	net_memif0,role=client,id=0,socket=name    another process of this host
//	net_af_packet0,iface=veth0                 a kernel interface
//	0000:03:00.0                               a PCI device
//	...,gateway=192.0.2.1/24                   own key: router, and prefix length of the network
//	...,mtu=4200                               own key: IP MTU, at most that of the link
//
// Without a gateway all peers must be on the link. On a kernel interface the address should not be
// one of the kernel's: the kernel would also answer packets to it.
#pragma once

#include <dataplane/soft.h>
#include <dataplane/verbs.h>
#include <lib/parse.h>
#include <lib/sockaddr.h>

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define DPDK_DEVARGS_MAX 511
#define DPDK_NAME_MAX 63
#define DPDK_MEMIF_SOCKET_MAX 107
#define DPDK_MEMIF_SOCKET "/run/memif.sock" // DPDK's default, an abstract name

enum dpdk_kind {
	DPDK_MEMIF,
	DPDK_AF_PACKET,
	DPDK_PCI,
	DPDK_OTHER,
};

struct dpdk_args {
	enum dpdk_kind kind;
	char name[DPDK_NAME_MAX + 1];	    // device name: "net_memif0"
	char devargs[DPDK_DEVARGS_MAX + 1]; // complete devargs
	char iface[IF_NAMESIZE];	    // interface of af_packet
	char socket[DPDK_MEMIF_SOCKET_MAX + 1];
	uint32_t memif_id;
	bool memif_server;
	bool mac_given;
	uint32_t frame_bytes;	  // largest Ethernet frame of the port; 0: ask the port
	uint32_t buffer_bytes;	  // minimum size of a receive buffer; 0: ask the port
	uint32_t ring_frames;	  // size of the receive ring in frames; 0: ask the port
	struct sock_addr gateway; // SOCK_ADDR_NONE: none
	uint32_t prefix_bits;	  // prefix length of the gateway's network
	uint32_t mtu;		  // for a PCI port; 0 for others, where frame_bytes contains it
};

// Set the hardware address of a memif port, unless one was given. It is derived from the IP
// address, so a restarted program is found where it was. Returns -EINVAL if devargs has no room.
int dpdk_args_set_mac(struct dpdk_args *args, const union ibv_gid *gid);

// Parse the arguments. iface_mtu(name) returns the MTU of an interface, or -errno; it is the only
// access to the machine. Returns -EINVAL or -ENODEV (no such interface); *ret_error names the
// argument.
int dpdk_args_parse(
	const char *text,
	int (*iface_mtu)(const char *iface),
	struct parse_error *ret_error,
	struct dpdk_args *ret_args
);
