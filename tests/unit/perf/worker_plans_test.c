// SPDX-License-Identifier: BSD-3-Clause
// Tests that no plan made while a worker falls asleep is lost. ./dev bench plans runs longer.
#include "plans.h"

#include <support/cmocka.h>

#define PLANS 20000

static void plan_made_as_the_worker_falls_asleep_is_carried_out(void **state) {
	struct plans_result result = {0};
	struct clock clock;

	(void)state;
	clock_init_monotonic(&clock);
	assert_int_equal(plans_run(PLANS, &clock, NULL, &result), 0);
	assert_int_equal(result.planned, PLANS);
	assert_int_equal(result.carried_out, PLANS);
	assert_int_equal(result.lost, 0);
	assert_true(result.blocks > 0);
}

UNIT_GROUP(worker_plans) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_made_as_the_worker_falls_asleep_is_carried_out),
	};

	return cmocka_run_group_tests_name("worker_plans", tests, NULL, NULL);
}
