// SPDX-License-Identifier: BSD-3-Clause
// Blame: a path fault is no node fault, and false reports blame only their sender.
#include "control/verdict/engine/verdict_blame.h"

static void a_path_that_is_bad_for_one_blames_no_node(void **state) {
	static const enum observation_kind kinds[] = {
		OBSERVATION_SILENT, OBSERVATION_STANDING, OBSERVATION_DEGRADED, OBSERVATION_LOSSY};

	(void)state;
	for (uint32_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct bed *bed = bed_create(AGENTS);

		good_from(bed, 5, 2, 4);
		bed_see(bed, 1, 5, kinds[n]);
		bed_see(bed, 5, 1, kinds[n]); // the other end finds the path bad as well
		good_from(bed, 1, 2, 4);
		settle(bed);
		expect_all_well(bed);
		assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_PATH);
		assert_int_equal(path_of(bed, 5, 1).blame, PATH_BLAME_PATH);
		assert_int_equal(path_of(bed, 1, 5).node, 0);
		bed_destroy(bed);
	}
}

static void one_observer_of_many_is_not_enough(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_pass(bed, 20 * SEC);
	expect_all_well(bed);
	bed_destroy(bed);
}

static void of_two_agents_one_is_enough_and_drains_nobody(void **state) {
	struct bed *bed = bed_create(2);

	(void)state;
	bed_see(bed, 0, 1, OBSERVATION_SILENT);
	settle(bed);
	bed_expect(bed, 1, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 1).confidence, VERDICT_LIKELY);
	assert_int_equal(bed_view(bed, 1).advice, VERDICT_ADVICE_WARN);
	bed_destroy(bed);
}

static void a_node_that_nobody_reads_is_to_blame_and_its_observers_are_not(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t n = 1; n <= 4; n++) {
		bed_see(bed, n, 5, OBSERVATION_SILENT);
		bed_see(bed, 5, n, OBSERVATION_SILENT);
		good_from(bed, n, 6, 8);
	}
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 5).confidence, VERDICT_SURE);
	assert_int_equal(bed_view(bed, 5).observer_count, 4);
	for (uint32_t n = 1; n <= 4; n++) {
		bed_expect(bed, n, VERDICT_HEALTHY, "None");
		assert_int_equal(path_of(bed, n, 5).blame, PATH_BLAME_NODE);
		assert_int_equal(path_of(bed, n, 5).node, bed_id(5));
		assert_int_equal(path_of(bed, 5, n).blame, PATH_BLAME_NODE);
		assert_int_equal(path_of(bed, 5, n).node, bed_id(5));
	}
	bed_destroy(bed);
}

static void the_sentence_has_the_figures(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	settle(bed);
	assert_string_equal(
		bed_view(bed, 5).evidence,
		"2 of 2 observers cannot read its pulse; its agent answers; "
		"own ports of the observers are good"
	);
	bed_destroy(bed);
	bed = bed_create(AGENTS);
	bed_see(bed, 1, 5, OBSERVATION_DEGRADED);
	bed_see(bed, 2, 5, OBSERVATION_DEGRADED);
	settle(bed);
	assert_string_equal(
		bed_view(bed, 5).evidence,
		"2 of 2 paths to it are slow: a median of 12 us, it was 4.0 us, through its "
		"rail dev0"
	);
	bed_destroy(bed);
}

static void who_reads_nobody_that_others_read_is_to_blame(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t subject = 2; subject <= 6; subject++) {
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
		good_from(bed, subject, 7, 8);
	}
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 1, VERDICT_FABRIC_DOWN, "PeersUnread");
	for (uint32_t subject = 2; subject <= 6; subject++) {
		bed_expect(bed, subject, VERDICT_HEALTHY, "None");
		assert_int_equal(path_of(bed, 1, subject).node, bed_id(1));
	}
	bed_destroy(bed);
}

static void who_has_not_yet_said_that_all_is_mended_is_not_to_blame(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t subject = 2; subject <= 4; subject++)
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
	bed_pass(bed, 5 * SEC);
	for (uint32_t subject = 2; subject <= 4; subject++)
		good_from(bed, subject, 7, 8);
	bed_pass(bed, 3 * SEC);
	expect_all_well(bed);
	bed_destroy(bed);
}

