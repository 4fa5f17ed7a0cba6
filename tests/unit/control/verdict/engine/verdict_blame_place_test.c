// SPDX-License-Identifier: BSD-3-Clause
// Blame by location: a port, a node, a host of several agents, or a leaf.
#include "control/verdict/engine/verdict_blame.h"

#include <stdio.h>
#include <string.h>

static int see_port(
	struct bed *bed,
	uint32_t observer,
	uint32_t subject,
	const char *port,
	enum observation_kind kind
) {
	struct observation observation = bed_observation(observer, subject, kind);

	observation.reach = VERDICT_REACH_ANSWERS;
	memcpy(observation.peer_device, port, strlen(port) + 1);
	return verdict_observation(bed->engine, bed->now_ns, &observation);
}

static void one_port_of_two_is_named(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t n = 1; n <= 3; n++) {
		assert_int_equal(see_port(bed, n, 5, "mlx5_0", OBSERVATION_GOOD), 0);
		assert_int_equal(see_port(bed, n, 5, "mlx5_1", OBSERVATION_SILENT), 0);
	}
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PortUnread");
	assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_PORT);
	assert_string_equal(path_of(bed, 1, 5).what, "mlx5_1");
	assert_non_null(strstr(bed_view(bed, 5).evidence, "mlx5_1"));
	bed_destroy(bed);
}

// Real nodes have eight ports at each end. All their paths are kept, in any order of arrival, and
// one observer's many paths replace no other's.
static void one_port_of_eight_is_named_for_as_long_as_it_is_bad(void **state) {
	struct bed *bed = bed_create(AGENTS);
	uint32_t random = 7;

	(void)state;
	for (uint32_t n = 0; n < 60 * 40; n++) {
		char port[VERDICT_DEVICE_MAX + 1];
		uint32_t of;

		random = random * 1103515245 + 12345;
		of = random >> 16;
		snprintf(port, sizeof(port), "mlx5_%u", of % 8);
		(void)see_port(
			bed, 1 + of / 8 % 5, 10, port,
			of % 8 == 3 ? OBSERVATION_SILENT : OBSERVATION_GOOD
		);
		bed_pass(bed, SEC / 40);
		if (n > 20 * 40)
			bed_expect(bed, 10, VERDICT_FABRIC_DOWN, "PortUnread");
	}
	bed_destroy(bed);
}

static void one_with_many_paths_pushes_nobody_out(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t second = 0; second < 60; second++) {
		if (second % 10 == 0) {
			assert_int_equal(see_port(bed, 1, 5, "mlx5_0", OBSERVATION_SILENT), 0);
			assert_int_equal(see_port(bed, 2, 5, "mlx5_0", OBSERVATION_SILENT), 0);
		}
		for (uint32_t n = 0; n < 2 * VERDICT_SUBJECT_OBSERVATIONS_MAX; n++) {
			char port[VERDICT_DEVICE_MAX + 1];

			snprintf(port, sizeof(port), "port%u", n);
			(void)see_port(bed, 3, 5, port, OBSERVATION_SILENT);
		}
		bed_pass(bed, SEC);
		if (second > 1)
			assert_int_equal(bed_view(bed, 5).observer_count, 3);
	}
	bed_destroy(bed);
}

static void an_observer_whose_own_port_is_bad_blames_nobody(void **state) {
	struct bed *bed = bed_create(AGENTS);
	struct observation observation;

	(void)state;
	for (uint32_t observer = 1; observer <= 2; observer++) {
		for (uint32_t subject = 4; subject <= 7; subject++) {
			observation = bed_observation(observer, subject, OBSERVATION_SILENT);
			observation.own_good = false;
			observation.reach = VERDICT_REACH_ANSWERS;
			assert_int_equal(
				verdict_observation(bed->engine, bed->now_ns, &observation), 0
			);
		}
	}
	settle(bed);
	expect_all_well(bed);
	assert_int_equal(path_of(bed, 1, 4).blame, PATH_BLAME_PORT);
	assert_int_equal(path_of(bed, 1, 4).node, bed_id(1));
	assert_string_equal(path_of(bed, 1, 4).what, "dev0");
	bed_destroy(bed);
}

static void a_node_that_says_its_port_is_down_explains_what_it_does_not_see(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t observer = 1; observer <= 2; observer++) {
		bed_see(bed, observer, 5, OBSERVATION_SILENT);
		bed_see(bed, observer, 6, OBSERVATION_SILENT);
	}
	assert_int_equal(bed_say(bed, 1, VERDICT_FABRIC_DOWN, "PortDown"), 0);
	assert_int_equal(bed_say(bed, 2, VERDICT_DEVICE_STUCK, "DeviceStuck"), 0);
	settle(bed);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_expect(bed, 6, VERDICT_HEALTHY, "None");
	bed_expect(bed, 1, VERDICT_FABRIC_DOWN, "PortDown");
	bed_expect(bed, 2, VERDICT_DEVICE_STUCK, "DeviceStuck");
	assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_PORT);
	bed_destroy(bed);
}

