// SPDX-License-Identifier: BSD-3-Clause
// How hosts accept our connections. If no RDMA device answers for a host, only this can tell a
// frozen agent from a dead host.
#include "overlay/inside.h"

#include <errno.h>

// An older result says nothing about now.
#define TCP_REACH_LIFE_NS (15 * RAS_NS_PER_SEC)
// A host is silent if its kernel acknowledged nothing for this long, of data that is sent again and
// again.
#define TCP_REACH_MUTE_NS (2 * RAS_NS_PER_SEC)
// A live agent is heard each second. After this silence its kernel is asked.
#define TCP_REACH_SILENT_NS (3 * RAS_NS_PER_SEC / 2)

// Return the entry of an address: its own, or the oldest of a few beside it, which is reused.
static struct overlay_tcp_result *
tcp_reach_get(struct overlay *overlay, const struct sock_addr *to) {
	struct overlay_tcp_result *oldest = NULL;
	uint32_t hash = (uint32_t)sock_addr_digest(to);

	for (uint32_t n = 0; n < 4; n++) {
		struct overlay_tcp_result *tcp_found =
			&overlay->tcp_found[(hash + n) % OVERLAY_TCP_FOUND_MAX];

		if (sock_addr_equal(&tcp_found->to, to))
			return tcp_found;
		if (oldest == NULL || tcp_found->last.at_ns < oldest->last.at_ns)
			oldest = tcp_found;
	}
	*oldest = (struct overlay_tcp_result){.to = *to};
	return oldest;
}

static struct overlay_tcp_result *result_under_way(struct overlay *overlay, uint32_t conn) {
	for (uint32_t n = 0; n < OVERLAY_TCP_FOUND_MAX; n++) {
		struct overlay_tcp_result *tcp_found = &overlay->tcp_found[n];

		if (tcp_found->under_way && tcp_found->conn == conn)
			return tcp_found;
	}
	return NULL;
}

static void tcp_reach_learn(
	struct overlay *overlay, struct overlay_tcp_result *tcp_found, enum verdict_reach reach
) {
	tcp_found->under_way = false;
	if (reach == VERDICT_REACH_UNKNOWN)
		return;
	// Use the time of the turn, as the callers do. A later time would lie in their future.
	tcp_found->last =
		(struct overlay_tcp_reach){.reach = reach, .at_ns = loop_now_ns(overlay->loop)};
}

void overlay_tcp_reach_begin(struct overlay *overlay, uint32_t conn, const struct sock_addr *to) {
	struct overlay_tcp_result *tcp_found = tcp_reach_get(overlay, to);

	tcp_found->conn = conn;
	tcp_found->under_way = true;
}

void overlay_tcp_reach_opened(struct overlay *overlay, uint32_t conn) {
	struct overlay_tcp_result *tcp_found = result_under_way(overlay, conn);

	if (tcp_found != NULL)
		tcp_reach_learn(overlay, tcp_found, VERDICT_REACH_ANSWERS);
}

static enum verdict_reach reach_from_cause(enum ras_cause cause) {
	switch (cause) {
	case RAS_CAUSE_SILENT: // connected, but no proof was received
		return VERDICT_REACH_ACCEPTS;
	case RAS_CAUSE_REFUSED:
	case RAS_CAUSE_EXITED:
		return VERDICT_REACH_REFUSES;
	case RAS_CAUSE_TIMEOUT:
	case RAS_CAUSE_UNREACHABLE:
		return VERDICT_REACH_NONE;
	case RAS_CAUSE_PROOF:
	case RAS_CAUSE_VERSION:
	case RAS_CAUSE_PROTOCOL:
		return VERDICT_REACH_ANSWERS; // some agent answers
	default:
		return VERDICT_REACH_UNKNOWN; // own trouble, or a reset by anyone
	}
}

void overlay_tcp_reach_ended(struct overlay *overlay, uint32_t conn, enum ras_cause cause) {
	struct overlay_tcp_result *tcp_found = result_under_way(overlay, conn);
	enum verdict_reach reach = reach_from_cause(cause);
	int err;

	if (tcp_found == NULL)
		return;
	// A stopped agent may have a full accept queue, so its kernel is asked at another port
	// first. That answer is recorded later.
	if (cause == RAS_CAUSE_TIMEOUT) {
		err = transport_probe_kernel(overlay->transport, &tcp_found->to);
		if (err == 0 || err == -EALREADY)
			reach = VERDICT_REACH_UNKNOWN;
	}
	tcp_reach_learn(overlay, tcp_found, reach);
}

void overlay_tcp_reach_kernel(void *ctx, const struct sock_addr *to, bool answered) {
	struct overlay *overlay = ctx;
	struct overlay_tcp_result *tcp_found = tcp_reach_get(overlay, to);
	bool again = tcp_found->under_way; // another connection is under way and has its own result

	tcp_reach_learn(overlay, tcp_found, answered ? VERDICT_REACH_ACCEPTS : VERDICT_REACH_NONE);
	tcp_found->under_way = again;
}

