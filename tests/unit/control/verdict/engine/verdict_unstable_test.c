// SPDX-License-Identifier: BSD-3-Clause
// A verdict that changes more than three times in a minute is "unstable", and its single values
// do not count.
#include "control/verdict/engine/verdict_bed.h"

#include <string.h>

// Let one of its checks fail and pass again: two changes in `seconds`, which must be at least
// six.
static void swing(struct bed *bed, uint32_t agent, uint32_t seconds) {
	bed_say(bed, agent, VERDICT_CHECK_FAILED, "Loose");
	bed_pass(bed, SEC);
	bed_say(bed, agent, VERDICT_HEALTHY, "Loose");
	bed_pass(bed, (seconds - 1) * SEC);
}

static struct bed *bed_with_unstable(uint32_t agent) {
	struct bed *bed = bed_create(8);

	swing(bed, agent, 10);
	bed_say(bed, agent, VERDICT_CHECK_FAILED, "Loose");
	bed_pass(bed, SEC);
	bed_expect(bed, agent, VERDICT_CHECK_FAILED, "Loose");
	bed_say(bed, agent, VERDICT_HEALTHY, "Loose");
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, agent, VERDICT_UNSTABLE, "Flapping");
	return bed;
}

static void the_fourth_change_in_a_minute_makes_it_unstable_with_both_words(void **state) {
	struct bed *bed = bed_with_unstable(5);
	struct verdict_view view = bed_view(bed, 5);

	(void)state;
	assert_int_equal(view.advice, VERDICT_ADVICE_WARN);
	assert_int_equal(view.since_ns, bed->now_ns);
	assert_non_null(strstr(view.evidence, "check-failed"));
	assert_non_null(strstr(view.evidence, "healthy"));
	assert_int_equal(bed->last_now, VERDICT_UNSTABLE);
	bed_destroy(bed);
}

static void what_swings_on_is_told_once_and_drains_nobody(void **state) {
	struct bed *bed = bed_with_unstable(5);
	uint32_t changes = bed->changes;

	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		swing(bed, 5, 10);
		bed_expect(bed, 5, VERDICT_UNSTABLE, "Flapping");
		assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_WARN);
	}
	assert_int_equal(bed->changes, changes);
	assert_int_equal(bed->ripened, 0);
	bed_destroy(bed);
}

static void a_minute_of_one_word_ends_it(void **state) {
	struct bed *bed = bed_with_unstable(5);

	(void)state;
	bed_pass(bed, 60 * SEC - 1);
	bed_expect(bed, 5, VERDICT_UNSTABLE, "Flapping");
	bed_pass(bed, 1);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	assert_int_equal(bed->last.before, VERDICT_UNSTABLE);
	assert_int_equal(bed->last_now, VERDICT_HEALTHY);
	bed_destroy(bed);
}

static void a_bad_word_that_stands_for_a_minute_counts_again(void **state) {
	struct bed *bed = bed_with_unstable(5);

	(void)state;
	for (uint32_t n = 0; n < 7; n++) {
		bed_say(bed, 5, VERDICT_CHECK_FAILED, "Loose");
		bed_pass(bed, 10 * SEC);
	}
	bed_expect(bed, 5, VERDICT_CHECK_FAILED, "Loose");
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_DRAIN_LATER);
	assert_int_equal(bed->last_now, VERDICT_CHECK_FAILED);
	bed_destroy(bed);
}

static void its_past_has_one_row_of_it(void **state) {
	struct bed *bed = bed_with_unstable(5);
	struct verdict_past past;
	uint32_t cursor = 0, rows = 0;

	(void)state;
	for (uint32_t n = 0; n < 5; n++)
		swing(bed, 5, 10);
	bed_pass(bed, 60 * SEC);
	while (verdict_past_next(bed->engine, bed_id(5), &cursor, &past))
		rows += past.verdict == VERDICT_UNSTABLE;
	assert_int_equal(rows, 1);
	bed_destroy(bed);
}

static void three_changes_in_a_minute_are_not_too_many(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t n = 0; n < 10; n++) {
		swing(bed, 5, 60);
		bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	}
	bed_destroy(bed);
}

static void an_agent_that_was_stopped_itself_doubts_nobody_into_it(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_self_update self = {.joined = true};

	(void)state;
	for (uint32_t n = 0; n < 5; n++) {
		self.paused_until_ns = bed->now_ns + SEC;
		verdict_self_update(bed->engine, bed->now_ns, &self);
		bed_expect(bed, 5, VERDICT_UNKNOWN, "OwnPause");
		bed_pass(bed, 7 * SEC);
		bed_see_two(bed, 5, OBSERVATION_SILENT);
		bed_pass(bed, SEC);
		bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	}
	bed_destroy(bed);
}

static void a_fault_that_comes_and_goes_through_unknown_is_unstable(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
		bed_see_two(bed, 5, OBSERVATION_GOOD);
		bed_pass(bed, SEC);
		bed_state(bed, 5, RAS_ALIVE, RAS_CAUSE_NONE);
		bed_see_two(bed, 5, OBSERVATION_SILENT);
		bed_pass(bed, SEC);
	}
	bed_expect(bed, 5, VERDICT_UNSTABLE, "Flapping");
	bed_destroy(bed);
}

