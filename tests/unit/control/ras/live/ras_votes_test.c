// SPDX-License-Identifier: BSD-3-Clause
// Who has a vote in a count of the reachable, and when those without one have it back.
#include "control/ras/ras_lone.h"

#include <support/cmocka.h>

#include <stdio.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static void count_from(struct lone *lone, uint32_t reached, uint32_t voters) {
	struct census_result result = {.reached = reached, .voters = voters};

	ras_enter(lone->ras, lone->now_ns);
	lone->ras->liveness.census.own_ns = lone->ras->observed_ns;
	brake_own_census_done(lone->ras, lone->ras->observed_ns, &result);
	ras_exit(lone->ras);
}

// What a count of ours says of the peer to whom it asks, -1 for nothing.
static int asked_of(struct lone *lone, uint32_t conn, uint64_t peer) {
	const struct lone_frame *frame;
	struct collect_request request;
	struct wire_reader reader;
	int word = -1;

	lone_mark(lone);
	ras_enter(lone->ras, lone->now_ns);
	brake_request_census(lone->ras, lone->ras->observed_ns);
	ras_exit(lone->ras);
	lone_pass(lone, 300 * MS);
	frame = lone_latest(lone, conn, MESSAGE_COLLECT);
	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(collect_request_decode(&reader, &request), 0);
	for (uint32_t n = 0; n < request.skip_count; n++) {
		struct ras_comm_id entry = collect_skip_at(&request, n);

		if (entry.hash == peer)
			word = (int)collect_census_kind(&entry);
	}
	return word;
}

// It was declared dead, and refuted that.
static void die_and_come_back(struct lone *lone, uint32_t conn, uint32_t peer) {
	struct peer_news news = lone_told(lone, peer, RAS_DEAD, ras_incarnation(1, 0));

	lone_news(lone, conn, &news);
	news = lone_told(lone, peer, RAS_ALIVE, ras_incarnation(1, 1));
	lone_news(lone, conn, &news);
	lone_pass_beating(lone, 2 * SEC, conn);
}

static uint32_t uncounted_if_missed(struct lone *lone, uint32_t conn, uint32_t peer) {
	assert_int_equal(asked_of(lone, conn, lone_id(lone, peer)), COLLECT_CENSUS_NO_VOTE);
	return lone->ras->liveness.census.own_voteless;
}

static void view_was_whole_for(struct lone *lone, uint64_t view_whole_since_ns) {
	struct ras *ras = lone->ras;

	ras_enter(ras, lone->now_ns);
	ras->observed_ns += view_whole_since_ns;
	ras->liveness.view_whole_since_ns = ras->observed_ns - view_whole_since_ns;
	votes_tick(ras);
	ras->observed_ns -= view_whole_since_ns;
	ras_exit(ras);
}

// Found: those beyond a gap had given the votes back of which we took one more away, and of two
// parts each was the larger one.
static void opponent_stays_one_when_another_is_taken_back(void **state) {
	struct lone *lone = lone_of(8, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	die_and_come_back(lone, conn, 5);
	assert_int_equal(uncounted_if_missed(lone, conn, 5), 1);
	view_was_whole_for(lone, 61 * SEC);
	assert_int_equal(uncounted_if_missed(lone, conn, 5), 0);
	die_and_come_back(lone, conn, 6);
	assert_int_equal(uncounted_if_missed(lone, conn, 5), 1); // the other one
	view_was_whole_for(lone, 114 * SEC);
	assert_int_equal(uncounted_if_missed(lone, conn, 5), 0);
	view_was_whole_for(lone, 116 * SEC);
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 5)), -1);
	lone_destroy(lone);
}

