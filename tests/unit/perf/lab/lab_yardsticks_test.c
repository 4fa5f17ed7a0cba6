// SPDX-License-Identifier: BSD-3-Clause
// Tests of yardsticks from given samples.
#include "run/yardsticks.h"

#include <support/cmocka.h>

#define MS UINT64_C(1000000)

static void a_yardstick_whose_samples_all_waited_is_not_known(void **state) {
	struct lab_environment environment = {.count = 0};
	char text[YARDSTICKS_BYTES];

	(void)state;
	yardsticks_add(&environment, FLOOR_CLOCK, 25 * floor_batch(FLOOR_CLOCK));
	yardsticks_add(&environment, FLOOR_CACHE_LINE, 109 * MS);
	yardsticks_add(&environment, FLOOR_WAKE_UP, 12 * MS);
	yardsticks_add(&environment, FLOOR_UDP, UINT64_MAX); // no round trip ended
	yardsticks_format(&environment, text);
	assert_string_equal(text, "clock 25.0 ns, cache line n/a, wake-up n/a, UDP n/a");
}

static void the_longest_yardsticks_are_all_named(void **state) {
	struct lab_environment environment = {.count = 0};
	char text[YARDSTICKS_BYTES];

	(void)state;
	yardsticks_add(&environment, FLOOR_CLOCK, MS / 2);
	yardsticks_add(&environment, FLOOR_SYSTEM_CALL, MS / 6);
	yardsticks_add(&environment, FLOOR_CACHE_LINE, MS / 6);
	yardsticks_add(&environment, FLOOR_WAKE_UP, MS / 2);
	yardsticks_add(&environment, FLOOR_UDP, MS / 2);
	yardsticks_format(&environment, text);
	assert_string_equal(
		text, "clock 500.0 ns, syscall 833.3 ns, cache line 833.3 ns, wake-up 250.00 us, "
		      "UDP 500.00 us"
	);
}

static void a_yardstick_that_this_machine_lacks_is_left_out(void **state) {
	struct lab_environment environment = {.count = 0};
	char text[YARDSTICKS_BYTES];

	(void)state;
	yardsticks_format(&environment, text);
	assert_string_equal(text, "");
	yardsticks_add(&environment, FLOOR_UDP, 7450);
	yardsticks_format(&environment, text);
	assert_string_equal(text, "UDP 7.45 us");
}

UNIT_GROUP(lab_yardsticks) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_yardstick_whose_samples_all_waited_is_not_known),
		cmocka_unit_test(the_longest_yardsticks_are_all_named),
		cmocka_unit_test(a_yardstick_that_this_machine_lacks_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
