// SPDX-License-Identifier: BSD-3-Clause
// Autocorrelation time of the indicator {x <= q} along a run.
//
// tau = 1 + 2 * sum of the autocorrelations: n consecutive samples give as much information on P(x
// <= q) as n / tau independent ones. It is estimated from blocks of consecutive samples, spread
// over the run. The autocovariances of all blocks are pooled around the mean of the whole run. They
// are summed while pairs of lags are positive and decreasing (Geyer's initial monotone sequence),
// until noise dominates. Each indicator is one bit. A lag costs a shift, an AND and a popcount per
// 64 samples.
#pragma once

#include <stdint.h>

struct indicator_block {
	const uint64_t *samples; // consecutive
	uint32_t count;
};

struct indicator_time {
	double tau;    // >= 1
	uint32_t lags; // number of summed lags
	// 0: tau may be larger. The longest block is shorter than two tau, or the sum still grew at
	// its end.
	uint32_t resolved;
};

// Measure tau from blocks. `share` is the share of the whole run at or below `bound`, 0..1. If all
// samples are on one side, tau is 1. Returns 0, -EINVAL if no block has two samples, or -ENOMEM.
int indicator_measure(
	const struct indicator_block *blocks,
	uint32_t block_count,
	uint64_t bound,
	double share,
	struct indicator_time *ret_time
);

// Estimate tau from consecutive windows, from how much more the counts vary than those of
// independent samples would. Windows must be longer than the dependence between samples. counts[]
// holds the samples at or below the bound in each window of `samples`. Returns 0 if all samples are
// on one side. *ret_error is the approximate standard error of the logarithm of the result if the
// true value is `tau`.
double indicator_measure_windows(
	const uint64_t *counts,
	uint32_t window_count,
	uint64_t samples,
	double tau,
	double *ret_error
);
