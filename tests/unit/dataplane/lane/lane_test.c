// SPDX-License-Identifier: BSD-3-Clause
// Tests of operations on pairs whose device works correctly.
#include "dataplane/lane/lane_bed.h"

#include <support/cases.h>

#include <errno.h>
#include <string.h>

static void write_moves_its_bytes_and_ends_once(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	op = bed_op(&bed, &pair, OP_WRITE, 64, 1000);
	bed_submit(&bed, 0, &op);
	assert_int_equal(bed.ended_count, 0);
	assert_int_equal(bed_views_held, 1);
	bed_run(&bed);
	assert_int_equal(bed.ended_count, 1);
	assert_ptr_equal(bed.ended[0], &op);
	assert_int_equal(op.outcome, OP_OK);
	assert_int_equal(op.bytes, 1000);
	assert_int_equal(bed_views_held, 0);
	assert_memory_equal(bed.memory[1] + 64, bed.memory[0] + 64, 1000);
	assert_int_equal(bed.memory[1][63], 0);
	assert_int_equal(bed.memory[1][1064], 0);
	bed_close(&bed);
}

static void completions_are_armed_for_only_while_something_is_under_way(void **state) {
	struct lane_facts facts;
	struct worker_poll poll;
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	poll = lane_poll(bed.lanes[0]);
	fake_verbs_fail(FAKE_REQ_NOTIFY_CQ, 1, UINT32_MAX, -EIO);
	poll.arm(poll.ctx);
	lane_facts(bed.lanes[0], &facts);
	assert_true(facts.events);
	op = bed_op(&bed, &pair, OP_WRITE, 0, 8);
	fake_qp_hold(pair.qps[0]);
	bed_submit(&bed, 0, &op);
	bed_step(&bed);
	poll.arm(poll.ctx);
	lane_facts(bed.lanes[0], &facts);
	assert_false(facts.events);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_run(&bed);
	bed_close(&bed);
}

static void step_says_what_it_began_and_ended_but_not_of_receives(void **state) {
	struct op ops[3], receive, send;
	uint32_t begun = 0, ended = 0;
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	receive = bed_op(&bed, &pair, OP_RECEIVE, 8192, 64);
	bed_submit(&bed, 0, &receive);
	for (uint32_t n = 0; n < 3; n++) {
		ops[n] = bed_op(&bed, &pair, OP_WRITE, 0, 8);
		bed_submit(&bed, 0, &ops[n]);
	}
	bed_step(&bed);
	begun += bed.found.begun;
	ended += bed.found.ended;
	send = bed_op(&bed, &pair, OP_SEND, 0, 64);
	send.view = bed_view(&bed, 1, 0, 64);
	send.pair = pair.slots[1];
	send.generation = pair.generations[1];
	bed_submit(&bed, 1, &send);
	for (uint32_t n = 0; n < 100 && bed.ended_count < 5; n++) {
		bed_advance(&bed, 1000000);
		begun += bed.found.begun;
		ended += bed.found.ended;
	}
	assert_int_equal(receive.outcome, OP_OK);
	assert_int_equal(bed.ended_count, 5);
	assert_int_equal(begun, 3);
	assert_int_equal(ended, 3);
	bed_close(&bed);
}

static void read_moves_the_remote_length_only(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	bed_fill(&bed, 1, 9);
	memset(bed.memory[0], 0, 4096);
	op = bed_op(&bed, &pair, OP_READ, 0, 2000);
	op.remote_length = 1500;
	bed_submit(&bed, 0, &op);
	bed_run(&bed);
	assert_int_equal(op.outcome, OP_OK);
	assert_int_equal(op.bytes, 1500);
	assert_memory_equal(bed.memory[0], bed.memory[1], 1500);
	assert_int_equal(bed.memory[0][1500], 0);
	bed_close(&bed);
}

static struct op bed_receive(struct bed *bed, const struct bed_pair *pair, uint64_t length) {
	struct op op = bed_op(bed, pair, OP_RECEIVE, 8192, length);

