// SPDX-License-Identifier: BSD-3-Clause
#include "perf/stats/generator.h"
#include "summary.h"

#include <support/cmocka.h>

#include <errno.h>

static const uint32_t quantiles[] = {500000, 900000, 990000, 999000};

static void
one_run(struct generator *generator,
	double memory,
	uint32_t samples,
	struct run_summary *ret_summary) {
	struct run_record *record;

	assert_int_equal(run_record_create(&record), 0);
	generator_start(generator, memory);
	for (uint32_t n = 0; n < samples; n++)
		run_record_add(record, latency_of_level(generator_next(generator)));
	assert_int_equal(run_summarize(record, quantiles, 4, ret_summary), 0);
	run_record_destroy(record);
}

static void run_of_two_regimes_is_told_as_two(void **state) {
	static const struct {
		double middle, tail; // factors of the second regime, relative to the first
	} rows[] = {{1.3, 1}, {1, 3}, {1, 1}};

	(void)state;
	for (size_t r = 0; r < 3; r++) {
		struct generator generator = generator_seeded(r + 41);
		struct run_record *record;
		struct run_summary summary;

		assert_int_equal(run_record_create(&record), 0);
		for (int n = 0; n < 100000; n++) {
			double latency = (double)latency_of_level(generator_normal(&generator));

			latency *= n >= 50000 ? rows[r].middle : 1;
			if (generator_uniform(&generator) < 0.03)
				latency *= n >= 50000 ? 4 * rows[r].tail : 4;
			run_record_add(record, (uint64_t)latency);
		}
		assert_int_equal(run_summarize(record, quantiles, 4, &summary), 0);
		assert_int_equal(summary.judged_count, 3);
		assert_int_equal(summary.segment_count, r == 2 ? 1 : 2);
		assert_int_equal(summary.judgement, r == 2 ? RUN_STEADY : RUN_CHANGED);
		if (r != 2)
			assert_in_range(
				summary.segments[1].first * summary.window_samples, 47000, 53000
			);
		run_record_destroy(record);
	}
}

static void short_runs_say_what_they_do_not_know(void **state) {
	struct generator generator = generator_seeded(51);
	struct run_summary summary;
	struct run_record *record;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	assert_int_equal(run_summarize(record, quantiles, 4, &summary), -ENODATA);
	run_record_destroy(record);

	one_run(&generator, 0, 1, &summary);
	assert_int_equal(summary.quantiles[0].note, QUANTILE_TOO_FEW);
	assert_int_equal(summary.judgement, RUN_TOO_SHORT_TO_JUDGE);
	one_run(&generator, 0, 300, &summary);
	assert_int_equal(summary.quantiles[0].note, QUANTILE_ROUGH);
	assert_int_equal(summary.quantiles[2].note, QUANTILE_TOO_FEW);
	assert_int_equal(summary.quantiles[2].high, 0);
	one_run(&generator, 0, 80000, &summary);
	assert_int_equal(summary.quantiles[2].note, QUANTILE_SOUND);
	assert_int_equal(summary.quantiles[3].note, QUANTILE_ROUGH);
	assert_string_equal(quantile_note_text(QUANTILE_SOUND), "");
	assert_string_equal(run_judgement_text(RUN_STEADY), "no change found");
}

static void constant_latency_has_an_interval_of_one_value(void **state) {
	struct run_record *record;
	struct run_summary summary;

	(void)state;
	assert_int_equal(run_record_create(&record), 0);
	for (int n = 0; n < 100000; n++)
		run_record_add(record, 1234);
	assert_int_equal(run_summarize(record, quantiles, 4, &summary), 0);
	for (int q = 0; q < 4; q++) {
		assert_int_equal(summary.quantiles[q].low, 1234);
		assert_int_equal(summary.quantiles[q].high, 1234);
	}
	assert_int_equal(summary.judgement, RUN_STEADY);
	run_record_destroy(record);
}

// A clock with steps of 40 ns, as on most machines that are not x86. Buckets are wider than a step.
static uint64_t stepped_time(struct generator *generator, double deviation) {
	return 40 * (uint64_t)(2500.5 + deviation / 40 * generator_normal(generator));
}

