// SPDX-License-Identifier: BSD-3-Clause
// Log-linear histograms: shapes, snapshots, merging, and the small form with one bucket per octave.
#include "histogram_inside.h"

#include <lib/histogram.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOT_TRIES 1000

const struct histogram_shape histogram_shape_latency = {
	.value_min = 1,
	.value_max = 3600000000000,
	.precision_bits = 7,
	.counter_bits = 32,
};

// Return true if the buckets of both histograms have the same bounds. Counter widths may differ.
static bool buckets_are_equal(const struct histogram *a, const struct histogram *b) {
	return a->shape.value_min == b->shape.value_min &&
	       a->shape.value_max == b->shape.value_max &&
	       a->shape.precision_bits == b->shape.precision_bits;
}

void histogram_init_layout(const struct histogram_shape *shape, struct histogram *ret_histogram) {
	ret_histogram->shape = *shape;
	ret_histogram->sub_bits = shape->precision_bits - 1U;
	ret_histogram->index_first = bucket_index(ret_histogram->sub_bits, shape->value_min);
	ret_histogram->bucket_count = bucket_index(ret_histogram->sub_bits, shape->value_max) -
				      ret_histogram->index_first + 1;
}

struct bucket histogram_bucket(const struct histogram *histogram, uint32_t n) {
	uint32_t index = histogram->index_first + n;
	uint32_t octave = index >> histogram->sub_bits;
	uint32_t shift = octave > 0 ? octave - 1 : 0;
	uint64_t lowest = (uint64_t)(index - (shift << histogram->sub_bits)) << shift;

	return (struct bucket){lowest, lowest + (1ULL << shift) - 1};
}

size_t histogram_size_bytes(const struct histogram_shape *shape) {
	struct histogram histogram;

	if (shape->value_min >= shape->value_max || shape->value_max > HISTOGRAM_VALUE_MAX ||
	    shape->precision_bits < 1 || shape->precision_bits > HISTOGRAM_PRECISION_BITS_MAX ||
	    (shape->counter_bits != 32 && shape->counter_bits != 64))
		return 0;
	histogram_init_layout(shape, &histogram);
	return sizeof(histogram) + sizeof(*histogram.moments) +
	       (size_t)histogram.bucket_count * shape->counter_bits / 8;
}

int histogram_create(const struct histogram_shape *shape, struct histogram **ret_histogram) {
	struct histogram *histogram;
	size_t size = histogram_size_bytes(shape);

	if (size == 0)
		return -EINVAL;
	histogram = calloc(1, size);
	if (histogram == NULL)
		return -ENOMEM;
	histogram_init_layout(shape, histogram);
	histogram->moments = (struct histogram_moments *)(histogram + 1);
	histogram->wide = (_Atomic uint64_t *)(histogram->moments + 1);
	cell_store(&histogram->moments->min, UINT64_MAX);
	*ret_histogram = histogram;
	return 0;
}

struct histogram *histogram_destroy(struct histogram *histogram) {
	free(histogram);
	return NULL;
}

const struct histogram_shape *histogram_shape(const struct histogram *histogram) {
	return &histogram->shape;
}

struct bucket_range {
	uint32_t first, end;
};

// Return the range of buckets that may be non-empty.
static struct bucket_range buckets_used(const struct histogram *histogram) {
	const struct histogram_moments *moments = histogram->moments;

	if (cell_load_relaxed(&moments->count) == 0)
		return (struct bucket_range){0, 0};
	return (struct bucket_range){
		.first = bucket_number(histogram, cell_load_relaxed(&moments->min)),
		.end = bucket_number(histogram, cell_load_relaxed(&moments->max)) + 1,
	};
}

void histogram_clear(struct histogram *histogram) {
	struct histogram_moments *moments = histogram->moments;
	struct bucket_range used = buckets_used(histogram);

	write_begin(moments);
	cell_store(&moments->count, 0);
	cell_store(&moments->lost, 0);
	cell_store(&moments->under, 0);
	cell_store(&moments->over, 0);
	cell_store(&moments->min, UINT64_MAX);
	cell_store(&moments->max, 0);
	wide_store(moments->sum, 0);
	wide_store(moments->squares, 0);
	for (uint32_t n = used.first; n < used.end; n++)
		counter_store(histogram, n, 0);
	write_end(moments);
}

