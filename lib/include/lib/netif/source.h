// SPDX-License-Identifier: BSD-3-Clause
// Gathers the facts for interface selection, from this machine or from a recording.
#pragma once

#include <lib/netif/table.h>

#include <stdbool.h>

// A recording is a directory with the netlink bytes of
//
//	links.nl addresses.nl defaults4.nl defaults6.nl   the dumps, datagram after datagram
//	route-ADDR.nl                                     the answer to the lookup of one peer
//	sys/NAME/...                                      copies of files of /sys/class/net/NAME
//
// A missing file counts as an empty dump, or as a peer without a route.
struct netif_query {
	const char *recording; // directory to read instead of the machine; NULL: the machine
	const struct sock_addr *peers; // routes to look up
	size_t peer_count;
	bool want_defaults; // read the default routes too; slow on a router with a large table
};

// Gather the facts into a new table. Call this from a control thread, not from a poll loop, because
// it makes some hundred system calls. If the kernel's tables change during a dump, everything is
// read again, a few times at most. Returns 0, -EBADMSG, -EOVERFLOW, -EINTR (the tables changed each
// time), -ENOMEM, or -errno of the system calls.
int netif_gather(const struct netif_query *query, struct netif_table **ret_table);

// Record the facts of this machine in a new directory. Reads the tables only once. Returns -EEXIST
// if the directory exists, or the errors of netif_gather().
int netif_record(const struct netif_query *query, const char *directory);
