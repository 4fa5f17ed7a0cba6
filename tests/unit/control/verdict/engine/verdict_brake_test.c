// SPDX-License-Identifier: BSD-3-Clause
// Evidence that is not accepted at once: many simultaneous failures, and silence during a pause
// of our own.
#include "control/verdict/engine/verdict_bed.h"

// Let the nodes fall silent on both planes: dead and unread.
static void fall(struct bed *bed, uint32_t first, uint32_t count) {
	for (uint32_t n = first; n < first + count; n++) {
		bed_see_reach(bed, 1, n, OBSERVATION_SILENT, VERDICT_REACH_NONE);
		bed_see_reach(bed, 2, n, OBSERVATION_SILENT, VERDICT_REACH_NONE);
		bed_state(bed, n, RAS_DEAD, RAS_CAUSE_SILENT);
	}
}

static uint32_t count_of(const struct bed *bed, enum verdict verdict) {
	struct verdict_counts counts;

	verdict_counts(bed->engine, &counts);
	return counts.of[verdict];
}

static bool is_braking(const struct bed *bed) {
	struct verdict_counts counts;

	verdict_counts(bed->engine, &counts);
	return counts.brake;
}

static void a_tenth_that_falls_at_once_is_declared(void **state) {
	struct bed *bed = bed_create(100);

	(void)state;
	fall(bed, 50, 10);
	bed_pass(bed, SEC);
	assert_int_equal(count_of(bed, VERDICT_NODE_DOWN), 10);
	assert_false(is_braking(bed));
	bed_destroy(bed);
}

static void a_third_that_falls_at_once_is_unknown_also_those_who_fell_first(void **state) {
	struct bed *bed = bed_create(100);

	(void)state;
	fall(bed, 50, 20);
	assert_int_equal(count_of(bed, VERDICT_NODE_DOWN), 20);
	fall(bed, 70, 1);
	assert_true(is_braking(bed));
	assert_int_equal(count_of(bed, VERDICT_NODE_DOWN), 0);
	fall(bed, 71, 9);
	bed_pass(bed, 300 * SEC);
	assert_int_equal(count_of(bed, VERDICT_UNKNOWN), 30);
	bed_expect(bed, 75, VERDICT_UNKNOWN, "Brake");
	// Ten of them return: the others are less than a third of all.
	for (uint32_t n = 50; n < 60; n++)
		bed_state(bed, n, RAS_ALIVE, RAS_CAUSE_NONE);
	bed_pass(bed, 10 * SEC);
	assert_false(is_braking(bed));
	assert_int_equal(count_of(bed, VERDICT_NODE_DOWN), 20);
	bed_destroy(bed);
}

// Dead members are remembered for a week. The fifth of the cluster is computed from the members
// that were present.
static void those_who_died_long_ago_do_not_make_the_view_larger(void **state) {
	struct bed *bed = bed_create(100);

	(void)state;
	for (uint32_t n = 40; n < 100; n++)
		bed_state(bed, n, RAS_DEAD, RAS_CAUSE_GONE);
	bed_pass(bed, 120 * SEC);
	assert_int_equal(count_of(bed, VERDICT_AGENT_DOWN), 60);
	fall(bed, 10, 15);
	bed_pass(bed, SEC);
	assert_true(is_braking(bed));
	assert_int_equal(count_of(bed, VERDICT_NODE_DOWN), 0);
	bed_destroy(bed);
}

static void those_who_fell_long_before_stay_what_they_are(void **state) {
	struct bed *bed = bed_create(100);

	(void)state;
	fall(bed, 50, 15);
	bed_pass(bed, 61 * SEC);
	fall(bed, 70, 15);
	bed_pass(bed, SEC);
	assert_false(is_braking(bed));
	assert_int_equal(count_of(bed, VERDICT_NODE_DOWN), 30);
	bed_destroy(bed);
}

// Regression: an agent whose own firewall was reloaded called all its neighbours agent-down.
static void many_who_refuse_us_at_once_are_not_named_before_others_agree(void **state) {
	struct bed *bed = bed_create(30);

	(void)state;
	for (uint32_t n = 1; n <= 8; n++) {
		bed_state(bed, n, RAS_SUSPECT, RAS_CAUSE_GONE);
		bed_see_reach(bed, 0, n, OBSERVATION_NO_PAIR, VERDICT_REACH_REFUSES);
	}
	bed_pass(bed, SEC);
	assert_int_equal(count_of(bed, VERDICT_AGENT_DOWN), 8);
	for (uint32_t n = 9; n <= 20; n++) {
		bed_state(bed, n, RAS_SUSPECT, RAS_CAUSE_GONE);
		bed_see_reach(bed, 0, n, OBSERVATION_NO_PAIR, VERDICT_REACH_REFUSES);
	}
	bed_pass(bed, SEC);
	assert_int_equal(count_of(bed, VERDICT_AGENT_DOWN), 0);
	bed_expect(bed, 15, VERDICT_UNKNOWN, "Brake");
	for (uint32_t n = 1; n <= 20; n++)
		bed_state(bed, n, RAS_DEAD, RAS_CAUSE_GONE);
	assert_int_equal(count_of(bed, VERDICT_AGENT_DOWN), 20);
	bed_destroy(bed);
}

