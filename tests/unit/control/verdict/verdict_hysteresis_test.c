// SPDX-License-Identifier: BSD-3-Clause
// What is held, and for how long: hysteresis, staleness, restarts, and evidence in any order.
#include "control/verdict/verdict_bed.h"

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

// A frozen agent, whose device answers for it no more than its sockets do.
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
		// Of before, told late.
		late.age_ms = 2000;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &late), -ESTALE);
		bed_pass(bed, 5 * SEC);
		bed_expect(bed, 5, VERDICT_HEALTHY, "None");
		bed_pass(bed, 60 * SEC);
		// What is seen from now on counts again.
		bed_see_two(bed, 5, OBSERVATION_SILENT);
		bed_pass(bed, SEC);
		bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
		// And outlives a doubt that came long after it.
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

// Found: it was told again after 5 s with the advice of a suspect, and not when it was dead.
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

// The reads fail first, since its device answers from within the process that was stopped.
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

// Its page is read again before its beats are heard: it woke up, and no network was cut.
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

// One that the overlay does not hear, and whose pulse is read.
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
	assert_int_equal(bed->changes, 1); // it was not told as healthy in between
	assert_true(bed_view(bed, 5).since_ns > since_ns);
	bed_destroy(bed);
}

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

// Read well before it was too old, by others than those who had told of it.
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
	// Of one that was read before it fell silent that says nothing.
	bed_state(bed, 6, RAS_SUSPECT, RAS_CAUSE_SILENT);
	bed_see_two(bed, 6, OBSERVATION_GOOD);
	bed_pass(bed, 3 * SEC);
	bed_state(bed, 6, RAS_DEAD, RAS_CAUSE_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 6, VERDICT_UNKNOWN, "HostOrAgent");
	bed_destroy(bed);
}

// Found: how its host had taken connections stood as long as the death, was too old the moment that
// ended, and left the node unknown for five minutes where nobody read its pulse.
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

// Found: of one that fell silent long before the news of its death came, those who did not read it
// themselves kept what they had been told; who had told it had forgotten the path with the peer.
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
	struct verdict_peer self = bed_peer(0, RAS_ALIVE, RAS_CAUSE_NONE);

	self.incarnation++;
	assert_int_equal(verdict_peer(bed->engine, bed->now_ns, &self), 0);
}

// Found: one that had been cut off said of itself for five minutes that its evidence was stale.
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
	// What was on its way since before does not begin it anew.
	assert_int_equal(
		bed_see_reach(bed, 4, 0, OBSERVATION_NO_PAIR, VERDICT_REACH_NONE), -ESTALE
	);
	assert_int_equal(bed_see(bed, 4, 0, OBSERVATION_SILENT), -ESTALE);
	assert_int_equal(bed_see(bed, 4, 0, OBSERVATION_STANDING), -ESTALE);
	assert_int_equal(bed_see(bed, 4, 0, OBSERVATION_LOSSY), 0);
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

// One observer who is deaf itself does not reach it, and tells that once.
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

static void of_what_a_node_says_the_worst_is_told_until_it_is_taken_back(void **state) {
	struct bed *bed = bed_create(8);
	struct statement statement;
	uint64_t said_ns;
	uint32_t cursor = 0;

	(void)state;
	bed_say(bed, 5, VERDICT_CHECK_WARNING, "Warm");
	bed_expect(bed, 5, VERDICT_CHECK_WARNING, "Warm");
	bed_say(bed, 5, VERDICT_DEVICE_STUCK, "DeviceStuck");
	bed_say(bed, 5, VERDICT_UNKNOWN, "CheckTimedOut");
	bed_expect(bed, 5, VERDICT_DEVICE_STUCK, "DeviceStuck");
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_DRAIN_LATER);
	assert_string_equal(bed_view(bed, 5).evidence, "it says so");
	while (verdict_statement_next(bed->engine, bed_id(5), &cursor, &statement, &said_ns))
		assert_int_equal(said_ns, bed->now_ns);
	assert_int_equal(cursor, 3);
	bed_say(bed, 5, VERDICT_HEALTHY, "DeviceStuck");
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "CheckTimedOut");
	bed_destroy(bed);
}

