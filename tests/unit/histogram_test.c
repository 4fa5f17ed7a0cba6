// SPDX-License-Identifier: BSD-3-Clause
#include "histogram_values.h"

#include <lib/histogram.h>
#include <lib/must.h>
#include <support/cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define HOUR_NS 3600000000000ULL
#define MILLION 1000000U
#define PERCENTILES_MAX 2000

static const struct histogram_shape shapes[] = {
	{1, HOUR_NS, 7, 32},  {1, HOUR_NS, 7, 64},   {0, HISTOGRAM_VALUE_MAX, 1, 32},
	{1, HOUR_NS, 10, 32}, {500, 2000000, 5, 64}, {0, HOUR_NS, HISTOGRAM_PRECISION_BITS_MAX, 32},
};

static struct histogram *created(const struct histogram_shape *shape) {
	struct histogram *histogram = NULL;

	assert_int_equal(histogram_create(shape, &histogram), 0);
	return histogram;
}

static void record_all(struct histogram *histogram, const uint64_t *values, size_t count) {
	for (size_t n = 0; n < count; n++)
		histogram_record(histogram, values[n]);
}

static int compare_values(const void *left, const void *right) {
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static uint64_t clamped(const struct histogram_shape *shape, uint64_t value) {
	if (value < shape->value_min)
		return shape->value_min;
	return value > shape->value_max ? shape->value_max : value;
}

// True if `got` is within exact / 2^bits of it, by whole numbers: or a third, for octaves.
static bool within_error(uint64_t got, uint64_t exact, uint8_t bits) {
	uint64_t distance = got > exact ? got - exact : exact - got;

	if (bits == 1)
		return distance * 3 <= exact;
	return distance << bits <= exact;
}

static void assert_same(const struct histogram *a, const struct histogram *b) {
	struct histogram_summary left, right;

	histogram_summarize(a, &left);
	histogram_summarize(b, &right);
	assert_memory_equal(&left, &right, sizeof(left));
	for (uint32_t ppm = 0; ppm <= MILLION; ppm += MILLION / 200)
		assert_true(histogram_percentile(a, ppm) == histogram_percentile(b, ppm));
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

// Thousandths, then steps of ten in a million where tails are asked for.
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

// A lone value between far companions: its percentile is the report of its bucket, unclipped.
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

// Doubling a histogram into itself reaches the last counter value in 33 steps.
static struct histogram *nearly_full(const struct histogram_shape *shape) {
	struct histogram *histogram = created(shape);

	histogram_record(histogram, 1000);
	for (int n = 0; n < 31; n++)
		assert_int_equal(histogram_merge(histogram, histogram), 0);
	return histogram;
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
	assert_int_equal(summary.lost, 2); // 2^32 + 1 of them, room for 2^32 - 1
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
	struct histogram *earlier = created(&wide);
	struct histogram_summary summary;

	(void)state;
	histogram_record(histogram, HISTOGRAM_VALUE_MAX);
	for (int n = 0; n < 33; n++)
		assert_int_equal(histogram_merge(histogram, histogram), 0);
	histogram_summarize(histogram, &summary);
	assert_true(isnan(summary.stdev));
	assert_true(summary.mean == (double)HISTOGRAM_VALUE_MAX);
	assert_int_equal(histogram_snapshot(histogram, earlier), 0);
	assert_int_equal(histogram_subtract(histogram, earlier), 0);
	histogram_summarize(histogram, &summary);
	assert_true(summary.count == 0 && summary.stdev == 0);
	histogram_destroy(histogram);
	histogram_destroy(earlier);
}

static void merging_equals_recording_in_one(void **state) {
	static uint64_t values[VALUES_MAX];

	(void)state;
	for (size_t s = 0; s < COUNT_OF(shapes); s++) {
		struct histogram *whole = created(&shapes[s]);
		struct histogram *half[2] = {created(&shapes[s]), created(&shapes[s])};

		for (size_t d = 0; d < DISTRIBUTION_COUNT; d++) {
			values_fill(&distributions[d], values, VALUES_MAX);
			record_all(whole, values, VALUES_MAX);
			record_all(half[d % 2], values, VALUES_MAX);
		}
		assert_int_equal(histogram_merge(half[0], half[1]), 0);
		assert_same(half[0], whole);
		histogram_destroy(half[0]);
		histogram_destroy(half[1]);
		histogram_destroy(whole);
	}
}

static void merging_into_a_narrower_counter_loses_only_what_it_cannot_hold(void **state) {
	static const struct histogram_shape wide = {1, HOUR_NS, 7, 64};
	struct histogram *from = nearly_full(&wide);
	struct histogram *into = created(&histogram_shape_latency);
	struct histogram_summary summary;

	(void)state;
	assert_int_equal(histogram_merge(from, from), 0);
	assert_int_equal(histogram_merge(into, from), 0);
	histogram_summarize(into, &summary);
	assert_true(summary.count == 1ULL << 32);
	assert_int_equal(summary.lost, 1);
	histogram_destroy(from);
	histogram_destroy(into);
}

static void shapes_that_differ_do_not_mix(void **state) {
	struct histogram *histogram = created(&shapes[0]);

	(void)state;
	histogram_record(histogram, 5);
	for (size_t s = 2; s < COUNT_OF(shapes); s++) {
		struct histogram *other = created(&shapes[s]);

		assert_int_equal(histogram_merge(histogram, other), -EINVAL);
		assert_int_equal(histogram_subtract(histogram, other), -EINVAL);
		assert_int_equal(histogram_snapshot(histogram, other), -EINVAL);
		histogram_destroy(other);
	}
	histogram_destroy(histogram);
}

static void subtracting_an_earlier_state_leaves_exactly_the_interval(void **state) {
	static uint64_t values[VALUES_MAX];

	(void)state;
	for (size_t d = 0; d + 1 < DISTRIBUTION_COUNT; d++) {
		struct histogram *live = created(&histogram_shape_latency);
		struct histogram *earlier = created(&histogram_shape_latency);
		struct histogram *interval = created(&histogram_shape_latency);
		struct histogram_summary got, expected;

		values_fill(&distributions[d], values, VALUES_MAX);
		record_all(live, values, VALUES_MAX);
		assert_int_equal(histogram_snapshot(live, earlier), 0);
		values_fill(&distributions[d + 1], values, VALUES_MAX);
		record_all(live, values, VALUES_MAX);
		record_all(interval, values, VALUES_MAX);
		assert_int_equal(histogram_subtract(live, earlier), 0);
		histogram_summarize(live, &got);
		histogram_summarize(interval, &expected);
		assert_true(got.count == expected.count && got.lost == expected.lost);
		assert_true(got.under == expected.under && got.over == expected.over);
		assert_true(got.mean == expected.mean && got.stdev == expected.stdev);
		assert_true(got.min <= expected.min && got.max >= expected.max);
		if (expected.under == 0 && expected.over == 0) {
			assert_true(within_error(got.min, expected.min, 6));
			assert_true(within_error(got.max, expected.max, 6));
		}
		for (uint32_t ppm = 10; ppm < MILLION; ppm += 4999)
			assert_true(within_error(
				histogram_percentile(live, ppm),
				histogram_percentile(interval, ppm), 6
			));
		histogram_destroy(live);
		histogram_destroy(earlier);
		histogram_destroy(interval);
	}
}

static void an_interval_that_moved_an_extreme_keeps_it_exactly(void **state) {
	struct histogram *live = created(&histogram_shape_latency);
	struct histogram *earlier = created(&histogram_shape_latency);
	struct histogram_summary summary;

	(void)state;
	record_all(live, (uint64_t[]){50001, 70001}, 2);
	assert_int_equal(histogram_snapshot(live, earlier), 0);
	record_all(live, (uint64_t[]){10001, 990001}, 2);
	assert_int_equal(histogram_subtract(live, earlier), 0);
	histogram_summarize(live, &summary);
	assert_int_equal(summary.min, 10001);
	assert_int_equal(summary.max, 990001);
	histogram_destroy(live);
	histogram_destroy(earlier);
}

static void subtracting_what_was_never_in_is_erange_and_changes_nothing(void **state) {
	struct histogram *histogram = created(&histogram_shape_latency);
	struct histogram *same = created(&histogram_shape_latency);
	struct histogram *other = created(&histogram_shape_latency);

	(void)state;
	record_all(histogram, (uint64_t[]){10, 20, 30}, 3);
	assert_int_equal(histogram_snapshot(histogram, same), 0);
	histogram_record(other, 1000);
	assert_int_equal(histogram_subtract(histogram, other), -ERANGE);
	assert_same(histogram, same);
	histogram_clear(other);
	record_all(other, (uint64_t[]){10, 20, 30, 30}, 4);
	assert_int_equal(histogram_subtract(histogram, other), -ERANGE);
	assert_same(histogram, same);
	histogram_destroy(histogram);
	histogram_destroy(same);
	histogram_destroy(other);
}

static void a_cleared_histogram_is_as_new(void **state) {
	struct histogram *histogram = created(&histogram_shape_latency);
	struct histogram *fresh = created(&histogram_shape_latency);

	(void)state;
	record_all(histogram, (uint64_t[]){0, 20, UINT64_MAX}, 3);
	histogram_clear(histogram);
	assert_same(histogram, fresh);
	record_all(histogram, (uint64_t[]){7}, 1);
	record_all(fresh, (uint64_t[]){7}, 1);
	assert_same(histogram, fresh);
	histogram_destroy(histogram);
	histogram_destroy(fresh);
}

struct recorder {
	struct histogram *histogram;
	atomic_bool stop;
};

static void *record_until_stopped(void *argument) {
	struct recorder *recorder = argument;
	uint64_t n = 0;

	// Always the pair 10 and 30: a snapshot of whole records has a mean of 10 to 30 and its
	// sum follows from its count. A pause as a worker makes between bursts lets readers in.
	while (!atomic_load_explicit(&recorder->stop, memory_order_acquire)) {
		histogram_record(recorder->histogram, n++ % 2 == 0 ? 10 : 30);
		if (n % 16 == 0)
			sched_yield();
	}
	return NULL;
}

static void a_snapshot_beside_the_writer_holds_each_record_wholly_or_not_at_all(void **state) {
	static const struct histogram_shape shape = {1, 1000, 7, 32};
	struct recorder recorder = {.histogram = created(&shape)};
	struct histogram *copy = created(&shape);
	struct histogram_summary summary = {0};
	pthread_t thread;
	int taken = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, record_until_stopped, &recorder), 0);
	while (taken < 1000) {
		int err = histogram_snapshot(recorder.histogram, copy);

		if (err == -EAGAIN) {
			sched_yield();
			continue;
		}
		assert_int_equal(err, 0);
		taken++;
		histogram_summarize(copy, &summary);
		if (summary.count == 0)
			continue;
		assert_true(
			llround(summary.mean * (double)summary.count) ==
			(long long)(summary.count / 2 * 40 + summary.count % 2 * 10)
		);
		assert_int_equal(summary.min, 10);
		assert_int_equal(histogram_percentile(copy, MILLION / 2), 10);
		assert_int_equal(
			histogram_percentile(copy, MILLION - 1), summary.count > 1 ? 30 : 10
		);
	}
	atomic_store_explicit(&recorder.stop, true, memory_order_release);
	pthread_join(thread, NULL);
	histogram_destroy(recorder.histogram);
	histogram_destroy(copy);
}