	op.view = bed_view(bed, 1, 8192, length);
	op.pair = pair->slots[1];
	op.generation = pair->generations[1];
	return op;
}

static void send_and_immediate_meet_a_receive(void **state) {
	const struct {
		enum op_kind kind;
		uint64_t length, received;
		bool writes;
	} cases[] = {
		{OP_SEND, 700, 700, false},
		{OP_SEND, 0, 0, false},
		{OP_WRITE_IMM, 700, 700, true},
		{OP_WRITE_IMM, 0, 0, false},
	};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(cases); k++) {
		struct op op, receive;
		struct bed_pair pair;
		struct bed bed;

		pair = bed_open_usual(&bed, 0);
		receive = bed_receive(&bed, &pair, 1024);
		bed_submit(&bed, 1, &receive);
		bed_step(&bed);
		op = bed_op(&bed, &pair, cases[k].kind, 0, cases[k].length);
		op.immediate = 0x01020304;
		op.solicited = true;
		bed_submit(&bed, 0, &op);
		bed_run(&bed);
		assert_int_equal(op.outcome, OP_OK);
		assert_int_equal(op.bytes, cases[k].length);
		assert_int_equal(receive.outcome, OP_OK);
		assert_int_equal(receive.bytes, cases[k].received);
		if (cases[k].kind == OP_WRITE_IMM)
			assert_int_equal(receive.immediate, 0x01020304);
		assert_memory_equal(
			bed.memory[1] + (cases[k].writes ? 0 : 8192), bed.memory[0],
			cases[k].received
		);
		bed_close(&bed);
	}
}

static void atomics_bring_the_old_value(void **state) {
	const uint64_t before = 40;
	struct bed_pair pair;
	struct bed bed;
	struct op add, swap, stays;
	uint64_t values[3], after;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	memcpy(bed.memory[1] + 512, &before, sizeof(before));
	add = swap = stays = bed_op(&bed, &pair, OP_FETCH_ADD, 512, 8);
	add.operand[0] = 2;
	swap.kind = stays.kind = OP_COMPARE_SWAP;
	swap.view = bed_view(&bed, 0, 520, 8);
	stays.view = bed_view(&bed, 0, 528, 8);
	swap.operand[0] = 42;
	swap.operand[1] = 50;
	stays.operand[0] = 42;
	stays.operand[1] = 60;
	lane_submit(bed.lanes[0], (struct op *[]){&add, &swap, &stays}, 3);
	bed_run(&bed);
	memcpy(values, bed.memory[0] + 512, sizeof(values));
	memcpy(&after, bed.memory[1] + 512, sizeof(after));
	assert_int_equal(values[0], 40);
	assert_int_equal(values[1], 42);
	assert_int_equal(values[2], 50);
	assert_int_equal(after, 50);
	assert_int_equal(stays.outcome, OP_OK);
	assert_int_equal(stays.bytes, 8);
	bed_close(&bed);
}

static void zero_bytes_succeed_without_a_message(void **state) {
	const enum op_kind kinds[] = {OP_WRITE, OP_READ};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		struct bed_pair pair;
		struct bed bed;
		struct op op;

		pair = bed_open_usual(&bed, 0);
		op = bed_op(&bed, &pair, kinds[k], 0, 0);
		op.view.region = NULL;
		bed_submit(&bed, 0, &op);
		// `done` must not be called from within the submission.
		assert_int_equal(bed.ended_count, 0);
		bed_step(&bed);
		assert_int_equal(bed.ended_count, 1);
		assert_int_equal(op.outcome, OP_OK);
		assert_int_equal(bed_counters(&bed).posted, 0);
		bed_close(&bed);
	}
}

