// SPDX-License-Identifier: BSD-3-Clause
// Internals of the verdict store, which connects the verdict engine to the overlay.
#pragma once

#include "verdict/store/leaf_map.h"

#include <control/health.h>
#include <verdict/loss.h>

// Changes waiting for listeners. A full queue drops its oldest change, and counts it as lost.
#define HEALTH_CHANGES 256
#define HEALTH_QUIET_LINKS 64 // quiet links listed by peer; at 10,000 nodes the ring has 28 links
#define HEALTH_DIRTY 512      // peers that changed in one turn; with more, all peers are refreshed

// Change recorded inside an engine input, where no listener may be called.
struct health_change {
	uint64_t subject;
	enum verdict before, now;
	uint64_t since_ns;
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
};

// Links that are quiet now, collected once per turn of the loop. The engine asks for each silent
// subject, and there may be a thousand.
struct quiet_links {
	bool known;
	uint64_t at_ns; // time of the turn
	uint32_t alive; // quiet links whose peer the overlay holds alive
	uint32_t count; // all quiet links; `peers` has the first of them
	uint64_t peers[HEALTH_QUIET_LINKS];
};

struct health {
	struct loop *loop;
	struct overlay *overlay;
	struct ras_memory memory;
	size_t memory_used; // bytes allocated through `memory`
	struct verdict_engine *engine;
	struct observation_exchange *exchange;
	struct grants *grants;
	struct loss_book *losses;
	uint64_t losses_look_ns; // next round over all links
	struct leaf_map *leaves; // NULL: no topology file
	struct quiet_links quiet;
	bool observes_only;
	uint64_t confirm_ns;
	struct overlay_listener listener;
	struct health_listener *listeners;

	struct loop_timer engine_due, exchange_due, grants_due, losses_due;
	struct loop_timer look; // refreshes peers that are not alive and a statement that was lost
	struct loop_job refresh, tell, send;
	uint64_t paused_until_ns;
	uint64_t paused_ns;	 // duration of the last own pause
	bool brake_told;	 // brake state last passed to the engine
	bool address_is_shared;	 // AddressShared is currently stated
	bool addresses_pending;	 // the last statement about addresses was lost
	uint64_t lost_logged_ns; // of the last event statement_lost, 0 before the first

	uint64_t dirty[HEALTH_DIRTY];
	uint32_t dirty_count;
	bool all_dirty;

	struct health_change changes[HEALTH_CHANGES];
	uint32_t change_first, change_count;
	uint64_t changes_lost;

	struct health_notice *notices; // queue of notices, flooded once the core is off the stack
	struct health_notice **notice_last;
	uint32_t notice_count;
};

// quiet_links.c: the engine's query for quiet links.
void health_links(void *ctx, uint64_t peer, struct verdict_links *ret_links);

// losses.c
// Publish the loss of packets to a peer again. Returns false if this node knows of none.
bool health_losses_publish(struct health *health, const struct ras_peer *peer);
int health_losses_start(struct health *health);
void health_losses_stop(struct health *health);

// peers.c: passes the overlay's members to the engine.
void health_self_changed(struct health *health);
void health_peers_start(struct health *health);
void health_peers_stop(struct health *health);

// grants.c
int health_grants_start(struct health *health, const struct health_config *config);
void health_grants_stop(struct health *health);
// Check for drains soon, since the state or verdict of a node changed.
void health_grants_check_soon(struct health *health);

// view.c: return whether the verdict requests a drain now, granted or not.
bool health_wants_drain(const struct health *health, const struct verdict_view *view);

// health.c: notify listeners that the advice changed although the verdict did not.
void health_report_advice(struct health *health, uint64_t subject);

// notices.c: queue a notice of any kind until the core is off the stack.
void health_notice_queue(struct health *health, uint32_t kind, const void *bytes, size_t size);

// notices.c: observations and statements, sent and received.
int health_notices_start(struct health *health, uint64_t random_seed);
void health_notices_stop(struct health *health);
