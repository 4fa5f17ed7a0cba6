// SPDX-License-Identifier: BSD-3-Clause
// One turn of a worker: poll, report a quiescent state, decide what to do next.
#include "worker/worker_impl.h"

#include <lib/rcu_thread.h>

#include <errno.h>
#include <string.h>

// Limits the part of a turn that control's requests can take.
#define REQUESTS_PER_TURN 8
#define QUIESCENT_TURNS 16

// noinline, with its array of records: keeps a step without requests short.
static __attribute__((noinline)) bool worker_serve_requests(struct worker *worker) {
	struct worker_record records[REQUESTS_PER_TURN];
	uint32_t count;

	count = near_ring_dequeue_burst(
		worker->requests, records, sizeof(records[0]), REQUESTS_PER_TURN
	);
	for (uint32_t n = 0; n < count; n++) {
		const struct worker_record *record = &records[n];

		if (record->kind != WORKER_REQUEST_IDLE) {
			worker->config.request(worker->config.request_ctx, worker, record);
			continue;
		}
		worker->config.idle.policy = (enum idle_policy)record->words[0];
		worker->config.idle.window_ns = record->words[1];
		worker->config.idle.foresees = record->words[2] != 0;
		idle_set_config(&worker->idle, &worker->config.idle);
	}
	worker_counter_add(worker, WORKER_REQUESTS, count);
	return count > 0;
}

// A poll may have taken long, so update the time for the following ones.
static __attribute__((noinline)) void
findings_refresh_time(struct worker *worker, struct idle_step_findings *found) {
	found->now_ns = clock_now_ns(worker->config.clock);
}

static inline bool
poll_requests_and_polls(struct worker *worker, struct idle_step_findings *found) {
	bool progress = near_ring_has_elements(worker->requests) && worker_serve_requests(worker);

	for (uint32_t n = 0; n < worker->poll_count; n++) {
		const struct worker_poll *poll = &worker->polls[n];

		if (!poll->poll(poll->ctx, found))
			continue;
		progress = true;
		if (n + 1 < worker->poll_count)
			findings_refresh_time(worker, found);
	}
	worker->progressed |= progress;
	return progress;
}

bool worker_poll_once(struct worker *worker, struct idle_step_findings *found) {
	return poll_requests_and_polls(worker, found);
}

int worker_poll_add(struct worker *worker, const struct worker_poll *poll) {
	if (worker->poll_count == WORKER_POLLS_MAX)
		return -ENOSPC;
	worker->polls[worker->poll_count++] = *poll;
	return 0;
}

int worker_poll_remove(struct worker *worker, const void *ctx) {
	struct worker_poll *poll = worker->polls;
	uint32_t left = worker->poll_count;

	for (; left > 0 && poll->ctx != ctx; left--)
		poll++;
	if (left == 0)
		return -ENOENT;
	memmove(poll, poll + 1, (left - 1) * sizeof(*poll));
	worker->poll_count--;
	return 0;
}

struct idle_decision worker_turn(struct worker *worker, uint64_t now_ns) {
	static const enum worker_count charged_by[] = {
		[IDLE_POLL] = WORKER_SPIN_NS,
		[IDLE_YIELD] = WORKER_YIELD_NS,
		[IDLE_SLEEP] = WORKER_BLOCKED_NS,
		[IDLE_WAIT] = WORKER_BLOCKED_NS,
	};
	struct idle_step_findings found = {.now_ns = now_ns, .due_ns = IDLE_NEVER, .events = true};
	const struct idle_account *books = idle_account(&worker->idle);
	_Atomic uint64_t *counts = worker->counts;
	struct idle_decision decision;
	uint64_t turns;

	if (now_ns > worker->last_ns)
		worker_counter_add(worker, worker->charged, now_ns - worker->last_ns);
	worker->last_ns = now_ns;
	turns = worker_counter_add(worker, WORKER_TURNS, 1);
	// Report a quiescent state: nothing from the previous turn is used any more. An empty turn
	// costs as little as this report, so only one of 16 consecutive empty turns reports.
	if (worker->charged != WORKER_SPIN_NS || turns % QUIESCENT_TURNS == 0)
		rcu_thread_quiescent(now_ns + worker->to_monotonic_ns);
	found.progress = poll_requests_and_polls(worker, &found);
	worker->awaits_events = found.events;
	decision = idle_decide(&worker->idle, &found);
	worker->charged = found.progress ? WORKER_BUSY_NS : charged_by[decision.action];
	if (found.progress) {
		atomic_store_explicit(&counts[WORKER_WAITS], books->waits, memory_order_relaxed);
		atomic_store_explicit(
			&counts[WORKER_PAID_NS], books->paid_ns, memory_order_relaxed
		);
		atomic_store_explicit(
			&counts[WORKER_OPTIMUM_NS], books->optimum_ns, memory_order_relaxed
		);
	}
	return decision;
}

int worker_event(struct worker *worker, const struct worker_record *record) {
	if (worker_enqueue(worker->events, record) != 0) {
		worker_counter_add(worker, WORKER_EVENTS_LOST, 1);
		return -ENOBUFS;
	}
	worker_counter_add(worker, WORKER_EVENTS, 1);
	worker->event_pushed = true;
	return 0;
}

uint32_t worker_free_event_slot_count(const struct worker *worker) {
	return near_ring_free_count(worker->events);
}
