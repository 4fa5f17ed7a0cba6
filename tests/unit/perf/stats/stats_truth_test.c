// SPDX-License-Identifier: BSD-3-Clause
// Few repetitions of the experiments that ./dev bench lab repeats a thousand times, with fixed
// seeds.
#include "perf/stats/generator.h"
#include "perf/stats/storms.h"
#include "perf/stats/truth.h"

#include <support/cmocka.h>

#include <math.h>

#define REPETITIONS 30
// Three standard deviations of a share of 0.92 in REPETITIONS tries.
#define LEEWAY 0.15

static void printed_intervals_hold_the_truth(void **state) {
	(void)state;
	for (int n = 0; n < TRUTH_PROCESSES; n++) {
		const struct truth_process *process = &truth_processes[n];
		struct truth_coverage told;

		truth_coverage(process, REPETITIONS, (uint64_t)n + 1, &told);
		print_message(
			"%s: p50 %.1f %%, p99 %.1f %%, width %.2f and %.2f\n", process->name,
			100 * told.held[0], 100 * told.held[1], told.width[0], told.width[1]
		);
		for (int q = 0; q < TRUTH_QUANTILES; q++) {
			assert_true(told.held[q] >= process->least[q] - LEEWAY);
			assert_true(told.width[q] > 0.6 && told.width[q] <= 1.5);
		}
		assert_true(told.changed <= 0.05 + LEEWAY);
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

// Check the reference values themselves. The quantile must have its share in a long run, and tau
// must give the variance of a long mean.
static void truth_of_the_storms_is_their_truth(void **state) {
	struct storms storms = storms_seeded(3);
	double bound = storms_quantile(0.9), below = 0, squares = 0;

	(void)state;
	for (int batch = 0; batch < 400; batch++) {
		int count = 0;

		for (int n = 0; n < 5000; n++)
			count += (double)storms_next(&storms) <= bound;
		below += count;
		squares += (count - 4500.0) * (count - 4500.0);
	}
	assert_true(fabs(below / 2e6 - 0.9) < 0.003);
	assert_true(fabs(squares / 400 / (5000 * 0.09) / storms_tau(0.9) - 1) < 0.25);
}

// The tau of an autoregressive process at its median is a sum of arc sines.
static void tau_of_a_median_is_that_of_the_arc_sine_law(void **state) {
	double tau = 1;

	(void)state;
	for (int lag = 1; lag < 400; lag++)
		tau += 4 / 3.14159265358979323846 * asin(pow(0.9, lag));
	assert_true(fabs(autoregressive_tau(0.9, 0.5) / tau - 1) < 1e-6);
}

UNIT_GROUP(stats_truth) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printed_intervals_hold_the_truth),
		cmocka_unit_test(runs_that_change_are_told_as_two),
		cmocka_unit_test(comparing_finds_a_shift_and_claims_none_that_is_not),
		cmocka_unit_test(truth_of_the_storms_is_their_truth),
		cmocka_unit_test(tau_of_a_median_is_that_of_the_arc_sine_law),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
