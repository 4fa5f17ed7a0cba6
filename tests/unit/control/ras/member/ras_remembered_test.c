// SPDX-License-Identifier: BSD-3-Clause
// An agent that remembers members of an earlier run.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <errno.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS
#define BIT(n) (UINT64_C(1) << (n))

static struct world *world_through_first(uint32_t count) {
	struct world_setup setup = {.count = count, .seeds = 1, .idle = true};
	struct world *world = world_create(&setup);

	for (uint32_t n = 0; n < count; n++)
		world_start(world, n, 1, n);
	world_pass(world, 15 * SEC);
	assert_true(world_agrees(world));
	return world;
}

static void leave(struct world *world, uint32_t node) {
	ras_leave(world->nodes[node].ras, world->now_ns);
	world_pass(world, SEC);
	world_kill(world, node);
}

static struct world *world_without_seeds(uint32_t count) {
	struct world_setup setup = {.count = count, .idle = true};

	return world_create(&setup);
}

// Return how many alive members its table has when the node becomes a member.
static uint32_t alive_when_joined(struct world *world, uint32_t node) {
	for (uint32_t turn = 0; turn < 6000 && !world_view(world, node).joined; turn++)
		world_pass(world, 10 * MS);
	assert_true(world_view(world, node).joined);
	return world_view(world, node).alive;
}

// Regression: it founded a ring of one beside the old one, and the rings met only by chance.
static void only_seed_that_restarts_joins_its_old_ring_through_a_member(void **state) {
	struct world *world = world_through_first(4);

	(void)state;
	leave(world, 0);
	world->remembers = BIT(1) | BIT(2) | BIT(3);
	world_start(world, 0, 2, 0);
	assert_int_equal(alive_when_joined(world, 0), 4);
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// No member calls it, since the others were told to forget it.
static void agent_whose_seeds_are_gone_for_good_joins_through_a_member(void **state) {
	struct world *world = world_through_first(4);

	(void)state;
	leave(world, 3);
	leave(world, 0);
	assert_int_equal(ras_forget(world->nodes[1].ras, world->now_ns, world_id(world, 3)), 0);
	world_pass(world, 5 * SEC);
	world->remembers = BIT(1) | BIT(2);
	world_start(world, 3, 2, 3);
	world_pass(world, 15 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_view(world, 3).alive, 3);
	assert_int_equal(world_events(world, 3, RAS_EVENT_JOIN_WAITING), 0);
	world_destroy(world);
}

static void all_who_restart_without_their_seed_are_one_ring_that_they_found_together(void **state) {
	struct world *world = world_through_first(4);

	(void)state;
	for (uint32_t n = 0; n < 4; n++)
		world_kill(world, n);
	world->remembers = BIT(0) | BIT(1) | BIT(2) | BIT(3);
	for (uint32_t n = 1; n < 4; n++)
		world_start(world, n, 2, n);
	world_pass(world, 40 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_view(world, 3).alive, 3);
	world_destroy(world);
}

// Restart a subset of the nodes, in ascending or descending order.
static void restart(struct world *world, uint32_t subset, bool goodbye, bool down) {
	for (uint32_t n = 0; n < world->count; n++) {
		if ((subset & BIT(n)) != 0 && goodbye)
			leave(world, n);
		else if ((subset & BIT(n)) != 0)
			world_kill(world, n);
	}
	world_pass(world, 2 * SEC);
	for (uint32_t turn = 0; turn < world->count; turn++) {
		uint32_t n = down ? world->count - 1 - turn : turn;

		if ((subset & BIT(n)) == 0)
			continue;
		world_start(world, n, 2, n);
		world_pass(world, 700 * MS);
	}
}

static void one_view_after_restarts(uint32_t seeds, bool goodbye, bool down) {
	for (uint32_t subset = 1; subset < BIT(4); subset++) {
		struct world *world = world_through_first(4);

		world->seeds = seeds;
		world->remembers = BIT(4) - 1;
		restart(world, subset, goodbye, down);
		world_pass(world, 45 * SEC);
		if (!world_agrees(world))
			fail_msg("seeds %u, subset %#x: two views", seeds, subset);
		world_destroy(world);
	}
}

static void whoever_restarts_in_whatever_order_is_in_one_view_again(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 8; n++)
		one_view_after_restarts(n & 1, (n & 2) != 0, (n & 4) != 0);
}

