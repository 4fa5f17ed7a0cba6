// SPDX-License-Identifier: BSD-3-Clause
// Test groups for unit_main_test.py: one passes, the others fail in different ways.
#include <support/cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void it_passes(void **state) {
	(void)state;
}

static void it_fails(void **state) {
	(void)state;
	assert_int_equal(1, 2);
}

static void it_is_skipped(void **state) {
	(void)state;
	skip();
}

// The process that is left behind keeps the group's output open.
static void it_leaves_a_process(void **state) {
	(void)state;
	if (fork() == 0) {
		pause();
		_exit(0);
	}
}

static void it_is_killed_within_a_line(void **state) {
	(void)state;
	printf("unfinished");
	fflush(stdout);
	raise(SIGKILL);
}

static void it_exits_early(void **state) {
	(void)state;
	exit(0); // NOLINT(concurrency-mt-unsafe): there is one thread
}

UNIT_GROUP(group_exits) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_passes),
		cmocka_unit_test(it_exits_early),
		cmocka_unit_test(it_passes),
	};

	return cmocka_run_group_tests_name("group_exits", tests, NULL, NULL);
}

UNIT_GROUP(group_fails) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_fails),
		cmocka_unit_test(it_passes),
	};

	return cmocka_run_group_tests_name("group_fails", tests, NULL, NULL);
}

UNIT_GROUP(group_killed) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_killed_within_a_line)};

	return cmocka_run_group_tests_name("group_killed", tests, NULL, NULL);
}

UNIT_GROUP(group_passes) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_passes),
		cmocka_unit_test(it_is_skipped),
		cmocka_unit_test(it_leaves_a_process),
	};

	return cmocka_run_group_tests_name("group_passes", tests, NULL, NULL);
}
