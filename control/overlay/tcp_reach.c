// SPDX-License-Identifier: BSD-3-Clause
// How hosts take our connections: the only thing that tells a frozen agent from a dead host where
// no device answers for it.
#include "overlay/inside.h"

#include <errno.h>

// Older than this it says nothing of now.
#define TCP_REACH_LIFE_NS (15 * RAS_NS_PER_SEC)
// A host whose kernel has acknowledged nothing for so long, of what is sent to it again and again.
#define TCP_REACH_MUTE_NS (2 * RAS_NS_PER_SEC)
// An agent that lives is heard each second; of one that was not, the kernel is asked.
#define TCP_REACH_SILENT_NS (3 * RAS_NS_PER_SEC / 2)

// The address' place: its own, or the oldest of a few beside it.
static struct overlay_tcp_found *
tcp_reach_place(struct overlay *overlay, const struct sock_addr *to) {
	struct overlay_tcp_found *oldest = NULL;
	uint32_t hash = (uint32_t)sock_addr_digest(to);

	for (uint32_t n = 0; n < 4; n++) {
		struct overlay_tcp_found *tcp_found =
			&overlay->tcp_found[(hash + n) % OVERLAY_TCP_FOUND_MAX];

		if (sock_addr_equal(&tcp_found->to, to))
			return tcp_found;
		if (oldest == NULL || tcp_found->last.at_ns < oldest->last.at_ns)
			oldest = tcp_found;
	}
	*oldest = (struct overlay_tcp_found){.to = *to};
	return oldest;
}

static struct overlay_tcp_found *under_way(struct overlay *overlay, uint32_t conn) {
	for (uint32_t n = 0; n < OVERLAY_TCP_FOUND_MAX; n++) {
		struct overlay_tcp_found *tcp_found = &overlay->tcp_found[n];

		if (tcp_found->under_way && tcp_found->conn == conn)
			return tcp_found;
	}
	return NULL;
}

static void tcp_reach_learn(
	struct overlay *overlay, struct overlay_tcp_found *tcp_found, enum verdict_reach reach
) {
	tcp_found->under_way = false;
	if (reach == VERDICT_REACH_UNKNOWN)
		return;
	// The time of the turn, as whoever asks has it: a later one would be of its future.
	tcp_found->last =
		(struct overlay_tcp_reach){.reach = reach, .at_ns = loop_now_ns(overlay->loop)};
}

void overlay_tcp_reach_begin(struct overlay *overlay, uint32_t conn, const struct sock_addr *to) {
	struct overlay_tcp_found *tcp_found = tcp_reach_place(overlay, to);

	tcp_found->conn = conn;
	tcp_found->under_way = true;
}

void overlay_tcp_reach_opened(struct overlay *overlay, uint32_t conn) {
	struct overlay_tcp_found *tcp_found = under_way(overlay, conn);

	if (tcp_found != NULL)
		tcp_reach_learn(overlay, tcp_found, VERDICT_REACH_ANSWERS);
}

// True: it is being asked, and the answer is learnt when it comes.
static bool ask_kernel(struct overlay *overlay, const struct sock_addr *to) {
	int err = transport_ask_kernel(overlay->transport, to);

	return err == 0 || err == -EALREADY;
}

static enum verdict_reach reach_of(enum ras_cause cause) {
	switch (cause) {
	case RAS_CAUSE_SILENT: // connected, and no proof came
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
		return VERDICT_REACH_ANSWERS; // something does
	default:
		return VERDICT_REACH_UNKNOWN; // a trouble of our own, or a reset, by whomever
	}
}

void overlay_tcp_reach_ended(struct overlay *overlay, uint32_t conn, enum ras_cause cause) {
	struct overlay_tcp_found *tcp_found = under_way(overlay, conn);
	enum verdict_reach reach = reach_of(cause);

	if (tcp_found == NULL)
		return;
	// An agent that is stopped may have its queue full: its kernel is asked elsewhere first.
	if (cause == RAS_CAUSE_TIMEOUT && ask_kernel(overlay, &tcp_found->to))
		reach = VERDICT_REACH_UNKNOWN;
	tcp_reach_learn(overlay, tcp_found, reach);
}

void overlay_tcp_reach_kernel(struct overlay *overlay, const struct sock_addr *to, bool answered) {
	struct overlay_tcp_found *tcp_found = tcp_reach_place(overlay, to);

	bool again = tcp_found->under_way; // another connection, which comes to something by itself

	tcp_reach_learn(overlay, tcp_found, answered ? VERDICT_REACH_ACCEPTS : VERDICT_REACH_NONE);
	tcp_found->under_way = again;
}

// By its link, if there is one; when it was heard there last, 0 if there is none.
static uint64_t
link_hears(const struct overlay *overlay, uint64_t peer, struct overlay_tcp_reach *ret_tcp_reach) {
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

static const struct overlay_tcp_found *
tcp_reach_find(const struct overlay *overlay, const struct sock_addr *to) {
	uint32_t hash = (uint32_t)sock_addr_digest(to);

	for (uint32_t n = 0; n < 4; n++) {
		const struct overlay_tcp_found *tcp_found =
			&overlay->tcp_found[(hash + n) % OVERLAY_TCP_FOUND_MAX];

		if (sock_addr_equal(&tcp_found->to, to))
			return tcp_found;
	}
	return NULL;
}

// Nothing has come back since something was sent again on a connection that stands: the kernel of a
// host whose agent is frozen would acknowledge it.
static bool is_unanswered(const struct overlay *overlay, const struct sock_addr *host) {
	struct transport_sent sent;

	return transport_kernel_sent(overlay->transport, host, &sent) == 0 && sent.unanswered;
}

void overlay_tcp_reach(
	const struct overlay *overlay, uint64_t peer, struct overlay_tcp_reach *ret_tcp_reach
) {
	uint64_t now_ns = loop_now_ns(overlay->loop);
	uint64_t silent_since_ns = now_ns > TCP_REACH_SILENT_NS ? now_ns - TCP_REACH_SILENT_NS : 0;
	const struct overlay_tcp_found *tcp_found;
	struct ras_peer found;
	uint64_t heard_ns;

	*ret_tcp_reach = (struct overlay_tcp_reach){.quiet_ns = RAS_NEVER};
	if (ras_peer_find(overlay->ras, peer, &found) != 0 || found.record == NULL)
		return;
	heard_ns = link_hears(overlay, peer, ret_tcp_reach);
	if (ret_tcp_reach->reach == VERDICT_REACH_ANSWERS)
		return;
	// What another one's host does there says nothing of this one.
	if (ras_is_stranger_at(overlay->ras, peer))
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
	// What was found at its door before its agent was heard is over.
	if (tcp_found == NULL || now_ns - tcp_found->last.at_ns >= TCP_REACH_LIFE_NS ||
	    tcp_found->last.at_ns < heard_ns)
		return;
	if (tcp_found->last.reach == VERDICT_REACH_ACCEPTS &&
	    is_unanswered(overlay, &found.record->address))
		return;
	ret_tcp_reach->reach = tcp_found->last.reach;
	ret_tcp_reach->at_ns = ret_tcp_reach->since_ns = tcp_found->last.at_ns;
}

int overlay_sent(
	const struct overlay *overlay, const struct sock_addr *host, struct transport_sent *ret_sent
) {
	return transport_kernel_sent(overlay->transport, host, ret_sent);
}

int overlay_link_ask(struct overlay *overlay, uint64_t peer) {
	return ras_link_ask(overlay->ras, overlay_clock_ns(overlay), peer);
}
