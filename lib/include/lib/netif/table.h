// SPDX-License-Identifier: BSD-3-Clause
// The facts that interface selection decides on: links, their addresses, and routes.
//
// Links and addresses keep the order in which the kernel told them, which is the order of
// getifaddrs(3). A table is filled once (lib/netif/source.h), then only read: any thread.
#pragma once

#include <lib/sockaddr.h>

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bounds on what a table takes, far above any host: more is an error, not a bigger table.
#define NETIF_LINKS_MAX 8192
#define NETIF_ADDRESSES_MAX 65536
#define NETIF_ROUTES_MAX 256
#define NETIF_KIND_BYTES 16

// Kind of a link, from the kernel and sysfs, never from its name.
enum netif_class {
	NETIF_CLASS_UNKNOWN,
	NETIF_CLASS_CONTAINER_BRIDGE, // a bridge without hardware: same range on every host
	NETIF_CLASS_LOOPBACK,
	NETIF_CLASS_DUMMY,
	NETIF_CLASS_TUNNEL, // tun, tap, wireguard, vxlan, gre, ...
	NETIF_CLASS_USB,    // mostly the host's end of a BMC
	NETIF_CLASS_WIRELESS,
	NETIF_CLASS_VETH,
	NETIF_CLASS_MACVLAN, // macvlan, macvtap, ipvlan
	NETIF_CLASS_BRIDGE,  // over hardware
	NETIF_CLASS_VLAN,
	NETIF_CLASS_BOND,     // bond or team
	NETIF_CLASS_ETHERNET, // hardware
	NETIF_CLASS_IPOIB,    // InfiniBand
};
#define NETIF_CLASS_COUNT (NETIF_CLASS_IPOIB + 1)

// Facts that only sysfs has. All zero if sysfs is absent or belongs to another namespace.
struct netif_sysfs {
	bool present;
	bool has_device; // a bus device stands behind the link
	bool on_usb;
	bool is_wireless;
	bool is_tun;
	bool is_bridge;
	bool is_bond;
	uint32_t speed_mbps; // 0: not known
};

struct netif_link {
	char name[IFNAMSIZ];
	uint32_t index;
	uint32_t lower_index;  // of the link this one lies on, 0: none told
	uint32_t master_index; // of the bond, bridge, ... this one is a port of, 0: none
	uint32_t flags;	       // IFF_*
	uint32_t mtu_bytes;
	uint16_t hardware_type; // ARPHRD_*
	bool has_carrier;
	char kind[NETIF_KIND_BYTES];	  // IFLA_INFO_KIND, "" for none
	char port_kind[NETIF_KIND_BYTES]; // IFLA_INFO_SLAVE_KIND
	char bus[NETIF_KIND_BYTES];	  // of the device behind it, "" for none
	struct netif_sysfs sysfs;
	enum netif_class class;
};

struct netif_address {
	uint32_t link;		  // position in netif_table.links
	struct sock_addr address; // port 0; scope set for a link-local one
	uint8_t prefix_bits;
	uint8_t scope;	      // RT_SCOPE_*
	uint32_t flags;	      // IFA_F_*
	char label[IFNAMSIZ]; // the name that getifaddrs(3) gives: eth0:1 for an alias
};

// The kernel's way to a peer, or a default route.
struct netif_route {
	struct sock_addr peer;	  // SOCK_ADDR_NONE: a default route
	struct sock_addr source;  // what the kernel would send from; SOCK_ADDR_NONE: not told
	struct sock_addr gateway; // SOCK_ADDR_NONE: on the link
	uint8_t family;		  // enum sock_addr_family
	uint32_t link_index;	  // 0 when there is no way
	uint32_t metric;
	int error; // 0, or why there is no way: -ENETUNREACH, -EHOSTUNREACH, ...
};

struct netif_table {
	struct netif_link *links;
	size_t link_count;
	struct netif_address *addresses;
	size_t address_count;
	struct netif_route *defaults; // by metric, then in kernel order
	size_t default_count;
	struct netif_route *routes; // one for each peer asked for, in that order
	size_t route_count;
	size_t address_hint; // addresses arrive link by link: where the last one's link was found
};

// 0 or -ENOMEM.
int netif_table_create(struct netif_table **ret_table);
// Takes NULL. Returns NULL.
struct netif_table *netif_table_destroy(struct netif_table *table);

// Each appends a copy. -EOVERFLOW beyond the bound above, or -ENOMEM; an address of a link that is
// not in the table is left out (it vanished between two dumps).
int netif_table_add_link(struct netif_table *table, const struct netif_link *link);
int netif_table_add_address(
	struct netif_table *table, uint32_t link_index, const struct netif_address *address
);
int netif_table_add_default(struct netif_table *table, const struct netif_route *route);
int netif_table_add_route(struct netif_table *table, const struct netif_route *route);

// NULL when there is none.
const struct netif_link *netif_table_link_by_index(const struct netif_table *table, uint32_t index);
const struct netif_link *
netif_table_link_by_name(const struct netif_table *table, const char *name);
const struct netif_route *
netif_table_route(const struct netif_table *table, const struct sock_addr *peer);

// "ethernet", "container-bridge", ...
const char *netif_class_name(enum netif_class class);
