// SPDX-License-Identifier: BSD-3-Clause
// Censuses: which results are accepted, which members have a vote, and what follows from a
// result.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <stdio.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static uint32_t deaths_by(const struct world *world, uint32_t node) {
	return (uint32_t)ras_counters(world->nodes[node].ras)->deaths_declared;
}

static void told(struct lone *lone, uint32_t origin, uint32_t reached, uint32_t members) {
	brake_peer_census_done(
		lone->ras, lone_id(lone, origin),
		&(struct census_result
		){.reached = reached, .members = members, .voters = reached, .electorate = members}
	);
}

static void told_by_two(struct lone *lone, uint32_t reached, uint32_t members) {
	for (uint32_t n = 2; n < 4; n++) {
		brake_census_started(lone->ras, lone_id(lone, n), true);
		told(lone, n, reached, members);
	}
}

// Regression: once the brake let members of a first partition be declared dead, those of a second
// partition were, too, at once.
static void who_falls_silent_after_the_brakes_time_has_a_time_of_its_own(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	struct liveness *liveness = &ras->liveness;
	uint64_t first_ns, second_ns;

	(void)state;
	lone_pass(lone, SEC);
	ras_enter(ras, lone->now_ns);
	first_ns = ras->observed_ns;
	told_by_two(lone, 14, 24);
	assert_int_equal(brake_decision(ras, first_ns, first_ns), BRAKE_HELD);
	for (uint32_t n = 0; n < 70 && liveness->brake; n++) {
		lone_pass(lone, SEC);
		ras_enter(ras, lone->now_ns);
		told_by_two(lone, 14, 24);
	}
	assert_false(liveness->brake);
	second_ns = ras->observed_ns;
	assert_int_equal(brake_decision(ras, first_ns, second_ns), BRAKE_FREE);
	assert_int_equal(brake_decision(ras, second_ns, second_ns), BRAKE_HELD);
	assert_true(liveness->brake);
	lone_destroy(lone);
}

// Regression: both others had no vote, so the brake let go, and no member was left to ask. They
// stayed suspects, which kept their names from their own restarts at other addresses.
static void who_is_silent_when_nobody_is_left_to_ask_is_unreachable(void **state) {
	struct lone *lone = lone_of(3, 1);
	struct ras *ras = lone->ras;

	(void)state;
	for (uint32_t peer = 0; peer < 3; peer += 2) {
		lone_link(lone, peer);
		votes_withdraw(ras, peers_find(&ras->peers, lone_id(lone, peer)));
	}
	lone_pass(lone, 40 * SEC);
	assert_int_equal(ras->liveness.brake, false);
	assert_int_equal(lone_peer(lone, 0).state, RAS_UNREACHABLE);
	assert_int_equal(lone_peer(lone, 2).state, RAS_UNREACHABLE);
	lone_destroy(lone);
}

// Regression: a census started earlier was mistaken for the requested one.
static void count_of_ours_that_another_one_overtook_is_none(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct census_result result = {.reached = 8, .voters = 8};

	(void)state;
	lone_pass(lone, SEC);
	ras_enter(lone->ras, lone->now_ns);
	lone->ras->liveness.census.own_ns = lone->ras->observed_ns;
	brake_own_census_done(lone->ras, lone->ras->observed_ns - 300 * MS, &result);
	ras_exit(lone->ras);
	assert_int_equal(lone->ras->liveness.census.word.at_ns, 0);
	lone_destroy(lone);
}

// Regression: a suspect that other members heard again was held here, and declared dead on the
// census that had reached it.
static void count_that_reaches_all_members_is_a_proof_of_life_of_each(void **state) {
	struct lone *lone = lone_of(8, 1);

	(void)state;
	for (uint32_t reached = 7; reached <= 8; reached++) {
		ras_enter(lone->ras, lone->now_ns);
		liveness_absence_reported(
			lone->ras, peers_find(&lone->ras->peers, lone_id(lone, 5)), 0
		);
		ras_exit(lone->ras);
		lone_pass(lone, SEC);
		ras_enter(lone->ras, lone->now_ns);
		told_by_two(lone, reached, 8);
		ras_exit(lone->ras);
		assert_int_equal(lone_peer(lone, 5).state, reached < 8 ? RAS_SUSPECT : RAS_ALIVE);
	}
	lone_destroy(lone);
}

