// SPDX-License-Identifier: BSD-3-Clause
// What becomes of operations when something goes wrong: each ends once, with the true reason, and
// not before the device can no longer reach its memory.
#include "lane_bed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define PART 256

static const struct bed_config usual = {
	.pair_max = 4,
	.depth = 8,
	.op_max = 256,
	.message_max = 4096,
};

static void begin(struct bed *bed, struct bed_pair *pair) {
	bed_open(bed, &usual);
	bed_fill(bed, 1, 3);
	*pair = bed_pair_up(bed);
}

// `count` operations of one kind on memory of their own, as one batch.
static void submit_some(
	struct bed *bed,
	const struct bed_pair *pair,
	enum op_kind kind,
	struct op *ops,
	uint32_t count
) {
	struct op *list[64];

	for (uint32_t n = 0; n < count; n++) {
		ops[n] = bed_op(bed, pair, kind, n * PART, PART);
		list[n] = &ops[n];
	}
	lane_submit(bed->lanes[0], list, count);
}

static struct lane_counters counters_of(const struct bed *bed) {
	struct lane_counters counters;

	lane_counters(bed->lanes[0], &counters);
	return counters;
}

static void assert_outcomes(const struct op *ops, uint32_t count, const enum op_outcome *outcomes) {
	for (uint32_t n = 0; n < count; n++)
		assert_int_equal(ops[n].outcome, outcomes[n]);
}

static void batch_that_fails_in_part_says_so_for_each(void **state) {
	static const enum op_outcome outcomes[] = {OP_OK, OP_FAILED, OP_FLUSHED};
	struct op ops[3], *list[3] = {&ops[0], &ops[1], &ops[2]};
	struct bed_pair pair;
	char text[160], expected[160];
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	bed.fakes[0]->vendor_error = 0x88;
	for (uint32_t n = 0; n < 3; n++)
		ops[n] = bed_op(&bed, &pair, OP_READ, n * PART, PART);
	ops[1].remote_key = 0x1234;
	lane_submit(bed.lanes[0], list, 3);
	bed_run(&bed);
	assert_outcomes(ops, 3, outcomes);
	assert_memory_equal(bed.memory[0], bed.memory[1], PART);
	for (uint32_t n = PART; n < 3 * PART; n++)
		assert_int_equal(bed.memory[0][n], 0);
	snprintf(
		expected, sizeof(expected),
		"REM_ACCESS_ERR (vendor 0x88) of a read of 256 bytes at 0x%llx, key 0x1234",
		(unsigned long long)ops[1].remote_address
	);
	for (uint32_t n = 1; n < 3; n++) {
		op_cause_format(&ops[n].cause, text, sizeof(text));
		assert_string_equal(text, expected);
		assert_int_equal(ops[n].bytes, 0);
	}
	assert_int_equal(bed.last_cause.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(bed.drained, 1);
	assert_int_equal(bed.stuck, 0);
	bed_close(&bed);
}

static void failure_is_told_when_all_that_was_posted_is_complete(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	begin(&bed, &pair);
	bed.fakes[0]->flush_ns = 1000;
	fake_qp_error(pair.qps[0], 2, IBV_WC_REM_OP_ERR, 5);
	op = bed_op(&bed, &pair, OP_READ, 0, 4 * 4096);
	bed_submit(&bed, 0, &op);
	for (int n = 0; n < 5; n++)
		bed_step(&bed);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.drained, 0);
	assert_int_equal(bed.ended_count, 0); // two messages are not flushed yet
	assert_int_equal(bed_views_held, 1);
	bed_run(&bed);
	assert_int_equal(op.outcome, OP_FAILED);
	assert_int_equal(op.bytes, 4096); // what really moved
	assert_int_equal(op.cause.status, IBV_WC_REM_OP_ERR);
	assert_int_equal(op.cause.vendor_error, 5);
	bed_close(&bed);
}

