// SPDX-License-Identifier: BSD-3-Clause
// Change points of a history: the runs at which the level of a quantile changes.
//
// The history has few values, one per run. At each run the ranks before and after are compared by
// the Mann-Whitney U, in standard deviations. The largest U of all runs is the test statistic. Its
// distribution is found from random permutations of the values, with a fixed seed. If such a value
// is improbable, the history is cut there, and both parts are searched in turn. Each part gets its
// share of the error probability. The method needs no particular distribution, but runs must be
// independent: slow drift appears as several changes.
#pragma once

#include <stdint.h>

// Minimum length of a part, so that one outlier is no change.
#define CHANGES_LENGTH_MIN 3

struct change_part {
	uint32_t first, count;
	double p; // probability that the cut before this part is chance; 1 for the first part
};

// Find the change points. `alpha` is the probability of a cut without a change, 0 < alpha < 1.
// Writes at most `most` parts, which cover all values in order. Returns the number of parts,
// -ERANGE if no cut is possible with so few values, -E2BIG or -ENOMEM.
int changes_find(
	const double *values,
	uint32_t count,
	double alpha,
	struct change_part *ret_parts,
	uint32_t most
);

// Return the smallest number of values with which a cut is possible.
uint32_t changes_values_min(double alpha);
