// SPDX-License-Identifier: BSD-3-Clause
// How long a verdict is held: a worse one applies at once, a better one once it has settled.
#include "control/verdict/engine/verdict_bed.h"

#include <errno.h>

static void worse_holds_at_once_and_better_when_it_has_settled(void **state) {
	struct bed *bed = bed_with_fabric_down();
	uint64_t since_ns = bed_view(bed, 5).since_ns;

	(void)state;
	assert_int_equal(bed->changes, 1);
	assert_int_equal(bed->last.before, VERDICT_HEALTHY);
	assert_int_equal(bed->last_now, VERDICT_FABRIC_DOWN);
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_pass(bed, 5 * SEC - 1);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 5).since_ns, since_ns);
	bed_pass(bed, 1);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	assert_int_equal(bed->changes, 2);
	assert_int_equal(bed_view(bed, 5).since_ns, bed->now_ns);
	bed_destroy(bed);
}

// A frozen agent, whose software device answers as little as its sockets.
static void silence_of_one_that_did_not_run_says_nothing_once_it_is_back(void **state) {
	static const enum ras_state doubts[] = {RAS_SUSPECT, RAS_DEAD};

	(void)state;
	for (size_t n = 0; n < sizeof(doubts) / sizeof(doubts[0]); n++) {
		struct bed *bed = bed_create(8);
		struct observation late = bed_observation(3, 5, OBSERVATION_SILENT);

		for (uint32_t observer = 1; observer < 3; observer++)
			bed_see_reach(bed, observer, 5, OBSERVATION_SILENT, VERDICT_REACH_ACCEPTS);
		bed_pass(bed, SEC);
		bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
		bed_pass(bed, 5 * SEC);
		bed_expect(bed, 5, VERDICT_AGENT_FROZEN, "AgentMute");
		if (doubts[n] == RAS_DEAD)
			bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_SILENT);
		bed_pass(bed, SEC);
		bed_state(bed, 5, RAS_ALIVE, RAS_CAUSE_NONE);
		bed_pass(bed, SEC);
		bed_expect(bed, 5, VERDICT_UNKNOWN, "Settling");
		// An earlier observation that arrives late.
		late.age_ms = 2000;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &late), -ESTALE);
		bed_pass(bed, 5 * SEC);
		bed_expect(bed, 5, VERDICT_HEALTHY, "None");
		bed_pass(bed, 60 * SEC);
		// Observations from now on count again.
		bed_see_two(bed, 5, OBSERVATION_SILENT);
		bed_pass(bed, SEC);
		bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
		// The verdict also outlasts a suspicion that comes long after it.
		bed_pass(bed, 10 * SEC);
		bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
		bed_pass(bed, SEC);
		bed_state(bed, 5, RAS_ALIVE, RAS_CAUSE_NONE);
		bed_pass(bed, 2 * SEC);
		bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
		bed_destroy(bed);
	}
}

static void nobody_is_drained_before_it_is_seen_whether_others_fall_too(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_WARN);
	bed_pass(bed, 5 * SEC);
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_DRAIN);
	assert_int_equal(bed->changes, 1);
	assert_int_equal(bed->ripened, 1);
	bed_destroy(bed);
}

// Regression: the verdict was announced again after 5 s with the advice for a suspect, but not at
// its death.
static void what_may_be_acted_on_is_told_again_when_that_is_so_and_not_before(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t observer = 1; observer < 3; observer++)
		bed_see_reach(bed, observer, 5, OBSERVATION_SILENT, VERDICT_REACH_ACCEPTS);
	bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
	bed_pass(bed, 8 * SEC);
	bed_expect(bed, 5, VERDICT_AGENT_FROZEN, "AgentMute");
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_WARN);
	assert_int_equal(bed->ripened, 0);
	bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_AGENT_FROZEN, "AgentMute");
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_DRAIN_LATER);
	assert_int_equal(bed->ripened, 1);
	bed_pass(bed, 60 * SEC);
	assert_int_equal(bed->ripened, 1);
	bed_destroy(bed);
}

// The reads fail first, since the device is in the stopped process.
static void what_the_overlay_comes_to_doubt_is_named_anew_at_once(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	for (uint32_t observer = 1; observer < 3; observer++)
		bed_see_reach(bed, observer, 5, OBSERVATION_SILENT, VERDICT_REACH_ACCEPTS);
	bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_AGENT_FROZEN, "AgentMute");
	bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_GONE);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_AGENT_DOWN, "AgentGone");
	bed_destroy(bed);
}

static void death_of_one_that_was_cut_off_is_named_at_once(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_GONE);
	bed_pass(bed, MS);
	bed_expect(bed, 5, VERDICT_AGENT_DOWN, "AgentGone");
	bed_destroy(bed);
}

static void what_is_contradicted_before_it_is_ripe_drains_nobody(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_WARN);
	for (uint32_t observer = 1; observer < 5; observer++) {
		bed_see(bed, observer, 5, OBSERVATION_GOOD);
		bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
		assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_WARN);
	}
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	assert_int_equal(bed->ripened, 0);
	bed_destroy(bed);
}

