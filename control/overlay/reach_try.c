// SPDX-License-Identifier: BSD-3-Clause
// Serves the question "Do you reach me?" of another node: connects to its address, where the agent
// must prove the key and tell its identity. The address comes from the node's record in our own
// table, never from the message. So nobody can direct our connections. The number of tries, the
// rate of each asker and the duration of a try are limited.
//
// The answer is one line: the result, our source address and the address that we tried. If another
// agent answered there, its name follows.
#include "overlay/inside.h"

#include <lib/container.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ASKER_INTERVAL_NS RAS_NS_PER_SEC

// Must run outside of the core, because the answer is an input to the core.
static void try_end(struct overlay_reach_try *try) {
	char line[OVERLAY_REACH_ANSWER_BYTES], from[SOCK_ADDR_TEXT_BYTES], to[SOCK_ADDR_TEXT_BYTES];
	struct overlay_served *served = try->served;
	int size;

	loop_timer_cancel(try->overlay->loop, &try->deadline);
	loop_undefer(try->overlay->loop, &try->done);
	try->overlay->reach.counters.tries_failed += try->cause != RAS_CAUSE_NONE;
	try->from.scope_id = 0; // scope ids are local to this machine
	sock_addr_format_host(&try->from, from);
	sock_addr_format(&try->to, to);
	try->served = NULL;
	size = snprintf(
		line, sizeof(line), "%s %s %s%s%s", overlay_reach_outcome_word(try->cause), from,
		to, try->found[0] != '\0' ? " " : "", try->found
	);
	overlay_served_end(served, overlay_served_write(served, line, (size_t)size));
}

static void try_done(struct loop_job *job) {
	try_end(container_of(job, struct overlay_reach_try, done));
}

static void try_expired(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay_reach_try *try = container_of(timer, struct overlay_reach_try, deadline);

	(void)now_ns;
	try->cause = RAS_CAUSE_TIMEOUT;
	try_end(try);
}

void overlay_reach_identified(void *ctx, uint32_t conn, enum ras_cause cause, uint64_t found) {
	struct overlay *overlay = ctx;
	struct ras_peer peer;

	for (uint32_t n = 0; n < OVERLAY_REACH_TRIES; n++) {
		struct overlay_reach_try *try = &overlay->reach_tries[n];

		if (try->served == NULL || try->conn != conn)
			continue;
		try->cause = cause;
		if (cause == RAS_CAUSE_CONFLICT && ras_peer_find(overlay->ras, found, &peer) == 0)
			snprintf(
				try->found, sizeof(try->found), "%.*s",
				(int)peer.record->name_length, peer.record->name
			);
		loop_defer(overlay->loop, &try->done);
		return;
	}
}

static bool asker_is_allowed(struct overlay *overlay, uint64_t id) {
	uint64_t now_ns = loop_now_ns(overlay->loop);
	struct overlay_reach_asker *place = &overlay->reach_askers[0];

	for (uint32_t n = 0; n < OVERLAY_REACH_ASKERS; n++) {
		struct overlay_reach_asker *asker = &overlay->reach_askers[n];

		if (asker->id == id) {
			place = asker;
			break;
		}
		if (asker->again_ns < place->again_ns)
			place = asker;
	}
	if (place->id == id && now_ns < place->again_ns)
		return false;
	*place = (struct overlay_reach_asker){id, now_ns + ASKER_INTERVAL_NS};
	return true;
}

bool overlay_reach_serve(struct overlay *overlay, struct overlay_served *served) {
	struct overlay_reach_try *try = NULL;
	struct ras_peer peer;
	int err = -EHOSTUNREACH;

	if (strcmp(served->line, OVERLAY_REACH_LINE) != 0)
		return false;
	for (uint32_t n = 0; n < OVERLAY_REACH_TRIES && try == NULL; n++) {
		if (overlay->reach_tries[n].served == NULL)
			try = &overlay->reach_tries[n];
	}
	if (try == NULL || ras_peer_find(overlay->ras, served->source, &peer) != 0 ||
	    !asker_is_allowed(overlay, served->source)) {
		overlay->reach.counters.tries_turned_off++;
		overlay_served_end(served, overlay_served_write(served, "busy - -", 8));
		return true;
	}
	overlay->reach.counters.tries++;
	*try = (struct overlay_reach_try){
		.overlay = overlay,
		.served = served,
		.from = transport_address(overlay->transport),
		.to = peer.record->address,
		.deadline = {.expired = try_expired},
		.done = {.run = try_done},
	};
	if (!sock_addr_is_any(&try->to))
		err = ras_who(overlay->ras, overlay_now_ns(overlay), served->source, &try->conn);
	if (err == 0) {
		if (sock_addr_is_any(&try->from))
			transport_local_address(overlay->transport, try->conn, &try->from);
		err = loop_timer_set(
			overlay->loop, &try->deadline,
			loop_now_ns(overlay->loop) + OVERLAY_REACH_TRY_NS
		);
	}
	if (err != 0) {
		try->cause = ras_cause_of_errno(err);
		try_end(try);
	}
	return true;
}

void overlay_reach_stop_serving(struct overlay *overlay) {
	for (uint32_t n = 0; n < OVERLAY_REACH_TRIES; n++) {
		struct overlay_reach_try *try = &overlay->reach_tries[n];

		if (try->served == NULL)
			continue;
		loop_timer_cancel(overlay->loop, &try->deadline);
		loop_undefer(overlay->loop, &try->done);
		try->served = NULL;
	}
}
