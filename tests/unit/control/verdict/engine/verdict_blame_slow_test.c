// SPDX-License-Identifier: BSD-3-Clause
// Blame for slow or lossy paths, and which good observations exonerate a node.
#include "control/verdict/engine/verdict_blame.h"

static void see_without_a_past(struct bed *bed, uint32_t observer, uint32_t median_ns) {
	struct observation observation = bed_observation(observer, 5, OBSERVATION_GOOD);

	observation.median_ns = median_ns;
	observation.baseline_ns = 0;
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), 0);
}

static void one_without_a_past_excuses_a_slow_node_only_by_being_quick(void **state) {
	static const struct {
		uint32_t median_ns;
		enum verdict verdict;
		const char *reason;
	} rows[] = {
		{12000, VERDICT_PATH_DEGRADED, "PulseSlow"},
		{8000, VERDICT_PATH_DEGRADED, "PulseSlow"},
		{5000, VERDICT_HEALTHY, "None"},
		{0, VERDICT_HEALTHY, "None"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(AGENTS);

		bed_see(bed, 1, 5, OBSERVATION_DEGRADED);
		bed_see(bed, 2, 5, OBSERVATION_DEGRADED);
		see_without_a_past(bed, 3, rows[n].median_ns);
		see_without_a_past(bed, 4, rows[n].median_ns);
		settle(bed);
		bed_expect(bed, 5, rows[n].verdict, rows[n].reason);
		bed_destroy(bed);
	}
}

// `lost` is the size from which on some observers lose reads. `unproven` is the size from which
// on the others have no good read yet.
static void good_looks_excuse_a_lossy_node_only_of_what_passed(void **state) {
	static const struct {
		uint32_t lost, unproven;
		enum verdict verdict;
	} rows[] = {
		{65536, 0, VERDICT_HEALTHY},	   {65536, 65536, VERDICT_PATH_LOSSY},
		{65536, 4096, VERDICT_PATH_LOSSY}, {4096, 65536, VERDICT_HEALTHY},
		{4096, 4096, VERDICT_PATH_LOSSY},  {0, 65536, VERDICT_HEALTHY},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(AGENTS);

		for (uint32_t observer = 1; observer <= 6; observer++) {
			bool lossy = observer <= 2;
			struct observation observation = bed_observation(
				observer, 7, lossy ? OBSERVATION_LOSSY : OBSERVATION_GOOD
			);

			observation.lost_bytes = lossy ? rows[n].lost : rows[n].unproven;
			assert_int_equal(
				verdict_observation(bed->engine, bed->now_ns, &observation), 0
			);
		}
		settle(bed);
		bed_expect(bed, 7, rows[n].verdict, NULL);
		bed_destroy(bed);
	}
}

// A node that loses all large reads, while other observers read the same peers well.
static void who_reads_only_little_well_may_lose_what_is_large_itself(void **state) {
	static const struct {
		// Sizes without a good read, of the node and of the other observers.
		uint32_t own, others;
		enum verdict verdict;
	} rows[] = {
		{65536, 0, VERDICT_PATH_LOSSY},
		{0, 0, VERDICT_HEALTHY},
		{65536, 65536, VERDICT_HEALTHY},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(AGENTS);
		struct observation own = bed_observation(7, 4, OBSERVATION_GOOD);

		own.lost_bytes = rows[n].own;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &own), 0);
		for (uint32_t subject = 1; subject <= 3; subject++) {
			struct observation other = bed_observation(5, subject, OBSERVATION_GOOD);

			bed_see(bed, 7, subject, OBSERVATION_LOSSY);
			other.lost_bytes = rows[n].others;
			assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &other), 0);
		}
		bed_pass(bed, 3 * SEC);
		bed_expect(bed, 7, rows[n].verdict, NULL);
		bed_destroy(bed);
	}
}

// Create a bed in which agent 4 loses packets, as others have found.
static struct bed *bed_with_one_that_loses(void) {
	struct bed *bed = bed_create(9);

	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see(bed, observer, 4, OBSERVATION_LOSSY);
	bed_see(bed, 8, 4, OBSERVATION_GOOD);
	settle(bed);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	return bed;
}

static void one_that_loses_packets_blames_nobody_at_its_other_ends(void **state) {
	static const enum observation_kind kinds[] = {OBSERVATION_LOSSY, OBSERVATION_DEGRADED};

	(void)state;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct bed *bed = bed_with_one_that_loses();

		// Also, the path between 5 and 6 is bad.
		bed_see(bed, 4, 5, kinds[n]);
		bed_see(bed, 6, 5, kinds[n]);
		bed_pass(bed, 5 * SEC);
		bed_expect(bed, 5, VERDICT_HEALTHY, NULL);
		bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
		bed_destroy(bed);
	}
}

static void who_loses_to_one_that_loses_is_not_to_blame_for_one_path_more(void **state) {
	struct bed *bed = bed_with_one_that_loses();

	(void)state;
	bed_see(bed, 6, 4, OBSERVATION_LOSSY);
	bed_see(bed, 6, 7, OBSERVATION_LOSSY);
	bed_pass(bed, SEC / 2);
	bed_see(bed, 8, 4, OBSERVATION_GOOD);
	bed_see(bed, 8, 7, OBSERVATION_GOOD);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 6, VERDICT_HEALTHY, NULL);
	bed_destroy(bed);
}

