// SPDX-License-Identifier: BSD-3-Clause
// Which nodes may declare deaths by silence when many members are silent at once.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static void cut_off(struct world *world, uint32_t node, enum world_way way) {
	for (uint32_t n = 0; n < world->count; n++) {
		world_way(world, node, n, way);
		world_way(world, n, node, way);
	}
}

static uint32_t deaths_by(const struct world *world, uint32_t node) {
	return (uint32_t)ras_counters(world->nodes[node].ras)->deaths_declared;
}

// Regression: a node was cut off from so few members that all were its neighbours. It considered
// itself the only remaining observer and declared them all dead.
static void node_cut_off_from_all_others_declares_nobody_dead(void **state) {
	static const uint32_t counts[] = {3, 4, 6, 9};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		uint32_t count = counts[n];
		struct world *world = world_of(count);

		cut_off(world, 0, WORLD_STALLED);
		world_pass(world, 100 * SEC); // more than the brake's hold time
		assert_int_equal(deaths_by(world, 0), 0);
		assert_int_equal(world_view(world, 0).unreachable, count - 1);
		// With two others, each of them has the other one to confirm.
		for (uint32_t m = 1; m < count; m++)
			assert_int_equal(world_state(world, m, 0), RAS_DEAD);
		cut_off(world, 0, WORLD_OPEN);
		world_pass(world, 10 * SEC);
		assert_true(world_agrees(world));
		assert_int_equal(world_view(world, 0).unreachable, 0);
		world_destroy(world);
	}
}

// No member is left to confirm, so the state is shown as unreachable and never decided.
static void last_of_three_holds_both_others_as_unreachable(void **state) {
	struct world *world = world_of(3);

	(void)state;
	world_off(world, 1);
	world_off(world, 2);
	world_pass(world, 12 * SEC);
	assert_int_equal(world_view(world, 0).unreachable, 2);
	world_pass(world, 100 * SEC);
	assert_int_equal(world_view(world, 0).unreachable, 2);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// The last node cannot distinguish dead members from members behind its own firewall.
static void last_one_holds_those_that_refuse_it_as_unreachable(void **state) {
	static const uint32_t counts[] = {3, 4, 9};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct world *world = world_of(counts[n]);

		for (uint32_t m = 1; m < counts[n]; m++)
			world_kill(world, m);
		world_pass(world, 200 * SEC);
		assert_true(world_view(world, 0).unreachable > 0);
		assert_int_equal(world_view(world, 0).dead, 0);
		assert_int_equal(deaths_by(world, 0), 0);
		world_destroy(world);
	}
}

// In a view of two, the death is declared and marked sole.
static void one_of_two_that_refuses_is_declared_by_the_other_alone(void **state) {
	struct world *world = world_of(2);
	struct ras_peer peer;

	(void)state;
	world_kill(world, 1);
	world_pass(world, 2 * SEC);
	assert_int_equal(ras_peer_find(world->nodes[0].ras, world_id(world, 1), &peer), 0);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_int_equal(peer.cause, RAS_CAUSE_GONE);
	assert_true(peer.sole);
	world_destroy(world);
}

// Regression: each half considered the other one gone within a second.
static void halves_that_refuse_each_other_declare_nobody(void **state) {
	static const uint32_t counts[] = {4, 8, 24};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct world *world = world_of(counts[n]);

		world_split(world, counts[n] / 2, WORLD_REFUSED);
		for (uint32_t a = 0; a < counts[n] / 2; a++) {
			for (uint32_t b = counts[n] / 2; b < counts[n]; b++)
				world_reset(world, a, b);
		}
		world_pass(world, 100 * SEC);
		assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
		assert_true(world_events_all(world, RAS_EVENT_BRAKE_ON) > 0);
		world_split(world, counts[n] / 2, WORLD_OPEN);
		world_pass(world, 20 * SEC);
		assert_true(world_agrees(world));
		world_destroy(world);
	}
}

