// SPDX-License-Identifier: BSD-3-Clause
// Change points of a history: where a run's quantile stops being what it was, run after run.
//
// Few values, each of a run of its own. At every place the ranks before are held against those
// after (Mann and Whitney's U, in its deviations); the largest of all places has the law that it
// has under every order of the values, from which orders are drawn with a seed that never changes.
// Where so large a one is improbable the history is cut there, and each part is looked at again
// with its share of the whole history's chance. The law holds for whatever distribution, as long
// as runs do not depend on each other: slow drift is told as several changes.
#pragma once

#include <stdint.h>

// No part is shorter: one odd run is no change.
#define CHANGES_LENGTH_MIN 3

struct change_part {
	uint32_t first, count;
	double p; // of the cut before it, by chance; 1 for the first
};

// `alpha` is the chance of a cut where there is none: 0 < alpha < 1. Writes parts that cover all
// values in order, at most `most`, and returns how many; -ERANGE (no place could ever be that
// improbable with so few values), -E2BIG or -ENOMEM.
int changes_find(
	const double *values,
	uint32_t count,
	double alpha,
	struct change_part *ret_parts,
	uint32_t most
);

// The fewest values with which a cut is possible.
uint32_t changes_least(double alpha);
