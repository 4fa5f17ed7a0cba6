// SPDX-License-Identifier: BSD-3-Clause
// Watches links, addresses and routes, and reports when interfaces should be selected again.
//
// The watch has one netlink socket, for an epoll set. A netlink message is used only as a sign of a
// change. Messages are coalesced until no more arrive for a while. Then the caller gathers all
// facts again and compares them. So a lost message does no harm, and a link that flaps within that
// time shows no change. The caller decides what to do about a better choice, above all with
// sessions that use the old one.
//
// Only one thread may use a watch. All times are of one monotonic clock, which the caller chooses.
#pragma once

#include <lib/deadline.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Kinds of objects that changed; bits of netif_watch_event.what.
#define NETIF_WATCH_LINK (1U << 0)
#define NETIF_WATCH_ADDRESS (1U << 1)
#define NETIF_WATCH_ROUTE (1U << 2)
#define NETIF_WATCH_LOST (1U << 3) // messages were lost or malformed: anything may have changed

struct netif_watch_event {
	uint32_t what;
	uint64_t messages; // number of messages that this event stands for
};

struct netif_watch; // private

// Create a watch. An event is due quiet_ns after the last message, but at most limit_ns after the
// first one. Returns 0, -EINVAL if limit_ns is below quiet_ns, -ENOMEM, or -errno of the socket
// calls.
int netif_watch_create(uint64_t quiet_ns, uint64_t limit_ns, struct netif_watch **ret_watch);
// For tests: create a watch that reads from a non-blocking datagram socket. The watch owns `fd`;
// `fd` is closed even if this call fails.
int netif_watch_create_on(
	int fd, uint64_t quiet_ns, uint64_t limit_ns, struct netif_watch **ret_watch
);
// Destroy the watch; NULL is allowed. Returns NULL.
struct netif_watch *netif_watch_destroy(struct netif_watch *watch);

// Return the descriptor; when it is readable, call netif_watch_read().
int netif_watch_fd(const struct netif_watch *watch);

// Read the pending messages. One call reads a limited number of datagrams, so that a storm of
// messages does not block the caller. Returns 0 or -errno of the socket.
int netif_watch_read(struct netif_watch *watch, uint64_t now_ns);

// Return the time at which netif_watch_consume() will have an event; never, if nothing changed.
struct deadline netif_watch_deadline(const struct netif_watch *watch);

// Return true and the event if it is due, and start to collect the next event.
bool netif_watch_consume(
	struct netif_watch *watch, uint64_t now_ns, struct netif_watch_event *ret_event
);
