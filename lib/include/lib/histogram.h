// SPDX-License-Identifier: BSD-3-Clause
// Distributions of latencies and other counts, with a fixed relative error and fixed memory.
//
// The buckets are log-linear. Values below 2^precision_bits have a bucket each. Every octave above
// is split into 2^(precision_bits - 1) equal buckets. A percentile is reported as the point of its
// bucket with the smallest relative error to both ends:
//
//	precision_bits   relative error   1 ns to 1 h, 32-bit counters
//	             1   <= 1/3           256 bytes
//	             7   <= 1/128         9.5 KB
//	            10   <= 1/1024        69 KB
//
// In addition to the buckets, exact moments are kept: count, minimum, maximum, sum and sum of
// squares. Minimum and maximum are those of the recorded values. For everything else, a value
// outside of the range is clamped to its end and counted in `under` or `over`. The error bound of a
// percentile then holds for the clamped value.
//
// Counters saturate at their maximum. A record for a full counter is counted in `lost`: it is part
// of the moments and missing from percentiles. Counters of 64 bits never fill up in practice.
// Counters of 32 bits do after 4.3e9 records of about the same value. The sum of squares (128 bits)
// holds 2.6e13 records of one hour each. Past that it stays at its maximum, and the standard
// deviation is unknown.
//
// One thread writes (record, merge into, clear), without lock or allocation. During that, other
// threads may only take a snapshot. All other functions need a histogram without a concurrent
// writer.
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct wire_reader;
struct wire_writer;
struct histogram; // opaque

// Largest value: 78 hours in nanoseconds.
#define HISTOGRAM_VALUE_MAX ((1ULL << 48) - 1)
#define HISTOGRAM_PRECISION_BITS_MAX 14

struct histogram_shape {
	uint64_t value_min, value_max; // value_min < value_max <= HISTOGRAM_VALUE_MAX
	uint8_t precision_bits; // 1..HISTOGRAM_PRECISION_BITS_MAX: error <= 2^-precision_bits
	uint8_t counter_bits;	// 32 or 64
};

// Shape for latencies: 1 ns to 1 h within 1/128, 32-bit counters.
extern const struct histogram_shape histogram_shape_latency;

struct histogram_summary {
	uint64_t count;	      // number of records
	uint64_t lost;	      // records that are in no bucket because its counter was full
	uint64_t under, over; // records clamped to value_min or value_max
	uint64_t min, max;    // 0 if count is 0
	double mean, stdev;   // of the population; 0 if count is 0; stdev NAN if unknown
};

// Return the memory size of a histogram, or 0 if the shape violates a bound above.
size_t histogram_size_bytes(const struct histogram_shape *shape);

// Create an empty histogram. Returns 0, -EINVAL (shape) or -ENOMEM.
int histogram_create(const struct histogram_shape *shape, struct histogram **ret_histogram);
// Free a histogram; NULL is allowed. Returns NULL.
struct histogram *histogram_destroy(struct histogram *histogram);

// Return the shape of a histogram. Valid as long as the histogram.
const struct histogram_shape *histogram_shape(const struct histogram *histogram);

// Record one value. Hot path; writer.
void histogram_record(struct histogram *histogram, uint64_t value);

// Record several values, faster than one by one. Hot path; writer.
void histogram_record_many(struct histogram *histogram, const uint64_t *values, uint32_t count);

// Record one value `times` times, in constant time. Writer.
void histogram_record_times(struct histogram *histogram, uint64_t value, uint64_t times);

// Write to every page of the memory without changing a value. So no later record waits for a page
// fault. Writer.
void histogram_prefault(struct histogram *histogram);

// Discard all records. Writer.
void histogram_clear(struct histogram *histogram);

// Copy a consistent state of `live` into `copy`, which has the same shape and is not shared. Any
// thread. The copy has each record completely or not at all. Returns 0 or -EINVAL if the shapes
// differ. Returns -EAGAIN, with an invalid copy, if each of many tries met an active writer, or one
// stopped inside a record. A copy takes about one nanosecond per bucket.
int histogram_snapshot(const struct histogram *live, struct histogram *copy);

