// SPDX-License-Identifier: BSD-3-Clause
// Life of the store, and the consequences of a changed verdict.
#include "verdict/store/health_inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/tracepoint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CONFIRM_NS (60 * RAS_NS_PER_SEC)

static void *counted_allocate(void *ctx, size_t size) {
	struct health *health = ctx;
	void *memory = calloc(1, size);

	if (memory != NULL)
		health->memory_used += size;
	return memory;
}

static void counted_release(void *ctx, void *memory, size_t size) {
	struct health *health = ctx;

	if (memory != NULL)
		health->memory_used -= size;
	free(memory);
}

// Requests of the engine.

static void op_wake(void *ctx, uint64_t at_ns) {
	struct health *health = ctx;

	if (at_ns == RAS_NEVER)
		loop_timer_cancel(health->loop, &health->engine_due);
	else if (loop_timer_set(health->loop, &health->engine_due, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

// Queue a change until the end of the turn, since the engine, and maybe the core, are on the stack.
// If the queue is full, the oldest change is dropped: the newest ones show the current state.
static void change_enqueue(struct health *health, const struct verdict_change *change) {
	struct health_change *kept;

	if (health->change_count == HEALTH_CHANGES) {
		health->change_first = (health->change_first + 1) % HEALTH_CHANGES;
		health->change_count--;
		health->changes_lost++;
	}
	kept = &health->changes[(health->change_first + health->change_count++) % HEALTH_CHANGES];
	*kept = (struct health_change){
		.subject = change->now->subject,
		.before = change->before,
		.now = change->now->verdict,
		.since_ns = change->now->since_ns,
	};
	snprintf(kept->reason, sizeof(kept->reason), "%s", change->now->reason);
	snprintf(kept->evidence, sizeof(kept->evidence), "%s", change->now->evidence);
	loop_defer(health->loop, &health->tell);
}

static void op_changed(void *ctx, const struct verdict_change *change) {
	TRACEPOINT(
		verdict_change, change->now->subject, change->before, change->now->verdict,
		change->now->advice, change->now->reason
	);
	change_enqueue(ctx, change);
	health_grants_check_soon(ctx);
}

void health_report_advice(struct health *health, uint64_t subject) {
	struct verdict_view view;
	struct verdict_change change = {.now = &view};

	if (verdict_view_get(health->engine, subject, &view) != 0)
		return;
	change.before = view.verdict;
	change_enqueue(health, &change);
}

static const struct verdict_ops engine_ops = {
	.changed = op_changed, .wake = op_wake, .links = health_links};

static void engine_due(struct loop_timer *timer, uint64_t now_ns) {
	struct health *health = container_of(timer, struct health, engine_due);

	verdict_tick(health->engine, now_ns);
}

// Reports to the event log and to listeners.

static void change_log_event(struct health *health, const struct health_change *change) {
	char sentence[STATE_TEXT_BYTES];

	int used = snprintf(
		sentence, sizeof(sentence), "%s, was %s", verdict_name(change->now),
		verdict_name(change->before)
	);

	if (change->evidence[0] != '\0')
		snprintf(
			sentence + used, sizeof(sentence) - (size_t)used, "; %s: %s",
			change->reason, change->evidence
		);
	overlay_note_verdict(health->overlay, change->subject, (uint64_t)change->now, sentence);
}

static bool verdict_is_unreported(enum verdict verdict) {
	return verdict <= VERDICT_HEALTHY || verdict == VERDICT_UNKNOWN;
}

// Return whether the change is worth an event. A join is not. A suspicion has an event of the
// overlay, and usually comes to nothing.
static bool change_is_reportable(const struct health *health, const struct health_change *change) {
	uint64_t healthy_ns = 0, told_ns = 0;
	struct verdict_past past;
	uint32_t cursor = 0;

	if (change->now == change->before)
		return false; // only the advice changed
	if (!verdict_is_unreported(change->before) || !verdict_is_unreported(change->now))
		return true;
	if (change->now != VERDICT_HEALTHY)
		return false;

	// A recovery is reported if a fault was reported since the node was last healthy.
	while (verdict_past_next(health->engine, change->subject, &cursor, &past)) {
		if (past.verdict == VERDICT_HEALTHY && past.since_ns > healthy_ns)
			healthy_ns = past.since_ns;
		if (!verdict_is_unreported(past.verdict) && past.since_ns > told_ns)
			told_ns = past.since_ns;
	}
	return told_ns > healthy_ns;
}

static void changes_report(struct loop_job *job) {
	struct health *health = container_of(job, struct health, tell);

	if (health->changes_lost > 0)
		log_event(
			LOG_LEVEL_WARN, "verdict_changes_untold",
			log_u64("count", health->changes_lost)
		);
	health->changes_lost = 0;
	while (health->change_count > 0) {
		const struct health_change change = health->changes[health->change_first];
		struct verdict_view view;
		const struct verdict_change reported = {.before = change.before, .now = &view};
		struct health_listener *next;

		health->change_first = (health->change_first + 1) % HEALTH_CHANGES;
		health->change_count--;
		if (change_is_reportable(health, &change))
			change_log_event(health, &change);
		if (verdict_view_get(health->engine, change.subject, &view) != 0)
			continue;
		for (struct health_listener *listener = health->listeners; listener != NULL;
		     listener = next) {
			next = listener->next;
			listener->changed(listener, &reported);
		}
	}
}

// Life of the store.

int health_create(
	struct loop *loop,
	struct overlay *overlay,
	const struct health_config *config,
	char ret_detail[static 256],
	struct health **ret_health
) {
	const struct verdict_config engine_config = {
		.self = ras_self_id(overlay_ras(overlay)),
	};
	struct health *health = calloc(1, sizeof(*health));
	int err;

	if (health == NULL)
		return -ENOMEM;
	health->loop = loop;
	health->overlay = overlay;
	health->observes_only = config->observes_only;
	health->confirm_ns = config->confirm_ns != 0 ? config->confirm_ns : CONFIRM_NS;
	health->memory = (struct ras_memory
	){.allocate = counted_allocate, .release = counted_release, .ctx = health};
	health->engine_due.expired = engine_due;
	health->tell.run = changes_report;
	health->notice_last = &health->notices;
	err = config->topology == NULL || config->topology[0] == '\0'
		      ? 0
		      : leaf_map_load(config->topology, ret_detail, &health->leaves);
	if (err == 0)
		err = verdict_engine_create(
			&engine_config, &health->memory, &engine_ops, health, &health->engine
		);
	if (err == 0)
		err = health_notices_start(health, config->random_seed);
	if (err == 0)
		err = health_grants_start(health, config);
	if (err == 0)
		err = health_losses_start(health);
	if (err != 0) {
		health_destroy(health);
		return err;
	}
	health_peers_start(health);
	*ret_health = health;
	return 0;
}

struct health *health_destroy(struct health *health) {
	if (health == NULL)
		return NULL;
	health_peers_stop(health);
	health_losses_stop(health);
	health_grants_stop(health);
	health_notices_stop(health);
	loop_timer_cancel(health->loop, &health->engine_due);
	loop_undefer(health->loop, &health->tell);
	verdict_engine_destroy(health->engine);
	leaf_map_destroy(health->leaves);
	free(health);
	return NULL;
}

void health_listen(struct health *health, struct health_listener *listener) {
	listener->next = health->listeners;
	health->listeners = listener;
}

void health_unlisten(struct health *health, struct health_listener *listener) {
	struct health_listener **at = &health->listeners;

	while (*at != NULL && *at != listener)
		at = &(*at)->next;
	if (*at != NULL)
		*at = listener->next;
}