// Regression: two nodes of one host behind a firewall were refused and declared the peer dead,
// although it had a link.
static void one_that_refuses_two_and_is_heard_by_a_third_lives(void **state) {
	struct world *world = world_of(12);

	(void)state;
	for (uint32_t n = 1; n < 12; n++) {
		if (world_link(world, 0, n) == NULL)
			continue;
		world_way(world, n, 0, WORLD_REFUSED);
		world_way(world, 0, n, n == 1 ? WORLD_OPEN : WORLD_REFUSED);
		if (n > 1)
			world_reset(world, 0, n);
	}
	assert_true(world_is_linked(world, 0, 1));
	world_pass(world, 20 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// First the node's own firewall is reloaded. Then the refusals last, but the others are so many
// that they cannot all be gone.
static void one_that_all_refuse_for_a_while_or_in_a_large_view_declares_nobody(void **state) {
	static const struct {
		uint32_t count;
		uint64_t refused_ns;
	} rows[] = {{3, 15 * SEC}, {9, 15 * SEC}, {10, 200 * SEC}, {24, 200 * SEC}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct world *world = world_of(rows[n].count);

		cut_off(world, 0, WORLD_REFUSED);
		for (uint32_t m = 1; m < rows[n].count; m++)
			world_reset(world, 0, m);
		world_pass(world, rows[n].refused_ns);
		assert_int_equal(world_links(world, 0), 0);
		assert_int_equal(deaths_by(world, 0), 0);
		cut_off(world, 0, WORLD_OPEN);
		world_pass(world, 20 * SEC);
		assert_true(world_agrees(world));
		assert_int_equal(deaths_by(world, 0), 0);
		world_destroy(world);
	}
}

// A host that refuses connections and then falls silent may be rebooting.
static void one_that_refused_and_fell_silent_is_held_as_any_silent_one(void **state) {
	struct world *world = world_of(3);

	(void)state;
	world_kill(world, 1);
	world_kill(world, 2);
	world_pass(world, 5 * SEC);
	cut_off(world, 0, WORLD_STALLED);
	world_pass(world, 100 * SEC);
	assert_int_equal(world_view(world, 0).unreachable, 2);
	assert_int_equal(deaths_by(world, 0), 0);
	world_destroy(world);
}

static void third_of_three_that_fails_after_the_second_is_declared_by_one_alone(void **state) {
	struct world *world = world_of(3);
	struct ras_peer peer;

	(void)state;
	world_off(world, 2);
	world_pass(world, 15 * SEC);
	assert_int_equal(world_state(world, 0, 2), RAS_DEAD);
	world_off(world, 1);
	world_pass(world, 30 * SEC);
	assert_int_equal(ras_peer_find(world->nodes[0].ras, world_id(world, 1), &peer), 0);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_true(peer.sole);
	world_destroy(world);
}

// Regression: both halves declared each other dead after a minute.
static void half_of_the_view_is_never_declared_by_the_other_half(void **state) {
	static const uint32_t counts[] = {4, 6, 24};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct world *world = world_of(counts[n]);

		world_split(world, counts[n] / 2, WORLD_STALLED);
		world_pass(world, 150 * SEC);
		assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
		assert_true(world_view(world, 0).brake);
		world_split(world, counts[n] / 2, WORLD_OPEN);
		world_pass(world, 30 * SEC);
		assert_true(world_agrees(world));
		world_destroy(world);
	}
}

static void larger_part_declares_the_smaller_after_the_brakes_time_and_not_vice_versa(void **state
) {
	struct world *world = world_of(40);

	(void)state;
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 60 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_pass(world, 60 * SEC);
	for (uint32_t n = 12; n < 40; n++)
		assert_int_equal(world_view(world, n).dead, 12);
	for (uint32_t n = 0; n < 12; n++)
		assert_int_equal(world_view(world, n).dead, 0);
	world_split(world, 12, WORLD_OPEN);
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// Regression: it was luck whether a random sample distinguished a third of the view from a fifth.
// The brake also let go because more than half of the view was on our side. An island was
// declared dead.
static void island_above_the_limit_is_held_by_both_sides_and_heals(void **state) {
	static const uint32_t islands[][2] = {{40, 9}, {40, 12}, {40, 20}, {16, 8}, {24, 12}};

	(void)state;
	for (size_t n = 0; n < sizeof(islands) / sizeof(islands[0]); n++) {
		struct world *world = world_of(islands[n][0]);

		world_split(world, islands[n][1], WORLD_STALLED);
		world_pass(world, 50 * SEC);
		assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
		assert_true(world_events_all(world, RAS_EVENT_UNREACHABLE) > 0);
		world_split(world, islands[n][1], WORLD_OPEN);
		world_pass(world, 20 * SEC);
		assert_true(world_agrees(world));
		for (uint32_t m = 0; m < islands[n][0]; m++)
			assert_false(world_view(world, m).brake);
		world_destroy(world);
	}
}

// Eight is the number of nodes that one host may take down.
static void eight_of_many_that_fall_at_once_are_declared_in_time(void **state) {
	struct world *world = world_of(24);

	(void)state;
	for (uint32_t n = 0; n < 8; n++)
		world_off(world, 3 * n);
	world_pass(world, 13 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_view(world, 20).dead, 8);
	assert_int_equal(world_events_all(world, RAS_EVENT_BRAKE_ON), 0);
	world_destroy(world);
}

// Regression: after the brake let go because all members were back, it could not engage again for
// a minute.
static void second_partition_soon_after_the_first_is_held_as_well(void **state) {
	struct world *world = world_of(24);

	(void)state;
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 20 * SEC);
	world_split(world, 12, WORLD_OPEN);
	world_pass(world, 20 * SEC);
	assert_true(world_events_all(world, RAS_EVENT_BRAKE_OFF) > 0);
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// Regression: for a minute after the brake let go by timeout, no death was held.
static void partition_soon_after_the_brake_let_go_by_time_is_held_as_well(void **state) {
	struct world *world = world_of(40);

	(void)state;
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 90 * SEC);
	assert_int_equal(world_view(world, 20).dead, 12);
	world_split(world, 12, WORLD_OPEN);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	world_mark(world);
	world_split(world, 12, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

// First abc|de, then bc|ade: a readmits d and e and forms a side of three of five with them. But
// b and c are two of the three that declared d and e dead. Regression: each side declared the
// other one dead.
static void who_was_taken_back_makes_no_majority_for_a_minute(void **state) {
	struct world *world = world_of(5);

	(void)state;
	world_split(world, 3, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_view(world, 0).dead, 2);
	world_split(world, 3, WORLD_OPEN);
	for (uint32_t n = 1; n < 3; n++) {
		for (uint32_t m = 0; m < 5; m++) {
			if (m == 1 || m == 2)
				continue;
			world_way(world, n, m, WORLD_STALLED);
			world_way(world, m, n, WORLD_STALLED);
		}
	}
	world_pass(world, 200 * SEC);
	assert_int_equal(world_state(world, 1, 0), RAS_DEAD);
	for (uint32_t m = 0; m < 5; m++) {
		if (m != 1 && m != 2)
			assert_int_not_equal(world_state(world, m, 1), RAS_DEAD);
	}
	for (uint32_t n = 0; n < 5; n++) {
		for (uint32_t m = 0; m < 5; m++)
			world_way(world, n, m, WORLD_OPEN);
	}
	world_pass(world, 40 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

UNIT_GROUP(ras_brake) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_cut_off_from_all_others_declares_nobody_dead),
		cmocka_unit_test(last_of_three_holds_both_others_as_unreachable),
		cmocka_unit_test(last_one_holds_those_that_refuse_it_as_unreachable),
		cmocka_unit_test(one_of_two_that_refuses_is_declared_by_the_other_alone),
		cmocka_unit_test(halves_that_refuse_each_other_declare_nobody),
		cmocka_unit_test(one_that_refuses_two_and_is_heard_by_a_third_lives),
		cmocka_unit_test(one_that_all_refuse_for_a_while_or_in_a_large_view_declares_nobody
		),
		cmocka_unit_test(one_that_refused_and_fell_silent_is_held_as_any_silent_one),
		cmocka_unit_test(third_of_three_that_fails_after_the_second_is_declared_by_one_alone
		),
		cmocka_unit_test(half_of_the_view_is_never_declared_by_the_other_half),
		cmocka_unit_test(
			larger_part_declares_the_smaller_after_the_brakes_time_and_not_vice_versa
		),
		cmocka_unit_test(island_above_the_limit_is_held_by_both_sides_and_heals),
		cmocka_unit_test(eight_of_many_that_fall_at_once_are_declared_in_time),
		cmocka_unit_test(second_partition_soon_after_the_first_is_held_as_well),
		cmocka_unit_test(partition_soon_after_the_brake_let_go_by_time_is_held_as_well),
		cmocka_unit_test(who_was_taken_back_makes_no_majority_for_a_minute),
	};

	return cmocka_run_group_tests_name("ras_brake", tests, NULL, NULL);
}