static void each_place_of_a_chain_can_be_refused(void **state) {
	const enum op_kind kinds[] = {OP_WRITE, OP_READ, OP_RECEIVE};

	(void)state;
	for (uint32_t nth = 1; nth <= 6; nth++) {
		for (size_t k = 0; k < COUNT_OF(kinds); k++) {
			bool receive = kinds[k] == OP_RECEIVE;
			struct bed_pair pair;
			struct op ops[6];
			struct bed bed;

			begin(&bed, &pair);
			fake_verbs_fail(receive ? FAKE_POST_RECV : FAKE_POST_SEND, nth, 1, -EINVAL);
			submit_some(&bed, &pair, kinds[k], ops, 6);
			bed_run(&bed);
			assert_int_equal(bed.ended_count, 6);
			for (uint32_t n = 0; n < 6; n++) {
				enum op_outcome early = receive ? OP_FLUSHED : OP_OK;

				assert_int_equal(
					ops[n].outcome, n < nth - 1    ? early
							: n == nth - 1 ? OP_FAILED
								       : OP_FLUSHED
				);
				if (ops[n].outcome != OP_OK)
					assert_int_equal(ops[n].cause.err, -EINVAL);
			}
			// What asked for no completion is seen to be done all the same.
			assert_int_equal(bed.stuck, 0);
			assert_int_equal(bed.drained, 1);
			bed_close(&bed);
		}
	}
}

static void device_without_memory_is_asked_again(void **state) {
	const enum op_kind kinds[] = {OP_WRITE, OP_READ, OP_RECEIVE};

	(void)state;
	for (uint32_t nth = 1; nth <= 6; nth++) {
		for (size_t k = 0; k < COUNT_OF(kinds); k++) {
			bool receive = kinds[k] == OP_RECEIVE;
			struct bed_pair pair;
			struct op ops[6];
			struct bed bed;

			begin(&bed, &pair);
			fake_verbs_fail(receive ? FAKE_POST_RECV : FAKE_POST_SEND, nth, 3, -ENOMEM);
			submit_some(&bed, &pair, kinds[k], ops, 6);
			bed_step(&bed);
			assert_true(counters_of(&bed).full == 1);
			// Unless what was posted before is done, and made room, already.
			assert_true(bed.found.due_ns < IDLE_NEVER || bed.progress);
			for (uint32_t n = 0; n < 100; n++)
				bed_advance(&bed, LANE_RETRY_NS);
			assert_int_equal(counters_of(&bed).full, 3);
			assert_int_equal(bed.failed, 0);
			assert_int_equal(counters_of(&bed).posted, 6);
			if (!receive) {
				for (uint32_t n = 0; n < 6; n++)
					assert_int_equal(ops[n].outcome, OP_OK);
				assert_int_equal(bed.ended_count, 6);
			}
			bed_close(&bed);
		}
	}
}

static void deadline_of_what_waits_harms_nobody_else(void **state) {
	struct op ops[8], late;
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	fake_qp_hold(pair.qps[0]);
	submit_some(&bed, &pair, OP_READ, ops, 8); // all credits
	late = bed_op(&bed, &pair, OP_READ, 0, PART);
	late.deadline_ns = clock_now_ns(&bed.clock) + 1000;
	bed_submit(&bed, 0, &late);
	bed_step(&bed);
	assert_int_equal(bed.found.due_ns, late.deadline_ns);
	bed_advance(&bed, 999);
	assert_int_equal(bed.ended_count, 0);
	bed_advance(&bed, 1);
	assert_int_equal(bed.ended_count, 1);
	assert_int_equal(late.outcome, OP_TIMED_OUT);
	assert_int_equal(late.cause.err, -ETIMEDOUT);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_run(&bed);
	for (int n = 0; n < 8; n++)
		assert_int_equal(ops[n].outcome, OP_OK);
	assert_int_equal(bed.failed, 0);
	bed_close(&bed);
}

static void deadline_of_what_is_posted_drains_the_pair(void **state) {
	struct bed_pair pair;
	struct op ops[3], *list[3] = {&ops[0], &ops[1], &ops[2]};
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	fake_qp_hold(pair.qps[0]);
	for (int n = 0; n < 3; n++)
		ops[n] = bed_op(&bed, &pair, OP_READ, 0, PART);
	ops[0].deadline_ns = IDLE_NEVER;
	ops[1].deadline_ns = clock_now_ns(&bed.clock) + 1000;
	for (int n = 0; n < 3; n++)
		lane_submit(bed.lanes[0], &list[n], 1);
	bed.passive = true;
	bed_step(&bed);
	bed_advance(&bed, 1000);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.ended_count, 0); // the device may still write there
	assert_int_equal(bed_views_held, 3);
	assert_int_equal(pair_fail(pair.ends[0]), 0);
	bed_run(&bed);
	assert_int_equal(ops[0].outcome, OP_FLUSHED);
	assert_int_equal(ops[1].outcome, OP_TIMED_OUT);
	assert_int_equal(ops[2].outcome, OP_FLUSHED);
	for (int n = 0; n < 3; n++)
		assert_int_equal(ops[n].cause.err, -ETIMEDOUT);
	bed_close(&bed);
}

