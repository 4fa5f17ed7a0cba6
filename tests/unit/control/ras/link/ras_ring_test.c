// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static uint32_t primary(const struct world *world, uint32_t node, enum ring_direction direction) {
	const struct ras *ras = world->nodes[node].ras;
	uint32_t slot = ras->ring.sides[direction].primary;

	if (slot == RAS_NO_SLOT)
		return UINT32_MAX;
	for (uint32_t n = 0; n < world->count; n++) {
		if (world_id(world, n) == ras_entry(ras, slot)->record->id)
			return n;
	}
	return UINT32_MAX;
}

static bool
has_fallback(const struct world *world, uint32_t node, enum ring_direction direction, uint32_t to) {
	const struct ras *ras = world->nodes[node].ras;
	const struct ring_side *side = &ras->ring.sides[direction];

	for (uint32_t n = 0; n < side->fallback_count; n++) {
		if (ras_entry(ras, side->fallbacks[n])->record->id == world_id(world, to))
			return true;
	}
	return false;
}

// Row 13.
static void one_two_three_and_four_nodes_are_rings_without_doubled_links(void **state) {
	static const uint32_t links[] = {0, 0, 1, 2};

	(void)state;
	for (uint32_t count = 1; count <= 4; count++) {
		struct world *world = world_of(count);

		for (uint32_t n = 0; n < count; n++) {
			uint32_t next = (n + 1) % count;
			uint32_t prev = (n + count - 1) % count;

			assert_int_equal(
				primary(world, n, RING_NEXT), count > 1 ? next : UINT32_MAX
			);
			assert_int_equal(
				primary(world, n, RING_PREV), count > 1 ? prev : UINT32_MAX
			);
			if (count < 4)
				assert_int_equal(world_links(world, n), links[count]);
			assert_int_equal(world_open_conns(world, n), world_links(world, n));
		}
		if (count == 2)
			assert_int_equal(
				world_link(world, 0, 1)->mine, RAS_USE_NEXT | RAS_USE_PREV
			);
		world_pass(world, 120 * SEC);
		assert_true(world_agrees(world));
		assert_int_equal(world_events_all(world, RAS_EVENT_SUSPECT), 0);
		assert_int_equal(world_events_all(world, RAS_EVENT_LINK_DOWN), 0);
		world_destroy(world);
	}
}

static void silent_neighbour_is_routed_round_before_it_is_judged(void **state) {
	struct world *world = world_of(8);

	(void)state;
	world_freeze(world, 3);
	world_pass(world, 4 * SEC);
	assert_int_equal(world_events(world, 2, RAS_EVENT_DEAD), 0);
	assert_true(world_link(world, 2, 3)->delayed);
	assert_true(has_fallback(world, 2, RING_NEXT, 4));
	assert_true(has_fallback(world, 4, RING_PREV, 2));
	assert_true(world_is_linked(world, 2, 4));
	world_destroy(world);
}

