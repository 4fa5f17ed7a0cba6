// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/choice/scene.h"

#include <support/cmocka.h>

#include <stdio.h>

struct say_case {
	const struct scene *scene;
	const char *target;
	const struct device_gpus *gpus;
	const char *text;
};

static void the_outcome_is_one_sentence(void **state) {
	static const struct say_case cases[] = {
		{&scene_eight, "cuda:3", &scene_gpus,
		 "mlx5_2, mlx5_10, equal in location and bandwidth, by location: same PCI "
		 "switch; next "
		 "is mlx5_3: same host bridge or NUMA node"},
		{&scene_eight, "cuda:1", &scene_gpus,
		 "mlx5_3, by bandwidth: 192000 Mb/s; next is mlx5_4 with 100000 Mb/s"},
		{&scene_eight, "auto", NULL,
		 "mlx5_2, mlx5_3, mlx5_9, mlx5_10, equal in location and bandwidth, by bandwidth: "
		 "192000 Mb/s; next is mlx5_4 with 100000 Mb/s"},
		{&scene_mixed, "auto", NULL,
		 "mlx4_0, by location: in the PCI tree; next is rxe0: not in the PCI tree"},
		{&scene_mixed, "nic:rxe0", NULL, "rxe0, by its name"},
		{&scene_no_rc, "nic:rxe0", NULL, "rxe0, by its name, although port 1 is down"},
		{&scene_no_rc, "nic:efa_0", NULL, "no device: efa_0 is not usable: it has no RC"},
		{&scene_no_rc, "auto", NULL, "no device: none of the 2 devices can be used"},
		{&scene_lone, "auto", NULL, "no device: efa_0 is not usable: it has no RC"},
		{&scene_soft_roce, "auto", NULL,
		 "rxe0, rxe1, equal in location and bandwidth, by bandwidth: 10000 Mb/s; next is "
		 "rxe2, whose bandwidth is unknown"},
		{&scene_soft_roce, "soft", NULL, "soft0, the only usable device"},
		{&scene_mixed, "soft", NULL,
		 "the software device, which each agent creates for itself"},
		{&scene_mixed, "none", NULL, "no device: the configuration requests none"},
		{&scene_none, "auto", NULL, "no device: this machine has no RDMA device"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct device_choice *choice;
		char text[DEVICE_CHOICE_TEXT_BYTES];

		assert_int_equal(
			scene_choose(cases[n].scene, cases[n].target, cases[n].gpus, NULL, &choice),
			0
		);
		device_choice_say(choice, text);
		assert_string_equal(text, cases[n].text);
		device_choice_destroy(choice);
	}
}

static void each_device_has_its_reason(void **state) {
	static const char *const reasons[] = {
		"mlx5_3: same PCI switch, 192000 Mb/s by PCIe",
		"mlx5_4: slower: same PCI switch, 100000 Mb/s by its port",
		"mlx5_2: farther: same host bridge or NUMA node, 192000 Mb/s by PCIe",
		"mlx5_10: farther: same host bridge or NUMA node, 192000 Mb/s by PCIe",
		"mlx5_9: farther: another NUMA node, 192000 Mb/s by PCIe",
		"mlx5_5: farther: another NUMA node, 100000 Mb/s by its port",
		"mlx5_6: not usable: port 1 is down",
		"mlx5_7: not usable: it has no RC",
	};
	struct device_choice *choice;

	(void)state;
	assert_int_equal(scene_choose(&scene_eight, "cuda:1", &scene_gpus, NULL, &choice), 0);
	assert_int_equal(choice->count, 8);
	for (uint32_t n = 0; n < choice->count; n++) {
		const char *name = choice->facts[choice->judgements[n].device].name;
		char text[DEVICE_CHOICE_TEXT_BYTES + 64], why[DEVICE_CHOICE_TEXT_BYTES];

		device_choice_say_one(choice, n, why);
		snprintf(text, sizeof(text), "%s: %s", name, why);
		assert_string_equal(text, reasons[n]);
	}
	device_choice_destroy(choice);
}

static void what_is_assumed_or_not_known_is_said(void **state) {
	static const struct say_case cases[] = {
		{&scene_flat, "cpu:0", NULL,
		 "same host bridge or NUMA node, 96000 Mb/s by PCIe, assumed"},
		{&scene_soft_roce, "nic:rxe2", NULL, "not in the PCI tree, speed not known"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct device_choice *choice;
		char text[DEVICE_CHOICE_TEXT_BYTES];

		assert_int_equal(
			scene_choose(cases[n].scene, cases[n].target, NULL, NULL, &choice), 0
		);
		device_choice_say_one(choice, 0, text);
		assert_string_equal(text, cases[n].text);
		device_choice_destroy(choice);
	}
}

UNIT_GROUP(device_choice_say) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_outcome_is_one_sentence),
		cmocka_unit_test(each_device_has_its_reason),
		cmocka_unit_test(what_is_assumed_or_not_known_is_said),
	};

	return cmocka_run_group_tests_name("device_choice_say", tests, NULL, NULL);
}
