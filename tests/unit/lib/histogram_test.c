// SPDX-License-Identifier: BSD-3-Clause
// Tests of recording, percentiles, moments and saturation.
#include "lib/histogram_support.h"

#include <lib/histogram.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PERCENTILES_MAX 2000

static int compare_values(const void *left, const void *right) {
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void a_shape_out_of_bounds_is_einval_and_leaves_the_output(void **state) {
	static const struct histogram_shape rows[] = {
		{1, HOUR_NS, 0, 32},
		{1, HOUR_NS, HISTOGRAM_PRECISION_BITS_MAX + 1, 32},
		{1, HOUR_NS, 7, 16},
		{1, HOUR_NS, 7, 0},
		{5, 5, 7, 32},
		{6, 5, 7, 32},
		{1, HISTOGRAM_VALUE_MAX + 1, 7, 32},
		{1, UINT64_MAX, 7, 64},
	};
	struct histogram *histogram = (struct histogram *)state;

	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		assert_int_equal(histogram_size_bytes(&rows[n]), 0);
		assert_int_equal(histogram_create(&rows[n], &histogram), -EINVAL);
		assert_ptr_equal(histogram, state);
	}
	assert_null(histogram_destroy(NULL));
}

static void memory_is_what_the_header_says(void **state) {
	static const struct {
		struct histogram_shape shape;
		size_t bytes_max;
	} rows[] = {
		{{1, HOUR_NS, 7, 32}, 9700},
		{{1, HOUR_NS, 7, 64}, 19400},
		{{1, HOUR_NS, 10, 32}, 69100},
		{{0, HISTOGRAM_VALUE_MAX, HISTOGRAM_PRECISION_BITS_MAX, 64}, 2400000},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++)
		assert_in_range(histogram_size_bytes(&rows[n].shape), 1, rows[n].bytes_max);
	assert_true(sizeof(struct histogram_log2) <= 256);
}

static void an_empty_histogram_answers_zero(void **state) {
	struct histogram *histogram = created(&histogram_shape_latency);
	struct histogram_summary summary;

	(void)state;
	assert_int_equal(histogram_shape(histogram)->value_max, HOUR_NS);
	histogram_summarize(histogram, &summary);
	assert_int_equal(summary.count | summary.min | summary.max, 0);
	assert_true(summary.mean == 0 && summary.stdev == 0);
	assert_int_equal(histogram_percentile(histogram, 0), 0);
	assert_int_equal(histogram_percentile(histogram, 500000), 0);
	assert_int_equal(histogram_percentile(histogram, MILLION), 0);
	histogram_destroy(histogram);
}

// Fill in steps of 1,000 ppm, and of 10 ppm above 99 %, where tails are read. Returns the count.
static size_t percentiles_fill(uint32_t *ret_per_million) {
	size_t count = 0;

	for (uint32_t ppm = 0; ppm < 990000; ppm += 1000)
		ret_per_million[count++] = ppm;
	for (uint32_t ppm = 990000; ppm <= MILLION; ppm += 10)
		ret_per_million[count++] = ppm;
	return count;
}

static void
check_percentiles(const struct histogram *histogram, const uint64_t *sorted, size_t count) {
	static uint32_t per_million[PERCENTILES_MAX];
	static uint64_t got[PERCENTILES_MAX];
	const struct histogram_shape *shape = histogram_shape(histogram);
	size_t percentiles = percentiles_fill(per_million);

	histogram_percentiles(histogram, per_million, percentiles, got);
	assert_true(got[0] == sorted[0]);
	assert_true(got[percentiles - 1] == sorted[count - 1]);
	for (size_t n = 1; n < percentiles - 1; n++) {
		size_t rank = (count * per_million[n] + MILLION - 1) / MILLION;
		uint64_t exact = clamped(shape, sorted[rank - 1]);

		if (!within_error(got[n], exact, shape->precision_bits))
			fail_msg(
				"%u ppm of %zu: %lu for %lu", per_million[n], count, got[n], exact
			);
	}
}

static void every_percentile_is_within_the_stated_error_of_an_exact_sort(void **state) {
	static uint64_t values[VALUES_MAX];

	(void)state;
	for (size_t d = 0; d < DISTRIBUTION_COUNT; d++) {
		for (size_t s = 0; s < COUNT_OF(shapes); s++) {
			struct histogram *histogram = created(&shapes[s]);
			size_t count = VALUES_MAX - d * 1111 - s;

			values_fill(&distributions[d], values, count);
			record_all(histogram, values, count);
			qsort(values, count, sizeof(values[0]), compare_values);
			check_percentiles(histogram, values, count);
			histogram_destroy(histogram);
		}
	}
}