static void more_words_than_are_kept_are_refused(void **state) {
	struct bed *bed = bed_create(8);
	char reason[] = "Check0";

	(void)state;
	for (uint32_t n = 0; n < VERDICT_STATEMENTS_MAX; n++) {
		reason[5] = (char)('A' + n);
		assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_WARNING, reason), 0);
	}
	assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_FAILED, "OneMore"), -ENOSPC);
	bed_expect(bed, 5, VERDICT_CHECK_WARNING, "CheckA");
	bed_destroy(bed);
}

static void evidence_of_nobody_and_of_the_past_is_refused(void **state) {
	struct bed *bed = bed_create(8);
	struct verdict_counts counts;
	struct observation observation = bed_observation(1, 20, OBSERVATION_SILENT);

	(void)state;
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), -ENOENT);
	observation = bed_observation(1, 5, OBSERVATION_SILENT);
	observation.age_ms = 30000;
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), -ESTALE);
	observation.age_ms = 0;
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), 0);
	observation.age_ms = 1000;
	observation.kind = OBSERVATION_GOOD;
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), -ESTALE);
	assert_int_equal(bed_say(bed, 30, VERDICT_CHECK_FAILED, "DiskFull"), -ENOENT);
	verdict_counts(bed->engine, &counts);
	assert_int_equal(counts.observations, 1);
	assert_int_equal(counts.observations_unknown, 1);
	assert_int_equal(counts.observations_stale, 2);
	bed_destroy(bed);
}

static void of_more_observers_than_are_kept_the_freshest_stay(void **state) {
	const uint32_t last = VERDICT_SUBJECT_OBSERVATIONS_MAX + 4, subject = last + 5;
	struct bed *bed = bed_create(last + 10);
	struct observation observation;
	uint64_t seen_ns;
	uint32_t cursor = 0;

	(void)state;
	for (uint32_t n = 1; n <= last; n++) {
		bed_see(bed, n, subject, OBSERVATION_GOOD);
		bed_pass(bed, 10 * MS);
	}
	while (verdict_observation_next(
		bed->engine, bed_id(subject), &cursor, &observation, &seen_ns
	))
		assert_int_equal(observation.observer, bed_id(last + 1 - cursor)); // newest first
	assert_int_equal(cursor, VERDICT_SUBJECT_OBSERVATIONS_MAX);
	observation = bed_observation(1, subject, OBSERVATION_GOOD);
	observation.age_ms = 1000;
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), -ENOSPC);
	bed_destroy(bed);
}

static void a_new_start_is_not_judged_by_what_was_seen_of_the_old_one(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_peer peer = bed_peer(5, RAS_ALIVE, RAS_CAUSE_NONE);
	struct observation late = bed_observation(3, 5, OBSERVATION_SILENT);

	(void)state;
	peer.incarnation = ras_incarnation(2, 0);
	assert_int_equal(verdict_peer(bed->engine, bed->now_ns, &peer), 0);
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &late), -ESTALE);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void one_that_started_anew_is_healthy_since_then(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_peer peer = bed_peer(5, RAS_ALIVE, RAS_CAUSE_NONE);

	(void)state;
	for (uint32_t n = 1; n < 4; n++)
		bed_see(bed, n, 5, OBSERVATION_GOOD);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_pass(bed, 10 * SEC);
	assert_true(bed_view(bed, 5).since_ns < bed->now_ns - 9 * SEC);
	peer.incarnation = ras_incarnation(2, 0);
	assert_int_equal(verdict_peer(bed->engine, bed->now_ns, &peer), 0);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	assert_int_equal(bed_view(bed, 5).since_ns, bed->now_ns);
	bed_destroy(bed);
}

