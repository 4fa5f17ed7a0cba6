// SPDX-License-Identifier: BSD-3-Clause
// A process that exits while another agent runs on its host: the kernel of the host reports the
// exit.
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define COUNT 8

static struct world *world_of_pairs(uint32_t count, enum world_boots boots) {
	struct world *world =
		world_create(&(struct world_setup){.count = count, .pairs = true, .boots = boots});

	world_pass(world, 5 * SEC);
	assert_true(world_agrees(world));
	world_mark(world);
	return world;
}

static struct ras_peer peer_of(const struct world *world, uint32_t node, uint32_t of) {
	struct ras_peer peer;

	assert_int_equal(ras_peer_find(world->nodes[node].ras, world_id(world, of), &peer), 0);
	return peer;
}

// Split the world; the first half, two hosts, is the side that waits.
static struct world *halves_of_pairs(enum world_boots boots) {
	struct world *world = world_of_pairs(COUNT, boots);

	world_split(world, COUNT / 2, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	for (uint32_t n = 0; n < COUNT; n++)
		assert_true(world_view(world, n).brake);
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	return world;
}

static void process_that_exits_in_a_part_that_waits_is_dead_by_the_word_of_its_host(void **state) {
	struct world *world = halves_of_pairs(WORLD_BOOT_OF_HOST);
	struct ras_peer peer;

	(void)state;
	world_kill(world, 1);
	world_pass(world, 3 * SEC);
	for (uint32_t n = 0; n < COUNT / 2; n++) {
		if (n == 1)
			continue;
		peer = peer_of(world, n, 1);
		assert_int_equal(peer.state, RAS_DEAD);
		assert_int_equal(peer.cause, RAS_CAUSE_EXITED);
		assert_int_equal(peer.observer_count, 1);
		assert_true(peer.observers[0] == world_id(world, 0));
		assert_false(peer.sole);
		// The members behind the partition are unchanged.
		assert_true(world_view(world, n).brake);
		assert_int_equal(world_view(world, n).dead, 1);
	}
	for (uint32_t n = COUNT / 2; n < COUNT; n++)
		assert_int_equal(world_view(world, n).dead, 0);
	// When the partition is over, the other half learns of the exit, and no further death was
	// declared.
	world_split(world, COUNT / 2, WORLD_OPEN);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	for (uint32_t n = COUNT / 2; n < COUNT; n++)
		assert_int_equal(world_state(world, n, 1), RAS_DEAD);
	world_destroy(world);
}

// Machines booted from one image are two hosts; an unknown boot proves nothing.
static void part_that_waits_holds_one_that_refuses_its_clone(void **state) {
	static const enum world_boots boots[] = {WORLD_BOOT_OF_NODE, WORLD_BOOT_UNKNOWN};

	(void)state;
	for (size_t n = 0; n < sizeof(boots) / sizeof(boots[0]); n++) {
		struct world *world = halves_of_pairs(boots[n]);

		world_kill(world, 1);
		world_pass(world, 70 * SEC);
		assert_int_equal(world_state(world, 0, 1), RAS_UNREACHABLE);
		assert_int_equal(world_view(world, 2).dead, 0);
		world_destroy(world);
	}
}

// Its own firewall is reloaded and rejects the other node of its host; a third node hears it.
static void one_that_its_own_machine_refuses_and_a_third_hears_lives(void **state) {
	(void)state;
	for (uint32_t gap = 0; gap < 2; gap++) {
		struct world *world = gap ? halves_of_pairs(WORLD_BOOT_OF_HOST)
					  : world_of_pairs(COUNT, WORLD_BOOT_OF_HOST);

		assert_true(world_is_linked(world, 1, 2));
		world_way(world, 0, 1, WORLD_REFUSED);
		world_way(world, 1, 0, WORLD_REFUSED);
		world_reset(world, 0, 1);
		world_pass(world, 70 * SEC);
		assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
		for (uint32_t n = 0; n < 4; n++)
			assert_int_equal(world_state(world, n, 1), RAS_ALIVE);
		world_destroy(world);
	}
}

static void of_two_on_one_host_the_other_ones_exit_is_no_sole_death(void **state) {
	struct world *world = world_of_pairs(2, WORLD_BOOT_OF_HOST);
	struct ras_peer peer;

	(void)state;
	world_kill(world, 1);
	world_pass(world, 3 * SEC);
	peer = peer_of(world, 0, 1);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_int_equal(peer.cause, RAS_CAUSE_EXITED);
	assert_false(peer.sole);
	world_destroy(world);
}

// Only a node of the same host can have seen the exit.
static void exit_that_one_of_another_host_tells_is_a_suspicion(void **state) {
	static const struct {
		uint32_t observer;
		enum world_boots boots;
		bool dies;
	} rows[] = {
		{2, WORLD_BOOT_OF_HOST, false}, // another host
		{1, WORLD_BOOT_OF_HOST, false}, // the subject itself
		{0, WORLD_BOOT_OF_NODE, false}, // a clone of the host
		{0, WORLD_BOOT_UNKNOWN, false}, {0, WORLD_BOOT_OF_HOST, true},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct world *world = world_of_pairs(COUNT, rows[n].boots);
		struct peer_news news = {
			.id = world_id(world, 1),
			.incarnation = ras_self_incarnation(world->nodes[1].ras),
			.state = RAS_DEAD,
			.cause = RAS_CAUSE_EXITED,
			.observer_count = 1,
			.observers = {world_id(world, rows[n].observer)},
		};
		uint32_t far = 5;

		while (world_link(world, far, 1) != NULL)
			assert_true(++far < COUNT);
		membership_apply_reported(world->nodes[far].ras, &news, NULL);
		assert_int_equal(world_state(world, far, 1), rows[n].dies ? RAS_DEAD : RAS_SUSPECT);
		// The subject lives and refutes the report.
		world_pass(world, 20 * SEC);
		assert_true(world_agrees(world));
		world_destroy(world);
	}
}

// The same death, also reported by a sole observer: the exit's weight remains in either order.
static void exit_weighs_more_than_what_one_alone_declared(void **state) {
	(void)state;
	for (uint32_t first = 0; first < 2; first++) {
		struct world *world = world_of_pairs(COUNT, WORLD_BOOT_OF_HOST);
		struct peer_news deaths[2];

		world_off(world, 1);
		for (uint32_t n = 0; n < 2; n++)
			deaths[n] = (struct peer_news){
				.id = world_id(world, 1),
				.incarnation = ras_incarnation(1, 0),
				.state = RAS_DEAD,
				.cause = n == 0 ? RAS_CAUSE_EXITED : RAS_CAUSE_SILENT,
				.observer_count = 1,
				.observers = {world_id(world, n == 0 ? 0 : 7)},
				.reached = n == 0 ? 0 : 2,
				.of = n == 0 ? 0 : 2,
			};
		membership_apply(world->nodes[6].ras, &deaths[first], NULL);
		assert_int_equal(peer_of(world, 6, 1).sole, first == 1);
		membership_apply(world->nodes[6].ras, &deaths[1 - first], NULL);
		assert_int_equal(peer_of(world, 6, 1).cause, RAS_CAUSE_EXITED);
		assert_false(peer_of(world, 6, 1).sole);
		world_destroy(world);
	}
}

UNIT_GROUP(ras_exit) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			process_that_exits_in_a_part_that_waits_is_dead_by_the_word_of_its_host
		),
		cmocka_unit_test(part_that_waits_holds_one_that_refuses_its_clone),
		cmocka_unit_test(one_that_its_own_machine_refuses_and_a_third_hears_lives),
		cmocka_unit_test(of_two_on_one_host_the_other_ones_exit_is_no_sole_death),
		cmocka_unit_test(exit_that_one_of_another_host_tells_is_a_suspicion),
		cmocka_unit_test(exit_weighs_more_than_what_one_alone_declared),
	};

	return cmocka_run_group_tests_name("ras_exit", tests, NULL, NULL);
}
