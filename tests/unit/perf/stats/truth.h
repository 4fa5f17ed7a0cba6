// SPDX-License-Identifier: BSD-3-Clause
// Experiments whose truth is known: how often is what the laboratory says true?
//
// stats_truth_test.c beside it plays few repetitions of each, ./dev bench lab a thousand.
#pragma once

#include <stdint.h>

// p50 and p99.
#define TRUTH_QUANTILES 2

struct truth_process {
	const char *name;
	double memory; // of the autoregressive process; < 0: storms
	uint32_t samples;
	double least[TRUTH_QUANTILES], most; // shares of intervals that may hold the truth
};

#define TRUTH_PROCESSES 5
extern const struct truth_process truth_processes[TRUTH_PROCESSES];

struct truth_coverage {
	double held[TRUTH_QUANTILES];  // share of the intervals that hold the true quantile
	double width[TRUTH_QUANTILES]; // median, over that of the interval that knows tau
	double absent;		       // share of runs with one that has no interval
	double changed;		       // share of runs that were cut
};

void truth_coverage(
	const struct truth_process *process,
	uint32_t repetitions,
	uint64_t seed,
	struct truth_coverage *ret_coverage
);

// Shares of runs of 100,000 samples that are told as two segments, cut within 3 % of the run of
// where the change is: one half is 10 % slower; only 3 % of it are.
struct truth_changes {
	double shifted, tail;
};

void truth_changes(uint32_t repetitions, uint64_t seed, struct truth_changes *ret_changes);

// `compare` of ten runs and ten: lognormal latencies of deviation 0.3, medians of runs that deviate
// by 1 %, and the second ones slower by 2 %, or by nothing.
struct truth_comparison {
	double found;	// share of tries in which a quantile is told as slower
	double claimed; // share in which, of runs alike, any is told as slower or faster
	double same;	// share in which all of them are told as not changed within 2 %
};

void truth_comparison(
	uint32_t repetitions, uint32_t samples, uint64_t seed, struct truth_comparison *ret_told
);