static void large_operation_is_cut_and_ends_with_its_last_message(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	fake_qp_hold(pair.qps[0]);
	op = bed_op(&bed, &pair, OP_READ, 0, 3 * 4096 - 1);
	bed_submit(&bed, 0, &op);
	bed_step(&bed);
	assert_int_equal(fake_qp_posted(pair.qps[0]), 3);
	fake_qp_let_go(pair.qps[0], 2);
	for (int n = 0; n < 5; n++)
		bed_step(&bed);
	assert_int_equal(bed.ended_count, 0);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_run(&bed);
	assert_int_equal(op.outcome, OP_OK);
	assert_int_equal(op.bytes, 3 * 4096 - 1);
	assert_memory_equal(bed.memory[0], bed.memory[1], 3 * 4096 - 1);
	assert_int_equal(bed_counters(&bed).posted, 3);
	bed_close(&bed);
}

static void what_is_done_when_it_is_posted_ends_in_the_same_step(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	op = bed_op(&bed, &pair, OP_READ, 0, 8);
	bed_submit(&bed, 0, &op);
	bed_step(&bed);
	assert_int_equal(op.outcome, OP_OK);
	bed_close(&bed);
}

static void operation_larger_than_the_queue_goes_through_it(void **state) {
	const enum op_kind kinds[] = {OP_WRITE, OP_READ};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		struct bed_pair pair;
		struct bed bed;
		struct op op;

		pair = bed_open_usual(&bed, 0);
		op = bed_op(&bed, &pair, kinds[k], 0, BED_MEMORY);
		fake_qp_hold(pair.qps[0]);
		bed_submit(&bed, 0, &op);
		bed_step(&bed);
		assert_int_equal(fake_qp_posted(pair.qps[0]), 8);
		fake_qp_let_go(pair.qps[0], UINT32_MAX);
		bed_run(&bed);
		assert_int_equal(op.outcome, OP_OK);
		assert_int_equal(op.bytes, BED_MEMORY);
		assert_memory_equal(bed.memory[0], bed.memory[1], BED_MEMORY);
		assert_int_equal(bed_counters(&bed).posted, BED_MEMORY / 4096);
		bed_close(&bed);
	}
}

static void all_kinds_share_the_credits_of_a_queue(void **state) {
	struct op ops[30], *list[30];
	struct bed_pair pair;
	struct bed bed;
	uint32_t let_go = 0;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	fake_qp_hold(pair.qps[0]);
	for (uint32_t n = 0; n < 30; n++) {
		enum op_kind kind = n % 3 == 0 ? OP_READ : n % 3 == 1 ? OP_WRITE : OP_FETCH_ADD;

		ops[n] = bed_op(&bed, &pair, kind, 64 * n, n % 3 == 2 ? 8 : 64);
		list[n] = &ops[n];
	}
	lane_submit(bed.lanes[0], list, 30);
	while (bed.ended_count < 30) {
		for (int n = 0; n < 3; n++)
			bed_step(&bed);
		assert_true(fake_qp_posted(pair.qps[0]) <= 8); // the fake refuses more than 8
		assert_true(let_go > 0 || fake_qp_posted(pair.qps[0]) == 8);
		fake_qp_let_go(pair.qps[0], 1);
		let_go++;
		assert_true(let_go < 40);
	}
	for (uint32_t n = 0; n < 30; n++) {
		assert_int_equal(ops[n].outcome, OP_OK);
		assert_ptr_equal(bed.ended[n], &ops[n]); // in order of submission
	}
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_close(&bed);
}

struct again {
	struct bed *bed;
	struct op *op;
	uint32_t left, ended;
};

static void submit_again(struct op *op) {
	struct again *again = op->ctx;

	again->ended++;
	assert_int_equal(op->outcome, OP_OK);
	if (again->left-- > 1)
		lane_submit(again->bed->lanes[0], &again->op, 1);
}