// Tells of one who is new, and returns its id.
static uint64_t newcomer(struct lone *lone, uint32_t conn, const char *name) {
	struct ras_peer_info info = lone_info(lone, 5, 1);
	struct peer_news news = {.incarnation = ras_incarnation(1, 0), .state = RAS_ALIVE};

	snprintf(info.name, sizeof(info.name), "%s", name);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
	news.id = news.record->id;
	lone_news(lone, conn, &news);
	ras_record_put(lone->interner, news.record);
	return news.id;
}

// The slots of those without a vote are kept in a list; a slot may be another one's by then.
static void stranger_in_the_slot_of_one_without_a_vote_has_one(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	struct peer_news news = lone_told(lone, 5, RAS_DEAD, ras_incarnation(1, 1));
	uint32_t conn = lone_link(lone, 2);
	uint32_t slot = lone_peer(lone, 5).slot;
	uint64_t another;

	(void)state;
	die_and_come_back(lone, conn, 5);
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 5)), COLLECT_CENSUS_NO_VOTE);
	lone_news(lone, conn, &news);
	assert_int_equal(ras_forget(ras, lone->now_ns, lone_id(lone, 5)), 0);
	ras->liveness.view_whole_since_ns = 0; // a time in which it may join with a vote
	another = newcomer(lone, conn, "another");
	assert_int_equal(peers_find(&ras->peers, another), slot);
	assert_int_equal(asked_of(lone, conn, another), -1);
	lone_destroy(lone);
}

static bool has_vote(const struct lone *lone, uint64_t id) {
	uint32_t slot = peers_find(&lone->ras->peers, id);

	return (ras_entry(lone->ras, slot)->flags & PEER_NO_VOTE) == 0;
}

// Found: one joined either side of a gap that nobody had noticed yet, and either was the larger
// one.
static void who_joined_since_the_last_word_of_those_missed_has_no_vote(void **state) {
	static const struct {
		uint32_t reached;
		bool late_has_one;
	} rows[] = {
		{5, false}, {9, false}, {10, true}, // of ten
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(8, 1);
		uint32_t conn = lone_link(lone, 2);
		uint32_t silent = lone_link(lone, 0);
		uint64_t early, late;

		lone->ras->liveness.view_whole_since_ns = 0;
		early = newcomer(lone, conn, "early");
		lone_pass_beating(lone, SEC, conn);
		lone_beat(lone, silent, 1, 0);
		lone_pass_beating(lone, SEC, conn);
		late = newcomer(lone, conn, "late");
		lone_pass_beating(lone, 2 * SEC, conn);
		assert_true(lone_find_link(lone, 0)->delayed);
		count_from(lone, rows[n].reached, rows[n].reached);
		assert_true(has_vote(lone, early));
		assert_int_equal(has_vote(lone, late), rows[n].late_has_one);
		lone_pass_beating(lone, 2 * SEC, conn);
		// Asked for no vote unless it met all, but missed it may be a member of the other
		// part: it counts.
		assert_int_equal(
			asked_of(lone, conn, late),
			rows[n].late_has_one ? -1 : (int)COLLECT_CENSUS_LATE_JOINER
		);
		assert_int_equal(lone->ras->liveness.census.own_voteless, 0);
		lone_destroy(lone);
	}
}

// Found: one that had joined a moment before a gap had not spoken on its link, so nobody was late.
// Of one that joined long ago, and is no neighbour, others heard since: who joined after it votes.
static void who_joined_after_one_that_never_spoke_is_late_if_that_was_lately(void **state) {
	static const struct {
		uint64_t before_ns;
		bool has_one;
	} rows[] = {{5 * SEC, false}, {60 * SEC, true}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(8, 1);
		uint32_t conn = lone_link(lone, 2);
		struct ras *ras = lone->ras;
		uint64_t missed, later;

		ras->liveness.view_whole_since_ns = 0;
		missed = newcomer(lone, conn, "missed");
		assert_int_equal(ras->liveness.joins[0].id, missed);
		ras->liveness.joins[0].at_ns -= rows[n].before_ns;
		later = newcomer(lone, conn, "later");
		ras_enter(ras, lone->now_ns);
		liveness_absence_reported(ras, peers_find(&ras->peers, missed), 0);
		ras_exit(ras);
		lone_pass_beating(lone, SEC, conn);
		count_from(lone, 9, 9);
		assert_int_equal(has_vote(lone, later), rows[n].has_one);
		lone_destroy(lone);
	}
}