static void repaired_link_that_fails_again_after_twenty_seconds_is_named_at_once(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	bed_pass(bed, 9 * SEC);
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_see_two(bed, 5, OBSERVATION_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	for (uint32_t n = 0; n < 10; n++) {
		bed_pass(bed, 10 * SEC);
		bed_see_two(bed, 5, OBSERVATION_SILENT);
		bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	}
	// Long enough that its end is no fourth change within a minute.
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	assert_int_equal(bed->changes, 4);
	bed_destroy(bed);
}

static void lossy_node_whose_check_fails_for_a_while_is_lossy_again_and_stable(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t n = 0; n < 70; n++) {
		enum verdict word = VERDICT_PATH_LOSSY;

		bed_see_two(bed, 4, OBSERVATION_LOSSY);
		if (n >= 5 && n < 40 && n % 5 == 0)
			bed_say(bed, 4, VERDICT_CHECK_FAILED, "DiskFull");
		if (n == 40)
			bed_say(bed, 4, VERDICT_HEALTHY, "DiskFull");
		bed_pass(bed, SEC);
		if (n >= 5 && n < 44)
			word = VERDICT_CHECK_FAILED;
		bed_expect(bed, 4, word, NULL);
	}
	bed_see_two(bed, 4, OBSERVATION_GOOD);
	bed_pass(bed, 4 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void one_that_dies_or_leaves_is_so_at_once(void **state) {
	static const struct {
		enum ras_state state;
		enum verdict verdict;
	} ends[] = {{RAS_LEFT, VERDICT_NONE}, {RAS_DEAD, VERDICT_NODE_DOWN}};

	(void)state;
	for (size_t n = 0; n < sizeof(ends) / sizeof(ends[0]); n++) {
		struct bed *bed = bed_with_unstable(5);

		for (uint32_t observer = 1; observer < 4; observer++)
			bed_see_reach(bed, observer, 5, OBSERVATION_SILENT, VERDICT_REACH_NONE);
		bed_pass(bed, SEC);
		bed_state(bed, 5, ends[n].state, RAS_CAUSE_SILENT);
		bed_pass(bed, MS);
		bed_expect(bed, 5, ends[n].verdict, NULL);
		bed_destroy(bed);
	}
}

static void in_maintenance_it_is_shown(void **state) {
	struct bed *bed = bed_with_unstable(5);
	struct verdict_peer_update peer = bed_peer(5, RAS_ALIVE, RAS_CAUSE_NONE);

	(void)state;
	peer.maint = true;
	assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &peer), 0);
	bed_expect(bed, 5, VERDICT_UNSTABLE, "Flapping");
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_SHOW);
	bed_destroy(bed);
}

static void a_node_that_is_busy_now_and_then_is_not_unstable(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t n = 0; n < 6; n++) {
		bed_say(bed, 5, VERDICT_NODE_BUSY, PROCESSOR_SHORT);
		bed_pass(bed, SEC);
		bed_expect(bed, 5, VERDICT_NODE_BUSY, PROCESSOR_SHORT);
		assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_WARN);
		bed_say(bed, 5, VERDICT_HEALTHY, PROCESSOR_SHORT);
		bed_pass(bed, 6 * SEC);
		bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	}
	// Evidence from other nodes outweighs the report of the node about itself.
	bed_say(bed, 5, VERDICT_NODE_BUSY, PROCESSOR_SHORT);
	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see(bed, observer, 5, OBSERVATION_DEGRADED);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 5, VERDICT_PATH_DEGRADED, "PulseSlow");
	bed_destroy(bed);
}

UNIT_GROUP(verdict_unstable) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fourth_change_in_a_minute_makes_it_unstable_with_both_words),
		cmocka_unit_test(what_swings_on_is_told_once_and_drains_nobody),
		cmocka_unit_test(a_minute_of_one_word_ends_it),
		cmocka_unit_test(a_bad_word_that_stands_for_a_minute_counts_again),
		cmocka_unit_test(its_past_has_one_row_of_it),
		cmocka_unit_test(three_changes_in_a_minute_are_not_too_many),
		cmocka_unit_test(an_agent_that_was_stopped_itself_doubts_nobody_into_it),
		cmocka_unit_test(a_fault_that_comes_and_goes_through_unknown_is_unstable),
		cmocka_unit_test(
			repaired_link_that_fails_again_after_twenty_seconds_is_named_at_once
		),
		cmocka_unit_test(lossy_node_whose_check_fails_for_a_while_is_lossy_again_and_stable
		),
		cmocka_unit_test(one_that_dies_or_leaves_is_so_at_once),
		cmocka_unit_test(in_maintenance_it_is_shown),
		cmocka_unit_test(a_node_that_is_busy_now_and_then_is_not_unstable),
	};

	return cmocka_run_group_tests_name("verdict_unstable", tests, NULL, NULL);
}
