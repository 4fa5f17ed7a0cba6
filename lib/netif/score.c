// SPDX-License-Identifier: BSD-3-Clause
// Scores the candidates of a choice.
#include "score.h"

#include "address.h"

#include <lib/cidr.h>
#include <lib/must.h>

#include <linux/if_addr.h>

// Width of each part in netif_score.value, most significant first; 60 bits in total.
#define SELECTOR_BITS 5
#define ROUTE_BITS 2
#define SUBNET_BITS 8
#define REACH_BITS 1
#define CLASS_BITS 4
#define SPEED_BITS 20
#define MTU_BITS 17
#define PREFERENCE_BITS 3

static_assert(NETIF_ITEMS_MAX < 1 << SELECTOR_BITS, "a part fits its width");

// Default ranges of container bridges. Unless an address in them is on hardware, it does not
// identify a network.
static const struct cidr shared_ranges[] = {
	{{172, 17}, SOCK_ADDR_V4, 16},	     // docker
	{{10, 88}, SOCK_ADDR_V4, 16},	     // podman, containerd
	{{192, 168, 122}, SOCK_ADDR_V4, 24}, // libvirt
	{{10, 0, 3}, SOCK_ADDR_V4, 24},	     // lxc
};

// Rank of a class. All classes with wires of their own have rank 9: ethernet, IPoIB, bond, VLAN,
// and a bridge over them. Among these, speed decides.
static uint8_t netif_class_rank(enum netif_class class) {
	static const uint8_t ranks[NETIF_CLASS_COUNT] = {
		[NETIF_CLASS_CONTAINER_BRIDGE] = 1,
		[NETIF_CLASS_LOOPBACK] = 2,
		[NETIF_CLASS_DUMMY] = 3,
		[NETIF_CLASS_TUNNEL] = 4,
		[NETIF_CLASS_USB] = 5,
		[NETIF_CLASS_WIRELESS] = 6,
		[NETIF_CLASS_VETH] = 7,
		[NETIF_CLASS_MACVLAN] = 8,
		[NETIF_CLASS_BRIDGE] = 9,
		[NETIF_CLASS_VLAN] = 9,
		[NETIF_CLASS_BOND] = 9,
		[NETIF_CLASS_ETHERNET] = 9,
		[NETIF_CLASS_IPOIB] = 9,
	};

	must((size_t) class < NETIF_CLASS_COUNT);
	return ranks[class];
}

static bool is_shared_range(const struct netif_link *link, const struct sock_addr *address) {
	if (link->class == NETIF_CLASS_CONTAINER_BRIDGE)
		return true;
	if (netif_class_rank(link->class) == 9)
		return false; // hardware: the site uses this range
	for (size_t n = 0; n < sizeof(shared_ranges) / sizeof(shared_ranges[0]); n++) {
		if (cidr_contains(&shared_ranges[n], address))
			return true;
	}
	return false;
}

static uint8_t score_route(
	const struct netif_table *table,
	const struct netif_policy *policy,
	const struct netif_link *link,
	const struct sock_addr *address
) {
	const struct netif_route *route = netif_table_route(table, &policy->peer);
	uint8_t score = 0;

	if (policy->peer.family == SOCK_ADDR_NONE || route == NULL || route->error != 0)
		return 0;
	// The kernel's source address, even one on lo, outranks other addresses of the outgoing
	// interface.
	if (address_equal_ip(&route->source, address))
		score += 2;
	if (route->link_index == link->index && route->family == address->family)
		score += 1;
	return score;
}

static uint8_t score_subnet(
	const struct netif_policy *policy,
	const struct netif_link *link,
	const struct netif_address *address
) {
	if (policy->peer.family == SOCK_ADDR_NONE || is_shared_range(link, &address->address))
		return 0;
	if (!sock_addr_same_prefix(&address->address, &policy->peer, address->prefix_bits))
		return 0;
	return (uint8_t)(1 + address->prefix_bits);
}

static uint32_t clamp_to_bits(uint32_t value, unsigned bits) {
	uint32_t max = (1U << bits) - 1;

	return value < max ? value : max;
}

void score_candidate(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_judgement *judgement
) {
	const struct netif_address *address = &table->addresses[judgement->address];
	const struct netif_link *link = &table->links[judgement->link];
	const struct sock_addr *ip = &address->address;
	struct netif_score score = {0};

	if (judgement->item >= 0)
		score.selector = (uint8_t)(NETIF_ITEMS_MAX - judgement->item);
	score.route = score_route(table, policy, link, ip);
	score.subnet = score_subnet(policy, link, address);
	score.reach = !sock_addr_is_link_local(ip) && !sock_addr_is_loopback(ip);
	score.class = netif_class_rank(link->class);
	score.speed = clamp_to_bits(link->sysfs.speed_mbps, SPEED_BITS);
	score.mtu = clamp_to_bits(link->mtu_bytes, MTU_BITS);

	// Prefer permanent addresses of a link, and finally IPv4. The same bit means "temporary"
	// (privacy address) for IPv6 and "secondary" for IPv4.
	score.preference = (uint8_t
	)(((address->flags & IFA_F_TEMPORARY) == 0 ? 4 : 0) +
	  ((address->flags & IFA_F_PERMANENT) != 0 ? 2 : 0) + (ip->family == SOCK_ADDR_V4 ? 1 : 0));

	const struct {
		uint32_t part;
		unsigned bits;
	} parts[] = {
		{score.selector, SELECTOR_BITS}, {score.route, ROUTE_BITS},
		{score.subnet, SUBNET_BITS},	 {score.reach, REACH_BITS},
		{score.class, CLASS_BITS},	 {score.speed, SPEED_BITS},
		{score.mtu, MTU_BITS},		 {score.preference, PREFERENCE_BITS},
	};
	for (size_t n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
		must(parts[n].part >> parts[n].bits == 0);
		score.value = score.value << parts[n].bits | parts[n].part;
	}
	judgement->score = score;
}

int score_compare(const void *left, const void *right, void *order) {
	const struct score_order *by = order;
	const struct netif_judgement *a = &by->judgements[*(const uint32_t *)left];
	const struct netif_judgement *b = &by->judgements[*(const uint32_t *)right];
	uint32_t a_index = by->table->links[a->link].index;
	uint32_t b_index = by->table->links[b->link].index;

	if (a->score.value != b->score.value)
		return a->score.value > b->score.value ? -1 : 1;
	if (a_index != b_index)
		return a_index < b_index ? -1 : 1;
	return sock_addr_compare(
		&by->table->addresses[a->address].address, &by->table->addresses[b->address].address
	);
}
