// SPDX-License-Identifier: BSD-3-Clause
// Tests of lanes on software devices: the same operations as on any device, and how a pair fails
// there.
#include "dataplane/lane/lane_bed.h"

#include <support/cases.h>

#include <errno.h>
#include <string.h>

#define OPS 400

static const struct bed_config usual = {
	.pair_max = 8,
	.depth = 16,
	.op_max = 1024,
	.message_max = 16384,
	.soft = true,
};

static uint64_t word(const struct bed *bed, int side, uint64_t offset) {
	uint64_t value;

	memcpy(&value, bed->memory[side] + offset, sizeof(value));
	return value;
}

static void each_operation_does_what_it_says(void **state) {
	struct bed_pair pair;
	struct bed bed;
	struct op ops[4];
	uint64_t before;

	(void)state;
	bed_open(&bed, &usual);
	pair = bed_pair_up(&bed);
	bed_fill(&bed, 0, 3);
	bed_fill(&bed, 1, 9);
	before = word(&bed, 1, 300000);
	ops[0] = bed_op(&bed, &pair, OP_WRITE, 64, 100000);
	ops[1] = bed_op(&bed, &pair, OP_READ, 200000, 70001);
	ops[2] = bed_op(&bed, &pair, OP_FETCH_ADD, 300000, 8);
	ops[2].operand[0] = 5;
	ops[3] = bed_op(&bed, &pair, OP_COMPARE_SWAP, 300008, 8);
	ops[3].operand[0] = word(&bed, 1, 300008);
	ops[3].operand[1] = 77;
	for (size_t n = 0; n < COUNT_OF(ops); n++)
		bed_submit(&bed, 0, &ops[n]);
	bed_run(&bed);
	assert_int_equal(bed.ended_count, COUNT_OF(ops));
	for (size_t n = 0; n < COUNT_OF(ops); n++)
		assert_int_equal(ops[n].outcome, OP_OK);
	assert_memory_equal(bed.memory[1] + 64, bed.memory[0] + 64, 100000);
	assert_memory_equal(bed.memory[0] + 200000, bed.memory[1] + 200000, 70001);
	assert_int_equal(word(&bed, 0, 300000), before);
	assert_int_equal(word(&bed, 1, 300000), before + 5);
	assert_int_equal(word(&bed, 1, 300008), 77);
	bed_close(&bed);
}

static void many_operations_on_many_pairs_end_once_each(void **state) {
	static struct op ops[OPS];
	struct bed_pair pairs[4];
	struct bed bed;

	(void)state;
	bed_open(&bed, &usual);
	bed_fill(&bed, 0, 3);
	for (size_t n = 0; n < COUNT_OF(pairs); n++)
		pairs[n] = bed_pair_up(&bed);
	for (uint64_t n = 0; n < OPS; n++) {
		ops[n] = bed_op(&bed, &pairs[n % 4], OP_WRITE, n * 2048, 1 + n * 5 % 2048);
		bed_submit(&bed, 0, &ops[n]);
	}
	bed_run(&bed);
	assert_int_equal(bed.ended_count, OPS);
	for (uint64_t n = 0; n < OPS; n++) {
		uint64_t length = 1 + n * 5 % 2048;

		assert_int_equal(ops[n].outcome, OP_OK);
		assert_memory_equal(bed.memory[1] + n * 2048, bed.memory[0] + n * 2048, length);
	}
	bed_close(&bed);
}

static void a_key_that_is_not_theirs_fails_one_pair_alone(void **state) {
	struct bed_pair bad, good;
	struct bed bed;
	struct op wrong, right;

	(void)state;
	bed_open(&bed, &usual);
	bed_fill(&bed, 0, 3);
	bad = bed_pair_up(&bed);
	good = bed_pair_up(&bed);
	wrong = bed_op(&bed, &bad, OP_WRITE, 0, 100);
	wrong.remote_key ^= 1;
	right = bed_op(&bed, &good, OP_WRITE, 1000, 100);
	bed_submit(&bed, 0, &wrong);
	bed_submit(&bed, 0, &right);
	bed_run(&bed);
	assert_int_equal(bed.ended_count, 2);
	assert_int_not_equal(wrong.outcome, OP_OK);
	assert_int_equal(right.outcome, OP_OK);
	assert_ptr_equal(bed.last_failed, bad.ends[0]);
	assert_int_equal(bed.last_cause.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(bed.memory[1][0], 0);
	assert_int_equal(bed.memory[1][1000], bed.memory[0][1000]);
	bed_close(&bed);
}

static void each_operation_has_the_stamp_of_its_completion(void **state) {
	struct bed_config config = usual;
	struct bed_pair pair;
	struct bed bed;
	uint64_t now;

	(void)state;
	for (enum lane_stamps stamps = LANE_STAMPS_NONE; stamps <= LANE_STAMPS_WALL; stamps++) {
		struct op op;

		config.stamps = stamps;
		bed_open(&bed, &config);
		pair = bed_pair_up(&bed);
		op = bed_op(&bed, &pair, OP_READ, 0, 70001);
		op.device_stamp = 1; // left over from an earlier use
		bed_submit(&bed, 0, &op);
		bed_run(&bed);
		assert_int_equal(op.outcome, OP_OK);
		assert_int_equal(lane_device_clock_now(bed.lanes[0], &now), 0);
		if (stamps == LANE_STAMPS_RAW)
			assert_in_range(op.device_stamp, op.posted_ns, op.done_ns);
		else if (stamps == LANE_STAMPS_WALL)
			// The wall clock is past 2001.
			assert_true(op.device_stamp > UINT64_C(1000000000000000000));
		else
			assert_int_equal(op.device_stamp, 0);
		bed_close(&bed);
	}
}

static void a_pair_that_fails_on_a_stamped_queue_drains(void **state) {
	struct bed_config config = usual;
	struct bed_pair pair;
	struct bed bed;
	struct op wrong;

	(void)state;
	config.stamps = LANE_STAMPS_RAW;
	bed_open(&bed, &config);
	pair = bed_pair_up(&bed);
	wrong = bed_op(&bed, &pair, OP_WRITE, 0, 100);
	wrong.remote_key ^= 1;
	bed_submit(&bed, 0, &wrong);
	bed_run(&bed);
	assert_int_equal(bed.ended_count, 1);
	assert_int_equal(bed.last_cause.status, IBV_WC_REM_ACCESS_ERR);
	bed_close(&bed);
}

UNIT_GROUP(soft_lane) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation_does_what_it_says),
		cmocka_unit_test(many_operations_on_many_pairs_end_once_each),
		cmocka_unit_test(a_key_that_is_not_theirs_fails_one_pair_alone),
		cmocka_unit_test(each_operation_has_the_stamp_of_its_completion),
		cmocka_unit_test(a_pair_that_fails_on_a_stamped_queue_drains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
