// SPDX-License-Identifier: BSD-3-Clause
#include "queue.h"
#include "random.h"
#include "stats.h"

#include <support/cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	struct pool *pool;
	struct queue *queue;
};

static int setup(void **state) {
	static struct fixture fixture;

	assert_int_equal(pool_create(&fixture.pool), 0);
	fixture.queue = calloc(1, sizeof(*fixture.queue));
	assert_non_null(fixture.queue);
	assert_int_equal(queue_init(fixture.queue, fixture.pool), 0);
	*state = &fixture;
	return 0;
}

static int teardown(void **state) {
	struct fixture *fixture = *state;

	queue_fini(fixture->queue);
	free(fixture->queue);
	pool_destroy(fixture->pool);
	return 0;
}

static void push(struct queue *queue, uint64_t at_ns, uint32_t target) {
	struct event *event = queue_event(queue, 0, 0);

	event->target = target;
	queue_push(queue, event, at_ns);
}

// Pop the next event, check its time, and return its target.
static uint32_t pop(struct queue *queue, uint64_t at_ns) {
	struct event *event = queue_pop(queue, UINT64_MAX);
	uint32_t target;

	assert_non_null(event);
	assert_int_equal(event->at_ns, at_ns);
	target = event->target;
	queue_release(queue, event);
	return target;
}

static void queue_without_events_gives_none(void **state) {
	struct fixture *fixture = *state;

	assert_null(queue_pop(fixture->queue, UINT64_MAX));
	assert_null(queue_pop(fixture->queue, 0));
}

static void events_of_one_time_come_in_the_order_they_were_pushed(void **state) {
	struct fixture *fixture = *state;

	for (uint32_t n = 0; n < 1000; n++)
		push(fixture->queue, 5000000000, n);
	for (uint32_t n = 0; n < 1000; n++)
		assert_int_equal(pop(fixture->queue, 5000000000), n);
}

static void an_event_after_the_limit_stays_and_earlier_ones_may_still_come(void **state) {
	struct fixture *fixture = *state;

	push(fixture->queue, 20000000000, 2);
	assert_null(queue_pop(fixture->queue, 10000000000));
	// The wheel may have advanced past this slot already.
	push(fixture->queue, 10500000000, 1);
	assert_int_equal(pop(fixture->queue, 10500000000), 1);
	assert_int_equal(pop(fixture->queue, 20000000000), 2);
	assert_null(queue_pop(fixture->queue, UINT64_MAX));
}

static void times_from_nanoseconds_to_months_are_kept_apart(void **state) {
	static const uint64_t times[] = {
		0,
		1,
		32767,
		32768,
		1000000,
		33554432,
		1000000000,
		34359738368,
		35184372088832,
		86400000000000,
		86400000000001,
		2592000000000000,
		2592000000000000,
	};
	struct fixture *fixture = *state;
	uint32_t count = sizeof(times) / sizeof(times[0]);

	for (uint32_t n = count; n-- > 0;)
		push(fixture->queue, times[n], n);
	for (uint32_t n = 0; n < count; n++)
		assert_int_equal(times[pop(fixture->queue, times[n])], times[n]);
}

// Compare with a simple model: the waiting event with the least time, then number.
static void any_mix_of_pushes_and_pops_comes_in_order(void **state) {
	enum { COUNT = 3000 };
	static uint64_t times[COUNT];
	static bool waits[COUNT];
	struct fixture *fixture = *state;
	uint64_t random = 11;
	uint64_t now_ns = 0;
	uint32_t pushed = 0;

	while (pushed < COUNT) {
		uint32_t first = COUNT;
		uint32_t burst = random_below(&random, 6);

		for (uint32_t n = 0; n < burst && pushed < COUNT; n++) {
			uint32_t scale = random_below(&random, 45);

			times[pushed] = now_ns + splitmix_next(&random) % (UINT64_C(1) << scale);
			waits[pushed] = true;
			push(fixture->queue, times[pushed], pushed);
			pushed++;
		}
		for (uint32_t n = 0; n < pushed; n++) {
			if (waits[n] && (first == COUNT || times[n] < times[first]))
				first = n;
		}
		if (first == COUNT)
			continue;
		now_ns = times[first];
		assert_int_equal(pop(fixture->queue, now_ns), first);
		waits[first] = false;
	}
}

