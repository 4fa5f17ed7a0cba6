// SPDX-License-Identifier: BSD-3-Clause
// Losses that hardware hides: answers that come one timeout late. Noise, slowness and busy
// machines must not count as loss.
#include "control/fabric/probe/path_scene.h"

#include <stdio.h>

#define TIMEOUT (UINT64_C(4096) << 14) // 67 ms
#define USUAL (10 * US)

static uint32_t own_late;
static uint64_t resent = PATH_RESENT_UNKNOWN;

static int begin(void **state) {
	own_late = 0;
	resent = PATH_RESENT_UNKNOWN;
	if (scene_make(state) != 0)
		return -1;
	path_memory_set_resend(scene.path, TIMEOUT);
	path_memory_set_context(scene.path, scene.now_ns, 0, resent);
	scene_good_for(120, USUAL);
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
	return 0;
}

// One read a second. With this probability it is lost, and so is its retransmission. The device
// needs 2.1 timeouts, which the specification permits.
#define WAIT (21 * TIMEOUT / 10)

static bool one(uint32_t permille) {
	uint64_t wait_ns = 0;

	while (scene_draw(1000) < permille && wait_ns < 3 * WAIT)
		wait_ns += WAIT + scene_draw(WAIT / 20);
	path_memory_set_context(scene.path, scene.now_ns, own_late, resent);
	scene_good(0, USUAL + scene_draw(USUAL / 20) + wait_ns);
	return wait_ns > 0;
}

static uint32_t seconds_until(enum observation_kind kind, uint32_t permille, uint32_t most_s) {
	for (uint32_t n = 1; n <= most_s; n++) {
		one(permille);
		if (scene.kind == kind)
			return n;
	}
	return 0;
}

static void path_that_loses_behind_the_device_is_lossy_and_well_again(void **state) {
	static const uint32_t chances[] = {50, 100, 300};

	for (size_t n = 0; n < sizeof(chances) / sizeof(chances[0]); n++) {
		uint32_t seen_s;

		if (n > 0) {
			scene_drop(state);
			begin(state);
		}
		seen_s = seconds_until(OBSERVATION_LOSSY, chances[n], 300);
		assert_int_not_equal(seen_s, 0);
		printf("# %u permille: lossy after %u s\n", chances[n], seen_s);
		assert_in_range(scene_summary().lost_permille, 1, 600);
		assert_int_equal(scene_summary().lost_size_index, 0); // of any size
		assert_int_equal(scene_summary().lost, 0);	      // no probe is lost
		assert_int_not_equal(seconds_until(OBSERVATION_GOOD, 0, 130), 0);
		for (uint32_t s = 0; s < 300; s++) {
			one(0);
			assert_int_equal(scene.kind, OBSERVATION_GOOD);
		}
	}
}

// Behaviour of a path from some second on that is not loss.
struct noise {
	const char *what;
	uint64_t usual_ns;
	uint32_t permille;
	uint64_t least_ns, most_ns;
};

static void what_is_only_noisy_or_slow_is_not_lossy(void **state) {
	static const struct noise noises[] = {
		{"a tail from a millisecond to a second", USUAL, 300, 1000 * US, 1000000 * US},
		{"a tail from five to a thousand milliseconds", USUAL, 100, 5000 * US,
		 1000000 * US},
		{"a tail from one to a hundred milliseconds", USUAL, 100, 1000 * US, 100000 * US},
		{"a tail from five to three hundred milliseconds", USUAL, 100, 5000 * US,
		 300000 * US},
		{"a tail from 20 to 150 milliseconds", USUAL, 100, 20000 * US, 150000 * US},
		{"a tail up to ten milliseconds", USUAL, 300, 100 * US, 10000 * US},
		{"ten times as slow", 10 * USUAL, 0, 0, 1},
		{"a thousand times as slow", 1000 * USUAL, 0, 0, 1},
		{"as slow as the timeout", 7000 * USUAL, 0, 0, 1},
		{"one late answer in two minutes", USUAL, 8, TIMEOUT, 4 * TIMEOUT},
	};

	for (size_t n = 0; n < sizeof(noises) / sizeof(noises[0]); n++) {
		const struct noise *noise = &noises[n];

		scene_drop(state);
		begin(state);
		for (uint32_t s = 0; s < 1800; s++) {
			uint64_t wait_ns =
				scene_draw(1000) < noise->permille
					? noise->least_ns +
						  scene_draw(noise->most_ns - noise->least_ns)
					: 0;

			path_memory_set_context(scene.path, scene.now_ns, 0, resent);
			scene_good(0, noise->usual_ns + wait_ns);
			if (scene.kind == OBSERVATION_LOSSY)
				fail_msg("%s: lossy after %u s", noise->what, s);
		}
	}
}

// Our own machine is slow: reads of the own device are as late.
static void what_reads_of_oneself_show_too_is_not_lossy(void **state) {
	(void)state;
	for (uint32_t s = 0; s < 600; s++) {
		own_late = path_memory_late_permille(scene.path, scene.now_ns) / 2 + 1;
		one(100);
		assert_int_not_equal(scene.kind, OBSERVATION_LOSSY);
	}
}

static void where_the_port_counts_it_has_to_have_counted(void **state) {
	(void)state;
	resent = 40; // counted earlier
	one(0);
	assert_int_equal(seconds_until(OBSERVATION_LOSSY, 100, 600), 0);
	resent++;
	assert_in_range(seconds_until(OBSERVATION_LOSSY, 100, 60), 1, 60);
}

// A virtual function never counts, so its counter is no counter-evidence.
static void a_counter_that_never_moved_says_nothing(void **state) {
	(void)state;
	resent = 0;
	assert_int_not_equal(seconds_until(OBSERVATION_LOSSY, 100, 180), 0);
}

static void counters_may_go_and_begin_anew(void **state) {
	static const uint64_t totals[] = {5, PATH_RESENT_UNKNOWN, 5, 0, UINT64_MAX - 1, 3};

	(void)state;
	for (uint32_t s = 0; s < 300; s++) {
		resent = totals[s % (sizeof(totals) / sizeof(totals[0]))];
		one(0);
		assert_int_equal(scene.kind, OBSERVATION_GOOD);
	}
}

static void without_hardware_late_answers_are_no_losses(void **state) {
	(void)state;
	path_memory_set_resend(scene.path, 0);
	assert_int_equal(seconds_until(OBSERVATION_LOSSY, 300, 600), 0);
}

static void another_start_of_the_peer_begins_anew(void **state) {
	(void)state;
	assert_int_not_equal(seconds_until(OBSERVATION_LOSSY, 300, 180), 0);
	path_memory_reopened(scene.path, scene.now_ns);
	scene_good(1, USUAL); // reads the head of the page
	for (uint32_t s = 0; s < 60; s++) {
		one(0);
		assert_int_not_equal(scene.kind, OBSERVATION_LOSSY);
	}
	assert_int_equal(scene.kind, OBSERVATION_GOOD);
}

UNIT_GROUP(path_resend) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, scene_drop)
		TEST(path_that_loses_behind_the_device_is_lossy_and_well_again),
		TEST(what_is_only_noisy_or_slow_is_not_lossy),
		TEST(what_reads_of_oneself_show_too_is_not_lossy),
		TEST(where_the_port_counts_it_has_to_have_counted),
		TEST(a_counter_that_never_moved_says_nothing),
		TEST(counters_may_go_and_begin_anew),
		TEST(without_hardware_late_answers_are_no_losses),
		TEST(another_start_of_the_peer_begins_anew),
	};

	return cmocka_run_group_tests_name("path_resend", tests, NULL, NULL);
}
