// SPDX-License-Identifier: BSD-3-Clause
// Effects of the simulator's faults on a node, its state directory and its paths, and the
// reactions of the other nodes.
#include "world.h"

#include <support/cmocka.h>

#define NODES 6
#define VICTIM 3
#define OTHER 5
#define LONG_NS (60 * WORLD_SEC)

static struct world *make(uint32_t hosts, bool remember) {
	struct world_options options = {
		.nodes = NODES,
		.hosts = hosts,
		.profile = &ras_profile_fast,
		.seed = 7,
		.check = true,
		.remember = remember,
	};
	struct ras_table *table;
	struct world *world;

	assert_int_equal(world_create(&options, &world), 0);
	table = world_table(world);
	for (uint32_t n = 0; n < NODES; n++)
		node_start(world, n, table, NODE_REMEMBERS);
	ras_table_destroy(table);
	world_run(world, world_now(world) + 15 * WORLD_SEC);
	world->faults.begin_ns = world_now(world);
	return world;
}

static void fault(struct world *world, const char *text) {
	struct parse_error error;
	struct fault one;
	uint32_t count;

	if (faults_parse(text, NODES, &one, 1, &count, &error) != 0)
		fail_msg("%s: %s", text, error.text);
	one.at_ns += world_now(world) - world->faults.begin_ns;
	fault_add(world, &one);
}

static void run(struct world *world, uint64_t for_ns) {
	world_run(world, world_now(world) + for_ns);
	if (world->invariants.broken)
		fail_msg("%s", world->invariants.text);
}

static uint64_t start_of(const struct world *world, uint32_t node) {
	return ras_incarnation_start(ras_self_incarnation(world->nodes[node].ras));
}

static struct sock_addr address_told(const struct world *world, uint32_t by, uint32_t of) {
	struct ras_peer peer;

	assert_int_equal(
		ras_peer_find(world->nodes[by].ras, world->nodes[of].record->id, &peer), 0
	);
	return peer.record->address;
}

static void expect_one_view(struct world *world) {
	if (!world_await_one_view(world, world_now(world) + LONG_NS, 10 * WORLD_MS))
		fail_msg("no one view: %s", world->invariants.text);
	assert_int_equal(world_count_up(world), NODES);
	assert_int_equal(world->measure.false_dead, 0);
}

static void a_clone_starts_with_the_count_of_another(void **state) {
	struct world *world = make(NODES, true);

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		fault(world, "kill:6@0s+2s");
		run(world, 20 * WORLD_SEC);
	}
	assert_int_equal(start_of(world, OTHER), 4);
	assert_int_equal(start_of(world, VICTIM), 1);
	fault(world, "clone:4/6@0s+2s");
	run(world, 2 * WORLD_SEC + WORLD_MS);
	assert_int_equal(start_of(world, VICTIM), 5);
	assert_int_equal(world->nodes[VICTIM].directory->members.count, 0);
	expect_one_view(world);
	world_destroy(world);
}

static void a_clone_of_a_younger_one_is_told_its_own_count(void **state) {
	struct world *world = make(NODES, true);

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		fault(world, "kill:4@0s+2s");
		run(world, 20 * WORLD_SEC);
	}
	fault(world, "clone:4/6@0s+2s");
	run(world, 2 * WORLD_SEC + WORLD_MS);
	expect_one_view(world);
	assert_true(start_of(world, VICTIM) >= 5);
	assert_int_equal(start_of(world, OTHER), 1);
	world_destroy(world);
}

static void members_are_those_of_the_last_write(void **state) {
	struct world *world = make(NODES, true);

	(void)state;
	assert_int_equal(world->nodes[VICTIM].directory->members.count, NODES - 1);
	// Two members that it does not know yet. The list is written as it is at the moment of
	// the write.
	world->nodes[VICTIM].directory->members.count = 1;
	world->nodes[2].directory->members.count = 1;
	fault(world, "kill:4@0s+20s");
	run(world, WORLD_SEC);
	assert_int_equal(world->nodes[VICTIM].state, NODE_OFF);
	assert_int_equal(world->nodes[VICTIM].directory->members.count, 1);
	// A node that leaves saves its list once more; members that are gone stay in it.
	fault(world, "leave:3@0s");
	run(world, 2 * WORLD_SEC);
	assert_int_equal(world->nodes[2].state, NODE_OFF);
	assert_in_range(world->nodes[2].directory->members.count, NODES - 2, NODES - 1);
	run(world, 40 * WORLD_SEC);
	assert_int_equal(world->nodes[0].directory->members.count, NODES - 1);
	world_destroy(world);
}