static void copies_of_a_block_are_equal_until_one_is_written_to(void **state) {
	static const size_t sizes[] = {100, 5000, 100000, 1000000};
	struct fixture *fixture = *state;

	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		uint8_t *model = pool_take_zeroed(fixture->pool, sizes[n]);
		uint8_t *copies[3];

		model[sizes[n] - 1] = 7;
		for (uint32_t copy = 0; copy < 3; copy++)
			copies[copy] = pool_copy(fixture->pool, model, sizes[n]);
		copies[1][0] = 9;
		pool_give(fixture->pool, copies[0], sizes[n]);
		assert_int_equal(model[0], 0);
		pool_give(fixture->pool, model, sizes[n]);
		// At the same address, but a new block.
		model = pool_take_zeroed(fixture->pool, sizes[n]);
		model[0] = 3;
		copies[0] = pool_copy(fixture->pool, model, sizes[n]);
		assert_int_equal(copies[0][0], 3);
		assert_int_equal(copies[0][sizes[n] - 1], 0);
		assert_int_equal(copies[1][0], 9);
		assert_int_equal(copies[2][0], 0);
		assert_int_equal(copies[1][sizes[n] - 1], 7);
		assert_int_equal(copies[2][sizes[n] - 1], 7);
		for (uint32_t copy = 0; copy < 3; copy++)
			pool_give(fixture->pool, copies[copy], sizes[n]);
		pool_give(fixture->pool, model, sizes[n]);
	}
}

static void the_pool_reuses_what_it_was_given_and_clears_on_request(void **state) {
	static const size_t sizes[] = {0, 1, 16, 17, 512, 513, 640, 65536, 4194304, 4194305};
	struct fixture *fixture = *state;

	for (uint32_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		uint8_t *block = pool_take(fixture->pool, sizes[n]);

		assert_non_null(block);
		memset(block, 0xee, sizes[n]);
		pool_give(fixture->pool, block, sizes[n]);
		block = pool_take_zeroed(fixture->pool, sizes[n]);
		for (size_t at = 0; at < sizes[n]; at++)
			assert_int_equal(block[at], 0);
		pool_give(fixture->pool, block, sizes[n]);
	}
	pool_give(fixture->pool, NULL, 100);
}

static void quantiles_are_near_and_never_above_the_largest(void **state) {
	struct stats *stats = calloc(1, sizeof(*stats));

	(void)state;
	assert_non_null(stats);
	assert_true(isnan(stats_quantile(stats, 0.5)));
	assert_true(isnan(stats_mean(stats)));
	for (uint64_t n = 1; n <= 10000; n++)
		stats_add(stats, n * 1000);
	assert_true(fabs(stats_quantile(stats, 0.5) / 5e6 - 1) < 0.04);
	assert_true(fabs(stats_quantile(stats, 0.99) / 9.9e6 - 1) < 0.04);
	assert_true(stats_quantile(stats, 1) == 1e7);
	assert_int_equal(stats->min, 1000);
	stats_add(stats, UINT64_MAX);
	assert_true(stats_quantile(stats, 1) == (double)UINT64_MAX);
	free(stats);
}

UNIT_GROUP(sim_queue) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(queue_without_events_gives_none, setup, teardown),
		cmocka_unit_test_setup_teardown(
			events_of_one_time_come_in_the_order_they_were_pushed, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			an_event_after_the_limit_stays_and_earlier_ones_may_still_come, setup,
			teardown
		),
		cmocka_unit_test_setup_teardown(
			times_from_nanoseconds_to_months_are_kept_apart, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			any_mix_of_pushes_and_pops_comes_in_order, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			the_pool_reuses_what_it_was_given_and_clears_on_request, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			copies_of_a_block_are_equal_until_one_is_written_to, setup, teardown
		),
		cmocka_unit_test(quantiles_are_near_and_never_above_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
