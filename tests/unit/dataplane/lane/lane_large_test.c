// SPDX-License-Identifier: BSD-3-Clause
// Tests of operations of more bytes than 31 or 32 bits can count. The
// memory does not exist, and the fake devices move nothing. The tests check where each message
// begins and ends.
#include "dataplane/lane/lane_bed.h"

#include <support/cases.h>

#include <errno.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define BITS_32 (UINT64_C(1) << 32)

// Messages of one operation: where the next one must begin, and their number so far.
static struct trail {
	uint64_t local, remote; // addresses of the whole operation
	uint64_t length, message_max;
	uint64_t covered;
	uint32_t messages;
	uint32_t refused; // the message that the device refuses, counted from 1; 0: none
	int code;	  // error code of the refusal
} trail;

static int (*real_post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **ret_bad);

static void look_at(const struct ibv_send_wr *wr) {
	uint64_t left = trail.length - trail.covered;

	assert_int_equal(wr->num_sge, 1);
	assert_int_equal(wr->sg_list->addr, trail.local + trail.covered);
	assert_int_equal(wr->wr.rdma.remote_addr, trail.remote + trail.covered);
	assert_int_equal(wr->sg_list->length, left < trail.message_max ? left : trail.message_max);
	trail.covered += wr->sg_list->length;
	trail.messages++;
}

// Post the messages before the refused one.
static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **ret_bad) {
	struct ibv_send_wr *last = NULL, *bad;
	int code = 0;

	for (struct ibv_send_wr *next = wr; next != NULL; next = next->next) {
		if (trail.messages + 1 == trail.refused) {
			trail.refused = 0;
			*ret_bad = next;
			if (last == NULL)
				return trail.code;
			last->next = NULL;
			code = trail.code;
			break;
		}
		look_at(next);
		last = next;
	}
	assert_int_equal(real_post(qp, wr, &bad), 0);
	return code;
}

struct scene {
	struct bed bed;
	struct bed_pair pair;
	struct ibv_context *context;
};

static void scene_open(struct scene *scene, uint64_t message_max) {
	const struct bed_config config = {
		.pair_max = 1,
		.depth = 8,
		.op_max = 4,
		.message_max = message_max,
		.immediate = true,
	};

	bed_open(&scene->bed, &config);
	fake_verbs_light();
	scene->pair = bed_pair_up(&scene->bed);
	scene->context = device_context(scene->bed.devices[0]);
	real_post = scene->context->ops.post_send;
	scene->context->ops.post_send = post;
}

static void scene_close(struct scene *scene) {
	scene->context->ops.post_send = real_post;
	bed_close(&scene->bed);
}

// The local range crosses 4 GiB; the remote range ends at the last address.
static struct op large_op(struct scene *scene, enum op_kind kind, uint64_t length) {
	struct op op = bed_op(&scene->bed, &scene->pair, kind, 0, length);

	trail = (struct trail){
		.local = BITS_32 - 4096,
		.remote = UINT64_MAX - length,
		.length = length,
		.message_max = scene->bed.lanes[0]->message_max,
	};
	op.view.address = op.view.wire_address = trail.local;
	op.remote_address = trail.remote;
	return op;
}

static const uint64_t lengths[] = {
	BITS_32 / 2 - 1, BITS_32 / 2, BITS_32 / 2 + 1,	   BITS_32 - 1,
	BITS_32,	 BITS_32 + 1, 3 * BITS_32 + 12345, 1024 * GIB + 7,
};

static void messages_of_a_large_operation_follow_each_other_to_its_last_byte(void **state) {
	static const enum op_kind kinds[] = {OP_WRITE, OP_READ};
	static const uint64_t message_maxes[] = {0, GIB, 999999937};
	struct pair_counters counters;
	struct scene scene;
	struct op op;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(lengths) * COUNT_OF(kinds) * COUNT_OF(message_maxes); n++) {
		uint64_t length = lengths[n / 6];

		scene_open(&scene, message_maxes[n / 2 % 3]);
		op = large_op(&scene, kinds[n % 2], length);
		bed_submit(&scene.bed, 0, &op);
		bed_run(&scene.bed);
		assert_int_equal(op.outcome, OP_OK);
		assert_int_equal(op.bytes, length);
		assert_int_equal(trail.covered, length);
		assert_int_equal(
			trail.messages, (length + trail.message_max - 1) / trail.message_max
		);
		pair_counters(scene.pair.ends[0], &counters);
		assert_int_equal(counters.bytes_out, n % 2 == 0 ? length : 0);
		assert_int_equal(counters.bytes_in, n % 2 == 0 ? 0 : length);
		scene_close(&scene);
	}
}

static void message_that_the_device_has_no_memory_for_goes_where_it_was_to_go(void **state) {
	struct lane_counters counters;
	struct scene scene;
	struct op op;

	(void)state;
	for (uint32_t nth = 1; nth <= 13; nth++) {
		scene_open(&scene, 0);
		op = large_op(&scene, OP_WRITE, 3 * BITS_32 + 12345);
		trail.refused = nth;
		trail.code = ENOMEM;
		bed_submit(&scene.bed, 0, &op);
		bed_run(&scene.bed);
		lane_counters(scene.bed.lanes[0], &counters);
		assert_int_equal(counters.full, 1);
		assert_int_equal(op.outcome, OP_OK);
		assert_int_equal(op.bytes, op.length);
		assert_int_equal(trail.covered, op.length);
		assert_int_equal(trail.messages, 13);
		scene_close(&scene);
	}
}

