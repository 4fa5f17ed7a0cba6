// SPDX-License-Identifier: BSD-3-Clause
#include "transport/receive_queue.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>

#define SGES 3

static void the_oldest_comes_out_first_over_every_wrap(void **state) {
	static const uint32_t starts[] = {0, 7, UINT32_MAX - 2, UINT32_MAX};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(starts); n++) {
		struct receive_queue queue;
		uint64_t posted = 0, taken = 0;

		assert_int_equal(receive_queue_init(&queue, 4, SGES), 0);
		queue.head = queue.tail = starts[n];
		for (uint32_t round = 0; round < 40; round++) {
			struct ibv_sge in[SGES] = {{posted, 8, 1}, {posted + 1, 9, 2}};
			struct ibv_recv_wr wr = {.wr_id = posted, .sg_list = in, .num_sge = 2};
			struct ibv_sge out[SGES];
			struct receive_work work;

			while (receive_queue_post(&queue, &wr) == 0)
				wr.wr_id = in[0].addr = ++posted;
			for (uint32_t m = 0; m <= round % 4; m++, taken++) {
				assert_true(receive_queue_pop(&queue, &work, out));
				assert_int_equal(work.wr_id, taken);
				assert_int_equal(work.sge_count, 2);
				assert_int_equal(work.length, 17);
				assert_int_equal(out[0].addr, taken);
				assert_int_equal(out[1].length, 9);
			}
		}
		receive_queue_fini(&queue);
	}
}

static void it_holds_at_least_what_was_asked_for(void **state) {
	static const uint32_t asked[] = {1, 2, 3, 5, 100, 16384};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(asked); n++) {
		struct ibv_recv_wr wr = {0};
		struct receive_queue queue;

		assert_int_equal(receive_queue_init(&queue, asked[n], 0), 0);
		assert_true(queue.capacity >= asked[n] && queue.capacity < 2 * asked[n]);
		for (uint32_t m = 0; m < queue.capacity; m++)
			assert_int_equal(receive_queue_post(&queue, &wr), 0);
		assert_int_equal(receive_queue_post(&queue, &wr), -ENOMEM);
		assert_int_equal(receive_queue_count(&queue), queue.capacity);
		receive_queue_fini(&queue);
	}
}

static void a_queue_of_none_takes_and_gives_none(void **state) {
	struct receive_queue queue;
	struct receive_work work;
	struct ibv_recv_wr wr = {0};

	(void)state;
	assert_int_equal(receive_queue_init(&queue, 0, SGES), 0);
	assert_int_equal(receive_queue_post(&queue, &wr), -ENOMEM);
	assert_false(receive_queue_pop(&queue, &work, NULL));
	receive_queue_fini(&queue);
}

static void pieces_are_counted_and_added_up_before_they_are_taken(void **state) {
	static const struct {
		int pieces;
		uint32_t each;
		int err;
	} cases[] = {
		{0, 0, 0},
		{1, UINT32_C(1) << 31, 0},
		{2, UINT32_C(1) << 30, 0},
		{3, UINT32_C(1) << 30, -EINVAL},
		{2, UINT32_MAX, -EINVAL},
		{1, (UINT32_C(1) << 31) + 1, -EINVAL},
		{4, 1, -EINVAL},
		{-1, 1, -EINVAL},
		{INT32_MAX, 1, -EINVAL},
		{INT32_MIN, 1, -EINVAL},
	};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		uint32_t each = cases[n].each;
		struct ibv_sge sges[4] = {{0, each, 0}, {0, each, 0}, {0, each, 0}, {0, each, 0}};
		struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = cases[n].pieces};
		struct receive_queue queue;

		assert_int_equal(receive_queue_init(&queue, 4, SGES), 0);
		assert_int_equal(receive_queue_post(&queue, &wr), cases[n].err);
		assert_int_equal(receive_queue_count(&queue), cases[n].err == 0);
		receive_queue_fini(&queue);
	}
}

UNIT_GROUP(soft_receive_queue) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_comes_out_first_over_every_wrap),
		cmocka_unit_test(it_holds_at_least_what_was_asked_for),
		cmocka_unit_test(a_queue_of_none_takes_and_gives_none),
		cmocka_unit_test(pieces_are_counted_and_added_up_before_they_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
