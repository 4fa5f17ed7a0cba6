// SPDX-License-Identifier: BSD-3-Clause
#include "indicator.h"
#include "perf/stats/generator.h"

#include <support/cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// Compute tau of one block by its definition, with as many lags as the fast code used.
static double slow_tau(const uint64_t *samples, uint32_t count, uint64_t bound, uint32_t lags) {
	double share = 0, variance = 0, sum = 0, last = INFINITY;

	for (uint32_t n = 0; n < count; n++)
		share += samples[n] <= bound;
	share /= count;
	for (uint32_t lag = 0; lag < lags; lag += 2) {
		double pair = 0;

		for (uint32_t more = lag; more < lag + 2; more++) {
			double products = 0;

			for (uint32_t n = 0; n + more < count; n++)
				products += ((samples[n] <= bound) - share) *
					    ((samples[n + more] <= bound) - share);
			pair += products / (count - more);
			variance = more == 0 ? products / count : variance;
		}
		last = fmin(last, pair);
		sum += last;
	}
	return fmax(1, 2 * sum / variance - 1);
}

static void shifted_bits_give_the_sum_of_the_definition(void **state) {
	static const uint32_t counts[] = {2, 3, 63, 64, 65, 128, 129, 1000, 4097};
	static uint64_t samples[4097];

	(void)state;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct generator generator = generator_seeded(c);
		struct indicator_block block = {samples, counts[c]};
		struct indicator_time time;
		double share = 0;

		generator_start(&generator, 0.8);
		for (uint32_t n = 0; n < counts[c]; n++) {
			samples[n] = latency_of_level(generator_next(&generator));
			share += samples[n] <= 1000000;
		}
		assert_int_equal(
			indicator_measure(&block, 1, 1000000, share / counts[c], &time), 0
		);
		if (share > 0 && share < counts[c])
			assert_true(
				fabs(time.tau - slow_tau(samples, counts[c], 1000000, time.lags)) <
				1e-6
			);
	}
}

// The median's indicator of a process with correlation r^k at lag k has correlation (2/pi)
// asin(r^k).
static double true_tau_of_median(double memory) {
	double sum = 1, power = memory;

	for (int lag = 1; lag < 100000 && power > 1e-12; lag++, power *= memory)
		sum += 2 * 2 / 3.14159265358979323846 * asin(power);
	return sum;
}

static void tau_of_a_known_process_is_found(void **state) {
	static const double memories[] = {0, 0.5, 0.9, 0.99};
	static uint64_t samples[200000];

	(void)state;
	for (size_t m = 0; m < 4; m++) {
		struct generator generator = generator_seeded(m + 11);
		struct indicator_block block = {samples, 200000};
		struct indicator_time time;
		double truth = true_tau_of_median(memories[m]);
		double share = 0;

		generator_start(&generator, memories[m]);
		for (uint32_t n = 0; n < block.count; n++) {
			samples[n] = latency_of_level(generator_next(&generator));
			share += samples[n] <= 1000000;
		}
		assert_int_equal(
			indicator_measure(&block, 1, 1000000, share / block.count, &time), 0
		);
		assert_true(time.resolved);
		if (time.tau < truth * 0.75 || time.tau > truth * 1.33)
			fail_msg("memory %g: tau %g, truly %g", memories[m], time.tau, truth);
	}
}

static void blocks_pool_to_what_the_whole_tells(void **state) {
	static uint64_t samples[262144];
	struct indicator_block whole = {samples, 262144}, parts[128];
	struct generator generator = generator_seeded(5);
	struct indicator_time of_whole, of_parts;
	double share = 0;

	(void)state;
	generator_start(&generator, 0.9);
	for (uint32_t n = 0; n < whole.count; n++) {
		samples[n] = latency_of_level(generator_next(&generator));
		share += samples[n] <= 1200000;
	}
	for (uint32_t n = 0; n < 128; n++)
		parts[n] = (struct indicator_block){&samples[2048 * n], 2048};
	share /= whole.count;
	assert_int_equal(indicator_measure(&whole, 1, 1200000, share, &of_whole), 0);
	assert_int_equal(indicator_measure(parts, 128, 1200000, share, &of_parts), 0);
	assert_true(fabs(of_whole.tau - of_parts.tau) < 0.1 * of_whole.tau);
}

static void slow_change_is_told_as_unresolved(void **state) {
	uint64_t samples[64];
	struct indicator_block block = {samples, 64};
	struct indicator_time time;

	(void)state;
	for (uint64_t n = 0; n < 64; n++)
		samples[n] = 1; // all samples in the state that is rare in the run
	assert_int_equal(indicator_measure(&block, 1, 1, 0.25, &time), 0);
	assert_false(time.resolved);
	assert_true(time.tau > 50);
}

static void samples_of_one_side_do_not_depend_on_each_other(void **state) {
	uint64_t samples[100] = {0};
	struct indicator_block block = {samples, 100};
	struct indicator_time time;

	(void)state;
	assert_int_equal(indicator_measure(&block, 1, 7, 1, &time), 0);
	assert_true(time.tau <= 1 && time.tau >= 1);
}

static void nothing_is_measured_of_less_than_two(void **state) {
	uint64_t sample = 7;
	struct indicator_block block = {&sample, 1};
	struct indicator_time time = {.tau = 77};

	(void)state;
	assert_int_equal(indicator_measure(&block, 0, 7, 1, &time), -EINVAL);
	assert_int_equal(indicator_measure(&block, 1, 7, 1, &time), -EINVAL);
	assert_true(time.tau > 76);
}

// Independent samples, and a process whose tau at p90 is 10.1.
static void windows_tell_the_time_that_blocks_do(void **state) {
	static const struct {
		double memory, least, most;
	} rows[] = {{0, 0.8, 1.25}, {0.9, 8, 12.5}};

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct generator generator = generator_seeded(31 + r);
		uint64_t counts[500] = {0};
		double error, tau;

		generator_start(&generator, rows[r].memory);
		for (uint32_t n = 0; n < 500 * 1000; n++)
			counts[n / 1000] += generator_next(&generator) <= 1.2815515655;
		tau = indicator_measure_windows(counts, 500, 1000, 1, &error);
		assert_true(tau > rows[r].least && tau < rows[r].most);
		assert_true(error > 0.06 && error < 0.07);
	}
}

static void windows_with_all_on_one_side_tell_nothing(void **state) {
	uint64_t counts[100] = {0};
	double error;

	(void)state;
	assert_true(indicator_measure_windows(counts, 100, 64, 1, &error) == 0);
	for (int n = 0; n < 100; n++)
		counts[n] = 64;
	assert_true(indicator_measure_windows(counts, 100, 64, 1, &error) == 0);
}

UNIT_GROUP(stats_indicator) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shifted_bits_give_the_sum_of_the_definition),
		cmocka_unit_test(tau_of_a_known_process_is_found),
		cmocka_unit_test(blocks_pool_to_what_the_whole_tells),
		cmocka_unit_test(slow_change_is_told_as_unresolved),
		cmocka_unit_test(samples_of_one_side_do_not_depend_on_each_other),
		cmocka_unit_test(nothing_is_measured_of_less_than_two),
		cmocka_unit_test(windows_tell_the_time_that_blocks_do),
		cmocka_unit_test(windows_with_all_on_one_side_tell_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
