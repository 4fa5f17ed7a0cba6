// SPDX-License-Identifier: BSD-3-Clause
// Raises counts in a slot. Memory order follows <tocsin/job_page.h>. Each store here is a release,
// paired with the acquire of a reader: counts.c, or the agent's copy.
#pragma once

#include "inside.h"

#include <time.h>

static inline bool kind_is_collective(uint32_t kind) {
	return kind != TOCSIN_SEND && kind != TOCSIN_RECEIVE && kind != TOCSIN_ONE_SIDED;
}

static inline uint32_t kind_or_other(enum tocsin_kind kind) {
	return (uint32_t)kind < TOCSIN_KIND_COUNT ? (uint32_t)kind : TOCSIN_OTHER;
}

static inline uint64_t count_clock_ns(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

// For the only writer of the slot: the relaxed load returns its own last store.
static inline uint64_t count_raise_own(_Atomic uint64_t *count) {
	uint64_t n = atomic_load_explicit(count, memory_order_relaxed) + 1;

	atomic_store_explicit(count, n, memory_order_release);
	return n;
}

static inline uint64_t count_raise(_Atomic uint64_t *count, bool shared) {
	if (shared)
		return atomic_fetch_add_explicit(count, 1, memory_order_release) + 1;
	return count_raise_own(count);
}

// Raise a count to n; never lower it.
static inline void count_raise_to(_Atomic uint64_t *count, uint64_t n) {
	uint64_t before = atomic_load_explicit(count, memory_order_relaxed);

	while (before < n && !atomic_compare_exchange_weak_explicit(
				     count, &before, n, memory_order_release, memory_order_relaxed
			     )) {
	}
}

// Count a started or completed operation. Its time is stored before its number.
static inline void
count_row(struct job_row *row, enum tocsin_kind given, bool shared, uint64_t time_ns) {
	uint32_t kind = kind_or_other(given);

	count_raise(&row->counts.kinds[kind], shared);
	if (!kind_is_collective(kind))
		return;
	if (time_ns != 0) {
		uint64_t n = atomic_load_explicit(&row->counts.total, memory_order_relaxed) + 1;

		atomic_store_explicit(
			&row->times_ns[n % JOB_SIGNATURES], time_ns, memory_order_relaxed
		);
	}
	count_raise(&row->counts.total, shared);
}

// Write one signature under its seqlock. The release stores keep the fields behind the odd
// sequence. They pair with the reader's second load of the sequence.
static inline void count_write_signature(
	struct job_signature *signature, uint64_t n, uint64_t count, uint64_t what, uint64_t time_ns
) {
	atomic_store_explicit(&signature->sequence, 2 * n + 1, memory_order_relaxed);
	atomic_store_explicit(&signature->count, count, memory_order_release);
	atomic_store_explicit(&signature->what, what, memory_order_release);
	atomic_store_explicit(&signature->time_ns, time_ns, memory_order_release);
	atomic_store_explicit(&signature->sequence, 2 * n + 2, memory_order_release);
}
