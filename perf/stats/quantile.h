// SPDX-License-Identifier: BSD-3-Clause
// Intervals of a quantile by order statistics, at an effective number of samples.
//
// Of m independent samples the number at or below the true quantile is binomial, whatever the
// distribution. The interval is from order statistic l to order statistic u with
// P(B(m, p) < l) <= a/2 and P(B(m, p) >= u) <= a/2: equal tails. Latencies in a row depend on each
// other; n of them tell as much as m = n / tau independent ones, with tau the autocorrelation time
// of the indicator {x <= q} (indicator.h). Ranks among m are then moved in proportion among n.
//
// No interval exists below a least m (36 for p90, 368 for p99, 3,688 for p99.9 at 95 %): the answer
// is -ERANGE, and a table says n/a. Where m suffices for an interval and not for a rate of
// exceedance within 10 %, it says so too (quantile_samples_for_rate).
#pragma once

#include <stdint.h>

// Of quantiles: 500000 is the median. The same unit as histogram_percentile().
#define QUANTILE_ONE 1000000u

struct quantile_ranks {
	uint64_t low, high; // 1 is the smallest sample, n the largest
};

// P(B(trials, p) <= successes), by the incomplete beta function: within 1e-12 up to 1e12 trials.
// 0 <= p <= 1.
double binomial_cdf(uint64_t trials, double p, uint64_t successes);

// Ranks among `count` samples that are worth `effective` ones; 1 <= effective <= count, more is
// taken as count. `level` is the coverage, as 0.95; 0 < level < 1. 0 < per_million < QUANTILE_ONE.
// Returns 0; -ERANGE, and nothing set, if no interval of that level exists.
int quantile_interval(
	uint64_t count,
	double effective,
	uint32_t per_million,
	double level,
	struct quantile_ranks *ret_ranks
);

// The fewest independent samples for which quantile_interval() finds one.
uint64_t quantile_samples_least(uint32_t per_million, double level);

// The fewest for which the share of the rarer side, above or below, is known within 10 % of itself,
// by the normal law.
uint64_t quantile_samples_for_rate(uint32_t per_million, double level);

// The value that a standard normal exceeds with probability 1 - p; 0 < p < 1.
double normal_quantile(double p);
double normal_cdf(double x);
