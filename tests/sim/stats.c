// SPDX-License-Identifier: BSD-3-Clause
#include "stats.h"

#include <math.h>

static uint32_t stats_bucket(uint64_t value) {
	uint32_t power;

	if (value < 1u << STATS_STEP_BITS)
		return (uint32_t)value;
	power = 63 - (uint32_t)__builtin_clzll(value) - STATS_STEP_BITS;
	return ((power + 1) << STATS_STEP_BITS) +
	       (uint32_t)(value >> power & ((1u << STATS_STEP_BITS) - 1));
}

// Return the largest value of the bucket.
static uint64_t stats_bucket_top(uint32_t bucket) {
	uint32_t power = bucket >> STATS_STEP_BITS;
	uint64_t step = bucket & ((1u << STATS_STEP_BITS) - 1);

	if (power == 0)
		return bucket;
	return (((UINT64_C(1) << STATS_STEP_BITS) + step + 1) << (power - 1)) - 1;
}

void stats_add(struct stats *stats, uint64_t value) {
	if (stats->count == 0 || value < stats->min)
		stats->min = value;
	if (value > stats->max)
		stats->max = value;
	stats->count++;
	stats->sum += (double)value;
	stats->buckets[stats_bucket(value)]++;
}

double stats_mean(const struct stats *stats) {
	return stats->count > 0 ? stats->sum / (double)stats->count : NAN;
}

double stats_quantile(const struct stats *stats, double part) {
	uint64_t wanted = (uint64_t)ceil(part * (double)stats->count);
	uint64_t seen = 0;

	if (stats->count == 0)
		return NAN;
	for (uint32_t n = 0; n < STATS_BUCKETS; n++) {
		uint64_t top = stats_bucket_top(n);

		seen += stats->buckets[n];
		if (seen >= wanted && seen > 0)
			return (double)(top < stats->max ? top : stats->max);
	}
	return (double)stats->max;
}
