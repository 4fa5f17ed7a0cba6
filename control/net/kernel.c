// SPDX-License-Identifier: BSD-3-Clause
// Activity of the kernel at the other end of a connection, while its agent is silent.
#include "net/channel.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

// The third retransmission in a row is sent about 1.4 s after the first byte: the first waits 0.2
// s, and each further one twice as long as the one before.
#define SILENT_RETRANSMITS 3

static bool peer_is_on_host(const struct sock_addr *peer, const struct sock_addr *host) {
	struct sock_addr a = sock_addr_ip_only(peer), b = sock_addr_ip_only(host);

	return sock_addr_equal(&a, &b);
}

static int channel_tcp_info(const struct channel *channel, struct tcp_info *ret_info) {
	socklen_t length = sizeof(*ret_info);

	*ret_info = (struct tcp_info){0};
	return getsockopt(channel->source.fd, IPPROTO_TCP, TCP_INFO, ret_info, &length);
}

int transport_kernel_answers(
	const struct transport *transport, const struct sock_addr *host, uint64_t since_ns
) {
	uint64_t now_ns = loop_now_ns(transport->loop);
	uint64_t within_ms = now_ns > since_ns ? (now_ns - since_ns) / RAS_NS_PER_MS : 0;
	const struct channel *channel;
	struct tcp_info info;

	TAILQ_FOREACH(channel, &transport->live, in_list) {
		if (channel->state != CHANNEL_OPEN || !peer_is_on_host(&channel->peer, host) ||
		    channel_tcp_info(channel, &info) != 0)
			continue;
		// Data was sent since then, and all data is acknowledged.
		if (info.tcpi_last_data_sent <= within_ms && info.tcpi_unacked == 0 &&
		    info.tcpi_notsent_bytes == 0)
			return 0;
	}
	return -ENOENT;
}

bool transport_kernel_is_silent(
	const struct transport *transport, const struct sock_addr *host, uint64_t for_ns
) {
	const struct channel *channel;
	struct tcp_info info;
	bool any = false;

	TAILQ_FOREACH(channel, &transport->live, in_list) {
		if (channel->state != CHANNEL_OPEN || !peer_is_on_host(&channel->peer, host))
			continue;
		// A silent kernel: data is sent again and again, and nothing came back for this
		// long.
		if (channel_tcp_info(channel, &info) != 0 || info.tcpi_unacked == 0 ||
		    info.tcpi_retransmits < SILENT_RETRANSMITS ||
		    info.tcpi_last_ack_recv < for_ns / RAS_NS_PER_MS)
			return false;
		any = true;
	}
	return any;
}

int transport_tcp_segments(
	const struct transport *transport,
	const struct sock_addr *host,
	struct transport_segments *ret_sent
) {
	const struct channel *channel;
	struct transport_segments sent = {0};
	struct tcp_info info;

	TAILQ_FOREACH(channel, &transport->live, in_list) {
		if (channel->state != CHANNEL_OPEN || !peer_is_on_host(&channel->peer, host) ||
		    channel_tcp_info(channel, &info) != 0)
			continue;
		sent.connections++;
		// Nothing came back since data was sent again. The kernel counts another try of a
		// packet that a filter of this host dropped as a probe.
		sent.unanswered =
			sent.unanswered || info.tcpi_retransmits > 0 || info.tcpi_probes > 0;
		sent.segments += info.tcpi_data_segs_out;
		sent.again += info.tcpi_total_retrans;
	}
	if (sent.connections == 0)
		return -ENOENT;
	*ret_sent = sent;
	return 0;
}