static void quantiles_of_a_run_that_is_kept_whole_are_its_samples(void **state) {
	static const double deviations[] = {30, 300, 30000};

	(void)state;
	for (size_t r = 0; r < sizeof(deviations) / sizeof(deviations[0]); r++) {
		struct generator generator = generator_seeded(500 + r);
		struct run_summary summary;
		struct run_record *record;
		struct run_sorted sorted;

		assert_int_equal(run_record_create(&record), 0);
		for (int n = 0; n < 50000; n++)
			run_record_add(record, stepped_time(&generator, deviations[r] / 4));
		assert_int_equal(run_summarize(record, quantiles, 4, &summary), 0);
		assert_int_equal(run_record_sorted(record, &sorted), 0);
		assert_int_equal(sorted.count, 50000);
		for (int q = 0; q < 4; q++) {
			const struct quantile_summary *told = &summary.quantiles[q];

			assert_int_equal(told->value, sorted.samples[quantiles[q] / 20 - 1]);
			assert_in_range(told->value, told->bucket.lowest, told->bucket.highest);
			assert_true(told->low <= told->value && told->value <= told->high);
			assert_true(told->low % 40 == 0 && told->high % 40 == 0);
		}
		run_record_destroy(record);
	}
}

// Two cases: a run longer than the raw samples kept, and a run thinned out to a few wide buckets.
// The position within a bucket comes from the kept samples, and is imprecise if these are few.
static void intervals_narrower_than_a_bucket_hold_the_truth(void **state) {
	static const struct {
		uint32_t samples, seeds, missed_most;
		double deviation;
		bool thinned;
	} rows[] = {{500000, 20, 4, 0.01, false}, {60000, 60, 8, 0.003, true}};

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		uint32_t missed = 0;

		for (uint32_t seed = 0; seed < rows[r].seeds; seed++) {
			struct generator generator = generator_seeded(600 + seed);
			const struct quantile_summary *told;
			struct run_summary summary;
			struct run_record *record;

			assert_int_equal(run_record_create(&record), 0);
			for (uint32_t n = 0; n < rows[r].samples; n++)
				run_record_add(
					record, (uint64_t
						)(1e6 * (1 + rows[r].deviation *
								     generator_normal(&generator)))
				);
			while (rows[r].thinned && (run_record_thin_blocks(record, 16) ||
						   run_record_coarsen_histogram(record, 5)))
				;
			assert_int_equal(run_summarize(record, quantiles, 4, &summary), 0);
			told = &summary.quantiles[0];
			assert_true(told->low <= told->value && told->value <= told->high);
			assert_true(
				told->high - told->low < told->bucket.highest - told->bucket.lowest
			);
			missed += told->low > 1000000 || told->high < 1000000;
			run_record_destroy(record);
		}
		assert_in_range(missed, 0, rows[r].missed_most);
	}
}

// A stall makes 300 samples in a row slow, once in 200,000 samples. The raw samples kept from
// 4,000,000 contain hardly any of them.
static void rare_bursts_are_in_the_intervals_of_long_runs(void **state) {
	const double length = 300, distance = 200000, share = length / (length + distance);
	uint32_t held[2] = {0}, known[2] = {0}, seeds = 8;

	(void)state;
	for (uint32_t seed = 0; seed < seeds; seed++) {
		struct generator generator = generator_seeded(700 + seed);
		struct run_summary summary;
		struct run_record *record;
		bool slow = false;

		assert_int_equal(run_record_create(&record), 0);
		for (int n = 0; n < 4000000; n++) {
			double part = generator_uniform(&generator);

			if (generator_uniform(&generator) < (slow ? 1 / length : 1 / distance))
				slow = !slow;
			run_record_add(
				record, (uint64_t)(slow ? 1e6 * (1 + part) : 1e5 + 2e4 * part)
			);
		}
		assert_int_equal(run_summarize(record, quantiles, 4, &summary), 0);
		for (int q = 0; q < 2; q++) {
			const struct quantile_summary *told = &summary.quantiles[2 + q];
			double truth =
				q == 0 ? 1e5 + 2e4 * 0.99 / (1 - share) : 1e6 * (2 - 0.001 / share);

			known[q] += told->note != QUANTILE_TOO_FEW;
			held[q] += (double)told->low <= truth && truth <= (double)told->high;
		}
		run_record_destroy(record);
	}
	for (int q = 0; q < 2; q++) {
		assert_in_range(known[q], seeds - 1, seeds);
		assert_in_range(held[q], known[q] - 2, seeds);
	}
}

