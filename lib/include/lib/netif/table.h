// SPDX-License-Identifier: BSD-3-Clause
// The facts that interface selection decides on: links, their addresses, and routes.
//
// Links and addresses keep the order in which the kernel reports them, which is the order of
// getifaddrs(3). A table is filled once (lib/netif/source.h). After that it does not change, and
// any thread may read it.
#pragma once

#include <lib/sockaddr.h>

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Limits of a table, far above any real host. Adding more fails with -EOVERFLOW.
#define NETIF_LINKS_MAX 8192
#define NETIF_ADDRESSES_MAX 65536
#define NETIF_ROUTES_MAX 256
#define NETIF_KIND_BYTES 16

// Kind of a link, from the kernel and sysfs, never from its name.
enum netif_class {
	NETIF_CLASS_UNKNOWN,
	NETIF_CLASS_CONTAINER_BRIDGE, // bridge without a hardware port, such as docker0
	NETIF_CLASS_LOOPBACK,
	NETIF_CLASS_DUMMY,
	NETIF_CLASS_TUNNEL, // tun, tap, wireguard, vxlan, gre, ...
	NETIF_CLASS_USB,    // mostly the host's link to its BMC
	NETIF_CLASS_WIRELESS,
	NETIF_CLASS_VETH,
	NETIF_CLASS_MACVLAN, // macvlan, macvtap, ipvlan
	NETIF_CLASS_BRIDGE,  // bridge with a hardware port
	NETIF_CLASS_VLAN,
	NETIF_CLASS_BOND,     // bond or team
	NETIF_CLASS_ETHERNET, // hardware
	NETIF_CLASS_IPOIB,    // InfiniBand
};
#define NETIF_CLASS_COUNT (NETIF_CLASS_IPOIB + 1)

// Facts that only sysfs has. All zero if sysfs is absent or belongs to another namespace.
struct netif_sysfs {
	bool present;
	bool has_device; // the link belongs to a device on a bus
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
	uint32_t lower_index;  // index of the link below, as for a VLAN; 0: none or unknown
	uint32_t master_index; // index of the bond or bridge that this link is a port of; 0: none
	uint32_t flags;	       // IFF_*
	uint32_t mtu_bytes;
	uint16_t hardware_type; // ARPHRD_*
	bool has_carrier;
	char kind[NETIF_KIND_BYTES];	  // IFLA_INFO_KIND, "" for none
	char port_kind[NETIF_KIND_BYTES]; // IFLA_INFO_SLAVE_KIND
	char bus[NETIF_KIND_BYTES];	  // bus of the link's device, "" for none
	struct netif_sysfs sysfs;
	enum netif_class class;
};

struct netif_address {
	uint32_t link;		  // index in netif_table.links
	struct sock_addr address; // port 0; a link-local address has its scope id
	uint8_t prefix_bits;
	uint8_t scope;	      // RT_SCOPE_*
	uint32_t flags;	      // IFA_F_*
	char label[IFNAMSIZ]; // the name that getifaddrs(3) gives: eth0:1 for an alias
};

// The kernel's route to a peer, or a default route.
struct netif_route {
	struct sock_addr peer;	  // SOCK_ADDR_NONE: a default route
	struct sock_addr source;  // source address that the kernel uses; SOCK_ADDR_NONE: unknown
	struct sock_addr gateway; // SOCK_ADDR_NONE: none, the peer is on the link
	uint8_t family;		  // enum sock_addr_family
	uint32_t link_index;	  // outgoing link; 0: there is no route
	uint32_t metric;
	int error; // 0, or why there is no route: -ENETUNREACH, -EHOSTUNREACH, ...
};

struct netif_table {
	struct netif_link *links;
	size_t link_count;
	struct netif_address *addresses;
	size_t address_count;
	struct netif_route *defaults; // by metric, then in kernel order
	size_t default_count;
	struct netif_route *routes; // one per peer of the query, in the same order
	size_t route_count;
	// Index of the last added address's link. The next address mostly has the same link.
	size_t address_hint;
};

// Create an empty table. Returns 0 or -ENOMEM.
int netif_table_create(struct netif_table **ret_table);
// Destroy the table; NULL is allowed. Returns NULL.
struct netif_table *netif_table_destroy(struct netif_table *table);

// Add a copy; default routes are sorted by metric. Return 0, -EOVERFLOW above the limit, or
// -ENOMEM. An address whose link is not in the table is skipped without an error, because links may
// change between the two dumps.
int netif_table_add_link(struct netif_table *table, const struct netif_link *link);
int netif_table_add_address(
	struct netif_table *table, uint32_t link_index, const struct netif_address *address
);
int netif_table_add_default(struct netif_table *table, const struct netif_route *route);
int netif_table_add_route(struct netif_table *table, const struct netif_route *route);

// Return NULL if the table has no such entry.
const struct netif_link *netif_table_link_by_index(const struct netif_table *table, uint32_t index);
const struct netif_link *
netif_table_link_by_name(const struct netif_table *table, const char *name);
const struct netif_route *
netif_table_route(const struct netif_table *table, const struct sock_addr *peer);

// Return a word such as "ethernet" or "container-bridge".
const char *netif_class_name(enum netif_class class);