// Node 2, whose seed is down, remembers node 1. By now node 1 has another cluster name or
// version.
static void refused_by_who_is_there_today(const char *cluster, uint16_t version, uint8_t cause) {
	struct world_setup setup = {.count = 3, .seeds = 1, .idle = true};
	struct world *world = world_create(&setup);
	const struct ras_event *event;

	world_start_as(world, 1, cluster, version);
	world->remembers = BIT(1) | BIT(2);
	world_start(world, 2, 1, 2);
	world_pass(world, 20 * SEC);
	assert_int_equal(world_events(world, 2, RAS_EVENT_JOIN_REFUSED), 0);
	assert_int_equal(world_events(world, 2, RAS_EVENT_JOIN_DROPPED), 1);
	event = world_event(world, 2, RAS_EVENT_JOIN_DROPPED);
	assert_int_equal(event->cause, cause);
	assert_true(sock_addr_equal(&event->other, &world->nodes[1].record->address));
	assert_false(world_view(world, 2).joined);
	world_start(world, 0, 1, 0);
	world_pass(world, 10 * SEC);
	assert_int_equal(world_view(world, 2).alive, 2);
	assert_int_equal(world->nodes[2].ras->remembered.count, 0);
	world_destroy(world);
}

static void remembered_address_that_refuses_is_dropped_and_ends_no_start(void **state) {
	(void)state;
	refused_by_who_is_there_today("other", 0, RAS_CAUSE_CLUSTER);
	refused_by_who_is_there_today("world", 9, RAS_CAUSE_VERSION);
}

static void address_that_is_configured_too_ends_the_start_as_before(void **state) {
	struct world_setup setup = {.count = 3, .seeds = 1, .idle = true};
	struct world *world = world_create(&setup);

	(void)state;
	world_start_as(world, 0, "other", 0);
	world->remembers = BIT(0);
	world_start(world, 2, 1, 2);
	world_pass(world, 5 * SEC);
	assert_int_equal(world_event(world, 2, RAS_EVENT_JOIN_REFUSED)->cause, RAS_CAUSE_CLUSTER);
	assert_int_equal(world_events(world, 2, RAS_EVENT_JOIN_DROPPED), 0);
	world_destroy(world);
}

static void without_seeds_it_looks_for_whom_it_remembers_before_it_is_alone(void **state) {
	struct world *world = world_without_seeds(3);

	(void)state;
	world->remembers = BIT(1) | BIT(2);
	world_start(world, 0, 2, 0);
	world_pass(world, 29 * SEC);
	assert_false(world_view(world, 0).joined);
	world_pass(world, 5 * SEC);
	assert_true(world_view(world, 0).joined);
	assert_int_equal(world_view(world, 0).alive, 1);
	assert_int_equal(world->nodes[0].ras->remembered.count, 2);
	// It keeps looking for them, but they do not remember it.
	world->remembers = 0;
	world_start(world, 1, 1, 1);
	world_start(world, 2, 1, 2);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world->nodes[0].ras->remembered.count, 0);
	world_destroy(world);
}

static void without_seeds_it_joins_through_whom_it_remembers(void **state) {
	struct world *world = world_without_seeds(2);

	(void)state;
	world_start(world, 0, 1, 0);
	world->remembers = BIT(0) | BIT(1);
	world_start(world, 1, 2, 1);
	assert_int_equal(alive_when_joined(world, 1), 2);
	world_destroy(world);
}

