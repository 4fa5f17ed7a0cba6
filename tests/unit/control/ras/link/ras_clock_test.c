// SPDX-License-Identifier: BSD-3-Clause
// Offsets between the wall clocks of peers and our own, on which no decision depends (row 15).
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS
#define NOON (UINT64_C(1700000000) * SEC)

static uint64_t lone_wall(const struct lone *lone) {
	return NOON + lone->now_ns;
}

static void
beat_echoing(struct lone *lone, uint32_t conn, uint32_t echo, uint32_t delay_us, uint64_t wall_ns) {
	static uint32_t sequence = 100;
	struct message_beat beat = {
		.sequence = ++sequence,
		.echo = echo,
		.echo_delay_us = delay_us,
		.period = 1,
		.uses = RAS_USE_NEXT,
		.wall_ns = wall_ns,
	};
	uint8_t bytes[64];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_beat_encode(&beat, &writer);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
	lone_pass(lone, SEC);
}

// Receive a beat of the peer that carries its wall clock (0 for none) and answers our latest
// beat.
static void beat_at(struct lone *lone, uint32_t conn, uint64_t wall_ns) {
	const struct link *link = lone_find_link(lone, 2);
	uint64_t age_us = (lone->ras->observed_ns - link->sent_sequence_ns) / 1000;

	beat_echoing(lone, conn, link->sent_sequence, (uint32_t)age_us, wall_ns);
}

static int64_t offset_to(struct lone *lone, uint32_t peer) {
	struct ras_link_info info;

	for (uint32_t n = 0; ras_link_at(lone->ras, n, &info) == 0; n++) {
		if (info.peer == lone_id(lone, peer))
			return info.wall_offset_ns;
	}
	fail();
	return 0;
}

static void offset_of_a_peers_clock_is_the_median_of_what_it_tells(void **state) {
	static const uint64_t late_ns[] = {0, 2 * SEC, 0, 1 * MS, 5 * SEC};
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	assert_true(offset_to(lone, 2) == RAS_OFFSET_UNKNOWN);
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	// Two of five beats were delayed in a stalled stream.
	for (size_t n = 0; n < 5; n++)
		beat_at(lone, conn, lone_wall(lone) + 300 * MS - late_ns[n]);
	assert_true(offset_to(lone, 2) == 299 * (int64_t)MS);
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_OFFSET), 0);
	lone_destroy(lone);
}

static void clock_that_is_far_away_is_told_once_and_once_more_when_it_agrees(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	for (uint32_t n = 0; n < 2; n++)
		beat_at(lone, conn, lone_wall(lone) - 90 * SEC);
	// Too few beats to be certain.
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_OFFSET), 0);
	for (uint32_t n = 0; n < 20; n++)
		beat_at(lone, conn, lone_wall(lone) - 90 * SEC);
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_OFFSET), 1);
	assert_int_equal(lone_event(lone, RAS_EVENT_CLOCK_OFFSET)->value, 90 * SEC);
	assert_true(offset_to(lone, 2) == -90 * (int64_t)SEC);
	for (uint32_t n = 0; n < 10; n++)
		beat_at(lone, conn, lone_wall(lone) - 700 * MS);
	// Between the two thresholds.
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_AGREES), 0);
	for (uint32_t n = 0; n < 10; n++)
		beat_at(lone, conn, lone_wall(lone) - 100 * MS);
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_OFFSET), 1);
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_AGREES), 1);
	lone_destroy(lone);
}

static void clock_of_our_own_that_is_set_moves_all_offsets_at_once(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone) + 3600 * SEC);
	for (uint32_t n = 0; n < 5; n++)
		beat_at(lone, conn, lone_wall(lone));
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_OFFSET), 1);
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	assert_true(offset_to(lone, 2) == 0);
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_AGREES), 1);
	ras_set_wall_clock(lone->ras, lone->now_ns, 0); // unknown from now on
	assert_true(offset_to(lone, 2) == RAS_OFFSET_UNKNOWN);
	lone_destroy(lone);
}

// Our own clock is set again before waiting input is read.
static void beats_that_waited_while_we_stood_still_show_no_offset(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	uint64_t stamped_ns;
	uint32_t echo;

	(void)state;
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	for (uint32_t n = 0; n < 5; n++)
		beat_at(lone, conn, lone_wall(lone));
	stamped_ns = lone_wall(lone);
	echo = lone_find_link(lone, 2)->sent_sequence;
	lone->now_ns += 20 * SEC; // stopped, and not called
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	for (uint32_t n = 0; n < 5; n++)
		beat_echoing(lone, conn, echo, 0, stamped_ns + n * SEC);
	assert_int_equal(lone_events(lone, RAS_EVENT_PAUSED), 1);
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_OFFSET), 0);
	lone_destroy(lone);
}

