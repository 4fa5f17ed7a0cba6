// SPDX-License-Identifier: BSD-3-Clause
// Tests of batches of operations: why a batch is refused, what its operations share, and that a
// batch starves no other operation.
#include "dataplane/lane/lane_bed.h"

#include <support/cases.h>

#include <errno.h>
#include <string.h>

static void batch_is_checked_before_anything_is_posted(void **state) {
	enum {
		KEYLESS,
		FOREIGN,
		SHORT_REMOTE,
		SHORT_LOCAL,
		WRAPS,
		ODD,
		SMALL,
		LONG_SEND,
		LONG_IMM,
		UNKNOWN,
		NO_PAIR,
		OLD_PAIR,
		CASES
	};
	static const enum op_outcome outcomes[CASES] = {
		[NO_PAIR] = OP_NOT_READY,
		[OLD_PAIR] = OP_NOT_READY,
	};

	(void)state;
	for (int which = 0; which < CASES; which++) {
		struct op ops[4], *list[4];
		struct bed_pair pair;
		struct bed bed;

		pair = bed_open_usual(&bed, 0);
		for (int n = 0; n < 4; n++) {
			ops[n] = bed_op(&bed, &pair, OP_WRITE, 64, 64);
			list[n] = &ops[n];
		}
		ops[2].view.region = which == KEYLESS ? NULL : ops[2].view.region;
		ops[2].view.device = which == FOREIGN ? bed.devices[1] : bed.devices[0];
		ops[2].remote_length = which == SHORT_REMOTE ? 63 : 64;
		if (which == SHORT_LOCAL) {
			ops[2].kind = OP_READ;
			ops[2].remote_length = 65;
		}
		if (which == WRAPS)
			ops[2].remote_address = UINT64_MAX - 62;
		if (which == ODD || which == SMALL) {
			ops[2].kind = OP_FETCH_ADD;
			ops[2].remote_address += which == ODD ? 4 : 0;
			ops[2].view.length = which == ODD ? 8 : 7;
		}
		if (which == LONG_SEND || which == LONG_IMM) {
			ops[2] =
				bed_op(&bed, &pair, which == LONG_SEND ? OP_SEND : OP_WRITE_IMM, 0,
				       4097);
		}
		if (which == UNKNOWN)
			ops[2].kind = OP_KIND_COUNT;
		if (which == NO_PAIR)
			ops[2].pair = 7;
		if (which == OLD_PAIR)
			ops[2].generation--;
		lane_submit(bed.lanes[0], list, 4);
		bed_run(&bed);
		assert_int_equal(bed.ended_count, 4);
		for (int n = 0; n < 4; n++)
			assert_int_equal(
				ops[n].outcome, n != 2			   ? OP_CANCELLED
						: outcomes[which] == OP_OK ? OP_INVALID
									   : outcomes[which]
			);
		assert_int_equal(bed_counters(&bed).posted, 0);
		assert_int_equal(bed_views_held, 0);
		bed_close(&bed);
	}
}

static void atomics_are_refused_where_the_device_has_none(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	bed.lanes[0]->atomics = false;
	op = bed_op(&bed, &pair, OP_COMPARE_SWAP, 0, 8);
	bed_submit(&bed, 0, &op);
	bed_run(&bed);
	assert_int_equal(op.outcome, OP_INVALID);
	bed_close(&bed);
}

static void batch_shares_the_deadline_of_its_first(void **state) {
	struct op ops[2], *list[2] = {&ops[0], &ops[1]};
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	ops[0] = ops[1] = bed_op(&bed, &pair, OP_WRITE, 0, 64);
	ops[0].deadline_ns = clock_now_ns(&bed.clock) + 5000;
	lane_submit(bed.lanes[0], list, 2);
	assert_int_equal(ops[1].deadline_ns, ops[0].deadline_ns);
	fake_qp_hold(pair.qps[0]);
	bed_step(&bed);
	assert_int_equal(bed.found.due_ns, ops[0].deadline_ns);
	assert_true(bed.found.outstanding);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_run(&bed);
	assert_int_equal(ops[1].outcome, OP_OK);
	assert_int_equal(bed.lanes[0]->heap_count, 0);
	bed_close(&bed);
}