// One value between two distant ones. Its percentile is the value that its bucket reports; minimum
// and maximum do not clip it.
static void the_error_holds_at_both_edges_of_every_bucket(void **state) {
	(void)state;
	for (size_t s = 0; s < COUNT_OF(shapes); s++) {
		struct histogram *histogram = created(&shapes[s]);
		uint64_t step = 1ULL << (shapes[s].precision_bits - 1);

		for (uint64_t octave = step; octave < shapes[s].value_max / 2; octave *= 2) {
			for (uint64_t n = 0; n < 2 * step; n += 1 + step / 8) {
				uint64_t edge = octave + octave / step * n / 2;
				uint64_t value = clamped(&shapes[s], edge - (n & 1));

				histogram_clear(histogram);
				histogram_record(histogram, 0);
				histogram_record(histogram, value);
				histogram_record(histogram, UINT64_MAX);
				assert_true(within_error(
					histogram_percentile(histogram, 500000), value,
					shapes[s].precision_bits
				));
			}
		}
		histogram_destroy(histogram);
	}
}

static void moments_are_those_of_the_values_not_of_the_buckets(void **state) {
	static uint64_t values[VALUES_MAX];

	(void)state;
	for (size_t d = 0; d < DISTRIBUTION_COUNT; d++) {
		struct histogram *histogram = created(&histogram_shape_latency);
		long double sum = 0, squares = 0, mean;
		struct histogram_summary summary;
		uint64_t min = UINT64_MAX, max = 0;

		values_fill(&distributions[d], values, VALUES_MAX);
		record_all(histogram, values, VALUES_MAX);
		for (size_t n = 0; n < VALUES_MAX; n++) {
			min = values[n] < min ? values[n] : min;
			max = values[n] > max ? values[n] : max;
			sum += clamped(&histogram_shape_latency, values[n]);
		}
		mean = sum / VALUES_MAX;
		for (size_t n = 0; n < VALUES_MAX; n++) {
			long double off = clamped(&histogram_shape_latency, values[n]) - mean;

			squares += off * off;
		}
		histogram_summarize(histogram, &summary);
		assert_int_equal(summary.count, VALUES_MAX);
		assert_true(summary.min == min && summary.max == max);
		assert_true(fabsl(summary.mean - mean) <= mean * 1e-12L);
		assert_true(
			fabsl(summary.stdev - sqrtl(squares / VALUES_MAX)) <= summary.stdev * 1e-9L
		);
		histogram_destroy(histogram);
	}
}

static void a_small_deviation_beside_a_large_mean_is_not_lost(void **state) {
	struct histogram *histogram = created(&histogram_shape_latency);
	struct histogram_summary summary;

	(void)state;
	for (int n = 0; n < 100000; n++)
		histogram_record(histogram, 3000000000000 + (n & 1));
	histogram_summarize(histogram, &summary);
	assert_true(summary.stdev == 0.5);
	histogram_destroy(histogram);
}

static void values_out_of_range_are_clamped_and_counted(void **state) {
	static const struct histogram_shape shape = {100, 1000, 7, 32};
	struct histogram *histogram = created(&shape);
	struct histogram_summary summary;

	(void)state;
	record_all(histogram, (uint64_t[]){0, 99, 100, 1000, 1001, UINT64_MAX}, 6);
	histogram_summarize(histogram, &summary);
	assert_int_equal(summary.count, 6);
	assert_int_equal(summary.under, 2);
	assert_int_equal(summary.over, 2);
	assert_int_equal(summary.min, 0);
	assert_true(summary.max == UINT64_MAX);
	assert_true(summary.mean == (3 * 100 + 3 * 1000) / 6.0);
	assert_true(within_error(histogram_percentile(histogram, 400000), 100, 7));
	assert_true(within_error(histogram_percentile(histogram, 900000), 1000, 7));
	histogram_destroy(histogram);
}

static void a_full_counter_stays_and_further_records_count_as_lost(void **state) {
	struct histogram *histogram = nearly_full(&histogram_shape_latency);
	struct histogram_summary summary;

	(void)state;
	assert_int_equal(histogram_merge(histogram, histogram), 0);
	histogram_record(histogram, 1000);
	histogram_record(histogram, 2000);
	histogram_summarize(histogram, &summary);
	assert_true(summary.count == (1ULL << 32) + 2);
	assert_int_equal(summary.lost, 2); // 2^32 + 1 records of 1000; the counter holds 2^32 - 1
	assert_int_equal(summary.max, 2000);
	assert_true(within_error(histogram_percentile(histogram, 500000), 1000, 7));
	histogram_destroy(histogram);
}

static void a_wide_counter_goes_on_where_a_narrow_one_is_full(void **state) {
	static const struct histogram_shape wide = {1, HOUR_NS, 7, 64};
	struct histogram *histogram = nearly_full(&wide);
	struct histogram_summary summary;

	(void)state;
	for (int n = 31; n < 63; n++)
		assert_int_equal(histogram_merge(histogram, histogram), 0);
	histogram_summarize(histogram, &summary);
	assert_true(summary.count == 1ULL << 63);
	assert_int_equal(summary.lost, 0);
	assert_int_equal(histogram_merge(histogram, histogram), -EOVERFLOW);
	histogram_summarize(histogram, &summary);
	assert_true(summary.count == 1ULL << 63);
	assert_true(summary.mean == 1000 && summary.stdev == 0);
	histogram_destroy(histogram);
}