// Its page is read before its beats are heard again: the agent resumed, and no network was cut.
static void one_that_wakes_is_not_cut_off_from_the_overlay(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see_reach(bed, observer, 5, OBSERVATION_STANDING, VERDICT_REACH_ACCEPTS);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_AGENT_FROZEN, "PulseStands");
	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see_reach(bed, observer, 5, OBSERVATION_STANDING, VERDICT_REACH_ANSWERS);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "PulseContradicts");
	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see_reach(bed, observer, 5, OBSERVATION_GOOD, VERDICT_REACH_ACCEPTS);
	for (uint32_t n = 0; n < 19; n++) {
		bed_pass(bed, 100 * MS);
		assert_int_not_equal(bed_view(bed, 5).verdict, VERDICT_MGMT_NET_DOWN);
	}
	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see_reach(bed, observer, 5, OBSERVATION_GOOD, VERDICT_REACH_ANSWERS);
	for (uint32_t n = 0; n < 60; n++) {
		bed_pass(bed, 100 * MS);
		assert_int_not_equal(bed_view(bed, 5).verdict, VERDICT_MGMT_NET_DOWN);
	}
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Create a bed with a node that the overlay does not hear, and whose pulse is read.
static struct bed *bed_with_management_down(const struct verdict_config *config) {
	struct bed *bed = bed_create_with(8, config);

	bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
	for (uint32_t n = 0; n < 6; n++) {
		bed_pass(bed, SEC);
		bed_see_two(bed, 5, OBSERVATION_GOOD);
	}
	bed_expect(bed, 5, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	return bed;
}

static void what_the_overlay_reaches_again_settles_sooner_than_other_words(void **state) {
	static const struct {
		uint64_t settle_ns, wanted_ns;
	} cases[] = {{0, 3 * SEC}, {2 * SEC, 2 * SEC}, {20 * SEC, 3 * SEC}};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		const struct verdict_config config = {
			.self = bed_id(0), .settle_ns = cases[n].settle_ns};
		struct bed *bed = bed_with_management_down(&config);

		bed_state(bed, 5, RAS_ALIVE, RAS_CAUSE_NONE);
		bed_pass(bed, cases[n].wanted_ns - 1);
		bed_expect(bed, 5, VERDICT_UNKNOWN, "Settling");
		bed_pass(bed, 1);
		bed_expect(bed, 5, VERDICT_HEALTHY, "None");
		bed_destroy(bed);
	}
}

static void what_turns_bad_again_before_it_settled_begins_anew(void **state) {
	struct bed *bed = bed_with_fabric_down();
	uint64_t since_ns = bed_view(bed, 5).since_ns;

	(void)state;
	bed_see_two(bed, 5, OBSERVATION_GOOD);
	bed_pass(bed, 3 * SEC);
	bed_see_two(bed, 5, OBSERVATION_SILENT);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed->changes, 1); // it was not announced as healthy in between
	assert_true(bed_view(bed, 5).since_ns > since_ns);
	bed_destroy(bed);
}

static void what_is_read_in_the_silence_is_believed_when_it_ends_in_death(void **state) {
	struct bed *bed = bed_create(8);
	uint64_t since_ns;

	(void)state;
	bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT);
	for (uint32_t n = 0; n < 6; n++) {
		bed_pass(bed, SEC);
		bed_see_two(bed, 5, OBSERVATION_GOOD);
	}
	bed_expect(bed, 5, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	assert_string_equal(
		bed_view(bed, 5).evidence,
		"not heard on the overlay at the moment; 2 of 2 observers "
		"read its pulse, which advances"
	);
	since_ns = bed_view(bed, 5).since_ns;
	bed_pass(bed, 900 * MS);
	bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_SILENT);
	for (uint32_t n = 0; n < 80; n++) {
		bed_expect(bed, 5, VERDICT_MGMT_NET_DOWN, "PulseAlone");
		bed_see_two(bed, 5, OBSERVATION_GOOD);
		bed_pass(bed, SEC);
	}
	assert_int_equal(bed_view(bed, 5).since_ns, since_ns);
	assert_string_equal(
		bed_view(bed, 5).evidence,
		"silent on the overlay (2 observers); 2 of 2 observers read its pulse, which advances"
	);
	// A read from before the silence is no evidence.
	bed_state(bed, 6, RAS_SUSPECT, RAS_CAUSE_SILENT);
	bed_see_two(bed, 6, OBSERVATION_GOOD);
	bed_pass(bed, 3 * SEC);
	bed_state(bed, 6, RAS_DEAD, RAS_CAUSE_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 6, VERDICT_UNKNOWN, "HostOrAgent");
	bed_destroy(bed);
}

UNIT_GROUP(verdict_hysteresis) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worse_holds_at_once_and_better_when_it_has_settled),
		cmocka_unit_test(silence_of_one_that_did_not_run_says_nothing_once_it_is_back),
		cmocka_unit_test(nobody_is_drained_before_it_is_seen_whether_others_fall_too),
		cmocka_unit_test(what_may_be_acted_on_is_told_again_when_that_is_so_and_not_before),
		cmocka_unit_test(what_the_overlay_comes_to_doubt_is_named_anew_at_once),
		cmocka_unit_test(death_of_one_that_was_cut_off_is_named_at_once),
		cmocka_unit_test(what_is_contradicted_before_it_is_ripe_drains_nobody),
		cmocka_unit_test(one_that_wakes_is_not_cut_off_from_the_overlay),
		cmocka_unit_test(what_the_overlay_reaches_again_settles_sooner_than_other_words),
		cmocka_unit_test(what_turns_bad_again_before_it_settled_begins_anew),
		cmocka_unit_test(what_is_read_in_the_silence_is_believed_when_it_ends_in_death),
	};

	return cmocka_run_group_tests_name("verdict_hysteresis", tests, NULL, NULL);
}
