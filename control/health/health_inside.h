// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: the store of verdicts wired to the overlay.
#pragma once

#include "health/leaf_map.h"

#include <control/health.h>
#include <verdict/loss.h>

#define HEALTH_CHANGES 256    // waiting to be told; beyond it the oldest are told by number only
#define HEALTH_QUIET_LINKS 64 // of those that are quiet; the ring has 28 links at 10,000 nodes
#define HEALTH_DIRTY 512      // peers that changed in one turn; beyond it all are looked at

// A change that was seen inside an input, where nothing may be called back.
struct health_change {
	uint64_t subject;
	enum verdict before, now;
	uint64_t since_ns;
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// Links that say nothing at this moment, looked at once in a turn of the loop: the engine asks for
// each subject that is silent, and there may be a thousand.
struct quiet_links {
	bool known;
	uint64_t at_ns; // the turn
	uint32_t alive; // of peers that the overlay holds for alive
	uint32_t count; // of all; the first of them:
	uint64_t peers[HEALTH_QUIET_LINKS];
};

struct health {
	struct loop *loop;
	struct overlay *overlay;
	struct ras_memory memory;
	size_t memory_used; // bytes asked of it
	struct verdict_engine *engine;
	struct observation_exchange *exchange;
	struct grants *grants;
	struct loss_book *losses;
	uint64_t losses_look_ns; // the next look at all links
	struct leaf_map *leaves; // NULL: none
	struct quiet_links quiet;
	uint64_t confirm_ns;
	struct overlay_listener listener;
	struct health_listener *listeners;

	struct loop_timer engine_due, exchange_due, grants_due, losses_due;
	struct loop_timer look; // at those who are not alive, while there are any
	struct loop_job refresh, tell, send;
	uint64_t paused_until_ns;
	bool brake_told;	// to the engine
	bool address_is_shared; // with another machine, as was told

	uint64_t dirty[HEALTH_DIRTY];
	uint32_t dirty_count;
	bool all_dirty;

	struct health_change changes[HEALTH_CHANGES];
	uint32_t change_first, change_count;
	uint64_t changes_lost;

	struct health_notice *notices; // to be flooded when the core is not on the stack
	struct health_notice **notice_last;
	uint32_t notice_count;
};

// quiet_links.c: the answer to the engine.
void health_links(void *ctx, uint64_t peer, struct verdict_links *ret_links);

// losses.c
// Tells again that packets to a peer are lost; false: none are, as far as this node knows.
bool health_losses_tell(struct health *health, const struct ras_peer *peer);
int health_losses_start(struct health *health);
void health_losses_stop(struct health *health);

// peers.c: from the overlay's table into the engine.
void health_self_changed(struct health *health);
void health_peers_start(struct health *health);
void health_peers_stop(struct health *health);

// grants.c
int health_grants_start(struct health *health, const struct health_config *config);
void health_grants_stop(struct health *health);
// Somebody's state or verdict is another one.
void health_grants_look(struct health *health);

// view.c: whether it asks for a drain now, be it granted or not.
bool health_wants_drain(const struct health *health, const struct verdict_view *view);

// health.c: the verdict is what it was, and what may be done is not.
void health_tell_again(struct health *health, uint64_t subject);

// notices.c: a notice of either kind, when the core is not on the stack.
void health_tell(struct health *health, uint32_t kind, const void *bytes, size_t size);

// notices.c: observations and statements, to others and from them.
int health_notices_start(struct health *health, uint64_t random_seed);
void health_notices_stop(struct health *health);
