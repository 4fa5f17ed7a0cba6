// SPDX-License-Identifier: BSD-3-Clause
// Verdicts on nodes that fall silent together, before and after the overlay's brake engages.
#include "verdict_bed.h"

static void
seen_as(struct bed *bed,
	uint32_t first,
	uint32_t count,
	enum observation_kind kind,
	enum verdict_reach reach) {
	for (uint32_t n = first; n < first + count; n++) {
		bed_see_reach(bed, 1, n, kind, reach);
		bed_see_reach(bed, 2, n, kind, reach);
	}
}

static void doubted(struct bed *bed, uint32_t first, uint32_t count, enum ras_state state) {
	for (uint32_t n = first; n < first + count; n++)
		bed_state(bed, n, state, RAS_CAUSE_SILENT);
}

static void brake(struct bed *bed) {
	struct verdict_self_update self = {.joined = true, .brake = true};

	verdict_self_update(bed->engine, bed->now_ns, &self);
}

static void half_whose_kernels_accept_are_frozen_also_while_the_brake_holds(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	seen_as(bed, 3, 3, OBSERVATION_SILENT, VERDICT_REACH_ACCEPTS);
	doubted(bed, 3, 3, RAS_SUSPECT);
	bed_pass(bed, 3 * SEC);
	brake(bed);
	for (uint32_t n = 3; n < 6; n++)
		bed_expect(bed, n, VERDICT_AGENT_FROZEN, "AgentMute");
	doubted(bed, 3, 3, RAS_UNREACHABLE);
	bed_pass(bed, 20 * SEC);
	for (uint32_t n = 3; n < 6; n++) {
		bed_expect(bed, n, VERDICT_AGENT_FROZEN, "AgentMute");
		assert_int_equal(bed_view(bed, n).advice, VERDICT_ADVICE_WARN);
	}
	bed_destroy(bed);
}

static void half_whose_pulses_stand_are_frozen_also_where_only_that_is_seen(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	doubted(bed, 3, 3, RAS_UNREACHABLE);
	seen_as(bed, 3, 3, OBSERVATION_STANDING, VERDICT_REACH_NONE);
	brake(bed);
	bed_pass(bed, 3 * SEC);
	for (uint32_t n = 3; n < 6; n++)
		bed_expect(bed, n, VERDICT_AGENT_FROZEN, "PulseStands");
	bed_destroy(bed);
}

static void half_that_refuses_is_unknown_since_a_firewall_between_may(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	doubted(bed, 3, 3, RAS_UNREACHABLE);
	seen_as(bed, 3, 2, OBSERVATION_SILENT, VERDICT_REACH_REFUSES);
	seen_as(bed, 5, 1, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	brake(bed);
	bed_pass(bed, 5 * SEC);
	for (uint32_t n = 3; n < 6; n++)
		bed_expect(bed, n, VERDICT_UNKNOWN, "Unreachable");
	bed_destroy(bed);
}

// Regression: of five agents two had no vote, because they had been dead a moment ago. A third one
// was killed, and all who tried were refused. It was agent-down for 0.6 s, and then unknown.
static void one_that_all_are_refused_by_stays_gone_where_votes_alone_hold_its_death(void **state) {
	static const struct {
		uint32_t missed; // other members that the overlay misses
		enum verdict_reach third;
		const char *host; // of both observers
		enum verdict verdict;
	} rows[] = {
		{0, VERDICT_REACH_REFUSES, NULL, VERDICT_AGENT_DOWN},
		{0, VERDICT_REACH_NONE, NULL, VERDICT_UNKNOWN},
		{0, VERDICT_REACH_UNKNOWN, "one", VERDICT_UNKNOWN},
		{2, VERDICT_REACH_REFUSES, NULL, VERDICT_UNKNOWN},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(5);

		for (uint32_t by = 1; by <= 2 && rows[n].host != NULL; by++)
			bed_place(bed, by, rows[n].host, "");
		seen_as(bed, 4, 1, OBSERVATION_NO_PAIR, VERDICT_REACH_REFUSES);
		bed_state(bed, 4, RAS_SUSPECT, RAS_CAUSE_GONE);
		bed_pass(bed, SEC);
		bed_expect(bed, 4, VERDICT_AGENT_DOWN, "AgentGone");
		if (rows[n].third != VERDICT_REACH_UNKNOWN)
			bed_see_reach(bed, 0, 4, OBSERVATION_NO_PAIR, rows[n].third);
		doubted(bed, 2, rows[n].missed, RAS_UNREACHABLE);
		bed_state(bed, 4, RAS_UNREACHABLE, RAS_CAUSE_GONE);
		brake(bed);
		bed_pass(bed, 10 * SEC);
		bed_expect(bed, 4, rows[n].verdict, NULL);
		assert_true(bed_view(bed, 4).advice <= VERDICT_ADVICE_WARN);
		bed_destroy(bed);
	}
}

static void one_connection_that_was_just_accepted_makes_nobody_frozen(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	doubted(bed, 3, 3, RAS_UNREACHABLE);
	brake(bed);
	seen_as(bed, 3, 1, OBSERVATION_NO_PAIR, VERDICT_REACH_ACCEPTS);
	bed_pass(bed, SEC);
	bed_expect(bed, 3, VERDICT_UNKNOWN, "Unreachable");
	seen_as(bed, 3, 1, OBSERVATION_NO_PAIR, VERDICT_REACH_ANSWERS);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 3, VERDICT_UNKNOWN, "Unreachable");
	bed_destroy(bed);
}

