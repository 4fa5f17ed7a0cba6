// SPDX-License-Identifier: BSD-3-Clause
// Change points within a run: positions at which the latency of its windows changes.
//
// The input is several series, each with one quantile (for example p50 or p99) of every window. The
// cumulated ranks of a series, minus their mean, form a bridge. Its largest distance from 0, in
// units of the series' long-run deviation, has Kolmogorov's distribution if nothing changes. This
// is the CUSUM of ranks; for n independent windows it is Pettitt's test. If the distance is
// improbable, the run is cut there, and both parts are searched again. Ranks make the test
// insensitive to long tails. The long-run deviation accounts for the dependence of neighbouring
// windows on both sides of the cut. It prevents slow noise from counting as a change.
//
// The result is deterministic.
#pragma once

#include <stdint.h>

// Minimum number of windows for a judgement. Fewer windows do not imply a steady run.
#define SEGMENTS_WINDOWS_MIN 40
// Minimum length of a segment.
#define SEGMENTS_LENGTH_MIN 5

struct segment {
	uint32_t first, count; // in windows
	// Probability that the cut before the segment is chance; 1 for the first.
	double p;
};

// Find the segments of a run. `series[s][w]` is series s in window w. `alpha` is the probability of
// a cut without a change, for the whole run, 0 < alpha < 1. Writes at most `most` segments, which
// cover all windows in order. Returns their number, -ERANGE (fewer than SEGMENTS_WINDOWS_MIN
// windows), -E2BIG (more than `most`) or -ENOMEM.
int segments_find(
	const double *const *series,
	uint32_t series_count,
	uint32_t window_count,
	double alpha,
	struct segment *ret_segments,
	uint32_t most
);

// Return P(sup |Brownian bridge| > x).
double kolmogorov_tail(double x);
