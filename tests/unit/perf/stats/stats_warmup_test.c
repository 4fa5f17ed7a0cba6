// SPDX-License-Identifier: BSD-3-Clause
#include "perf/stats/generator.h"
#include "warmup.h"

#include <support/cmocka.h>

#include <math.h>

#define RUNS 400

static void fill(struct generator *generator, double settles, uint64_t *samples, uint32_t count) {
	for (uint32_t n = 0; n < count; n++) {
		double extra = settles > 0 ? 3e6 * exp(-(double)n / settles) : 0;

		samples[n] = latency_of_level(generator_next(generator)) + (uint64_t)extra;
	}
}

static uint32_t count_warm(double memory, double settles, uint32_t count) {
	uint64_t samples[WARMUP_SAMPLES_MAX];
	uint32_t warm = 0;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct generator generator = generator_seeded(seed);
		struct warmup_check look;

		generator_start(&generator, memory);
		fill(&generator, settles, samples, count);
		assert_int_equal(warmup_check(samples, count, &look), 0);
		assert_true(look.p >= 0 && look.p <= 1);
		warm += look.warm;
	}
	return warm;
}

static void a_run_that_is_settled_is_warm_as_often_as_the_level_says(void **state) {
	uint32_t warm = count_warm(0, 0, WARMUP_SAMPLES_MIN);

	(void)state;
	// 1 % of 400 is four; more than twelve occurs once in 3,000 times.
	assert_in_range(warm, RUNS - 12, RUNS - 1);
}

static void a_run_that_still_settles_is_not_warm(void **state) {
	(void)state;
	assert_int_equal(count_warm(0, 300, 512), 0);
	assert_int_equal(count_warm(0, 2000, 4096), 0);
}

static void a_run_that_has_settled_is_warm_whatever_went_before(void **state) {
	(void)state;
	assert_true(count_warm(0, 50, 2048) >= RUNS - 12);
}

static void samples_that_depend_on_each_other_are_taken_for_warm_less_often(void **state) {
	(void)state;
	assert_true(count_warm(0.9, 0, 1024) < count_warm(0, 0, 1024));
}

static void equal_samples_are_warm(void **state) {
	uint64_t samples[WARMUP_SAMPLES_MIN];
	struct warmup_check look;

	(void)state;
	for (uint32_t n = 0; n < WARMUP_SAMPLES_MIN; n++)
		samples[n] = 1000;
	assert_int_equal(warmup_check(samples, WARMUP_SAMPLES_MIN, &look), 0);
	assert_true(look.warm);
}

UNIT_GROUP(stats_warmup) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_that_is_settled_is_warm_as_often_as_the_level_says),
		cmocka_unit_test(a_run_that_still_settles_is_not_warm),
		cmocka_unit_test(a_run_that_has_settled_is_warm_whatever_went_before),
		cmocka_unit_test(samples_that_depend_on_each_other_are_taken_for_warm_less_often),
		cmocka_unit_test(equal_samples_are_warm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
