// SPDX-License-Identifier: BSD-3-Clause
// Tests of the evidence and the peers that an engine stores: bounds, restarts, order of evidence.
#include "control/verdict/engine/verdict_bed.h"

#include <errno.h>

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

static void more_words_than_are_kept_replace_only_what_matters_less(void **state) {
	struct bed *bed = bed_create(8);
	char reason[] = "Check0";

	(void)state;
	for (uint32_t n = 0; n < VERDICT_STATEMENTS_MAX; n++) {
		reason[5] = (char)('A' + n);
		assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_WARNING, reason), 0);
	}
	assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_WARNING, "OneMore"), -ENOSPC);
	assert_int_equal(bed_say(bed, 5, VERDICT_UNKNOWN, "OneMore"), -ENOSPC);
	bed_expect(bed, 5, VERDICT_CHECK_WARNING, "CheckA");
	assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_FAILED, "OneMore"), 0);
	bed_expect(bed, 5, VERDICT_CHECK_FAILED, "OneMore");
	bed_say(bed, 5, VERDICT_HEALTHY, "OneMore");
	assert_int_equal(bed_say(bed, 5, VERDICT_UNKNOWN, "Untested"), 0);
	assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_WARNING, "OneMore"), 0);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 5, VERDICT_CHECK_WARNING, "CheckB"); // CheckA and Untested were replaced
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
	struct verdict_peer_update peer = bed_peer(5, RAS_ALIVE, RAS_CAUSE_NONE);
	struct observation late = bed_observation(3, 5, OBSERVATION_SILENT);

	(void)state;
	peer.incarnation = ras_incarnation(2, 0);
	assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &peer), 0);
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &late), -ESTALE);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void one_that_started_anew_is_healthy_since_then(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_peer_update peer = bed_peer(5, RAS_ALIVE, RAS_CAUSE_NONE);

	(void)state;
	for (uint32_t n = 1; n < 4; n++)
		bed_see(bed, n, 5, OBSERVATION_GOOD);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_pass(bed, 10 * SEC);
	assert_true(bed_view(bed, 5).since_ns < bed->now_ns - 9 * SEC);
	peer.incarnation = ras_incarnation(2, 0);
	assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &peer), 0);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	assert_int_equal(bed_view(bed, 5).since_ns, bed->now_ns);
	bed_destroy(bed);
}

static void a_refutation_is_no_new_start(void **state) {
	struct bed *bed = bed_with_fabric_down();
	struct verdict_peer_update peer = bed_peer(5, RAS_ALIVE, RAS_CAUSE_NONE);

	(void)state;
	peer.incarnation = ras_incarnation(1, 3);
	assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &peer), 0);
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
	verdict_peer_forget(bed->engine, bed->now_ns, bed_id(5));
	assert_int_equal(verdict_view_get(bed->engine, bed_id(5), &view), -ENOENT);
	assert_int_equal(bed->last.before, VERDICT_FABRIC_DOWN);
	assert_int_equal(bed->last_now, VERDICT_NONE);
	bed_see_two(bed, 6, OBSERVATION_SILENT);
	verdict_peer_forget(bed->engine, bed->now_ns, bed_id(1));
	bed_pass(bed, SEC);
	bed_expect(bed, 6, VERDICT_HEALTHY, "None");
	verdict_peer_forget(bed->engine, bed->now_ns, bed_id(99));
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
	struct verdict_self_update self = {.joined = false};
	struct verdict_view view;

	(void)state;
	verdict_self_update(bed->engine, bed->now_ns, &self);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "NotMember");
	bed_expect(bed, 6, VERDICT_UNKNOWN, "NotMember");
	for (uint32_t peer = 5; peer <= 6; peer++) { // one judged before, and one never judged
		assert_int_equal(verdict_view_get(bed->engine, bed_id(peer), &view), 0);
		assert_string_equal(
			view.evidence, "The agent that answers is not a member of the cluster."
		);
	}
	self.joined = true;
	verdict_self_update(bed->engine, bed->now_ns, &self);
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
	while (verdict_unhealthy_next(bed->engine, &cursor, &view))
		assert_true(view.subject == bed_id(5) || view.subject == bed_id(7));
	verdict_counts(bed->engine, &counts);
	assert_int_equal(counts.of[VERDICT_FABRIC_DOWN], 1);
	assert_int_equal(counts.of[VERDICT_AGENT_DOWN], 1);
	assert_int_equal(counts.of[VERDICT_NONE], 1);
	assert_int_equal(counts.of[VERDICT_HEALTHY], 5);
	bed_destroy(bed);
}

// All kinds of evidence, in one order and in many others: all engines agree after some time.
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
		// Ages on one path are almost all different.
		ages[n] = draw(random, 2000) * 7 % 2000;
		pieces[n].age_ms = (uint32_t)ages[n];
		// Keep one observation of each observer and subject, since a later one replaces
		// the earlier.
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

// Create an engine with the pieces in this order.
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

UNIT_GROUP(verdict_kept) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_what_a_node_says_the_worst_is_told_until_it_is_taken_back),
		cmocka_unit_test(more_words_than_are_kept_replace_only_what_matters_less),
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

	return cmocka_run_group_tests_name("verdict_kept", tests, NULL, NULL);
}