// Found: either part of a second gap was the larger one: to one of them they had joined beside the
// first gap, and were no opponents; the other had not noticed that gap, and let them vote.
static void who_joined_beside_a_gap_is_an_opponent_where_it_is_missed(void **state) {
	struct lone *lone = lone_of(8, 1);
	uint32_t conn = lone_link(lone, 2);
	uint64_t beside;

	(void)state;
	lone_link(lone, 0); // which says nothing
	lone_pass_beating(lone, 5 * SEC, conn);
	assert_int_equal(lone->ras->liveness.view_whole_since_ns, RAS_NEVER);
	beside = newcomer(lone, conn, "beside");
	assert_false(has_vote(lone, beside));
	assert_int_equal(asked_of(lone, conn, beside), COLLECT_CENSUS_LATE_JOINER);
	assert_int_equal(lone->ras->liveness.census.own_voteless, 0);
	lone_destroy(lone);
}

// Found: of one that had founded a ring beside a gap all members of the larger one heard that they
// had no vote, and nobody had one.
static void vote_that_only_a_newcomer_denies_is_kept(void **state) {
	static const struct {
		uint32_t newcomers; // the first of whom tells
		bool keeps;
	} rows[] = {{0, false}, {1, true}, {3, true}, {4, false}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(8, 1);
		struct ras *ras = lone->ras;

		for (uint32_t peer = 2; peer < 2 + rows[n].newcomers; peer++)
			votes_withdraw(ras, peers_find(&ras->peers, lone_id(lone, peer)));
		votes_reported_voteless(ras, lone_id(lone, 2));
		assert_int_equal(votes_self_has_none(ras), !rows[n].keeps);
		lone_destroy(lone);
	}
}

// A member answers a count that holds it for late.
static void late_one_votes_once_it_has_met_all_of_the_view_that_asks(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t digest = peers_digest(&ras->peers);

	(void)state;
	ras_enter(ras, lone->now_ns);
	for (uint32_t peer = 0; peer < 8; peer++) {
		if (lone_id(lone, peer) != ras->self_id)
			ras_entry(ras, peers_find(&ras->peers, lone_id(lone, peer)))->flags &=
				(uint8_t)~PEER_SEEN;
	}
	assert_false(votes_self_has_none(ras));
	assert_false(votes_reported_late(ras, lone_id(lone, 2), digest));
	assert_true(votes_self_has_none(ras));
	for (uint32_t peer = 0; peer < 8; peer++) {
		if (lone_id(lone, peer) == ras->self_id)
			continue;
		assert_true(votes_self_has_none(ras));
		// It called those whom it had not met.
		assert_non_null(lone_find_link(lone, peer));
		ras_entry(ras, peers_find(&ras->peers, lone_id(lone, peer)))->flags |= PEER_SEEN;
	}
	assert_false(votes_self_has_none(ras));
	assert_true(votes_reported_late(ras, lone_id(lone, 2), digest));
	// Somebody is known there whom it does not know.
	assert_false(votes_reported_late(ras, lone_id(lone, 2), digest + 1));
	// Whoever was held for dead has none, whomever it met.
	votes_withdraw(ras, ras->self_slot);
	assert_true(votes_self_has_none(ras));
	ras_exit(ras);
	lone_destroy(lone);
}

