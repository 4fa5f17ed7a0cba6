// SPDX-License-Identifier: BSD-3-Clause
// The arguments of the dpdk wire: devargs as DPDK takes them, completed where nothing was said, and
// two keys of our own:
//
//	net_memif0,role=client,id=0,socket=name    another process of this host
//	net_af_packet0,iface=veth0                 an interface of the kernel's
//	0000:03:00.0                               a PCI device
//	...,gateway=192.0.2.1/24                   ours: the router, and how long our prefix is
//	...,mtu=4200                               ours: of IP, no more than the link has
//
// Without a gateway everybody is taken to be on the link. On an interface the address is best one
// that the kernel does not have: the kernel would answer what comes for it as well.
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
#define DPDK_MEMIF_SOCKET "/run/memif.sock" // DPDK's own default, an abstract name

enum dpdk_kind {
	DPDK_MEMIF,
	DPDK_AF_PACKET,
	DPDK_PCI,
	DPDK_OTHER,
};

struct dpdk_args {
	enum dpdk_kind kind;
	char name[DPDK_NAME_MAX + 1];	    // of the device: "net_memif0"
	char devargs[DPDK_DEVARGS_MAX + 1]; // complete
	char iface[IF_NAMESIZE];	    // af_packet
	char socket[DPDK_MEMIF_SOCKET_MAX + 1];
	uint32_t memif_id;
	bool memif_server;
	bool mac_given;
	uint32_t frame_bytes;	  // the largest Ethernet frame that the port takes; 0: it is asked
	uint32_t buffer_bytes;	  // what one receive buffer must hold; 0 as above
	uint32_t ring_frames;	  // how many it holds for us; 0 as above
	struct sock_addr gateway; // SOCK_ADDR_NONE: none
	uint32_t prefix_bits;	  // of the gateway
	uint32_t mtu;		  // of a PCI port; of others 0, for it is in frame_bytes
};

// A memif port's hardware address, where none was given: one that follows from the address, so that
// a program that comes back is found where it was. -EINVAL if there is no room for it.
int dpdk_args_set_mac(struct dpdk_args *args, const union ibv_gid *gid);

// iface_mtu(name) gives the MTU of an interface, or -errno: what else there is to know about the
// machine. -EINVAL, -ENODEV (no such interface), and *ret_error says which argument.
int dpdk_args_parse(
	const char *text,
	int (*iface_mtu)(const char *iface),
	struct parse_error *ret_error,
	struct dpdk_args *ret_args
);
