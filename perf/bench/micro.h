// SPDX-License-Identifier: BSD-3-Clause
// Micro benchmarks. A micro benchmark is a function that repeats an operation and returns the time.
// Preparation comes before the first reading of the clock, and cleanup after the second.
//
// A new benchmark needs three edits: write its slice in micro_SUBJECT.c, declare it here, and add a
// row to the table of its program: micro_main.c, rcu_main.c or worker_main.c.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Return the nanoseconds that `rounds` operations took. In a row of unit "%", return the processor
// time used within MICRO_SHARE_NS.
#define MICRO_SHARE_NS UINT64_C(100000000)
typedef uint64_t micro_slice(uint64_t rounds);

enum micro_target {
	MICRO_TARGET_NONE,  // informative only
	MICRO_TARGET_VALUE, // upper bound, in the row's unit
	MICRO_TARGET_RATIO, // upper bound, as a multiple of the yardstick
};

struct micro_row {
	const char *what;
	micro_slice *slice;
	const char *yardstick_what;
	micro_slice *yardstick;
	const char *unit; // "ns" or "ms" per operation, "%" of a processor
	enum micro_target target_of;
	double target;
};

// Main program of a benchmark: measure the rows and print them. Returns the exit status.
int micro_run(const char *bench, const struct micro_row *rows, size_t count, int argc, char **argv);

// Prevent the compiler from removing the computation of a value. An asm without outputs is never
// removed.
static inline void micro_keep(uint64_t value) {
	__asm__("" : : "r"(value) : "memory");
}

int micro_run(const char *bench, const struct micro_row *rows, size_t count, int argc, char **argv);

// Make the compiler assume that the memory is read and written.
static inline void micro_touch(void *memory) {
	__asm__("" : : "r"(memory) : "memory");
}

micro_slice micro_histogram_record;
micro_slice micro_histogram_log2_record;
micro_slice micro_counter_add;
micro_slice micro_histogram_snapshot;
micro_slice micro_histogram_copy;

micro_slice micro_record_sample;
micro_slice micro_record_sample_long;
micro_slice micro_record_clock_twice;

micro_slice micro_wire_message;
micro_slice micro_wire_memcpy;

micro_slice micro_clock_tsc;
micro_slice micro_clock_monotonic;
micro_slice micro_clock_rdtsc;

micro_slice micro_log_disabled;
micro_slice micro_log_load_and_branch;

micro_slice micro_hostlist_expand;
micro_slice micro_hostlist_format;

micro_slice micro_rcu_row_near;
micro_slice micro_rcu_row_any;
micro_slice micro_rcu_probe;
micro_slice micro_rcu_find;
micro_slice micro_rcu_quiescent;
micro_slice micro_rcu_publish;
micro_slice micro_rcu_publish_join;
micro_slice micro_rcu_rwlock;
micro_slice micro_rcu_spinlock;
micro_slice micro_rcu_rwlock_any;
micro_slice micro_rcu_copy_table;

micro_slice micro_worker_turn;
micro_slice micro_worker_idle;
micro_slice micro_worker_idle_window;
micro_slice micro_worker_deadlines;
micro_slice micro_worker_empty_wakes;

micro_slice micro_step_shipped;
micro_slice micro_step_monotonic;
micro_slice micro_lane_idle;
micro_slice micro_lane_poll_cq;
micro_slice micro_lane_one;
micro_slice micro_lane_one_deadline;
micro_slice micro_lane_batch;
micro_slice micro_lane_raw_one;
micro_slice micro_lane_raw_batch;
