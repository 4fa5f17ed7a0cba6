// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/choice/scene.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>

#define TEXT_BYTES 1024

// Print the choice as "mlx5_0 best switch 192000; ...".
static void print_choice(const struct device_choice *choice, char *text) {
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t n = 0; n < choice->count; n++) {
		const struct device_judgement *judgement = &choice->judgements[n];

		used += (size_t)snprintf(
			text + used, TEXT_BYTES - used, "%s%s %s %s %u", n > 0 ? "; " : "",
			choice->facts[judgement->device].name,
			device_eligibility_name(judgement->verdict),
			topology_class_name(judgement->way.class), judgement->bandwidth_mbps
		);
		assert_in_range(used, 0, TEXT_BYTES - 1);
	}
}

struct choice_case {
	const struct scene *scene;
	const char *target;
	const struct device_gpus *gpus;
	const char *choice;
};

static void expect_choices(const struct choice_case *cases, size_t count) {
	for (size_t n = 0; n < count; n++) {
		struct device_choice *choice;
		char text[TEXT_BYTES];

		assert_int_equal(
			scene_choose(cases[n].scene, cases[n].target, cases[n].gpus, NULL, &choice),
			0
		);
		print_choice(choice, text);
		assert_string_equal(text, cases[n].choice);
		device_choice_destroy(choice);
	}
}

#define EXPECT_CHOICES(cases) expect_choices(cases, sizeof(cases) / sizeof((cases)[0]))

static void a_gpu_gets_the_nics_of_its_switch_and_all_that_are_equal(void **state) {
	static const struct choice_case cases[] = {
		{&scene_eight, "cuda:3", &scene_gpus,
		 "mlx5_2 best switch 192000; mlx5_10 best switch 192000; "
		 "mlx5_3 farther host 192000; mlx5_4 farther host 100000; "
		 "mlx5_9 farther far 192000; mlx5_5 farther far 100000; "
		 "mlx5_6 awaits-port far 192000; mlx5_7 unusable far 192000"},
		// At the GPU's switch are mlx5_9 and a device without RC.
		{&scene_eight, "cuda:0", &scene_gpus,
		 "mlx5_9 best switch 192000; mlx5_5 farther host 100000; "
		 "mlx5_2 farther far 192000; mlx5_3 farther far 192000; "
		 "mlx5_10 farther far 192000; mlx5_4 farther far 100000; "
		 "mlx5_6 awaits-port host 192000; mlx5_7 unusable switch 192000"},
		{&scene_eight, "cuda:1", &scene_gpus,
		 "mlx5_3 best switch 192000; mlx5_4 slower switch 100000; "
		 "mlx5_2 farther host 192000; mlx5_10 farther host 192000; "
		 "mlx5_9 farther far 192000; mlx5_5 farther far 100000; "
		 "mlx5_6 awaits-port far 192000; mlx5_7 unusable far 192000"},
		// mlx5_5 is at the GPU's switch, so it is preferred to faster devices elsewhere.
		{&scene_eight, "cuda:2", &scene_gpus,
		 "mlx5_5 best switch 100000; mlx5_9 farther host 192000; "
		 "mlx5_2 farther far 192000; mlx5_3 farther far 192000; "
		 "mlx5_10 farther far 192000; mlx5_4 farther far 100000; "
		 "mlx5_6 awaits-port switch 192000; mlx5_7 unusable host 192000"},
		{&scene_cascade, "cuda:0", &scene_other_gpus,
		 "near_fast best switch 384000; virtual best switch 384000; "
		 "near_slow slower switch 100000; above farther bridges 96000; "
		 "other_host farther host 96000; port farther host 96000"},
	};

	(void)state;
	EXPECT_CHOICES(cases);
}

