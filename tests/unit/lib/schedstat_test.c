// SPDX-License-Identifier: BSD-3-Clause
#include <lib/schedstat.h>
#include <support/cmocka.h>

#include <errno.h>
#include <limits.h>
#include <unistd.h>

static void the_own_thread_has_run(void **state) {
	struct schedstat stat;

	(void)state;
	if (schedstat_read(gettid(), &stat) == -ENOENT)
		skip(); // a kernel without CONFIG_SCHED_INFO
	// The kernel updates the time that a running thread has used at ticks only.
	for (uint32_t n = 0; n < 10000000 && stat.ran_ns == 0; n++)
		assert_int_equal(schedstat_read(gettid(), &stat), 0);
	assert_true(stat.ran_ns > 0);
	assert_true(stat.turns > 0);
}

static void a_thread_that_does_not_exist_is_an_error(void **state) {
	struct schedstat stat = {.turns = 7};

	(void)state;
	assert_int_equal(schedstat_read(INT_MAX, &stat), -ENOENT);
	assert_int_equal(stat.turns, 7);
}

static void three_numbers_are_needed(void **state) {
	static const char *const bad[] = {"",	   "\n",    "1",      "1 2",
					  "1 2 x", "x 2 3", "-1 2 3", "1 2 99999999999999999999"};
	struct schedstat stat = {.turns = 7};

	(void)state;
	for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]); n++) {
		assert_int_equal(schedstat_parse(bad[n], &stat), -EBADMSG);
		assert_int_equal(stat.turns, 7);
	}
	assert_int_equal(schedstat_parse("12 34567 8\n", &stat), 0);
	assert_int_equal(stat.ran_ns, 12);
	assert_int_equal(stat.waited_ns, 34567);
	assert_int_equal(stat.turns, 8);
}

UNIT_GROUP(schedstat) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_own_thread_has_run),
		cmocka_unit_test(a_thread_that_does_not_exist_is_an_error),
		cmocka_unit_test(three_numbers_are_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