static void what_succeeds_after_its_deadline_has_succeeded(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	begin(&bed, &pair);
	fake_qp_hold(pair.qps[0]);
	op = bed_op(&bed, &pair, OP_READ, 0, PART);
	op.deadline_ns = clock_now_ns(&bed.clock) + 1000;
	bed_submit(&bed, 0, &op);
	bed.passive = true;
	bed_step(&bed);
	bed_advance(&bed, 1000);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_run(&bed);
	assert_int_equal(op.outcome, OP_OK);
	assert_int_equal(op.bytes, PART);
	assert_int_equal(bed.drained, 1); // the pair is gone all the same
	bed_close(&bed);
}

static void cancelling_takes_out_what_waits_and_drains_what_is_posted(void **state) {
	struct op ops[10];
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	fake_qp_hold(pair.qps[0]);
	submit_some(&bed, &pair, OP_READ, ops, 10);
	bed_step(&bed);
	bed_request(&bed, 0, LANE_REQUEST_CANCEL, worker_word(&ops[9]), pair.slots[0]);
	assert_int_equal(bed.ended_count, 0);
	bed_step(&bed);
	assert_int_equal(ops[9].outcome, OP_CANCELLED);
	assert_int_equal(bed.failed, 0);
	assert_int_equal(lane_cancel(bed.lanes[0], &ops[9], pair.slots[0]), -ENOENT);
	assert_int_equal(lane_cancel(bed.lanes[0], &ops[2], 3), -ENOENT);
	assert_int_equal(lane_cancel(bed.lanes[0], &ops[2], 77), -ENOENT);
	assert_int_equal(lane_cancel(bed.lanes[0], &ops[2], pair.slots[0]), 0);
	bed_run(&bed);
	for (int n = 0; n < 9; n++) {
		assert_int_equal(ops[n].outcome, n == 2 ? OP_CANCELLED : OP_FLUSHED);
		assert_int_equal(ops[n].cause.err, -ECANCELED);
	}
	bed_close(&bed);
}

static struct bed *forbidding;

static void forbid_at_end(struct op *op) {
	forbidding->ended[forbidding->ended_count++] = op;
	fake_verbs_forbid(worker_pointer(op->view.address), op->view.length);
}

static void device_that_never_flushes_is_cut_off_at_the_limit(void **state) {
	struct bed_pair pair;
	struct op ops[12];
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	forbidding = &bed;
	bed.fakes[0]->never_flushes = true;
	fake_qp_hold(pair.qps[0]);
	submit_some(&bed, &pair, OP_READ, ops, 12);
	for (int n = 0; n < 12; n++)
		ops[n].done = forbid_at_end;
	bed_step(&bed);
	lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0], -EHOSTDOWN);
	bed_step(&bed);
	assert_int_equal(bed.failed, 1);
	bed_advance(&bed, BED_DRAIN_NS - 1);
	assert_int_equal(bed.stuck, 0);
	assert_int_equal(bed.ended_count, 0);
	bed_advance(&bed, 1);
	assert_int_equal(bed.stuck, 1);
	bed_run(&bed);
	assert_int_equal(bed.ended_count, 12);
	for (int n = 0; n < 12; n++) {
		assert_ptr_equal(bed.ended[n], &ops[n]);
		assert_int_equal(ops[n].outcome, OP_FLUSHED);
		assert_int_equal(ops[n].cause.err, -EHOSTDOWN);
	}
	assert_int_equal(bed.drained, 1);
	bed_close(&bed); // and the fake saw nobody touch what was forbidden
}

