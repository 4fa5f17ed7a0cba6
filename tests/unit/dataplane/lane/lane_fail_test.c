// SPDX-License-Identifier: BSD-3-Clause
// Tests of operations when a call or device fails. Each ends once, with the true reason, and only
// when the device can no longer reach its memory.
#include "dataplane/lane/lane_bed.h"

#include <support/cases.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	pair = bed_open_usual(&bed, 1);
	bed.fakes[0]->vendor_error = 0x88;
	for (uint32_t n = 0; n < 3; n++)
		ops[n] = bed_op(&bed, &pair, OP_READ, n * BED_PART, BED_PART);
	ops[1].remote_key = 0x1234;
	lane_submit(bed.lanes[0], list, 3);
	bed_run(&bed);
	assert_outcomes(ops, 3, outcomes);
	assert_memory_equal(bed.memory[0], bed.memory[1], BED_PART);
	for (uint32_t n = BED_PART; n < 3 * BED_PART; n++)
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
	pair = bed_open_usual(&bed, 1);
	bed.fakes[0]->flush_ns = 1000;
	fake_qp_error(pair.qps[0], 2, IBV_WC_REM_OP_ERR, 5);
	op = bed_op(&bed, &pair, OP_READ, 0, 4 * 4096);
	bed_submit(&bed, 0, &op);
	for (int n = 0; n < 5; n++)
		bed_step(&bed);
	assert_int_equal(bed.failed, 1);
	assert_int_equal(bed.drained, 0);
	assert_int_equal(bed.ended_count, 0); // two messages are still to be flushed
	assert_int_equal(bed_views_held, 1);
	bed_run(&bed);
	assert_int_equal(op.outcome, OP_FAILED);
	assert_int_equal(op.bytes, 4096); // the bytes really moved
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

			pair = bed_open_usual(&bed, 1);
			fake_verbs_fail(receive ? FAKE_POST_RECV : FAKE_POST_SEND, nth, 1, -EINVAL);
			bed_submit_some(&bed, &pair, kinds[k], ops, 6);
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
			// Operations without a completion of their own must still end.
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

			pair = bed_open_usual(&bed, 1);
			fake_verbs_fail(receive ? FAKE_POST_RECV : FAKE_POST_SEND, nth, 3, -ENOMEM);
			bed_submit_some(&bed, &pair, kinds[k], ops, 6);
			bed_step(&bed);
			assert_true(bed_counters(&bed).full == 1);
			// A retry is due, unless earlier operations completed and made room.
			assert_true(bed.found.due_ns < IDLE_NEVER || bed.progress);
			for (uint32_t n = 0; n < 100; n++)
				bed_advance(&bed, LANE_RETRY_NS);
			assert_int_equal(bed_counters(&bed).full, 3);
			assert_int_equal(bed.failed, 0);
			assert_int_equal(bed_counters(&bed).posted, 6);
			if (!receive) {
				for (uint32_t n = 0; n < 6; n++)
					assert_int_equal(ops[n].outcome, OP_OK);
				assert_int_equal(bed.ended_count, 6);
			}
			bed_close(&bed);
		}
	}
}

// A device that reports false completions.
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
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	bed_submit_some(&bed, &pair, OP_READ, ops, 3);
	bed_step(&bed);
	base = pair.ends[0]->wr_base;
	context = device_context(bed.devices[0]);
	real_poll = context->ops.poll_cq;
	context->ops.poll_cq = poll_lies;
	said[0] = (struct ibv_wc){.wr_id = base | 3};	       // an operation that was not posted
	said[1] = (struct ibv_wc){.wr_id = base | WR_RECEIVE}; // not a receive
	said[2] = (struct ibv_wc){.wr_id = base + (UINT64_C(1) << WR_GENERATION_SHIFT)};
	said[3] = (struct ibv_wc){.wr_id = UINT64_MAX}; // a slot that does not exist
	said_count = 4;
	bed_step(&bed);
	assert_int_equal(bed_counters(&bed).stale, 4);
	assert_int_equal(bed.ended_count, 0);
	said[0] = said[1] = (struct ibv_wc){.wr_id = base | 2}; // out of order, and reported twice
	said_count = 2;
	bed_step(&bed);
	assert_int_equal(bed_counters(&bed).stale, 5);
	assert_int_equal(bed.ended_count, 1);
	context->ops.poll_cq = real_poll;
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	bed_run(&bed);
	assert_int_equal(bed.ended_count, 3);
	assert_int_equal(bed_counters(&bed).stale, 6);
	bed_close(&bed);
}

