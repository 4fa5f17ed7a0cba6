// SPDX-License-Identifier: BSD-3-Clause
// Packets that are lost on the way to others, by what the kernel sends again on the overlay's
// connections: the one count of loss that every host has, whatever its fabric is.
#include "health_inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>

static void tell(void *ctx, uint64_t peer, bool loses, uint32_t permille) {
	struct health *health = ctx;
	const struct ras *ras = overlay_ras(health->overlay);
	struct ras_peer found;
	struct sight sight = {
		.observer = ras_self_id(ras),
		.subject = peer,
		.kind = SIGHT_NO_PAIR,
		.reach = loses ? VERDICT_REACH_LOSES : VERDICT_REACH_ANSWERS,
		.own_good = true,
		.lost_permille = permille,
	};

	// Of one that is in doubt its connections say more: peers.c tells it.
	if (ras_peer_find(ras, peer, &found) != 0 || found.state != RAS_ALIVE)
		return;
	sight.incarnation = found.incarnation;
	health_sight(health, &sight);
}

bool health_losses_tell(struct health *health, const struct ras_peer *peer) {
	uint32_t permille = health->losses != NULL ? loss_of(health->losses, peer->record->id) : 0;

	if (permille > 0)
		tell(health, peer->record->id, true, permille);
	return permille > 0;
}

static void look_at_links(struct health *health) {
	const struct ras *ras = overlay_ras(health->overlay);
	struct ras_link_info link;
	struct ras_peer peer;

	for (uint32_t n = 0; ras_link_at(ras, n, &link) == 0; n++) {
		struct loss_count count;

		if (link.ready && link.silent_ns < LOSS_LOOK_NS &&
		    ras_peer_find(ras, link.peer, &peer) == 0 && peer.state == RAS_ALIVE &&
		    overlay_sent(
			    health->overlay, &peer.record->address, &count.connections, &count.sent,
			    &count.again
		    ) == 0)
			loss_add(health->losses, link.peer, &count);
	}
}

static void arm(struct health *health) {
	uint64_t at_ns = loop_now_ns(health->loop) + LOSS_LOOK_NS;

	if (loop_timer_set(health->loop, &health->losses_due, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

static void tell_of_ourselves(struct health *health) {
	if (health->losses->ourselves)
		log_event(
			LOG_LEVEL_WARN, "own_links_lose", log_u64("links", health->losses->count),
			log_str("effect", "what is not heard is called unknown")
		);
	else
		log_event(LOG_LEVEL_INFO, "own_links_sound");
	health_self_changed(health);
}

static void losses_due(struct loop_timer *timer, uint64_t now_ns) {
	struct health *health = container_of(timer, struct health, losses_due);
	bool ourselves = health->losses->ourselves;

	(void)now_ns;
	loss_begin(health->losses);
	look_at_links(health);
	loss_end(health->losses, tell, health);
	if (health->losses->ourselves != ourselves)
		tell_of_ourselves(health);
	arm(health);
}

int health_losses_start(struct health *health) {
	health->losses = health->memory.allocate(health->memory.ctx, sizeof(*health->losses));
	if (health->losses == NULL)
		return -ENOMEM;
	health->losses_due.expired = losses_due;
	arm(health);
	return 0;
}

void health_losses_stop(struct health *health) {
	loop_timer_cancel(health->loop, &health->losses_due);
	if (health->losses != NULL)
		health->memory.release(health->memory.ctx, health->losses, sizeof(*health->losses));
	health->losses = NULL;
}
