// SPDX-License-Identifier: BSD-3-Clause
// Packet loss towards peers, by retransmissions on the overlay's TCP connections. Every host has
// this count, whatever its fabric is.
#include "verdict/store/health_inside.h"

#include <control/transport.h>
#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>

static void publish_link_loss(void *ctx, uint64_t peer, bool loses, uint32_t permille) {
	struct health *health = ctx;
	const struct ras *ras = overlay_ras(health->overlay);
	struct ras_peer found;
	struct observation observation = {
		.observer = ras_self_id(ras),
		.subject = peer,
		.kind = OBSERVATION_NO_PAIR,
		.reach = loses ? VERDICT_REACH_LOSES : VERDICT_REACH_ANSWERS,
		.own_good = true,
		.lost_permille = permille,
	};

	// For a peer in doubt, peers.c publishes its connection state, which is more precise.
	if (ras_peer_find(ras, peer, &found) != 0 || found.state != RAS_ALIVE)
		return;
	observation.incarnation = found.incarnation;
	health_add_observation(health, &observation);
}

bool health_losses_publish(struct health *health, const struct ras_peer *peer) {
	uint32_t permille =
		health->losses != NULL ? loss_link_permille(health->losses, peer->record->id) : 0;

	if (permille > 0)
		publish_link_loss(health, peer->record->id, true, permille);
	return permille > 0;
}

// Read the counters of the link to a peer. Returns false if they prove nothing: for a peer that is
// not alive, only unanswered data counts.
static bool
link_counters_read(const struct health *health, uint64_t id, struct loss_count *ret_count) {
	struct transport_segments sent;
	struct ras_peer peer;

	if (ras_peer_find(overlay_ras(health->overlay), id, &peer) != 0 ||
	    overlay_tcp_segments(health->overlay, &peer.record->address, &sent) != 0)
		return false;
	*ret_count = (struct loss_count){
		.connections = sent.connections,
		.sent = sent.segments,
		.again = sent.again,
		.unanswered = sent.unanswered,
	};
	return sent.unanswered || peer.state == RAS_ALIVE;
}

// Recheck the links that are asked for answers. Returns whether there are any.
static bool recheck_asked_links(struct health *health) {
	struct loss_count count;
	uint32_t cursor = 0;
	uint64_t peer;
	bool any = false;

	while (loss_next_to_probe(health->losses, &cursor, &peer)) {
		any = true;
		if (link_counters_read(health, peer, &count))
			loss_recheck_link(health->losses, peer, &count, publish_link_loss, health);
		// A peer without a link is checked in a later round.
		(void)overlay_link_ask(health->overlay, peer);
	}
	return any;
}

static void losses_arm(struct health *health, bool any_asked) {
	uint64_t at_ns = health->losses_look_ns, ask_ns = loop_now_ns(health->loop) + LOSS_PROBE_NS;

	if (any_asked && ask_ns < at_ns)
		at_ns = ask_ns;
	if (loop_timer_set(health->loop, &health->losses_due, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

// Sample all links, judge them, and report if this node itself began or ceased to lose packets.
static void losses_run_round(struct health *health) {
	const struct ras *ras = overlay_ras(health->overlay);
	bool ourselves = health->losses->ourselves;
	struct ras_link_info link;
	struct loss_count count;

	loss_round_begin(health->losses);
	for (uint32_t n = 0; ras_link_at(ras, n, &link) == 0; n++) {
		if (link.ready && link_counters_read(health, link.peer, &count) &&
		    (count.unanswered || link.silent_ns < LOSS_ROUND_NS))
			loss_round_add(health->losses, link.peer, &count);
	}
	loss_round_end(health->losses, publish_link_loss, health);
	if (health->losses->ourselves == ourselves)
		return;
	if (health->losses->ourselves)
		log_event(
			LOG_LEVEL_WARN, "own_links_lose", log_u64("links", health->losses->count),
			log_str("effect", "silent members are called unknown instead of dead")
		);
	else
		log_event(LOG_LEVEL_INFO, "own_links_sound");
	health_self_changed(health);
}

static void losses_due(struct loop_timer *timer, uint64_t now_ns) {
	struct health *health = container_of(timer, struct health, losses_due);

	if (now_ns >= health->losses_look_ns) {
		losses_run_round(health);
		health->losses_look_ns = now_ns + LOSS_ROUND_NS;
	}
	losses_arm(health, recheck_asked_links(health));
}

int health_losses_start(struct health *health) {
	health->losses = health->memory.allocate(health->memory.ctx, sizeof(*health->losses));
	if (health->losses == NULL)
		return -ENOMEM;
	health->losses_due.expired = losses_due;
	health->losses_look_ns = loop_now_ns(health->loop) + LOSS_ROUND_NS;
	losses_arm(health, false);
	return 0;
}

void health_losses_stop(struct health *health) {
	loop_timer_cancel(health->loop, &health->losses_due);
	if (health->losses != NULL)
		health->memory.release(health->memory.ctx, health->losses, sizeof(*health->losses));
	health->losses = NULL;
}