static void done_may_submit_the_same_operation_again(void **state) {
	static const uint64_t lengths[] = {64, 0};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(lengths); k++) {
		struct bed_pair pair;
		struct bed bed;
		struct op op;
		struct again again = {&bed, &op, 100, 0};

		pair = bed_open_usual(&bed, 0);
		op = bed_op(&bed, &pair, OP_WRITE, 0, lengths[k]);
		op.done = submit_again;
		op.ctx = &again;
		bed_submit(&bed, 0, &op);
		for (uint32_t n = 0; n < 10; n++)
			bed_step(&bed);
		// A step must end even if each `done` submits again.
		assert_in_range(again.ended, 1, 10);
		assert_true(bed.progress);
		bed_run(&bed);
		assert_int_equal(again.ended, 100);
		bed_close(&bed);
	}
}

static void operation_of_a_request_comes_back_as_an_event(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op ops[2];

	(void)state;
	pair = bed_open_usual(&bed, 0);
	ops[0] = ops[1] = bed_op(&bed, &pair, OP_WRITE, 0, 64);
	ops[1].generation++;
	for (int n = 0; n < 2; n++) {
		ops[n].done = NULL;
		bed_request(&bed, 0, LANE_REQUEST_SUBMIT, worker_pointer_to_word(&ops[n]), 0);
	}
	bed_run(&bed);
	assert_int_equal(bed.done_events, 2);
	assert_int_equal(ops[0].outcome, OP_OK);
	assert_int_equal(ops[1].outcome, OP_NOT_READY);
	bed_close(&bed);
}

static void event_that_finds_no_room_waits_for_it(void **state) {
	struct worker_record filler = {.kind = 1}, record;
	struct bed_pair pair;
	struct bed bed;
	struct op op;
	uint32_t taken = 0;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	bed.passive = true;
	op = bed_op(&bed, &pair, OP_WRITE, 0, 64);
	op.done = NULL;
	while (worker_event(bed.worker, &filler) == 0)
		taken++;
	lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0], -EHOSTDOWN);
	bed_submit(&bed, 0, &op);
	for (int n = 0; n < 3; n++) {
		struct idle_step_findings found = {.due_ns = IDLE_NEVER, .events = true};

		lane_run_step(bed.lanes[0], &found);
		assert_true(found.due_ns < IDLE_NEVER);
	}
	for (; taken > 0; taken--)
		assert_int_equal(worker_take_events(bed.worker, &record, 1), 1);
	assert_int_equal(worker_take_events(bed.worker, &record, 1), 0);
	bed.passive = false;
	bed_run(&bed);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.drained, 1);
	assert_int_equal(bed.done_events, 1);
	assert_int_equal(op.outcome, OP_NOT_READY);
	assert_int_equal(op.cause.err, -EHOSTDOWN);
	bed_close(&bed);
}

static void lane_is_made_to_fit_the_device(void **state) {
	static const struct {
		int cqe, qp, wr;
		uint32_t pair_max, depth;
		int err;
		uint32_t expected_pairs, expected_depth;
	} cases[] = {
		{1024, 100, 128, 8, 16, 0, 8, 16},
		// 32 pairs x 2 queues x depth 16 = 1024 completions.
		{1024, 100, 128, 4096, 16, 0, 32, 16},
		{1024, 20, 128, 4096, 16, 0, 20, 16},
		{1024, 100, 8, 10, 16, 0, 10, 8},
		{10, 100, 128, 10, 16, 0, 1, 5},
		{1, 100, 128, 10, 16, -ENOSPC, 0, 0},
		{1024, 100, 128, 0, 16, -EINVAL, 0, 0},
		{1024, 100, 128, 1, 0, -EINVAL, 0, 0},
		{1024, 100, 128, LANE_PAIRS_MAX + 1, 1, -EINVAL, 0, 0},
		{1024, 100, 128, 1, LANE_DEPTH_MAX + 1, -EINVAL, 0, 0},
	};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(cases); k++) {
		struct clock clock;
		struct fake_device *fake;
		struct lane_config config = {
			.pair_max = cases[k].pair_max,
			.depth = cases[k].depth,
			.op_max = 16,
			.drain_ns = 1,
			.clock = &clock,
		};
		char reason[DEVICE_REASON_MAX + 1];
		struct lane_facts facts;
		struct device *device;
		struct lane *lane = NULL;

		clock_init_fake(&clock, 1);
		fake_verbs_init(&clock);
		fake = fake_device_add("fake0");
		fake->attr.max_cqe = cases[k].cqe;
		fake->attr.max_qp = cases[k].qp;
		fake->attr.max_qp_wr = cases[k].wr;
		assert_int_equal(
			device_open(
				&fake_verbs_calls, "fake0", &device_settings_default, reason,
				&device
			),
			0
		);
		config.device = device;
		config.stamps = LANE_STAMPS_RAW; // the device has no time stamps
		assert_true(lane_create(&config, &lane) != 0);
		config.stamps = LANE_STAMPS_NONE;
		assert_int_equal(lane_create(&config, &lane), cases[k].err);
		if (cases[k].err == 0) {
			lane_facts(lane, &facts);
			assert_int_equal(facts.pair_max, cases[k].expected_pairs);
			assert_int_equal(facts.depth, cases[k].expected_depth);
			assert_true(facts.events);
		}
		assert_int_equal(lane_destroy(lane), 0);
		device_put(device);
		assert_null(fake_verbs_fini());
	}
}

