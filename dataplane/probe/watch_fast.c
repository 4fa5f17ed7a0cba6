// SPDX-License-Identifier: BSD-3-Clause
// Standing probes on the worker: starts due probes and keeps their outcomes for control.
#include "probe/prober_impl.h"

#include <dataplane/lane.h>
#include <dataplane/path_table.h>
#include <dataplane/pulse.h>
#include <lib/must.h>
#include <lib/tracepoint.h>

#define COUNTER_BYTES 8

static bool probe_is_long(uint32_t bytes) {
	return bytes > WATCH_SHORT_READ_BYTES;
}

static void outcome_keep(struct prober *prober, const struct watch_outcome *outcome) {
	struct watch_outcomes *ring = &prober->outcomes;
	uint32_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);

	// Acquire pairs with the release in prober_take_outcomes(): the slot has been read.
	if (put - atomic_load_explicit(&ring->taken, memory_order_acquire) == WATCH_OUTCOMES) {
		atomic_store_explicit(
			&ring->lost, atomic_load_explicit(&ring->lost, memory_order_relaxed) + 1,
			memory_order_relaxed
		);
		return;
	}
	ring->items[put % WATCH_OUTCOMES] = *outcome;
	// Pairs with the acquire in prober_take_outcomes().
	atomic_store_explicit(&ring->put, put + 1, memory_order_release);
}

static void outcome_keep_skipped(
	struct prober *prober,
	const struct watch_due *due,
	uint64_t peer,
	uint64_t now_ns,
	enum watch_result result
) {
	const struct watch_outcome outcome = {
		.at_ns = now_ns,
		.place = due->place,
		.generation = due->generation,
		.tag = due->tag,
		.result = result,
		.written = due->write,
		.gpu = due->gpu,
	};

	TRACEPOINT(probe_skipped, peer, due->bytes, result);
	outcome_keep(prober, &outcome);
}

// Convert an operation's outcome. Other outcomes occur when a pair is taken down or fails by
// another operation.
static enum watch_result watch_result_of_op(const struct op *op) {
	switch (op->outcome) {
	case OP_OK:
		return WATCH_ANSWERED;
	case OP_TIMED_OUT:
		return WATCH_LOST;
	case OP_FAILED:
		return op->cause.status == IBV_WC_RETRY_EXC_ERR ||
				       op->cause.status == IBV_WC_RESP_TIMEOUT_ERR
			       ? WATCH_LOST
			       : WATCH_VOID;
	default:
		return WATCH_VOID;
	}
}

// Check a GPU page. A GPU that fell off its bus reads as all ones; foreign memory may hold
// anything.
static bool gpu_page_is_wrong(const struct watch *watch) {
	const uint64_t *words = worker_word_to_pointer(watch->op.view.address);

	for (uint32_t n = 0; n < watch->bytes / sizeof(words[0]); n++) {
		if (words[n] != watch->gpu_word)
			return true;
	}
	return false;
}

static bool counter_is_stalled(struct watch *watch, const struct watch_outcome *outcome) {
	if (outcome->beats == 0)
		return false;
	if (outcome->beats == watch->beats)
		return elapsed_or_zero_ns(watch->beats_at_ns, outcome->at_ns) >= WATCH_STALLED_NS;
	watch->beats = outcome->beats;
	watch->beats_at_ns = outcome->at_ns;
	return false;
}

