// SPDX-License-Identifier: BSD-3-Clause
// One step of a prober: start due operations and report ended runs to control.
#include "probe/prober_impl.h"

#include <dataplane/lane.h>
#include <dataplane/path_table.h>
#include <lib/histogram.h>
#include <lib/must.h>
#include <lib/tracepoint.h>

static void run_set_ended(struct probe_run *run, enum probe_end end) {
	run->end = end;
	run->ended = true;
}

// Handle the end of an operation; called in the lane's step on this thread.
static void run_on_op_done(struct op *op) {
	struct probe_run *run = op->ctx;
	uint64_t took_ns = elapsed_or_zero_ns(run->submitted_ns, op->done_ns);

	TRACEPOINT(
		probe_outcome, run->peer, op->kind, run->bytes, took_ns, op->outcome,
		op->cause.status
	);
	run->under_way = false;
	run->outcome = op->outcome;
	if (op->outcome != OP_OK) {
		run->cause = op->cause;
		run_set_ended(run, PROBE_FAILED);
		return;
	}
	if (run->times_ns != NULL)
		run->times_ns[run->answered] =
			took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
	run->answered++;
	run->took_ns = elapsed_or_zero_ns(run->begun_ns, op->done_ns);
	histogram_record(run->latency, took_ns);
	if (run->stopping || run->sent == run->count)
		run_set_ended(run, PROBE_COMPLETE);
}

// Return the deadline of the run's next operation. The first operation must also end by
// `run->first`, because the requester already waited for the pair and the worker.
static uint64_t due_ns(const struct probe_run *run, uint64_t now_ns) {
	struct deadline due = deadline_after(now_ns, run->timeout_ns);

	return run->sent == 0 ? deadline_earliest(due, run->first).at_ns : due.at_ns;
}

static void run_begin_op(struct prober *prober, struct probe_run *run, uint64_t now_ns) {
	const struct path_snapshot *snapshot = path_table_snapshot(prober->paths);
	const struct path_row *row = path_snapshot_row(snapshot, run->path);
	struct op *op = &run->op;

	if (row == NULL || row->peer != run->peer || row->generation != run->generation ||
	    run->bytes > row->remote_length || path_peer_has_ended(prober->peers, row)) {
		run_set_ended(run, PROBE_NO_PATH);
		return;
	}
	*op = (struct op){
		.kind = run->kind,
		.pair = row->pair,
		.generation = row->generation,
		.view = run->view,
		.remote_address = row->remote_address,
		.remote_length = run->bytes,
		.remote_key = row->remote_key,
		.deadline_ns = due_ns(run, now_ns),
		.done = run_on_op_done,
		.ctx = run,
	};
	op->view.length = run->bytes;
	run->incarnation = row->incarnation;
	if (run->sent++ == 0)
		run->begun_ns = now_ns;
	run->under_way = true;
	run->submitted_ns = now_ns;
	run->next_ns = now_ns + run->interval_ns;
	lane_submit(row->lane, &op, 1);
}

// Advance one run. Returns true if the end of the run was reported, so that it can leave the list.
static bool
step_run(struct prober *prober, struct probe_run *run, struct idle_step_findings *found) {
	struct worker_record record;
	struct memory_view view;

	if (!run->ended && !run->under_way) {
		if (run->stopping)
			run_set_ended(run, PROBE_COMPLETE);
		else if (run->next_ns <= found->now_ns)
			run_begin_op(prober, run, clock_now_ns(prober->clock));
		else if (run->next_ns < found->due_ns)
			found->due_ns = run->next_ns;
	}
	if (!run->ended)
		return false;
	record = (struct worker_record){
		.kind = PROBER_EVENT_ENDED,
		.words = {(uintptr_t)prober, (uintptr_t)run},
	};
	view = run->view; // after the report the run belongs to control
	if (worker_event(prober->worker, &record) != 0)
		return false; // control's ring is full: a later step retries
	memory_view_put(&view);
	return true;
}

static __attribute__((noinline)) bool
step_runs(struct prober *prober, struct idle_step_findings *found) {
	bool progress = false;

	for (uint32_t n = 0; n < prober->run_count;) {
		uint32_t sent = prober->runs[n]->sent;

		if (step_run(prober, prober->runs[n], found)) {
			prober->runs[n] = prober->runs[--prober->run_count];
			progress = true;
			continue;
		}
		progress |= prober->runs[n]->sent != sent;
		n++;
	}
	return progress;
}

// Kept short, because most steps have nothing to do.
bool prober_run_step(void *ctx, struct idle_step_findings *found) {
	struct prober *prober = ctx;
	bool progress;

	if (__builtin_expect(prober->run_count == 0, 1))
		return watches_run_step(prober, found);
	progress = step_runs(prober, found);
	return watches_run_step(prober, found) || progress;
}

void prober_request(
	struct prober *prober, struct worker *worker, const struct worker_record *record
) {
	struct probe_run *run = worker_word_to_pointer(record->words[1]);

	prober->worker = worker;
	if (record->kind >= PROBER_REQUEST_WATCH) {
		watches_handle_request(prober, record);
		return;
	}
	if (record->kind == PROBER_REQUEST_RUN) {
		must(prober->run_count < PROBER_RUNS_MAX); // control counts the runs
		run->prober = prober;
		run->sent = run->answered = 0;
		run->took_ns = 0;
		run->under_way = run->stopping = run->ended = false;
		run->next_ns = 0;
		memory_view_ref(&run->view);
		prober->runs[prober->run_count++] = run;
		return;
	}
	// The run may have ended and been reported meanwhile.
	for (uint32_t n = 0; n < prober->run_count; n++) {
		if (prober->runs[n] == run)
			run->stopping = true;
	}
}
