// SPDX-License-Identifier: BSD-3-Clause
// The waits of this agent's threads for a processor, as the kernel counts them.
#include "fabric/waits.h"

#include <support/cmocka.h>

#include <string.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS
#define US UINT64_C(1000)

static struct waits waits;
static struct schedstat stats[FABRIC_THREADS_MAX];
static uint64_t now_ns;

static int begin(void **state) {
	(void)state;
	memset(&waits, 0, sizeof(waits));
	memset(stats, 0, sizeof(stats));
	for (uint32_t n = 0; n < 3; n++)
		stats[n] = (struct schedstat){.ran_ns = SEC, .waited_ns = SEC, .turns = 1000};
	now_ns = 100 * SEC;
	assert_true(waits_update(&waits, now_ns, stats));
	return 0;
}

// Let a thread run for 1 ms in the next second.
static void second(uint32_t thread, uint64_t waited_ns, uint64_t turns) {
	stats[thread].ran_ns += MS;
	stats[thread].waited_ns += waited_ns;
	stats[thread].turns += turns;
	now_ns += SEC;
	assert_true(waits_update(&waits, now_ns, stats));
}

static void the_mean_wait_of_the_slowest_thread_counts_for_two_seconds(void **state) {
	(void)state;
	second(FABRIC_THREAD_ENGINE, 20 * MS, 10);
	assert_int_equal(waits_turn_ns(&waits), 2 * MS);
	second(FABRIC_THREAD_WORKER, 5 * MS, 10);
	assert_int_equal(waits_turn_ns(&waits), 2 * MS);
	second(FABRIC_THREAD_WORKER, 0, 10);
	assert_int_equal(waits_turn_ns(&waits), MS / 2);
	second(FABRIC_THREAD_WORKER, 0, 10);
	assert_int_equal(waits_turn_ns(&waits), 0);
}

static void usual_waits_and_those_of_control_delay_no_probe(void **state) {
	(void)state;
	second(FABRIC_THREAD_WORKER, 900 * US, 10);
	assert_int_equal(waits_turn_ns(&waits), 0);
	second(FABRIC_THREAD_CONTROL, 500 * MS, 10);
	assert_int_equal(waits_turn_ns(&waits), 0);
	assert_int_equal(waits.permille, 500);
}

static void a_thread_that_spins_meets_few_probes_while_it_waits(void **state) {
	(void)state;
	stats[FABRIC_THREAD_WORKER].ran_ns += 960 * MS;
	second(FABRIC_THREAD_WORKER, 40 * MS, 10);
	assert_int_equal(waits_turn_ns(&waits), 0);
}

static void totals_of_another_thread_are_not_compared(void **state) {
	(void)state;
	stats[FABRIC_THREAD_ENGINE] = (struct schedstat){.ran_ns = 5, .waited_ns = 5, .turns = 5};
	second(FABRIC_THREAD_WORKER, 0, 1);
	assert_int_equal(waits_turn_ns(&waits), 0);
	second(FABRIC_THREAD_ENGINE, 30 * MS, 10);
	assert_int_equal(waits_turn_ns(&waits), 3 * MS);
}

static void two_readings_within_a_second_are_one(void **state) {
	(void)state;
	now_ns += WAITS_UPDATE_NS - 1;
	assert_false(waits_update(&waits, now_ns, stats));
	assert_true(waits_update(&waits, now_ns + 1, stats));
}

static void five_of_eight_seconds_begin_a_shortage_and_seven_quiet_ones_end_it(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 5; n++) {
		assert_false(waits.is_short);
		second(FABRIC_THREAD_CONTROL, 100 * MS, 10);
	}
	assert_true(waits.is_short);
	assert_int_equal(waits.since_ns, now_ns - 8 * SEC);
	for (uint32_t n = 0; n < 7; n++) {
		assert_true(waits.is_short);
		second(FABRIC_THREAD_CONTROL, 99 * MS, 10);
	}
	assert_false(waits.is_short);
}

static void a_sample_may_have_waited_at_both_ends_or_for_its_turn(void **state) {
	(void)state;
	assert_int_equal(waits_sample_ns(&waits, 50 * US, 0), 0);
	assert_int_equal(waits_sample_ns(&waits, 700 * US, 0), 700 * US);
	second(FABRIC_THREAD_ENGINE, 20 * MS, 10);
	assert_int_equal(waits_sample_ns(&waits, 700 * US, 0), 4 * MS);
	assert_int_equal(waits_sample_ns(&waits, 50 * MS, 0), 50 * MS);
	assert_int_equal(waits_sample_ns(&waits, 0, 3 * MS), 10 * MS);
	// The page of a peer may hold any value.
	assert_int_equal(
		waits_sample_ns(&waits, 0, UINT64_MAX), 2 * (2 * MS + PATH_LATENCY_MAX_NS)
	);
}

static void a_responders_wait_is_used_for_ten_seconds(void **state) {
	(void)state;
	assert_int_equal(waits_responder_ns(3 * MS, 5 * SEC, 15 * SEC), 3 * MS);
	assert_int_equal(waits_responder_ns(3 * MS, 5 * SEC, 15 * SEC + 1), 0);
	// A probe that began before the last read of the page.
	assert_int_equal(waits_responder_ns(3 * MS, 5 * SEC, 4 * SEC), 3 * MS);
}

UNIT_GROUP(waits) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, begin)
		TEST(the_mean_wait_of_the_slowest_thread_counts_for_two_seconds),
		TEST(usual_waits_and_those_of_control_delay_no_probe),
		TEST(a_thread_that_spins_meets_few_probes_while_it_waits),
		TEST(totals_of_another_thread_are_not_compared),
		TEST(two_readings_within_a_second_are_one),
		TEST(five_of_eight_seconds_begin_a_shortage_and_seven_quiet_ones_end_it),
		TEST(a_sample_may_have_waited_at_both_ends_or_for_its_turn),
		TEST(a_responders_wait_is_used_for_ten_seconds),
	};

	return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