// Row 5.
static void fallbacks_are_gone_within_a_beat_of_the_primary_speaking_again(void **state) {
	struct world *world = world_of(8);

	(void)state;
	world_freeze(world, 3);
	world_pass(world, 5 * SEC);
	assert_true(has_fallback(world, 2, RING_NEXT, 4));
	world_resume(world, 3);
	world_pass(world, SEC + 10 * MS);
	for (uint32_t n = 0; n < 8; n++) {
		assert_int_equal(world->nodes[n].ras->ring.sides[RING_NEXT].fallback_count, 0);
		assert_int_equal(world->nodes[n].ras->ring.sides[RING_PREV].fallback_count, 0);
		assert_in_range(links_degree(world->nodes[n].ras), 0, links_degree_max(8));
	}
	assert_int_equal(world_link(world, 2, 4)->mine & RAS_USE_FALLBACK_NEXT, 0);
	world_pass(world, 5 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// Three nodes per host: 2 | 3, 4, 5 | 6. The first fallback is the failed node's neighbour, since
// only the link may be bad. The next one is on another host, so that a failed host costs only one
// timeout.
static void fallback_of_a_fallback_skips_the_rest_of_a_failed_host(void **state) {
	struct lone *lone = lone_create(&(struct lone_setup){.count = 9, .self = 2, .per_host = 3});
	const struct ring_side *side = &lone->ras->ring.sides[RING_NEXT];
	uint32_t fallback;

	(void)state;
	lone_pass(lone, SEC);
	lone_link(lone, 3);
	fallback = lone_link(lone, 4);
	lone_pass_beating(lone, 4 * SEC, fallback);
	assert_int_equal(side->fallback_count, 1);
	assert_int_equal(ras_entry(lone->ras, side->fallbacks[0])->record->id, lone_id(lone, 4));
	lone_pass(lone, 4 * SEC);
	assert_in_range(side->fallback_count, 2, RING_FALLBACKS_MAX);
	assert_int_equal(ras_entry(lone->ras, side->fallbacks[1])->record->id, lone_id(lone, 6));
	lone_destroy(lone);
}

// Row 6: a nearer peer that already uses us serves as fallback without a new connection. It is
// released when the primary answers again.
static void peer_that_uses_us_already_is_taken_if_it_lies_nearer(void **state) {
	struct world *world = world_of(10);
	struct link *link;

	(void)state;
	world_freeze(world, 4);
	world_freeze(world, 5);
	world_pass(world, 7 * SEC);
	link = world_link(world, 3, 6);
	assert_non_null(link);
	assert_true(link->theirs != 0 || link->mine != 0);
	assert_true(has_fallback(world, 3, RING_NEXT, 6) || has_fallback(world, 3, RING_NEXT, 5));
	world_resume(world, 4);
	world_resume(world, 5);
	world_pass(world, 3 * SEC);
	assert_int_equal(world->nodes[3].ras->ring.sides[RING_NEXT].fallback_count, 0);
	world_destroy(world);
}

// Row 6: a peer that already uses us serves only if it is the nearest; otherwise the nearest is
// dialled.
static void peer_that_uses_us_is_adopted_only_if_it_is_nearer(void **state) {
	(void)state;
	for (uint32_t external = 0; external < 3; external++) {
		struct lone *lone = lone_of(16, 4);
		const struct ring_side *side = &lone->ras->ring.sides[RING_PREV];
		uint32_t conn;

		lone_pass(lone, 10 * MS);
		lone_link(lone, 3);
		conn = lone_connect(lone, external, RAS_USE_NEXT);
		lone_pass_beating(lone, 3 * SEC + 100 * MS, conn);
		assert_int_equal(side->fallback_count, 1);
		assert_int_equal(
			ras_entry(lone->ras, side->fallbacks[0])->record->id, lone_id(lone, 2)
		);
		assert_true(link_is_good(lone_find_link(lone, 2)) == (external == 2));
		lone_destroy(lone);
	}
}

// Row 6: a peer that is no member has no place in the ring, though it is connected and uses us.
static void peer_without_a_place_in_the_ring_is_no_fallback(void **state) {
	struct lone *lone = lone_of(9, 2);
	const struct ring_side *side = &lone->ras->ring.sides[RING_NEXT];
	struct peer_news left = lone_told(lone, 4, RAS_LEFT, ras_incarnation(1, 0));
	uint32_t conn;

	(void)state;
	lone_pass(lone, 10 * MS);
	conn = lone_link(lone, 3);
	lone_news(lone, conn, &left);
	conn = lone_connect(lone, 4, RAS_USE_PREV);
	lone_pass_beating(lone, 3 * SEC + 100 * MS, conn);
	assert_true(link_is_good(lone_find_link(lone, 4)));
	assert_int_equal(side->fallback_count, 1);
	assert_int_equal(ras_entry(lone->ras, side->fallbacks[0])->record->id, lone_id(lone, 5));
	lone_destroy(lone);
}

// Row 6: the first fallback becomes the primary, and is no fallback any more.
static void promoted_fallback_is_used_as_primary_only(void **state) {
	struct lone *lone = lone_of(16, 4);
	const struct ring_side *side = &lone->ras->ring.sides[RING_PREV];
	struct peer_news left = lone_told(lone, 3, RAS_LEFT, ras_incarnation(1, 0));
	uint32_t fallback;

	(void)state;
	lone_pass(lone, 10 * MS);
	lone_link(lone, 3);
	fallback = lone_connect(lone, 2, RAS_USE_NEXT);
	lone_pass_beating(lone, 3 * SEC + 100 * MS, fallback);
	assert_int_equal(lone_find_link(lone, 2)->mine & RAS_USE_RING, RAS_USE_FALLBACK_PREV);
	lone_news(lone, fallback, &left);
	lone_pass_beating(lone, 500 * MS, fallback);
	assert_int_equal(ras_entry(lone->ras, side->primary)->record->id, lone_id(lone, 2));
	assert_int_equal(side->fallback_count, 0);
	assert_int_equal(lone_find_link(lone, 2)->mine & RAS_USE_RING, RAS_USE_PREV);
	lone_destroy(lone);
}

// Row 6: both sides announce their uses of a link, and drop it together without ping-pong.
static void unneeded_fallback_link_is_retired_by_both_and_stays_away(void **state) {
	struct world *world = world_of(5);

	(void)state;
	// In a ring of five, nodes 1 and 3 share no link by ring or level.
	world_freeze(world, 2);
	world_pass(world, 5 * SEC);
	assert_non_null(world_link(world, 1, 3));
	world_resume(world, 2);
	world_pass(world, 3 * SEC);
	world_mark(world);
	world_pass(world, 60 * SEC);
	for (uint32_t n = 0; n < 5; n++)
		assert_in_range(world_links(world, n), 2, links_degree_max(5));
	world_mark(world);
	world_pass(world, 60 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_LINK_UP), 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_LINK_DOWN), 0);
	world_destroy(world);
}

