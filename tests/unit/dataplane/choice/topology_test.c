// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/choice/machine.h"

#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

struct way_case {
	const char *machine;
	const char *from;
	const char *to; // "": the path up to the host
	enum topology_class class;
	uint32_t pci_mbps;
	bool assumed;
};

static void expect_way(const struct way_case *expected) {
	struct topology *topology = machine_create(expected->machine);
	struct topology_path way;

	if (strncmp(expected->to, "node ", 5) == 0)
		topology_path_to_node(
			topology, expected->from, (uint32_t)(expected->to[5] - '0'), &way
		);
	else if (expected->to[0] == '\0')
		topology_path_to_host(topology, expected->from, &way);
	else
		topology_path_to_device(topology, expected->from, expected->to, &way);
	if (way.class != expected->class || way.pci_mbps != expected->pci_mbps ||
	    way.assumed != expected->assumed)
		fail_msg(
			"%s to %s: %s %u%s", expected->from, expected->to,
			topology_class_name(way.class), way.pci_mbps, way.assumed ? " assumed" : ""
		);
	topology_destroy(topology);
}

static void nearness_is_the_kind_of_bridge_in_common(void **state) {
	static const struct way_case cases[] = {
		{"eight", "0000:05:00.0", "0000:03:00.0", TOPOLOGY_SWITCH, 192000, false},
		{"eight", "0000:06:00.0", "0000:05:00.0", TOPOLOGY_SWITCH, 192000, false},
		{"eight", "0000:45:00.0", "0000:03:00.0", TOPOLOGY_HOST, 192000, false},
		{"eight", "0000:85:00.0", "0000:03:00.0", TOPOLOGY_FAR, 192000, false},
		{"eight", "0000:05:00.0", "0000:05:00.0", TOPOLOGY_SWITCH, 96000, true},
		{"eight", "0000:05:00.0", "0000:77:00.0", TOPOLOGY_UNKNOWN, 192000, false},
		{"eight", "0000:77:00.0", "0000:03:00.0", TOPOLOGY_UNKNOWN, 96000, true},
		{"eight", "0000:05:00.0", "node 0", TOPOLOGY_HOST, 192000, false},
		{"eight", "0000:05:00.0", "node 1", TOPOLOGY_FAR, 192000, false},
		{"eight", "0000:77:00.0", "node 1", TOPOLOGY_UNKNOWN, 96000, true},
		{"eight", "0000:05:00.0", "", TOPOLOGY_HOST, 192000, false},
		{"eight", "not an address", "", TOPOLOGY_UNKNOWN, 96000, true},
		{"cascade", "0000:07:00.0", "0000:06:00.0", TOPOLOGY_SWITCH, 384000, false},
		{"cascade", "0000:08:00.1", "0000:08:00.0", TOPOLOGY_SWITCH, 96000, true},
		{"cascade", "0000:03:00.0", "0000:06:00.0", TOPOLOGY_BRIDGES, 96000, false},
		{"cascade", "0000:07:00.0", "0000:03:00.0", TOPOLOGY_BRIDGES, 96000, false},
		{"cascade", "0000:03:00.0", "0000:0b:00.0", TOPOLOGY_BRIDGES, 384000, false},
		{"cascade", "0000:09:00.0", "0000:06:00.0", TOPOLOGY_HOST, 96000, false},
		{"cascade", "0000:21:00.0", "0000:06:00.0", TOPOLOGY_HOST, 96000, false},
		{"cascade", "0000:07:00.0", "0000:81:00.0", TOPOLOGY_FAR, 96000, false},
		{"cascade", "0000:09:00.0", "0000:81:00.0", TOPOLOGY_FAR, 192000, false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		expect_way(&cases[n]);
}

static void a_link_that_cannot_be_read_is_passed_over_or_assumed_if_there_is_no_other(void **state
) {
	static const struct way_case cases[] = {
		{"cascade", "0000:08:00.1", "0000:06:00.0", TOPOLOGY_SWITCH, 384000, false},
		{"cascade", "0000:08:00.1", "", TOPOLOGY_HOST, 96000, false},
		{"flat", "0000:00:04.0", "", TOPOLOGY_HOST, 96000, true},
		{"flat", "0000:00:04.0", "0000:00:05.0", TOPOLOGY_HOST, 96000, true},
		{"flat", "0000:00:07.0", "0000:00:05.0", TOPOLOGY_HOST, 24375, false},
		// The link of the target itself is not counted.
		{"flat", "0000:00:04.0", "0000:00:07.0", TOPOLOGY_HOST, 96000, true},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		expect_way(&cases[n]);
}

static void a_device_of_which_nobody_knows_the_node_is_far_from_each(void **state) {
	static const struct way_case cases[] = {
		{"unplaced", "0001:00:00.0", "node 0", TOPOLOGY_FAR, 96000, false},
		{"unplaced", "0001:00:00.0", "node 1", TOPOLOGY_FAR, 96000, false},
		{"unplaced", "0001:00:00.0", "0001:01:00.0", TOPOLOGY_HOST, 96000, false},
		{"unplaced", "0001:00:00.0", "7ffe:01:00.0", TOPOLOGY_FAR, 96000, false},
		{"unplaced", "0000:00:00.0", "7ffe:01:00.0", TOPOLOGY_UNKNOWN, 96000, true},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		expect_way(&cases[n]);
}

static void a_device_at_a_socket_is_near_all_of_its_nodes(void **state) {
	static const struct way_case cases[] = {
		{"nodes_in_pairs", "0000:00:00.0", "node 0", TOPOLOGY_HOST, 96000, false},
		{"nodes_in_pairs", "0000:00:00.0", "node 1", TOPOLOGY_FAR, 96000, false},
		{"nodes_in_pairs", "0000:20:00.0", "node 0", TOPOLOGY_HOST, 96000, false},
		{"nodes_in_pairs", "0000:20:00.0", "node 1", TOPOLOGY_HOST, 96000, false},
		{"nodes_in_pairs", "0000:20:00.0", "node 2", TOPOLOGY_FAR, 96000, false},
		{"nodes_in_pairs", "0000:80:00.0", "node 3", TOPOLOGY_HOST, 96000, false},
		{"nodes_in_pairs", "0000:20:00.0", "0000:00:00.0", TOPOLOGY_HOST, 96000, false},
		{"nodes_in_pairs", "0000:20:00.0", "0000:80:00.0", TOPOLOGY_FAR, 96000, false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		expect_way(&cases[n]);
}

static void where_this_process_must_not_run_is_a_place_all_the_same(void **state) {
	static const struct way_case cases[] = {
		{"barred", "0000:80:00.0", "node 0", TOPOLOGY_FAR, 96000, false},
		{"barred", "0000:80:00.0", "node 1", TOPOLOGY_HOST, 96000, false},
		{"barred", "0000:00:00.0", "node 1", TOPOLOGY_FAR, 96000, false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		expect_way(&cases[n]);
}

static void memory_without_processors_is_of_the_only_place_or_of_none(void **state) {
	static const struct way_case cases[] = {
		{"memory", "0000:00:00.0", "node 0", TOPOLOGY_HOST, 96000, false},
		{"memory", "0000:00:00.0", "node 1", TOPOLOGY_HOST, 96000, false},
		{"far_memory", "0000:00:00.0", "node 0", TOPOLOGY_HOST, 96000, false},
		{"far_memory", "0000:00:00.0", "node 1", TOPOLOGY_FAR, 96000, false},
		{"far_memory", "0000:00:00.0", "node 2", TOPOLOGY_FAR, 96000, false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		expect_way(&cases[n]);
}

static void the_node_of_a_device_is_that_of_its_host_bridge(void **state) {
	static const struct {
		const char *machine, *pci;
		int node;
	} cases[] = {
		{"eight", "0000:05:00.0", 0},
		{"eight", "0000:c6:00.0", 1},
		{"eight", "0000:77:00.0", -1},
		{"eight", "", -1},
		{"flat", "0000:00:04.0", 0},
		{"unplaced", "0001:00:00.0", -1},
		{"unplaced", "7ffe:00:00.0", -1},
		{"nodes_in_pairs", "0000:00:00.0", 0},
		{"nodes_in_pairs", "0000:20:00.0", -1}, // below a package of two nodes
		{"barred", "0000:80:00.0", 1},
		{"memory", "0000:00:00.0", 0},
		{"far_memory", "0000:00:00.0", 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct topology *topology = machine_create(cases[n].machine);

		assert_int_equal(topology_pci_node(topology, cases[n].pci), cases[n].node);
		topology_destroy(topology);
	}
}

static void the_processors_near_a_device_are_those_of_its_place(void **state) {
	static const struct {
		const char *machine, *pci, *cpus;
	} cases[] = {
		{"eight", "0000:05:00.0", "0"},
		{"eight", "0000:c6:00.0", "1"},
		{"nodes_in_pairs", "0000:20:00.0", "0-1"},
		{"nodes_in_pairs", "0000:80:00.0", "2-3"},
		{"barred", "0000:80:00.0", "1"},
		{"flat", "0000:00:04.0", "0"},
		{"eight", "0000:77:00.0", NULL},
		{"unplaced", "0001:00:00.0", NULL},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct topology *topology = machine_create(cases[n].machine);
		struct cpu_set cpus = {{0}};
		char text[32];
		int err = topology_near_cpus(topology, cases[n].pci, &cpus);

		assert_int_equal(err, cases[n].cpus == NULL ? -ENOENT : 0);
		cpu_set_format(&cpus, text, sizeof(text));
		assert_string_equal(text, cases[n].cpus == NULL ? "" : cases[n].cpus);
		topology_destroy(topology);
	}
}

static void the_nodes_are_those_of_the_machine(void **state) {
	static const char *const cases[][3] = {
		// description, nodes, a node that does not exist
		{"node:1 pu:1", "0", "1"},
		{"node:2 pu:4", "0-1", "2"},
		{"pack:2 node:4 pu:2", "0-7", "8"},
		{"pu:3", "0", "1"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		char text[TOPOLOGY_NODES_TEXT_BYTES];
		struct topology *topology;

		assert_int_equal(topology_create_synthetic(cases[n][0], &topology), 0);
		topology_nodes(topology, text);
		assert_string_equal(text, cases[n][1]);
		assert_true(topology_has_node(topology, 0));
		assert_false(topology_has_node(topology, (uint32_t)(cases[n][2][0] - '0')));
		topology_destroy(topology);
	}
}

static void what_hwloc_does_not_understand_is_refused(void **state) {
	static const char *const xml[] = {"", "x", "<topology", "<?xml version=\"1.0\"?>\n<a/>\n"};
	static const char *const descriptions[] = {"", "x", "node:0 pu:0", "pu:-1"};
	struct topology *topology = NULL;

	(void)state;
	for (size_t n = 0; n < sizeof(xml) / sizeof(xml[0]); n++)
		assert_int_equal(topology_create_xml(xml[n], &topology), -EINVAL);
	for (size_t n = 0; n < sizeof(descriptions) / sizeof(descriptions[0]); n++)
		assert_int_equal(topology_create_synthetic(descriptions[n], &topology), -EINVAL);
	assert_null(topology);
	assert_null(topology_destroy(NULL));
}

static void this_machine_has_a_node(void **state) {
	char text[TOPOLOGY_NODES_TEXT_BYTES];
	struct topology *topology;

	(void)state;
	assert_int_equal(topology_create(&topology), 0);
	topology_nodes(topology, text);
	assert_string_not_equal(text, "");
	topology_destroy(topology);
}

UNIT_GROUP(topology) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearness_is_the_kind_of_bridge_in_common),
		cmocka_unit_test(
			a_link_that_cannot_be_read_is_passed_over_or_assumed_if_there_is_no_other
		),
		cmocka_unit_test(a_device_of_which_nobody_knows_the_node_is_far_from_each),
		cmocka_unit_test(a_device_at_a_socket_is_near_all_of_its_nodes),
		cmocka_unit_test(where_this_process_must_not_run_is_a_place_all_the_same),
		cmocka_unit_test(memory_without_processors_is_of_the_only_place_or_of_none),
		cmocka_unit_test(the_node_of_a_device_is_that_of_its_host_bridge),
		cmocka_unit_test(the_processors_near_a_device_are_those_of_its_place),
		cmocka_unit_test(the_nodes_are_those_of_the_machine),
		cmocka_unit_test(what_hwloc_does_not_understand_is_refused),
		cmocka_unit_test(this_machine_has_a_node),
	};

	return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