static void more_than_the_lane_has_room_for_is_refused_whole(void **state) {
	struct op ops[300], *list[300];
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 0);
	for (int n = 0; n < 300; n++) {
		ops[n] = bed_op(&bed, &pair, OP_WRITE, 0, 64);
		list[n] = &ops[n];
	}
	lane_submit(bed.lanes[0], list, 250);
	lane_submit(bed.lanes[0], list + 250, 7);
	lane_submit(bed.lanes[0], list + 257, 6);
	bed_run(&bed);
	assert_int_equal(bed.ended_count, 263);
	for (int n = 0; n < 263; n++)
		assert_int_equal(ops[n].outcome, n >= 250 && n < 257 ? OP_REFUSED : OP_OK);
	bed_close(&bed);
}

static void pair_with_much_to_do_starves_no_other(void **state) {
	struct op many[200], few[7], *list[200];
	struct bed_pair pairs[8];
	struct bed bed;

	(void)state;
	pairs[0] = bed_open_usual(&bed, 0);
	for (int n = 1; n < 8; n++)
		pairs[n] = bed_pair_up(&bed);
	for (int n = 0; n < 200; n++) {
		many[n] = bed_op(&bed, &pairs[0], OP_WRITE, 0, 64);
		list[n] = &many[n];
	}
	lane_submit(bed.lanes[0], list, 200);
	for (int n = 0; n < 7; n++) {
		few[n] = bed_op(&bed, &pairs[n + 1], OP_WRITE, 0, 64);
		fake_qp_hold(pairs[n + 1].qps[0]);
		bed_submit(&bed, 0, &few[n]);
	}
	bed_step(&bed);
	for (int n = 0; n < 7; n++) {
		assert_int_equal(fake_qp_posted(pairs[n + 1].qps[0]), 1);
		fake_qp_let_go(pairs[n + 1].qps[0], UINT32_MAX);
	}
	bed_run(&bed);
	for (int n = 0; n < 200; n++)
		assert_int_equal(many[n].outcome, OP_OK);
	bed_close(&bed);
}

static void writes_of_one_chain_ask_for_few_completions(void **state) {
	static const struct {
		enum op_kind kind;
		uint32_t count, signalled;
	} cases[] = {
		{OP_WRITE, 1, 1}, {OP_WRITE, 7, 1},  {OP_WRITE, 8, 1},	{OP_WRITE, 9, 2},
		{OP_READ, 9, 9},  {OP_WRITE, 32, 4}, {OP_WRITE, 33, 5}, {OP_FETCH_ADD, 4, 4},
	};
	const struct bed_config deep = {.pair_max = 2, .depth = 64, .op_max = 64};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(cases); k++) {
		struct op ops[64], *list[64];
		struct bed_pair pair;
		struct bed bed;

		bed_open(&bed, &deep);
		pair = bed_pair_up(&bed);
		for (uint32_t n = 0; n < cases[k].count; n++) {
			ops[n] = bed_op(&bed, &pair, cases[k].kind, 8 * n, 8);
			list[n] = &ops[n];
		}
		lane_submit(bed.lanes[0], list, cases[k].count);
		bed_run(&bed);
		assert_int_equal(bed_counters(&bed).signalled, cases[k].signalled);
		for (uint32_t n = 0; n < cases[k].count; n++) {
			assert_int_equal(ops[n].outcome, OP_OK);
			assert_ptr_equal(bed.ended[n], &ops[n]);
		}
		bed_close(&bed);
	}
}

