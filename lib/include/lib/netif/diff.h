// SPDX-License-Identifier: BSD-3-Clause
// What changed between two gatherings.
#pragma once

#include <lib/netif/table.h>

enum netif_change_kind {
	NETIF_LINK_ADDED,
	NETIF_LINK_REMOVED,
	NETIF_LINK_CHANGED, // name, flags, carrier, master, MTU, speed or class
	NETIF_ADDRESS_ADDED,
	NETIF_ADDRESS_REMOVED,
	NETIF_ADDRESS_CHANGED, // its flags: no longer tentative, say
	NETIF_ROUTES_CHANGED,  // to a peer that was looked up, or a default route
};

// The pointers are into the tables, the older one's for what was removed.
struct netif_change {
	enum netif_change_kind kind;
	const struct netif_link *link;	     // NULL for routes
	const struct netif_address *address; // NULL for links and routes
};

typedef void netif_diff_report(void *context, const struct netif_change *change);

// Calls report for each difference: links by index, then addresses by link and address, then
// routes. Returns 0 or -ENOMEM, then without any call.
int netif_diff(
	const struct netif_table *before,
	const struct netif_table *after,
	netif_diff_report *report,
	void *context
);

// "link added", "address removed", ...
const char *netif_change_text(enum netif_change_kind kind);
