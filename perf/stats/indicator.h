// SPDX-License-Identifier: BSD-3-Clause
// The autocorrelation time of the indicator {x <= q} along a run.
//
// tau = 1 + 2 * sum of the autocorrelations: n samples in a row tell of P(x <= q) as much as n /
// tau independent ones. It is estimated from blocks of samples that follow each other, spread over
// the run: autocovariances are pooled over all blocks around the whole run's mean, and summed while
// pairs of lags are positive and falling (Geyer's initial monotone sequence), which ends where
// noise begins. Each indicator is a bit, and a lag costs a shift, an AND and a count per 64
// samples.
#pragma once

#include <stdint.h>

struct indicator_block {
	const uint64_t *samples; // that follow each other
	uint32_t count;
};

struct indicator_time {
	double tau;	   // >= 1
	uint32_t lags;	   // that were summed
	uint32_t resolved; // 0: the longest block is shorter than two tau, or the sum still grew
			   // at its end: tau may be larger
};

// `share` is the part of the whole run at or below `bound`, 0..1. Returns 0, -EINVAL (no block of
// two samples) or -ENOMEM. Where all of the samples are on one side tau is 1.
int indicator_measure(
	const struct indicator_block *blocks,
	uint32_t block_count,
	uint64_t bound,
	double share,
	struct indicator_time *ret_time
);

// The same from windows in a row that are longer than what depends on each other: `counts` of
// samples at or below the bound in each, of `samples` each, by how much more they vary than those
// of independent samples. 0 where all are on one side. *ret_error is the standard error of its
// logarithm, about, where it is `tau` in truth.
double indicator_of_windows(
	const uint64_t *counts,
	uint32_t window_count,
	uint64_t samples,
	double tau,
	double *ret_error
);
