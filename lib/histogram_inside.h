// SPDX-License-Identifier: BSD-3-Clause
// Layout, bucket arithmetic and write protocol, shared by the histogram files.
//
// The protocol is a sequence lock with one writer. Every data store is a release and every load of
// a snapshot an acquire, so no fence is needed. A snapshot that read any store of a write also
// reads the odd sequence of that write, and tries again. On x86, all of these are plain moves.
#pragma once

#include <lib/histogram.h>

#include <stdbool.h>

// A histogram. Its moments and counters follow in the same allocation, or belong to a
// histogram_log2 for the duration of one call.
struct histogram {
	struct histogram_shape shape;
	uint32_t sub_bits;    // log2 of the buckets in an octave
	uint32_t index_first; // bucket_index() of value_min, which has counter 0
	uint32_t bucket_count;
	struct histogram_moments *moments;
	union {
		_Atomic uint32_t *narrow; // counter_bits 32
		_Atomic uint64_t *wide;	  // counter_bits 64
	};
};

struct bucket {
	uint64_t lowest, highest;
};

// Initialize all fields except moments and counters. The shape must be valid.
void histogram_init_layout(const struct histogram_shape *shape, struct histogram *ret_histogram);

// Return the values of bucket n, not limited to the range of the histogram.
struct bucket histogram_bucket(const struct histogram *histogram, uint32_t n);

// Return the bucket of a value, monotonic in `value`. A power of two starts a bucket.
static inline uint32_t bucket_index(uint32_t sub_bits, uint64_t value) {
	uint32_t msb = 63 - (uint32_t)__builtin_clzll(value | 1ULL << sub_bits);
	uint32_t shift = msb - sub_bits;

	return (shift << sub_bits) + (uint32_t)(value >> shift);
}

static inline uint64_t value_clamp(uint64_t value, uint64_t min, uint64_t max) {
	if (value < min)
		return min;
	return value > max ? max : value;
}

static inline uint32_t bucket_number(const struct histogram *histogram, uint64_t value) {
	uint64_t clamped =
		value_clamp(value, histogram->shape.value_min, histogram->shape.value_max);

	return bucket_index(histogram->sub_bits, clamped) - histogram->index_first;
}

// Load a cell. For the writer, or without a concurrent writer.
static inline uint64_t cell_load_relaxed(const _Atomic uint64_t *cell) {
	return atomic_load_explicit(cell, memory_order_relaxed);
}

static inline uint64_t cell_load_acquire(const _Atomic uint64_t *cell) {
	return atomic_load_explicit(cell, memory_order_acquire);
}

static inline void cell_store(_Atomic uint64_t *cell, uint64_t value) {
	atomic_store_explicit(cell, value, memory_order_release);
}

static inline unsigned __int128 wide_load(const _Atomic uint64_t cells[2]) {
	return (unsigned __int128)cell_load_relaxed(&cells[1]) << 64 | cell_load_relaxed(&cells[0]);
}

static inline void wide_store(_Atomic uint64_t cells[2], unsigned __int128 value) {
	cell_store(&cells[0], (uint64_t)value);
	cell_store(&cells[1], (uint64_t)(value >> 64));
}

static inline unsigned __int128 wide_add(unsigned __int128 a, unsigned __int128 b) {
	unsigned __int128 sum = a + b;

	return sum >= a ? sum : ~(unsigned __int128)0;
}

static inline uint64_t counter_max(const struct histogram *histogram) {
	return histogram->shape.counter_bits == 32 ? UINT32_MAX : UINT64_MAX;
}

static inline uint64_t counter_load(const struct histogram *histogram, uint32_t n) {
	if (histogram->shape.counter_bits == 32)
		return atomic_load_explicit(&histogram->narrow[n], memory_order_relaxed);
	return cell_load_relaxed(&histogram->wide[n]);
}

static inline void counter_store(struct histogram *histogram, uint32_t n, uint64_t value) {
	if (histogram->shape.counter_bits == 32)
		atomic_store_explicit(&histogram->narrow[n], (uint32_t)value, memory_order_release);
	else
		cell_store(&histogram->wide[n], value);
}

static inline void write_begin(struct histogram_moments *moments) {
	uint32_t even = atomic_load_explicit(&moments->sequence, memory_order_relaxed);

	atomic_store_explicit(&moments->sequence, even + 1, memory_order_relaxed);
}

static inline void write_end(struct histogram_moments *moments) {
	uint32_t odd = atomic_load_explicit(&moments->sequence, memory_order_relaxed);

	atomic_store_explicit(&moments->sequence, odd + 1, memory_order_release);
}