static void stuck_pair_that_drains_late_waits_for_being_cut_off(void **state) {
	struct bed_pair pair;
	struct op ops[2];
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	bed.passive = true;
	fake_qp_hold(pair.qps[0]);
	submit_some(&bed, &pair, OP_READ, ops, 2);
	bed_step(&bed);
	lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0], -EHOSTDOWN);
	bed_advance(&bed, 0);
	bed_advance(&bed, BED_DRAIN_NS);
	assert_int_equal(bed.stuck, 1);
	assert_int_equal(pair_fail(pair.ends[0]), 0);
	for (int n = 0; n < 5; n++)
		bed_step(&bed);
	assert_int_equal(bed.drained, 0);
	assert_int_equal(bed.ended_count, 0);
	assert_int_equal(pair_cut_off(pair.ends[0]), 0);
	assert_int_equal(pair_cut_off(pair.ends[0]), 0);
	bed_request(&bed, 0, LANE_REQUEST_GONE, worker_word(pair.ends[0]), 0);
	bed_run(&bed);
	assert_int_equal(bed.drained, 1);
	assert_int_equal(bed.ended_count, 2);
	bed_close(&bed);
}

static void completions_made_before_a_cut_off_still_count(void **state) {
	const struct bed_config deep = {.pair_max = 1, .depth = 64, .op_max = 256};
	struct op ops[64], later;
	struct bed_pair pair, next;
	struct bed bed;

	(void)state;
	bed_open(&bed, &deep);
	pair = bed_pair_up(&bed);
	bed.fakes[0]->keeps_completions = true;
	fake_qp_hold(pair.qps[0]);
	submit_some(&bed, &pair, OP_READ, ops, 64); // more than one poll takes
	bed_step(&bed);
	bed_step(&bed);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	fake_verbs_run(); // complete, not polled
	assert_int_equal(pair_cut_off(pair.ends[0]), 0);
	bed_request(&bed, 0, LANE_REQUEST_GONE, worker_word(pair.ends[0]), 0);
	bed_run(&bed);
	for (int n = 0; n < 64; n++)
		assert_int_equal(ops[n].outcome, OP_OK);
	assert_int_equal(bed.drained, 1);
	lane_fail(bed.lanes[1], pair.slots[1], pair.generations[1], -ECONNRESET);
	bed_run(&bed);
	next = bed_pair_up(&bed);
	assert_int_equal(next.slots[0], pair.slots[0]);
	later = bed_op(&bed, &next, OP_READ, 0, PART);
	bed_submit(&bed, 0, &later);
	bed_run(&bed);
	assert_int_equal(later.outcome, OP_OK);
	assert_int_equal(counters_of(&bed).stale, 0);
	bed_close(&bed);
}

// Deadlines in any order, and some taken out of the middle: they pass in order all the same.
static void deadlines_pass_in_order(void **state) {
	struct bed_pair pair;
	struct op ops[200];
	struct bed bed;
	uint64_t random = 1, last_ns = 0;

	(void)state;
	begin(&bed, &pair);
	fake_qp_hold(pair.qps[0]);
	for (int n = 0; n < 200; n++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		ops[n] = bed_op(&bed, &pair, OP_READ, 0, PART);
		// The first ones fill the queue and outlive all.
		ops[n].deadline_ns =
			n < 8 ? IDLE_NEVER : clock_now_ns(&bed.clock) + 1 + (random >> 40) % 5000;
		bed_submit(&bed, 0, &ops[n]);
		if (n == 8)
			bed_step(&bed);
		if (n % 3 == 2 && n > 20)
			lane_cancel(bed.lanes[0], &ops[9 + (random >> 20) % 10], pair.slots[0]);
		if (n % 5 == 4 && n > 20)
			lane_cancel(bed.lanes[0], &ops[n - 3], pair.slots[0]);
	}
	bed_step(&bed);
	bed.ended_count = 0;
	while (bed.lanes[0]->heap_count > 0) {
		uint64_t due_ns = bed.lanes[0]->heap[1].due_ns;

		assert_true(due_ns >= last_ns);
		last_ns = due_ns;
		bed_advance(&bed, due_ns - clock_now_ns(&bed.clock));
		assert_true(bed.ended_count > 0);
		for (uint32_t n = 0; n < bed.ended_count; n++)
			assert_int_equal(bed.ended[n]->deadline_ns, due_ns);
		bed.ended_count = 0;
	}
	assert_int_equal(bed.failed, 0);
	bed_close(&bed);
}

// A device that says more than it should.
static struct ibv_wc said[4];
static int said_count;
static int (*real_poll)(struct ibv_cq *cq, int max, struct ibv_wc *wc);