// Add all records of `from`, as if `into` had recorded both. Writer of `into`. Counter widths may
// differ. Returns 0; -EINVAL if range or precision differ; -EOVERFLOW if the count would exceed 64
// bits. `into` is unchanged on failure.
int histogram_merge(struct histogram *into, const struct histogram *from);

// Create a histogram with fewer precision bits and the same records. Each of its buckets is a union
// of whole buckets of `fine`, and no moment changes. Returns 0, -EINVAL (precision_bits is 0 or
// exceeds that of `fine`) or -ENOMEM.
int histogram_coarsen(
	const struct histogram *fine, uint8_t precision_bits, struct histogram **ret_coarse
);

void histogram_summarize(const struct histogram *histogram, struct histogram_summary *ret_summary);

// Return the value with at least `per_million` of a million records at or below it (nearest rank).
// 500000 is the median, 999990 is 99.999 %, 0 and 1000000 are minimum and maximum. Returns 0 if
// empty.
uint64_t histogram_percentile(const struct histogram *histogram, uint32_t per_million);

// Compute `count` percentiles, in ascending order, in one pass.
void histogram_percentiles(
	const struct histogram *histogram,
	const uint32_t *per_million,
	size_t count,
	uint64_t *ret_values
);

struct histogram_span {
	uint64_t lowest, highest;
	uint64_t before, count; // records in all lower buckets, and in this bucket
};

// Find the bucket of record number `rank`, counted from the smallest, 1. The span is limited to
// minimum and maximum. Returns 0, or -ERANGE if `rank` is 0 or exceeds the number of records in
// buckets.
int histogram_at_rank(
	const struct histogram *histogram, uint64_t rank, struct histogram_span *ret_span
);

// Count the records below the bucket of a value, and those in the bucket. The value is clamped to
// the range.
void histogram_at_value(
	const struct histogram *histogram, uint64_t value, uint64_t *ret_before, uint64_t *ret_count
);

// Encode the histogram: runs of non-empty buckets as varints, in the same form on every machine.
// The writer keeps the error.
void histogram_encode(const struct histogram *histogram, struct wire_writer *writer);

// Decode a histogram from untrusted input. Allocates at most `size_bytes_max`. Input that
// histogram_encode() cannot produce is rejected: counters, count, minimum, maximum and sums must
// agree. Returns 0, -EBADMSG (malformed), -EPROTO (version), -EMSGSIZE (`size_bytes_max`), -ENOMEM,
// or the reader's own error. On failure the reader has failed with the same error.
int histogram_decode(
	struct wire_reader *reader, size_t size_bytes_max, struct histogram **ret_histogram
);

// Moments of a histogram, private to lib/. Written by one thread; every store is a release, and
// `sequence` is odd during a write.
struct histogram_moments {
	_Atomic uint64_t count, lost, under, over;
	_Atomic uint64_t min, max;	     // UINT64_MAX and 0 if empty
	_Atomic uint64_t sum[2], squares[2]; // low and high half
	_Atomic uint32_t sequence;
};

// Small histogram for many paths: 256 bytes, one bucket per octave, 1 ns to 73 minutes, error <=
// 1/3, 32-bit counters. The caller owns the storage; all rules above apply.
#define HISTOGRAM_LOG2_BUCKETS 42

struct histogram_log2 {
	struct histogram_moments moments;
	_Atomic uint32_t counters[HISTOGRAM_LOG2_BUCKETS];
};
static_assert(sizeof(struct histogram_log2) <= 256, "a path may cost no more");

extern const struct histogram_shape histogram_shape_log2;

void histogram_log2_init(struct histogram_log2 *log2);
// Record one value. Hot path; writer.
void histogram_log2_record(struct histogram_log2 *log2, uint64_t value);
int histogram_log2_snapshot(const struct histogram_log2 *live, struct histogram_log2 *copy);
void histogram_log2_summarize(
	const struct histogram_log2 *log2, struct histogram_summary *ret_summary
);
uint64_t histogram_log2_percentile(const struct histogram_log2 *log2, uint32_t per_million);
