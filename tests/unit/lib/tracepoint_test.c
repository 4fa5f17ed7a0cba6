// SPDX-License-Identifier: BSD-3-Clause
// Tests of tracepoints without <sys/sdt.h>; tests/smoke/tracepoints_test.py covers those with it.
#define TOCSIN_NO_TRACEPOINTS
#include <lib/tracepoint.h>
#include <support/cmocka.h>

static int calls;

static int count_call(void) {
	return ++calls;
}

static void arguments_of_a_tracepoint_that_is_none_are_not_evaluated(void **state) {
	(void)state;
	TRACEPOINT(none, count_call(), "text");
	assert_int_equal(calls, 0);
	assert_int_equal(count_call(), 1);
}

UNIT_GROUP(tracepoint) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_of_a_tracepoint_that_is_none_are_not_evaluated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
