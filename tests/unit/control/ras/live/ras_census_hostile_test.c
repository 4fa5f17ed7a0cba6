// SPDX-License-Identifier: BSD-3-Clause
// Censuses with a malicious participant, or with an agent of a newer version.
#include "control/ras/ras_lone.h"

#include <ras/payload.h>
#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS
#define STRANGER UINT64_C(0x5eed)

// Receive a census on the connection, as if a stranger's agent behind the peer had sent it.
static void
ask_us(struct lone *lone, uint32_t conn, uint64_t id, uint64_t budget_ns, uint64_t word_of_us) {
	struct ras_comm_id entry = {.hash = lone->ras->self_id, .host_hash = word_of_us};
	struct collect_request request = {
		.origin = STRANGER + id,
		.id = (UINT64_C(1) << 32) + id,
		.kind = COLLECT_KIND_CENSUS,
		.budget_ns = budget_ns,
		.hops = 1,
	};
	uint8_t frame[128];
	struct wire_writer writer;

	wire_writer_init(&writer, frame, sizeof(frame));
	collect_request_encode(&request, &entry, 1, &writer);
	lone_frame(lone, conn, frame, wire_writer_used(&writer));
}

// The connected peer starts a census that asks about the subject.
static void
peer_asks(struct lone *lone, uint32_t conn, uint32_t peer, uint32_t subject, bool has_vote) {
	static uint64_t questions;
	struct ras_comm_id entries[] = {
		collect_census_entry(lone_id(lone, subject), COLLECT_CENSUS_SUBJECT),
		collect_census_entry(lone_id(lone, peer), COLLECT_CENSUS_NO_VOTE),
	};
	struct collect_request request = {
		.origin = lone_id(lone, peer),
		.id = (UINT64_C(1) << 32) + ++questions,
		.kind = COLLECT_KIND_CENSUS,
		.budget_ns = SEC,
		.hops = 1,
	};
	uint8_t frame[128];
	struct wire_writer writer;

	if (ras_comm_id_compare(&entries[0], &entries[1]) > 0) {
		struct ras_comm_id first = entries[1];

		entries[1] = entries[0];
		entries[0] = first;
	}
	if (has_vote)
		entries[0] = collect_census_entry(lone_id(lone, subject), COLLECT_CENSUS_SUBJECT);
	wire_writer_init(&writer, frame, sizeof(frame));
	collect_request_encode(&request, entries, has_vote ? 1 : 2, &writer);
	lone_frame(lone, conn, frame, wire_writer_used(&writer));
}

static bool is_counting(const struct lone *lone, uint32_t peer) {
	const struct census *census = &lone->ras->liveness.census;
	bool any = false;

	for (uint32_t n = 0; n < CENSUS_AGREEING; n++)
		any = any || census->starts[n].origin == lone_id(lone, peer);
	return any;
}

// Regression: censuses from before a partition arrived when it ended, after the next one had
// begun. They made the brake let go, although 60 of 200 members were behind the second partition.
static void census_that_a_silent_link_held_up_serves_nobody(void **state) {
	static const struct {
		uint64_t silent_ns, after_ns;
		bool serves;
	} rows[] = {
		{SEC, 0, true},
		{3 * SEC, 0, false},
		{3 * SEC, 900 * MS, false},
		{3 * SEC, 1100 * MS, true},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(4, 1);
		uint32_t conn = lone_link(lone, 2);

		lone_beat(lone, conn, 1, 0);
		lone_pass(lone, rows[n].silent_ns);
		lone_beat(lone, conn, 2, 0);
		lone_pass(lone, rows[n].after_ns);
		peer_asks(lone, conn, 2, 3, true);
		assert_int_equal(is_counting(lone, 2), rows[n].serves);
		assert_int_equal(lone_sent(lone, conn, MESSAGE_COLLECTED), 1);
		lone_destroy(lone);
	}
}

// Regression: a host went dark beside many restarts. It had links only to members without a vote,
// which may declare no death.
static void who_has_a_vote_looks_for_one_who_has_none(void **state) {
	static const struct {
		bool asker_has_vote, we_have_none, heard;
		enum ras_state state;
	} rows[] = {
		{false, false, false, RAS_SUSPECT},
		{true, false, false, RAS_ALIVE},
		{false, true, false, RAS_ALIVE},
		{false, false, true, RAS_ALIVE},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(4, 1);
		uint32_t conn = lone_link(lone, 2);

		if (rows[n].heard)
			lone_link(lone, 3);
		lone->ras->uncounted = rows[n].we_have_none;
		peer_asks(lone, conn, 2, 3, rows[n].asker_has_vote);
		assert_int_equal(lone_peer(lone, 3).state, rows[n].state);
		lone_destroy(lone);
	}
}

static struct collect_item answered(const struct lone *lone, uint32_t conn) {
	const struct lone_frame *frame = lone_latest(lone, conn, MESSAGE_COLLECTED);
	struct wire_reader reader;
	struct collect_item item;
	uint64_t origin, id;
	uint8_t flags;

	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(collected_decode(&reader, &origin, &id, &flags), 0);
	assert_int_equal(collect_item_decode(&reader, &item), 0);
	assert_int_equal(item.type, COLLECT_ITEM_COUNT);
	return item;
}