static void host_memory_gets_the_fastest_of_its_node(void **state) {
	static const struct choice_case cases[] = {
		{&scene_eight, "cpu:0", NULL,
		 "mlx5_2 best host 192000; mlx5_3 best host 192000; mlx5_10 best host 192000; "
		 "mlx5_4 slower host 100000; mlx5_9 farther far 192000; mlx5_5 farther far 100000; "
		 "mlx5_6 awaits-port far 192000; mlx5_7 unusable far 192000"},
		{&scene_eight, "cpu:1", NULL,
		 "mlx5_9 best host 192000; mlx5_5 slower host 100000; "
		 "mlx5_2 farther far 192000; mlx5_3 farther far 192000; "
		 "mlx5_10 farther far 192000; mlx5_4 farther far 100000; "
		 "mlx5_6 awaits-port host 192000; mlx5_7 unusable host 192000"},
		{&scene_cascade, "cpu:0", NULL,
		 "above best host 384000; other_host slower host 192000; port slower host 192000; "
		 "near_fast slower host 96000; near_slow slower host 96000; "
		 "virtual slower host 96000"},
	};

	(void)state;
	EXPECT_CHOICES(cases);
}

static void a_place_without_a_nic_gets_those_of_the_other_one(void **state) {
	static const struct choice_case cases[] = {
		{&scene_cascade, "cpu:1", NULL,
		 "above best far 384000; other_host slower far 192000; port slower far 192000; "
		 "near_fast slower far 96000; near_slow slower far 96000; "
		 "virtual slower far 96000"},
		{&scene_cascade, "cuda:1", &scene_other_gpus,
		 "above best far 384000; other_host slower far 192000; port slower far 192000; "
		 "near_fast slower far 96000; near_slow slower far 96000; "
		 "virtual slower far 96000"},
	};

	(void)state;
	EXPECT_CHOICES(cases);
}

static void auto_takes_the_fastest_wherever_it_is(void **state) {
	static const struct choice_case cases[] = {
		{&scene_eight, "auto", NULL,
		 "mlx5_2 best host 192000; mlx5_3 best host 192000; mlx5_9 best host 192000; "
		 "mlx5_10 best host 192000; mlx5_4 slower host 100000; mlx5_5 slower host 100000; "
		 "mlx5_6 awaits-port host 192000; mlx5_7 unusable host 192000"},
		{&scene_mixed, "auto", NULL, "mlx4_0 best host 40000; rxe0 farther unknown 400000"},
		{&scene_unplaced, "auto", NULL,
		 "a best host 96000; b best host 96000; hidden farther unknown 96000"},
	};

	(void)state;
	EXPECT_CHOICES(cases);
}

static void where_places_are_not_known_bandwidth_decides(void **state) {
	static const struct choice_case cases[] = {
		{&scene_flat, "cuda:0", &scene_only_gpu,
		 "mlx5_0 best unknown 96000; mlx5_1 best unknown 96000; "
		 "slow slower unknown 24375"},
		{&scene_flat, "cpu:0", NULL,
		 "mlx5_0 best host 96000; mlx5_1 best host 96000; slow slower host 24375"},
		// The topology has no device with the address of cuda:4.
		{&scene_eight, "cuda:4", &scene_gpus,
		 "mlx5_2 best unknown 192000; mlx5_3 best unknown 192000; "
		 "mlx5_9 best unknown 192000; mlx5_10 best unknown 192000; "
		 "mlx5_4 slower unknown 100000; mlx5_5 slower unknown 100000; "
		 "mlx5_6 awaits-port unknown 192000; mlx5_7 unusable unknown 192000"},
		{&scene_unplaced, "cpu:1", NULL,
		 "a best far 96000; b best far 96000; hidden farther unknown 96000"},
		{&scene_unplaced, "cuda:2", &scene_other_gpus,
		 "b best host 96000; a farther far 96000; hidden farther unknown 96000"},
		{&scene_soft_roce, "auto", NULL,
		 "rxe0 best unknown 10000; rxe1 best unknown 10000; rxe2 slower unknown 0; "
		 "rxe3 awaits-port unknown 40000; soft0 not-asked unknown 100000"},
		{&scene_soft_roce, "cpu:0", NULL,
		 "rxe0 best unknown 10000; rxe1 best unknown 10000; rxe2 slower unknown 0; "
		 "rxe3 awaits-port unknown 40000; soft0 not-asked unknown 100000"},
	};

	(void)state;
	EXPECT_CHOICES(cases);
}