static void completion_queue_that_cannot_be_polled_fails_all_pairs(void **state) {
	struct bed_pair pairs[3];
	struct op ops[3][4];
	struct bed bed;

	(void)state;
	pairs[0] = bed_open_usual(&bed, 1);
	pairs[1] = bed_pair_up(&bed);
	pairs[2] = bed_pair_up(&bed);
	for (int p = 0; p < 3; p++) {
		fake_qp_hold(pairs[p].qps[0]);
		bed_submit_some(&bed, &pairs[p], OP_READ, ops[p], 4);
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
	assert_int_equal(bed_counters(&bed).poll_failures, 1);
	bed_close(&bed);
}

// Three writes in one chain; only the last requests a completion.
static void flush_that_is_seen_first_makes_no_successes_of_what_was_before_it(void **state) {
	struct bed_pair pair;
	struct op ops[3];
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	bed_submit_some(&bed, &pair, OP_WRITE, ops, 3);
	bed_step(&bed);
	real_poll = device_context(bed.devices[0])->ops.poll_cq;
	device_context(bed.devices[0])->ops.poll_cq = poll_lies;
	said[0] = (struct ibv_wc){
		.wr_id = pair.ends[0]->wr_base + 2,
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
	for (int n = 0; n < 3; n++) {
		assert_int_equal(ops[n].outcome, OP_FLUSHED);
		assert_int_equal(ops[n].cause.status, IBV_WC_RETRY_EXC_ERR);
	}
	bed_close(&bed);
}

static void flush_that_is_seen_first_is_not_the_cause(void **state) {
	struct op send, receive;
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 1);
	receive = bed_op(&bed, &pair, OP_RECEIVE, 0, BED_PART);
	bed_submit(&bed, 0, &receive);
	send = bed_op(&bed, &pair, OP_READ, 1024, BED_PART);
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
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	bed_submit_some(&bed, &pair, OP_READ, ops, 3);
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
	pair = bed_open_usual(&bed, 1);
	fake_device_cut(bed.fakes[1], true);
	bed_submit_some(&bed, &pair, OP_WRITE, ops, 3);
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
	pair = bed_open_usual(&bed, 1);
	fake_qp_hold(pair.qps[0]);
	bed_submit_some(&bed, &pair, OP_READ, ops, 20);
	bed_step(&bed);
	bed.passive = true;
	assert_int_equal(
		lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0] + 1, -EHOSTDOWN), -ENOENT
	);
	assert_int_equal(
		lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0], -EHOSTDOWN), 0
	);
	assert_int_equal(lane_fail(bed.lanes[0], pair.slots[0], pair.generations[0], -EIO), 0);
	after = bed_op(&bed, &pair, OP_READ, 0, BED_PART);
	bed_submit(&bed, 0, &after);
	bed_step(&bed);
	assert_int_equal(after.outcome, OP_NOT_READY); // ends at once with the cause of the pair
	assert_int_equal(after.cause.err, -EHOSTDOWN);
	assert_int_equal(pair_fail(pair.ends[0]), 0);
	bed_run(&bed);
	for (int n = 0; n < 20; n++) {
		assert_int_equal(ops[n].outcome, OP_FLUSHED);
		assert_int_equal(ops[n].cause.err, -EHOSTDOWN);
	}
	assert_int_equal(bed_counters(&bed).failed, 1);
	bed_close(&bed);
}