static void beat_whose_round_trip_was_long_shows_no_offset(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	for (uint32_t n = 0; n < 5; n++) {
		const struct link *link;

		link_beat(lone->ras, lone_find_link(lone, 2), false);
		link = lone_find_link(lone, 2);
		lone->now_ns += 600 * MS;
		beat_echoing(lone, conn, link->sent_sequence, 0, lone_wall(lone) - 90 * SEC);
	}
	assert_true(offset_to(lone, 2) == RAS_OFFSET_UNKNOWN);
	assert_int_equal(lone_events(lone, RAS_EVENT_CLOCK_OFFSET), 0);
	lone_destroy(lone);
}

static void impossible_clocks_are_far_away_and_harm_nothing(void **state) {
	static const uint64_t clocks[] = {1, UINT64_MAX, UINT64_MAX / 2, UINT64_C(1) << 63};

	(void)state;
	for (size_t n = 0; n < sizeof(clocks) / sizeof(clocks[0]); n++) {
		struct lone *lone = lone_of(4, 1);
		uint32_t conn = lone_link(lone, 2);

		ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
		for (uint32_t m = 0; m < 12; m++)
			beat_at(lone, conn, clocks[(n + m) % 4]);
		ras_set_wall_clock(lone->ras, lone->now_ns, UINT64_MAX - SEC);
		ras_set_wall_clock(lone->ras, lone->now_ns, 1);
		assert_in_range(lone_events(lone, RAS_EVENT_CLOCK_OFFSET), 1, 3);
		assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
		assert_int_equal(ras_counters(lone->ras)->frames_malformed, 0);
		lone_destroy(lone);
	}
}

static void peer_that_tells_no_clock_has_no_offset(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	for (uint32_t n = 0; n < 10; n++)
		beat_at(lone, conn, 0);
	assert_true(offset_to(lone, 2) == RAS_OFFSET_UNKNOWN);
	assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	lone_destroy(lone);
}

// A core whose wall clock was not set for two minutes, or never, sends none.
static void beats_carry_a_clock_only_while_it_is_known(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	size_t bare;

	(void)state;
	lone_pass_beating(lone, 2 * SEC, conn);
	bare = lone_latest(lone, conn, MESSAGE_BEAT)->size;
	ras_set_wall_clock(lone->ras, lone->now_ns, lone_wall(lone));
	lone_mark(lone);
	link_beat(lone->ras, lone_find_link(lone, 2), false);
	assert_int_equal(lone_latest(lone, conn, MESSAGE_BEAT)->size, bare + 8);
	lone_pass_beating(lone, 130 * SEC, conn);
	lone_mark(lone);
	lone_pass_beating(lone, 20 * SEC, conn);
	assert_int_equal(lone_latest(lone, conn, MESSAGE_BEAT)->size, bare);
	lone_destroy(lone);
}

// Clock differences affect neither judgement nor speed.
static void clocks_hours_apart_cost_no_life_and_are_seen_by_all_links(void **state) {
	struct world *world = world_of(6);

	(void)state;
	for (uint32_t second = 0; second < 60; second++) {
		for (uint32_t n = 0; n < 6; n++)
			ras_set_wall_clock(
				world->nodes[n].ras, world->now_ns,
				NOON + world->now_ns + (n == 3 ? 7200 * SEC : 0)
			);
		world_pass(world, SEC);
	}
	assert_int_equal(world_events_all(world, RAS_EVENT_SUSPECT), 0);
	for (uint32_t n = 0; n < 6; n++) {
		struct link *link = n == 3 ? NULL : world_link(world, n, 3);

		if (link == NULL)
			continue;
		assert_int_equal(world_events(world, n, RAS_EVENT_CLOCK_OFFSET), 1);
		assert_in_range(
			world_event(world, n, RAS_EVENT_CLOCK_OFFSET)->value, 7199 * SEC, 7201 * SEC
		);
		// Travel times are unaffected.
		assert_in_range(link->rtt.min_ns, WORLD_DELAY_NS, 3 * WORLD_DELAY_NS);
	}
	assert_true(world_agrees(world));
	world_destroy(world);
}

UNIT_GROUP(ras_clock) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offset_of_a_peers_clock_is_the_median_of_what_it_tells),
		cmocka_unit_test(clock_that_is_far_away_is_told_once_and_once_more_when_it_agrees),
		cmocka_unit_test(clock_of_our_own_that_is_set_moves_all_offsets_at_once),
		cmocka_unit_test(beats_that_waited_while_we_stood_still_show_no_offset),
		cmocka_unit_test(beat_whose_round_trip_was_long_shows_no_offset),
		cmocka_unit_test(impossible_clocks_are_far_away_and_harm_nothing),
		cmocka_unit_test(peer_that_tells_no_clock_has_no_offset),
		cmocka_unit_test(beats_carry_a_clock_only_while_it_is_known),
		cmocka_unit_test(clocks_hours_apart_cost_no_life_and_are_seen_by_all_links),
	};

	return cmocka_run_group_tests_name("ras_clock", tests, NULL, NULL);
}
