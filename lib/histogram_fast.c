// SPDX-License-Identifier: BSD-3-Clause
// Recording of values, without lock, allocation or function call.
#include "histogram_inside.h"

#define LOG2_VALUE_MIN 1
#define LOG2_VALUE_MAX ((1ULL << HISTOGRAM_LOG2_BUCKETS) - 1)

static inline void cell_increment(_Atomic uint64_t *cell) {
	cell_store(cell, cell_load_relaxed(cell) + 1);
}

static inline __attribute__((always_inline)) void
moments_add(struct histogram_moments *moments, uint64_t value, uint64_t clamped) {
	cell_increment(&moments->count);
	if (__builtin_expect(value != clamped, 0))
		cell_increment(value < clamped ? &moments->under : &moments->over);
	if (value < cell_load_relaxed(&moments->min))
		cell_store(&moments->min, value);
	if (value > cell_load_relaxed(&moments->max))
		cell_store(&moments->max, value);
	wide_store(moments->sum, wide_load(moments->sum) + clamped);
	wide_store(
		moments->squares,
		wide_add(wide_load(moments->squares), (unsigned __int128)clamped * clamped)
	);
}

static inline void narrow_increment(struct histogram_moments *moments, _Atomic uint32_t *counter) {
	uint32_t count = atomic_load_explicit(counter, memory_order_relaxed);

	if (__builtin_expect(count == UINT32_MAX, 0))
		cell_increment(&moments->lost);
	else
		atomic_store_explicit(counter, count + 1, memory_order_release);
}

static inline void wide_increment(struct histogram_moments *moments, _Atomic uint64_t *counter) {
	if (__builtin_expect(cell_load_relaxed(counter) == UINT64_MAX, 0))
		cell_increment(&moments->lost);
	else
		cell_increment(counter);
}

void histogram_record(struct histogram *histogram, uint64_t value) {
	struct histogram_moments *moments = histogram->moments;
	uint64_t clamped =
		value_clamp(value, histogram->shape.value_min, histogram->shape.value_max);
	uint32_t n = bucket_index(histogram->sub_bits, clamped) - histogram->index_first;

	write_begin(moments);
	moments_add(moments, value, clamped);
	if (histogram->shape.counter_bits == 32)
		narrow_increment(moments, &histogram->narrow[n]);
	else
		wide_increment(moments, &histogram->wide[n]);
	write_end(moments);
}

// Sums over many values, kept in registers. 128 bits hold 2^32 squares of the largest value.
struct moments_sum {
	uint64_t min, max;
	unsigned __int128 sum, squares;
};

// Add values to the buckets and sum them up. `narrow` is a constant in each caller, so that the
// loop does not test it.
static inline __attribute__((always_inline)) void add_values_to_buckets(
	struct histogram *histogram,
	bool narrow,
	const uint64_t *values,
	size_t count,
	struct moments_sum *ret_sum
) {
	uint64_t value_min = histogram->shape.value_min, value_max = histogram->shape.value_max;
	uint32_t sub_bits = histogram->sub_bits, index_first = histogram->index_first;
	struct moments_sum sum = {.min = UINT64_MAX};

	for (size_t at = 0; at < count; at++) {
		uint64_t value = values[at];
		uint64_t clamped = value_clamp(value, value_min, value_max);
		uint32_t n = bucket_index(sub_bits, clamped) - index_first;

		sum.min = value < sum.min ? value : sum.min;
		sum.max = value > sum.max ? value : sum.max;
		sum.sum += clamped;
		sum.squares += (unsigned __int128)clamped * clamped;
		if (narrow)
			narrow_increment(histogram->moments, &histogram->narrow[n]);
		else
			wide_increment(histogram->moments, &histogram->wide[n]);
	}
	*ret_sum = sum;
}

void histogram_record_many(struct histogram *histogram, const uint64_t *values, uint32_t count) {
	struct histogram_moments *moments = histogram->moments;
	uint64_t value_min = histogram->shape.value_min, value_max = histogram->shape.value_max;
	struct moments_sum sum;

	write_begin(moments);
	if (histogram->shape.counter_bits == 32)
		add_values_to_buckets(histogram, true, values, count, &sum);
	else
		add_values_to_buckets(histogram, false, values, count, &sum);
	cell_store(&moments->count, cell_load_relaxed(&moments->count) + count);
	if (sum.min < value_min || sum.max > value_max) {
		for (uint32_t at = 0; at < count; at++) {
			if (values[at] < value_min)
				cell_increment(&moments->under);
			else if (values[at] > value_max)
				cell_increment(&moments->over);
		}
	}
	if (sum.min < cell_load_relaxed(&moments->min))
		cell_store(&moments->min, sum.min);
	if (sum.max > cell_load_relaxed(&moments->max))
		cell_store(&moments->max, sum.max);
	wide_store(moments->sum, wide_load(moments->sum) + sum.sum);
	wide_store(moments->squares, wide_add(wide_load(moments->squares), sum.squares));
	write_end(moments);
}

void histogram_log2_record(struct histogram_log2 *log2, uint64_t value) {
	struct histogram_moments *moments = &log2->moments;
	uint64_t clamped = value_clamp(value, LOG2_VALUE_MIN, LOG2_VALUE_MAX);
	uint32_t n = bucket_index(0, clamped) - bucket_index(0, LOG2_VALUE_MIN);

	write_begin(moments);
	moments_add(moments, value, clamped);
	narrow_increment(moments, &log2->counters[n]);
	write_end(moments);
}