static void idle_pair_that_fails_is_given_back_at_once(void **state) {
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	pair = bed_open_usual(&bed, 1);
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
				assert_null(lane->made[0]);
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
	pair = bed_open_usual(&bed, 1);
	bed.passive = true;
	bed_connect(&bed, pair.ends);
	fake_verbs_fail(FAKE_DESTROY_QP, 1, 1, -EBUSY);
	assert_int_equal(pair_destroy(pair.ends[0]), -EBUSY);
	assert_int_equal(pair_destroy(pair.ends[0]), 0);
	assert_int_equal(pair_destroy(pair.ends[1]), 0);
	bed_close(&bed);
}

static void pair_half_made_that_the_driver_does_not_give_back_goes_with_its_lane(void **state) {
	struct pair_config config = {.generation = 1};
	struct device_endpoint endpoint;
	struct pair *pair;
	struct bed bed;

	(void)state;
	bed_open(&bed, &bed_usual);
	config.lane = bed.lanes[0];
	fake_verbs_fail(FAKE_MODIFY_QP, 1, 1, -EIO);
	fake_verbs_fail(FAKE_DESTROY_QP, 1, 1, -EBUSY);
	assert_int_equal(pair_create(&config, &endpoint, &pair), -EIO);
	assert_int_equal(fake_verbs_alive().qps, 1);
	bed_close(&bed); // fails if an object is left
}

static void thousand_pairs_come_and_go_in_one_slot(void **state) {
	struct bed bed;

	(void)state;
	bed_open(&bed, &bed_usual);
	for (uint32_t n = 0; n < 1000; n++) {
		struct bed_pair pair = bed_pair_up(&bed);
		struct op ops[4];

		bed.ended_count = 0;
		bed_submit_some(&bed, &pair, n % 2 == 0 ? OP_WRITE : OP_READ, ops, 4);
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
	struct pair *pair;
	struct bed bed;

	(void)state;
	bed_open(&bed, &bed_usual);
	for (uint32_t n = 0; n < bed_usual.pair_max; n++)
		(void)bed_pair_up(&bed);
	config.lane = bed.lanes[0];
	assert_int_equal(pair_create(&config, &endpoint, &pair), -ENOSPC);
	config.generation = 0;
	assert_int_equal(pair_create(&config, &endpoint, &pair), -EINVAL);
	config.generation = 1;
	config.psn = 1 << 24;
	assert_int_equal(pair_create(&config, &endpoint, &pair), -EINVAL);
	bed_close(&bed);
}

UNIT_GROUP(lane_fail) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_that_fails_in_part_says_so_for_each),
		cmocka_unit_test(failure_is_told_when_all_that_was_posted_is_complete),
		cmocka_unit_test(each_place_of_a_chain_can_be_refused),
		cmocka_unit_test(device_without_memory_is_asked_again),
		cmocka_unit_test(completion_of_nothing_that_is_posted_is_dropped),
		cmocka_unit_test(completion_queue_that_cannot_be_polled_fails_all_pairs),
		cmocka_unit_test(flush_that_is_seen_first_makes_no_successes_of_what_was_before_it),
		cmocka_unit_test(flush_that_is_seen_first_is_not_the_cause),
		cmocka_unit_test(queue_pair_that_breaks_by_itself_is_noticed),
		cmocka_unit_test(peer_that_does_not_answer_is_the_cause),
		cmocka_unit_test(peer_that_dies_ends_its_pairs_at_once_with_that_reason),
		cmocka_unit_test(idle_pair_that_fails_is_given_back_at_once),
		cmocka_unit_test(cold_life_survives_every_failure_of_the_driver),
		cmocka_unit_test(what_the_driver_does_not_give_back_can_be_asked_for_again),
		cmocka_unit_test(
			pair_half_made_that_the_driver_does_not_give_back_goes_with_its_lane
		),
		cmocka_unit_test(thousand_pairs_come_and_go_in_one_slot),
		cmocka_unit_test(lane_without_place_says_so),
	};

	return cmocka_run_group_tests_name("lane_fail", tests, NULL, NULL);
}
