// SPDX-License-Identifier: BSD-3-Clause
// Counts operations in a slot: no lock, no system call, no allocation. Runs on the program's own
// threads.
#include "count_inside.h"

// Several threads write. The thread that claims the signature writes it; a late thread counts its
// own signature as lost.
static void write_shared_signature(
	struct job_launched *row, uint64_t n, uint64_t count, uint64_t what, uint64_t time_ns
) {
	struct job_signature *signature = &row->signatures[n % JOB_SIGNATURES];
	uint64_t before = atomic_load_explicit(&signature->sequence, memory_order_relaxed);

	if (before % 2 == 0 && before < 2 * n + 1 &&
	    atomic_compare_exchange_strong_explicit(
		    &signature->sequence, &before, 2 * n + 1, memory_order_acquire,
		    memory_order_relaxed
	    ))
		count_write_signature(signature, n, count, what, time_ns);
	else
		atomic_fetch_add_explicit(&row->marks.signatures_lost, 1, memory_order_relaxed);
}

// Slow path: the slot is shared, or the time is recorded.
static __attribute__((noinline)) void
count_launch_slow(struct tocsin_counter *counter, uint32_t kind, uint64_t count, uint64_t what) {
	struct job_launched *row = counter->launched;
	uint64_t time_ns = counter->times ? count_clock_ns() : 0, n;

	if (counter->shared) {
		count_raise(&row->counts.kinds[kind], true);
		n = count_raise(&row->counts.total, true);
		write_shared_signature(row, n, count, what, time_ns);
		return;
	}
	n = atomic_load_explicit(&row->counts.total, memory_order_relaxed) + 1;
	count_write_signature(&row->signatures[n % JOB_SIGNATURES], n, count, what, time_ns);
	count_raise_own(&row->counts.kinds[kind]);
	atomic_store_explicit(&row->counts.total, n, memory_order_release);
}

void tocsin_counter_launched(
	struct tocsin_counter *counter,
	enum tocsin_kind given,
	uint64_t count,
	uint8_t datatype,
	int32_t root
) {
	struct job_launched *row = counter->launched;
	uint32_t kind = kind_or_other(given);
	uint64_t what, n;

	if (!kind_is_collective(kind)) {
		count_raise(&row->counts.kinds[kind], counter->shared);
		return;
	}
	what = job_signature_pack((uint8_t)kind, datatype, root);
	if (counter->shared || counter->times) {
		count_launch_slow(counter, kind, count, what);
		return;
	}
	n = atomic_load_explicit(&row->counts.total, memory_order_relaxed) + 1;
	count_write_signature(&row->signatures[n % JOB_SIGNATURES], n, count, what, 0);
	count_raise_own(&row->counts.kinds[kind]);
	atomic_store_explicit(&row->counts.total, n, memory_order_release);
}

void tocsin_counter_started(struct tocsin_counter *counter, enum tocsin_kind kind) {
	count_row(counter->started, kind, counter->shared, counter->times ? count_clock_ns() : 0);
}

void tocsin_counter_completed(struct tocsin_counter *counter, enum tocsin_kind kind) {
	count_row(counter->completed, kind, counter->shared, counter->times ? count_clock_ns() : 0);
}

void tocsin_counter_started_to(struct tocsin_counter *counter, uint64_t n) {
	count_raise_to(&counter->started->counts.total, n);
}

void tocsin_counter_completed_to(struct tocsin_counter *counter, uint64_t n) {
	count_raise_to(&counter->completed->counts.total, n);
}
