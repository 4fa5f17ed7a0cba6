// SPDX-License-Identifier: BSD-3-Clause
// How sides of a cluster find each other again: members call lost members, and a node without a
// ring joins through any member that calls it.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

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

// Regression: it founded a ring of one, and the others mistook its old entry for a member.
static void only_seed_that_left_and_came_back_alone_is_found_by_the_others(void **state) {
	struct world *world = world_through_first(4);

	(void)state;
	leave(world, 0);
	world_start(world, 0, 2, 0);
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void only_seed_that_died_and_came_back_alone_is_found_by_the_others(void **state) {
	struct world *world = world_through_first(4);

	(void)state;
	world_kill(world, 0);
	world_pass(world, 20 * SEC);
	assert_int_equal(world_state(world, 1, 0), RAS_DEAD);
	world_start(world, 0, 2, 0);
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// Regression: it answered the members that called it with BUSY, for ever.
static void agent_whose_seeds_are_down_joins_through_the_member_that_calls_it(void **state) {
	struct world *world = world_through_first(4);

	(void)state;
	leave(world, 3);
	world_kill(world, 0);
	world_pass(world, 20 * SEC);
	world_start(world, 3, 2, 3);
	world_pass(world, 10 * SEC);
	assert_true(world_view(world, 3).joined);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void all_who_left_in_any_order_are_one_ring_after_they_come_back(void **state) {
	static const uint32_t order[] = {2, 0, 3, 1};
	struct world *world = world_through_first(4);

	(void)state;
	for (uint32_t n = 0; n < 4; n++)
		leave(world, n);
	for (uint32_t n = 0; n < 4; n++) {
		world_start(world, order[n], 2, order[n]);
		world_pass(world, 3 * SEC);
	}
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// Count connections that the instance has opened to this peer.
static uint32_t dials(const struct lone *lone, uint32_t peer) {
	struct sock_addr address = lone_address(peer);
	uint32_t count = 0;

	for (uint32_t n = 0; n < lone->conn_count; n++)
		count += lone->conns[n].outgoing && sock_addr_equal(&lone->conns[n].to, &address);
	return count;
}

// All members but 0 and 1 have left; 0 sends frames.
static uint32_t lone_left_by_most(struct lone *lone) {
	uint32_t conn = lone_link(lone, 0);

	for (uint32_t n = 2; n < lone->count; n++) {
		struct peer_news left = lone_told(lone, n, RAS_LEFT, ras_incarnation(1, 0));

		lone_news(lone, conn, &left);
	}
	return conn;
}

static void each_who_left_is_tried_in_turn_and_two_a_second_at_most(void **state) {
	struct lone *lone = lone_of(12, 1);
	uint32_t conn = lone_left_by_most(lone);
	uint32_t before[12], all = 0;

	(void)state;
	for (uint32_t n = 2; n < 12; n++)
		before[n] = dials(lone, n);
	lone_pass_beating(lone, 20 * SEC, conn);
	for (uint32_t n = 2; n < 12; n++) {
		assert_in_range(dials(lone, n) - before[n], 2, 5);
		all += dials(lone, n) - before[n];
	}
	assert_in_range(all, 26, 41);
	lone_destroy(lone);
}

// Regression: all nodes had looked for seeds before, so all began with the same dead member.
static void members_do_not_all_begin_with_the_same_one(void **state) {
	uint32_t seen = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct lone *lone = lone_create(&(struct lone_setup
		){.count = 12, .self = 1, .random_seed = seed});
		struct sock_addr address = lone_address(0);
		uint32_t conn;

		assert_int_equal(ras_set_seeds(lone->ras, &address, 1), 0);
		lone_pass(lone, 3 * SEC);
		conn = lone_left_by_most(lone);
		for (uint32_t tried = 0; tried == 0;) {
			lone_pass_beating(lone, 100 * MS, conn);
			for (uint32_t n = 2; n < 12; n++) {
				if (lone_opening(lone, n) != 0)
					tried = n;
			}
			seen |= 1u << tried;
		}
		lone_destroy(lone);
	}
	assert_in_range(__builtin_popcount(seen & ~1u), 4, 8);
}

static void try_that_is_not_answered_leaves_no_link(void **state) {
	struct lone *lone = lone_of(12, 1);
	uint32_t conn = lone_left_by_most(lone);
	uint32_t links = 0;

	(void)state;
	lone_pass_beating(lone, 30 * SEC, conn);
	for (uint32_t n = 2; n < 12; n++)
		links += lone_find_link(lone, n) != NULL;
	// Links of the tries of the last three seconds, which may still be answered.
	assert_in_range(links, 1, 7);
	lone_destroy(lone);
}

static void seed_that_answers_by_another_address_is_asked_once(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct sock_addr alias = lone_address(20);
	struct message_init_ack ack = lone_ack(lone, 2);
	uint32_t conn = lone_link(lone, 2);
	uint32_t asked;

	(void)state;
	assert_int_equal(ras_set_seeds(lone->ras, &alias, 1), 0);
	lone_pass_beating(lone, 5 * SEC, conn);
	assert_true(dials(lone, 20) > 0);
	ack.flags = MESSAGE_ACK_MEMBER;
	while (lone_opening(lone, 20) == 0)
		lone_pass_beating(lone, 100 * MS, conn);
	lone_send_ack(lone, lone_opening(lone, 20), &ack);
	lone_pass_beating(lone, 4 * SEC, conn); // another try may have been in progress
	asked = dials(lone, 20);
	lone_pass_beating(lone, 20 * SEC, conn);
	assert_int_equal(dials(lone, 20), asked);
	lone_destroy(lone);
}

UNIT_GROUP(ras_search) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_seed_that_left_and_came_back_alone_is_found_by_the_others),
		cmocka_unit_test(only_seed_that_died_and_came_back_alone_is_found_by_the_others),
		cmocka_unit_test(agent_whose_seeds_are_down_joins_through_the_member_that_calls_it),
		cmocka_unit_test(all_who_left_in_any_order_are_one_ring_after_they_come_back),
		cmocka_unit_test(each_who_left_is_tried_in_turn_and_two_a_second_at_most),
		cmocka_unit_test(members_do_not_all_begin_with_the_same_one),
		cmocka_unit_test(try_that_is_not_answered_leaves_no_link),
		cmocka_unit_test(seed_that_answers_by_another_address_is_asked_once),
	};

	return cmocka_run_group_tests_name("ras_search", tests, NULL, NULL);
}
