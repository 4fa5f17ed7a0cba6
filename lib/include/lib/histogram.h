// SPDX-License-Identifier: BSD-3-Clause
// Distributions of latencies and other counts, at a fixed relative error and fixed memory.
//
// Log-linear: values below 2^precision_bits have a bucket each, every octave above is cut into
// 2^(precision_bits - 1) equal ones. A percentile is reported as the point of its bucket that
// keeps the relative error to both ends smallest:
//
//	precision_bits   relative error   1 ns to 1 h, 32-bit counters
//	             1   <= 1/3           256 bytes
//	             7   <= 1/128         9.5 KB
//	            10   <= 1/1024        69 KB
//
// Beside the buckets, moments are kept that no bucket blurs: count, minimum, maximum, sum and
// sum of squares. Minimum and maximum are of the values as given. A value outside of the range
// is clamped to its end for everything else, and counted in `under` or `over`; the error bound
// of a percentile is then against the clamped value.
//
// Saturation: a counter at its maximum stays there; a record it cannot take is counted in
// `lost`, stays in the moments and is missing from percentiles. Counters of 64 bits do not fill
// up in any lifetime; one of 32 bits does after 4.3e9 records of about the same value. The sum
// of squares (128 bits) holds 2.6e13 records of one hour each; past that it stays full, and the
// standard deviation is no longer known.
//
// One thread writes (record, merge into, subtract from, clear), without lock or allocation.
// Another may only take a snapshot meanwhile; everything else reads a quiet histogram.
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct wire_reader;
struct wire_writer;
struct histogram; // opaque

// 78 hours in nanoseconds.
#define HISTOGRAM_VALUE_MAX ((1ULL << 48) - 1)
#define HISTOGRAM_PRECISION_BITS_MAX 14

struct histogram_shape {
	uint64_t value_min, value_max; // value_min < value_max <= HISTOGRAM_VALUE_MAX
	uint8_t precision_bits; // 1..HISTOGRAM_PRECISION_BITS_MAX: error <= 2^-precision_bits
	uint8_t counter_bits;	// 32 or 64
};

// 1 ns to 1 h within 1/128, 32-bit counters.
extern const struct histogram_shape histogram_shape_latency;

struct histogram_summary {
	uint64_t count;	      // all records
	uint64_t lost;	      // of these, not in any bucket: its counter was full
	uint64_t under, over; // of these, clamped
	uint64_t min, max;    // 0 if count is 0
	double mean, stdev;   // of the population; 0 if count is 0; stdev NAN if not known
};

// Memory of a histogram, or 0 if the shape breaks a bound above.
size_t histogram_size_bytes(const struct histogram_shape *shape);

// Returns 0, -EINVAL (shape) or -ENOMEM.
int histogram_create(const struct histogram_shape *shape, struct histogram **ret_histogram);
// Takes NULL. Returns NULL.
struct histogram *histogram_destroy(struct histogram *histogram);

// The shape it was created with; lives as long as the histogram.
const struct histogram_shape *histogram_shape(const struct histogram *histogram);

// Hot; writer.
void histogram_record(struct histogram *histogram, uint64_t value);

// Hot; writer. As if each of them had been recorded, in less time.
void histogram_record_many(struct histogram *histogram, const uint64_t *values, uint32_t count);

// Writer. As if the value had been recorded so many times, in the time of once.
void histogram_record_times(struct histogram *histogram, uint64_t value, uint64_t times);

// Writer. Writes to all of its memory and changes nothing: no record waits for a page of it then.
void histogram_touch(struct histogram *histogram);

// Writer. Forgets all records.
void histogram_clear(struct histogram *histogram);

// Any thread. Makes `copy`, of the same shape and not shared, what `live` was at one instant:
// each record is in it wholly or not at all. Returns 0; -EINVAL if the shapes differ; -EAGAIN,
// and a copy without meaning, if the writer left no gap as long as copying takes (about a
// nanosecond a bucket) in many tries, or stands still in the middle of a record.
int histogram_snapshot(const struct histogram *live, struct histogram *copy);

