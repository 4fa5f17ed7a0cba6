// SPDX-License-Identifier: BSD-3-Clause
// Experiments with a known truth: how often are the results of the laboratory true?
// stats_truth_test.c runs few repetitions of each, ./dev bench lab a thousand.
#pragma once

#include <stdint.h>

// p50 and p99.
#define TRUTH_QUANTILES 2

struct truth_process {
	const char *name;
	double memory; // lag-1 correlation of the autoregressive process; < 0: storms
	uint32_t samples;
	double least[TRUTH_QUANTILES], most; // allowed shares of intervals that hold the truth
};

#define TRUTH_PROCESSES 5
extern const struct truth_process truth_processes[TRUTH_PROCESSES];

struct truth_coverage {
	double held[TRUTH_QUANTILES]; // share of the intervals that hold the true quantile
	// Median width, relative to the interval that uses the true tau.
	double width[TRUTH_QUANTILES];
	double absent;	// share of runs with a quantile without an interval
	double changed; // share of runs that were cut into segments
};

void truth_coverage(
	const struct truth_process *process,
	uint32_t repetitions,
	uint64_t seed,
	struct truth_coverage *ret_coverage
);

// Shares of runs of 100,000 samples that are reported as two segments. The cut must be within 3 %
// of the run around the true change. `shifted`: the second half is 10 % slower. `tail`: only 3 % of
// its samples are slower.
struct truth_changes {
	double shifted, tail;
};

void truth_changes(uint32_t repetitions, uint64_t seed, struct truth_changes *ret_changes);

// Results of `compare` of ten runs with ten: lognormal latencies of deviation 0.3, and medians that
// differ by 1 % between runs. The second ten are slower by 2 %, or equal.
struct truth_comparison {
	double found; // share of tries in which a quantile is reported as slower
	// Share of tries with equal runs in which any is reported as slower or faster.
	double claimed;
	double same; // share of tries in which all are reported as unchanged within 2 %
};

void truth_comparison(
	uint32_t repetitions, uint32_t samples, uint64_t seed, struct truth_comparison *ret_told
);