static void without_seeds_it_is_alone_at_once_if_it_remembers_itself_or_nobody(void **state) {
	struct world *world = world_without_seeds(2);

	(void)state;
	world->remembers = BIT(0);
	world_start(world, 0, 2, 0);
	assert_true(world_view(world, 0).joined);
	world->remembers = BIT(0);
	world_start_as(world, 1, "other", 0); // rejected by all members it remembers
	world_pass(world, 2 * SEC);
	assert_true(world_view(world, 1).joined);
	assert_int_equal(world_events(world, 1, RAS_EVENT_JOIN_DROPPED), 1);
	world_destroy(world);
}

static void forgetting_all_whom_it_remembers_ends_the_wait(void **state) {
	struct world *world = world_without_seeds(2);

	(void)state;
	world->remembers = BIT(1);
	world_start(world, 0, 2, 0);
	world_pass(world, 5 * SEC);
	assert_false(world_view(world, 0).joined);
	assert_int_equal(ras_remembered(world->nodes[0].ras, NULL, 0), 0);
	world_pass(world, 2 * SEC);
	assert_true(world_view(world, 0).joined);
	world_destroy(world);
}

// Node 2 has the name of node 1, like a clone of its disk.
static void no_ring_is_founded_beside_one_where_the_name_is_taken(void **state) {
	struct world *world = world_without_seeds(3);

	(void)state;
	world_start(world, 0, 1, 0);
	world->remembers = BIT(0);
	world_start(world, 1, 1, 1);
	world_pass(world, 10 * SEC);
	assert_int_equal(world_view(world, 1).alive, 2);
	world_start(world, 2, 1, 1);
	world_pass(world, 60 * SEC);
	assert_false(world_view(world, 2).joined);
	assert_int_equal(world_events(world, 2, RAS_EVENT_JOIN_REFUSED), 0);
	assert_int_equal(world_event(world, 2, RAS_EVENT_JOIN_DROPPED)->cause, RAS_CAUSE_CONFLICT);
	assert_int_equal(world_state(world, 0, 1), RAS_ALIVE);
	world_destroy(world);
}

static struct lone *lone_with_one_remembered(void) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 8, .self = 7, .joining = true});
	struct sock_addr address = lone_address(9);

	assert_int_equal(ras_remembered(lone->ras, &address, 1), 0);
	return lone;
}

static void remembered_ones_do_not_wait_for_a_long_list_of_seeds(void **state) {
	struct lone *lone = lone_with_one_remembered();

	(void)state;
	lone_pass(lone, 300 * MS);
	assert_int_not_equal(lone_opening(lone, 9), 0);
	assert_int_equal(lone_opening(lone, 5), 0);
	lone_destroy(lone);
}

static void one_that_does_not_prove_the_key_is_dropped(void **state) {
	struct lone *lone = lone_with_one_remembered();

	(void)state;
	lone_pass(lone, 300 * MS);
	lone_end(lone, lone_opening(lone, 9), RAS_CAUSE_PROOF);
	lone_end(lone, lone_opening(lone, 0), RAS_CAUSE_PROOF);
	assert_int_equal(lone_events(lone, RAS_EVENT_JOIN_DROPPED), 1);
	assert_int_equal(lone_event(lone, RAS_EVENT_JOIN_DROPPED)->cause, RAS_CAUSE_PROOF);
	lone_pass(lone, 20 * SEC);
	assert_int_equal(lone_opening(lone, 9), 0);
	lone_destroy(lone);
}

// The resolver is slow or unavailable.
static void seeds_whose_addresses_are_not_known_yet_are_waited_for(void **state) {
	struct world *world = world_without_seeds(2);

	(void)state;
	world->remembers = BIT(1);
	world->seeds_unknown = true;
	world_start(world, 0, 2, 0);
	world_pass(world, 60 * SEC);
	assert_false(world_view(world, 0).joined);
	assert_int_equal(
		ras_set_seeds(world->nodes[0].ras, &world->nodes[0].record->address, 1), 0
	);
	world_pass(world, 15 * SEC);
	assert_true(world_view(world, 0).joined); // it is a seed itself
	world_destroy(world);
}