static void a_name_takes_its_device_even_without_an_active_port_but_never_without_rc(void **state) {
	static const struct choice_case cases[] = {
		{&scene_mixed, "nic:rxe0", NULL,
		 "rxe0 best unknown 400000; mlx4_0 not-asked host 40000"},
		{&scene_no_rc, "nic:rxe0", NULL,
		 "rxe0 best unknown 0; efa_0 not-asked host 100000"},
		{&scene_no_rc, "nic:efa_0", NULL,
		 "efa_0 unusable host 100000; rxe0 not-asked unknown 0"},
		{&scene_no_rc, "auto", NULL,
		 "efa_0 unusable host 100000; rxe0 awaits-port unknown 0"},
		{&scene_no_rc, "cuda:0", &scene_only_gpu,
		 "efa_0 unusable switch 100000; rxe0 awaits-port unknown 0"},
	};

	(void)state;
	EXPECT_CHOICES(cases);
}

static void the_software_device_is_taken_only_if_it_is_asked_for(void **state) {
	static const struct choice_case cases[] = {
		{&scene_soft_roce, "soft", NULL,
		 "soft0 best unknown 100000; rxe0 not-asked unknown 10000; "
		 "rxe1 not-asked unknown 10000; rxe2 not-asked unknown 0; "
		 "rxe3 not-asked unknown 40000"},
		{&scene_soft_roce, "nic:soft0", NULL,
		 "soft0 best unknown 100000; rxe0 not-asked unknown 10000; "
		 "rxe1 not-asked unknown 10000; rxe2 not-asked unknown 0; "
		 "rxe3 not-asked unknown 40000"},
		{&scene_mixed, "soft", NULL,
		 "mlx4_0 not-asked host 40000; rxe0 not-asked unknown 400000"},
		{&scene_mixed, "none", NULL,
		 "mlx4_0 not-asked host 40000; rxe0 not-asked unknown 400000"},
	};

	(void)state;
	EXPECT_CHOICES(cases);
}

