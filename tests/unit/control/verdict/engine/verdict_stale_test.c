// SPDX-License-Identifier: BSD-3-Clause
// Evidence that is not repeated, and which events withdraw it.
#include "control/verdict/engine/verdict_bed.h"

#include <errno.h>

static void evidence_that_is_not_repeated_leaves_unknown_never_healthy(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	bed_pass(bed, 29 * SEC - 1);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_pass(bed, 1);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_SHOW);
	bed_pass(bed, 100 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Others than the original observers read it well before the evidence was too old.
static void what_grows_old_after_a_good_look_is_no_evidence_of_anything(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	bed_pass(bed, 27 * SEC);
	for (uint32_t observer = 3; observer < 5; observer++)
		assert_int_equal(bed_see(bed, observer, 5, OBSERVATION_GOOD), 0);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void what_nobody_repeats_for_ten_times_as_long_is_forgotten(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	bed_pass(bed, 29 * SEC + 300 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "Settling");
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Regression: the host's reachability was kept as long as the death, and was too old the moment
// the death ended. Where no observer read its pulse, the node was unknown for five minutes.
static void connections_refused_before_a_death_ended_say_nothing_after_it(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
	for (uint32_t n = 1; n < 4; n++)
		assert_int_equal(
			bed_see_reach(bed, n, 5, OBSERVATION_NO_PAIR, VERDICT_REACH_NONE), 0
		);
	bed_pass(bed, 5 * SEC);
	bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_SILENT);
	bed_pass(bed, 100 * SEC);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "OverlaySilent");
	bed_state(bed, 5, RAS_ALIVE, RAS_CAUSE_REFUTED);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Regression: a node fell silent long before the news of its death. Nodes that did not read it
// themselves kept the reports of others. The reporters had forgotten the path together with the
// peer.
static void pulse_unread_before_a_death_says_nothing_after_it(void **state) {
	static const uint64_t lasted_ns[] = {2 * SEC, 20 * SEC, 100 * SEC};

	(void)state;
	for (size_t n = 0; n < sizeof(lasted_ns) / sizeof(lasted_ns[0]); n++) {
		struct bed *bed = bed_with_fabric_down();

		bed_pass(bed, 10 * SEC);
		bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_SILENT);
		bed_pass(bed, lasted_ns[n]);
		bed_state(bed, 5, RAS_ALIVE, RAS_CAUSE_REFUTED);
		for (uint32_t second = 0; second < 60; second++) {
			bed_pass(bed, SEC);
			assert_string_not_equal(bed_view(bed, 5).reason, "EvidenceStale");
		}
		bed_expect(bed, 5, VERDICT_HEALTHY, "None");
		bed_destroy(bed);
	}
}

static void refute_own_death(struct bed *bed) {
	struct verdict_peer_update self = bed_peer(0, RAS_ALIVE, RAS_CAUSE_NONE);

	self.incarnation++;
	assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &self), 0);
}

// Regression: an agent that had been cut off called its own evidence stale for five minutes.
static void one_that_refuted_its_death_is_rid_of_what_others_said_of_it_meanwhile(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t n = 1; n < 4; n++)
		assert_int_equal(
			bed_see_reach(bed, n, 0, OBSERVATION_NO_PAIR, VERDICT_REACH_NONE), 0
		);
	bed_pass(bed, 31 * SEC);
	bed_expect(bed, 0, VERDICT_UNKNOWN, "EvidenceStale");
	refute_own_death(bed);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 0, VERDICT_HEALTHY, "None");
	// An observation sent before does not restart the evidence.
	assert_int_equal(
		bed_see_reach(bed, 4, 0, OBSERVATION_NO_PAIR, VERDICT_REACH_NONE), -ESTALE
	);
	assert_int_equal(bed_see(bed, 4, 0, OBSERVATION_SILENT), -ESTALE);
	assert_int_equal(bed_see(bed, 4, 0, OBSERVATION_STANDING), -ESTALE);
	assert_int_equal(bed_see(bed, 4, 0, OBSERVATION_LOSSY), 0);
	bed_destroy(bed);
}