// Check the peer's link, if there is one. Returns when the peer was last heard there; 0 without a
// link.
static uint64_t link_read_reach(
	const struct overlay *overlay, uint64_t peer, struct overlay_tcp_reach *ret_tcp_reach
) {
	uint64_t now_ns = loop_now_ns(overlay->loop);
	uint64_t heard_ns = 0;
	struct ras_link_info link;

	for (uint32_t n = 0; ras_link_at(overlay->ras, n, &link) == 0; n++) {
		if (link.peer != peer || !link.ready)
			continue;
		heard_ns = now_ns > link.silent_ns ? now_ns - link.silent_ns : 0;
		ret_tcp_reach->quiet_ns = link.quiet_ns;
		if (link.quiet_ns >= TCP_REACH_SILENT_NS)
			continue;
		ret_tcp_reach->reach = VERDICT_REACH_ANSWERS;
		ret_tcp_reach->at_ns = heard_ns;
	}
	return heard_ns;
}

static const struct overlay_tcp_result *
tcp_reach_find(const struct overlay *overlay, const struct sock_addr *to) {
	uint32_t hash = (uint32_t)sock_addr_digest(to);

	for (uint32_t n = 0; n < 4; n++) {
		const struct overlay_tcp_result *tcp_found =
			&overlay->tcp_found[(hash + n) % OVERLAY_TCP_FOUND_MAX];

		if (sock_addr_equal(&tcp_found->to, to))
			return tcp_found;
	}
	return NULL;
}

void overlay_tcp_reach(
	const struct overlay *overlay, uint64_t peer, struct overlay_tcp_reach *ret_tcp_reach
) {
	uint64_t now_ns = loop_now_ns(overlay->loop);
	uint64_t silent_since_ns = now_ns > TCP_REACH_SILENT_NS ? now_ns - TCP_REACH_SILENT_NS : 0;
	const struct overlay_tcp_result *tcp_found;
	struct transport_segments sent;
	struct ras_peer found;
	uint64_t heard_ns, other_age_ns;

	*ret_tcp_reach = (struct overlay_tcp_reach){.quiet_ns = RAS_NEVER};
	if (ras_peer_find(overlay->ras, peer, &found) != 0 || found.record == NULL)
		return;
	heard_ns = link_read_reach(overlay, peer, ret_tcp_reach);
	if (ret_tcp_reach->reach == VERDICT_REACH_ANSWERS)
		return;
	// Another agent answers at this address, so its host says nothing about the peer.
	other_age_ns = ras_peer_stranger_age_ns(overlay->ras, peer);
	if (other_age_ns < TCP_REACH_LIFE_NS && now_ns > heard_ns + other_age_ns) {
		ret_tcp_reach->reach = VERDICT_REACH_OTHER;
		ret_tcp_reach->at_ns = ret_tcp_reach->since_ns = now_ns - other_age_ns;
	}
	if (other_age_ns != RAS_NEVER)
		return;
	if (transport_kernel_answers(overlay->transport, &found.record->address, silent_since_ns) ==
	    0) {
		ret_tcp_reach->reach = VERDICT_REACH_ACCEPTS;
		ret_tcp_reach->at_ns = ret_tcp_reach->since_ns = now_ns;
		return;
	}
	tcp_found = tcp_reach_find(overlay, &found.record->address);
	if ((tcp_found == NULL || tcp_found->last.at_ns < silent_since_ns) &&
	    transport_kernel_is_silent(
		    overlay->transport, &found.record->address, TCP_REACH_MUTE_NS
	    )) {
		ret_tcp_reach->reach = VERDICT_REACH_NONE;
		ret_tcp_reach->at_ns = now_ns;
		ret_tcp_reach->since_ns =
			now_ns > TCP_REACH_MUTE_NS ? now_ns - TCP_REACH_MUTE_NS : 0;
		return;
	}
	// A result from before the agent was heard is outdated.
	if (tcp_found == NULL || now_ns - tcp_found->last.at_ns >= TCP_REACH_LIFE_NS ||
	    tcp_found->last.at_ns < heard_ns)
		return;
	// Nothing has come back on an open connection since data was sent again. The kernel of a
	// host with a frozen agent would acknowledge the data.
	if (tcp_found->last.reach == VERDICT_REACH_ACCEPTS &&
	    transport_tcp_segments(overlay->transport, &found.record->address, &sent) == 0 &&
	    sent.unanswered)
		return;
	ret_tcp_reach->reach = tcp_found->last.reach;
	ret_tcp_reach->at_ns = ret_tcp_reach->since_ns = tcp_found->last.at_ns;
}

int overlay_tcp_segments(
	const struct overlay *overlay,
	const struct sock_addr *host,
	struct transport_segments *ret_sent
) {
	return transport_tcp_segments(overlay->transport, host, ret_sent);
}

int overlay_link_ask(struct overlay *overlay, uint64_t peer) {
	return ras_link_ping(overlay->ras, overlay_now_ns(overlay), peer);
}