static void a_device_of_the_kernel_has_no_chain_of_many_large_writes(void **state) {
	static const struct {
		uint64_t chain_bytes;
		uint32_t count, length, chains;
	} cases[] = {
		{LANE_CHAIN_KERNEL_BYTES, 3, 65536, 3},
		{LANE_CHAIN_KERNEL_BYTES, 5, 16384, 2},
		{LANE_CHAIN_KERNEL_BYTES, 8, 4096, 1},
		{UINT64_MAX, 3, 65536, 1},
	};
	const struct bed_config deep = {.pair_max = 2, .depth = 64, .op_max = 64};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(cases); k++) {
		struct op ops[8], *list[8];
		struct bed_pair pair;
		struct bed bed;

		bed_open(&bed, &deep);
		pair = bed_pair_up(&bed);
		bed.lanes[0]->chain_bytes = cases[k].chain_bytes;
		for (uint32_t n = 0; n < cases[k].count; n++) {
			ops[n] = bed_op(&bed, &pair, OP_WRITE, 0, cases[k].length);
			list[n] = &ops[n];
		}
		lane_submit(bed.lanes[0], list, cases[k].count);
		bed_run(&bed);
		assert_int_equal(bed_counters(&bed).chains, cases[k].chains);
		for (uint32_t n = 0; n < cases[k].count; n++)
			assert_int_equal(ops[n].outcome, OP_OK);
		bed_close(&bed);
	}
}

static void a_chain_is_bounded_for_devices_of_the_kernel_alone(void **state) {
	static const struct {
		struct device_facts facts;
		uint64_t bytes;
	} cases[] = {
		{{.responder = DEVICE_RESPONDER_KERNEL, .path = "/sys/class/infiniband/rxe0"},
		 LANE_CHAIN_KERNEL_BYTES},
		{{.responder = DEVICE_RESPONDER_KERNEL, .path = ""}, UINT64_MAX},
		{{.responder = DEVICE_RESPONDER_IN_PROCESS, .path = ""}, UINT64_MAX},
		{{.responder = DEVICE_RESPONDER_HARDWARE, .path = "/sys/class/infiniband/mlx5_0"},
		 UINT64_MAX},
	};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(cases); k++)
		assert_int_equal(lane_chain_bytes(&cases[k].facts), cases[k].bytes);
}

static void small_writes_of_host_memory_take_their_bytes_along(void **state) {
	static const struct {
		enum op_kind kind;
		uint64_t length;
		bool host, inlined;
	} cases[] = {
		{OP_WRITE, 64, true, true},
		{OP_WRITE, 65, true, false},
		{OP_WRITE, 64, false, false},
		{OP_READ, 64, true, false},
	};

	(void)state;
	for (size_t k = 0; k < COUNT_OF(cases); k++) {
		struct bed_pair pair;
		struct bed bed;
		struct op op;

		pair = bed_open_usual(&bed, 0);
		op = bed_op(&bed, &pair, cases[k].kind, 0, cases[k].length);
		op.view.host = cases[k].host;
		if (cases[k].inlined)
			op.view.wire_address = 0; // an inline operation does not use it
		bed_submit(&bed, 0, &op);
		bed_run(&bed);
		assert_int_equal(op.outcome, OP_OK);
		assert_memory_equal(bed.memory[0], bed.memory[1], cases[k].length);
		assert_int_equal(bed_counters(&bed).inlined, cases[k].inlined);
		bed_close(&bed);
	}
}

UNIT_GROUP(lane_batch) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_is_checked_before_anything_is_posted),
		cmocka_unit_test(atomics_are_refused_where_the_device_has_none),
		cmocka_unit_test(batch_shares_the_deadline_of_its_first),
		cmocka_unit_test(more_than_the_lane_has_room_for_is_refused_whole),
		cmocka_unit_test(pair_with_much_to_do_starves_no_other),
		cmocka_unit_test(writes_of_one_chain_ask_for_few_completions),
		cmocka_unit_test(a_device_of_the_kernel_has_no_chain_of_many_large_writes),
		cmocka_unit_test(a_chain_is_bounded_for_devices_of_the_kernel_alone),
		cmocka_unit_test(small_writes_of_host_memory_take_their_bytes_along),
	};

	return cmocka_run_group_tests_name("lane_batch", tests, NULL, NULL);
}
