// SPDX-License-Identifier: BSD-3-Clause
// Reports changes of interfaces.
#include <lib/error.h>
#include <lib/netif/netlink.h>
#include <lib/netif/watch.h>

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DATAGRAMS_PER_READ 256
#define GROUPS                                                                       \
	(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | \
	 RTMGRP_IPV6_ROUTE)

struct netif_watch {
	int fd;
	uint64_t quiet_ns;
	uint64_t limit_ns;
	struct netif_watch_event event; // what == 0: no change
	struct deadline quiet;
	struct deadline limit;
};

int netif_watch_create_on(
	int fd, uint64_t quiet_ns, uint64_t limit_ns, struct netif_watch **ret_watch
) {
	struct netif_watch *watch;
	int err = -EINVAL;

	if (limit_ns < quiet_ns)
		goto fail;
	watch = calloc(1, sizeof(*watch));
	err = -ENOMEM;
	if (watch == NULL)
		goto fail;
	watch->fd = fd;
	watch->quiet_ns = quiet_ns;
	watch->limit_ns = limit_ns;
	*ret_watch = watch;
	return 0;
fail:
	close(fd);
	return err;
}

int netif_watch_create(uint64_t quiet_ns, uint64_t limit_ns, struct netif_watch **ret_watch) {
	int fd;
	int err = netif_netlink_open(GROUPS, &fd);

	return err != 0 ? err : netif_watch_create_on(fd, quiet_ns, limit_ns, ret_watch);
}

struct netif_watch *netif_watch_destroy(struct netif_watch *watch) {
	if (watch == NULL)
		return NULL;
	close(watch->fd);
	free(watch);
	return NULL;
}

int netif_watch_fd(const struct netif_watch *watch) {
	return watch->fd;
}

static void record_change(struct netif_watch *watch, uint32_t what, uint64_t now_ns) {
	if (watch->event.what == 0)
		watch->limit = deadline_after(now_ns, watch->limit_ns);
	watch->event.what |= what;
	watch->event.messages++;
	watch->quiet = deadline_after(now_ns, watch->quiet_ns);
}

// Record the type of each message; a malformed message counts as lost.
static void record_datagram_changes(
	struct netif_watch *watch, const void *bytes, size_t size, uint64_t now_ns
) {
	const struct nlmsghdr *message = bytes;
	int left = (int)size;
	uint32_t what;

	for (; left > 0; message = mnl_nlmsg_next(message, &left)) {
		if (!netlink_message_is_whole(message, (size_t)left)) {
			record_change(watch, NETIF_WATCH_LOST, now_ns);
			return;
		}
		what = 0;
		if (message->nlmsg_type == RTM_NEWLINK || message->nlmsg_type == RTM_DELLINK)
			what = NETIF_WATCH_LINK;
		else if (message->nlmsg_type == RTM_NEWADDR || message->nlmsg_type == RTM_DELADDR)
			what = NETIF_WATCH_ADDRESS;
		else if (message->nlmsg_type == RTM_NEWROUTE || message->nlmsg_type == RTM_DELROUTE)
			what = NETIF_WATCH_ROUTE;
		if (what != 0)
			record_change(watch, what, now_ns);
	}
}

int netif_watch_read(struct netif_watch *watch, uint64_t now_ns) {
	_Alignas(struct nlmsghdr) uint8_t bytes[16384];

	for (unsigned n = 0; n < DATAGRAMS_PER_READ; n++) {
		// MSG_TRUNC returns the true size, so that a truncated datagram counts as lost.
		ssize_t size = recv(watch->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

		if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno != ENOBUFS)
			return neg_errno();
		if (size < 0 || (size_t)size > sizeof(bytes))
			record_change(watch, NETIF_WATCH_LOST, now_ns);
		else
			record_datagram_changes(watch, bytes, (size_t)size, now_ns);
	}
	return 0;
}

struct deadline netif_watch_deadline(const struct netif_watch *watch) {
	if (watch->event.what == 0)
		return deadline_never();
	return deadline_earliest(watch->quiet, watch->limit);
}

bool netif_watch_consume(
	struct netif_watch *watch, uint64_t now_ns, struct netif_watch_event *ret_event
) {
	if (!deadline_expired(netif_watch_deadline(watch), now_ns))
		return false;
	*ret_event = watch->event;
	memset(&watch->event, 0, sizeof(watch->event));
	return true;
}
