// SPDX-License-Identifier: BSD-3-Clause
// Connects grants (<verdict/grants.h>) to the overlay's notices and to the loop.
#include "verdict/store/health_inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>
#include <stdio.h>

#define RATE_PERCENT 5
#define OUT_PERCENT 33

static void op_queue_notice(void *ctx, const void *bytes, size_t size) {
	health_notice_queue(ctx, HEALTH_GRANTS, bytes, size);
}

static bool op_wake(void *ctx, uint64_t at_ns) {
	struct health *health = ctx;

	if (loop_timer_set(health->loop, &health->grants_due, at_ns) == 0)
		return true;
	log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
	return false;
}

static bool op_wants_drain(void *ctx, uint64_t now_ns, const struct verdict_view *view) {
	(void)now_ns;
	return !health_observes_only(ctx) && health_wants_drain(ctx, view);
}

static void op_drain_granted(void *ctx, uint64_t id) {
	const struct health *health = ctx;
	char name[RAS_NAME_MAX + 1] = "";
	struct ras_peer peer;

	if (ras_peer_find(overlay_ras(health->overlay), id, &peer) == 0)
		snprintf(
			name, sizeof(name), "%.*s", (int)peer.record->name_length, peer.record->name
		);
	log_event(
		LOG_LEVEL_INFO, "drain_granted", log_str("peer", name[0] != '\0' ? name : "unknown")
	);
	health_report_advice(ctx, id);
}

static const struct grants_ops grants_ops = {
	.tell = op_queue_notice,
	.wake = op_wake,
	.wants = op_wants_drain,
	.given = op_drain_granted};

static void grants_due(struct loop_timer *timer, uint64_t now_ns) {
	struct health *health = container_of(timer, struct health, grants_due);

	grants_tick(health->grants, now_ns);
}

static void on_notice(void *ctx, uint64_t origin, const void *bytes, size_t size) {
	struct health *health = ctx;
	int err = grants_receive(health->grants, loop_now_ns(health->loop), bytes, size);

	if (err != 0)
		log_event(
			LOG_LEVEL_DEBUG, "grants_malformed", log_u64("origin", origin),
			log_errno("error", err)
		);
}

void health_grants_check_soon(struct health *health) {
	if (health->grants != NULL)
		grants_check_soon(health->grants, loop_now_ns(health->loop));
}

int health_grants_start(struct health *health, const struct health_config *config) {
	const struct grants_config limits = {
		.self = ras_self_id(overlay_ras(health->overlay)),
		.rate_percent =
			config->drain_rate_percent != 0 ? config->drain_rate_percent : RATE_PERCENT,
		.out_percent =
			config->drain_out_percent != 0 ? config->drain_out_percent : OUT_PERCENT,
	};
	int err;

	health->grants_due.expired = grants_due;
	err = grants_create(
		health->engine, &limits, &health->memory, &grants_ops, health, &health->grants
	);
	if (err != 0)
		return err;
	overlay_set_notice_consumer(health->overlay, HEALTH_GRANTS, on_notice, health);
	grants_member_alive(health->grants, loop_now_ns(health->loop), limits.self);
	return 0;
}

void health_grants_stop(struct health *health) {
	if (health->grants == NULL)
		return;
	overlay_set_notice_consumer(health->overlay, HEALTH_GRANTS, NULL, NULL);
	loop_timer_cancel(health->loop, &health->grants_due);
	health->grants = grants_destroy(health->grants);
}
