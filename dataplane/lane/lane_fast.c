// SPDX-License-Identifier: BSD-3-Clause
// A step of a lane, and its requests.
//
// The order of a step is: completions, deadlines, drains, ends of operations, posting, events for
// control. So work submitted by `done` is posted in the same step, and operations end before their
// pair is returned.
#include "lane/lane_impl.h"

#include <lib/must.h>

#include <errno.h>

// Limit of a receive's length field; a receive may be longer than the peer's message.
#define RECEIVE_MAX (UINT64_C(1) << 31)

// Check the sizes and set the total length. Returns false if they are invalid.
static bool op_set_length(const struct lane *lane, struct op *op) {
	uint64_t local = op->view.length, remote = op->remote_length;

	switch (op->kind) {
	case OP_WRITE:
		op->length = local;
		return local <= remote;
	case OP_READ:
		op->length = remote;
		return remote <= local;
	case OP_SEND:
		op->length = local;
		return local <= lane->message_max;
	case OP_RECEIVE:
		op->length = local < RECEIVE_MAX ? local : RECEIVE_MAX;
		return true;
	case OP_WRITE_IMM:
		op->length = local;
		return local <= remote && local <= lane->message_max;
	case OP_COMPARE_SWAP:
	case OP_FETCH_ADD:
		op->length = sizeof(uint64_t);
		return lane->atomics && local >= sizeof(uint64_t) && remote >= sizeof(uint64_t) &&
		       op->remote_address % sizeof(uint64_t) == 0 &&
		       op->view.wire_address % sizeof(uint64_t) == 0;
	default:
		return false;
	}
}

static struct pair *pair_find(const struct lane *lane, uint32_t slot, uint32_t generation) {
	struct pair *pair = slot < lane->pair_max ? lane->pairs[slot] : NULL;

	return pair != NULL && pair->generation == generation ? pair : NULL;
}

static enum op_outcome op_check(const struct lane *lane, struct op *op) {
	const struct pair *pair;

	if ((uint32_t)op->kind >= OP_KIND_COUNT || !op_set_length(lane, op))
		return OP_INVALID;
	if (op->length > 0 && (op->view.region == NULL || op->view.device != lane->device))
		return OP_INVALID;
	if (op->kind != OP_SEND && op->kind != OP_RECEIVE &&
	    op->remote_length > UINT64_MAX - op->remote_address)
		return OP_INVALID;
	pair = pair_find(lane, op->pair, op->generation);
	if (pair != NULL && pair->state == PAIR_READY)
		return OP_OK;
	if (pair != NULL)
		op->cause = pair->cause;
	return OP_NOT_READY;
}

static void op_reset(struct op *op) {
	op->outcome = OP_OK;
	op->bytes = 0;
	op->posted_ns = op->done_ns = 0;
	op->cause = (struct op_cause){0};
	op->length = op->cut = 0;
	op->under_way = op->heap_index = 0;
	op->waits = op->broken = false;
}

// End an operation that the lane never accepted, or that has nothing to do.
static void op_end_at_once(struct lane *lane, struct op *op, enum op_outcome outcome) {
	op->outcome = outcome;
	op->posted_ns = op->done_ns = clock_now_ns(lane->clock);
	lane_add(&lane->ends[outcome], 1);
	lane_queue_ended_op(lane, op);
}

static void op_accept(struct lane *lane, struct op *op) {
	struct pair *pair = lane->pairs[op->pair];

	if (op->length == 0 && (op->kind == OP_WRITE || op->kind == OP_READ)) {
		op_end_at_once(lane, op, OP_OK);
		return;
	}
	if (op->view.region != NULL)
		memory_view_ref(&op->view);
	if (op->deadline_ns != IDLE_NEVER)
		lane_deadline_add(lane, op);
	lane_count(lane, LANE_OPS, 1);
	op->waits = true;
	op_list_push(&pair_queue_of(pair, op)->waiting, op);
	if (pair->list == NULL && pair_has_work(pair))
		pair_move(pair, &lane->ready);
}