static void death_of_a_neighbour_closes_the_ring_over_it(void **state) {
	struct world *world = world_of(8);

	(void)state;
	world_kill(world, 3);
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(primary(world, 2, RING_NEXT), 4);
	assert_int_equal(primary(world, 4, RING_PREV), 2);
	assert_true(world_is_linked(world, 2, 4));
	world_destroy(world);
}

static void levels_are_those_whose_links_are_not_neighbours(void **state) {
	static const struct {
		uint32_t members, levels;
	} rows[] = {
		{0, 0}, {1, 0},	 {2, 0},  {3, 0},    {4, 1},	  {7, 1},
		{8, 2}, {15, 2}, {16, 3}, {1000, 8}, {10000, 12},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_int_equal(ring_level_count(rows[n].members), rows[n].levels);
	assert_in_range(ring_level_count(UINT32_MAX), 1, RAS_LEVELS_MAX - 1);
}

static void distance_fits_within_its_window_and_not_beside_it(void **state) {
	static const struct {
		uint32_t distance, level;
		bool fits;
	} rows[] = {
		{1, 1, false},	  {2, 1, true},	   {3, 1, true},     {4, 1, false},
		{9, 4, false},	  {10, 4, true},   {25, 4, true},    {26, 4, false},
		{614, 10, false}, {615, 10, true}, {1638, 10, true}, {1639, 10, false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		if (ring_distance_fits(rows[n].distance, rows[n].level) != rows[n].fits)
			fail_msg("distance %u, level %u", rows[n].distance, rows[n].level);
	}
}

static void every_level_finds_a_link_and_the_degree_stays_bounded(void **state) {
	struct world *world = world_of(32);

	(void)state;
	world_pass(world, 20 * SEC);
	for (uint32_t n = 0; n < 32; n++) {
		const struct ras *ras = world->nodes[n].ras;

		assert_in_range(
			ras->ring.level_count, ring_level_count(32) - 1, ring_level_count(32)
		);
		for (uint32_t level = 1; level <= ras->ring.level_count; level++) {
			uint32_t slot = ras->ring.levels[level].slot;

			assert_int_not_equal(slot, RAS_NO_SLOT);
			assert_true(link_is_ready(link_find(ras, slot)));
		}
		assert_in_range(links_degree(ras), 2, links_degree_max(32));
	}
	world_destroy(world);
}

// Mark the nodes that can be reached over ready links, without the two failed nodes.
static void reach(const struct world *world, uint32_t from, uint32_t a, uint32_t b, bool *reached) {
	uint32_t open[WORLD_NODES_MAX] = {from}; // reached nodes whose links are not followed yet
	uint32_t count = 1;

	reached[from] = true;
	while (count > 0) {
		uint32_t at = open[--count];

		for (uint32_t to = 0; to < world->count; to++) {
			if (to == a || to == b || reached[to] || !world_is_linked(world, at, to))
				continue;
			reached[to] = true;
			open[count++] = to;
		}
	}
}

static void assert_pair_cuts_nothing(const struct world *world, uint32_t a, uint32_t b) {
	bool reached[WORLD_NODES_MAX] = {false};
	uint32_t from = 0;

	while (from == a || from == b)
		from++;
	reach(world, from, a, b, reached);
	for (uint32_t n = 0; n < world->count; n++) {
		if (n != a && n != b && !reached[n])
			fail_msg(
				"of %u nodes %u is cut off without %u and %u", world->count, n, a, b
			);
	}
}

static void no_two_failures_cut_the_overlay(void **state) {
	static const uint32_t counts[] = {4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 40};

	(void)state;
	for (size_t row = 0; row < sizeof(counts) / sizeof(counts[0]); row++) {
		struct world *world = world_of(counts[row]);

		world_pass(world, 20 * SEC);
		for (uint32_t a = 0; a < world->count; a++) {
			for (uint32_t b = a + 1; b < world->count; b++)
				assert_pair_cuts_nothing(world, a, b);
		}
		world_destroy(world);
	}
}

// If levels depended on positions alone, a join would move a link of every node on every level.
// The test counts links that came up: at most 2·log2 N on average, half of them of the new
// member. The ring grows from 127 to 128 members. If levels depended on the number alone, every
// member would open a new level there. In rings of up to 64, a new member connects to every
// member once, so that none considers it late.
static void one_join_changes_few_links(void **state) {
	uint32_t changed = 0;

	for (uint32_t late = 1; late < 128; late += 50) {
		struct world *world =
			world_create(&(struct world_setup){.count = 128, .seeds = 1, .idle = true});

		(void)state;
		for (uint32_t n = 0; n < 128; n++) {
			if (n != late)
				world_start(world, n, 0, n);
		}
		world_pass(world, 60 * SEC);
		world_mark(world);
		world_start(world, late, 0, late);
		world_pass(world, 60 * SEC);
		assert_true(world_agrees(world));
		changed += world_events_all(world, RAS_EVENT_LINK_UP) / 2;
		world_destroy(world);
	}
	assert_in_range(changed, 3 * 7, 3 * 14);
}

// Create a member of 16 nodes with all the long links it accepts. Returns the number of
// connections.
static uint32_t fill_with_long_links(struct lone *lone, uint32_t use) {
	uint32_t taken = 0;

	for (uint32_t peer = 2; peer < 15; peer++) {
		uint32_t conn = lone_accept(lone);
		struct message_init init = lone_init(lone, peer, use);

		if (lone_find_link(lone, peer) != NULL)
			continue;
		lone_send_init(lone, conn, &init);
		if (lone_refusal(lone, conn) == RAS_CAUSE_DEGREE)
			return taken;
		taken++;
	}
	fail_msg("it takes long links without end");
	return 0;
}

static void last_places_are_kept_for_levels_with_few_candidates(void **state) {
	static const uint32_t uses[] = {RAS_USE_LEVEL(3), RAS_USE_LEVEL(1)};
	uint32_t taken[2];

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		struct lone *lone = lone_of(16, 0);

		lone_pass(lone, 10 * MS);
		taken[n] = fill_with_long_links(lone, uses[n]);
		assert_in_range(links_degree(lone->ras), 1, links_degree_max(16));
		lone_destroy(lone);
	}
	assert_int_equal(taken[1], taken[0] + 2);
}

// Regression: no link was shed while a level was incomplete.
static void degree_is_back_within_a_second_while_levels_are_incomplete(void **state) {
	struct lone *lone = lone_of(16, 0);
	uint32_t over;

	(void)state;
	lone_pass(lone, 10 * MS);
	fill_with_long_links(lone, RAS_USE_LEVEL(1));
	// Ring links are always accepted.
	for (uint32_t peer = 13; peer < 15; peer++)
		lone_connect(lone, peer, RAS_USE_FALLBACK_NEXT);
	over = links_degree(lone->ras);
	assert_in_range(over, links_degree_max(16) + 1, 16);
	lone_pass(lone, lone->profile.relink_ns + 10 * MS);
	assert_in_range(links_degree(lone->ras), 1, links_degree_max(16));
	assert_int_equal(ras_counters(lone->ras)->links_shed, over - links_degree_max(16));
	assert_non_null(lone_find_link(lone, 13));
	assert_non_null(lone_find_link(lone, 14));
	lone_destroy(lone);
}

// Regression: a level above the maximum led to a shift by a negative number.
static void level_that_no_ring_has_is_shed_as_any_other(void **state) {
	(void)state;
	for (uint32_t level = RAS_LEVELS_MAX - 1; level < 24; level++) {
		struct lone *lone = lone_of(16, 0);

		lone_pass(lone, 10 * MS);
		fill_with_long_links(lone, RAS_USE_LEVEL(level));
		for (uint32_t peer = 11; peer < 15; peer++)
			lone_connect(lone, peer, RAS_USE_FALLBACK_NEXT);
		assert_in_range(links_degree(lone->ras), links_degree_max(16) + 1, 16);
		lone_pass(lone, lone->profile.relink_ns + 10 * MS);
		assert_in_range(links_degree(lone->ras), 1, links_degree_max(16));
		lone_destroy(lone);
	}
}

// Regression: an unused connection became a long link without the check of the degree.
static void use_announced_on_an_idle_link_counts_against_the_degree(void **state) {
	struct lone *lone = lone_of(16, 0);
	uint32_t conns[2];

	(void)state;
	lone_pass(lone, 10 * MS);
	for (uint32_t n = 0; n < 2; n++)
		conns[n] = lone_connect(lone, 13 + n, 0);
	fill_with_long_links(lone, RAS_USE_LEVEL(1));
	for (uint32_t n = 0; n < 2; n++)
		lone_beat(lone, conns[n], 1, RAS_USE_LEVEL(3));
	assert_in_range(links_degree(lone->ras), links_degree_max(16) + 1, 16);
	lone_pass(lone, lone->profile.relink_ns + 10 * MS);
	assert_in_range(links_degree(lone->ras), 1, links_degree_max(16));
	lone_destroy(lone);
}

// Regression: rejected links counted as opened.
static void links_that_were_not_accepted_are_not_counted_as_opened(void **state) {
	struct lone *lone = lone_of(16, 0);
	const struct ras_counters *counters = ras_counters(lone->ras);
	struct message_init_ack ack = lone_ack(lone, 2);

	(void)state;
	lone_pass(lone, 10 * MS);
	assert_int_equal(counters->ring_links_opened + counters->long_links_opened, 0);
	ack.refusal = RAS_CAUSE_DEGREE;
	lone_send_ack(lone, lone_opening(lone, 2), &ack);
	assert_int_equal(counters->long_links_opened, 0);
	lone_pass(lone, lone->profile.relink_ns);
	lone_answer(lone, 3); // the other candidate
	assert_int_equal(counters->long_links_opened, 1);
	lone_answer(lone, 1);
	assert_int_equal(counters->ring_links_opened, 1);
	lone_connect(lone, 7, RAS_USE_LEVEL(3)); // opened by the other side
	assert_int_equal(counters->long_links_opened, 1);
	lone_destroy(lone);
}

// Regression: a peer without a link occupied the place for ever.
static void neighbour_without_memory_for_its_link_is_linked_when_there_is_some(void **state) {
	struct lone *lone = lone_of(9, 4);
	uint32_t conn;

	(void)state;
	lone_pass(lone, 10 * MS);
	conn = lone_link(lone, 3);
	for (uint32_t peer = 5; peer < 7; peer++) {
		struct peer_news left = lone_told(lone, peer, RAS_LEFT, ras_incarnation(1, 0));

		lone_news(lone, conn, &left);
	}
	lone->memory_spent = true;
	lone_pass(lone, 100 * MS);
	assert_null(lone_find_link(lone, 7));
	lone->memory_spent = false;
	lone_pass(lone, lone->profile.relink_ns + 100 * MS);
	assert_non_null(lone_find_link(lone, 7));
	assert_int_equal(lone_find_link(lone, 7)->mine & RAS_USE_NEXT, RAS_USE_NEXT);
	lone_destroy(lone);
}

static void fallback_without_memory_for_its_link_is_tried_again(void **state) {
	struct lone *lone = lone_of(16, 4);
	const struct ring_side *side = &lone->ras->ring.sides[RING_PREV];
	uint32_t conn;

	(void)state;
	lone_pass(lone, 10 * MS);
	conn = lone_link(lone, 5);
	lone_link(lone, 3);
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_int_equal(side->fallback_count, 0);
	lone->memory_spent = true;
	lone_pass_beating(lone, 2 * SEC, conn);
	assert_true(lone_find_link(lone, 3)->delayed);
	assert_null(lone_find_link(lone, 2));
	lone->memory_spent = false;
	lone_pass_beating(lone, lone->profile.relink_ns + 200 * MS, conn);
	assert_int_equal(side->fallback_count, 1);
	assert_non_null(lone_find_link(lone, 2));
	lone_destroy(lone);
}

// Regression: it had eight seconds, like a link that the other side might open.
static void fallback_that_never_comes_up_is_passed_over_as_one_that_fell_silent(void **state) {
	struct lone *lone = lone_create(&(struct lone_setup){.count = 9, .self = 2, .per_host = 3});
	const struct ring_side *side = &lone->ras->ring.sides[RING_NEXT];

	(void)state;
	lone_pass(lone, 10 * MS);
	lone_link(lone, 3);
	lone_pass(lone, 2 * (lone->profile.delayed_ns + 100 * MS));
	assert_in_range(side->fallback_count, 2, RING_FALLBACKS_MAX);
	assert_int_equal(ras_entry(lone->ras, side->fallbacks[0])->record->id, lone_id(lone, 4));
	assert_int_equal(ras_entry(lone->ras, side->fallbacks[1])->record->id, lone_id(lone, 6));
	lone_destroy(lone);
}

static void nccl_profile_has_one_ring_and_no_long_links(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 12, .profile = &ras_profile_nccl});

	(void)state;
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	for (uint32_t n = 0; n < 12; n++)
		assert_int_equal(world_links(world, n), 2);
	world_destroy(world);
}