static void one_that_was_named_stays_so_where_votes_alone_hold_its_death(void **state) {
	struct bed *bed = bed_create(3);

	(void)state;
	bed_see_reach(bed, 0, 2, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_see_reach(bed, 1, 2, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	doubted(bed, 2, 1, RAS_SUSPECT);
	bed_pass(bed, SEC);
	bed_expect(bed, 2, VERDICT_NODE_DOWN, "NodeSilent");
	brake(bed);
	doubted(bed, 2, 1, RAS_UNREACHABLE);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 2, VERDICT_NODE_DOWN, "NodeSilent");
	assert_int_equal(bed_view(bed, 2).advice, VERDICT_ADVICE_WARN);
	assert_int_equal(bed_view(bed, 2).confidence, VERDICT_LIKELY);
	bed_destroy(bed);
}

// Create eight agents; number 5 is silent on both planes, suspected, and called node-down.
static struct bed *bed_with_node_down(void) {
	struct bed *bed = bed_create(8);

	seen_as(bed, 5, 1, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	doubted(bed, 5, 1, RAS_SUSPECT);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	return bed;
}

// Events in the order in which control/verdict/store passes them on.
static void whom_a_brake_makes_unreachable_keeps_its_word(void **state) {
	struct bed *bed = bed_with_node_down();
	uint32_t changes = bed->changes;

	(void)state;
	doubted(bed, 5, 1, RAS_UNREACHABLE);
	brake(bed);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	assert_int_equal(bed->changes, changes);
	bed_destroy(bed);
}

static void brake_by_count(struct bed *bed, uint32_t silent) {
	struct verdict_self_update self = {.joined = true, .brake = true, .silent = silent};

	verdict_self_update(bed->engine, bed->now_ns, &self);
}

// Regression: two nodes failed within seconds. An agent without a link to one of them called it
// unknown all the time, since its overlay braked for lack of votes.
static void a_brake_takes_nothing_back_of_one_that_is_suspected_beside_few(void **state) {
	struct bed *bed = bed_with_node_down();
	uint32_t changes = bed->changes;

	(void)state;
	brake_by_count(bed, 2);
	bed_pass(bed, 20 * SEC);
	seen_as(bed, 5, 1, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_WARN);
	assert_int_equal(bed->changes, changes);
	brake_by_count(bed, 3); // more than a third of the eight
	bed_expect(bed, 5, VERDICT_UNKNOWN, "Brake");
	bed_destroy(bed);
}

// Regression: five of eight agents had no vote after their return. A host that failed beside a
// frozen one was unknown all the time.
static void one_that_was_named_stays_so_beside_another_that_is_unreachable(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	seen_as(bed, 7, 1, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	doubted(bed, 7, 1, RAS_SUSPECT);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 7, VERDICT_NODE_DOWN, "NodeSilent");
	brake(bed);
	doubted(bed, 7, 1, RAS_UNREACHABLE);
	seen_as(bed, 6, 1, OBSERVATION_SILENT, VERDICT_REACH_ACCEPTS);
	doubted(bed, 6, 1, RAS_UNREACHABLE);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 7, VERDICT_NODE_DOWN, "NodeSilent");
	bed_expect(bed, 6, VERDICT_AGENT_FROZEN, "AgentMute");
	// Three of eight may be one side of a partition.
	doubted(bed, 5, 1, RAS_UNREACHABLE);
	seen_as(bed, 7, 1, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_pass(bed, SEC);
	bed_expect(bed, 7, VERDICT_UNKNOWN, "Unreachable");
	bed_destroy(bed);
}

static void nobody_of_a_half_that_falls_silent_is_down_before_the_overlay_has_counted(void **state
) {
	struct bed *bed = bed_create(6);

	(void)state;
	// The others are found silent while the first one is already suspected.
	doubted(bed, 3, 1, RAS_SUSPECT);
	seen_as(bed, 3, 3, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	for (uint32_t n = 0; n < 80; n++) {
		for (uint32_t peer = 3; peer < 6; peer++)
			assert_true(bed_view(bed, peer).verdict <= VERDICT_UNKNOWN);
		bed_pass(bed, 100 * MS);
	}
	bed_destroy(bed);
}

static void two_of_six_that_fall_silent_at_once_are_likely_down_a_moment_later(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	doubted(bed, 4, 2, RAS_SUSPECT);
	seen_as(bed, 4, 2, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_UNKNOWN, "SilentBothWays");
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_NODE_DOWN, "NodeSilent");
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	bed_destroy(bed);
}

// The death is news of an earlier silence. Judging it again after five seconds must not count as
// a new silence of that moment.
static void one_that_is_dead_by_news_fell_silent_when_that_came(void **state) {
	struct verdict_peer_update dead = bed_peer(5, RAS_DEAD, RAS_CAUSE_SILENT);
	struct bed *bed = bed_create(6);

	(void)state;
	dead.reach = VERDICT_REACH_NONE;
	assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &dead), 0);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "OverlaySilent");
	bed_pass(bed, 3500 * MS);
	doubted(bed, 4, 1, RAS_SUSPECT);
	seen_as(bed, 4, 1, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_pass(bed, 1900 * MS);
	bed_expect(bed, 4, VERDICT_UNKNOWN, "SilentBothWays");
	bed_pass(bed, 600 * MS);
	bed_expect(bed, 4, VERDICT_NODE_DOWN, "NodeSilent");
	bed_destroy(bed);
}

