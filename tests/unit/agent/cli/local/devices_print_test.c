// SPDX-License-Identifier: BSD-3-Clause
// Tests of the output of `tocsin devices`.
#include "dataplane/choice/scene.h"
#include "local/devices.h"

#include <support/cmocka.h>

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct print_case {
	const struct scene *scene;
	const char *target;
	const struct device_gpus *gpus;
	const char *text;
};

// Return the output; the caller frees it.
static char *print(const struct print_case *asked, bool explain, bool json) {
	struct topology *topology = machine_create(asked->scene->machine);
	struct devices devices = {.topology = topology, .explain = explain};
	struct device_choice *choice;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(scene_choose(asked->scene, asked->target, asked->gpus, NULL, &choice), 0);
	devices.choice = choice;
	if (json)
		assert_int_equal(devices_print_json(&devices, out), 0);
	else
		devices_print(&devices, out);
	assert_int_equal(fclose(out), 0);
	device_choice_destroy(choice);
	topology_destroy(topology);
	return text;
}

static void expect(const struct print_case *expected, bool explain) {
	char *text = print(expected, explain, false);

	assert_string_equal(text, expected->text);
	free(text);
}

static const char eight_explained[] =
	"  DEVICE  KIND       PORT STATE           Mb/s   MTU NUMA PCI\n"
	"* mlx5_3  RoCE          1 active        200000  4096    0 0000:45:00.0\n"
	"    GID 3, RoCE v2, 10.0.0.4; responder: hardware\n"
	"  mlx5_4  RoCE          1 active        100000  4096    0 0000:46:00.0\n"
	"    GID 3, RoCE v2, 10.0.0.5; responder: hardware\n"
	"  mlx5_2  RoCE          1 active        200000  4096    0 0000:06:00.0\n"
	"    GID 3, RoCE v2, 10.0.0.3; responder: hardware\n"
	"  mlx5_10 RoCE          1 active        200000  4096    0 0000:05:00.0\n"
	"    GID 3, RoCE v2, 10.0.0.2; responder: hardware\n"
	"  mlx5_9  RoCE          1 active        200000  4096    1 0000:c6:00.0\n"
	"    GID 3, RoCE v2, 10.0.0.1; responder: hardware\n"
	"  mlx5_5  RoCE          1 active        100000  4096    1 0000:85:00.0\n"
	"    GID 3, RoCE v2, 10.0.0.6; responder: hardware\n"
	"  mlx5_6  RoCE          1 down          200000  4096    1 0000:86:00.0\n"
	"    not usable: port 1 is down\n"
	"  mlx5_7  vendor        1 active        200000  4096    1 0000:c5:00.0\n"
	"    not usable: it has no RC\n"
	"\n"
	"Step by step, for cuda:1 at 0000:44:00.0\n"
	"  1. may be taken  6 of 8\n"
	"  2. the nearest   2 of 6: same PCI switch\n"
	"  3. the fastest   1 of 2: 192000 Mb/s\n"
	"\n"
	"  DEVICE  VERDICT     PLACE                         PCIe Mb/s path Mb/s\n"
	"* mlx5_3  best        same PCI switch                  192000    192000\n"
	"  mlx5_4  slower      same PCI switch                  192000    100000\n"
	"  mlx5_2  farther     same host bridge or NUMA node    192000    192000\n"
	"  mlx5_10 farther     same host bridge or NUMA node    192000    192000\n"
	"  mlx5_9  farther     another NUMA node                192000    192000\n"
	"  mlx5_5  farther     another NUMA node                192000    100000\n"
	"  mlx5_6  awaits-port another NUMA node                192000    192000\n"
	"  mlx5_7  unusable    another NUMA node                192000    192000\n"
	"\n"
	"For cuda:1: mlx5_3, by bandwidth: 192000 Mb/s; next is mlx5_4 with 100000 Mb/s\n";

static const char soft_roce_listed[] =
	"  DEVICE KIND       PORT STATE           Mb/s   MTU NUMA PCI\n"
	"* rxe0   RoCE          1 active         10000  4096    - -\n"
	"    GID 3, RoCE v2, 10.0.0.2; responder: kernel\n"
	"* rxe1   RoCE          1 active         10000  4096    - -\n"
	"    GID 3, RoCE v2, 10.0.0.1; responder: kernel\n"
	"  rxe2   RoCE          1 active             -  4096    - -\n"
	"    GID 3, RoCE v2, 10.0.0.3; responder: kernel\n"
	"  rxe3   RoCE          1 down           40000  4096    - -\n"
	"    not usable: port 1 is down\n"
	"  soft0  RoCE          1 active        100000  4096    - -\n"
	"    GID 3, RoCE v2, 10.0.0.5; responder: in-process\n"
	"\n"
	"For auto: rxe0, rxe1, equal in location and bandwidth, by bandwidth: 10000 Mb/s;\n"
	"          next is rxe2, whose bandwidth is unknown\n";