void lane_submit(struct lane *lane, struct op **ops, uint32_t count) {
	uint32_t bad = count; // index of the first invalid operation
	bool room;

	for (uint32_t n = 0; n < count && bad == count; n++) {
		enum op_outcome outcome;

		op_reset(ops[n]);
		ops[n]->deadline_ns = ops[0]->deadline_ns;
		outcome = op_check(lane, ops[n]);
		if (outcome != OP_OK) {
			ops[n]->outcome = outcome;
			bad = n;
		}
	}
	room = count <= lane->op_max - lane_ops(lane);
	if (__builtin_expect(bad == count && room, 1)) {
		for (uint32_t n = 0; n < count; n++)
			op_accept(lane, ops[n]);
		return;
	}
	for (uint32_t n = 0; n < count; n++) {
		if (n > bad)
			op_reset(ops[n]);
		if (bad == count)
			op_end_at_once(lane, ops[n], OP_REFUSED);
		else
			op_end_at_once(lane, ops[n], n == bad ? ops[n]->outcome : OP_CANCELLED);
	}
}

static struct op *find_in_queue(const struct lane_queue *queue, const struct op *op) {
	for (uint32_t n = queue->tail; n != queue->head; n++) {
		struct lane_work *work = queue_work(queue, n);

		if (!work->done && work->op == op)
			return work->op;
	}
	for (struct op *waiting = queue->waiting.first; waiting != NULL; waiting = waiting->next) {
		if (waiting == op)
			return waiting;
	}
	return NULL;
}

int lane_cancel_op(struct lane *lane, const struct op *op, uint32_t slot) {
	struct pair *pair = slot < lane->pair_max ? lane->pairs[slot] : NULL;
	struct op *found = NULL;

	if (pair == NULL)
		return -ENOENT;
	found = find_in_queue(&pair->sends, op);
	if (found == NULL)
		found = find_in_queue(&pair->receives, op);
	if (found == NULL)
		return -ENOENT;
	lane_op_stop(lane, found, OP_CANCELLED);
	return 0;
}

int lane_fail(struct lane *lane, uint32_t slot, uint32_t generation, int err) {
	struct pair *pair = pair_find(lane, slot, generation);
	const struct op_cause cause = {.err = err};

	if (pair == NULL)
		return -ENOENT;
	lane_pair_fail(lane, pair, &cause);
	return 0;
}

static void
send_answer_event(struct lane *lane, struct worker *worker, enum lane_event event, int err) {
	const struct worker_record record = {
		.kind = event,
		.words = {worker_pointer_to_word(lane), (uint64_t)(int64_t)err},
	};

	worker_event(worker, &record);
}

void lane_request(void *ctx, struct worker *worker, const struct worker_record *record) {
	struct lane *lane = worker_word_to_pointer(record->words[0]);
	struct op *op = worker_word_to_pointer(record->words[1]);
	const struct op_cause cause = {.err = -EIO};
	struct pair *pair;
	int err;

	(void)ctx;
	must(record->kind >= LANE_REQUEST_ATTACH && record->kind <= LANE_REQUEST_CANCEL);
	lane->worker = worker;
	switch ((enum lane_request)record->kind) {
	case LANE_REQUEST_ATTACH:
		err = worker_poll_add(worker, &lane->poll);
		send_answer_event(lane, worker, LANE_EVENT_ATTACHED, err);
		break;
	case LANE_REQUEST_DETACH:
		err = -EBUSY;
		if (lane_pairs(lane) == 0 && STAILQ_EMPTY(&lane->untold) &&
		    lane->unreported_ops.first == NULL && lane->ended.first == NULL)
			err = worker_poll_remove(worker, lane);
		// After success the lane no longer belongs to this worker.
		send_answer_event(lane, worker, LANE_EVENT_DETACHED, err);
		break;
	case LANE_REQUEST_ADD:
		pair = worker_word_to_pointer(record->words[1]);
		must(pair->lane == lane && lane->pairs[pair->slot] == NULL);
		lane->pairs[pair->slot] = pair;
		lane_count(lane, LANE_PAIRS, 1);
		if (lane->dead)
			lane_pair_fail(lane, pair, &cause);
		break;
	case LANE_REQUEST_FAIL:
		lane_fail(
			lane, (uint32_t)record->words[1], (uint32_t)record->words[2],
			(int)(int64_t)record->words[3]
		);
		break;
	case LANE_REQUEST_QP_DESTROYED:
		// Look the pair up by slot and generation: it may have drained before and be gone.
		pair = pair_find(lane, (uint32_t)record->words[1], (uint32_t)record->words[2]);
		if (pair != NULL)
			lane_pair_qp_destroyed(lane, pair);
		break;
	case LANE_REQUEST_SUBMIT:
		lane_submit(lane, &op, 1);
		break;
	case LANE_REQUEST_CANCEL:
		lane_cancel_op(lane, op, (uint32_t)record->words[2]);
		break;
	}
}

