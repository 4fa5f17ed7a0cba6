// SPDX-License-Identifier: BSD-3-Clause
// Binary form:
//
//	u8 version, u8 precision_bits, u8 counter_bits, then varints:
//	value_min, value_max, count, lost, under, over, min, max (0 and 0 if empty),
//	sum low, sum high, squares low, squares high (halves of 64 bits),
//	number of runs, then each run of non-empty buckets:
//		empty buckets before it, its length, a counter for each
#include "histogram_inside.h"

#include <lib/histogram.h>
#include <lib/wire.h>

#define VERSION 1
// Smallest run: one byte each for gap, length and counter.
#define RUN_BYTES_MIN 3

typedef unsigned __int128 wide;

// Return the first bucket from `n` on that is empty (or non-empty, if `empty` is false).
static uint32_t bucket_seek(const struct histogram *histogram, uint32_t n, bool empty) {
	while (n < histogram->bucket_count && (counter_load(histogram, n) == 0) != empty)
		n++;
	return n;
}

void histogram_encode(const struct histogram *histogram, struct wire_writer *writer) {
	const struct histogram_moments *moments = histogram->moments;
	uint64_t count = cell_load_relaxed(&moments->count);
	uint32_t runs = 0, at = 0;

	wire_put_u8(writer, VERSION);
	wire_put_u8(writer, histogram->shape.precision_bits);
	wire_put_u8(writer, histogram->shape.counter_bits);
	wire_put_varint(writer, histogram->shape.value_min);
	wire_put_varint(writer, histogram->shape.value_max);
	wire_put_varint(writer, count);
	wire_put_varint(writer, cell_load_relaxed(&moments->lost));
	wire_put_varint(writer, cell_load_relaxed(&moments->under));
	wire_put_varint(writer, cell_load_relaxed(&moments->over));
	wire_put_varint(writer, count > 0 ? cell_load_relaxed(&moments->min) : 0);
	wire_put_varint(writer, cell_load_relaxed(&moments->max));
	for (int half = 0; half < 2; half++)
		wire_put_varint(writer, cell_load_relaxed(&moments->sum[half]));
	for (int half = 0; half < 2; half++)
		wire_put_varint(writer, cell_load_relaxed(&moments->squares[half]));

	for (uint32_t n = bucket_seek(histogram, 0, false); n < histogram->bucket_count;
	     n = bucket_seek(histogram, bucket_seek(histogram, n, true), false))
		runs++;
	wire_put_varint(writer, runs);
	while (runs-- > 0) {
		uint32_t first = bucket_seek(histogram, at, false);
		uint32_t end = bucket_seek(histogram, first, true);

		wire_put_varint(writer, first - at);
		wire_put_varint(writer, end - first);
		for (uint32_t n = first; n < end; n++)
			wire_put_varint(writer, counter_load(histogram, n));
		at = end;
	}
}

// Read the run that follows bucket `at`. Returns the bucket after the run.
static uint32_t run_decode(struct wire_reader *reader, struct histogram *histogram, uint32_t at) {
	uint64_t gap = wire_get_varint(reader);
	uint64_t length = wire_get_varint(reader);
	uint32_t left = histogram->bucket_count - at;

	// Adjacent runs are malformed: the encoder would have joined them.
	if ((gap == 0 && at > 0) || gap > left || length == 0 || length > left - gap) {
		wire_reader_fail(reader, -EBADMSG);
		return at;
	}
	at += (uint32_t)gap;
	for (uint64_t n = 0; n < length && wire_reader_ok(reader); n++) {
		uint64_t counter = wire_get_varint(reader);

		if (counter == 0 || counter > counter_max(histogram))
			wire_reader_fail(reader, -EBADMSG);
		else
			counter_store(histogram, at++, counter);
	}
	return at;
}

static wide wide_multiply(wide a, wide b) {
	wide product;

	return __builtin_mul_overflow(a, b, &product) ? ~(wide)0 : product;
}

// Range of the sums that the bucket counts allow.
struct bounds {
	wide count;
	wide sum_min, sum_max;
	wide squares_min, squares_max;
};

static void bounds_add(struct bounds *bounds, wide count, wide lowest, wide highest) {
	bounds->count += count;
	bounds->sum_min += count * lowest;
	bounds->sum_max += count * highest;
	bounds->squares_min = wide_add(bounds->squares_min, wide_multiply(count, lowest * lowest));
	bounds->squares_max =
		wide_add(bounds->squares_max, wide_multiply(count, highest * highest));
}

