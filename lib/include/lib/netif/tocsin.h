// SPDX-License-Identifier: BSD-3-Clause
// The rules `tocsin`, the default: choose the best address that can carry traffic now.
//
// A candidate is any address of a link that is up, running and has a carrier. Ports of a bond or
// bridge have no candidates. Tentative, deprecated and duplicate addresses are none.
//
// Some addresses are candidates only on request:
// - A loopback address, if the list matches it or the peer is a loopback address.
// - A link-local address, if a link-local address or network in the list matches it, or the peer is
//   link-local.
// - An address of a bridge without hardware, if the list matches it. Such a bridge (docker0) has
//   the same address range on every host.
//
// The candidate with the highest score wins (struct netif_score). The order in which the kernel
// reports addresses has no influence.
#pragma once

#include <lib/netif/choice.h>
#include <lib/netif/selector.h>
#include <lib/netif/source.h>
#include <lib/netif/table.h>

struct netif_tocsin_settings {
	struct netif_setting ifname; // a selector list
	struct netif_setting family; // any, ipv4, ipv6, [AF_]inet or [AF_]inet6, in either case
	struct netif_setting peer;   // address of a node to reach, with or without a port
};

// The parsed settings.
struct netif_policy {
	struct netif_tocsin_settings settings; // points to the caller's strings
	struct netif_selector selector;
	enum sock_addr_family family;		       // SOCK_ADDR_NONE: any family
	struct sock_addr peer;			       // family SOCK_ADDR_NONE: no peer is given
	struct sock_addr lookups[NETIF_ITEMS_MAX + 1]; // peers whose routes are needed
	size_t lookup_count;
};

// Parse the settings. The strings must outlive the policy, which keeps pointers to them. Any thread
// may call this; it never blocks. Returns 0, or -EINVAL for an empty or malformed setting, or for
// two settings that contradict each other. `error`, which may be NULL, then gets a sentence that
// names the setting.
int netif_policy_parse(
	const struct netif_tocsin_settings *settings,
	struct netif_policy *ret_policy,
	struct netif_error *error
);

// Fill the query with the facts that this policy needs. It points into the policy.
void netif_policy_query(const struct netif_policy *policy, struct netif_query *ret_query);

// Choose addresses. Returns 0, with chosen_count 0 if there is no candidate. Returns -ENOENT if an
// item of the list matches nothing on this machine, or -ENOMEM; `error` then has the reason.
int netif_choose(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_choice **ret_choice,
	struct netif_error *error
);