static int poll_lies(struct ibv_cq *cq, int max, struct ibv_wc *wc) {
	int count = said_count;

	if (count == 0)
		return real_poll(cq, max, wc);
	memcpy(wc, said, sizeof(said[0]) * 4);
	said_count = 0;
	return count;
}

static void completion_of_nothing_that_is_posted_is_dropped(void **state) {
	struct ibv_context *context;
	struct bed_pair pair;
	struct op ops[3];
	struct bed bed;
	uint64_t base;

	(void)state;
	begin(&bed, &pair);
	fake_qp_hold(pair.qps[0]);
	submit_some(&bed, &pair, OP_READ, ops, 3);
	bed_step(&bed);
	base = pair.ends[0]->wr_base;
	context = device_context(bed.devices[0]);
	real_poll = context->ops.poll_cq;
	context->ops.poll_cq = poll_lies;
	said[0] = (struct ibv_wc){.wr_id = base | 3};	       // not posted
	said[1] = (struct ibv_wc){.wr_id = base | WR_RECEIVE}; // no receive
	said[2] = (struct ibv_wc){.wr_id = base + (UINT64_C(1) << WR_GENERATION_SHIFT)};
	said[3] = (struct ibv_wc){.wr_id = UINT64_MAX}; // no slot
	said_count = 4;
	bed_step(&bed);
	assert_int_equal(counters_of(&bed).stale, 4);
	assert_int_equal(bed.ended_count, 0);
	said[0] = said[1] = (struct ibv_wc){.wr_id = base | 2}; // out of order, and twice
	said_count = 2;
	bed_step(&bed);
	assert_int_equal(counters_of(&bed).stale, 5);
	assert_int_equal(bed.ended_count, 1);
	context->ops.poll_cq = real_poll;
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_run(&bed);
	assert_int_equal(bed.ended_count, 3);
	assert_int_equal(counters_of(&bed).stale, 6);
	bed_close(&bed);
}

static void completion_queue_that_cannot_be_polled_fails_all_pairs(void **state) {
	struct bed_pair pairs[3];
	struct op ops[3][4];
	struct bed bed;

	(void)state;
	begin(&bed, &pairs[0]);
	pairs[1] = bed_pair_up(&bed);
	pairs[2] = bed_pair_up(&bed);
	for (int p = 0; p < 3; p++) {
		fake_qp_hold(pairs[p].qps[0]);
		submit_some(&bed, &pairs[p], OP_READ, ops[p], 4);
	}
	bed_step(&bed);
	fake_verbs_fail(FAKE_POLL_CQ, 1, 1, -EIO);
	bed_step(&bed);
	assert_int_equal(bed.failed, 3);
	bed_run(&bed);
	assert_int_equal(bed.stuck, 3);
	assert_int_equal(bed.ended_count, 12);
	for (int p = 0; p < 3; p++) {
		for (int n = 0; n < 4; n++) {
			assert_int_equal(ops[p][n].outcome, OP_FLUSHED);
			assert_int_equal(ops[p][n].cause.err, -EIO);
		}
	}
	assert_int_equal(counters_of(&bed).poll_failures, 1);
	bed_close(&bed);
}

