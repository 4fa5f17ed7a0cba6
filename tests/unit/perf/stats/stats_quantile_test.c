// SPDX-License-Identifier: BSD-3-Clause
#include "quantile.h"

#include <support/cmocka.h>

#include <errno.h>
#include <math.h>

// Values of scipy.stats.binom.cdf; the stats_scipy test compares many more.
static void binomial_sums_are_those_of_scipy(void **state) {
	static const struct {
		uint64_t trials;
		double p;
		uint64_t successes;
		double sum;
	} rows[] = {
		{1, 0.5, 0, 0.5},
		{10, 0.5, 5, 0.623046875},
		{368, 0.99, 367, 0.9752399446099064},
		{1000000, 0.999, 998938, 0.026707282822911276},
		{5, 0.2, 5, 1},
		{5, 0, 0, 1},
		{5, 1, 4, 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		double sum = binomial_cdf(rows[n].trials, rows[n].p, rows[n].successes);

		if (fabs(sum - rows[n].sum) > 1e-9)
			fail_msg("row %zu: %.17g instead of %.17g", n, sum, rows[n].sum);
	}
}

static void least_sizes_are_those_of_equal_tails(void **state) {
	static const struct {
		uint32_t per_million;
		uint64_t least, rate;
	} rows[] = {
		{500000, 6, 385},	{900000, 36, 3458},	  {990000, 368, 38031},
		{999000, 3688, 383762}, {999900, 36887, 3841075}, {999990, 368887, 38414205},
		{100000, 36, 3458},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		uint64_t least = quantile_samples_min(rows[n].per_million, 0.95);
		struct quantile_ranks ranks = {77, 77};

		assert_int_equal(least, rows[n].least);
		assert_in_range(
			quantile_samples_for_rate(rows[n].per_million, 0.95), rows[n].rate - 1,
			rows[n].rate + 1
		);
		assert_int_equal(
			quantile_interval(
				least - 1, (double)least, rows[n].per_million, 0.95, &ranks
			),
			-ERANGE
		);
		assert_int_equal(ranks.low, 77);
		assert_int_equal(
			quantile_interval(least, (double)least, rows[n].per_million, 0.95, &ranks),
			0
		);
		assert_true(ranks.low == 1 || rows[n].per_million > 500000);
		assert_true(ranks.high == least || rows[n].per_million < 500000);
	}
}

// The interval reaches the level, and no narrower interval does.
static void interval_has_its_level_and_no_more_than_it_needs(void **state) {
	static const uint32_t quantiles[] = {100000, 500000, 900000, 990000};
	static const uint64_t counts[] = {368, 1000, 12345, 20000};

	(void)state;
	for (size_t q = 0; q < 4; q++) {
		for (size_t n = 0; n < 4; n++) {
			double p = quantiles[q] / 1e6;
			struct quantile_ranks ranks;

			assert_int_equal(
				quantile_interval(
					counts[n], (double)counts[n], quantiles[q], 0.95, &ranks
				),
				0
			);
			assert_true(binomial_cdf(counts[n], p, ranks.low - 1) <= 0.025);
			assert_true(binomial_cdf(counts[n], p, ranks.low) > 0.025);
			assert_true(binomial_cdf(counts[n], p, ranks.high - 1) >= 0.975);
			assert_true(binomial_cdf(counts[n], p, ranks.high - 2) < 0.975);
		}
	}
}

static void fewer_effective_samples_widen_the_interval(void **state) {
	struct quantile_ranks wide = {0}, narrow = {0};

	(void)state;
	assert_int_equal(quantile_interval(20000, 20000, 500000, 0.95, &narrow), 0);
	assert_int_equal(quantile_interval(20000, 200, 500000, 0.95, &wide), 0);
	assert_true(wide.high - wide.low > 9 * (narrow.high - narrow.low));
	assert_true(wide.high - wide.low < 11 * (narrow.high - narrow.low));
	assert_true(wide.low >= 1 && wide.high <= 20000);
}

static void nothing_is_said_of_too_few_or_of_no_number(void **state) {
	struct quantile_ranks ranks = {77, 77};

	(void)state;
	assert_int_equal(quantile_interval(0, 1, 500000, 0.95, &ranks), -ERANGE);
	assert_int_equal(quantile_interval(20000, 0, 500000, 0.95, &ranks), -ERANGE);
	assert_int_equal(quantile_interval(20000, (double)NAN, 500000, 0.95, &ranks), -ERANGE);
	assert_int_equal(quantile_interval(20000, 5, 500000, 0.95, &ranks), -ERANGE);
	assert_int_equal(ranks.low, 77);
}

static void normal_law_and_its_quantiles_agree(void **state) {
	(void)state;
	assert_true(fabs(normal_quantile(0.975) - 1.959963984540054) < 1e-12);
	assert_true(fabs(normal_quantile(0.5)) < 1e-12);
	for (int n = 1; n < 1000; n++)
		assert_true(fabs(normal_cdf(normal_quantile(n * 1e-3)) - n * 1e-3) < 1e-12);
}

UNIT_GROUP(stats_quantile) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binomial_sums_are_those_of_scipy),
		cmocka_unit_test(least_sizes_are_those_of_equal_tails),
		cmocka_unit_test(interval_has_its_level_and_no_more_than_it_needs),
		cmocka_unit_test(fewer_effective_samples_widen_the_interval),
		cmocka_unit_test(nothing_is_said_of_too_few_or_of_no_number),
		cmocka_unit_test(normal_law_and_its_quantiles_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
