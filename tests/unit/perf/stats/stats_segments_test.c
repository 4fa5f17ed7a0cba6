// SPDX-License-Identifier: BSD-3-Clause
#include "perf/stats/generator.h"
#include "ranks.h"
#include "segments.h"

#include <support/cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#define WINDOWS 120

static void equal_values_share_a_rank(void **state) {
	static const double values[] = {3, 1, 3, 2, 3};
	static const double ranks[] = {4, 1, 4, 2, 4};
	double scratch[5], found[5];

	(void)state;
	ranks_compute(values, 5, scratch, found);
	for (int n = 0; n < 5; n++)
		assert_true(fabs(found[n] - ranks[n]) < 1e-12);
}

static void tail_is_that_of_kolmogorov(void **state) {
	static const struct {
		double x, tail; // tail: scipy.stats.kstwobign.sf(x)
	} rows[] = {
		{0, 1},		  {0.3, 0.999990694},	{0.5, 0.963945244},
		{1, 0.269999672}, {1.36, 0.0494858768}, {2, 0.000670925256},
		{30, 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_true(fabs(kolmogorov_tail(rows[n].x) - rows[n].tail) < 1e-8);
}

struct regime {
	uint32_t windows;
	double middle, tail; // means of the two series
};

static uint32_t
series_fill(struct generator *generator, const struct regime *regimes, double series[2][WINDOWS]) {
	uint32_t count = 0;

	for (; regimes->windows > 0; regimes++) {
		for (uint32_t n = 0; n < regimes->windows; n++, count++) {
			series[0][count] = regimes->middle + generator_normal(generator);
			series[1][count] = regimes->tail + 5 * generator_normal(generator);
		}
	}
	return count;
}

static void regimes_are_told_apart_where_they_change(void **state) {
	static const struct regime runs[][4] = {
		{{40, 10, 50}, {40, 14, 50}},		   // the median rises
		{{30, 10, 50}, {60, 10, 80}},		   // only the tail rises
		{{40, 10, 50}, {40, 5, 50}, {40, 10, 50}}, // a change and its return
		{{100, 10, 50}},
	};
	static const int expected[] = {2, 2, 3, 1};

	(void)state;
	for (size_t r = 0; r < 4; r++) {
		struct generator generator = generator_seeded(r + 3);
		double values[2][WINDOWS];
		const double *series[2] = {values[0], values[1]};
		struct segment segments[8];
		uint32_t count = series_fill(&generator, runs[r], values), at = 0;

		assert_int_equal(segments_find(series, 2, count, 0.02, segments, 8), expected[r]);
		for (int n = 0; n < expected[r]; n++) {
			assert_int_equal(segments[n].first, at);
			assert_true(fabs((double)segments[n].count - runs[r][n].windows) <= 2 * 2);
			at += segments[n].count;
		}
		assert_int_equal(at, count);
	}
}

// The noise is slower than a window, so neighbouring windows are correlated.
static void slow_noise_is_no_change(void **state) {
	static const double memories[] = {0, 0.3, 0.6};

	(void)state;
	for (size_t m = 0; m < 3; m++) {
		struct generator generator = generator_seeded(m + 21);
		uint32_t cut = 0;

		for (int run = 0; run < 400; run++) {
			double values[WINDOWS];
			const double *series = values;
			struct segment segments[WINDOWS];

			generator_start(&generator, memories[m]);
			for (int n = 0; n < WINDOWS; n++)
				values[n] = generator_next(&generator);
			cut += segments_find(&series, 1, WINDOWS, 0.02, segments, WINDOWS) > 1;
		}
		// 5 % of 400 is 20; the level of the test is 2 %.
		if (cut > 20)
			fail_msg("memory %g: %u of 400 were cut", memories[m], cut);
	}
}

// After a correct cut the parts are searched again. That must not add more false cuts than in a
// whole run.
static void parts_of_a_cut_run_are_cut_no_more_often(void **state) {
	struct generator generator = generator_seeded(77);
	uint32_t more = 0, fewer = 0;

	(void)state;
	for (int run = 0; run < 1000; run++) {
		static const struct regime regimes[] = {
			{40, 10, 50}, {40, 16, 50}, {40, 10, 50}, {0, 0, 0}};
		double values[2][WINDOWS];
		const double *series[2] = {values[0], values[1]};
		struct segment segments[WINDOWS];
		uint32_t count = series_fill(&generator, regimes, values);
		int found = segments_find(series, 2, count, 0.02, segments, WINDOWS);

		fewer += found < 3;
		more += found > 3;
	}
	if (more > 20 || fewer > 10)
		fail_msg("of 1,000 %u were cut once more, %u less", more, fewer);
}

static void steps_without_noise_are_cut(void **state) {
	double values[60];
	const double *series = values;
	struct segment segments[4];

	(void)state;
	for (int n = 0; n < 60; n++)
		values[n] = n < 25 ? 7 : 9;
	assert_int_equal(segments_find(&series, 1, 60, 0.02, segments, 4), 2);
	assert_int_equal(segments[0].count, 25);
	for (int n = 0; n < 60; n++)
		values[n] = 7;
	assert_int_equal(segments_find(&series, 1, 60, 0.02, segments, 4), 1);
}

static void few_windows_are_not_judged(void **state) {
	double values[SEGMENTS_WINDOWS_MIN] = {0};
	const double *series = values;
	struct segment segments[4];

	(void)state;
	assert_int_equal(
		segments_find(&series, 1, SEGMENTS_WINDOWS_MIN - 1, 0.02, segments, 4), -ERANGE
	);
	assert_int_equal(
		segments_find(&series, 1, SEGMENTS_WINDOWS_MIN, 0.02, segments, 0), -E2BIG
	);
}

UNIT_GROUP(stats_segments) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_values_share_a_rank),
		cmocka_unit_test(tail_is_that_of_kolmogorov),
		cmocka_unit_test(regimes_are_told_apart_where_they_change),
		cmocka_unit_test(slow_noise_is_no_change),
		cmocka_unit_test(parts_of_a_cut_run_are_cut_no_more_often),
		cmocka_unit_test(steps_without_noise_are_cut),
		cmocka_unit_test(few_windows_are_not_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
