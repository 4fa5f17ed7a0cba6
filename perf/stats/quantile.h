// SPDX-License-Identifier: BSD-3-Clause
// Intervals of a quantile by order statistics, at an effective number of samples.
//
// Among m independent samples, the number at or below the true quantile is binomial, for any
// distribution. The interval reaches from order statistic l to u. Both tails are equal: P(B(m, p) <
// l) <= a/2 and P(B(m, p) >= u) <= a/2. Consecutive latencies depend on each other. n of them give
// as much information as m = n / tau independent ones. tau is the autocorrelation time of the
// indicator {x <= q} (indicator.h). Ranks among m are scaled to ranks among n.
//
// No interval exists below a minimum m (36 for p90, 368 for p99, 3,688 for p99.9 at 95 %). The
// result is then -ERANGE, and tables show n/a. A larger m is needed to know the rate of larger
// samples within 10 %: quantile_samples_for_rate().
#pragma once

#include <stdint.h>

// Unit of quantiles, as in histogram_percentile(): 500000 is the median.
#define QUANTILE_ONE 1000000u

struct quantile_ranks {
	uint64_t low, high; // 1 is the smallest sample, n the largest
};

// Return P(B(trials, p) <= successes), 0 <= p <= 1. The error is below 1e-12 up to 1e12 trials.
double binomial_cdf(uint64_t trials, double p, uint64_t successes);

// Compute the ranks of the interval among `count` samples that are worth `effective` independent
// ones. `effective` is at least 1; a value above count counts as count. `level` is the coverage,
// for example 0.95, with 0 < level < 1. 0 < per_million < QUANTILE_ONE. Returns 0, or -ERANGE
// (nothing is set) if there is no interval of this level.
int quantile_interval(
	uint64_t count,
	double effective,
	uint32_t per_million,
	double level,
	struct quantile_ranks *ret_ranks
);

// Return the smallest number of independent samples for which quantile_interval() succeeds.
uint64_t quantile_samples_min(uint32_t per_million, double level);

// Return the smallest number of samples for which the share of the rarer side is known within 10 %.
// Uses the normal distribution.
uint64_t quantile_samples_for_rate(uint32_t per_million, double level);

// Return the p-quantile of the standard normal distribution; 0 < p < 1.
double normal_quantile(double p);
double normal_cdf(double x);