UNIT_GROUP(ras_ring) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_are_those_whose_links_are_not_neighbours),
		cmocka_unit_test(distance_fits_within_its_window_and_not_beside_it),
		cmocka_unit_test(one_two_three_and_four_nodes_are_rings_without_doubled_links),
		cmocka_unit_test(silent_neighbour_is_routed_round_before_it_is_judged),
		cmocka_unit_test(fallbacks_are_gone_within_a_beat_of_the_primary_speaking_again),
		cmocka_unit_test(fallback_of_a_fallback_skips_the_rest_of_a_failed_host),
		cmocka_unit_test(peer_that_uses_us_already_is_taken_if_it_lies_nearer),
		cmocka_unit_test(peer_that_uses_us_is_adopted_only_if_it_is_nearer),
		cmocka_unit_test(peer_without_a_place_in_the_ring_is_no_fallback),
		cmocka_unit_test(promoted_fallback_is_used_as_primary_only),
		cmocka_unit_test(unneeded_fallback_link_is_retired_by_both_and_stays_away),
		cmocka_unit_test(death_of_a_neighbour_closes_the_ring_over_it),
		cmocka_unit_test(every_level_finds_a_link_and_the_degree_stays_bounded),
		cmocka_unit_test(no_two_failures_cut_the_overlay),
		cmocka_unit_test(one_join_changes_few_links),
		cmocka_unit_test(last_places_are_kept_for_levels_with_few_candidates),
		cmocka_unit_test(degree_is_back_within_a_second_while_levels_are_incomplete),
		cmocka_unit_test(level_that_no_ring_has_is_shed_as_any_other),
		cmocka_unit_test(use_announced_on_an_idle_link_counts_against_the_degree),
		cmocka_unit_test(links_that_were_not_accepted_are_not_counted_as_opened),
		cmocka_unit_test(neighbour_without_memory_for_its_link_is_linked_when_there_is_some
		),
		cmocka_unit_test(fallback_without_memory_for_its_link_is_tried_again),
		cmocka_unit_test(fallback_that_never_comes_up_is_passed_over_as_one_that_fell_silent
		),
		cmocka_unit_test(nccl_profile_has_one_ring_and_no_long_links),
	};

	return cmocka_run_group_tests_name("ras_ring", tests, NULL, NULL);
}
