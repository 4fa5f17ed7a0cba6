// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/cores.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct cpu_set set_of(const char *text) {
	struct cpu_set set = {{0}};
	struct parse_error error;

	if (text[0] != '\0')
		assert_int_equal(cpu_set_parse(text, strlen(text), &error, &set), 0);
	return set;
}

static void workers_take_near_cores_first_and_core_0_last_and_leave_isolated_ones(void **state) {
	static const struct {
		const char *allowed, *isolated, *near;
		bool spins;
		uint32_t count;
		const char *cores;
		const char *why; // reason for the first core
	} cases[] = {
		{"0-3", "", "", false, 1, "3", "not isolated"},
		{"0-3", "", "", false, 3, "1-3", "not isolated"},
		{"0-3", "", "", false, 4, "0-3", "processor 0"},
		{"0", "", "", false, 1, "0", "processor 0"},
		{"0-1", "", "", false, 1, "1", "not isolated"},
		{"5-6", "", "", false, 2, "5-6", "not isolated"},
		// Isolated processors are reserved for others.
		{"0-7", "2-3", "", false, 1, "7", "not isolated"},
		{"0-7", "4-7", "", false, 1, "3", "not isolated"},
		{"0-7", "1-7", "", false, 1, "0", "processor 0"},
		{"0-7", "1-7", "", false, 2, "0,7", "processor 0"},
		{"2-3", "2-3", "", false, 1, "3", "isolated, because no other"},
		{"0-3", "6-7", "", false, 1, "3", "not isolated"},
		{"0,5", "0", "", false, 1, "5", "not isolated"},
		{"0,5", "0", "", false, 2, "0,5", "isolated, because no other"},
		// Isolated processors are meant for workers that spin.
		{"0-7", "2-3", "", true, 1, "3", "isolated, because the worker spins"},
		{"0-7", "2-3", "", true, 2, "2-3", "isolated, because the worker spins"},
		{"0-7", "2-3", "", true, 3, "2-3,7", "isolated, because the worker spins"},
		{"0,4095", "4095", "", true, 1, "4095", "isolated, because the worker spins"},
		{"0-7", "", "", true, 1, "7", "not isolated"},
		{"0-3", "0", "", true, 1, "0", "isolated, because the worker spins"},
		// Two sockets; the device is at the first.
		{"0-7", "", "0-3", false, 1, "3", "near the device"},
		{"0-7", "", "0-3", false, 3, "1-3", "near the device"},
		// Processor 0 comes after distant ones.
		{"0-7", "", "0-3", false, 4, "1-3,7", "near the device"},
		{"0-7", "2,6", "0-3", false, 1, "3", "near the device"},
		// Distant ones come before isolated ones.
		{"0-7", "1-3", "0-3", false, 1, "7", "not isolated"},
		{"0-7", "2,6", "0-3", true, 1, "2", "isolated, because the worker spins"},
		{"0-7", "6", "0-3", true, 1, "6", "isolated, because the worker spins"},
		{"4-7", "", "0-3", false, 1, "7", "not isolated"}, // no near processor is allowed
		{"0,4-7", "", "0-3", false, 1, "7", "not isolated"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		const struct cores_constraints places = {
			.allowed = set_of(cases[n].allowed),
			.isolated = set_of(cases[n].isolated),
			.near = set_of(cases[n].near),
			.spins = cases[n].spins,
		};
		struct cpu_set cores;
		char text[64];

		assert_int_equal(cores_choose(&places, cases[n].count, &cores), 0);
		cpu_set_format(&cores, text, sizeof(text));
		assert_string_equal(text, cases[n].cores);
		assert_non_null(strstr(cores_why(&places, cpu_set_next(&cores, 0)), cases[n].why));
	}
}

static void more_workers_than_cores_are_refused(void **state) {
	const struct cores_constraints places = {
		.allowed = set_of("2-3"), .isolated = set_of("4-9"), .near = set_of("4-9")};
	struct cpu_set cores = set_of("77");

	(void)state;
	assert_int_equal(cores_choose(&places, 3, &cores), -ERANGE);
	assert_int_equal(cores_choose(&places, 0, &cores), -ERANGE);
	assert_true(cpu_set_has(&cores, 77));
}

static void put(const char *root, const char *name, const char *text) {
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = strchr(path + strlen(root) + 1, '/'); at != NULL;
	     at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void isolated_cores_are_what_the_kernel_says_or_none(void **state) {
	static const char *const cases[][4] = {
		{"2-3,9\n", "\n", "\n", "2-3,9"},
		{"\n", "4-5\n", "\n", "4-5"},
		{"2\n", "  (null)\n", "6-7\n", "2,6-7"},
		{"\n", "\n", "\n", ""},
		{"", "", "", ""},
		{"x\n", "1\n", "9999999\n", "1"}};
	static const char *const made[] = {
		"devices/system/cpu/isolated",
		"devices/system/cpu/nohz_full",
		"devices/system/cpu",
		"devices/system",
		"devices",
		"fs/cgroup/cpuset.cpus.isolated",
		"fs/cgroup",
		"fs",
		"",
	};
	char root[] = "/tmp/tocsin-cores-XXXXXX";
	struct cpu_set isolated;

	(void)state;
	assert_non_null(mkdtemp(root));
	cores_read_isolated(root, &isolated);
	assert_int_equal(cpu_set_count(&isolated), 0);
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct cpu_set expected = set_of(cases[n][3]);

		put(root, "devices/system/cpu/isolated", cases[n][0]);
		put(root, "devices/system/cpu/nohz_full", cases[n][1]);
		put(root, "fs/cgroup/cpuset.cpus.isolated", cases[n][2]);
		cores_read_isolated(root, &isolated);
		assert_memory_equal(&isolated, &expected, sizeof(expected));
	}
	for (size_t n = 0; n < sizeof(made) / sizeof(made[0]); n++) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", root, made[n]);
		assert_int_equal(remove(path), 0);
	}
}

UNIT_GROUP(cores) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			workers_take_near_cores_first_and_core_0_last_and_leave_isolated_ones
		),
		cmocka_unit_test(more_workers_than_cores_are_refused),
		cmocka_unit_test(isolated_cores_are_what_the_kernel_says_or_none),
	};

	return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