// Deliver operations that have ended by now; those that `done` ends at once wait for the next step.
static __attribute__((noinline)) void ops_deliver(struct lane *lane) {
	struct op *op = lane->ended.first;

	lane->ended = (struct op_list){NULL, NULL};
	while (op != NULL) {
		struct op *next = op->next;

		op->done(op); // may free it
		op = next;
	}
}

// Post one chain of each ready pair in turn; pairs with more work go to the end.
static __attribute__((noinline)) bool post_ready_pairs(struct lane *lane) {
	struct pair *last = TAILQ_LAST(&lane->ready, pair_list), *pair;
	bool posted = false;

	for (uint32_t n = 0; n < LANE_PAIRS_PER_STEP; n++) {
		pair = TAILQ_FIRST(&lane->ready);
		pair_move(pair, NULL);
		posted |= lane_post(lane, pair);
		if (pair == last)
			break;
	}
	return posted;
}

static __attribute__((noinline)) bool service_failing_pairs(struct lane *lane) {
	struct pair *pair;

	while ((pair = TAILQ_FIRST(&lane->full)) != NULL && pair->due_ns <= lane->now_ns)
		pair_move(pair, &lane->ready);
	return lane_finish_drains(lane);
}

static void findings_set_due(struct idle_step_findings *found, uint64_t due_ns) {
	if (due_ns < found->due_ns)
		found->due_ns = due_ns;
}

static __attribute__((noinline)) void
report_failing_pairs(const struct lane *lane, struct idle_step_findings *found) {
	if (!TAILQ_EMPTY(&lane->full))
		findings_set_due(found, TAILQ_FIRST(&lane->full)->due_ns);
	if (!TAILQ_EMPTY(&lane->draining))
		findings_set_due(found, TAILQ_FIRST(&lane->draining)->due_ns);
	// Control's ring was full: retry soon.
	if (!STAILQ_EMPTY(&lane->untold) || lane->unreported_ops.first != NULL)
		findings_set_due(found, lane->now_ns + LANE_RETRY_NS);
}

bool lane_run_step(void *ctx, struct idle_step_findings *found) {
	struct lane *lane = ctx;
	bool progress = false;

	lane->now_ns = found->now_ns;
	if (lane->under_way > 0 || lane->attention > 0)
		progress = lane_poll_completions(lane);
	// Use the time before the poll: the thread may have been preempted since, and completions
	// that came meanwhile are found by the next poll.
	if (lane->heap_count > 0 && lane->heap[1].due_ns <= found->now_ns)
		progress |= lane_expire(lane, found->now_ns);
	if (__builtin_expect(lane->attention > 0, 0))
		progress |= service_failing_pairs(lane);
	if (lane->ended.first != NULL) {
		ops_deliver(lane);
		progress = true;
	}
	if (!TAILQ_EMPTY(&lane->ready)) {
		// Completions and `done` may have taken long.
		if (progress)
			lane->now_ns = clock_now_ns(lane->clock);
		if (post_ready_pairs(lane)) {
			progress = true;
			// A software device may have completed the work before the post returned.
			if (lane_poll_completions(lane) && lane->ended.first != NULL)
				ops_deliver(lane);
		}
	}
	if (__builtin_expect(lane->attention > 0, 0))
		lane_send_events(lane);

	found->begun += lane->begun;
	found->ended += lane->finished;
	lane->begun = lane->finished = 0;
	if (lane->under_way > 0) {
		found->outstanding = true;
		if (!atomic_load_explicit(&lane->events, memory_order_relaxed))
			found->events = false;
	}
	if (lane->heap_count > 0)
		findings_set_due(found, lane->heap[1].due_ns);
	if (__builtin_expect(lane->attention > 0, 0))
		report_failing_pairs(lane, found);
	// Continue if there is more to do than to wait for completions.
	return progress || !TAILQ_EMPTY(&lane->ready) || lane->ended.first != NULL ||
	       (lane->attention > 0 && (!TAILQ_EMPTY(&lane->drained) || !TAILQ_EMPTY(&lane->swept))
	       );
}
