// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/cores.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cpu_set set_of(const char *text) {
	struct cpu_set set = {{0}};
	struct parse_error error;

	if (text[0] != '\0')
		assert_int_equal(cpu_set_parse(text, strlen(text), &error, &set), 0);
	return set;
}

static void workers_take_near_cores_first_then_isolated_ones_and_core_0_last(void **state) {
	static const struct {
		const char *allowed, *isolated, *near;
		uint32_t count;
		const char *cores;
	} cases[] = {
		{"0-3", "", "", 1, "3"},
		{"0-3", "", "", 3, "1-3"},
		{"0-3", "", "", 4, "0-3"},
		{"0", "", "", 1, "0"},
		{"0-1", "", "", 1, "1"},
		{"0-7", "2-3", "", 1, "3"},
		{"0-7", "2-3", "", 2, "2-3"},
		{"0-7", "2-3", "", 3, "2-3,7"},
		{"0-3", "6-7", "", 1, "3"},
		{"0,5", "0", "", 1, "5"},
		{"0,5", "0", "", 2, "0,5"},
		{"5-6", "", "", 2, "5-6"},
		{"0,4095", "4095", "", 1, "4095"},
		// Two sockets: the device is at the first.
		{"0-7", "", "0-3", 1, "3"},
		{"0-7", "", "0-3", 3, "1-3"},
		{"0-7", "", "0-3", 4, "1-3,7"}, // 0 only if there is no other
		{"0-7", "2,6", "0-3", 1, "2"},
		{"0-7", "2,6", "0-3", 4, "1-3,6"},
		{"0-7", "6", "0-3", 1, "3"}, // near before isolated
		{"4-7", "", "0-3", 1, "7"},  // none of the near ones is allowed
		{"0,4-7", "", "0-3", 1, "7"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct cpu_set allowed = set_of(cases[n].allowed);
		struct cpu_set isolated = set_of(cases[n].isolated);
		struct cpu_set near = set_of(cases[n].near);
		struct cpu_set cores;
		char text[64];

		assert_int_equal(
			cores_choose(&allowed, &isolated, &near, cases[n].count, &cores), 0
		);
		cpu_set_format(&cores, text, sizeof(text));
		assert_string_equal(text, cases[n].cores);
	}
}

static void more_workers_than_cores_are_refused(void **state) {
	struct cpu_set allowed = set_of("2-3"), isolated = set_of("4-9"), cores = set_of("77");
	struct cpu_set near = set_of("4-9");

	(void)state;
	assert_int_equal(cores_choose(&allowed, &isolated, &near, 3, &cores), -ERANGE);
	assert_int_equal(cores_choose(&allowed, &isolated, &near, 0, &cores), -ERANGE);
	assert_true(cpu_set_has(&cores, 77));
}

static void isolated_cores_are_what_the_kernel_says_or_none(void **state) {
	static const char *const cases[][2] = {
		{"2-3,9\n", "2-3,9"}, {"\n", ""}, {"", ""}, {"x\n", ""}};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		char path[] = "/tmp/tocsin-cores-XXXXXX";
		struct cpu_set isolated, expected = set_of(cases[n][1]);
		int fd = mkstemp(path);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, cases[n][0], strlen(cases[n][0])), strlen(cases[n][0]));
		close(fd);
		cores_read_isolated(path, &isolated);
		assert_memory_equal(&isolated, &expected, sizeof(expected));
		unlink(path);
		cores_read_isolated(path, &isolated);
		assert_int_equal(cpu_set_count(&isolated), 0);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_take_near_cores_first_then_isolated_ones_and_core_0_last),
		cmocka_unit_test(more_workers_than_cores_are_refused),
		cmocka_unit_test(isolated_cores_are_what_the_kernel_says_or_none),
	};

	return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
