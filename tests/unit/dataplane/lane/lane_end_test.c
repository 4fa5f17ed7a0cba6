// SPDX-License-Identifier: BSD-3-Clause
// Tests of operations that end early: by a deadline, a cancellation, or the failure of their pair;
// and of cutting off the device.
#include "dataplane/lane/lane_bed.h"

#include <errno.h>
#include <string.h>

static void deadline_of_what_waits_harms_nobody_else(void **state) {
	struct op ops[8], late;
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	bed_submit_some(&bed, &pair, OP_READ, ops, 8); // uses all credits
	late = bed_op(&bed, &pair, OP_READ, 0, BED_PART);
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
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	for (int n = 0; n < 3; n++)
		ops[n] = bed_op(&bed, &pair, OP_READ, 0, BED_PART);
	ops[0].deadline_ns = IDLE_NEVER;
	ops[1].deadline_ns = clock_now_ns(&bed.clock) + 1000;
	for (int n = 0; n < 3; n++)
		lane_submit(bed.lanes[0], &list[n], 1);
	bed.passive = true;
	bed_step(&bed);
	bed_advance(&bed, 1000);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.ended_count, 0); // the device may still write to the memory
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
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	op = bed_op(&bed, &pair, OP_READ, 0, BED_PART);
	op.deadline_ns = clock_now_ns(&bed.clock) + 1000;
	bed_submit(&bed, 0, &op);
	bed.passive = true;
	bed_step(&bed);
	bed_advance(&bed, 1000);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_run(&bed);
	assert_int_equal(op.outcome, OP_OK);
	assert_int_equal(op.bytes, BED_PART);
	assert_int_equal(bed.drained, 1); // the deadline destroys the pair anyway
	bed_close(&bed);
}

static void cancelling_takes_out_what_waits_and_drains_what_is_posted(void **state) {
	struct op ops[10];
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	bed_submit_some(&bed, &pair, OP_READ, ops, 10);
	bed_step(&bed);
	bed_request(&bed, 0, LANE_REQUEST_CANCEL, worker_pointer_to_word(&ops[9]), pair.slots[0]);
	assert_int_equal(bed.ended_count, 0);
	bed_step(&bed);
	assert_int_equal(ops[9].outcome, OP_CANCELLED);
	assert_int_equal(bed.failed, 0);
	assert_int_equal(lane_cancel_op(bed.lanes[0], &ops[9], pair.slots[0]), -ENOENT);
	assert_int_equal(lane_cancel_op(bed.lanes[0], &ops[2], 3), -ENOENT);
	assert_int_equal(lane_cancel_op(bed.lanes[0], &ops[2], 77), -ENOENT);
	assert_int_equal(lane_cancel_op(bed.lanes[0], &ops[2], pair.slots[0]), 0);
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
	fake_verbs_forbid(worker_word_to_pointer(op->view.address), op->view.length);
}

static void device_that_never_flushes_is_cut_off_at_the_limit(void **state) {
	struct bed_pair pair;
	struct op ops[12];
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 1);
	forbidding = &bed;
	bed.fakes[0]->never_flushes = true;
	fake_qp_hold(pair.qps[0]);
	bed_submit_some(&bed, &pair, OP_READ, ops, 12);
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
	bed_close(&bed); // fails if the fake saw an access to released memory
}

static void stuck_pair_that_drains_late_waits_for_being_cut_off(void **state) {
	struct bed_pair pair;
	struct op ops[2];
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 1);
	bed.passive = true;
	fake_qp_hold(pair.qps[0]);
	bed_submit_some(&bed, &pair, OP_READ, ops, 2);
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
	assert_int_equal(pair_destroy_qp(pair.ends[0]), 0);
	assert_int_equal(pair_destroy_qp(pair.ends[0]), 0);
	bed_request(&bed, 0, LANE_REQUEST_QP_DESTROYED, pair.slots[0], pair.generations[0]);
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
	bed_submit_some(&bed, &pair, OP_READ, ops, 64); // more completions than one poll returns
	bed_step(&bed);
	bed_step(&bed);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	fake_verbs_run(); // completed, but not polled
	assert_int_equal(pair_destroy_qp(pair.ends[0]), 0);
	bed_request(&bed, 0, LANE_REQUEST_QP_DESTROYED, pair.slots[0], pair.generations[0]);
	bed_run(&bed);
	for (int n = 0; n < 64; n++)
		assert_int_equal(ops[n].outcome, OP_OK);
	assert_int_equal(bed.drained, 1);
	lane_fail(bed.lanes[1], pair.slots[1], pair.generations[1], -ECONNRESET);
	bed_run(&bed);
	next = bed_pair_up(&bed);
	assert_int_equal(next.slots[0], pair.slots[0]);
	later = bed_op(&bed, &next, OP_READ, 0, BED_PART);
	bed_submit(&bed, 0, &later);
	bed_run(&bed);
	assert_int_equal(later.outcome, OP_OK);
	assert_int_equal(bed_counters(&bed).stale, 0);
	bed_close(&bed);
}

// Deadlines are set in any order, and some operations are cancelled. The rest must expire in order.
static void deadlines_pass_in_order(void **state) {
	struct bed_pair pair;
	struct op ops[200];
	struct bed bed;
	uint64_t random = 1, last_ns = 0;

	(void)state;
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	for (int n = 0; n < 200; n++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		ops[n] = bed_op(&bed, &pair, OP_READ, 0, BED_PART);
		// The first eight fill the queue and outlive all others.
		ops[n].deadline_ns =
			n < 8 ? IDLE_NEVER : clock_now_ns(&bed.clock) + 1 + (random >> 40) % 5000;
		bed_submit(&bed, 0, &ops[n]);
		if (n == 8)
			bed_step(&bed);
		if (n % 3 == 2 && n > 20)
			lane_cancel_op(bed.lanes[0], &ops[9 + (random >> 20) % 10], pair.slots[0]);
		if (n % 5 == 4 && n > 20)
			lane_cancel_op(bed.lanes[0], &ops[n - 3], pair.slots[0]);
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

UNIT_GROUP(lane_end) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadline_of_what_waits_harms_nobody_else),
		cmocka_unit_test(deadline_of_what_is_posted_drains_the_pair),
		cmocka_unit_test(what_succeeds_after_its_deadline_has_succeeded),
		cmocka_unit_test(cancelling_takes_out_what_waits_and_drains_what_is_posted),
		cmocka_unit_test(device_that_never_flushes_is_cut_off_at_the_limit),
		cmocka_unit_test(stuck_pair_that_drains_late_waits_for_being_cut_off),
		cmocka_unit_test(completions_made_before_a_cut_off_still_count),
		cmocka_unit_test(deadlines_pass_in_order),
	};

	return cmocka_run_group_tests_name("lane_end", tests, NULL, NULL);
}
