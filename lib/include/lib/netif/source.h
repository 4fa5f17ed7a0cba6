// SPDX-License-Identifier: BSD-3-Clause
// Gathers the facts: from this machine, or from a recording of one.
#pragma once

#include <lib/netif/table.h>

#include <stdbool.h>

// A recording is a directory with the netlink bytes of
//
//	links.nl addresses.nl defaults4.nl defaults6.nl   the dumps, datagram after datagram
//	route-ADDR.nl                                     the lookup of one peer
//	sys/NAME/...                                      what /sys/class/net/NAME holds
//
// An absent file is an empty dump, or a peer without a route.
struct netif_query {
	const char *recording; // directory to read instead of the machine; NULL: the machine
	const struct sock_addr *peers; // routes to look up
	size_t peer_count;
	bool want_defaults; // a dump of the main table: on a router that is long
};

// Control thread, not a poll loop: some hundred system calls. Asks again, a few times, when the
// kernel's tables change under a dump. 0; -EBADMSG, -EOVERFLOW, -EINTR (never came to rest),
// -ENOMEM, or -errno of the system calls.
int netif_gather(const struct netif_query *query, struct netif_table **ret_table);

// Writes what netif_gather would read from the machine into a new directory. -EEXIST, and as above.
int netif_record(const struct netif_query *query, const char *directory);
