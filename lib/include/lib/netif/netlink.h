// SPDX-License-Identifier: BSD-3-Clause
// The kernel's routing netlink: bytes into a table, and the socket they come from.
#pragma once

#include <lib/netif/table.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reads whole messages (one datagram, or a recording of several) into table: links, addresses and,
// with peer NULL, default routes of the main table; with a peer, the one route that answers a
// lookup of it. Messages of other types are passed over.
//
// Sets *ret_done when the kernel's end of dump, or its answer to a lookup, was among them.
// Returns 0; -EBADMSG for a message or attribute that does not fit its surroundings; -EINTR when
// the kernel says that its tables changed under the dump; -EOVERFLOW, -ENOMEM; or the error the
// kernel sent. After an error the table holds a part and is to be thrown away. Any thread.
int netif_netlink_parse(
	const void *bytes,
	size_t size,
	const struct sock_addr *peer,
	struct netif_table *table,
	bool *ret_done
);

// Kind of objects that a request asks for.
enum netif_dump {
	NETIF_DUMP_LINKS,
	NETIF_DUMP_ADDRESSES,
	NETIF_DUMP_DEFAULTS_IPV4,
	NETIF_DUMP_DEFAULTS_IPV6,
};

// Called with each datagram of an answer. Anything but 0 ends the dump and is returned by it.
typedef int netif_netlink_handler(void *context, const void *bytes, size_t size);

// An rtnetlink socket, joined to the multicast groups (RTMGRP_*; 0 for requests). -errno of the
// socket calls.
int netif_netlink_open(uint32_t groups, int *ret_fd);

// Asks, and hands every datagram of the answer to take until take sets *done. Blocks only for the
// kernel. 0, what take returned, -EMSGSIZE for a datagram over 256 KiB, or -errno of the socket.
int netif_netlink_dump(
	int fd, enum netif_dump what, netif_netlink_handler *take, void *context, const bool *done
);
// The same for the route to peer: one datagram.
int netif_netlink_lookup(
	int fd,
	const struct sock_addr *peer,
	netif_netlink_handler *take,
	void *context,
	const bool *done
);

// The index of an interface of this network namespace by its name. For a name that it does not know
// the kernel loads no module, as it does for if_nametoindex(), which waits for that.
// -ENODEV, -EINVAL for what is no name, or -errno of the socket.
int netif_netlink_index(const char *name, uint32_t *ret_index);
