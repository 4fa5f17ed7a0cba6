// SPDX-License-Identifier: BSD-3-Clause
// tocsin-policy-bench: idle policies of a worker that drives a device with known completion times.
//
// A cell is a distribution of completion times, an arrival process and a rate. The contenders take
// turns, slice by slice, on the same operations. A slice gives one value per metric. A cell gives
// the median over its slices, with the interval that contains the true median with 96 %
// probability.
#pragma once

#include <dataplane/worker.h>

#include <stdbool.h>
#include <stdio.h>

#define POLICY_SLICES 9
#define POLICY_OPS_MAX 16384 // per slice

// Distribution of completion times.

enum policy_law {
	POLICY_CONSTANT,
	POLICY_NARROW, // within 2 % of the mean
	POLICY_EXPONENTIAL,
	POLICY_BIMODAL, // 90 % take a quarter of the mean, 10 % take 7.75 times the mean
};

enum policy_arrival {
	POLICY_POISSON,	 // requests of a caller, who wakes the worker
	POLICY_BURSTY,	 // the same in bursts of eight
	POLICY_PERIODIC, // probes by the worker itself
};

struct policy_cell {
	uint64_t mean_ns;
	enum policy_law law;
	enum policy_arrival arrival;
	uint32_t rate;	  // per second
	uint32_t counted; // recorded operations per slice
	uint32_t warming; // operations before the recorded ones, which are dropped
};

struct policy_op {
	uint64_t at_ns; // relative to the start of the slice
	uint64_t takes_ns;
};

struct policy_trace {
	struct policy_op ops[POLICY_OPS_MAX];
	uint32_t count;
};

const char *policy_law_name(enum policy_law law);
const char *policy_arrival_name(enum policy_arrival arrival);
// Return the interquartile range of the distribution.
uint64_t policy_law_iqr_ns(const struct policy_cell *cell);
// Draw a trace; the same seed gives the same trace.
void policy_trace_draw(
	const struct policy_cell *cell, uint64_t seed, struct policy_trace *ret_trace
);

// The device.

struct policy_sample {
	uint64_t late_ns;  // from request to post
	uint64_t took_ns;  // from post to the time when the completion is seen
	uint64_t added_ns; // from completion to the time when it is seen
};

struct policy_device;

// Create the device. `clock` is the clock of its worker. Returns 0 or -errno.
int policy_device_create(const struct clock *clock, struct policy_device **ret_device);
struct policy_device *policy_device_destroy(struct policy_device *device);
// Parts of the worker's configuration.
struct worker_poll policy_device_poll(struct policy_device *device);
void policy_device_request(void *ctx, struct worker *worker, const struct worker_record *record);

// Control: start a slice with the idle policy that the worker was given before. Returns when the
// worker has begun.
void policy_device_begin(struct policy_device *device, struct worker *worker);
// Play a trace, and return when all completions have been seen. The returned samples are in the
// order of completion, and valid until the next start.
const struct policy_sample *policy_device_play(
	struct policy_device *device,
	struct worker *worker,
	const struct policy_trace *trace,
	enum policy_arrival arrival
);

// Measurement of a cell.

enum policy_contender {
	POLICY_SPIN,
	POLICY_WINDOW,
	POLICY_EVENT,
	POLICY_ADAPTIVE,
	POLICY_BLIND, // adaptive without foresight
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
	POLICY_OF_SPIN,	 // p50 of `took` relative to spinning, in the same round
	POLICY_OF_BLOCK, // p50 of `added` relative to blocking at once, in the same round
	POLICY_METRICS,
};

// Median and interval; NaN if there were too few samples.
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

// Create the bench and start its worker. Returns 0 or -errno.
int policy_bench_create(struct policy_bench **ret_bench);
struct policy_bench *policy_bench_destroy(struct policy_bench *bench);
uint64_t policy_bench_block_ns(const struct policy_bench *bench);
void policy_bench_measure(
	struct policy_bench *bench, const struct policy_cell *cell, struct policy_result *ret_result
);

// Output of the results.

void policy_table_head(uint64_t block_ns);
// Print a result. Returns the number of missed targets.
uint32_t policy_table_print(const struct policy_result *result);
// Append a result to the JSON array `rows` (json_t). Returns 0, or -1 without memory.
int policy_table_json(const struct policy_result *result, void *rows);