// Regression: a stranger in the census made up for the subject that no member heard.
static void count_of_as_many_proves_nothing_of_whom_nobody_hears(void **state) {
	struct lone *lone = lone_of(8, 1);
	uint64_t subject = lone_id(lone, 5);

	(void)state;
	for (uint32_t heard = 0; heard <= 1; heard++) {
		struct census_result result = {
			.reached = 8,
			.members = 8,
			.voters = 8,
			.electorate = 8,
			.subject_count = 1,
			.subjects = &subject,
			.heard = (uint8_t)heard,
		};

		ras_enter(lone->ras, lone->now_ns);
		liveness_absence_reported(lone->ras, peers_find(&lone->ras->peers, subject), 0);
		ras_exit(lone->ras);
		lone_pass(lone, SEC);
		ras_enter(lone->ras, lone->now_ns);
		for (uint32_t n = 2; n < 4; n++) {
			brake_census_started(lone->ras, lone_id(lone, n), true);
			brake_peer_census_done(lone->ras, lone_id(lone, n), &result);
		}
		ras_exit(lone->ras);
		assert_int_equal(lone_peer(lone, 5).state, heard ? RAS_ALIVE : RAS_SUSPECT);
	}
	lone_destroy(lone);
}

static void count_of_one_other_is_believed_when_a_second_one_comes_to_the_same(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t since_ns;

	(void)state;
	lone_pass(lone, SEC);
	ras_enter(ras, lone->now_ns);
	since_ns = ras->observed_ns;
	brake_census_started(ras, lone_id(lone, 2), true);
	brake_census_started(ras, lone_id(lone, 3), true);
	told(lone, 4, 3, 8); // this member started no census
	told(lone, 2, 3, 8);
	told(lone, 2, 3, 8);
	assert_int_equal(brake_decision(ras, since_ns, since_ns), BRAKE_UNKNOWN);
	told(lone, 3, 7, 8); // not all members, but many more than the other census
	assert_int_equal(brake_decision(ras, since_ns, since_ns), BRAKE_UNKNOWN);
	told(lone, 2, 8, 8);
	assert_int_equal(brake_decision(ras, since_ns, since_ns), BRAKE_FREE);
	assert_int_equal(lone_events(lone, RAS_EVENT_BRAKE_ON), 0);
	lone_destroy(lone);
}

// Start a census and report its result. If not `serves`, the census is invalid here: its origin
// has no vote, or it counts a member that has none here.
static void begin_and_tell(struct lone *lone, bool serves, uint32_t reached) {
	for (uint32_t peer = 2; peer < 4; peer++) {
		brake_census_started(lone->ras, lone_id(lone, peer), serves);
		told(lone, peer, reached, 8);
	}
}

// Regression: the smaller side of a partition declared the larger one dead. A readmitted member
// counted by its own view. It also asked members to vote that did not yet know of its death.
static void count_that_serves_not_steers_only_those_without_a_vote(void **state) {
	(void)state;
	for (uint32_t serves = 0; serves < 2; serves++) {
		struct lone *lone = lone_of(8, 1);
		struct ras *ras = lone->ras;

		lone_pass(lone, SEC);
		ras_enter(ras, lone->now_ns);
		begin_and_tell(lone, serves, 7);
		assert_int_equal(
			brake_decision(ras, ras->observed_ns, ras->observed_ns),
			serves ? BRAKE_FREE : BRAKE_UNKNOWN
		);
		// Without a vote this node declares no death, from any census.
		votes_withdraw(ras, ras->self_slot);
		lone_pass(lone, 4 * SEC);
		ras_enter(ras, lone->now_ns);
		begin_and_tell(lone, serves, 7);
		assert_int_equal(
			brake_decision(ras, ras->observed_ns, ras->observed_ns), BRAKE_HELD
		);
		lone_destroy(lone);
	}
}

