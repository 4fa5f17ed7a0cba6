// SPDX-License-Identifier: BSD-3-Clause
// tocsin-policy-bench: idle policies on a worker that drives a device of known completion times.
//
// A cell is a law of completion times, an arrival process and a rate. Its contenders take turns,
// slice by slice, on the same operations; a slice gives one value for each metric, a cell the
// median over its slices and the interval that holds the true median 96 times of 100.
#pragma once

#include <dataplane/worker.h>

#include <stdbool.h>
#include <stdio.h>

#define POLICY_SLICES 9
#define POLICY_OPS_MAX 16384 // of one slice

// Completion times.

enum policy_law {
	POLICY_CONSTANT,
	POLICY_NARROW, // within 2 % of the mean
	POLICY_EXPONENTIAL,
	POLICY_BIMODAL, // nine of ten take a quarter of the mean, one takes 7.75 times as long
};

enum policy_arrival {
	POLICY_POISSON,	 // requests of a caller: the bell rings
	POLICY_BURSTY,	 // the same, eight at once
	POLICY_PERIODIC, // probes of the worker's own
};

struct policy_cell {
	uint64_t mean_ns;
	enum policy_law law;
	enum policy_arrival arrival;
	uint32_t rate;	  // a second
	uint32_t counted; // operations of a slice
	uint32_t warming; // before them: what they took is not looked at
};

struct policy_op {
	uint64_t at_ns; // from the beginning of the slice
	uint64_t takes_ns;
};

struct policy_trace {
	struct policy_op ops[POLICY_OPS_MAX];
	uint32_t count;
};

const char *policy_law_name(enum policy_law law);
const char *policy_arrival_name(enum policy_arrival arrival);
// The distance of the quartiles of what it draws.
uint64_t policy_law_iqr_ns(const struct policy_cell *cell);
// The same for the same seed.
void policy_trace_draw(
	const struct policy_cell *cell, uint64_t seed, struct policy_trace *ret_trace
);

// The device.

struct policy_sample {
	uint64_t late_ns;  // posted after it was asked for
	uint64_t took_ns;  // posted to seen
	uint64_t added_ns; // complete to seen
};

struct policy_device;

// 0 or -errno. `clock` is that of its worker.
int policy_device_create(const struct clock *clock, struct policy_device **ret_device);
struct policy_device *policy_device_destroy(struct policy_device *device);
// For the worker's configuration.
struct worker_poll policy_device_poll(struct policy_device *device);
void policy_device_request(void *ctx, struct worker *worker, const struct worker_record *record);

// Control. Returns when the worker has taken it, with the policy it was told before.
void policy_device_begin(struct policy_device *device, struct worker *worker);
// Brings the operations as the cell says; returns when all of them were seen to be complete.
// Their samples are in the order of completion, and good until the next beginning.
const struct policy_sample *policy_device_play(
	struct policy_device *device,
	struct worker *worker,
	const struct policy_trace *trace,
	enum policy_arrival arrival
);

// A cell measured.

enum policy_contender {
	POLICY_SPIN,
	POLICY_WINDOW,
	POLICY_EVENT,
	POLICY_ADAPTIVE,
	POLICY_BLIND, // adaptive, and foresees nothing
	POLICY_CONTENDERS,
};

enum policy_metric {
	POLICY_TOOK_P50,
	POLICY_ADDED_P50,
	POLICY_ADDED_P90,
	POLICY_ADDED_P99,
	POLICY_ADDED_P999,
	POLICY_LATE_P50,
	POLICY_CPU_PER_OP,
	POLICY_CPU_SHARE,
	POLICY_WAKES,
	POLICY_RATIO,
	POLICY_OF_SPIN,	 // the p50 from posted to seen, of spinning's in the same round
	POLICY_OF_BLOCK, // the added p50, of that of blocking at once, in the same round
	POLICY_METRICS,
};

// NaN where there were too few samples.
struct policy_spread {
	double median, low, high;
};

struct policy_result {
	struct policy_cell cell;
	uint64_t block_ns;
	struct policy_spread spreads[POLICY_CONTENDERS][POLICY_METRICS];
};

const char *policy_contender_name(enum policy_contender contender);

struct policy_bench;

// 0 or -errno. Starts the worker.
int policy_bench_create(struct policy_bench **ret_bench);
struct policy_bench *policy_bench_destroy(struct policy_bench *bench);
uint64_t policy_bench_block_ns(const struct policy_bench *bench);
void policy_bench_measure(
	struct policy_bench *bench, const struct policy_cell *cell, struct policy_result *ret_result
);

// What came of it.

void policy_table_head(uint64_t block_ns);
// Returns how many targets are missed.
uint32_t policy_table_print(const struct policy_result *result);
// 0, or -1 without memory. `rows` is a json_t array.
int policy_table_json(const struct policy_result *result, void *rows);
