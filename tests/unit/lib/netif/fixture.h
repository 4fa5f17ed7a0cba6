// SPDX-License-Identifier: BSD-3-Clause
// Network interfaces of a test machine, described in a few lines.
#pragma once

#include <lib/netif/choice.h>
#include <lib/netif/table.h>
#include <lib/netif/tocsin.h>

#include <net/if.h>

#define FIXTURE_UP (IFF_UP | IFF_RUNNING)
#define FIXTURE_ADDRESSES_MAX 6

struct fixture_link {
	const char *name;
	enum netif_class class;
	uint32_t flags; // 0: up and running
	uint32_t speed_mbps;
	uint32_t mtu_bytes; // 0: 1500
	uint32_t index;	    // 0: its position, from 1
	uint32_t master_index;
	// "10.0.0.1/8", optionally followed by flags like "+tentative".
	const char *addresses[FIXTURE_ADDRESSES_MAX];
};

// Build a table; the list ends at a link without a name. Addresses are added in the kernel's order:
// all of IPv4 in the order of the links, then all of IPv6.
struct netif_table *fixture_table(const struct fixture_link *links);

// Return the recording tests/unit/lib/netif/recordings/NAME, with routes to `peers`
// (NULL-terminated).
struct netif_table *fixture_recording(const char *name, const char *const *peers);

struct sock_addr fixture_address(const char *text);
void fixture_add_route(
	struct netif_table *table, const char *peer, uint32_t link_index, const char *source
);
void fixture_add_default(
	struct netif_table *table, int version, uint32_t link_index, uint32_t metric
);

// Print the first `count` chosen addresses as "eth0 10.0.0.1/24, eth1 ...".
#define FIXTURE_TEXT_BYTES 2048
void fixture_chosen(
	const struct netif_table *table,
	const struct netif_choice *choice,
	size_t count,
	char text[static FIXTURE_TEXT_BYTES]
);

// Return the judgement of "eth0 10.0.0.1/24", or of "eth0" for a link without an address. The test
// fails if it does not exist.
const struct netif_judgement *fixture_judgement(
	const struct netif_table *table, const struct netif_choice *choice, const char *candidate
);

// Build the policy from an agent's settings, which must be valid.
void fixture_policy(
	const char *ifname, const char *family, const char *peer, struct netif_policy *policy
);