// Handle the end of a probe; called in the lane's step on this thread.
static void watch_on_op_done(struct op *op) {
	struct watch *watch = op->ctx;
	struct prober *prober = watch->prober;
	const void *bytes = worker_word_to_pointer(watch->op.view.address);
	bool refused = op->outcome == OP_FAILED && (op->cause.status == IBV_WC_REM_ACCESS_ERR ||
						    op->cause.status == IBV_WC_REM_INV_REQ_ERR ||
						    op->cause.status == IBV_WC_REM_OP_ERR);
	struct watch_outcome outcome = {
		.at_ns = watch->at_ns,
		.latency_ns = elapsed_or_zero_ns(watch->at_ns, op->done_ns),
		.late_ns = watch->late_ns,
		.place = watch->place,
		.generation = watch->generation,
		.tag = watch->tag,
		.result = watch_result_of_op(op),
		.written = watch->written,
		.refused = refused,
		.gpu = watch->of_gpu,
	};
	bool has_head;

	TRACEPOINT(
		probe_outcome, watch->peer, op->kind, watch->bytes, outcome.latency_ns, op->outcome,
		op->cause.status
	);
	watch->under_way = false;
	if (probe_is_long(watch->bytes))
		prober->sink_taken = false;
	if (outcome.result == WATCH_ANSWERED && watch->of_gpu) {
		outcome.wrong = gpu_page_is_wrong(watch);
	} else if (outcome.result == WATCH_ANSWERED && !watch->written) {
		has_head =
			watch->bytes >= PULSE_HEAD_BYTES &&
			pulse_parse_head(bytes, watch->peer, &outcome.incarnation, &outcome.beats);
		if (watch->bytes == COUNTER_BYTES)
			outcome.beats = pulse_read_beats(bytes);
		else if (has_head)
			outcome.hung =
				pulse_find_hung_workers(bytes, &watch->workers, &outcome.workers);
		outcome.has_wait = has_head;
		outcome.wait_ns = has_head ? pulse_read_wait(bytes) : 0;
	}
	outcome_keep(prober, &outcome);
	prober->untold |= outcome.result == WATCH_LOST || counter_is_stalled(watch, &outcome);
}

static bool path_matches_watch(
	const struct watch *watch, const struct path_row *row, const struct watch_due *due
) {
	if (row == NULL || row->peer != watch->peer || row->generation != watch->generation)
		return false;
	if (due->write)
		return watch->writes && due->bytes <= WATCH_WRITE_SINK_BYTES;
	if (due->gpu)
		return watch->gpu && due->bytes <= WATCH_SHORT_READ_BYTES;
	return due->bytes <= row->remote_length;
}

static void
probe_begin(struct watch *watch, const struct path_row *row, const struct watch_due *due) {
	struct op *op = &watch->op;
	uint64_t now_ns = clock_now_ns(watch->prober->clock);

	*op = (struct op){
		.pair = row->pair,
		.generation = row->generation,
		.view = probe_is_long(due->bytes) ? watch->sink : watch->own,
		.remote_length = due->bytes,
		.deadline_ns = now_ns + watch->timeout_ns,
		.done = watch_on_op_done,
		.ctx = watch,
	};
	op->view.length = due->bytes;
	watch->at_ns = now_ns;
	watch->late_ns = elapsed_or_zero_ns(due->at_ns, now_ns);
	watch->bytes = due->bytes;
	watch->tag = due->tag;
	watch->written = due->write;
	watch->of_gpu = due->gpu;
	watch->under_way = true;

	// A write sends whatever the local buffer holds; its content is never used.
	op->kind = due->write ? OP_WRITE : OP_READ;
	if (due->write) {
		op->remote_address = watch->write_address;
		op->remote_key = watch->write_key;
	} else if (due->gpu) {
		op->remote_address = watch->gpu_address;
		op->remote_key = watch->gpu_key;
	} else {
		op->remote_address =
			row->remote_address + (due->bytes == COUNTER_BYTES ? PULSE_BEATS_AT : 0);
		op->remote_key = row->remote_key;
	}
	watch->prober->sink_taken |= probe_is_long(due->bytes);
	lane_submit(row->lane, &op, 1);
}

static void watch_execute_due(struct prober *prober, const struct watch_due *due, uint64_t now_ns) {
	struct watch *watch = due->place < WATCHES_MAX ? prober->watches[due->place] : NULL;
	const struct path_row *row;

	// The watch of this probe is gone.
	if (watch == NULL || watch->leaving || watch->generation != due->generation) {
		outcome_keep_skipped(prober, due, 0, now_ns, WATCH_NO_PATH);
		return;
	}
	if (watch->under_way || now_ns > due->at_ns + WATCH_LATE_NS ||
	    (probe_is_long(due->bytes) && prober->sink_taken)) {
		outcome_keep_skipped(prober, due, watch->peer, now_ns, WATCH_SKIPPED);
		return;
	}
	row = path_snapshot_row(path_table_snapshot(prober->paths), watch->path);
	if (!path_matches_watch(watch, row, due) || path_peer_has_ended(prober->peers, row))
		outcome_keep_skipped(prober, due, watch->peer, now_ns, WATCH_NO_PATH);
	else
		probe_begin(watch, row, due);
}