// Members without a vote may see a partition that no voter sees. Votes must not return before it
// is over.
static void what_two_without_a_vote_miss_keeps_the_view_from_being_whole(void **state) {
	for (uint32_t tell = 1; tell <= 2; tell++) {
		struct lone *lone = lone_of(8, 1);
		struct ras *ras = lone->ras;

		(void)state;
		lone_pass(lone, SEC);
		ras_enter(ras, lone->now_ns);
		for (uint32_t peer = 2; peer < 4; peer++)
			votes_withdraw(ras, peers_find(&ras->peers, lone_id(lone, peer)));
		votes_tick(ras);
		assert_int_not_equal(ras->liveness.view_whole_since_ns, RAS_NEVER);
		for (uint32_t peer = 2; peer < 2 + tell; peer++) {
			told(lone, peer, 6, 8);
			told(lone, peer, 6, 8);
		}
		votes_tick(ras);
		assert_int_equal(ras->liveness.view_whole_since_ns == RAS_NEVER, tell == 2);
		lone_destroy(lone);
	}
}

// Let a member take part normally, but report an invented census result as often as possible.
static void lie_about_a_count(struct world *world, uint32_t liar, uint64_t ns, uint32_t reached) {
	struct ras *ras = world->nodes[liar].ras;
	struct census_result lie = {
		.reached = reached,
		.members = world->count,
		.voters = reached,
		.electorate = world->count,
	};

	for (uint64_t end_ns = world->now_ns + ns; world->now_ns < end_ns;) {
		ras_enter(ras, world->now_ns);
		collective_census_start(ras, SEC, NULL, 0);
		ras_exit(ras);
		world_pass(world, 10 * MS);
		for (uint32_t n = 0; n < 9; n++) {
			ras_enter(ras, world->now_ns);
			flood_send_census(ras, &lie);
			ras_exit(ras);
			world_pass(world, 50 * MS);
		}
	}
}

// Regression: one member's NOTICE became the census result of all members.
static void member_that_makes_counts_up_engages_nobodys_brake(void **state) {
	struct world *world = world_of(16);

	(void)state;
	world_off(world, 5);
	lie_about_a_count(world, 15, 15 * SEC, 7);
	for (uint32_t n = 0; n < 15; n++) {
		assert_int_equal(world_events(world, n, RAS_EVENT_BRAKE_ON), 0);
		assert_int_equal(n == 5 ? RAS_DEAD : world_state(world, n, 5), RAS_DEAD);
	}
	world_destroy(world);
}

static void member_that_makes_counts_up_lets_nobodys_brake_go(void **state) {
	struct world *world = world_of(16);

	(void)state;
	world_split(world, 8, WORLD_STALLED);
	lie_about_a_count(world, 15, 40 * SEC, 16);
	for (uint32_t n = 0; n < 15; n++) {
		assert_int_equal(world_events(world, n, RAS_EVENT_BRAKE_OFF), 0);
		assert_int_equal(world_view(world, n).dead, 0);
	}
	world_destroy(world);
}

// Limits of plausible results, and of the wait for other members' unfinished censuses.
static void counts_that_cannot_be_or_never_end_are_not_waited_for(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t since_ns;

	(void)state;
	ras_enter(ras, lone->now_ns);
	lone_link(lone, 2);
	// More than all members, and fewer than this node has links with.
	for (uint32_t n = 2; n < 4; n++) {
		brake_census_started(ras, lone_id(lone, n), true);
		told(lone, n, 9, 8);
		told(lone, n, 1, 8);
	}
	since_ns = ras->observed_ns;
	assert_int_equal(brake_decision(ras, since_ns, since_ns), BRAKE_UNKNOWN);
	for (uint32_t n = 0; n < 20 && ras->liveness.census.word.at_ns == 0; n++) {
		brake_census_started(ras, lone_id(lone, 2), true); // other members start censuses
		brake_census_started(ras, lone_id(lone, 3), true);
		brake_request_census(ras, since_ns);
		lone_pass(lone, 500 * MS);
	}
	assert_int_equal(ras->liveness.census.word.reached, 1); // no member answers here
	assert_int_equal(brake_decision(ras, since_ns, since_ns), BRAKE_HELD);
	lone_destroy(lone);
}