static void the_brake_does_not_hold_what_is_no_silence(void **state) {
	struct bed *bed = bed_create(100);

	(void)state;
	for (uint32_t n = 10; n < 60; n++) {
		if (n % 2 == 0)
			bed_state(bed, n, RAS_DEAD, RAS_CAUSE_GONE);
		else
			bed_say(bed, n, VERDICT_CHECK_FAILED, "DiskFull");
	}
	bed_pass(bed, SEC);
	assert_int_equal(count_of(bed, VERDICT_AGENT_DOWN), 25);
	assert_int_equal(count_of(bed, VERDICT_CHECK_FAILED), 25);
	bed_destroy(bed);
}

static void ports_that_go_down_together_are_of_a_switch_that_restarts(void **state) {
	struct bed *bed = bed_create(100);

	(void)state;
	bed_say(bed, 5, VERDICT_FABRIC_DOWN, "PortDown");
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PortDown");
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_WARN);
	bed_pass(bed, 5 * SEC);
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_DRAIN);
	for (uint32_t n = 10; n < 60; n++)
		bed_say(bed, n, VERDICT_FABRIC_DOWN, "PortDown");
	bed_pass(bed, SEC);
	for (uint32_t n = 10; n < 60; n++)
		assert_true(bed_view(bed, n).advice < VERDICT_ADVICE_DRAIN_LATER);
	bed_say(bed, 0, VERDICT_FABRIC_DOWN,
		"PortDown"); // this node's own port is down, which it knows itself
	bed_pass(bed, 10 * SEC);
	for (uint32_t n = 10; n < 60; n++)
		assert_true(bed_view(bed, n).advice < VERDICT_ADVICE_DRAIN_LATER);
	bed_expect(bed, 15, VERDICT_UNKNOWN, "Brake");
	bed_expect(bed, 0, VERDICT_FABRIC_DOWN, "PortDown");
	assert_int_equal(bed_view(bed, 0).advice, VERDICT_ADVICE_WARN);
	bed_destroy(bed);
}

static void while_the_overlay_brakes_nobody_is_declared_by_silence(void **state) {
	struct bed *bed = bed_create(8);
	struct verdict_self_update self = {.joined = true, .brake = true};

	(void)state;
	verdict_self_update(bed->engine, bed->now_ns, &self);
	fall(bed, 3, 5);
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "Brake");
	self.brake = false;
	verdict_self_update(bed->engine, bed->now_ns, &self);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	bed_destroy(bed);
}

// Regression: a resumed agent without a vote engaged its own brake. The brake hid the next dead
// node for nine seconds.
static void one_that_others_declare_dead_is_not_hidden_by_a_brake_of_our_own(void **state) {
	struct bed *bed = bed_create(8);
	struct verdict_self_update self = {.joined = true};

	(void)state;
	bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
	bed_see_reach(bed, 1, 5, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_see_reach(bed, 2, 5, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	self.brake = true;
	bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_SILENT);
	verdict_self_update(bed->engine, bed->now_ns, &self);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	bed_see_two(bed, 6, OBSERVATION_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 6, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void after_a_pause_of_our_own_all_that_is_bad_is_unknown_for_a_moment(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_self_update self = {.joined = true};

	(void)state;
	bed->now_ns += 60 * SEC; // the engine was not called
	self.paused_until_ns = bed->now_ns;
	verdict_self_update(bed->engine, bed->now_ns, &self);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "OwnPause");
	bed_expect(bed, 6, VERDICT_HEALTHY, "None");
	bed_see_two(bed, 5, OBSERVATION_SILENT);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "OwnPause");
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void what_we_did_not_hear_while_we_stood_still_is_no_silence(void **state) {
	struct bed *bed = bed_create(8);
	struct verdict_self_update self = {.joined = true};

	(void)state;
	bed_see(bed, 0, 5, OBSERVATION_SILENT); // the agent's own observation
	self.paused_until_ns = bed->now_ns + 1;
	verdict_self_update(bed->engine, bed->now_ns, &self);
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_see(bed, 0, 5, OBSERVATION_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void one_that_stops_again_and_again_does_not_keep_what_is_old(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_self_update self = {.joined = true};

	(void)state;
	for (uint32_t n = 0; n < 8; n++) {
		bed_pass(bed, 20 * SEC);
		self.paused_until_ns = bed->now_ns;
		verdict_self_update(bed->engine, bed->now_ns, &self);
	}
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "EvidenceStale");
	bed_destroy(bed);
}

UNIT_GROUP(verdict_brake) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenth_that_falls_at_once_is_declared),
		cmocka_unit_test(a_third_that_falls_at_once_is_unknown_also_those_who_fell_first),
		cmocka_unit_test(those_who_died_long_ago_do_not_make_the_view_larger),
		cmocka_unit_test(those_who_fell_long_before_stay_what_they_are),
		cmocka_unit_test(many_who_refuse_us_at_once_are_not_named_before_others_agree),
		cmocka_unit_test(the_brake_does_not_hold_what_is_no_silence),
		cmocka_unit_test(ports_that_go_down_together_are_of_a_switch_that_restarts),
		cmocka_unit_test(while_the_overlay_brakes_nobody_is_declared_by_silence),
		cmocka_unit_test(one_that_others_declare_dead_is_not_hidden_by_a_brake_of_our_own),
		cmocka_unit_test(after_a_pause_of_our_own_all_that_is_bad_is_unknown_for_a_moment),
		cmocka_unit_test(what_we_did_not_hear_while_we_stood_still_is_no_silence),
		cmocka_unit_test(one_that_stops_again_and_again_does_not_keep_what_is_old),
	};

	return cmocka_run_group_tests_name("verdict_brake", tests, NULL, NULL);
}