static void more_than_there_may_be_are_refused_and_those_of_before_stay(void **state) {
	struct sock_addr addresses[RAS_REMEMBERED_MAX + 1];
	struct lone *lone = lone_with_one_remembered();

	(void)state;
	for (uint32_t n = 0; n < RAS_REMEMBERED_MAX + 1; n++)
		addresses[n] = lone_address(n);
	assert_int_equal(ras_remembered(lone->ras, addresses, RAS_REMEMBERED_MAX + 1), -EINVAL);
	assert_int_equal(lone->ras->remembered.count, 1);
	lone->memory_spent = true;
	assert_int_equal(ras_remembered(lone->ras, addresses, 2), -ENOMEM);
	lone->memory_spent = false;
	assert_int_equal(lone->ras->remembered.count, 1);
	lone_destroy(lone);
}

// A member in the table is known, and is searched like all others if its links are lost.
static void member_looks_only_for_those_whom_its_table_does_not_know(void **state) {
	struct lone *lone = lone_of(3, 1);
	struct sock_addr addresses[] = {lone_address(0), lone_address(1), lone_address(9)};
	uint32_t conn = lone_link(lone, 0);

	(void)state;
	assert_int_equal(ras_remembered(lone->ras, addresses, 3), 0);
	lone_pass_beating(lone, 20 * SEC, conn);
	assert_int_equal(lone->ras->remembered.count, 1);
	assert_int_not_equal(lone_opening(lone, 9), 0);
	lone_destroy(lone);
}

static void one_whose_row_was_removed_is_looked_for_no_more(void **state) {
	struct world *world = world_through_first(4);
	struct sock_addr *address = &world->nodes[3].record->address;

	(void)state;
	assert_int_equal(ras_remembered(world->nodes[1].ras, address, 1), 0);
	world_kill(world, 3);
	while (world_state(world, 1, 3) != RAS_DEAD)
		world_pass(world, 10 * MS);
	// As if its turn had not come yet.
	assert_int_equal(ras_remembered(world->nodes[1].ras, address, 1), 0);
	assert_int_equal(ras_forget(world->nodes[1].ras, world->now_ns, world_id(world, 3)), 0);
	assert_int_equal(world->nodes[1].ras->remembered.count, 0);
	world_destroy(world);
}

UNIT_GROUP(ras_remembered) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_seed_that_restarts_joins_its_old_ring_through_a_member),
		cmocka_unit_test(agent_whose_seeds_are_gone_for_good_joins_through_a_member),
		cmocka_unit_test(
			all_who_restart_without_their_seed_are_one_ring_that_they_found_together
		),
		cmocka_unit_test(whoever_restarts_in_whatever_order_is_in_one_view_again),
		cmocka_unit_test(remembered_address_that_refuses_is_dropped_and_ends_no_start),
		cmocka_unit_test(address_that_is_configured_too_ends_the_start_as_before),
		cmocka_unit_test(without_seeds_it_looks_for_whom_it_remembers_before_it_is_alone),
		cmocka_unit_test(without_seeds_it_joins_through_whom_it_remembers),
		cmocka_unit_test(without_seeds_it_is_alone_at_once_if_it_remembers_itself_or_nobody
		),
		cmocka_unit_test(forgetting_all_whom_it_remembers_ends_the_wait),
		cmocka_unit_test(no_ring_is_founded_beside_one_where_the_name_is_taken),
		cmocka_unit_test(remembered_ones_do_not_wait_for_a_long_list_of_seeds),
		cmocka_unit_test(one_that_does_not_prove_the_key_is_dropped),
		cmocka_unit_test(seeds_whose_addresses_are_not_known_yet_are_waited_for),
		cmocka_unit_test(more_than_there_may_be_are_refused_and_those_of_before_stay),
		cmocka_unit_test(member_looks_only_for_those_whom_its_table_does_not_know),
		cmocka_unit_test(one_whose_row_was_removed_is_looked_for_no_more),
	};

	return cmocka_run_group_tests_name("ras_remembered", tests, NULL, NULL);
}