// Regression: observed time excludes the pause, so an earlier census seemed to be recent.
static void count_of_before_a_pause_of_our_own_is_none(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t since_ns;

	(void)state;
	lone_pass(lone, SEC);
	ras_enter(ras, lone->now_ns);
	since_ns = ras->observed_ns;
	for (uint32_t n = 2; n < 4; n++) {
		brake_census_started(ras, lone_id(lone, n), true);
		told(lone, n, 8, 8);
	}
	assert_int_equal(brake_decision(ras, since_ns, since_ns), BRAKE_FREE);
	lone->now_ns += 20 * SEC; // paused
	ras_tick(ras, lone->now_ns);
	assert_true(lone_events(lone, RAS_EVENT_PAUSED) > 0);
	assert_int_equal(brake_decision(ras, since_ns, since_ns), BRAKE_UNKNOWN);
	lone_destroy(lone);
}

static void one_count_serves_all_observers_of_a_moment(void **state) {
	struct world *world = world_of(24);
	uint64_t begun = 0;

	(void)state;
	world_off(world, 5);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	// Every notice sent by a node itself is the end of a census.
	for (uint32_t n = 0; n < 24; n++) {
		if (n != 5)
			begun += ras_collect_counters(world->nodes[n].ras)->notices_sent;
	}
	assert_in_range(begun, 1, 4);
	world_destroy(world);
}

// The node can send but not receive. Its census result reaches all members, but has counted only
// itself.
static void count_of_one_that_hears_nothing_is_no_brake_for_the_others(void **state) {
	struct world *world = world_of(12);

	(void)state;
	for (uint32_t n = 1; n < 12; n++)
		world_way(world, n, 0, WORLD_STALLED);
	world_off(world, 6);
	world_pass(world, 14 * SEC);
	for (uint32_t n = 1; n < 12; n++) {
		assert_int_equal(world_events(world, n, RAS_EVENT_BRAKE_ON), 0);
		assert_int_equal(n == 6 ? RAS_DEAD : world_state(world, n, 6), RAS_DEAD);
	}
	assert_int_equal(deaths_by(world, 0), 0);
	world_destroy(world);
}

UNIT_GROUP(ras_census) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_falls_silent_after_the_brakes_time_has_a_time_of_its_own),
		cmocka_unit_test(count_that_serves_not_steers_only_those_without_a_vote),
		cmocka_unit_test(what_two_without_a_vote_miss_keeps_the_view_from_being_whole),
		cmocka_unit_test(who_is_silent_when_nobody_is_left_to_ask_is_unreachable),
		cmocka_unit_test(count_of_ours_that_another_one_overtook_is_none),
		cmocka_unit_test(count_that_reaches_all_members_is_a_proof_of_life_of_each),
		cmocka_unit_test(count_of_as_many_proves_nothing_of_whom_nobody_hears),
		cmocka_unit_test(count_of_one_other_is_believed_when_a_second_one_comes_to_the_same
		),
		cmocka_unit_test(member_that_makes_counts_up_engages_nobodys_brake),
		cmocka_unit_test(member_that_makes_counts_up_lets_nobodys_brake_go),
		cmocka_unit_test(counts_that_cannot_be_or_never_end_are_not_waited_for),
		cmocka_unit_test(count_of_before_a_pause_of_our_own_is_none),
		cmocka_unit_test(one_count_serves_all_observers_of_a_moment),
		cmocka_unit_test(count_of_one_that_hears_nothing_is_no_brake_for_the_others),
	};

	return cmocka_run_group_tests_name("ras_census", tests, NULL, NULL);
}
