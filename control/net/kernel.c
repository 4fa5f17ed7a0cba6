// SPDX-License-Identifier: BSD-3-Clause
// What the kernel at the other end of a connection does while nobody there speaks.
#include "channel.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

static bool is_host(const struct sock_addr *peer, const struct sock_addr *host) {
	struct sock_addr a = *peer, b = *host;

	a.port = b.port = 0;
	a.scope_id = b.scope_id = 0;
	return sock_addr_equal(&a, &b);
}

// Whether something was sent on it within so many ms, and all that was ever sent is acknowledged.
static bool answers(const struct channel *channel, uint64_t within_ms) {
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	if (getsockopt(channel->source.fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
		return false;
	return info.tcpi_last_data_sent <= within_ms && info.tcpi_unacked == 0 &&
	       info.tcpi_notsent_bytes == 0;
}

int transport_kernel_answers(
	const struct transport *transport, const struct sock_addr *host, uint64_t since_ns
) {
	uint64_t now_ns = loop_now_ns(transport->loop);
	uint64_t within_ms = now_ns > since_ns ? (now_ns - since_ns) / RAS_NS_PER_MS : 0;
	const struct channel *channel;

	TAILQ_FOREACH(channel, &transport->live, in_list) {
		if (channel->state == CHANNEL_OPEN && is_host(&channel->peer, host) &&
		    answers(channel, within_ms))
			return 0;
	}
	return -ENOENT;
}