static void auto_wants_the_software_device_where_no_other_will_ever_have_pairs(void **state) {
	static const enum device_responder ours = DEVICE_RESPONDER_IN_PROCESS;
	const struct {
		struct device_facts facts[3];
		uint32_t count;
		bool wants;
	} cases[] = {
		{{{.name = ""}}, 0, true},
		{{{.usable = true}}, 1, false},
		{{{.usable = false}}, 1, true},
		{{{.awaits_port = true}}, 1, false},
		{{{.responder = DEVICE_RESPONDER_KERNEL, .usable = true}}, 1, false},
		{{{.responder = ours, .usable = true}}, 1, true},
		{{{.usable = false}, {.responder = ours, .usable = true}}, 2, true},
		{{{.usable = false}, {.responder = ours}, {.awaits_port = true}}, 3, false},
		{{{.responder = ours}, {.usable = false}, {.usable = true}}, 3, false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		assert_int_equal(
			device_choice_needs_soft(cases[n].facts, cases[n].count), cases[n].wants
		);
}

static void without_a_device_every_place_gets_none(void **state) {
	static const struct choice_case cases[] = {
		{&scene_none, "auto", NULL, ""},	  {&scene_none, "cpu:1", NULL, ""},
		{&scene_none, "cuda:0", &scene_gpus, ""}, {&scene_none, "soft", NULL, ""},
		{&scene_none, "none", NULL, ""},
	};

	(void)state;
	EXPECT_CHOICES(cases);
}

static void the_order_in_which_devices_are_listed_does_not_matter(void **state) {
	struct scene turned = {scene_eight.machine, {{NULL, NULL, 0, USABLE}}};
	struct device_choice *choice;
	char texts[2][TEXT_BYTES];

	(void)state;
	assert_int_equal(scene_choose(&scene_eight, "cpu:0", NULL, NULL, &choice), 0);
	print_choice(choice, texts[0]);
	device_choice_destroy(choice);
	for (size_t first = 0; first < 8; first++) {
		for (size_t n = 0; n < 8; n++)
			turned.rows[n] = scene_eight.rows[(first + n * 3) % 8];
		assert_int_equal(scene_choose(&turned, "cpu:0", NULL, NULL, &choice), 0);
		print_choice(choice, texts[1]);
		device_choice_destroy(choice);
		assert_string_equal(texts[0], texts[1]);
	}
}

static void a_target_that_is_not_there_is_an_error_that_names_what_is(void **state) {
	static const struct {
		const struct scene *scene;
		const char *target;
		const struct device_gpus *gpus;
		int err;
		const char *error;
	} cases[] = {
		{&scene_mixed, "nic:rxe1", NULL, -ENOENT,
		 "\"nic:rxe1\" names no device; did you mean \"rxe0\"?"},
		{&scene_mixed, "nic:none", NULL, -ENOENT,
		 "\"nic:none\" names no device; known are: rxe0, mlx4_0"},
		{&scene_none, "nic:mlx5_0", NULL, -ENOENT,
		 "\"nic:mlx5_0\" names no device: this machine has no RDMA device"},
		{&scene_eight, "cpu:2", NULL, -ENOENT,
		 "\"cpu:2\" names no NUMA node; known are: 0-1"},
		{&scene_flat, "cpu:1", NULL, -ENOENT, "\"cpu:1\" names no NUMA node; known are: 0"},
		{&scene_eight, "cuda:5", &scene_gpus, -ENOENT,
		 "\"cuda:5\" names no GPU; known are: cuda:0 to cuda:4"},
		{&scene_eight, "cuda:1", &scene_only_gpu, -ENOENT,
		 "\"cuda:1\" names no GPU; known is cuda:0"},
		{&scene_eight, "cuda:0", &scene_no_gpus, -ENOENT,
		 "\"cuda:0\" names no GPU: CUDA finds no GPU"},
		{&scene_eight, "cuda:0", &scene_silent_gpus, -ELIBACC,
		 "\"cuda:0\" cannot be found: Can not access a needed shared library"},
		{&scene_eight, "cuda:0", &scene_gpus_gone, -ENOSYS,
		 "\"cuda:0\" cannot be found: libcuda.so.1 cannot be loaded"},
		{&scene_eight, "cuda:0", NULL, -ENOSYS,
		 "\"cuda:0\" cannot be found: CUDA is not available on this machine"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct device_choice *choice = NULL;
		struct parse_error error;

		assert_int_equal(
			scene_choose(
				cases[n].scene, cases[n].target, cases[n].gpus, &error, &choice
			),
			cases[n].err
		);
		assert_string_equal(error.text, cases[n].error);
		assert_null(choice);
	}
}

UNIT_GROUP(device_choice) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpu_gets_the_nics_of_its_switch_and_all_that_are_equal),
		cmocka_unit_test(host_memory_gets_the_fastest_of_its_node),
		cmocka_unit_test(a_place_without_a_nic_gets_those_of_the_other_one),
		cmocka_unit_test(auto_takes_the_fastest_wherever_it_is),
		cmocka_unit_test(where_places_are_not_known_bandwidth_decides),
		cmocka_unit_test(
			a_name_takes_its_device_even_without_an_active_port_but_never_without_rc
		),
		cmocka_unit_test(the_software_device_is_taken_only_if_it_is_asked_for),
		cmocka_unit_test(auto_wants_the_software_device_where_no_other_will_ever_have_pairs
		),
		cmocka_unit_test(without_a_device_every_place_gets_none),
		cmocka_unit_test(the_order_in_which_devices_are_listed_does_not_matter),
		cmocka_unit_test(a_target_that_is_not_there_is_an_error_that_names_what_is),
	};

	return cmocka_run_group_tests_name("device_choice", tests, NULL, NULL);
}
