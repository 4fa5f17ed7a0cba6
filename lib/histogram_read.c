// SPDX-License-Identifier: BSD-3-Clause
// Queries on a histogram without a concurrent writer.
#include "histogram_inside.h"

#include <lib/must.h>

#include <errno.h>
#include <math.h>

#define MILLION 1000000U

static uint64_t value_in_range(const struct histogram *histogram, uint64_t value) {
	return value_clamp(value, histogram->shape.value_min, histogram->shape.value_max);
}

// Return the population standard deviation from exact sums. The sum of squared distances to the
// floor of the mean is an integer that fits. So intermediate overflow does no harm. There is no
// cancellation, even if the deviation is small beside the mean.
static double population_stdev(uint64_t count, unsigned __int128 sum, unsigned __int128 squares) {
	unsigned __int128 mean = sum / count;
	unsigned __int128 distances = squares - 2 * mean * sum + mean * mean * count;
	double rest = (double)(sum - mean * count) / (double)count;
	double variance = (double)distances / (double)count - rest * rest;

	if (squares == ~(unsigned __int128)0)
		return NAN;
	return variance > 0 ? sqrt(variance) : 0;
}

void histogram_summarize(const struct histogram *histogram, struct histogram_summary *ret_summary) {
	const struct histogram_moments *moments = histogram->moments;
	struct histogram_summary summary = {0};
	unsigned __int128 sum = wide_load(moments->sum);

	summary.count = cell_load_relaxed(&moments->count);
	if (summary.count > 0) {
		summary.lost = cell_load_relaxed(&moments->lost);
		summary.under = cell_load_relaxed(&moments->under);
		summary.over = cell_load_relaxed(&moments->over);
		summary.min = cell_load_relaxed(&moments->min);
		summary.max = cell_load_relaxed(&moments->max);
		summary.mean = (double)sum / (double)summary.count;
		summary.stdev = population_stdev(summary.count, sum, wide_load(moments->squares));
	}
	*ret_summary = summary;
}

// Return the reported value of the bucket with record number `rank`, counted from 1. All buckets
// before `*next` hold `*seen` records. The result is limited to minimum and maximum.
static uint64_t
ranked_value(const struct histogram *histogram, uint64_t rank, uint32_t *next, uint64_t *seen) {
	uint64_t min = value_in_range(histogram, cell_load_relaxed(&histogram->moments->min));
	uint64_t max = value_in_range(histogram, cell_load_relaxed(&histogram->moments->max));
	unsigned __int128 product;
	struct bucket bucket;
	uint64_t value = 0;

	while (*seen < rank)
		*seen += counter_load(histogram, (*next)++);
	bucket = histogram_bucket(histogram, *next - 1);
	// Use the harmonic mean of the bucket's ends: its relative distance to both is equal and
	// thus smallest.
	product = (unsigned __int128)bucket.lowest * bucket.highest;
	if (bucket.highest > 0)
		value = (uint64_t)(2 * product / (bucket.lowest + bucket.highest));
	return value_clamp(value, min, max);
}

void histogram_percentiles(
	const struct histogram *histogram,
	const uint32_t *per_million,
	size_t count,
	uint64_t *ret_values
) {
	const struct histogram_moments *moments = histogram->moments;
	uint64_t recorded = cell_load_relaxed(&moments->count);
	uint64_t in_buckets = recorded - cell_load_relaxed(&moments->lost);
	uint64_t seen = 0;
	uint32_t next = 0;

	for (size_t n = 0; n < count; n++) {
		unsigned __int128 scaled = (unsigned __int128)in_buckets * per_million[n];
		uint64_t rank = (uint64_t)((scaled + MILLION - 1) / MILLION);

		must(per_million[n] <= MILLION && (n == 0 || per_million[n] >= per_million[n - 1]));
		if (recorded == 0)
			ret_values[n] = 0;
		else if (per_million[n] == 0)
			ret_values[n] = cell_load_relaxed(&moments->min);
		else if (per_million[n] == MILLION || in_buckets == 0)
			ret_values[n] = cell_load_relaxed(&moments->max);
		else
			ret_values[n] = ranked_value(histogram, rank, &next, &seen);
	}
}

uint64_t histogram_percentile(const struct histogram *histogram, uint32_t per_million) {
	uint64_t value;

	histogram_percentiles(histogram, &per_million, 1, &value);
	return value;
}

int histogram_at_rank(
	const struct histogram *histogram, uint64_t rank, struct histogram_span *ret_span
) {
	const struct histogram_moments *moments = histogram->moments;
	uint64_t min = value_in_range(histogram, cell_load_relaxed(&moments->min));
	uint64_t max = value_in_range(histogram, cell_load_relaxed(&moments->max));
	uint64_t seen = 0;
	uint32_t next = 0;
	struct bucket bucket;

	if (rank == 0 ||
	    rank > cell_load_relaxed(&moments->count) - cell_load_relaxed(&moments->lost))
		return -ERANGE;
	while (seen < rank)
		seen += counter_load(histogram, next++);
	bucket = histogram_bucket(histogram, next - 1);
	ret_span->count = counter_load(histogram, next - 1);
	ret_span->before = seen - ret_span->count;
	ret_span->lowest = value_clamp(bucket.lowest, min, max);
	ret_span->highest = value_clamp(bucket.highest, min, max);
	return 0;
}

void histogram_at_value(
	const struct histogram *histogram, uint64_t value, uint64_t *ret_before, uint64_t *ret_count
) {
	uint32_t bucket = bucket_number(histogram, value);
	uint64_t before = 0;

	for (uint32_t n = 0; n < bucket; n++)
		before += counter_load(histogram, n);
	*ret_before = before;
	*ret_count = counter_load(histogram, bucket);
}