void histogram_prefault(struct histogram *histogram) {
	write_begin(histogram->moments);
	for (uint32_t n = 0; n < histogram->bucket_count; n++)
		counter_store(histogram, n, counter_load(histogram, n));
	write_end(histogram->moments);
}

int histogram_snapshot(const struct histogram *live, struct histogram *copy) {
	const struct histogram_moments *from = live->moments;
	struct histogram_moments *to = copy->moments;
	bool narrow = live->shape.counter_bits == 32;

	if (!buckets_are_equal(live, copy) || live->shape.counter_bits != copy->shape.counter_bits)
		return -EINVAL;
	for (int n = 0; n < SNAPSHOT_TRIES; n++) {
		uint32_t before = atomic_load_explicit(&from->sequence, memory_order_acquire);

		if ((before & 1) != 0)
			continue;
		cell_store(&to->count, cell_load_acquire(&from->count));
		cell_store(&to->lost, cell_load_acquire(&from->lost));
		cell_store(&to->under, cell_load_acquire(&from->under));
		cell_store(&to->over, cell_load_acquire(&from->over));
		cell_store(&to->min, cell_load_acquire(&from->min));
		cell_store(&to->max, cell_load_acquire(&from->max));
		for (int half = 0; half < 2; half++) {
			cell_store(&to->sum[half], cell_load_acquire(&from->sum[half]));
			cell_store(&to->squares[half], cell_load_acquire(&from->squares[half]));
		}
		for (uint32_t bucket = 0; bucket < live->bucket_count; bucket++) {
			if (narrow)
				atomic_store_explicit(
					&copy->narrow[bucket],
					atomic_load_explicit(
						&live->narrow[bucket], memory_order_acquire
					),
					memory_order_relaxed
				);
			else
				cell_store(
					&copy->wide[bucket], cell_load_acquire(&live->wide[bucket])
				);
		}
		if (atomic_load_explicit(&from->sequence, memory_order_relaxed) == before)
			return 0;
	}
	return -EAGAIN;
}

// Add to a counter. Returns the part that did not fit.
static uint64_t counter_add(struct histogram *into, uint32_t n, uint64_t value) {
	uint64_t present = counter_load(into, n);
	uint64_t room = counter_max(into) - present;

	counter_store(into, n, value <= room ? present + value : counter_max(into));
	return value <= room ? 0 : value - room;
}

static void cell_add(_Atomic uint64_t *into, const _Atomic uint64_t *from) {
	cell_store(into, cell_load_relaxed(into) + cell_load_relaxed(from));
}

static void moments_merge(struct histogram_moments *into, const struct histogram_moments *from) {
	cell_add(&into->count, &from->count);
	cell_add(&into->lost, &from->lost);
	cell_add(&into->under, &from->under);
	cell_add(&into->over, &from->over);
	if (cell_load_relaxed(&from->min) < cell_load_relaxed(&into->min))
		cell_store(&into->min, cell_load_relaxed(&from->min));
	if (cell_load_relaxed(&from->max) > cell_load_relaxed(&into->max))
		cell_store(&into->max, cell_load_relaxed(&from->max));
	wide_store(into->sum, wide_load(into->sum) + wide_load(from->sum));
	wide_store(into->squares, wide_add(wide_load(into->squares), wide_load(from->squares)));
}

int histogram_merge(struct histogram *into, const struct histogram *from) {
	struct bucket_range used = buckets_used(from);
	uint64_t lost = 0;

	if (!buckets_are_equal(into, from))
		return -EINVAL;
	// `lost`, `under` and `over` are at most `count`, so they cannot overflow before it.
	if (cell_load_relaxed(&from->moments->count) >
	    UINT64_MAX - cell_load_relaxed(&into->moments->count))
		return -EOVERFLOW;
	write_begin(into->moments);
	for (uint32_t n = used.first; n < used.end; n++)
		lost += counter_add(into, n, counter_load(from, n));
	moments_merge(into->moments, from->moments);
	cell_store(&into->moments->lost, cell_load_relaxed(&into->moments->lost) + lost);
	write_end(into->moments);
	return 0;
}

