// SPDX-License-Identifier: BSD-3-Clause
// Deadlines: a heap of operations, earliest first; each operation knows its index. Operations
// usually have ascending deadlines and then cost one comparison.
#include "lane/lane_impl.h"

#include <lib/must.h>

#include <errno.h>

static void heap_put(struct lane *lane, uint32_t place, struct lane_deadline deadline) {
	lane->heap[place] = deadline;
	deadline.op->heap_index = place;
}

static void sift_up(struct lane *lane, uint32_t place, struct lane_deadline deadline) {
	while (place > 1 && lane->heap[place / 2].due_ns > deadline.due_ns) {
		heap_put(lane, place, lane->heap[place / 2]);
		place /= 2;
	}
	heap_put(lane, place, deadline);
}

static void sift_down(struct lane *lane, uint32_t place, struct lane_deadline deadline) {
	for (;;) {
		uint32_t child = 2 * place;

		if (child < lane->heap_count &&
		    lane->heap[child + 1].due_ns < lane->heap[child].due_ns)
			child++;
		if (child > lane->heap_count || lane->heap[child].due_ns >= deadline.due_ns)
			break;
		heap_put(lane, place, lane->heap[child]);
		place = child;
	}
	heap_put(lane, place, deadline);
}

void lane_deadline_add(struct lane *lane, struct op *op) {
	struct lane_deadline deadline = {.due_ns = op->deadline_ns, .op = op};

	must_debug(lane->heap_count < lane->op_max);
	sift_up(lane, ++lane->heap_count, deadline);
}

void lane_deadline_remove(struct lane *lane, struct op *op) {
	uint32_t place = op->heap_index;
	struct lane_deadline last;

	op->heap_index = 0;
	last = lane->heap[lane->heap_count--];
	if (last.op == op)
		return;
	if (place > 1 && lane->heap[place / 2].due_ns > last.due_ns)
		sift_up(lane, place, last);
	else
		sift_down(lane, place, last);
}

void lane_op_stop(struct lane *lane, struct op *op, enum op_outcome outcome) {
	struct pair *pair = lane->pairs[op->pair];
	struct op_cause cause = op_cause_of(op);

	cause.err = outcome == OP_TIMED_OUT ? -ETIMEDOUT : -ECANCELED;
	if (op->under_way == 0 && !op->waits)
		return; // held: it ends with the drain and keeps its outcome
	if (op->outcome == OP_OK)
		op->outcome = outcome;
	if (op->under_way > 0) {
		if (pair->state == PAIR_READY)
			lane_pair_fail(lane, pair, &cause);
		return;
	}
	op_list_remove(&pair_queue_of(pair, op)->waiting, op);
	op->waits = false;
	op->cause = pair->state == PAIR_READY ? cause : pair->cause;
	lane_op_end(lane, pair, op);
}

bool lane_expire(struct lane *lane, uint64_t now_ns) {
	uint32_t count = 0;

	while (count < LANE_EXPIRED_PER_STEP && lane->heap_count > 0 &&
	       lane->heap[1].due_ns <= now_ns) {
		struct op *op = lane->heap[1].op;

		lane_deadline_remove(lane, op);
		lane_op_stop(lane, op, OP_TIMED_OUT);
		count++;
	}
	return count > 0;
}