// Found: it came back with a vote, as a new start of a member.
static void member_that_restarts_gets_no_vote_back_that_was_withdrawn(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras_peer_info info = lone_info(lone, 5, 2);
	struct peer_news news = lone_told(lone, 5, RAS_ALIVE, ras_incarnation(2, 0));
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	die_and_come_back(lone, conn, 5);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
	lone_news(lone, conn, &news);
	ras_record_put(lone->interner, news.record);
	lone_pass_beating(lone, 6 * SEC, conn);
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 5)), COLLECT_CENSUS_NO_VOTE);
	// Who left may have joined again beside a gap: it would be counted in place of one missed.
	news = lone_told(lone, 6, RAS_LEFT, ras_incarnation(1, 0));
	lone_news(lone, conn, &news);
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 6)), COLLECT_CENSUS_NO_MEMBER);
	lone_destroy(lone);
}

// Found: those who did not know yet that they were dead voted through one who was back.
static void count_asks_neither_who_ended_nor_who_came_back_for_a_vote(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct peer_news news = lone_told(lone, 5, RAS_DEAD, ras_incarnation(1, 0));
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 5)), -1);
	lone_news(lone, conn, &news);
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 5)), COLLECT_CENSUS_NO_MEMBER);
	news = lone_told(lone, 5, RAS_ALIVE, ras_incarnation(1, 1));
	lone_news(lone, conn, &news);
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 5)), COLLECT_CENSUS_NO_VOTE);
	lone_destroy(lone);
}

static struct collect_request request_of(const struct census_list *list, uint8_t *skip) {
	struct collect_request request = {
		.kind = COLLECT_KIND_CENSUS,
		.skip = skip,
		.skip_count = list->count,
	};
	struct wire_writer writer;

	wire_writer_init(&writer, skip, COLLECT_CENSUS_MAX * 24);
	for (uint32_t n = 0; n < list->count; n++) {
		wire_put_u64(&writer, list->entries[n].hash);
		wire_put_u64(&writer, list->entries[n].host_hash);
		wire_put_u64(&writer, list->entries[n].pid_hash);
	}
	return request;
}

static bool serves(struct lone *lone, const struct census_list *list) {
	uint8_t skip[COLLECT_CENSUS_MAX * 24];
	struct collect_request request = request_of(list, skip);

	request.origin = lone_id(lone, 2);
	return census_list_is_usable(lone->ras, &request);
}

// Found: whoever had not noticed a gap as others joined let those vote; one that had noticed it
// went by that count.
static void count_serves_if_it_asks_nobody_for_a_vote_who_has_none_here(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t two = lone_id(lone, 2), five = lone_id(lone, 5);
	uint32_t slot = peers_find(&ras->peers, five);
	struct census_list lists[] = {
		{.count = 0},
		{.count = 1, .entries = {collect_census_entry(five, COLLECT_CENSUS_SUBJECT)}},
		{.count = 1, .entries = {collect_census_entry(five, COLLECT_CENSUS_NO_VOTE)}},
		{.count = 1, .entries = {collect_census_late_entry(five, 1)}},
		{.count = 2,
		 .entries =
			 {collect_census_entry(five, COLLECT_CENSUS_SUBJECT),
			  collect_census_late_entry(five, 1)}},
		{.count = 1, .entries = {collect_census_entry(two, COLLECT_CENSUS_NO_VOTE)}},
	};

	(void)state;
	lone_pass(lone, SEC);
	for (size_t n = 0; n < sizeof(lists) / sizeof(lists[0]); n++)
		assert_int_equal(serves(lone, &lists[n]), lists[n].entries[0].hash != two);
	ras_enter(ras, lone->now_ns);
	votes_note_join_in_partition(ras, slot, false);
	ras_exit(ras);
	for (size_t n = 0; n < sizeof(lists) / sizeof(lists[0]); n++)
		assert_int_equal(serves(lone, &lists[n]), n >= 2 && n <= 4);
	lone_destroy(lone);
}

