// SPDX-License-Identifier: BSD-3-Clause
// Requests over rtnetlink, and the parser of its messages.
#pragma once

#include <lib/netif/table.h>

#include <libmnl/libmnl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Return whether `size` bytes begin with a whole message. mnl_nlmsg_ok() of libmnl 1.0.4 accepts
// lengths of 2 GiB and more, which are negative as an int.
static inline bool netlink_message_is_whole(const struct nlmsghdr *message, size_t size) {
	return size <= INT_MAX && mnl_nlmsg_ok(message, (int)size) && message->nlmsg_len <= size;
}

// Parse whole messages, from one datagram or from a recording of several, into the table. Links and
// addresses are added. If `peer` is NULL, default routes of the main table are added too; otherwise
// the route in the answer to a lookup of the peer. Other messages are ignored.
// The bytes are aligned like a struct nlmsghdr.
//
// *ret_done is set to true if the messages contain the end of a dump or the answer to a lookup.
// Returns 0, -EBADMSG (malformed message), -EINTR (the kernel's tables changed during the dump),
// -EOVERFLOW, -ENOMEM, or the error that the kernel sent. After an error the table is incomplete
// and must be destroyed. Any thread may call this.
int netif_netlink_parse(
	const void *bytes,
	size_t size,
	const struct sock_addr *peer,
	struct netif_table *table,
	bool *ret_done
);

// Kinds of objects that a dump can request.
enum netif_dump {
	NETIF_DUMP_LINKS,
	NETIF_DUMP_ADDRESSES,
	NETIF_DUMP_DEFAULTS_IPV4,
	NETIF_DUMP_DEFAULTS_IPV6,
};

// Handle one datagram of an answer. A result other than 0 ends the request, which then returns it.
typedef int netif_netlink_handler(void *context, const void *bytes, size_t size);

// Open an rtnetlink socket. `groups` is a mask of RTMGRP_* to join; such a socket is non-blocking.
// Use 0 for requests. Returns 0 or -errno of the socket calls.
int netif_netlink_open(uint32_t groups, int *ret_fd);

// Request a dump, and pass each datagram of the answer to `take` until `take` has set *done. Blocks
// until the kernel has answered. Returns 0, -ENOMEM, the error of `take`, -EMSGSIZE for a datagram
// over 256 KiB, or -errno of the socket.
int netif_netlink_dump(
	int fd, enum netif_dump what, netif_netlink_handler *take, void *context, const bool *done
);
// Request the route to a peer, in the same way.
int netif_netlink_lookup(
	int fd,
	const struct sock_addr *peer,
	netif_netlink_handler *take,
	void *context,
	const bool *done
);

// Find the index of an interface of this network namespace. Unlike if_nametoindex(), this does not
// make the kernel load a module for an unknown name, and does not wait for that. Returns 0,
// -ENODEV, -EINVAL (not a possible name), -ENOMEM, or -errno of the socket.
int netif_netlink_index(const char *name, uint32_t *ret_index);