static void a_refutation_is_no_new_start(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_peer peer = bed_peer(5, RAS_ALIVE, RAS_CAUSE_NONE);

	(void)state;
	peer.incarnation = ras_incarnation(1, 3);
	assert_int_equal(verdict_peer(bed->engine, bed->now_ns, &peer), 0);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void the_same_peer_again_changes_nothing(void **state) {
	struct bed *bed = bed_with_fabric_down();
	uint64_t allocations = bed->heap.asked;

	(void)state;
	for (uint32_t n = 0; n < 8; n++)
		bed_state(bed, n, RAS_ALIVE, RAS_CAUSE_NONE);
	assert_int_equal(bed->changes, 1);
	assert_int_equal(bed->heap.asked, allocations);
	bed_destroy(bed);
}

static void one_that_leaves_is_no_matter_any_more(void **state) {
	struct bed *bed = bed_with_fabric_down();

	(void)state;
	bed_state(bed, 5, RAS_LEFT, RAS_CAUSE_LEAVE);
	bed_expect(bed, 5, VERDICT_NONE, "None");
	assert_int_equal(bed->last_now, VERDICT_NONE);
	bed_state(bed, 5, RAS_ALIVE, RAS_CAUSE_NONE);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void a_forgotten_peer_is_unknown_and_what_it_told_is_gone(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_view view;

	(void)state;
	verdict_forget(bed->engine, bed->now_ns, bed_id(5));
	assert_int_equal(verdict_of(bed->engine, bed_id(5), &view), -ENOENT);
	assert_int_equal(bed->last.before, VERDICT_FABRIC_DOWN);
	assert_int_equal(bed->last_now, VERDICT_NONE);
	bed_see_two(bed, 6, OBSERVATION_SILENT);
	verdict_forget(bed->engine, bed->now_ns, bed_id(1));
	bed_pass(bed, SEC);
	bed_expect(bed, 6, VERDICT_HEALTHY, "None");
	verdict_forget(bed->engine, bed->now_ns, bed_id(99));
	bed_destroy(bed);
}

static void the_last_changes_are_remembered_newest_first(void **state) {
	struct bed *bed = bed_create(8);
	struct verdict_past past;
	uint32_t cursor = 0;

	(void)state;
	for (uint32_t n = 0; n < 6; n++) {
		bed_see_two(bed, 5, OBSERVATION_SILENT);
		bed_pass(bed, SEC);
		bed_see_two(bed, 5, OBSERVATION_GOOD);
		bed_pass(bed, 60 * SEC);
	}
	while (verdict_past_next(bed->engine, bed_id(5), &cursor, &past)) {
		assert_int_equal(
			past.verdict, cursor % 2 == 1 ? VERDICT_FABRIC_DOWN : VERDICT_HEALTHY
		);
		assert_true(past.since_ns < past.until_ns);
	}
	assert_int_equal(cursor, VERDICT_HISTORY_MAX);
	bed_destroy(bed);
}

static void who_is_no_member_knows_nothing(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_self self = {.joined = false};
	struct verdict_view view;

	(void)state;
	verdict_self(bed->engine, bed->now_ns, &self);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "NotMember");
	bed_expect(bed, 6, VERDICT_UNKNOWN, "NotMember");
	for (uint32_t peer = 5; peer <= 6; peer++) { // judged before, and never
		assert_int_equal(verdict_of(bed->engine, bed_id(peer), &view), 0);
		assert_string_equal(
			view.evidence, "The agent that was asked is no member of the cluster."
		);
	}
	self.joined = true;
	verdict_self(bed->engine, bed->now_ns, &self);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_expect(bed, 6, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void only_what_is_bad_is_listed_and_all_are_counted(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_counts counts;
	struct verdict_view view;
	uint32_t cursor = 0;

	(void)state;
	bed_state(bed, 6, RAS_LEFT, RAS_CAUSE_LEAVE);
	bed_state(bed, 7, RAS_DEAD, RAS_CAUSE_GONE);
	while (verdict_next(bed->engine, &cursor, &view))
		assert_true(view.subject == bed_id(5) || view.subject == bed_id(7));
	verdict_counts(bed->engine, &counts);
	assert_int_equal(counts.of[VERDICT_FABRIC_DOWN], 1);
	assert_int_equal(counts.of[VERDICT_AGENT_DOWN], 1);
	assert_int_equal(counts.of[VERDICT_NONE], 1);
	assert_int_equal(counts.of[VERDICT_HEALTHY], 5);
	bed_destroy(bed);
}

// Evidence of all kinds, told in one order and in many others: after a while all engines agree.
#define PIECES 60

static uint64_t draw(uint64_t *random, uint64_t below) {
	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (*random >> 33) % below;
}

static void
pieces_draw(uint64_t *random, struct observation pieces[PIECES], uint64_t ages[PIECES]) {
	for (uint32_t n = 0; n < PIECES; n++) {
		uint32_t observer = (uint32_t)draw(random, 8);
		uint32_t subject = 4 + (uint32_t)draw(random, 4);

		subject = subject == observer ? 3 : subject;
		pieces[n] =
			bed_observation(observer, subject, (enum observation_kind)draw(random, 6));
		pieces[n].reach = (enum verdict_reach)draw(random, 5);
		pieces[n].responder = (enum observation_responder)draw(random, 4);
		pieces[n].own_good = draw(random, 8) != 0;
		ages[n] = draw(random, 2000) * 7 % 2000; // of one path no two alike, nearly
		pieces[n].age_ms = (uint32_t)ages[n];
		// One word of each observer: the order of two is no matter of order alone.
		for (uint32_t before = 0; before < n; before++) {
			if (pieces[before].observer == pieces[n].observer &&
			    pieces[before].subject == pieces[n].subject)
				pieces[n] = pieces[before];
		}
	}
}

static void pieces_shuffle(uint64_t *random, struct observation pieces[PIECES]) {
	for (uint32_t n = PIECES - 1; n > 0; n--) {
		uint32_t other = (uint32_t)draw(random, n + 1);
		struct observation moved = pieces[n];

		pieces[n] = pieces[other];
		pieces[other] = moved;
	}
}

// What an engine makes of the pieces in this order.
static struct bed *bed_of_pieces(const struct observation pieces[PIECES], bool with_death) {
	struct bed *bed = bed_create(8);

	for (uint32_t n = 0; n < PIECES; n++)
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &pieces[n]), 0);
	if (with_death)
		bed_state(bed, 4, RAS_DEAD, RAS_CAUSE_SILENT);
	bed_pass(bed, 10 * SEC);
	return bed;
}

static void the_order_in_which_evidence_comes_does_not_matter(void **state) {
	uint64_t random = 12345;

	(void)state;
	for (uint32_t world = 0; world < 60; world++) {
		struct observation pieces[PIECES];
		uint64_t ages[PIECES];
		enum verdict first[8];

		pieces_draw(&random, pieces, ages);
		for (uint32_t order = 0; order < 8; order++) {
			struct bed *bed = bed_of_pieces(pieces, world % 2 == 0);

			for (uint32_t agent = 0; agent < 8; agent++) {
				enum verdict verdict = bed_view(bed, agent).verdict;

				if (order == 0)
					first[agent] = verdict;
				assert_int_equal(verdict, first[agent]);
			}
			bed_destroy(bed);
			pieces_shuffle(&random, pieces);
		}
	}
}

int main(void) {
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
		cmocka_unit_test(evidence_that_is_not_repeated_leaves_unknown_never_healthy),
		cmocka_unit_test(connections_refused_before_a_death_ended_say_nothing_after_it),
		cmocka_unit_test(pulse_unread_before_a_death_says_nothing_after_it),
		cmocka_unit_test(
			one_that_refuted_its_death_is_rid_of_what_others_said_of_it_meanwhile
		),
		cmocka_unit_test(what_grows_old_after_a_good_look_is_no_evidence_of_anything),
		cmocka_unit_test(what_nobody_repeats_for_ten_times_as_long_is_forgotten),
		cmocka_unit_test(what_is_read_in_the_silence_is_believed_when_it_ends_in_death),
		cmocka_unit_test(a_good_look_does_not_take_back_what_the_node_said_itself),
		cmocka_unit_test(a_word_of_the_node_does_not_take_back_what_others_saw),
		cmocka_unit_test(what_went_stale_of_both_kinds_is_taken_back_by_both),
		cmocka_unit_test(what_never_made_a_verdict_leaves_no_doubt_when_it_is_stale),
		cmocka_unit_test(of_what_a_node_says_the_worst_is_told_until_it_is_taken_back),
		cmocka_unit_test(more_words_than_are_kept_are_refused),
		cmocka_unit_test(evidence_of_nobody_and_of_the_past_is_refused),
		cmocka_unit_test(of_more_observers_than_are_kept_the_freshest_stay),
		cmocka_unit_test(a_new_start_is_not_judged_by_what_was_seen_of_the_old_one),
		cmocka_unit_test(one_that_started_anew_is_healthy_since_then),
		cmocka_unit_test(a_refutation_is_no_new_start),
		cmocka_unit_test(the_same_peer_again_changes_nothing),
		cmocka_unit_test(one_that_leaves_is_no_matter_any_more),
		cmocka_unit_test(a_forgotten_peer_is_unknown_and_what_it_told_is_gone),
		cmocka_unit_test(the_last_changes_are_remembered_newest_first),
		cmocka_unit_test(who_is_no_member_knows_nothing),
		cmocka_unit_test(only_what_is_bad_is_listed_and_all_are_counted),
		cmocka_unit_test(the_order_in_which_evidence_comes_does_not_matter),
	};

	return cmocka_run_group_tests_name("verdict_hold", tests, NULL, NULL);
}
