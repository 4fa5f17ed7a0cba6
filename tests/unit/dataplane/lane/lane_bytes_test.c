// SPDX-License-Identifier: BSD-3-Clause
// Tests of the bytes that lanes move on both sides, with software devices: exactly the requested
// bytes change.
#include "dataplane/lane/lane_bed.h"

#include <dataplane/soft.h>
#include <support/cases.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LATE_MAX 200
#define LARGE (64 * 1024 * 1024 + 1)
#define MARGIN 100 // bytes before a large range and after it

static const struct bed_config usual = {
	.pair_max = 8,
	.depth = 16,
	.op_max = 1024,
	.message_max = 16384,
	.soft = true,
};

static uint8_t kept[BED_MEMORY];

static void begin(struct bed *bed, struct bed_pair *pair) {
	bed_open(bed, &usual);
	*pair = bed_pair_up(bed);
	bed_fill(bed, 0, 3);
	bed_fill(bed, 1, 9);
}

static void keep(const struct bed *bed, int side) {
	memcpy(kept, bed->memory[side], BED_MEMORY);
}

static void only_touched(const struct bed *bed, int side, uint64_t offset, uint64_t length) {
	uint64_t end = offset + length;

	assert_memory_equal(bed->memory[side], kept, offset);
	assert_memory_equal(bed->memory[side] + end, kept + end, BED_MEMORY - end);
}

// Less than a packet, one message, several messages.
static const uint64_t lengths[] = {1, 4095, 16384, 16385, 70001};

static void write_into_a_longer_range_touches_nothing_behind_its_own_length(void **state) {
	const uint64_t offset = 4093;
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	begin(&bed, &pair);
	for (size_t n = 0; n < COUNT_OF(lengths); n++) {
		bed_fill(&bed, 1, 9);
		keep(&bed, 1);
		op = bed_op(&bed, &pair, OP_WRITE, offset, lengths[n]);
		op.remote_length += 5000;
		bed_submit(&bed, 0, &op);
		bed_run(&bed);
		assert_int_equal(op.outcome, OP_OK);
		assert_int_equal(op.bytes, lengths[n]);
		assert_memory_equal(bed.memory[1] + offset, bed.memory[0] + offset, lengths[n]);
		only_touched(&bed, 1, offset, lengths[n]);
	}
	bed_close(&bed);
}

// Return a queue pair that is connected to itself.
static struct bed_pair pair_with_itself(struct bed *bed) {
	const struct pair_config config = {
		.lane = bed->lanes[0],
		.generation = ++bed->generation,
		.psn = 0x100 + bed->generation,
		.inline_bytes = PAIR_INLINE_BYTES,
	};
	struct device_endpoint endpoint;
	char reason[DEVICE_REASON_MAX + 1];
	struct bed_pair pair = {0};

	assert_int_equal(pair_create(&config, &endpoint, &pair.ends[0]), 0);
	assert_int_equal(pair_connect(pair.ends[0], &endpoint, 7, reason), 0);
	pair.slots[0] = pair_slot(pair.ends[0]);
	pair.generations[0] = pair_generation(pair.ends[0]);
	bed_request(bed, 0, LANE_REQUEST_ADD, worker_pointer_to_word(pair.ends[0]), 0);
	return pair;
}

// Source and destination offsets, both in the memory of side 0.
static const struct own {
	enum op_kind kind;
	uint64_t local, remote, from, to;
} owns[] = {
	{OP_WRITE, 1000, 500000, 1000, 500000},
	{OP_READ, 1000, 500000, 500000, 1000},
};

static void pair_that_is_its_own_peer_writes_and_reads(void **state) {
	const uint64_t length = 70001;
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	bed_open(&bed, &usual);
	pair = pair_with_itself(&bed);
	for (size_t n = 0; n < COUNT_OF(owns); n++) {
		bed_fill(&bed, 0, 3);
		keep(&bed, 0);
		op = bed_op(&bed, &pair, owns[n].kind, owns[n].local, length);
		op.remote_address = (uintptr_t)bed.memory[0] + owns[n].remote;
		op.remote_key = bed.mrs[0]->rkey;
		bed_submit(&bed, 0, &op);
		bed_run(&bed);
		assert_int_equal(op.outcome, OP_OK);
		assert_memory_equal(bed.memory[0] + owns[n].to, kept + owns[n].from, length);
		only_touched(&bed, 0, owns[n].to, length);
	}
	bed_close(&bed);
}

// As many operations as one step ends, and more.
static const uint32_t late_counts[] = {
	1, LANE_EXPIRED_PER_STEP, LANE_EXPIRED_PER_STEP + 1, LATE_MAX};

static void submit_late(struct bed *bed, const struct bed_pair *pair, struct op *ops, uint32_t n) {
	while (n-- > 0) {
		ops[n] = bed_op(bed, pair, n % 2 == 0 ? OP_WRITE : OP_RECEIVE, 0, 1000);
		ops[n].deadline_ns = clock_now_ns(&bed->clock) - n % 3;
		bed_submit(bed, 0, &ops[n]);
	}
}

