// SPDX-License-Identifier: BSD-3-Clause
// Compares two interface tables.
#pragma once

#include <lib/netif/table.h>

enum netif_change_kind {
	NETIF_LINK_ADDED,
	NETIF_LINK_REMOVED,
	NETIF_LINK_CHANGED, // name, flags, carrier, master, MTU, speed or class
	NETIF_ADDRESS_ADDED,
	NETIF_ADDRESS_REMOVED,
	NETIF_ADDRESS_CHANGED, // flags, for example no longer tentative
	NETIF_ROUTES_CHANGED,  // a route to a peer of the query, or a default route
};

// One change. The pointers refer to the new table; for a removed entry, to the old table.
struct netif_change {
	enum netif_change_kind kind;
	const struct netif_link *link;	     // NULL for routes
	const struct netif_address *address; // NULL for links and routes
};

typedef void netif_diff_report(void *context, const struct netif_change *change);

// Compare two tables, and call `report` for each change: links by index, then addresses by link and
// address, then routes once. Returns 0, or -ENOMEM without any call of `report`.
int netif_diff(
	const struct netif_table *before,
	const struct netif_table *after,
	netif_diff_report *report,
	void *context
);

// Return a phrase such as "link added".
const char *netif_change_text(enum netif_change_kind kind);