static void what_was_heard_before_its_pulse_fell_silent_makes_no_fabric_down(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see_reach(bed, 3, 5, OBSERVATION_GOOD, VERDICT_REACH_ANSWERS);
	bed_pass(bed, 2 * SEC);
	seen_as(bed, 5, 1, OBSERVATION_SILENT, VERDICT_REACH_UNKNOWN);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "SilentBothWays");
	bed_see_reach(bed, 1, 5, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void one_whose_link_is_quiet_is_not_called_fabric_down(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed->quiet = UINT64_C(1) << 5;
	seen_as(bed, 5, 1, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "SilentBothWays");
	bed->quiet = 0; // the link was only late
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// Regression: one of six agents was off the fabric for long, and another one was killed. Together
// they were a third of all, so the engine waited for more and withdrew the first verdict: it
// flapped.
static void one_that_is_fabric_down_for_long_stays_so_when_others_fall_silent(void **state) {
	static const enum verdict_reach reaches[] = {
		VERDICT_REACH_NONE, VERDICT_REACH_REFUSES, VERDICT_REACH_ACCEPTS};

	(void)state;
	for (size_t n = 0; n < sizeof(reaches) / sizeof(reaches[0]); n++) {
		struct bed *bed = bed_create(6);
		uint32_t changes;

		seen_as(bed, 4, 1, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
		bed_pass(bed, 20 * SEC);
		bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
		bed->quiet = UINT64_C(1) << 5 | UINT64_C(1) << 3;
		seen_as(bed, 5, 1, OBSERVATION_SILENT, reaches[n]);
		doubted(bed, 5, 1, RAS_SUSPECT);
		// The overlay gave it a new link, and so another observer.
		bed_see_reach(bed, 3, 4, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
		changes = bed->changes;
		for (uint32_t tenth = 0; tenth < 80; tenth++) {
			seen_as(bed, 4, 1, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
			bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
			bed_pass(bed, 100 * MS);
		}
		bed_state(bed, 5, RAS_DEAD, RAS_CAUSE_SILENT);
		bed_pass(bed, 5 * SEC);
		bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
		assert_true(bed->changes <= changes + 2); // changes of the other agent only
		bed_destroy(bed);
	}
}

static void one_that_was_likely_down_stays_so_when_another_falls_silent(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	doubted(bed, 5, 1, RAS_SUSPECT);
	seen_as(bed, 5, 1, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	bed_pass(bed, 2 * SEC);
	doubted(bed, 4, 1, RAS_SUSPECT);
	seen_as(bed, 4, 1, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed->quiet = UINT64_C(1) << 3;
	for (uint32_t tenth = 0; tenth < 40; tenth++) {
		bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
		bed_pass(bed, 100 * MS);
	}
	bed_destroy(bed);
}

static void one_observer_alone_calls_nobody_frozen_that_is_unreachable(void **state) {
	static const enum observation_kind kinds[] = {
		OBSERVATION_SILENT, OBSERVATION_STANDING, OBSERVATION_NO_PAIR};

	(void)state;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct bed *bed = bed_create(4);

		doubted(bed, 1, 3, RAS_UNREACHABLE);
		brake(bed);
		bed_see_reach(bed, 0, 2, kinds[n], VERDICT_REACH_ACCEPTS);
		bed_pass(bed, 10 * SEC);
		bed_expect(bed, 2, VERDICT_UNKNOWN, "Unreachable");
		bed_destroy(bed);
	}
}

UNIT_GROUP(verdict_heard) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_whose_kernels_accept_are_frozen_also_while_the_brake_holds),
		cmocka_unit_test(half_whose_pulses_stand_are_frozen_also_where_only_that_is_seen),
		cmocka_unit_test(half_that_refuses_is_unknown_since_a_firewall_between_may),
		cmocka_unit_test(
			one_that_all_are_refused_by_stays_gone_where_votes_alone_hold_its_death
		),
		cmocka_unit_test(one_connection_that_was_just_accepted_makes_nobody_frozen),
		cmocka_unit_test(whom_a_brake_makes_unreachable_keeps_its_word),
		cmocka_unit_test(a_brake_takes_nothing_back_of_one_that_is_suspected_beside_few),
		cmocka_unit_test(one_that_was_named_stays_so_where_votes_alone_hold_its_death),
		cmocka_unit_test(one_that_was_named_stays_so_beside_another_that_is_unreachable),
		cmocka_unit_test(
			nobody_of_a_half_that_falls_silent_is_down_before_the_overlay_has_counted
		),
		cmocka_unit_test(two_of_six_that_fall_silent_at_once_are_likely_down_a_moment_later
		),
		cmocka_unit_test(one_that_is_dead_by_news_fell_silent_when_that_came),
		cmocka_unit_test(what_was_heard_before_its_pulse_fell_silent_makes_no_fabric_down),
		cmocka_unit_test(one_whose_link_is_quiet_is_not_called_fabric_down),
		cmocka_unit_test(one_that_is_fabric_down_for_long_stays_so_when_others_fall_silent),
		cmocka_unit_test(one_that_was_likely_down_stays_so_when_another_falls_silent),
		cmocka_unit_test(one_observer_alone_calls_nobody_frozen_that_is_unreachable),
	};

	return cmocka_run_group_tests_name("verdict_heard", tests, NULL, NULL);
}
