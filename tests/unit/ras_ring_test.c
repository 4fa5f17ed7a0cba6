// SPDX-License-Identifier: BSD-3-Clause
#include "ras_lone.h"
#include "ras_world.h"

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

// Three nodes a host: 2 | 3, 4, 5 | 6. The first fallback is the failed one's neighbour, for the
// link alone may be bad; the next leaves the host, lest each of its nodes costs its own time.
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

// Row 6: a peer that uses us already and lies nearer serves as fallback, with no connection of
// its own, and gives the use up when the primary speaks again.
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

// Row 6: both sides say what they use a link for, and agree to drop it without ping-pong.
static void unneeded_fallback_link_is_retired_by_both_and_stays_away(void **state) {
	struct world *world = world_of(5);

	(void)state;
	// In a ring of five 1 and 3 share no link by ring or level.
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
	} rows[] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 1}, {7, 1}, {8, 2}, {1000, 8}, {10000, 12}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_int_equal(ring_levels(rows[n].members), rows[n].levels);
	assert_in_range(ring_levels(UINT32_MAX), 1, RAS_LEVELS_MAX - 1);
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

		assert_int_equal(ras->ring.level_count, ring_levels(32));
		for (uint32_t level = 1; level <= ras->ring.level_count; level++) {
			uint32_t slot = ras->ring.levels[level].slot;

			assert_int_not_equal(slot, RAS_NO_SLOT);
			assert_true(link_is_ready(link_find(ras, slot)));
		}
		assert_in_range(links_degree(ras), 2, links_degree_max(32));
	}
	world_destroy(world);
}

// By position alone a join would move a link of every node on every level.
static void join_moves_few_long_links(void **state) {
	struct world *world =
		world_create(&(struct world_setup){.count = 31, .seeds = 1, .idle = true});
	uint64_t opened = 0;

	(void)state;
	for (uint32_t n = 0; n < 31; n++) {
		if (n != 15)
			world_start(world, n, 0, n);
	}
	world_pass(world, 60 * SEC);
	for (uint32_t n = 0; n < 31; n++) {
		if (n != 15)
			opened += ras_counters(world->nodes[n].ras)->long_links_opened;
	}
	world_start(world, 15, 0, 15);
	world_pass(world, 60 * SEC);
	assert_true(world_agrees(world));
	for (uint32_t n = 0; n < 31; n++) {
		if (n != 15)
			opened -= ras_counters(world->nodes[n].ras)->long_links_opened;
	}
	// 30 nodes with 3 levels each; the windows let all but a few stay.
	assert_in_range((uint64_t)0 - opened, 0, 12);
	world_destroy(world);
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

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_are_those_whose_links_are_not_neighbours),
		cmocka_unit_test(distance_fits_within_its_window_and_not_beside_it),
		cmocka_unit_test(one_two_three_and_four_nodes_are_rings_without_doubled_links),
		cmocka_unit_test(silent_neighbour_is_routed_round_before_it_is_judged),
		cmocka_unit_test(fallbacks_are_gone_within_a_beat_of_the_primary_speaking_again),
		cmocka_unit_test(fallback_of_a_fallback_skips_the_rest_of_a_failed_host),
		cmocka_unit_test(peer_that_uses_us_already_is_taken_if_it_lies_nearer),
		cmocka_unit_test(unneeded_fallback_link_is_retired_by_both_and_stays_away),
		cmocka_unit_test(death_of_a_neighbour_closes_the_ring_over_it),
		cmocka_unit_test(every_level_finds_a_link_and_the_degree_stays_bounded),
		cmocka_unit_test(join_moves_few_long_links),
		cmocka_unit_test(nccl_profile_has_one_ring_and_no_long_links),
	};

	return cmocka_run_group_tests_name("ras_ring", tests, NULL, NULL);
}