// Regression: reports of its silence waited in the sockets of a frozen agent. It believed them once
// it was thawed, and called itself fabric-down.
static void one_that_was_paused_ignores_reports_of_its_silence_until_they_are_new(void **state) {
	struct bed *bed = bed_create(8);
	struct verdict_self_update self = {.joined = true, .paused_ns = 28 * SEC};

	(void)state;
	bed_pass(bed, 28 * SEC);
	// These reports arrive before the engine knows of the pause.
	bed_see_two(bed, 0, OBSERVATION_SILENT);
	self.paused_until_ns = bed->now_ns + 2 * SEC;
	verdict_self_update(bed->engine, bed->now_ns, &self);
	bed_pass(bed, SEC);
	bed_expect(bed, 0, VERDICT_HEALTHY, "None");
	assert_int_equal(bed_see(bed, 1, 0, OBSERVATION_SILENT), -ESTALE);
	assert_int_equal(
		bed_see_reach(bed, 2, 0, OBSERVATION_NO_PAIR, VERDICT_REACH_ACCEPTS), -ESTALE
	);
	assert_int_equal(bed_see(bed, 2, 5, OBSERVATION_SILENT), 0); // about another node
	bed_pass(bed, SEC);
	bed_see_two(bed, 0, OBSERVATION_SILENT);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 0, VERDICT_FABRIC_DOWN, "PulseUnread");

	// A short pause makes nobody silent, so the reports have another cause.
	self.paused_ns = SEC;
	self.paused_until_ns = bed->now_ns + 2 * SEC;
	verdict_self_update(bed->engine, bed->now_ns, &self);
	bed_see_two(bed, 0, OBSERVATION_SILENT);
	bed_pass(bed, 8 * SEC);
	bed_expect(bed, 0, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// Regression: a fault ended while this agent was frozen. For five seconds after the thaw this agent
// advised to drain the node, by its verdict from before the pause.
static void a_verdict_from_before_an_own_pause_is_unknown_while_better_evidence_settles(void **state
) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_self_update self = {.joined = true, .paused_ns = 18 * SEC};

	(void)state;
	bed_pass(bed, 6 * SEC);
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_DRAIN);
	bed_pass(bed, 18 * SEC);
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	self.paused_until_ns = bed->now_ns + 2 * SEC;
	verdict_self_update(bed->engine, bed->now_ns, &self);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "Settling");
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void a_good_look_does_not_take_back_what_the_node_said_itself(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_FAILED, "DiskFull"), 0);
	bed_expect(bed, 5, VERDICT_CHECK_FAILED, "DiskFull");
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_pass(bed, 31 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	assert_int_equal(bed_say(bed, 5, VERDICT_HEALTHY, "DiskFull"), 0);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void a_word_of_the_node_does_not_take_back_what_others_saw(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	bed_pass(bed, 30 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	assert_int_equal(bed_say(bed, 5, VERDICT_HEALTHY, "DiskFull"), 0);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	bed_destroy(bed);
}

static void what_went_stale_of_both_kinds_is_taken_back_by_both(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_FAILED, "DiskFull"), 0);
	bed_pass(bed, 40 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	assert_int_equal(bed_say(bed, 5, VERDICT_HEALTHY, "DiskFull"), 0);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// One observer, which receives nothing itself, cannot reach the node and reports that once.
static void what_never_made_a_verdict_leaves_no_doubt_when_it_is_stale(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_say(bed, 5, VERDICT_CHECK_FAILED, "DiskFull");
	bed_see_reach(bed, 1, 5, OBSERVATION_GOOD, VERDICT_REACH_NONE);
	for (uint32_t n = 0; n < 8; n++) {
		bed_pass(bed, 5 * SEC);
		bed_say(bed, 5, VERDICT_CHECK_FAILED, "DiskFull");
		bed_expect(bed, 5, VERDICT_CHECK_FAILED, "DiskFull");
	}
	bed_say(bed, 5, VERDICT_HEALTHY, "DiskFull");
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

UNIT_GROUP(verdict_stale) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evidence_that_is_not_repeated_leaves_unknown_never_healthy),
		cmocka_unit_test(connections_refused_before_a_death_ended_say_nothing_after_it),
		cmocka_unit_test(pulse_unread_before_a_death_says_nothing_after_it),
		cmocka_unit_test(
			one_that_refuted_its_death_is_rid_of_what_others_said_of_it_meanwhile
		),
		cmocka_unit_test(
			one_that_was_paused_ignores_reports_of_its_silence_until_they_are_new
		),
		cmocka_unit_test(
			a_verdict_from_before_an_own_pause_is_unknown_while_better_evidence_settles
		),
		cmocka_unit_test(what_grows_old_after_a_good_look_is_no_evidence_of_anything),
		cmocka_unit_test(what_nobody_repeats_for_ten_times_as_long_is_forgotten),
		cmocka_unit_test(a_good_look_does_not_take_back_what_the_node_said_itself),
		cmocka_unit_test(a_word_of_the_node_does_not_take_back_what_others_saw),
		cmocka_unit_test(what_went_stale_of_both_kinds_is_taken_back_by_both),
		cmocka_unit_test(what_never_made_a_verdict_leaves_no_doubt_when_it_is_stale),
	};

	return cmocka_run_group_tests_name("verdict_stale", tests, NULL, NULL);
}
