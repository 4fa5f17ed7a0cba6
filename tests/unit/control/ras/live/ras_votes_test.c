// SPDX-License-Identifier: BSD-3-Clause
// Which members have a vote in a census, and when members without one get it back.
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

// Return the status of the peer in a census of this node; -1 if the census does not name it.
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

// Declare the peer dead and let it refute that.
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

// Regression: the far side of a partition had already returned the votes of which this side
// withdrew one more. Each side then was the larger one.
static void opponent_stays_one_when_another_is_taken_back(void **state) {
	struct lone *lone = lone_of(8, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	die_and_come_back(lone, conn, 5);
	assert_int_equal(uncounted_if_missed(lone, conn, 5), 1);
	view_was_whole_for(lone, 61 * SEC);
	assert_int_equal(uncounted_if_missed(lone, conn, 5), 0);
	die_and_come_back(lone, conn, 6);
	assert_int_equal(uncounted_if_missed(lone, conn, 5), 1); // the other readmitted member
	view_was_whole_for(lone, 114 * SEC);
	assert_int_equal(uncounted_if_missed(lone, conn, 5), 0);
	view_was_whole_for(lone, 116 * SEC);
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 5)), -1);
	lone_destroy(lone);
}

// Announce a new member and return its id.
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

// Members without a vote are listed by slot; a slot may belong to another member by now.
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
	// The view is whole since long ago, so that the new member may have a vote.
	ras->liveness.view_whole_since_ns = 0;
	another = newcomer(lone, conn, "another");
	assert_int_equal(peers_find(&ras->peers, another), slot);
	assert_int_equal(asked_of(lone, conn, another), -1);
	lone_destroy(lone);
}

static bool has_vote(const struct lone *lone, uint64_t id) {
	uint32_t slot = peers_find(&lone->ras->peers, id);

	return (ras_entry(lone->ras, slot)->flags & PEER_NO_VOTE) == 0;
}

// Regression: one member joined on each side of a partition that nobody had noticed. Each side
// then was the larger one.
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
		// A late member is asked for no vote unless it has met all members. If it is
		// missed, it may be on the other side, so it counts as an opponent.
		assert_int_equal(
			asked_of(lone, conn, late),
			rows[n].late_has_one ? -1 : (int)COLLECT_CENSUS_LATE_JOINER
		);
		assert_int_equal(lone->ras->liveness.census.own_voteless, 0);
		lone_destroy(lone);
	}
}

// Regression: a member had joined just before a partition and sent nothing on its link, so later
// joiners were not late. A member that is no neighbour and joined long ago was heard by others.
// Later joiners then have a vote.
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

// Regression: each side of a second partition was the larger one. One side did not count the
// members that had joined during the first partition as opponents. The other side had not noticed
// the first partition, so it let them vote.
static void who_joined_beside_a_gap_is_an_opponent_where_it_is_missed(void **state) {
	struct lone *lone = lone_of(8, 1);
	uint32_t conn = lone_link(lone, 2);
	uint64_t beside;

	(void)state;
	lone_link(lone, 0); // sends nothing
	lone_pass_beating(lone, 5 * SEC, conn);
	assert_int_equal(lone->ras->liveness.view_whole_since_ns, RAS_NEVER);
	beside = newcomer(lone, conn, "beside");
	assert_false(has_vote(lone, beside));
	assert_int_equal(asked_of(lone, conn, beside), COLLECT_CENSUS_LATE_JOINER);
	assert_int_equal(lone->ras->liveness.census.own_voteless, 0);
	lone_destroy(lone);
}

// Regression: a node founded a ring during a partition. From its census all members of the larger
// ring learned that they had no vote, so no member had one.
static void vote_that_only_a_newcomer_denies_is_kept(void **state) {
	static const struct {
		uint32_t newcomers; // the first of them sends the census
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

// A member answers a census that calls it late.
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
		// It connects to the members it has not met.
		assert_non_null(lone_find_link(lone, peer));
		ras_entry(ras, peers_find(&ras->peers, lone_id(lone, peer)))->flags |= PEER_SEEN;
	}
	assert_false(votes_self_has_none(ras));
	assert_true(votes_reported_late(ras, lone_id(lone, 2), digest));
	// The view of the origin contains a member that is unknown here.
	assert_false(votes_reported_late(ras, lone_id(lone, 2), digest + 1));
	// A member that was declared dead has no vote, whichever members it has met.
	votes_withdraw(ras, ras->self_slot);
	assert_true(votes_self_has_none(ras));
	ras_exit(ras);
	lone_destroy(lone);
}

// Regression: it returned with a vote, as a new start of a member.
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
	// A member that left may have rejoined during a partition. It would be counted in place
	// of a missed member.
	news = lone_told(lone, 6, RAS_LEFT, ras_incarnation(1, 0));
	lone_news(lone, conn, &news);
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_int_equal(asked_of(lone, conn, lone_id(lone, 6)), COLLECT_CENSUS_NO_MEMBER);
	lone_destroy(lone);
}

// Regression: members that did not yet know of their death voted in the census of a readmitted
// member.
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

// Regression: a node that had not noticed a partition let members vote that joined during it. A
// node that had noticed the partition used that census.
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

// Dead and departed members are remembered for days. A list full of them must not hide members
// without a vote.
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
	// If more members have no vote than the list can hold, members of the view count as they
	// themselves believe.
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

