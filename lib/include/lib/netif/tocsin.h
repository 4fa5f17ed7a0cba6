// SPDX-License-Identifier: BSD-3-Clause
// The rules `tocsin`, the default: what can carry traffic now, and the best of it for a peer.
//
// A candidate is any address of a link that is up, running and has a carrier, unless the link is a
// port of a bond or bridge, or the address is tentative, deprecated or a duplicate. Loopback and
// link-local addresses, and bridges without hardware below them (docker0: the same range on every
// host) count only where the list or the peer asks for them. Of the candidates the highest score
// wins (struct netif_score); the order in which the kernel tells them plays no part.
#pragma once

#include <lib/netif/choice.h>
#include <lib/netif/selector.h>
#include <lib/netif/source.h>
#include <lib/netif/table.h>

struct netif_tocsin_settings {
	struct netif_setting ifname; // a selector list
	struct netif_setting family; // any, ipv4, ipv6, [AF_]inet or [AF_]inet6, in either case
	struct netif_setting peer;   // the address of a node to be reached, the port optional
};

// The settings, understood.
struct netif_policy {
	struct netif_tocsin_settings settings; // the texts stay the caller's
	struct netif_selector selector;
	enum sock_addr_family family;		       // SOCK_ADDR_NONE: any
	struct sock_addr peer;			       // SOCK_ADDR_NONE: none given
	struct sock_addr lookups[NETIF_ITEMS_MAX + 1]; // the peers to look up
	size_t lookup_count;
};

// -EINVAL with a sentence that names the setting and quotes what is wrong: empty or malformed, or
// two settings that exclude each other. error may be NULL. Any thread; never blocks.
int netif_policy_parse(
	const struct netif_tocsin_settings *settings,
	struct netif_policy *ret_policy,
	struct netif_error *error
);

// Facts that this policy needs; borrows from the policy.
void netif_policy_query(const struct netif_policy *policy, struct netif_query *ret_query);

// 0 (with chosen_count 0 when nothing qualifies), -ENOENT with a sentence when an item of the list
// names nothing that exists, or -ENOMEM.
int netif_choose(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_choice **ret_choice,
	struct netif_error *error
);