static void a_full_sum_of_squares_makes_the_deviation_unknown(void **state) {
	static const struct histogram_shape wide = {1, HISTOGRAM_VALUE_MAX, 7, 64};
	struct histogram *histogram = created(&wide);
	struct histogram_summary summary;

	(void)state;
	histogram_record(histogram, HISTOGRAM_VALUE_MAX);
	for (int n = 0; n < 33; n++)
		assert_int_equal(histogram_merge(histogram, histogram), 0);
	histogram_summarize(histogram, &summary);
	assert_true(isnan(summary.stdev));
	assert_true(summary.mean == (double)HISTOGRAM_VALUE_MAX);
	histogram_destroy(histogram);
}

static void record_is_found_by_its_rank(void **state) {
	struct histogram *histogram;
	struct histogram_span span = {.lowest = 77};

	(void)state;
	assert_int_equal(histogram_create(&histogram_shape_latency, &histogram), 0);
	assert_int_equal(histogram_at_rank(histogram, 1, &span), -ERANGE);
	for (uint64_t n = 0; n < 10; n++)
		histogram_record(histogram, n < 4 ? 50 : 100000 + n);
	assert_int_equal(histogram_at_rank(histogram, 0, &span), -ERANGE);
	assert_int_equal(histogram_at_rank(histogram, 11, &span), -ERANGE);
	assert_int_equal(span.lowest, 77);
	assert_int_equal(histogram_at_rank(histogram, 4, &span), 0);
	assert_true(span.lowest == 50 && span.highest == 50 && span.before == 0 && span.count == 4);
	assert_int_equal(histogram_at_rank(histogram, 5, &span), 0);
	assert_true(
		span.lowest <= 100004 && span.highest == 100009
	); // the upper end of the bucket is cut to the maximum
	assert_true(span.before == 4 && span.count == 6);
	histogram_destroy(histogram);
}

static void records_are_counted_up_to_the_bucket_of_a_value(void **state) {
	static const struct {
		uint64_t value, before, count;
	} rows[] = {{0, 0, 0},	    {49, 0, 0},	     {50, 0, 4},	 {51, 4, 0},
		    {100000, 4, 6}, {200000, 10, 0}, {UINT64_MAX, 10, 0}};
	struct histogram *histogram;

	(void)state;
	assert_int_equal(histogram_create(&histogram_shape_latency, &histogram), 0);
	for (uint64_t n = 0; n < 10; n++)
		histogram_record(histogram, n < 4 ? 50 : 100000 + n);
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		uint64_t before, count;

		histogram_at_value(histogram, rows[n].value, &before, &count);
		assert_int_equal(before, rows[n].before);
		assert_int_equal(count, rows[n].count);
	}
	histogram_destroy(histogram);
}

static void recording_so_many_times_is_as_recording_as_often(void **state) {
	static const struct histogram_shape shape = {10, 100000, 7, 32};
	static const struct {
		uint64_t value, times;
	} rows[] = {{500, 3}, {500, 0}, {1, 2}, {70000, 1}, {900000, 5}};
	struct histogram *once, *often;
	struct histogram_summary of_once, of_often;

	(void)state;
	assert_int_equal(histogram_create(&shape, &once), 0);
	assert_int_equal(histogram_create(&shape, &often), 0);
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		histogram_record_times(once, rows[n].value, rows[n].times);
		for (uint64_t time = 0; time < rows[n].times; time++)
			histogram_record(often, rows[n].value);
	}
	histogram_summarize(once, &of_once);
	histogram_summarize(often, &of_often);
	assert_memory_equal(&of_once, &of_often, sizeof(of_once));
	for (uint32_t per_million = 0; per_million <= 1000000; per_million += 50000)
		assert_int_equal(
			histogram_percentile(once, per_million),
			histogram_percentile(often, per_million)
		);
	// Records that exceed the counter are reported as lost.
	histogram_record_times(once, 500, UINT32_MAX);
	histogram_summarize(once, &of_once);
	assert_int_equal(of_once.lost, 3);
	histogram_destroy(once);
	histogram_destroy(often);
}

UNIT_GROUP(histogram) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recording_so_many_times_is_as_recording_as_often),
		cmocka_unit_test(a_shape_out_of_bounds_is_einval_and_leaves_the_output),
		cmocka_unit_test(memory_is_what_the_header_says),
		cmocka_unit_test(an_empty_histogram_answers_zero),
		cmocka_unit_test(every_percentile_is_within_the_stated_error_of_an_exact_sort),
		cmocka_unit_test(the_error_holds_at_both_edges_of_every_bucket),
		cmocka_unit_test(moments_are_those_of_the_values_not_of_the_buckets),
		cmocka_unit_test(a_small_deviation_beside_a_large_mean_is_not_lost),
		cmocka_unit_test(values_out_of_range_are_clamped_and_counted),
		cmocka_unit_test(a_full_counter_stays_and_further_records_count_as_lost),
		cmocka_unit_test(a_wide_counter_goes_on_where_a_narrow_one_is_full),
		cmocka_unit_test(a_full_sum_of_squares_makes_the_deviation_unknown),
		cmocka_unit_test(record_is_found_by_its_rank),
		cmocka_unit_test(records_are_counted_up_to_the_bucket_of_a_value),
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