static const char no_rc_explained[] =
	"  DEVICE KIND       PORT STATE           Mb/s   MTU NUMA PCI\n"
	"* rxe0   RoCE          1 down               -  4096    - -\n"
	"    not usable: port 1 is down\n"
	"  efa_0  vendor        1 active        100000  4096    0 0000:05:00.0\n"
	"    not usable: it has no RC\n"
	"\n"
	"Step by step, for nic:rxe0\n"
	"  1. may be taken  1 of 2\n"
	"  2. the nearest   1 of 1: not in the PCI tree\n"
	"  3. the fastest   1 of 1: speed not known\n"
	"\n"
	"  DEVICE VERDICT     PLACE                         PCIe Mb/s path Mb/s\n"
	"* rxe0   best        not in the PCI tree                   -         -\n"
	"  efa_0  not-asked   in the PCI tree                  192000    100000\n"
	"\n"
	"For nic:rxe0: rxe0, by its name, although port 1 is down\n";

static const char nothing[] =
	"For auto: no device: this machine has no RDMA device\n"
	"Agents take the software device then, and tocsin soft-run gives it to programs.\n";

static const char soft_wanted[] =
	"For soft: the software device, which each agent creates for itself\n"
	"Programs get one from tocsin soft-run.\n";

static void the_table_has_every_device_its_facts_and_what_was_chosen(void **state) {
	static const struct print_case cases[] = {
		{&scene_soft_roce, "auto", NULL, soft_roce_listed},
		{&scene_none, "auto", NULL, nothing},
		{&scene_none, "soft", NULL, soft_wanted},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		expect(&cases[n], false);
}

static void an_explanation_goes_step_by_step_and_then_device_by_device(void **state) {
	static const struct print_case cases[] = {
		{&scene_eight, "cuda:1", &scene_gpus, eight_explained},
		{&scene_no_rc, "nic:rxe0", NULL, no_rc_explained},
		{&scene_none, "auto", NULL, nothing},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		expect(&cases[n], true);
}

static void no_line_is_longer_than_80_columns(void **state) {
	struct device_facts facts[] = {
		{.name = "a-name-that-has-31-bytes-in-all", .pci = "10000:00:00.0"},
		{.name = "another-name-that-has-31-bytes.", .pci = "10001:00:00.0"}};
	struct topology *topology = machine_create("flat");
	struct device_query query = {
		.topology = topology,
		.target = {DEVICE_TARGET_NIC, 0, "a-name-that-has-31-bytes-in-all"},
		.facts = facts,
		.count = 2};
	struct devices devices = {.topology = topology, .explain = true};
	struct device_choice *choice;
	char *text = NULL, *rest = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	for (size_t n = 0; n < sizeof(facts[0].reason) - 1; n++)
		facts[0].reason[n] = n % 9 == 8 ? ' ' : 'r';
	for (size_t n = 0; n < 2; n++) {
		facts[n].awaits_port = n == 0;
		facts[n].usable = n == 1;
		facts[n].port = (struct device_port
		){.number = 255,
		  .state = (enum ibv_port_state)99,
		  .lid = 65535,
		  .active_mtu = 4096,
		  .speed_mbps = 3200000,
		  .gid_type = IBV_GID_TYPE_ROCE_V2,
		  .gid_index = 4095};
		memset(&facts[n].port.gid, 0xfd, sizeof(facts[n].port.gid));
		memcpy(facts[n].netdev, "fifteen-of-them", 16);
	}
	assert_int_equal(device_choice_create(&query, NULL, &choice), 0);
	devices.choice = choice;
	devices_print(&devices, out);
	assert_int_equal(fclose(out), 0);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		assert_in_range(strlen(line), 1, 80);
	device_choice_destroy(choice);
	topology_destroy(topology);
	free(text);
}

static json_t *print_json(const struct print_case *asked, bool explain) {
	char *text = print(asked, explain, true);
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(object);
	free(text);
	return object;
}

static void expect_json(const json_t *found, const char *expected) {
	json_t *object = json_loads(expected, JSON_DECODE_ANY, NULL);

	assert_non_null(object);
	if (!json_equal(found, object))
		fail_msg("%s is not %s", json_dumps(found, JSON_ENCODE_ANY), expected);
	json_decref(object);
}

static void json_says_the_same(void **state) {
	static const struct print_case asked = {&scene_no_rc, "cuda:0", &scene_only_gpu, NULL};
	json_t *object = print_json(&asked, true);

	(void)state;
	expect_json(
		object, "{\"for\": \"cuda:0\", \"for_pci\": \"0000:03:00.0\", \"chosen\": [], "
			"\"rails\": [], \"rails_waiting\": [], \"agents_take\": null, "
			"\"why\": \"no device: none of the 2 devices can be used\","
			"\"steps\": {\"devices\": 2, \"eligible\": 0, \"nearest\": 0, \"best\": 0},"
			"\"devices\": [{\"name\": \"efa_0\", \"kind\": \"vendor\", "
			"\"transport\": \"vendor\", \"port\": 1, \"state\": \"active\", "
			"\"link\": \"Ethernet\", \"speed_mbps\": 100000, \"mtu_bytes\": 4096, "
			"\"lid\": null, \"gid\": {\"index\": 3, \"type\": \"RoCE v2\", "
			"\"address\": \"10.0.0.1\"}, \"netdev\": null, "
			"\"pci\": \"0000:05:00.0\", \"numa_node\": 0, "
			"\"responder\": \"hardware\", \"usable\": false, "
			"\"reason\": \"it has no RC\", \"chosen\": false, "
			"\"verdict\": \"unusable\", \"class\": \"switch\", "
			"\"pci_mbps\": 192000, \"pci_assumed\": false, "
			"\"bandwidth_mbps\": 100000, "
			"\"why\": \"not usable: it has no RC\"},"
			"{\"name\": \"rxe0\", \"kind\": \"RoCE\", \"transport\": \"IB\", "
			"\"port\": 1, \"state\": \"down\", \"link\": \"Ethernet\", "
			"\"speed_mbps\": null, \"mtu_bytes\": 4096, \"lid\": null, "
			"\"gid\": {\"index\": 3, \"type\": \"RoCE v2\", "
			"\"address\": \"10.0.0.2\"}, \"netdev\": null, \"pci\": null, "
			"\"numa_node\": null, \"responder\": \"kernel\", "
			"\"usable\": false, \"reason\": \"port 1 is down\", "
			"\"chosen\": false, \"verdict\": \"awaits-port\", "
			"\"class\": \"unknown\", \"pci_mbps\": null, "
			"\"pci_assumed\": false, \"bandwidth_mbps\": null, "
			"\"why\": \"not usable: port 1 is down\"}]}"
	);
	json_decref(object);
}

static void json_of_no_device_is_an_empty_list(void **state) {
	static const struct print_case asked = {&scene_none, "auto", NULL, NULL};
	json_t *object = print_json(&asked, false);

	(void)state;
	expect_json(
		object, "{\"for\": \"auto\", \"for_pci\": null, \"chosen\": [], \"devices\": [], "
			"\"rails\": [], \"rails_waiting\": [], \"agents_take\": \"soft0\", "
			"\"why\": \"no device: this machine has no RDMA device\"}"
	);
	json_decref(object);
}

static void json_names_the_device_that_an_agent_takes(void **state) {
	static const struct {
		struct print_case asked;
		const char *taken;
	} cases[] = {
		{{&scene_eight, "auto", NULL, NULL}, "\"mlx5_2\""},
		{{&scene_mixed, "nic:rxe0", NULL, NULL}, "\"rxe0\""},
		{{&scene_none, "auto", NULL, NULL}, "\"soft0\""},
		{{&scene_lone, "auto", NULL, NULL}, "\"soft0\""},
		{{&scene_mixed, "soft", NULL, NULL}, "\"soft0\""},
		// The port of rxe0 may come up again, so no software device takes its place.
		{{&scene_no_rc, "auto", NULL, NULL}, "null"},
		{{&scene_none, "cpu:0", NULL, NULL}, "null"},
		{{&scene_mixed, "none", NULL, NULL}, "null"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		json_t *object = print_json(&cases[n].asked, false);

		expect_json(json_object_get(object, "agents_take"), cases[n].taken);
		json_decref(object);
	}
}

static void a_reason_that_is_not_utf8_does_not_spoil_json(void **state) {
	struct device_facts facts = {.name = "a\xff", .reason = "\xc3(", .numa_node = -1};
	struct topology *topology = machine_create("flat");
	struct device_query query = {.topology = topology, .facts = &facts, .count = 1};
	struct devices devices = {.topology = topology, .explain = true};
	struct device_choice *choice;
	char *text = NULL;
	json_t *object, *device;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	assert_int_equal(device_choice_create(&query, NULL, &choice), 0);
	devices.choice = choice;
	assert_int_equal(devices_print_json(&devices, out), 0);
	assert_int_equal(fclose(out), 0);
	object = json_loads(text, 0, NULL);
	assert_non_null(object);
	device = json_array_get(json_object_get(object, "devices"), 0);
	expect_json(json_object_get(device, "name"), "\"\\\"a\\\\xff\\\"\"");
	expect_json(json_object_get(device, "state"), "null");
	json_decref(object);
	device_choice_destroy(choice);
	topology_destroy(topology);
	free(text);
}

UNIT_GROUP(devices_print) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_has_every_device_its_facts_and_what_was_chosen),
		cmocka_unit_test(an_explanation_goes_step_by_step_and_then_device_by_device),
		cmocka_unit_test(no_line_is_longer_than_80_columns),
		cmocka_unit_test(json_says_the_same),
		cmocka_unit_test(json_of_no_device_is_an_empty_list),
		cmocka_unit_test(json_names_the_device_that_an_agent_takes),
		cmocka_unit_test(a_reason_that_is_not_utf8_does_not_spoil_json),
	};

	return cmocka_run_group_tests_name("devices_print", tests, NULL, NULL);
}