static void what_a_failed_one_moved_is_counted_in_full(void **state) {
	char text[160];
	struct scene scene;
	struct op op;

	(void)state;
	scene_open(&scene, 0);
	op = large_op(&scene, OP_READ, 6 * GIB);
	trail.refused = 6;
	trail.code = EINVAL;
	bed_submit(&scene.bed, 0, &op);
	bed_run(&scene.bed);
	assert_int_equal(op.outcome, OP_FAILED);
	assert_int_equal(op.bytes, 5 * GIB);
	op_cause_format(&op.cause, text, sizeof(text));
	assert_non_null(strstr(text, "EINVAL of a read of 6442450944 bytes at 0xfffffffe7fffffff"));
	scene_close(&scene);
}

// Each length would be accepted if only its lower bits were compared.
static void lengths_are_compared_in_all_their_bits(void **state) {
	static const struct {
		enum op_kind kind;
		uint64_t local, remote;
	} cases[] = {
		{OP_WRITE, BITS_32 + 1, 2},
		{OP_WRITE, BITS_32 / 2 + 1, 2},
		{OP_READ, 2, BITS_32 + 1},
		{OP_READ, BITS_32 + 1, 2 * BITS_32 + 1},
		{OP_SEND, BITS_32 + 8, BITS_32 + 8},
		{OP_SEND, GIB + 1, GIB + 1},
		{OP_WRITE_IMM, BITS_32 + 8, BITS_32 + 8},
		{OP_WRITE_IMM, BITS_32 + 8, 8},
	};
	struct scene scene;
	struct op op;

	(void)state;
	scene_open(&scene, 0);
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		op = large_op(&scene, cases[n].kind, cases[n].local);
		op.remote_address = 0;
		op.remote_length = cases[n].remote;
		bed_submit(&scene.bed, 0, &op);
		bed_run(&scene.bed);
		assert_int_equal(op.outcome, OP_INVALID);
		assert_int_equal(trail.messages, 0);
	}
	scene_close(&scene);
}

static int (*real_post_recv
)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **ret_bad);
static uint32_t received;

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **ret_bad) {
	received = wr->sg_list->length;
	return real_post_recv(qp, wr, ret_bad);
}

// A work request cannot state more than 2 GiB, and no message is longer.
static void longer_receive_offers_two_gibibytes(void **state) {
	struct scene scene;
	struct op op;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(lengths); n++) {
		uint64_t expected = lengths[n] < 2 * GIB ? lengths[n] : 2 * GIB;

		scene_open(&scene, 0);
		real_post_recv = scene.context->ops.post_recv;
		scene.context->ops.post_recv = post_recv;
		op = large_op(&scene, OP_RECEIVE, lengths[n]);
		bed_submit(&scene.bed, 0, &op);
		bed_step(&scene.bed);
		assert_int_equal(received, expected);
		scene.context->ops.post_recv = real_post_recv;
		scene_close(&scene);
		assert_int_equal(op.outcome, OP_FLUSHED);
	}
}

static void message_is_of_one_gibibyte_at_most_whatever_the_port_can(void **state) {
	static const struct {
		uint32_t port;
		uint64_t configured, expected;
	} cases[] = {
		{UINT32_MAX, 0, GIB},  {UINT32_C(1) << 31, 0, GIB}, {UINT32_MAX, BITS_32, GIB},
		{1 << 23, 0, 1 << 23}, {1 << 23, BITS_32, 1 << 23},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct lane_config config = {
			.pair_max = 1,
			.depth = 1,
			.op_max = 1,
			.message_max = cases[n].configured,
			.drain_ns = 1,
		};
		char reason[DEVICE_REASON_MAX + 1];
		struct lane_facts facts;
		struct lane *lane;

		fake_verbs_init(NULL);
		fake_device_add("fake0")->ports[0].attr.max_msg_sz = cases[n].port;
		assert_int_equal(
			device_open(&fake_verbs_calls, "fake0", NULL, reason, &config.device), 0
		);
		assert_int_equal(lane_create(&config, &lane), 0);
		lane_facts(lane, &facts);
		assert_int_equal(facts.message_max, cases[n].expected);
		assert_int_equal(lane_destroy(lane), 0);
		device_put(config.device);
		assert_null(fake_verbs_fini());
	}
}

UNIT_GROUP(lane_large) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_a_large_operation_follow_each_other_to_its_last_byte),
		cmocka_unit_test(message_that_the_device_has_no_memory_for_goes_where_it_was_to_go),
		cmocka_unit_test(what_a_failed_one_moved_is_counted_in_full),
		cmocka_unit_test(lengths_are_compared_in_all_their_bits),
		cmocka_unit_test(longer_receive_offers_two_gibibytes),
		cmocka_unit_test(message_is_of_one_gibibyte_at_most_whatever_the_port_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