static void a_stale_directory_has_the_members_of_before(void **state) {
	struct world *world = make(NODES, true);

	(void)state;
	fault(world, "leave:4@0s+1s");
	run(world, 20 * WORLD_SEC);
	assert_int_equal(world->nodes[VICTIM].directory->earlier.count, NODES - 1);
	world->nodes[VICTIM].directory->earlier.count = 2;
	fault(world, "stale:4@0s+1s");
	run(world, WORLD_SEC + WORLD_MS);
	assert_int_equal(world->nodes[VICTIM].directory->members.count, 2);
	expect_one_view(world);
	world_destroy(world);
}

static void a_lost_directory_has_nobody_in_it(void **state) {
	struct world *world = make(NODES, true);

	(void)state;
	fault(world, "forget:4@0s+1s");
	run(world, WORLD_SEC + WORLD_MS);
	assert_int_equal(world->nodes[VICTIM].directory->members.count, 0);
	expect_one_view(world);
	world_destroy(world);
}

static void a_wrong_address_is_told_until_it_is_mended(void **state) {
	struct world *world = make(NODES, false);
	struct sock_addr own = world->nodes[VICTIM].record->address;
	struct sock_addr others = world->nodes[OTHER].record->address;
	struct sock_addr told;

	(void)state;
	fault(world, "wrong:4/6@0s+20s");
	run(world, 10 * WORLD_SEC);
	told = address_told(world, VICTIM, VICTIM);
	assert_true(sock_addr_equal(&told, &others));
	assert_int_equal(world->nodes[OTHER].state, NODE_UP);
	told = address_told(world, 0, OTHER);
	assert_true(sock_addr_equal(&told, &others));
	run(world, 11 * WORLD_SEC);
	expect_one_view(world);
	told = address_told(world, 0, VICTIM);
	assert_true(sock_addr_equal(&told, &own));
	world_destroy(world);
}

static void a_wrong_address_may_be_nobodys(void **state) {
	struct world *world = make(NODES, false);
	struct sock_addr told;

	(void)state;
	fault(world, "wrong:4/4@0s+20s");
	run(world, 10 * WORLD_SEC);
	told = address_told(world, VICTIM, VICTIM);
	for (uint32_t n = 0; n < NODES; n++)
		assert_false(sock_addr_equal(&told, &world->nodes[n].record->address));
	run(world, 11 * WORLD_SEC);
	expect_one_view(world);
	world_destroy(world);
}

static void a_slow_process_stands_still_for_its_part_and_nobody_minds(void **state) {
	struct world *world = make(NODES, false);
	uint32_t still = 0;

	(void)state;
	fault(world, "lag:4/700@0s+60s");
	for (uint32_t n = 0; n < 600; n++) {
		run(world, 100 * WORLD_MS);
		still += world->nodes[VICTIM].state == NODE_FROZEN;
	}
	assert_in_range(still, 400, 440);
	run(world, 5 * WORLD_SEC);
	assert_int_equal(world->nodes[VICTIM].state, NODE_UP);
	assert_int_equal(world->nodes[VICTIM].start, 1);
	expect_one_view(world);
	world_destroy(world);
}

// Check the hosts of both sides in the network.
static void expect_island(const struct world *world, const uint32_t *inside, uint32_t count) {
	struct gap_sides sides = gaps_now(&world->faults.gaps);

	for (uint32_t n = 0; n < NODES; n++) {
		bool wanted = false;

		for (uint32_t m = 0; m < count; m++)
			wanted = wanted || inside[m] == n;
		assert_int_equal(world->net.hosts[n].island != 0, wanted);
		assert_int_equal(gap_side_has(&sides.island, n, NODES), wanted);
	}
}

