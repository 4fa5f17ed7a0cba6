// SPDX-License-Identifier: BSD-3-Clause
// Cut a run where the ranks of its windows change.
#include "segments.h"

#include "ranks.h"

#include <lib/must.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Limit of the correlation of neighbouring windows: a higher value comes from a change, not from
// noise.
#define CORRELATION_MAX 0.9
#define SIDES_VARIANCE_FACTOR 4

struct cut {
	uint32_t at; // number of windows before the cut
	double p;
};

struct cutter {
	const double *const *series;
	uint32_t series_count, window_count, most, count;
	double alpha;
	double *ranks, *scratch; // scratch buffers of the searched windows
	struct segment *segments;
};

double kolmogorov_tail(double x) {
	double sum = 0;

	if (x < 0.2)
		return 1;
	for (int n = 1; n < 101; n++) {
		double term = exp(-2.0 * n * n * x * x);

		sum += n % 2 == 1 ? term : -term;
		if (term < 1e-18)
			break;
	}
	return fmin(1, 2 * sum);
}

static double mean_square_step(const double *ranks, uint32_t count, uint32_t distance) {
	double squares = 0;

	for (uint32_t n = distance; n < count; n++)
		squares += (ranks[n] - ranks[n - distance]) * (ranks[n] - ranks[n - distance]);
	return squares / (count - distance);
}

static double values_mean(const double *values, uint32_t count) {
	double sum = 0;

	for (uint32_t n = 0; n < count; n++)
		sum += values[n];
	return sum / count;
}

// Return the variance of a long mean times its length, for noise with correlation `alike` between
// neighbours.
static double scaled_variance(double variance, double alike) {
	alike = fmin(fmax(alike, 0), CORRELATION_MAX);
	return variance * (1 + alike) / (1 - alike);
}

// Estimate the variance from the deviations of each side, assuming that the level changes only at
// `at`.
static double variance_of_sides(const double *ranks, uint32_t count, uint32_t at) {
	double before = values_mean(ranks, at), after = values_mean(ranks + at, count - at);
	double squares = 0, products = 0, last = 0, alike;

	for (uint32_t n = 0; n < count; n++) {
		double rest = ranks[n] - (n < at ? before : after);

		squares += rest * rest;
		products += n != at ? rest * last : 0;
		last = rest;
	}
	if (squares <= 0)
		return 0;
	// Each side has its own mean, which reduces the estimated correlation (Kendall 1954). The
	// bias is (1 + 4 r) divided by the number of windows of a side.
	alike = products / squares;
	alike += (1 + 4 * alike) * 2 / count;
	return scaled_variance(squares / (count - 2), alike);
}

// Estimate the variance from steps: neighbours differ by 2 v (1 - r), windows at distance 2 by 2 v
// (1 - r r). A change of the level affects only a few steps, regardless of its position.
static double variance_of_steps(const double *ranks, uint32_t count) {
	double near = mean_square_step(ranks, count, 1);
	double far = mean_square_step(ranks, count, 2);
	double alike = near > 0 ? far / near - 1 : 0;

	alike = fmin(fmax(alike, 0), CORRELATION_MAX);
	return scaled_variance(near / (2 * (1 - alike)), alike);
}

// Return the most probable cut of one series.
static struct cut
series_best_cut(const struct cutter *cutter, const double *values, uint32_t count) {
	struct cut cut = {.at = count / 2, .p = 1};
	double sum = 0, furthest = 0, mean = (count + 1) / 2.0, variance;
	double *ranks = cutter->ranks;

	ranks_compute(values, count, cutter->scratch, ranks);
	for (uint32_t n = 0; n < count; n++) {
		sum += ranks[n] - mean;
		if (n + 1 < SEGMENTS_LENGTH_MIN || count - n - 1 < SEGMENTS_LENGTH_MIN ||
		    fabs(sum) <= furthest)
			continue;
		furthest = fabs(sum);
		cut.at = n + 1;
	}
	if (furthest <= 0)
		return cut;
	// If there is hardly any noise, a single change dominates the estimate by steps. This shows
	// when it is far above the estimate by sides; by chance both differ much less.
	variance = variance_of_steps(ranks, count);
	if (variance_of_sides(ranks, count, cut.at) * SIDES_VARIANCE_FACTOR < variance)
		variance = variance_of_sides(ranks, count, cut.at);
	// Without any noise, use the smallest step of a rank.
	variance = fmax(variance, 1.0 / count);
	cut.p = kolmogorov_tail(furthest / sqrt(variance * count));
	return cut;
}

// Cut each segment at its most probable cut in any series, until no cut is significant. The first
// part of a segment keeps its place, and the second part follows. Returns 0 or -E2BIG.
static int cut_all_segments(struct cutter *cutter) {
	uint32_t place = 0;

	while (place < cutter->count) {
		struct segment *segment = &cutter->segments[place];
		double share = (double)segment->count / cutter->window_count;
		bool is_long = segment->count >= 2 * SEGMENTS_LENGTH_MIN;
		struct cut best = {.p = 1};

		for (uint32_t n = 0; n < cutter->series_count && is_long; n++) {
			struct cut cut = series_best_cut(
				cutter, cutter->series[n] + segment->first, segment->count
			);

			if (cut.p < best.p)
				best = cut;
		}
		// Each part gets its share of the error probability of the whole run.
		if (!(best.p < cutter->alpha * share / cutter->series_count)) {
			place++;
			continue;
		}
		if (cutter->count == cutter->most)
			return -E2BIG;
		memmove(segment + 2, segment + 1, (cutter->count - place - 1) * sizeof(*segment));
		segment[1] = (struct segment){
			.first = segment->first + best.at,
			.count = segment->count - best.at,
			.p = best.p,
		};
		segment->count = best.at;
		cutter->count++;
	}
	return 0;
}

int segments_find(
	const double *const *series,
	uint32_t series_count,
	uint32_t window_count,
	double alpha,
	struct segment *ret_segments,
	uint32_t most
) {
	struct cutter cutter = {
		.series = series,
		.series_count = series_count,
		.window_count = window_count,
		.most = most,
		.alpha = alpha,
		.segments = ret_segments,
	};
	int err;

	must(series_count > 0 && alpha > 0 && alpha < 1);
	if (window_count < SEGMENTS_WINDOWS_MIN)
		return -ERANGE;
	if (most == 0)
		return -E2BIG;
	cutter.ranks = calloc(2 * (size_t)window_count, sizeof(*cutter.ranks));
	if (cutter.ranks == NULL)
		return -ENOMEM;
	cutter.scratch = cutter.ranks + window_count;
	ret_segments[0] = (struct segment){.first = 0, .count = window_count, .p = 1};
	cutter.count = 1;
	err = cut_all_segments(&cutter);
	free(cutter.ranks);
	return err < 0 ? err : (int)cutter.count;
}