// Thinned out for a small file, a run gets the same judgement as the whole run, or none. If samples
// are correlated for longer than a block, nothing is claimed.
static void thinned_runs_are_judged_as_whole_ones_or_not_at_all(void **state) {
	static const struct {
		double memory;
		uint32_t block_samples;
		bool judged;
	} rows[] = {{0.5, 32, true}, {0.9, 64, true}, {0.97, 256, true}, {0.99, 32, false}};

	(void)state;
	for (size_t r = 0; r < 2 * sizeof(rows) / sizeof(rows[0]); r++) {
		bool changes = r % 2 == 1;
		uint32_t seeds = 4, told = 0;

		for (uint32_t seed = 0; seed < seeds; seed++) {
			struct generator generator = generator_seeded(300 + seed);
			struct run_record *record;
			struct run_summary summary;

			assert_int_equal(run_record_create(&record), 0);
			generator_start(&generator, rows[r / 2].memory);
			for (int n = 0; n < 200000; n++) {
				uint64_t ns = latency_of_level(generator_next(&generator));

				run_record_add(record, changes && n >= 100000 ? ns + ns / 8 : ns);
			}
			while (run_record_thin_blocks(record, rows[r / 2].block_samples) ||
			       run_record_thin_windows(record, SEGMENTS_WINDOWS_MIN))
				;
			assert_int_equal(run_summarize(record, quantiles, 4, &summary), 0);
			assert_int_equal(summary.judged_count > 0, rows[r / 2].judged);
			if (!rows[r / 2].judged)
				assert_int_equal(summary.quantiles[0].note, QUANTILE_UNRESOLVED);
			told += summary.judgement == RUN_CHANGED;
			run_record_destroy(record);
		}
		assert_int_equal(told, rows[r / 2].judged && changes ? seeds : 0);
	}
}

// The contents of a long run in a small file: 64 blocks. Regression: blocks of 64 samples or fewer
// were once too short to separate a change from correlated samples.
static void a_change_is_found_by_short_blocks(void **state) {
	static const uint32_t floors[] = {128, 64, 32};

	(void)state;
	for (size_t r = 0; r < 2 * sizeof(floors) / sizeof(floors[0]); r++) {
		struct generator generator = generator_seeded(400 + r);
		struct run_record *record;
		struct run_summary summary;
		bool changes = r % 2 == 1;

		assert_int_equal(run_record_create(&record), 0);
		for (int n = 0; n < 600000; n++) {
			uint64_t ns = latency_of_level(generator_normal(&generator));

			run_record_add(record, changes && n >= 300000 ? ns + ns / 2 : ns);
		}
		while (run_record_thin_blocks(record, floors[r / 2]) ||
		       run_record_thin_windows(record, SEGMENTS_WINDOWS_MIN))
			;
		assert_int_equal(run_summarize(record, quantiles, 4, &summary), 0);
		assert_int_equal(summary.judgement, changes ? RUN_CHANGED : RUN_STEADY);
		assert_int_equal(summary.segment_count, changes ? 2 : 1);
		run_record_destroy(record);
	}
}

UNIT_GROUP(stats_summary) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_of_two_regimes_is_told_as_two),
		cmocka_unit_test(short_runs_say_what_they_do_not_know),
		cmocka_unit_test(constant_latency_has_an_interval_of_one_value),
		cmocka_unit_test(quantiles_of_a_run_that_is_kept_whole_are_its_samples),
		cmocka_unit_test(intervals_narrower_than_a_bucket_hold_the_truth),
		cmocka_unit_test(rare_bursts_are_in_the_intervals_of_long_runs),
		cmocka_unit_test(thinned_runs_are_judged_as_whole_ones_or_not_at_all),
		cmocka_unit_test(a_change_is_found_by_short_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