static void what_a_count_says_of_us_costs_a_vote_only_if_it_is_known(void **state) {
	static const struct {
		uint64_t word;
		uint32_t count, voters;
	} rows[] = {
		{COLLECT_CENSUS_SUBJECT, 1, 1},	  {COLLECT_CENSUS_NO_VOTE, 1, 0},
		{COLLECT_CENSUS_NO_MEMBER, 0, 0}, {7, 1, 1},
		{UINT64_C(1) << 32, 1, 1},	  {UINT64_MAX, 1, 1},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lone *lone = lone_of(3, 1);
		uint32_t conn = lone_link(lone, 2);
		struct collect_item item;

		ask_us(lone, conn, 1, SEC, rows[n].word);
		item = answered(lone, conn);
		assert_int_equal(item.count, rows[n].count);
		assert_int_equal(item.voters, rows[n].voters);
		lone_destroy(lone);
	}
}

// Return whether our answer to a census hears the subject. The answer waits for the other members
// that we have links with.
static bool is_heard(struct lone *lone, uint32_t asker, uint32_t subject) {
	peer_asks(lone, asker, 2, subject, true);
	lone_pass_beating(lone, 2 * SEC, asker);
	return answered(lone, asker).heard != 0;
}

// Regression: the cable of a machine with two agents was pulled. A third agent reused its idle
// connection with one of the two as a fallback. It counted the silence from then on. Its census
// answers therefore claimed to hear the peer. That peer was healthy to all for six seconds and
// dead after 22, its neighbour after 8.
static void connection_that_was_wanted_anew_hears_nobody_before_its_first_word(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t asker = lone_link(lone, 2);
	uint32_t idle = lone_connect(lone, 4, RAS_USE_FALLBACK_NEXT);
	struct link *link = lone_find_link(lone, 4);

	(void)state;
	assert_true(is_heard(lone, asker, 4));
	lone_beat(lone, idle, 1, 0); // the peer does not need the link any more
	assert_int_equal(link->mine | link->theirs, 0);
	lone_pass_beating(lone, 5 * SEC, asker);
	ras_enter(lone->ras, lone->now_ns);
	assert_ptr_equal(link_want(lone->ras, link->slot, RAS_USE_FALLBACK_NEXT), link);
	ras_exit(lone->ras);
	assert_true(link_is_good(link)); // floods are sent over the link
	assert_false(is_heard(lone, asker, 4));
	lone_beat(lone, idle, 2, RAS_USE_FALLBACK_NEXT);
	assert_true(is_heard(lone, asker, 4));
	lone_destroy(lone);
}

// Regression: eight censuses with a lifetime of an hour kept the neighbours of a malicious member
// from starting their own.
static void counts_that_are_to_last_keep_ours_out_for_two_seconds(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t liar = lone_link(lone, 2);
	uint32_t other = lone_link(lone, 0);

	(void)state;
	for (uint64_t n = 0; n < CENSUSES_MAX; n++)
		ask_us(lone, liar, n, 3600 * SEC, COLLECT_CENSUS_SUBJECT);
	lone_pass_beating(lone, 3 * SEC, other);
	lone_mark(lone);
	ras_enter(lone->ras, lone->now_ns);
	brake_request_census(lone->ras, lone->ras->observed_ns);
	ras_exit(lone->ras);
	lone_pass(lone, 500 * MS);
	assert_int_equal(lone_sent(lone, other, MESSAGE_COLLECT), 1);
	lone_destroy(lone);
}

// Regression: the difference wrapped around, and a liar's neighbour had a majority of everything.
static void more_votes_than_nodes_are_none(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);
	const struct lone_frame *frame;
	struct collect_request request;
	struct wire_reader reader;
	struct wire_writer writer;
	uint8_t answer[64];

	(void)state;
	ras_enter(lone->ras, lone->now_ns);
	brake_request_census(lone->ras, lone->ras->observed_ns);
	ras_exit(lone->ras);
	lone_pass(lone, 300 * MS);
	frame = lone_latest(lone, conn, MESSAGE_COLLECT);
	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(collect_request_decode(&reader, &request), 0);
	wire_writer_init(&writer, answer, sizeof(answer));
	collected_encode(request.origin, request.id, COLLECTED_FINAL, &writer);
	collect_count_encode(0, 1000, 0, &writer);
	lone_frame(lone, conn, answer, wire_writer_used(&writer));
	lone_pass(lone, 2 * SEC);
	assert_int_equal(lone->ras->liveness.census.word.reached, 1);
	assert_int_equal(lone->ras->liveness.census.word.voters, 1);
	assert_int_equal(lone->ras->liveness.census.word.electorate, 6);
	lone_destroy(lone);
}

UNIT_GROUP(ras_census_hostile) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_count_says_of_us_costs_a_vote_only_if_it_is_known),
		cmocka_unit_test(census_that_a_silent_link_held_up_serves_nobody),
		cmocka_unit_test(who_has_a_vote_looks_for_one_who_has_none),
		cmocka_unit_test(connection_that_was_wanted_anew_hears_nobody_before_its_first_word
		),
		cmocka_unit_test(counts_that_are_to_last_keep_ours_out_for_two_seconds),
		cmocka_unit_test(more_votes_than_nodes_are_none),
	};

	return cmocka_run_group_tests_name("ras_census_hostile", tests, NULL, NULL);
}