static void what_is_late_when_submitted_is_never_posted_and_harms_no_pair(void **state) {
	static struct op ops[LATE_MAX];
	struct lane_counters counters;
	struct bed_pair pair;
	struct op good;
	struct bed bed;

	(void)state;
	for (size_t c = 0; c < COUNT_OF(late_counts); c++) {
		begin(&bed, &pair);
		submit_late(&bed, &pair, ops, late_counts[c]);
		bed_step(&bed);
		assert_true(bed.ended_count >= 1);
		bed_run(&bed);
		assert_int_equal(bed.ended_count, late_counts[c]);
		for (uint32_t n = 0; n < late_counts[c]; n++) {
			assert_int_equal(ops[n].outcome, OP_TIMED_OUT);
			assert_int_equal(ops[n].cause.err, -ETIMEDOUT);
		}
		lane_counters(bed.lanes[0], &counters);
		assert_int_equal(counters.posted, 0);
		good = bed_op(&bed, &pair, OP_WRITE, 0, 1000);
		bed_submit(&bed, 0, &good);
		bed_run(&bed);
		assert_int_equal(good.outcome, OP_OK);
		assert_int_equal(bed.failed, 0);
		bed_close(&bed);
	}
}

static void two_reads_into_one_range_end_well_and_stay_inside_it(void **state) {
	const uint64_t sources[2] = {200000, 500000}, offset = 50001, length = 40003;
	struct bed_pair pairs[2];
	struct op ops[2];
	struct bed bed;

	(void)state;
	for (int other = 0; other < 2; other++) { // both reads on one pair, then on two pairs
		begin(&bed, &pairs[0]);
		pairs[1] = bed_pair_up(&bed);
		keep(&bed, 0);
		for (int n = 0; n < 2; n++) {
			ops[n] = bed_op(&bed, &pairs[n * other], OP_READ, offset, length);
			ops[n].remote_address = (uintptr_t)bed.memory[1] + sources[n];
			bed_submit(&bed, 0, &ops[n]);
		}
		bed_run(&bed);
		assert_int_equal(ops[0].outcome, OP_OK);
		assert_int_equal(ops[1].outcome, OP_OK);
		for (uint64_t n = 0; n < length; n++) {
			uint8_t byte = bed.memory[0][offset + n];

			if (byte != bed.memory[1][sources[0] + n] &&
			    byte != bed.memory[1][sources[1] + n])
				fail_msg("byte %lu is of neither", (unsigned long)n);
		}
		only_touched(&bed, 0, offset, length);
		bed_close(&bed);
	}
}

// Memory larger than the bed's, in which every 64-bit word differs.
struct large {
	uint64_t *words;
	struct ibv_mr *mr;
};

#define LARGE_WORDS ((LARGE + 2 * MARGIN) / sizeof(uint64_t) + 1)

static void large_open(struct large *large, const struct bed *bed, int side) {
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	uint64_t seed = side == 0 ? UINT64_C(0x9e3779b97f4a7c15) : UINT64_C(0xd6e8feb86659fd93);

	large->words = malloc(LARGE_WORDS * sizeof(uint64_t));
	assert_non_null(large->words);
	for (uint64_t n = 0; n < LARGE_WORDS; n++)
		large->words[n] = (n + 1) * seed;
	assert_int_equal(
		verbs_calls_soft.reg_mr(
			device_pd(bed->devices[side]), large->words, LARGE_WORDS * sizeof(uint64_t),
			access, &large->mr
		),
		0
	);
}

static void large_close(struct large *large) {
	assert_int_equal(verbs_calls_soft.dereg_mr(large->mr), 0);
	free(large->words);
}

static struct op large_op(
	struct bed *bed, const struct bed_pair *pair, enum op_kind kind, const struct large sides[2]
) {
	struct op op = bed_op(bed, pair, kind, 0, LARGE);

	op.view.address = op.view.wire_address = (uintptr_t)sides[0].words + MARGIN;
	op.view.local_key = sides[0].mr->lkey;
	op.remote_address = (uintptr_t)sides[1].words + MARGIN;
	op.remote_key = sides[1].mr->rkey;
	return op;
}

static void operation_of_thousands_of_messages_arrives_whole(void **state) {
	static const enum op_kind kinds[] = {OP_WRITE, OP_READ};
	struct lane_counters counters;
	struct large sides[2];
	struct bed_pair pair;
	struct bed bed;
	struct op op;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(kinds); n++) {
		int to = kinds[n] == OP_WRITE;
		uint8_t margins[2][MARGIN], *bytes;

		begin(&bed, &pair);
		large_open(&sides[0], &bed, 0);
		large_open(&sides[1], &bed, 1);
		bytes = (uint8_t *)sides[to].words;
		memcpy(margins[0], bytes, MARGIN);
		memcpy(margins[1], bytes + MARGIN + LARGE, MARGIN);
		op = large_op(&bed, &pair, kinds[n], sides);
		bed_submit(&bed, 0, &op);
		bed_run(&bed);
		assert_int_equal(op.outcome, OP_OK);
		assert_int_equal(op.bytes, LARGE);
		lane_counters(bed.lanes[0], &counters);
		assert_int_equal(counters.posted, LARGE / usual.message_max + 1);
		assert_memory_equal(bytes + MARGIN, (uint8_t *)sides[1 - to].words + MARGIN, LARGE);
		assert_memory_equal(bytes, margins[0], MARGIN);
		assert_memory_equal(bytes + MARGIN + LARGE, margins[1], MARGIN);
		large_close(&sides[0]);
		large_close(&sides[1]);
		bed_close(&bed);
	}
}

UNIT_GROUP(lane_bytes) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_into_a_longer_range_touches_nothing_behind_its_own_length),
		cmocka_unit_test(pair_that_is_its_own_peer_writes_and_reads),
		cmocka_unit_test(what_is_late_when_submitted_is_never_posted_and_harms_no_pair),
		cmocka_unit_test(two_reads_into_one_range_end_well_and_stay_inside_it),
		cmocka_unit_test(operation_of_thousands_of_messages_arrives_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