static void an_island_begins_where_it_says_and_goes_round(void **state) {
	static const uint32_t last[] = {4, 5, 0};
	static const uint32_t first[] = {0, 1, 2};
	struct world *world = make(NODES, false);
	uint64_t begin_ns;

	(void)state;
	fault(world, "split:5/50@0s+4s");
	run(world, WORLD_SEC);
	begin_ns = gaps_now(&world->faults.gaps).at_ns;
	expect_island(world, last, 3);
	assert_false(net_reaches(&world->net, 0, 1));
	assert_true(net_reaches(&world->net, 0, 4));
	assert_int_equal(gaps_apart_since(&world->faults.gaps, 5, 3, world_now(world)), begin_ns);
	assert_int_equal(
		gaps_apart_since(&world->faults.gaps, 5, 0, world_now(world)), world_now(world)
	);
	run(world, 4 * WORLD_SEC);
	expect_island(world, NULL, 0);
	fault(world, "split/50@0s+4s");
	run(world, WORLD_SEC);
	expect_island(world, first, 3);
	// Partitioned in both periods, and together only for a moment.
	assert_int_equal(gaps_apart_since(&world->faults.gaps, 0, 3, world_now(world)), begin_ns);
	run(world, 4 * WORLD_SEC);
	expect_one_view(world);
	world_destroy(world);
}

static void loss_of_one_way_is_of_that_way(void **state) {
	struct world *world = make(NODES, false);

	(void)state;
	fault(world, "lossin:4/60@0s+10s");
	fault(world, "lossout:6/50@0s+10s");
	run(world, WORLD_SEC);
	assert_int_equal(world->net.hosts[VICTIM].loss_in_percent, 60);
	assert_int_equal(world->net.hosts[VICTIM].loss_out_percent, 0);
	assert_int_equal(world->net.hosts[OTHER].loss_in_percent, 0);
	assert_int_equal(world->net.hosts[OTHER].loss_out_percent, 50);
	run(world, 10 * WORLD_SEC);
	assert_int_equal(world->net.hosts[VICTIM].loss_in_percent, 0);
	assert_int_equal(world->net.hosts[OTHER].loss_out_percent, 0);
	expect_one_view(world);
	world_destroy(world);
}

static void one_way_between_two_is_of_these_two(void **state) {
	struct world *world = make(NODES, false);

	(void)state;
	fault(world, "oneway:4/6@0s+10s");
	run(world, WORLD_SEC);
	assert_false(net_reaches(&world->net, VICTIM, OTHER));
	assert_true(net_reaches(&world->net, OTHER, VICTIM));
	assert_true(net_reaches(&world->net, VICTIM, 0));
	run(world, 10 * WORLD_SEC);
	assert_true(net_reaches(&world->net, VICTIM, OTHER));
	expect_one_view(world);
	world_destroy(world);
}

static void all_seeds_are_gone_and_those_who_remember_meet(void **state) {
	struct world *world = make(NODES, true);

	(void)state;
	fault(world, "kill:1@0s");
	fault(world, "host:3@1s");
	fault(world, "kill:5@2s");
	fault(world, "kill:2@5s+1s");
	fault(world, "kill:4@5s+1s");
	fault(world, "kill:6@5s+1s");
	run(world, 8 * WORLD_SEC);
	assert_int_equal(world_count_up(world), NODES - 3);
	assert_true(world_await_one_view(world, world_now(world) + LONG_NS, 10 * WORLD_MS));
	world_destroy(world);
}

UNIT_GROUP(sim_effect) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clone_starts_with_the_count_of_another),
		cmocka_unit_test(a_clone_of_a_younger_one_is_told_its_own_count),
		cmocka_unit_test(members_are_those_of_the_last_write),
		cmocka_unit_test(a_stale_directory_has_the_members_of_before),
		cmocka_unit_test(a_lost_directory_has_nobody_in_it),
		cmocka_unit_test(a_wrong_address_is_told_until_it_is_mended),
		cmocka_unit_test(a_wrong_address_may_be_nobodys),
		cmocka_unit_test(a_slow_process_stands_still_for_its_part_and_nobody_minds),
		cmocka_unit_test(an_island_begins_where_it_says_and_goes_round),
		cmocka_unit_test(loss_of_one_way_is_of_that_way),
		cmocka_unit_test(one_way_between_two_is_of_these_two),
		cmocka_unit_test(all_seeds_are_gone_and_those_who_remember_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