// Node 2 has one path that both ends call slow. One more slow report, from a busy machine, does
// not make node 2 a slow node.
static void path_that_both_ends_call_slow_speaks_against_neither_of_them(void **state) {
	struct bed *bed = bed_create(4);

	(void)state;
	bed_see(bed, 1, 2, OBSERVATION_DEGRADED);
	bed_see(bed, 2, 1, OBSERVATION_DEGRADED);
	good_from(bed, 2, 0, 0);
	good_from(bed, 1, 0, 0);
	bed_see(bed, 3, 2, OBSERVATION_DEGRADED);
	settle(bed);
	expect_all_well(bed);
	assert_int_equal(path_of(bed, 1, 2).blame, PATH_BLAME_PATH);
	// With a second such report it is a slow node.
	bed_see(bed, 0, 2, OBSERVATION_DEGRADED);
	settle(bed);
	bed_expect(bed, 2, VERDICT_PATH_DEGRADED, "PulseSlow");
	bed_expect(bed, 1, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void one_of_three_that_finds_both_others_slow_is_slow(void **state) {
	struct bed *bed = bed_create(3);

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		bed_see(bed, n, 2, OBSERVATION_DEGRADED);
		bed_see(bed, 2, n, OBSERVATION_DEGRADED);
	}
	good_from(bed, 0, 1, 1);
	good_from(bed, 1, 0, 0);
	settle(bed);
	bed_expect(bed, 2, VERDICT_PATH_DEGRADED, "PulseSlow");
	bed_destroy(bed);
}

// Node 5 finds two of its six neighbours slow, because these are short of processor time.
static void two_slow_paths_of_six_blame_no_node(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t n = 6; n < 12; n++)
		bed_see(bed, n, 5, OBSERVATION_GOOD);
	bed_pass(bed, 12 * SEC);
	for (uint32_t subject = 6; subject <= 7; subject++) {
		bed_see(bed, 5, subject, OBSERVATION_DEGRADED);
		good_from(bed, subject, 8, 9);
	}
	bed_pass(bed, 3 * SEC);
	good_from(bed, 6, 8, 9);
	good_from(bed, 7, 8, 9);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// A reader whose machine is busy needs up to two seconds to contradict.
static void the_other_readers_have_two_seconds_to_contradict(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	good_from(bed, 5, 8, 11);
	bed_pass(bed, 12 * SEC);
	bed_see(bed, 1, 5, OBSERVATION_DEGRADED);
	bed_see(bed, 2, 5, OBSERVATION_DEGRADED);
	bed_pass(bed, 3 * SEC / 2);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	good_from(bed, 5, 8, 11);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Its reads of others may be the first ones, for seconds.
static void one_that_loses_reads_does_not_excuse_a_counter_that_stands(void **state) {
	struct bed *bed = bed_with_one_that_loses();

	(void)state;
	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see_reach(bed, observer, 5, OBSERVATION_STANDING, VERDICT_REACH_ACCEPTS);
	bed_see_reach(bed, 4, 5, OBSERVATION_GOOD, VERDICT_REACH_ANSWERS);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_AGENT_FROZEN, "PulseStands");
	bed_destroy(bed);
}

// After a node froze, the overlay makes new links to its neighbours. Statistics of a new path
// need a window of ten seconds.
static void who_began_to_look_late_excuses_nothing_before_a_window_has_passed(void **state) {
	static const enum observation_kind kinds[] = {OBSERVATION_LOSSY, OBSERVATION_DEGRADED};

	(void)state;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct bed *bed = bed_create(9);

		for (uint32_t turns = 0; turns < 5; turns++) {
			bed_see_two(bed, 5, kinds[n]);
			bed_pass(bed, 3 * SEC);
		}
		// New observers without enough reads, and later with enough.
		for (uint32_t turns = 0; turns < 3; turns++) {
			bed_see_two(bed, 5, kinds[n]);
			bed_see(bed, 6, 5, OBSERVATION_GOOD);
			bed_see(bed, 7, 5, OBSERVATION_GOOD);
			bed_pass(bed, 3 * SEC);
			assert_true(bed_view(bed, 5).verdict > VERDICT_HEALTHY);
		}
		bed_see_two(bed, 5, kinds[n]);
		bed_pass(bed, SEC);
		bed_see(bed, 6, 5, OBSERVATION_GOOD);
		bed_see(bed, 7, 5, OBSERVATION_GOOD);
		bed_pass(bed, 4 * SEC);
		bed_expect(bed, 5, VERDICT_HEALTHY, NULL);
		bed_destroy(bed);
	}
}

UNIT_GROUP(verdict_blame_slow) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_without_a_past_excuses_a_slow_node_only_by_being_quick),
		cmocka_unit_test(good_looks_excuse_a_lossy_node_only_of_what_passed),
		cmocka_unit_test(who_reads_only_little_well_may_lose_what_is_large_itself),
		cmocka_unit_test(one_that_loses_packets_blames_nobody_at_its_other_ends),
		cmocka_unit_test(who_loses_to_one_that_loses_is_not_to_blame_for_one_path_more),
		cmocka_unit_test(path_that_both_ends_call_slow_speaks_against_neither_of_them),
		cmocka_unit_test(one_of_three_that_finds_both_others_slow_is_slow),
		cmocka_unit_test(two_slow_paths_of_six_blame_no_node),
		cmocka_unit_test(the_other_readers_have_two_seconds_to_contradict),
		cmocka_unit_test(one_that_loses_reads_does_not_excuse_a_counter_that_stands),
		cmocka_unit_test(who_began_to_look_late_excuses_nothing_before_a_window_has_passed),
	};

	return cmocka_run_group_tests_name("verdict_blame_slow", tests, NULL, NULL);
}
