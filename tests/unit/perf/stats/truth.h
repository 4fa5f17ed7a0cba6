// SPDX-License-Identifier: BSD-3-Clause
// Experiments with a known truth: how often are the results of the laboratory true?
// stats_truth_test.c runs few repetitions of each, ./dev bench lab a thousand.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// p50, p99 and p99.9.
#define TRUTH_QUANTILES 3

struct storms_shape;

// One experiment: a random process, a number of samples, and required shares. 0: not required.
struct truth_row {
	const char *name;
	double memory;			   // lag-1 correlation of the autoregressive process
	const struct storms_shape *storms; // two-state process instead; NULL: autoregressive
	uint32_t samples;
	// Required shares: of printed intervals that hold the truth, and of runs with an interval.
	// If printed_least is 0 and at most 5 % of the runs have an interval, held_least is not
	// required.
	double held_least[TRUTH_QUANTILES], printed_least[TRUTH_QUANTILES];
	double width_most; // largest median width, relative to the true one
	bool switched;	   // only runs that were in both states are counted
};

#define TRUTH_ROWS 19
extern const struct truth_row truth_rows[TRUTH_ROWS];

struct truth_coverage {
	double printed[TRUTH_QUANTILES]; // share of runs with an interval
	double held[TRUTH_QUANTILES];	 // share of these intervals that hold the true quantile
	// Median width of the intervals, relative to the range of 95 % of the estimates.
	double width[TRUTH_QUANTILES];
	// Shares of wrong answers of --fail-if with the truth as threshold.
	double failed[TRUTH_QUANTILES], passed[TRUTH_QUANTILES];
	// Share of runs with both thresholds decided that are 10 % off the truth.
	double decided[TRUTH_QUANTILES];
	double changed; // share of runs that were cut into segments
};

void truth_coverage(
	const struct truth_row *row,
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