static void the_small_form_equals_the_general_one_of_its_shape(void **state) {
	static uint64_t values[VALUES_MAX];

	(void)state;
	for (size_t d = 0; d < DISTRIBUTION_COUNT; d++) {
		struct histogram *general = created(&histogram_shape_log2);
		struct histogram *copy = created(&histogram_shape_log2);
		struct histogram_log2 log2, half, whole;

		values_fill(&distributions[d], values, VALUES_MAX);
		record_all(general, values, VALUES_MAX);
		histogram_log2_init(&log2);
		for (size_t n = 0; n < VALUES_MAX; n++) {
			if (n == VALUES_MAX / 2)
				assert_int_equal(histogram_log2_snapshot(&log2, &half), 0);
			histogram_log2_record(&log2, values[n]);
		}
		assert_int_equal(histogram_log2_merge_into(copy, &log2), 0);
		assert_same(copy, general);
		for (uint32_t ppm = 0; ppm <= MILLION; ppm += MILLION / 100)
			assert_true(
				histogram_log2_percentile(&log2, ppm) ==
				histogram_percentile(general, ppm)
			);
		// What was taken out and put back in is what it was.
		assert_int_equal(histogram_log2_snapshot(&log2, &whole), 0);
		assert_int_equal(histogram_log2_subtract(&log2, &half), 0);
		assert_int_equal(histogram_log2_merge(&log2, &half), 0);
		histogram_clear(copy);
		assert_int_equal(histogram_log2_merge_into(copy, &log2), 0);
		assert_same(copy, general);
		histogram_destroy(general);
		histogram_destroy(copy);
	}
}

