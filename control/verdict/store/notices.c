// SPDX-License-Identifier: BSD-3-Clause
// Observations and statements: from this node to the engine and to peers, and from peers.
//
// A notice arrives while the core is on the stack, so replies are queued for a job.
#include "verdict/store/health_inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTICES_WAITING_MAX 64
#define LOST_LOG_INTERVAL_NS (UINT64_C(60) * 1000 * 1000 * 1000)

struct health_notice {
	struct health_notice *next;
	uint32_t kind;
	size_t size;
	uint8_t bytes[];
};

static struct health_notice *notice_dequeue(struct health *health) {
	struct health_notice *notice = health->notices;

	if (notice == NULL)
		return NULL;
	health->notices = notice->next;
	if (health->notices == NULL)
		health->notice_last = &health->notices;
	health->notice_count--;
	return notice;
}

// Queue a notice. Best effort: bad observations and grants are repeated anyway.
void health_notice_queue(struct health *health, uint32_t kind, const void *bytes, size_t size) {
	struct health_notice *notice;

	if (health->notice_count == NOTICES_WAITING_MAX)
		free(notice_dequeue(health));
	notice = malloc(sizeof(*notice) + size);
	if (notice == NULL)
		return;
	notice->next = NULL;
	notice->kind = kind;
	notice->size = size;
	memcpy(notice->bytes, bytes, size);
	*health->notice_last = notice;
	health->notice_last = &notice->next;
	health->notice_count++;
	loop_defer(health->loop, &health->send);
}

static void op_queue_notice(void *ctx, const void *bytes, size_t size) {
	health_notice_queue(ctx, HEALTH_NOTICE, bytes, size);
}

static void notices_send(struct loop_job *job) {
	struct health *health = container_of(job, struct health, send);
	struct health_notice *notice;

	while ((notice = notice_dequeue(health)) != NULL) {
		int err = overlay_notice_send(
			health->overlay, notice->kind, notice->bytes, notice->size
		);

		if (err != 0)
			log_event(
				LOG_LEVEL_DEBUG, "notice_untold", log_u64("kind", notice->kind),
				log_errno("error", err)
			);
		free(notice);
	}
}

static void op_wake(void *ctx, uint64_t at_ns) {
	struct health *health = ctx;

	if (at_ns == RAS_NEVER)
		loop_timer_cancel(health->loop, &health->exchange_due);
	else if (loop_timer_set(health->loop, &health->exchange_due, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

static const struct observation_exchange_ops exchange_ops = {
	.tell = op_queue_notice, .wake = op_wake};

static void exchange_due(struct loop_timer *timer, uint64_t now_ns) {
	struct health *health = container_of(timer, struct health, exchange_due);

	observation_exchange_tick(health->exchange, now_ns);
}

static void on_notice(void *ctx, uint64_t origin, const void *bytes, size_t size) {
	struct health *health = ctx;
	int err = observation_exchange_receive(
		health->exchange, loop_now_ns(health->loop), origin,
		ras_notice_number(overlay_ras(health->overlay)), bytes, size
	);

	if (err != 0)
		log_event(
			LOG_LEVEL_DEBUG, "observations_malformed", log_u64("origin", origin),
			log_errno("error", err)
		);
}

void health_add_observation(struct health *health, const struct observation *observation) {
	int err = observation_exchange_update(
		health->exchange, loop_now_ns(health->loop), observation
	);

	if (err == -ENOMEM)
		log_event(LOG_LEVEL_ERROR, "observation_lost", log_errno("error", err));
}

void health_set_hung_workers(
	struct health *health, uint64_t peer, uint32_t hung, uint32_t workers
) {
	struct statement statement = {
		.subject = peer,
		.verdict = hung > 0 ? VERDICT_CHECK_WARNING : VERDICT_HEALTHY,
		.reason = "WorkerStuck",
	};

	if (hung > 0)
		snprintf(
			statement.evidence, sizeof(statement.evidence),
			"%u of its %u polling threads hang, as its pulse page shows", hung, workers
		);
	// Errors are ignored: a former member needs no statement, and after -ENOMEM it is repeated.
	(void)verdict_statement(health->engine, loop_now_ns(health->loop), &statement);
}

int health_add_statement(struct health *health, const struct statement *statement) {
	uint64_t now_ns = loop_now_ns(health->loop);
	int err = observation_exchange_statement(health->exchange, now_ns, statement);

	// Callers try again each second, and a full table may stay full for hours.
	if (err != 0 && (health->lost_logged_ns == 0 ||
			 now_ns >= health->lost_logged_ns + LOST_LOG_INTERVAL_NS)) {
		log_event(
			LOG_LEVEL_ERROR, "statement_lost", log_str("reason", statement->reason),
			log_errno("error", err)
		);
		health->lost_logged_ns = now_ns;
	}
	return err;
}

int health_notices_start(struct health *health, uint64_t random_seed) {
	uint64_t self = ras_self_id(overlay_ras(health->overlay));
	int err = observation_exchange_create(
		health->engine, self, random_seed, &health->memory, &exchange_ops, health,
		&health->exchange
	);

	if (err != 0)
		return err;
	health->exchange_due.expired = exchange_due;
	health->send.run = notices_send;
	overlay_set_notice_consumer(health->overlay, HEALTH_NOTICE, on_notice, health);
	return 0;
}

void health_notices_stop(struct health *health) {
	if (health->exchange == NULL)
		return;
	overlay_set_notice_consumer(health->overlay, HEALTH_NOTICE, NULL, NULL);
	health->exchange = observation_exchange_destroy(health->exchange);
	loop_timer_cancel(health->loop, &health->exchange_due);
	loop_undefer(health->loop, &health->send);
	for (struct health_notice *notice; (notice = notice_dequeue(health)) != NULL;)
		free(notice);
}