static void flush_that_is_seen_first_is_not_the_cause(void **state) {
	struct op send, receive;
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	receive = bed_op(&bed, &pair, OP_RECEIVE, 0, PART);
	bed_submit(&bed, 0, &receive);
	send = bed_op(&bed, &pair, OP_READ, 1024, PART);
	fake_qp_hold(pair.qps[0]);
	bed_submit(&bed, 0, &send);
	bed_step(&bed);
	real_poll = device_context(bed.devices[0])->ops.poll_cq;
	device_context(bed.devices[0])->ops.poll_cq = poll_lies;
	said[0] = (struct ibv_wc){
		.wr_id = pair.ends[0]->wr_base | WR_RECEIVE,
		.status = IBV_WC_WR_FLUSH_ERR,
	};
	said[1] = (struct ibv_wc){
		.wr_id = pair.ends[0]->wr_base,
		.status = IBV_WC_RETRY_EXC_ERR,
		.vendor_err = 129,
	};
	said_count = 2;
	bed_step(&bed);
	device_context(bed.devices[0])->ops.poll_cq = real_poll;
	bed_run(&bed);
	assert_int_equal(receive.outcome, OP_FLUSHED);
	assert_int_equal(send.outcome, OP_FAILED);
	assert_int_equal(receive.cause.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(send.cause.vendor_error, 129);
	bed_close(&bed);
}

static void queue_pair_that_breaks_by_itself_is_noticed(void **state) {
	struct bed_pair pair;
	struct op ops[3];
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	fake_qp_hold(pair.qps[0]);
	submit_some(&bed, &pair, OP_READ, ops, 3);
	bed_step(&bed);
	fake_qp_break(pair.qps[0]);
	bed_run(&bed);
	assert_int_equal(bed.drained, 1);
	for (int n = 0; n < 3; n++) {
		assert_int_equal(ops[n].outcome, OP_FLUSHED);
		assert_int_equal(ops[n].cause.status, IBV_WC_WR_FLUSH_ERR);
	}
	bed_close(&bed);
}

static void peer_that_does_not_answer_is_the_cause(void **state) {
	struct bed_pair pair;
	struct op ops[3];
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	fake_device_cut(bed.fakes[1], true);
	submit_some(&bed, &pair, OP_WRITE, ops, 3);
	bed_run(&bed);
	for (int n = 0; n < 3; n++)
		assert_int_equal(ops[n].cause.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ops[0].outcome, OP_FAILED);
	assert_int_equal(ops[2].outcome, OP_FLUSHED);
	bed_close(&bed);
}

static void peer_that_dies_ends_its_pairs_at_once_with_that_reason(void **state) {
	struct op ops[20], after;
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	fake_qp_hold(pair.qps[0]);
	submit_some(&bed, &pair, OP_READ, ops, 20);
	bed_step(&bed);
	bed.passive = true;
	assert_int_equal(
		lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0] + 1, -EHOSTDOWN), -ENOENT
	);
	assert_int_equal(
		lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0], -EHOSTDOWN), 0
	);
	assert_int_equal(lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0], -EIO), 0);
	after = bed_op(&bed, &pair, OP_READ, 0, PART);
	bed_submit(&bed, 0, &after);
	bed_step(&bed);
	assert_int_equal(after.outcome, OP_NOT_READY); // at once, and with the cause
	assert_int_equal(after.cause.err, -EHOSTDOWN);
	assert_int_equal(pair_fail(pair.ends[0]), 0);
	bed_run(&bed);
	for (int n = 0; n < 20; n++) {
		assert_int_equal(ops[n].outcome, OP_FLUSHED);
		assert_int_equal(ops[n].cause.err, -EHOSTDOWN);
	}
	assert_int_equal(counters_of(&bed).failed, 1);
	bed_close(&bed);
}

static void idle_pair_that_fails_is_given_back_at_once(void **state) {
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0], -ECANCELED);
	bed_step(&bed);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.drained, 1);
	assert_null(bed.lanes[0]->pairs[pair.slots[0]]);
	bed_close(&bed);
}

static void cold_life_survives_every_failure_of_the_driver(void **state) {
	const enum fake_call calls[] = {
		FAKE_CREATE_COMP_CHANNEL, FAKE_CREATE_CQ, FAKE_QUERY_PORT,
		FAKE_QUERY_GIDS,	  FAKE_CREATE_QP, FAKE_MODIFY_QP,
	};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(calls); k++) {
		for (uint32_t nth = 1; nth <= 3; nth++) {
			struct lane_config lane_config = {
				.pair_max = 2, .depth = 4, .op_max = 4, .drain_ns = 1};
			char reason[DEVICE_REASON_MAX + 1] = "";
			struct pair_config config = {.generation = 1};
			struct device_endpoint endpoint;
			struct device *device;
			struct lane *lane = NULL;
			struct pair *pair = NULL;
			int err;

			fake_verbs_init(NULL);
			fake_device_add("fake0");
			assert_int_equal(
				device_open(
					&fake_verbs_calls, "fake0", &device_settings_default,
					reason, &device
				),
				0
			);
			lane_config.device = device;
			fake_verbs_fail(calls[k], nth, 1, -EBUSY);
			err = lane_create(&lane_config, &lane);
			config.lane = lane;
			if (err == 0)
				err = pair_create(&config, &endpoint, &pair);
			if (err == 0)
				err = pair_connect(pair, &endpoint, 0, reason);
			fake_verbs_fail_no_more();
			assert_true(err == 0 || err == -EBUSY);
			assert_int_equal(pair_destroy(pair), 0);
			if (lane != NULL)
				assert_false(lane->taken[0]);
			assert_int_equal(lane_destroy(lane), 0);
			device_put(device);
			assert_null(fake_verbs_fini());
		}
	}
}

