// SPDX-License-Identifier: BSD-3-Clause
// Histograms of times with bounded size, and sums.
#pragma once

#include <stdint.h>

// 32 steps to each doubling: a quantile is at most 3 % off.
#define STATS_STEP_BITS 5
#define STATS_BUCKETS ((64 - STATS_STEP_BITS + 1) << STATS_STEP_BITS)

struct stats {
	uint64_t count;
	uint64_t min, max;
	double sum;
	uint32_t buckets[STATS_BUCKETS];
};

void stats_add(struct stats *stats, uint64_t value);
double stats_mean(const struct stats *stats); // NaN if empty
// Return the quantile of `part`, 0 < part <= 1; NaN if empty.
double stats_quantile(const struct stats *stats, double part);
