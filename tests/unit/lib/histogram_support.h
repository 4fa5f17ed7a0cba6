// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the histogram tests.
#pragma once

#include "lib/histogram_values.h"

#include <lib/histogram.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <stdbool.h>

#define HOUR_NS 3600000000000ULL
#define MILLION 1000000U

static const struct histogram_shape shapes[] = {
	{1, HOUR_NS, 7, 32},  {1, HOUR_NS, 7, 64},   {0, HISTOGRAM_VALUE_MAX, 1, 32},
	{1, HOUR_NS, 10, 32}, {500, 2000000, 5, 64}, {0, HOUR_NS, 12, 32},
};

static inline struct histogram *created(const struct histogram_shape *shape) {
	struct histogram *histogram = NULL;

	assert_int_equal(histogram_create(shape, &histogram), 0);
	return histogram;
}

static inline void record_all(struct histogram *histogram, const uint64_t *values, size_t count) {
	for (size_t n = 0; n < count; n++)
		histogram_record(histogram, values[n]);
}

static inline uint64_t clamped(const struct histogram_shape *shape, uint64_t value) {
	if (value < shape->value_min)
		return shape->value_min;
	return value > shape->value_max ? shape->value_max : value;
}

// True if `got` differs from `exact` by at most exact / 2^bits. With one bit, where buckets are
// octaves, a third is allowed.
static inline bool within_error(uint64_t got, uint64_t exact, uint8_t bits) {
	uint64_t distance = got > exact ? got - exact : exact - got;

	if (bits == 1)
		return distance * 3 <= exact;
	return distance << bits <= exact;
}

static inline void assert_same(const struct histogram *a, const struct histogram *b) {
	struct histogram_summary left, right;

	histogram_summarize(a, &left);
	histogram_summarize(b, &right);
	assert_memory_equal(&left, &right, sizeof(left));
	for (uint32_t ppm = 0; ppm <= MILLION; ppm += MILLION / 200)
		assert_true(histogram_percentile(a, ppm) == histogram_percentile(b, ppm));
}

// Doubling a histogram into itself reaches the last counter value in 33 steps.
static inline struct histogram *nearly_full(const struct histogram_shape *shape) {
	struct histogram *histogram = created(shape);

	histogram_record(histogram, 1000);
	for (int n = 0; n < 31; n++)
		assert_int_equal(histogram_merge(histogram, histogram), 0);
	return histogram;
}