static void what_the_driver_does_not_give_back_can_be_asked_for_again(void **state) {
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	begin(&bed, &pair);
	bed.passive = true;
	bed_connect(&bed, pair.ends);
	fake_verbs_fail(FAKE_DESTROY_QP, 1, 1, -EBUSY);
	assert_int_equal(pair_destroy(pair.ends[0]), -EBUSY);
	assert_int_equal(pair_destroy(pair.ends[0]), 0);
	assert_int_equal(pair_destroy(pair.ends[1]), 0);
	bed_close(&bed);
}

static void thousand_pairs_come_and_go_in_one_slot(void **state) {
	struct bed bed;

	(void)state;
	bed_open(&bed, &usual);
	for (uint32_t n = 0; n < 1000; n++) {
		struct bed_pair pair = bed_pair_up(&bed);
		struct op ops[4];

		bed.ended_count = 0;
		submit_some(&bed, &pair, n % 2 == 0 ? OP_WRITE : OP_READ, ops, 4);
		bed_step(&bed);
		for (int side = 0; side < 2; side++)
			lane_fail(bed.lanes[side], 0, pair.generations[side], -ECANCELED);
		bed_run(&bed);
		assert_int_equal(bed.ended_count, 4);
	}
	assert_int_equal(bed.drained, 2000);
	assert_int_equal(fake_verbs_alive().qps, 0);
	bed_close(&bed);
}

static void lane_without_place_says_so(void **state) {
	struct device_endpoint endpoint;
	struct pair_config config = {.generation = 1};
	struct bed_pair pairs[4];
	struct pair *pair;
	struct bed bed;

	(void)state;
	begin(&bed, &pairs[0]);
	for (int n = 1; n < 4; n++)
		pairs[n] = bed_pair_up(&bed);
	config.lane = bed.lanes[0];
	assert_int_equal(pair_create(&config, &endpoint, &pair), -ENOSPC);
	config.generation = 0;
	assert_int_equal(pair_create(&config, &endpoint, &pair), -EINVAL);
	config.generation = 1;
	config.psn = 1 << 24;
	assert_int_equal(pair_create(&config, &endpoint, &pair), -EINVAL);
	bed_close(&bed);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_that_fails_in_part_says_so_for_each),
		cmocka_unit_test(failure_is_told_when_all_that_was_posted_is_complete),
		cmocka_unit_test(each_place_of_a_chain_can_be_refused),
		cmocka_unit_test(device_without_memory_is_asked_again),
		cmocka_unit_test(deadline_of_what_waits_harms_nobody_else),
		cmocka_unit_test(deadline_of_what_is_posted_drains_the_pair),
		cmocka_unit_test(what_succeeds_after_its_deadline_has_succeeded),
		cmocka_unit_test(cancelling_takes_out_what_waits_and_drains_what_is_posted),
		cmocka_unit_test(device_that_never_flushes_is_cut_off_at_the_limit),
		cmocka_unit_test(stuck_pair_that_drains_late_waits_for_being_cut_off),
		cmocka_unit_test(completions_made_before_a_cut_off_still_count),
		cmocka_unit_test(deadlines_pass_in_order),
		cmocka_unit_test(completion_of_nothing_that_is_posted_is_dropped),
		cmocka_unit_test(completion_queue_that_cannot_be_polled_fails_all_pairs),
		cmocka_unit_test(flush_that_is_seen_first_is_not_the_cause),
		cmocka_unit_test(queue_pair_that_breaks_by_itself_is_noticed),
		cmocka_unit_test(peer_that_does_not_answer_is_the_cause),
		cmocka_unit_test(peer_that_dies_ends_its_pairs_at_once_with_that_reason),
		cmocka_unit_test(idle_pair_that_fails_is_given_back_at_once),
		cmocka_unit_test(cold_life_survives_every_failure_of_the_driver),
		cmocka_unit_test(what_the_driver_does_not_give_back_can_be_asked_for_again),
		cmocka_unit_test(thousand_pairs_come_and_go_in_one_slot),
		cmocka_unit_test(lane_without_place_says_so),
	};

	return cmocka_run_group_tests_name("lane_fail", tests, NULL, NULL);
}