// The dead and those who left are remembered for days: a list that they fill hides nobody.
static void a_list_full_of_those_who_ended_names_all_without_a_vote(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct census_list list = {.count = COLLECT_CENSUS_MAX};
	struct ras *ras = lone->ras;
	uint64_t five = lone_id(lone, 5);

	(void)state;
	lone_pass(lone, SEC);
	ras_enter(ras, lone->now_ns);
	votes_note_join_in_partition(ras, peers_find(&ras->peers, five), false);
	ras_exit(ras);
	// Of more without a vote than there is room for those of the view count as they think.
	for (uint32_t n = 0; n < COLLECT_CENSUS_MAX; n++)
		list.entries[n] = collect_census_entry(five + 1 + n, COLLECT_CENSUS_NO_VOTE);
	assert_true(lone_id(lone, 2) < five + 1 || lone_id(lone, 2) > five + COLLECT_CENSUS_MAX);
	assert_true(serves(lone, &list));
	for (uint32_t n = 0; n < COLLECT_CENSUS_MAX; n++)
		list.entries[n].host_hash = COLLECT_CENSUS_NO_MEMBER;
	assert_false(serves(lone, &list));
	list.entries[0] = collect_census_entry(five, COLLECT_CENSUS_NO_VOTE);
	assert_true(serves(lone, &list));
	lone_destroy(lone);
}

// Whoever was reached counts as it says; of those missed it is known here who does not.
static void electorate_is_of_votes_and_of_those_missed_who_count(void **state) {
	static const struct {
		uint32_t uncounted, reached, voters, electorate;
	} rows[] = {
		{0, 8, 8, 8}, // all count
		{0, 5, 5, 8}, // those missed do, too
		{2, 8, 6, 6}, // the two are reached, or missed
		{2, 5, 5, 6}, // both are missed
		{2, 5, 4, 6}, // one of them is missed
		{0, 8, 5, 5}, // some say themselves that they do not count
		{0, 5, 3, 6}, // and others are missed
		{1, 5, 3, 6}, // more than are known here: one more counts as missed
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(8, 1);

		lone_pass(lone, SEC);
		lone->ras->liveness.census.own_voteless = rows[n].uncounted;
		count_from(lone, rows[n].reached, rows[n].voters);
		assert_int_equal(lone->ras->liveness.census.word.electorate, rows[n].electorate);
		lone_destroy(lone);
	}
}

// Late because of one behind a gap: peer 0, which fell silent before it joined.
static uint64_t late_one(struct lone *lone, uint32_t conn, uint32_t silent) {
	uint64_t late;

	lone->ras->liveness.view_whole_since_ns = 0;
	lone_beat(lone, silent, 1, 0);
	lone_pass_beating(lone, SEC, conn);
	late = newcomer(lone, conn, "late");
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_true(lone_find_link(lone, 0)->delayed);
	count_from(lone, 8, 8);
	assert_false(has_vote(lone, late));
	return late;
}

// Found: two were lost as a gap came. Because of those behind it all were late, too few had a vote
// when they were back, and the two stayed unreachable for ever.
static void late_one_has_a_vote_when_those_who_made_it_late_are_back_with_our_view(void **state) {
	static const struct {
		bool is_back, has_our_view, another_is_missed;
		uint32_t reached; // of nine
		bool has_one;
	} rows[] = {
		{true, true, false, 9, true},	{false, false, false, 8, false}, // still missed
		{true, false, false, 9, false}, // it does not know who joined
		{true, true, true, 8, false},	// nor does another one, which was never heard
		{true, true, false, 7, false},	// others miss somebody
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(8, 1);
		uint32_t conn = lone_link(lone, 2);
		uint32_t silent = lone_link(lone, 0);
		uint64_t late = late_one(lone, conn, silent);

		lone_beat(lone, conn, 2, 0);
		if (rows[n].is_back)
			lone_beat(lone, silent, 2, 0);
		ras_enter(lone->ras, lone->now_ns);
		if (!rows[n].has_our_view)
			lone_find_link(lone, 0)->agreed_digest++;
		if (rows[n].another_is_missed)
			liveness_absence_reported(
				lone->ras, peers_find(&lone->ras->peers, lone_id(lone, 5)), 0
			);
		ras_exit(lone->ras);
		count_from(lone, rows[n].reached, rows[n].reached);
		assert_int_equal(has_vote(lone, late), rows[n].has_one);
		lone_destroy(lone);
	}
}

