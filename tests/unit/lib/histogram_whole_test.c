// SPDX-License-Identifier: BSD-3-Clause
// Tests of operations on whole histograms: merge, subtract, snapshot and the encoded form.
#include "lib/histogram_support.h"

#include <lib/histogram.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

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

static void recording_many_at_once_equals_one_after_the_other(void **state) {
	static uint64_t values[VALUES_MAX];

	(void)state;
	for (size_t s = 0; s < COUNT_OF(shapes); s++) {
		struct histogram *many = created(&shapes[s]), *each = created(&shapes[s]);

		histogram_record_many(many, values, 0);
		assert_same(many, each);
		for (size_t d = 0; d < DISTRIBUTION_COUNT; d++) {
			values_fill(&distributions[d], values, VALUES_MAX);
			record_all(each, values, VALUES_MAX);
			histogram_record_many(many, values, 1);
			histogram_record_many(many, values + 1, VALUES_MAX - 1);
			assert_same(many, each);
		}
		histogram_destroy(many);
		histogram_destroy(each);
	}
}

static void recording_many_loses_what_a_full_counter_cannot_take(void **state) {
	struct histogram *histogram = nearly_full(&histogram_shape_latency);
	struct histogram_summary summary;

	(void)state;
	assert_int_equal(histogram_merge(histogram, histogram), 0);
	histogram_record_many(histogram, (uint64_t[]){1000, 2000, 1000}, 3);
	histogram_summarize(histogram, &summary);
	assert_true(summary.count == (1ULL << 32) + 3);
	assert_int_equal(summary.lost, 3); // 2^32 + 2 records of 1000; the counter holds 2^32 - 1
	histogram_destroy(histogram);
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

static void coarsening_equals_recording_with_fewer_bits(void **state) {
	static uint64_t values[VALUES_MAX];
	static const struct histogram_shape fine_shape = {1, HOUR_NS, 10, 64};

	(void)state;
	for (uint8_t bits = 1; bits <= 10; bits++) {
		struct histogram_shape shape = {1, HOUR_NS, bits, 64};
		struct histogram *fine = created(&fine_shape), *direct = created(&shape);
		struct histogram *coarse;

		for (size_t d = 0; d < DISTRIBUTION_COUNT; d++) {
			values_fill(&distributions[d], values, VALUES_MAX);
			record_all(fine, values, VALUES_MAX);
			record_all(direct, values, VALUES_MAX);
		}
		assert_int_equal(histogram_coarsen(fine, bits, &coarse), 0);
		assert_same(coarse, direct);
		histogram_destroy(fine);
		histogram_destroy(direct);
		assert_int_equal(histogram_coarsen(coarse, bits + 1, &direct), -EINVAL);
		assert_int_equal(histogram_coarsen(coarse, 0, &direct), -EINVAL);
		histogram_destroy(coarse);
	}
}

static void shapes_that_differ_do_not_mix(void **state) {
	struct histogram *histogram = created(&shapes[0]);

	(void)state;
	histogram_record(histogram, 5);
	for (size_t s = 2; s < COUNT_OF(shapes); s++) {
		struct histogram *other = created(&shapes[s]);

		assert_int_equal(histogram_merge(histogram, other), -EINVAL);
		assert_int_equal(histogram_snapshot(histogram, other), -EINVAL);
		histogram_destroy(other);
	}
	histogram_destroy(histogram);
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

static void touching_a_histogram_changes_nothing(void **state) {
	struct histogram *touched = created(&histogram_shape_latency);
	struct histogram *other = created(&histogram_shape_latency);

	(void)state;
	record_all(touched, (uint64_t[]){0, 20, UINT64_MAX}, 3);
	record_all(other, (uint64_t[]){0, 20, UINT64_MAX}, 3);
	histogram_prefault(touched);
	assert_same(touched, other);
	histogram_destroy(touched);
	histogram_destroy(other);
}

struct recorder {
	struct histogram *histogram;
	atomic_bool stop;
};

static void *record_until_stopped(void *argument) {
	struct recorder *recorder = argument;
	uint64_t n = 0;

	// Values alternate between 10 and 30. So a snapshot of whole records has a mean of 10 to
	// 30, and its sum follows from its count. The writer yields like a worker between bursts,
	// which lets readers in.
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

static void assert_small_is(const struct histogram_log2 *log2, const struct histogram *general) {
	struct histogram_summary small, whole;

	histogram_log2_summarize(log2, &small);
	histogram_summarize(general, &whole);
	assert_true(small.count == whole.count && small.lost == whole.lost);
	assert_true(small.under == whole.under && small.over == whole.over);
	assert_true(small.min == whole.min && small.max == whole.max);
	assert_true(small.mean == whole.mean && small.stdev == whole.stdev);
	for (uint32_t ppm = 0; ppm <= MILLION; ppm += MILLION / 100)
		assert_true(
			histogram_log2_percentile(log2, ppm) == histogram_percentile(general, ppm)
		);
}

static void the_small_form_equals_the_general_one_of_its_shape(void **state) {
	static uint64_t values[VALUES_MAX];

	(void)state;
	for (size_t d = 0; d < DISTRIBUTION_COUNT; d++) {
		struct histogram *general = created(&histogram_shape_log2);
		struct histogram_log2 log2, copy;

		values_fill(&distributions[d], values, VALUES_MAX);
		record_all(general, values, VALUES_MAX);
		histogram_log2_init(&log2);
		for (size_t n = 0; n < VALUES_MAX; n++)
			histogram_log2_record(&log2, values[n]);
		assert_small_is(&log2, general);
		assert_int_equal(histogram_log2_snapshot(&log2, &copy), 0);
		assert_small_is(&copy, general);
		histogram_destroy(general);
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

UNIT_GROUP(histogram_whole) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merging_equals_recording_in_one),
		cmocka_unit_test(recording_many_at_once_equals_one_after_the_other),
		cmocka_unit_test(recording_many_loses_what_a_full_counter_cannot_take),
		cmocka_unit_test(touching_a_histogram_changes_nothing),
		cmocka_unit_test(merging_into_a_narrower_counter_loses_only_what_it_cannot_hold),
		cmocka_unit_test(coarsening_equals_recording_with_fewer_bits),
		cmocka_unit_test(shapes_that_differ_do_not_mix),
		cmocka_unit_test(a_cleared_histogram_is_as_new),
		cmocka_unit_test(a_snapshot_beside_the_writer_holds_each_record_wholly_or_not_at_all
		),
		cmocka_unit_test(the_small_form_equals_the_general_one_of_its_shape),
		cmocka_unit_test(the_small_form_covers_an_hour_and_states_what_is_beyond),
	};

	return cmocka_run_group_tests_name("histogram_whole", tests, NULL, NULL);
}
