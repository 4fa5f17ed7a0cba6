// SPDX-License-Identifier: BSD-3-Clause
// Change points of a run: where its windows stop being alike.
//
// A run is given as some series, each one quantile of every window (p50 and p99, say). In each the
// cumulated ranks, less their mean, are a bridge; its largest distance from 0, in units of the
// series' long-run deviation, has Kolmogorov's distribution as long as nothing changes (the CUSUM
// of ranks, Pettitt's test for n windows that do not depend on each other). Where that is
// improbable the run is cut there, and each part is looked at again. Ranks make it blind to how
// long a tail is; the long-run deviation, from the dependence of neighbouring windows on the two
// sides of the cut, keeps slow noise from being a change.
//
// Deterministic: the same windows, the same segments.
#pragma once

#include <stdint.h>

// Fewer windows than this are too few to judge: that is no word of "stationary".
#define SEGMENTS_WINDOWS_MIN 40
// No segment is shorter.
#define SEGMENTS_LENGTH_MIN 5

struct segment {
	uint32_t first, count; // windows
	double p;	       // of the cut before it, by chance; 1 for the first
};

// `series[s][w]` is series s in window w. `alpha` is the chance of a cut where there is none, for
// the whole run: 0 < alpha < 1. Writes at most `most` segments, which cover all windows in order,
// and returns how many there are; -ERANGE (fewer than SEGMENTS_WINDOWS_MIN windows), -E2BIG (more
// than `most`) or -ENOMEM.
int segments_find(
	const double *const *series,
	uint32_t series_count,
	uint32_t window_count,
	double alpha,
	struct segment *ret_segments,
	uint32_t most
);

// P(sup |Brownian bridge| > x).
double kolmogorov_tail(double x);