static void the_small_form_covers_an_hour_and_states_what_is_beyond(void **state) {
	struct histogram_summary summary;
	struct histogram_log2 log2;

	(void)state;
	histogram_log2_init(&log2);
	histogram_log2_record(&log2, HOUR_NS);
	histogram_log2_summarize(&log2, &summary);
	assert_int_equal(summary.over, 0);
	assert_true(summary.max == HOUR_NS);
	histogram_log2_record(&log2, 0);
	histogram_log2_record(&log2, 2 * HOUR_NS);
	histogram_log2_summarize(&log2, &summary);
	assert_int_equal(summary.under, 1);
	assert_int_equal(summary.over, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test(merging_equals_recording_in_one),
		cmocka_unit_test(merging_into_a_narrower_counter_loses_only_what_it_cannot_hold),
		cmocka_unit_test(shapes_that_differ_do_not_mix),
		cmocka_unit_test(subtracting_an_earlier_state_leaves_exactly_the_interval),
		cmocka_unit_test(an_interval_that_moved_an_extreme_keeps_it_exactly),
		cmocka_unit_test(subtracting_what_was_never_in_is_erange_and_changes_nothing),
		cmocka_unit_test(a_cleared_histogram_is_as_new),
		cmocka_unit_test(a_snapshot_beside_the_writer_holds_each_record_wholly_or_not_at_all
		),
		cmocka_unit_test(the_small_form_equals_the_general_one_of_its_shape),
		cmocka_unit_test(the_small_form_covers_an_hour_and_states_what_is_beyond),
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