static bool sums_fit_buckets(const struct histogram *histogram) {
	const struct histogram_moments *moments = histogram->moments;
	uint64_t value_min = histogram->shape.value_min, value_max = histogram->shape.value_max;
	wide sum = wide_load(moments->sum), squares = wide_load(moments->squares);
	struct bounds bounds = {0};

	for (uint32_t n = 0; n < histogram->bucket_count; n++) {
		struct bucket bucket = histogram_bucket(histogram, n);

		bounds_add(
			&bounds, counter_load(histogram, n),
			value_clamp(bucket.lowest, value_min, value_max),
			value_clamp(bucket.highest, value_min, value_max)
		);
	}
	bounds_add(&bounds, cell_load_relaxed(&moments->lost), value_min, value_max);
	return bounds.count == cell_load_relaxed(&moments->count) && sum >= bounds.sum_min &&
	       sum <= bounds.sum_max && squares >= bounds.squares_min &&
	       squares <= bounds.squares_max;
}

static bool moments_fit_buckets(const struct histogram *histogram) {
	const struct histogram_moments *moments = histogram->moments;
	uint64_t min = cell_load_relaxed(&moments->min), max = cell_load_relaxed(&moments->max);
	uint64_t value_min = histogram->shape.value_min, value_max = histogram->shape.value_max;
	uint64_t under = cell_load_relaxed(&moments->under),
		 over = cell_load_relaxed(&moments->over);
	uint64_t count = cell_load_relaxed(&moments->count);
	uint32_t first, last = histogram->bucket_count;

	if (!sums_fit_buckets(histogram))
		return false;
	// For an empty histogram the bounds of the sums are 0. All these values must be 0, too.
	if (count == 0)
		return (under | over | min | max | cell_load_relaxed(&moments->squares[0])) == 0;
	if (min > max || under > count || over > count - under || (under > 0 && min >= value_min) ||
	    (over > 0 && max <= value_max))
		return false;
	first = bucket_seek(histogram, 0, false);
	while (last > 0 && counter_load(histogram, last - 1) == 0)
		last--;
	// Lost records may lie anywhere.
	if (cell_load_relaxed(&moments->lost) > 0)
		return last == 0 || (bucket_number(histogram, min) <= first &&
				     bucket_number(histogram, max) >= last - 1);
	return (under > 0) == (min < value_min) && (over > 0) == (max > value_max) &&
	       bucket_number(histogram, min) == first && bucket_number(histogram, max) == last - 1;
}

int histogram_decode(
	struct wire_reader *reader, size_t size_bytes_max, struct histogram **ret_histogram
) {
	struct histogram *histogram = NULL;
	struct histogram_moments *moments;
	struct histogram_shape shape;
	uint32_t at = 0;
	uint64_t runs;

	if (wire_get_u8(reader) != VERSION)
		wire_reader_fail(reader, -EPROTO);
	shape.precision_bits = wire_get_u8(reader);
	shape.counter_bits = wire_get_u8(reader);
	shape.value_min = wire_get_varint(reader);
	shape.value_max = wire_get_varint(reader);
	if (histogram_size_bytes(&shape) == 0)
		wire_reader_fail(reader, -EBADMSG);
	if (wire_reader_ok(reader) && histogram_size_bytes(&shape) > size_bytes_max)
		wire_reader_fail(reader, -EMSGSIZE);
	if (wire_reader_ok(reader))
		wire_reader_fail(reader, histogram_create(&shape, &histogram));
	if (wire_reader_ok(reader)) {
		moments = histogram->moments;
		cell_store(&moments->count, wire_get_varint(reader));
		cell_store(&moments->lost, wire_get_varint(reader));
		cell_store(&moments->under, wire_get_varint(reader));
		cell_store(&moments->over, wire_get_varint(reader));
		cell_store(&moments->min, wire_get_varint(reader));
		cell_store(&moments->max, wire_get_varint(reader));
		for (int half = 0; half < 2; half++)
			cell_store(&moments->sum[half], wire_get_varint(reader));
		for (int half = 0; half < 2; half++)
			cell_store(&moments->squares[half], wire_get_varint(reader));
		runs = wire_get_varint(reader);
		if (runs > wire_reader_left(reader) / RUN_BYTES_MIN)
			wire_reader_fail(reader, -EBADMSG);
		while (runs-- > 0 && wire_reader_ok(reader))
			at = run_decode(reader, histogram, at);
	}
	if (wire_reader_ok(reader) && !moments_fit_buckets(histogram))
		wire_reader_fail(reader, -EBADMSG);
	if (!wire_reader_ok(reader)) {
		histogram_destroy(histogram);
		return wire_reader_error(reader);
	}
	if (cell_load_relaxed(&histogram->moments->count) == 0)
		cell_store(&histogram->moments->min, UINT64_MAX);
	*ret_histogram = histogram;
	return 0;
}