// Each bucket of `fine` lies within one bucket of the result, because octaves begin at powers of
// two in both.
int histogram_coarsen(
	const struct histogram *fine, uint8_t precision_bits, struct histogram **ret_coarse
) {
	struct bucket_range used = buckets_used(fine);
	struct histogram_shape shape = fine->shape;
	struct histogram *coarse;
	uint64_t lost = 0;
	int err;

	if (precision_bits > shape.precision_bits)
		return -EINVAL;
	shape.precision_bits = precision_bits;
	err = histogram_create(&shape, &coarse);
	if (err < 0)
		return err;
	write_begin(coarse->moments);
	for (uint32_t n = used.first; n < used.end; n++) {
		uint32_t into = bucket_number(coarse, histogram_bucket(fine, n).lowest);

		lost += counter_add(coarse, into, counter_load(fine, n));
	}
	moments_merge(coarse->moments, fine->moments);
	cell_store(&coarse->moments->lost, cell_load_relaxed(&coarse->moments->lost) + lost);
	write_end(coarse->moments);
	*ret_coarse = coarse;
	return 0;
}

void histogram_record_times(struct histogram *histogram, uint64_t value, uint64_t times) {
	struct histogram_moments *moments = histogram->moments;
	uint64_t clamped =
		value_clamp(value, histogram->shape.value_min, histogram->shape.value_max);
	uint32_t n = bucket_number(histogram, value);
	unsigned __int128 squares;

	if (times == 0)
		return;
	if (__builtin_mul_overflow((unsigned __int128)clamped * clamped, times, &squares))
		squares = ~(unsigned __int128)0;
	write_begin(moments);
	cell_store(
		&moments->lost, cell_load_relaxed(&moments->lost) + counter_add(histogram, n, times)
	);
	cell_store(&moments->count, cell_load_relaxed(&moments->count) + times);
	if (value < clamped)
		cell_store(&moments->under, cell_load_relaxed(&moments->under) + times);
	if (value > clamped)
		cell_store(&moments->over, cell_load_relaxed(&moments->over) + times);
	if (value < cell_load_relaxed(&moments->min))
		cell_store(&moments->min, value);
	if (value > cell_load_relaxed(&moments->max))
		cell_store(&moments->max, value);
	wide_store(moments->sum, wide_load(moments->sum) + (unsigned __int128)clamped * times);
	wide_store(moments->squares, wide_add(wide_load(moments->squares), squares));
	write_end(moments);
}

const struct histogram_shape histogram_shape_log2 = {
	.value_min = 1,
	.value_max = (1ULL << HISTOGRAM_LOG2_BUCKETS) - 1,
	.precision_bits = 1,
	.counter_bits = 32,
};

// Describe a small histogram as a general one with its own storage, for the duration of one call. A
// description of const storage is only read.
static struct histogram log2_as_histogram(const struct histogram_log2 *log2) {
	struct histogram histogram;

	histogram_init_layout(&histogram_shape_log2, &histogram);
	must(histogram.bucket_count == HISTOGRAM_LOG2_BUCKETS);
	histogram.moments = (struct histogram_moments *)&log2->moments;
	histogram.narrow = (_Atomic uint32_t *)log2->counters;
	return histogram;
}

void histogram_log2_init(struct histogram_log2 *log2) {
	memset(log2, 0, sizeof(*log2));
	cell_store(&log2->moments.min, UINT64_MAX);
}

int histogram_log2_snapshot(const struct histogram_log2 *live, struct histogram_log2 *copy) {
	struct histogram from = log2_as_histogram(live), to = log2_as_histogram(copy);

	return histogram_snapshot(&from, &to);
}

void histogram_log2_summarize(
	const struct histogram_log2 *log2, struct histogram_summary *ret_summary
) {
	struct histogram histogram = log2_as_histogram(log2);

	histogram_summarize(&histogram, ret_summary);
}

uint64_t histogram_log2_percentile(const struct histogram_log2 *log2, uint32_t per_million) {
	struct histogram histogram = log2_as_histogram(log2);

	return histogram_percentile(&histogram, per_million);
}