static void one_that_is_cut_off_does_not_count_what_it_sees_itself(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 0, OBSERVATION_SILENT);
	bed_see(bed, 2, 0, OBSERVATION_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 0, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_see(bed, 0, 5, OBSERVATION_SILENT);
	bed_see(bed, 3, 5, OBSERVATION_SILENT); // a single path of its own, which is bad
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void a_liar_that_others_read_well_blames_nobody_and_is_not_blamed(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t subject = 2; subject <= 9; subject++) {
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
		good_from(bed, subject, 10, 11);
	}
	good_from(bed, 1, 10, 11);
	settle(bed);
	expect_all_well(bed);
	bed_destroy(bed);
}

static void two_liars_are_outweighed_by_one_who_reads(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t subject = 3; subject <= 9; subject++) {
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
		bed_see(bed, 2, subject, OBSERVATION_SILENT);
		good_from(bed, subject, 10, 10);
	}
	settle(bed);
	for (uint32_t subject = 3; subject <= 9; subject++)
		bed_expect(bed, subject, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void who_sees_well_has_a_moment_to_say_so(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	bed_pass(bed, 300 * MS);
	expect_all_well(bed);
	bed_see(bed, 3, 5, OBSERVATION_GOOD);
	bed_pass(bed, 10 * SEC);
	expect_all_well(bed);
	assert_int_equal(bed->changes, 0);
	bed_destroy(bed);
}

static void a_good_look_from_before_does_not_excuse(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	good_from(bed, 5, 3, 6);
	bed_pass(bed, 2 * SEC);
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// On a split fabric the overlay makes new links from time to time. A new observer that cannot
// read the node must not make earlier good observations look outdated.
static void one_that_comes_late_does_not_outdate_good_looks(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t observer = 1; observer <= 3; observer++)
		bed_see(bed, observer, 5, OBSERVATION_SILENT);
	good_from(bed, 5, 6, 9);
	bed_pass(bed, 10 * SEC);
	good_from(bed, 5, 6, 9);
	for (uint32_t observer = 1; observer <= 3; observer++)
		bed_see(bed, observer, 5, OBSERVATION_SILENT);
	bed_pass(bed, 5 * SEC);
	bed_see(bed, 4, 5, OBSERVATION_SILENT);
	bed_pass(bed, 6 * SEC);
	expect_all_well(bed);
	// If most observers turn bad later, all good observations are outdated.
	for (uint32_t observer = 6; observer <= 9; observer++)
		bed_see(bed, observer, 5, OBSERVATION_SILENT);
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void what_the_dead_and_the_departed_said_no_longer_counts(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	bed_state(bed, 1, RAS_DEAD, RAS_CAUSE_GONE);
	settle(bed);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

UNIT_GROUP(verdict_blame) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_is_bad_for_one_blames_no_node),
		cmocka_unit_test(one_observer_of_many_is_not_enough),
		cmocka_unit_test(of_two_agents_one_is_enough_and_drains_nobody),
		cmocka_unit_test(a_node_that_nobody_reads_is_to_blame_and_its_observers_are_not),
		cmocka_unit_test(the_sentence_has_the_figures),
		cmocka_unit_test(who_reads_nobody_that_others_read_is_to_blame),
		cmocka_unit_test(who_has_not_yet_said_that_all_is_mended_is_not_to_blame),
		cmocka_unit_test(one_that_is_cut_off_does_not_count_what_it_sees_itself),
		cmocka_unit_test(a_liar_that_others_read_well_blames_nobody_and_is_not_blamed),
		cmocka_unit_test(two_liars_are_outweighed_by_one_who_reads),
		cmocka_unit_test(who_sees_well_has_a_moment_to_say_so),
		cmocka_unit_test(a_good_look_from_before_does_not_excuse),
		cmocka_unit_test(one_that_comes_late_does_not_outdate_good_looks),
		cmocka_unit_test(what_the_dead_and_the_departed_said_no_longer_counts),
	};

	return cmocka_run_group_tests_name("verdict_blame", tests, NULL, NULL);
}