// Writer of `into`. Adds all records of `from`: the result is as if one had recorded both.
// Counter widths may differ. Returns 0; -EINVAL if range or precision differ, -EOVERFLOW if the
// count would pass 64 bits; `into` is untouched then.
int histogram_merge(struct histogram *into, const struct histogram *from);

// Makes one of fewer precision bits that holds the same records: each of its buckets is several
// whole ones of `fine`, and no moment changes. Returns 0, -EINVAL (more bits than `fine` has, or
// none) or -ENOMEM.
int histogram_coarsen(
	const struct histogram *fine, uint8_t precision_bits, struct histogram **ret_coarse
);

void histogram_summarize(const struct histogram *histogram, struct histogram_summary *ret_summary);

// The value with at least `per_million` of a million records at or below it (nearest rank):
// 500000 is the median, 999990 is 99.999 %. 0 and 1000000 are minimum and maximum. 0 if empty.
uint64_t histogram_percentile(const struct histogram *histogram, uint32_t per_million);

// `count` of them, in ascending order, in one pass.
void histogram_percentiles(
	const struct histogram *histogram,
	const uint32_t *per_million,
	size_t count,
	uint64_t *ret_values
);

struct histogram_span {
	uint64_t lowest, highest;
	uint64_t before, count; // records in all lower buckets, and in this one
};

// Between which values record number `rank` lies, counted from the smallest, 1: its bucket, kept
// between minimum and maximum. Returns 0, or -ERANGE for 0 and beyond those in buckets.
int histogram_at_rank(
	const struct histogram *histogram, uint64_t rank, struct histogram_span *ret_span
);

// How many records are below the bucket of a value, clamped to the range, and in it.
void histogram_at_value(
	const struct histogram *histogram, uint64_t value, uint64_t *ret_before, uint64_t *ret_count
);

// Puts a compact form, runs of non-empty buckets as varints, and nothing that depends on the
// machine. Failure is the writer's.
void histogram_encode(const struct histogram *histogram, struct wire_writer *writer);

// The input is hostile: no more than `size_bytes_max` is allocated, and what is accepted could
// have been encoded: counters, count, minimum, maximum and sums agree. Returns 0; -EBADMSG
// (malformed), -EPROTO (version), -EMSGSIZE (`size_bytes_max`), -ENOMEM or the reader's own
// error; the reader has then failed with it.
int histogram_decode(
	struct wire_reader *reader, size_t size_bytes_max, struct histogram **ret_histogram
);

// Private to lib, as every field: written as the file's head says, each write a release,
// `sequence` odd in the middle of one.
struct histogram_moments {
	_Atomic uint64_t count, lost, under, over;
	_Atomic uint64_t min, max;	     // UINT64_MAX and 0 if empty
	_Atomic uint64_t sum[2], squares[2]; // low and high half
	_Atomic uint32_t sequence;
};

// The form for many paths: 256 bytes, octaves only, 1 ns to 73 minutes, error <= 1/3, 32-bit
// counters. In the caller's storage; all rules above hold.
#define HISTOGRAM_LOG2_BUCKETS 42

struct histogram_log2 {
	struct histogram_moments moments;
	_Atomic uint32_t counters[HISTOGRAM_LOG2_BUCKETS];
};
static_assert(sizeof(struct histogram_log2) <= 256, "a path may cost no more");

extern const struct histogram_shape histogram_shape_log2;

void histogram_log2_init(struct histogram_log2 *log2);
// Hot; writer.
void histogram_log2_record(struct histogram_log2 *log2, uint64_t value);
int histogram_log2_snapshot(const struct histogram_log2 *live, struct histogram_log2 *copy);
void histogram_log2_summarize(
	const struct histogram_log2 *log2, struct histogram_summary *ret_summary
);
uint64_t histogram_log2_percentile(const struct histogram_log2 *log2, uint32_t per_million);