static void count_that_names(struct lone *lone, uint64_t origin, struct census_list *list) {
	uint8_t skip[COLLECT_CENSUS_MAX * 24];
	struct collect_request request = request_of(list, skip);

	request.origin = origin;
	votes_end_late_report(lone->ras, origin, &request);
}

// One that is held for late is told so by a count, and by no other one that it is not any more.
static void late_one_has_its_own_vote_back_when_all_who_said_so_say_nothing(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t digest = peers_digest(&ras->peers);
	struct census_list nobody = {.count = 0};
	struct census_list us = {
		.count = 1, .entries = {collect_census_late_entry(lone_id(lone, 1), digest)}};
	struct census_list full = {.count = COLLECT_CENSUS_MAX};

	(void)state;
	for (uint32_t n = 0; n < COLLECT_CENSUS_MAX; n++)
		full.entries[n] = collect_census_entry(1 + n, COLLECT_CENSUS_NO_VOTE);
	ras_enter(ras, lone->now_ns);
	ras_entry(ras, peers_find(&ras->peers, lone_id(lone, 7)))->flags &= (uint8_t)~PEER_SEEN;
	for (uint32_t peer = 2; peer < 4; peer++) {
		for (uint32_t twice = 0; twice < 2; twice++)
			assert_false(votes_reported_late(ras, lone_id(lone, peer), digest));
	}
	count_that_names(lone, lone_id(lone, 4), &nobody); // which never said so
	count_that_names(lone, lone_id(lone, 2), &us);
	count_that_names(lone, lone_id(lone, 2), &full);
	count_that_names(lone, lone_id(lone, 3), &nobody);
	count_that_names(lone, lone_id(lone, 3), &nobody);
	assert_true(votes_self_has_none(ras));
	count_that_names(lone, lone_id(lone, 2), &nobody);
	assert_false(votes_self_has_none(ras));
	ras_exit(ras);
	lone_destroy(lone);
}

UNIT_GROUP(ras_votes) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opponent_stays_one_when_another_is_taken_back),
		cmocka_unit_test(stranger_in_the_slot_of_one_without_a_vote_has_one),
		cmocka_unit_test(who_joined_since_the_last_word_of_those_missed_has_no_vote),
		cmocka_unit_test(who_joined_after_one_that_never_spoke_is_late_if_that_was_lately),
		cmocka_unit_test(who_joined_beside_a_gap_is_an_opponent_where_it_is_missed),
		cmocka_unit_test(vote_that_only_a_newcomer_denies_is_kept),
		cmocka_unit_test(late_one_votes_once_it_has_met_all_of_the_view_that_asks),
		cmocka_unit_test(member_that_restarts_gets_no_vote_back_that_was_withdrawn),
		cmocka_unit_test(count_asks_neither_who_ended_nor_who_came_back_for_a_vote),
		cmocka_unit_test(count_serves_if_it_asks_nobody_for_a_vote_who_has_none_here),
		cmocka_unit_test(a_list_full_of_those_who_ended_names_all_without_a_vote),
		cmocka_unit_test(electorate_is_of_votes_and_of_those_missed_who_count),
		cmocka_unit_test(
			late_one_has_a_vote_when_those_who_made_it_late_are_back_with_our_view
		),
		cmocka_unit_test(late_one_has_its_own_vote_back_when_all_who_said_so_say_nothing),
	};

	return cmocka_run_group_tests_name("ras_votes", tests, NULL, NULL);
}