static __attribute__((noinline)) bool watch_execute_agenda(
	struct prober *prober, struct idle_step_findings *found, uint32_t taken, uint32_t put
) {
	struct watch_agenda *ring = &prober->agenda;
	bool progress = false;

	while (taken != put) {
		const struct watch_due due = ring->items[taken % WATCH_AGENDA];

		if (due.at_ns > found->now_ns) {
			if (due.at_ns < found->due_ns)
				found->due_ns = due.at_ns;
			break;
		}
		// Release pairs with the acquire in prober_plan_probes(): the slot has been read.
		atomic_store_explicit(&ring->taken, ++taken, memory_order_release);
		watch_execute_due(prober, &due, found->now_ns);
		progress = true;
	}
	return progress;
}

static __attribute__((noinline)) void notify_control(struct prober *prober) {
	const struct worker_record record = {
		.kind = PROBER_EVENT_OUTCOME,
		.words = {worker_pointer_to_word(prober)},
	};

	if (worker_event(prober->worker, &record) == 0)
		prober->untold = false;
}

static __attribute__((noinline)) bool watches_return_leaving(struct prober *prober) {
	bool progress = false;

	for (uint32_t n = 0; n < WATCHES_MAX && prober->leaving > 0; n++) {
		struct watch *watch = prober->watches[n];
		struct worker_record record;
		struct memory_view own, sink;

		if (watch == NULL || !watch->leaving || watch->under_way)
			continue;
		// After the report the watch belongs to control.
		own = watch->own;
		sink = watch->sink;
		record = (struct worker_record){
			.kind = PROBER_EVENT_UNWATCHED,
			.words = {worker_pointer_to_word(prober), worker_pointer_to_word(watch)},
		};
		if (worker_event(prober->worker, &record) != 0)
			continue;
		memory_view_put(&own);
		memory_view_put(&sink);
		prober->watches[n] = NULL;
		prober->leaving--;
		progress = true;
	}
	return progress;
}

bool watches_run_step(struct prober *prober, struct idle_step_findings *found) {
	struct watch_agenda *ring = &prober->agenda;
	uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
	// Pairs with the release in prober_plan_probes().
	uint32_t put = atomic_load_explicit(&ring->put, memory_order_acquire);
	bool progress = taken != put && watch_execute_agenda(prober, found, taken, put);

	if (__builtin_expect(prober->untold, 0))
		notify_control(prober);
	if (__builtin_expect(prober->leaving > 0, 0))
		progress |= watches_return_leaving(prober);
	return progress;
}

void watches_handle_request(struct prober *prober, const struct worker_record *record) {
	struct watch *watch = worker_word_to_pointer(record->words[1]);
	struct watch_due now;

	if (record->kind == PROBER_REQUEST_WATCH) {
		// Control assigns slots, and reuses one only after the watch was reported.
		must(watch->place < WATCHES_MAX && prober->watches[watch->place] == NULL);
		watch->prober = prober;
		watch->under_way = watch->leaving = false;
		watch->beats = 0;
		watch->workers.begun = false;
		memory_view_ref(&watch->own);
		memory_view_ref(&watch->sink);
		prober->watches[watch->place] = watch;
	} else if (record->kind == PROBER_REQUEST_UNWATCH) {
		must(!watch->leaving); // requested only once
		watch->leaving = true;
		prober->leaving++;
	} else {
		now = (struct watch_due){
			.at_ns = clock_now_ns(prober->clock),
			.place = (uint32_t)record->words[1],
			.generation = (uint32_t)record->words[2],
			.bytes = (uint32_t)record->words[3],
			.tag = (uint32_t)record->words[4],
			.write = record->words[5] == 1,
			.gpu = record->words[5] == 2,
		};
		watch_execute_due(prober, &now, now.at_ns);
	}
}