// A reached member reports its own vote. For the missed members, this node knows which have none.
static void electorate_is_of_votes_and_of_those_missed_who_count(void **state) {
	static const struct {
		uint32_t uncounted, reached, voters, electorate;
	} rows[] = {
		{0, 8, 8, 8}, // all have votes
		{0, 5, 5, 8}, // the missed members have votes, too
		{2, 8, 6, 6}, // two have none and are reached
		{2, 5, 5, 6}, // two have none and are missed
		{2, 5, 4, 6}, // one of the two is missed
		{0, 8, 5, 5}, // three report that they have none
		{0, 5, 3, 6}, // two report none; the missed members have votes
		{1, 5, 3, 6}, // one of the two without a vote is not known here
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

// Add a member that is late because of peer 0, which fell silent before the join.
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

// Regression: two members were lost as a partition began. The members behind it made all newer
// ones late. Too few had a vote after it, and the two stayed unreachable for ever.
static void late_one_has_a_vote_when_those_who_made_it_late_are_back_with_our_view(void **state) {
	static const struct {
		bool is_back, has_our_view, another_is_missed;
		uint32_t reached; // of nine members
		bool has_one;
	} rows[] = {
		{true, true, false, 9, true},	{false, false, false, 8, false}, // still missed
		{true, false, false, 9, false}, // it does not know the new member
		{true, true, true, 8, false}, // another missed member, never heard, may not know it
		{true, true, false, 7, false}, // other members miss some
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

// A census tells a member that it is late. The member is not late any more once every origin that
// said so has sent a census without naming it.
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
	count_that_names(lone, lone_id(lone, 4), &nobody); // never called it late
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

// Regression: each report of an unknown origin was counted again.
static void late_report_of_a_stranger_holds_until_the_view_was_whole(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint64_t digest = peers_digest(&ras->peers);
	struct census_list nobody = {.count = 0};
	uint64_t stranger = lone_id(lone, 2) + 1;

	(void)state;
	assert_int_equal(peers_find(&ras->peers, stranger), RAS_NO_SLOT);
	ras_enter(ras, lone->now_ns);
	ras_entry(ras, peers_find(&ras->peers, lone_id(lone, 7)))->flags &= (uint8_t)~PEER_SEEN;
	assert_false(votes_reported_late(ras, lone_id(lone, 2), digest));
	for (uint32_t n = 0; n < 3; n++)
		assert_false(votes_reported_late(ras, stranger, digest));
	assert_int_equal(ras->liveness.late_reporter_count, 1);
	count_that_names(lone, lone_id(lone, 2), &nobody);
	assert_int_equal(ras->liveness.late_reporter_count, 0);
	assert_true(votes_self_has_none(ras));
	ras_exit(ras);
	view_was_whole_for(lone, 116 * SEC);
	assert_false(votes_self_has_none(ras));
	lone_destroy(lone);
}

// Regression: the reports of a restarted peer and of a removed peer stayed counted, and the next
// start of the peer was counted once more.
static void late_report_of_an_ended_start_holds_and_is_not_counted(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct ras *ras = lone->ras;
	uint32_t conn = lone_link(lone, 2);
	uint64_t digest = peers_digest(&ras->peers);
	struct census_list nobody = {.count = 0};
	struct ras_peer_info info = lone_info(lone, 5, 2);
	struct peer_news restart = lone_told(lone, 5, RAS_ALIVE, ras_incarnation(2, 0));
	struct peer_news death = lone_told(lone, 6, RAS_DEAD, ras_incarnation(1, 0));

	(void)state;
	ras_enter(ras, lone->now_ns);
	ras_entry(ras, peers_find(&ras->peers, lone_id(lone, 7)))->flags &= (uint8_t)~PEER_SEEN;
	for (uint32_t peer = 5; peer < 7; peer++)
		assert_false(votes_reported_late(ras, lone_id(lone, peer), digest));
	ras_exit(ras);
	assert_int_equal(ras->liveness.late_reporter_count, 2);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &restart.record), 0);
	lone_news(lone, conn, &restart);
	ras_record_put(lone->interner, restart.record);
	assert_int_equal(ras->liveness.late_reporter_count, 1);
	lone_news(lone, conn, &death);
	assert_int_equal(ras->liveness.late_reporter_count, 1); // it may be readmitted
	assert_int_equal(ras_forget(ras, lone->now_ns, lone_id(lone, 6)), 0);
	assert_int_equal(ras->liveness.late_reporter_count, 0);

	// The new start of peer 5 reports and ends its report. The former reports hold.
	ras_enter(ras, lone->now_ns);
	assert_false(votes_reported_late(ras, lone_id(lone, 5), digest + 1));
	assert_int_equal(ras->liveness.late_reporter_count, 1);
	count_that_names(lone, lone_id(lone, 5), &nobody);
	assert_int_equal(ras->liveness.late_reporter_count, 0);
	assert_true(votes_self_has_none(ras));
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
		cmocka_unit_test(late_report_of_a_stranger_holds_until_the_view_was_whole),
		cmocka_unit_test(late_report_of_an_ended_start_holds_and_is_not_counted),
	};

	return cmocka_run_group_tests_name("ras_votes", tests, NULL, NULL);
}