static void two_agents_of_one_host_are_one_pair_of_eyes(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_place(bed, 1, "shared", "");
	bed_place(bed, 2, "shared", "");
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	settle(bed);
	expect_all_well(bed);
	bed_see(bed, 3, 5, OBSERVATION_SILENT);
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// With only two hosts no other observer exists. But if both agents of one host cannot read a
// peer, that host's own cable may be dead.
static void observers_of_one_host_drain_nobody_on_the_other(void **state) {
	struct bed *bed = bed_create(4);

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		bed_place(bed, n, "near", "");
	bed_place(bed, 3, "far", "");
	bed_see(bed, 1, 3, OBSERVATION_SILENT);
	bed_see(bed, 2, 3, OBSERVATION_SILENT);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 3, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 3).advice, VERDICT_ADVICE_WARN);
	bed_destroy(bed);
}

static void where_all_live_on_one_host_they_are_two(void **state) {
	struct bed *bed = bed_create(4);

	(void)state;
	for (uint32_t n = 0; n < 4; n++)
		bed_place(bed, n, "laptop", "");
	bed_see(bed, 1, 3, OBSERVATION_SILENT);
	bed_see(bed, 2, 3, OBSERVATION_SILENT);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 3, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 3).advice, VERDICT_ADVICE_DRAIN);
	bed_destroy(bed);
}

static void a_bad_host_of_two_agents_is_named(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_place(bed, 5, "twin", "");
	bed_place(bed, 6, "twin", "");
	for (uint32_t n = 1; n <= 3; n++) {
		bed_see(bed, n, 5, OBSERVATION_SILENT);
		bed_see(bed, n, 6, OBSERVATION_SILENT);
	}
	// Both are on one host, so they read each other without crossing the fabric.
	bed_see(bed, 5, 6, OBSERVATION_GOOD);
	bed_see(bed, 6, 5, OBSERVATION_GOOD);
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_expect(bed, 6, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_HOST);
	assert_string_equal(path_of(bed, 1, 5).what, "twin");
	bed_destroy(bed);
}

static void one_bad_agent_of_a_host_is_a_node(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_place(bed, 5, "twin", "");
	bed_place(bed, 6, "twin", "");
	for (uint32_t n = 1; n <= 3; n++) {
		bed_see(bed, n, 5, OBSERVATION_SILENT);
		bed_see(bed, n, 6, OBSERVATION_GOOD);
	}
	settle(bed);
	bed_expect(bed, 6, VERDICT_HEALTHY, "None");
	assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_NODE);
	bed_destroy(bed);
}

static void place_leaves(struct bed *bed) {
	for (uint32_t n = 0; n < AGENTS; n++) {
		const char host[] = {'h', (char)('a' + n), '\0'};

		assert_int_equal(bed_place(bed, n, host, n < 6 ? "leaf1" : "leaf2"), 0);
	}
}

static void a_bad_leaf_is_named_and_its_nodes_are_read_within(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	place_leaves(bed);
	for (uint32_t n = 6; n < AGENTS; n++) {
		bed_see(bed, n - 6, n, OBSERVATION_DEGRADED);
		bed_see(bed, n, n - 6, OBSERVATION_DEGRADED);
		bed_see(bed, n == 6 ? 11 : n - 1, n, OBSERVATION_GOOD);
	}
	settle(bed);
	expect_all_well(bed);
	assert_int_equal(path_of(bed, 1, 7).blame, PATH_BLAME_LEAF);
	bed_destroy(bed);
}

static void a_topology_file_that_contradicts_what_is_seen_names_no_leaf(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	place_leaves(bed);
	bed_see(bed, 0, 6, OBSERVATION_DEGRADED);
	bed_see(bed, 1, 7, OBSERVATION_DEGRADED);
	bed_see(bed, 2, 8, OBSERVATION_GOOD);
	bed_see(bed, 3, 6, OBSERVATION_GOOD);
	settle(bed);
	expect_all_well(bed);
	assert_int_equal(path_of(bed, 0, 6).blame, PATH_BLAME_PATH);
	bed_destroy(bed);
}

UNIT_GROUP(verdict_blame_place) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_port_of_two_is_named),
		cmocka_unit_test(one_port_of_eight_is_named_for_as_long_as_it_is_bad),
		cmocka_unit_test(one_with_many_paths_pushes_nobody_out),
		cmocka_unit_test(an_observer_whose_own_port_is_bad_blames_nobody),
		cmocka_unit_test(a_node_that_says_its_port_is_down_explains_what_it_does_not_see),
		cmocka_unit_test(two_agents_of_one_host_are_one_pair_of_eyes),
		cmocka_unit_test(observers_of_one_host_drain_nobody_on_the_other),
		cmocka_unit_test(where_all_live_on_one_host_they_are_two),
		cmocka_unit_test(a_bad_host_of_two_agents_is_named),
		cmocka_unit_test(one_bad_agent_of_a_host_is_a_node),
		cmocka_unit_test(a_bad_leaf_is_named_and_its_nodes_are_read_within),
		cmocka_unit_test(a_topology_file_that_contradicts_what_is_seen_names_no_leaf),
	};

	return cmocka_run_group_tests_name("verdict_blame_place", tests, NULL, NULL);
}
