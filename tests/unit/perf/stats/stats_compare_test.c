// SPDX-License-Identifier: BSD-3-Clause
#include "compare.h"
#include "perf/stats/generator.h"

#include <support/cmocka.h>

#include <errno.h>
#include <math.h>

static bool is_near(double a, double b) {
	return fabs(a - b) < 1e-9;
}

// Expected values: scipy.stats.mannwhitneyu(b, a, method="exact").
static void shift_and_probability_are_those_of_few_runs(void **state) {
	static const double a[] = {10.1, 10.4, 9.9, 10.0, 10.2};
	static const double b[] = {10.3, 10.9, 10.6, 10.05, 10.7};
	struct compare_result result;

	(void)state;
	assert_int_equal(compare_runs(a, 5, b, 5, 0.95, &result), 0);
	assert_true(is_near(result.p, 0.09523809523809523));
	assert_true(is_near(result.shift, 0.4));
	assert_true(result.low < 0 && result.high > 0.8);
}

static void all_above_is_the_most_that_few_runs_can_say(void **state) {
	static const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
	struct compare_result result = {.shift = 77};

	(void)state;
	assert_int_equal(compare_runs(a, 3, b, 3, 0.95, &result), -ERANGE);
	assert_int_equal(compare_runs(a, 0, b, 4, 0.95, &result), -ERANGE);
	assert_true(is_near(result.shift, 77));
	assert_int_equal(compare_runs(a, 4, b, 4, 0.95, &result), 0);
	assert_true(is_near(result.p, 2.0 / 70));
	assert_true(is_near(result.shift, 4) && is_near(result.low, 1) && is_near(result.high, 7));
	assert_int_equal(compare_runs_min(0.95, 1), 4);
	assert_int_equal(compare_runs_min(0.95, 5), 5);
	assert_int_equal(compare_runs_min(0.99, 1), 5);
}

// Four runs of a had a bad placement. The shift divided by the median of a is 0 to -1.9.
static void a_share_comes_from_ratios_and_loses_no_more_than_all(void **state) {
	static const double a[] = {20, 21, 22, 23, 24, 25, 400, 410, 420, 430};
	static const double b[] = {16, 17, 18, 19, 19.5, 16.5, 17.5, 18.5, 15, 15.5};
	struct compare_result result, swapped;

	(void)state;
	assert_int_equal(compare_runs(a, 10, b, 10, 0.95, &result), 0);
	assert_true(result.low / 24.5 < -1);
	assert_true(-1 < result.share_low && result.share_low < result.share);
	assert_true(result.share < result.share_high && result.share_high < 0);
	assert_int_equal(compare_runs(b, 10, a, 10, 0.95, &swapped), 0);
	assert_true(is_near((1 + result.share) * (1 + swapped.share), 1));
	assert_true(is_near((1 + result.share_low) * (1 + swapped.share_high), 1));
}

static void equal_sides_differ_by_nothing(void **state) {
	static const double a[] = {3, 3, 3, 3, 3, 3};
	struct compare_result result;

	(void)state;
	assert_int_equal(compare_runs(a, 6, a, 6, 0.95, &result), 0);
	assert_true(is_near(result.p, 1) && is_near(result.shift, 0));
	assert_true(compare_is_within(&result, 0));
}

// Holm's correction: the smallest p is multiplied by four, the next by three. No p becomes smaller
// than the p before it.
static void several_claims_pay_for_each_other(void **state) {
	double ps[] = {0.02, 0.01, 0.03, 0}, ones[] = {0.9, 0.6};

	(void)state;
	compare_adjust(ps, 4);
	assert_true(is_near(ps[3], 0) && is_near(ps[1], 0.03));
	assert_true(is_near(ps[0], 0.04) && is_near(ps[2], 0.04));
	compare_adjust(ones, 2);
	assert_true(is_near(ones[0], 1) && is_near(ones[1], 1));
}

// For runs without a difference one interval in twenty misses 0. A shift of 3 is found almost
// always.
static void intervals_hold_the_true_shift(void **state) {
	struct generator generator = generator_seeded(9);
	int held[2] = {0}, claimed[2] = {0};

	(void)state;
	for (int n = 0; n < 2000; n++) {
		double a[10], b[10], shift = n % 2 ? 3 : 0;
		struct compare_result result;

		for (int run = 0; run < 10; run++) {
			a[run] = 100 + generator_normal(&generator);
			b[run] = 100 + shift + generator_normal(&generator);
		}
		assert_int_equal(compare_runs(a, 10, b, 10, 0.95, &result), 0);
		held[n % 2] += result.low <= shift && shift <= result.high;
		claimed[n % 2] += result.p < 0.05;
	}
	// 95 % of 1,000, with three standard deviations on the lower side.
	assert_in_range(held[0], 930, 985);
	assert_in_range(held[1], 930, 985);
	assert_true(claimed[0] < 70 && claimed[1] > 990);
}

// Above COMPARE_EXACT_MAX runs the normal distribution replaces the exact one. Both must agree
// there.
static void many_runs_are_told_by_the_normal_law(void **state) {
	struct generator generator = generator_seeded(4);
	double a[COMPARE_EXACT_MAX + 1], b[COMPARE_EXACT_MAX + 1];
	struct compare_result exact, normal;

	(void)state;
	for (int n = 0; n <= COMPARE_EXACT_MAX; n++) {
		a[n] = generator_normal(&generator);
		b[n] = 0.4 + generator_normal(&generator);
	}
	assert_int_equal(compare_runs(a, COMPARE_EXACT_MAX, b, COMPARE_EXACT_MAX, 0.95, &exact), 0);
	assert_int_equal(
		compare_runs(a, COMPARE_EXACT_MAX + 1, b, COMPARE_EXACT_MAX + 1, 0.95, &normal), 0
	);
	assert_true(fabs(exact.p - normal.p) < 0.02);
	assert_true(fabs(exact.low - normal.low) < 0.1 && fabs(exact.high - normal.high) < 0.1);
}

UNIT_GROUP(stats_compare) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shift_and_probability_are_those_of_few_runs),
		cmocka_unit_test(all_above_is_the_most_that_few_runs_can_say),
		cmocka_unit_test(a_share_comes_from_ratios_and_loses_no_more_than_all),
		cmocka_unit_test(equal_sides_differ_by_nothing),
		cmocka_unit_test(several_claims_pay_for_each_other),
		cmocka_unit_test(intervals_hold_the_true_shift),
		cmocka_unit_test(many_runs_are_told_by_the_normal_law),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
