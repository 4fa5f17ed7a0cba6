// SPDX-License-Identifier: BSD-3-Clause
#include "changes.h"
#include "perf/stats/generator.h"

#include <support/cmocka.h>

#include <errno.h>

#define ALPHA 0.0125
#define RUNS 60

static void
fill(struct generator *generator, double *values, uint32_t from, uint32_t to, double middle) {
	for (uint32_t n = from; n < to; n++)
		values[n] = middle + generator_normal(generator);
}

static void a_level_that_changes_is_cut_where_it_does(void **state) {
	struct generator generator = generator_seeded(3);
	struct change_part parts[8];
	double values[RUNS];

	(void)state;
	fill(&generator, values, 0, 20, 100);
	fill(&generator, values, 20, 45, 105);
	fill(&generator, values, 45, RUNS, 101);
	assert_int_equal(changes_find(values, RUNS, ALPHA, parts, 8), 3);
	assert_int_equal(parts[0].count, 20);
	assert_int_equal(parts[1].first, 20);
	assert_in_range(parts[2].first, 44, 46);
	assert_int_equal(parts[2].first + parts[2].count, RUNS);
	assert_true(parts[1].p <= ALPHA && parts[0].p == 1);
}

// This must hold for any distribution; the one here has no finite variance.
static void runs_that_do_not_change_are_seldom_cut(void **state) {
	struct generator generator = generator_seeded(4);
	uint32_t cut = 0;

	(void)state;
	for (int history = 0; history < 400; history++) {
		struct change_part parts[RUNS];
		double values[RUNS];

		for (int n = 0; n < RUNS; n++)
			values[n] = 1 / generator_uniform(&generator);
		cut += changes_find(values, RUNS, 0.05, parts, RUNS) > 1;
	}
	// 5 % of 400 is 20; three standard deviations are 13.
	assert_in_range(cut, 7, 33);
}

static void one_odd_run_is_no_change(void **state) {
	struct generator generator = generator_seeded(5);
	struct change_part parts[8];
	double values[RUNS];

	(void)state;
	fill(&generator, values, 0, RUNS, 100);
	values[30] = 1000;
	values[RUNS - 1] = 1000;
	assert_int_equal(changes_find(values, RUNS, ALPHA, parts, 8), 1);
}

static void equal_runs_are_one_part(void **state) {
	struct change_part parts[8];
	double values[RUNS];

	(void)state;
	for (int n = 0; n < RUNS; n++)
		values[n] = 7;
	assert_int_equal(changes_find(values, RUNS, ALPHA, parts, 8), 1);
	for (int n = 30; n < RUNS; n++)
		values[n] = 8;
	assert_int_equal(changes_find(values, RUNS, ALPHA, parts, 8), 2);
	assert_int_equal(parts[1].first, 30);
	assert_int_equal(changes_find(values, RUNS, ALPHA, parts, 1), -E2BIG);
}

static void too_few_runs_are_not_judged(void **state) {
	static const double apart[] = {1, 2, 3, 4, 5, 11, 12, 13, 14, 15};
	struct change_part parts[4];

	(void)state;
	assert_int_equal(changes_values_min(0.05), 8);
	assert_int_equal(changes_values_min(ALPHA), 10);
	assert_int_equal(changes_find(apart, 9, ALPHA, parts, 4), -ERANGE);
	assert_int_equal(changes_find(apart, 0, ALPHA, parts, 4), -ERANGE);
	// Ten runs are enough if all runs of one side exceed all runs of the other.
	assert_int_equal(changes_find(apart, 10, ALPHA, parts, 4), 2);
	assert_int_equal(parts[1].first, 5);
}

UNIT_GROUP(stats_changes) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_level_that_changes_is_cut_where_it_does),
		cmocka_unit_test(runs_that_do_not_change_are_seldom_cut),
		cmocka_unit_test(one_odd_run_is_no_change),
		cmocka_unit_test(equal_runs_are_one_part),
		cmocka_unit_test(too_few_runs_are_not_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
