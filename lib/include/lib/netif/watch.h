// SPDX-License-Identifier: BSD-3-Clause
// Says when interface selection should be made again.
//
// One netlink socket for an epoll set. Messages are taken only as a sign that something moved: they
// are coalesced until the machine has been quiet for a while, and then the caller gathers all facts
// anew and compares. So a lost message costs nothing, and a link that flaps within that time shows
// no change. The watch decides nothing: what is done about a better choice, above all with sessions
// that run over the old one, is the caller's.
//
// One thread. Times are of any one monotonic clock, the caller's.
#pragma once

#include <lib/deadline.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Objects that the messages were about.
#define NETIF_WATCH_LINK (1U << 0)
#define NETIF_WATCH_ADDRESS (1U << 1)
#define NETIF_WATCH_ROUTE (1U << 2)
#define NETIF_WATCH_LOST (1U << 3) // the kernel dropped some: anything may have changed

struct netif_watch_event {
	uint32_t what;
	uint64_t messages; // coalesced into this one
};

struct netif_watch; // private

// An event is due quiet_ns after the last message, and at the latest limit_ns after the first.
// -EINVAL when limit_ns is below quiet_ns, -ENOMEM, or -errno of the socket calls.
int netif_watch_create(uint64_t quiet_ns, uint64_t limit_ns, struct netif_watch **ret_watch);
// The same on a datagram descriptor of the caller's, non-blocking, which the watch then owns (also
// when this fails): for tests.
int netif_watch_create_on(
	int fd, uint64_t quiet_ns, uint64_t limit_ns, struct netif_watch **ret_watch
);
// Takes NULL. Returns NULL.
struct netif_watch *netif_watch_destroy(struct netif_watch *watch);

// Readable when netif_watch_read has something to do.
int netif_watch_fd(const struct netif_watch *watch);

// Drains the socket; call it when the descriptor is readable. At most some hundred datagrams at
// once, so that a storm of messages does not hold the caller. 0 or -errno of the socket.
int netif_watch_read(struct netif_watch *watch, uint64_t now_ns);

// When netif_watch_consume will have an event; never, while nothing moved.
struct deadline netif_watch_deadline(const struct netif_watch *watch);

// True, with the event, when it is due; the watch then starts afresh.
bool netif_watch_consume(
	struct netif_watch *watch, uint64_t now_ns, struct netif_watch_event *ret_event
);