static void full_pairs_and_both_directions_fit_the_completion_queue(void **state) {
	const struct bed_config small = {.pair_max = 4, .depth = 4, .op_max = 64};
	struct op sends[4][4], receives[4][4], *list[4];
	struct bed_pair pairs[4];
	struct bed bed;

	(void)state;
	bed_open(&bed, &small);
	for (int p = 0; p < 4; p++) {
		pairs[p] = bed_pair_up(&bed);
		fake_qp_hold(pairs[p].qps[0]);
		for (int n = 0; n < 4; n++) {
			sends[p][n] = bed_op(&bed, &pairs[p], OP_READ, 0, 8);
			receives[p][n] = bed_op(&bed, &pairs[p], OP_RECEIVE, 0, 8);
			list[n] = &sends[p][n];
			bed_submit(&bed, 0, &receives[p][n]);
		}
		lane_submit(bed.lanes[0], list, 4);
	}
	bed_step(&bed);
	for (int p = 0; p < 4; p++) {
		assert_int_equal(fake_qp_posted(pairs[p].qps[0]), 8);
		fake_qp_break(pairs[p].qps[0]);
	}
	fake_verbs_run(); // 32 completions at once; the fake reports an overflow
	bed_run(&bed);
	assert_int_equal(bed.ended_count, 32);
	bed_close(&bed);
}

UNIT_GROUP(lane) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_moves_its_bytes_and_ends_once),
		cmocka_unit_test(completions_are_armed_for_only_while_something_is_under_way),
		cmocka_unit_test(step_says_what_it_began_and_ended_but_not_of_receives),
		cmocka_unit_test(read_moves_the_remote_length_only),
		cmocka_unit_test(send_and_immediate_meet_a_receive),
		cmocka_unit_test(atomics_bring_the_old_value),
		cmocka_unit_test(zero_bytes_succeed_without_a_message),
		cmocka_unit_test(large_operation_is_cut_and_ends_with_its_last_message),
		cmocka_unit_test(what_is_done_when_it_is_posted_ends_in_the_same_step),
		cmocka_unit_test(operation_larger_than_the_queue_goes_through_it),
		cmocka_unit_test(all_kinds_share_the_credits_of_a_queue),
		cmocka_unit_test(done_may_submit_the_same_operation_again),
		cmocka_unit_test(operation_of_a_request_comes_back_as_an_event),
		cmocka_unit_test(event_that_finds_no_room_waits_for_it),
		cmocka_unit_test(lane_is_made_to_fit_the_device),
		cmocka_unit_test(full_pairs_and_both_directions_fit_the_completion_queue),
	};

	return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
