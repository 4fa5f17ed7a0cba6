// SPDX-License-Identifier: BSD-3-Clause
// Few repetitions of the experiments that ./dev bench lab repeats a thousand times, with fixed
// seeds.
#include "perf/stats/generator.h"
#include "perf/stats/storms.h"
#include "perf/stats/truth.h"

#include <support/cmocka.h>

#include <math.h>
#include <string.h>

#define REPETITIONS 30
// Three standard deviations of a share of 0.92 in REPETITIONS tries.
#define LEEWAY 0.15

static void printed_intervals_hold_the_truth(void **state) {
	(void)state;
	for (int n = 0; n < TRUTH_ROWS; n++) {
		const struct truth_row *row = &truth_rows[n];
		struct truth_coverage told;

		truth_coverage(row, REPETITIONS, (uint64_t)n + 1, &told);
		for (int q = 0; q < TRUTH_QUANTILES; q++) {
			if (!(row->printed_least[q] > 0))
				continue;
			print_message(
				"%s n=%u: %g of %g, width %.2f\n", row->name, row->samples,
				told.held[q], told.printed[q], told.width[q]
			);
			assert_true(told.printed[q] >= row->printed_least[q] - LEEWAY);
			assert_true(told.held[q] >= row->held_least[q] - LEEWAY);
			assert_true(told.width[q] > 0.6 && told.width[q] <= 2 * row->width_most);
		}
		assert_true(row->storms != NULL || told.changed <= 0.05 + LEEWAY);
	}
}

// A run of 200 samples of a process that depends for 100 samples cannot have an interval. A
// threshold stays undecided.
static void short_dependent_runs_have_no_interval(void **state) {
	static const char *const names[] = {"AR .99", "AR .9"};

	(void)state;
	for (int n = 0; n < TRUTH_ROWS; n++) {
		const struct truth_row *row = &truth_rows[n];
		struct truth_coverage told;

		if (row->samples != 200 ||
		    (strcmp(row->name, names[0]) != 0 && strcmp(row->name, names[1]) != 0))
			continue;
		truth_coverage(row, REPETITIONS, 5, &told);
		assert_true(told.printed[0] <= 0.3);
		assert_true(told.failed[0] <= 0.1 && told.passed[0] <= 0.1);
	}
}

static void runs_that_change_are_told_as_two(void **state) {
	struct truth_changes told;

	(void)state;
	truth_changes(6, 11, &told);
	assert_true(told.shifted >= 0.8 && told.tail >= 0.8);
}

static void comparing_finds_a_shift_and_claims_none_that_is_not(void **state) {
	struct truth_comparison told;

	(void)state;
	truth_comparison(REPETITIONS, 5000, 12, &told);
	assert_true(told.found >= 0.8 && told.claimed <= 0.1);
}

// Check the reference value itself. The quantile must have its share in a long run.
static void truth_of_the_storms_is_their_truth(void **state) {
	static const struct storms_shape shape = {.calm = 200, .storm = 20};
	struct storms storms = storms_seeded(&shape, 3);
	double bound = storms_quantile(&shape, 0.9), below = 0;

	(void)state;
	for (int n = 0; n < 2000000; n++)
		below += (double)storms_next(&storms) <= bound;
	assert_true(fabs(below / 2e6 - 0.9) < 0.003);
}

UNIT_GROUP(stats_truth) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printed_intervals_hold_the_truth),
		cmocka_unit_test(short_dependent_runs_have_no_interval),
		cmocka_unit_test(runs_that_change_are_told_as_two),
		cmocka_unit_test(comparing_finds_a_shift_and_claims_none_that_is_not),
		cmocka_unit_test(truth_of_the_storms_is_their_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
