// SPDX-License-Identifier: BSD-3-Clause
// Ranks by two binary searches in a sorted copy.
#include "ranks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int doubles_compare(const void *a, const void *b) {
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int samples_compare(const void *a, const void *b) {
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

// Return how many sorted values are below `value`; with `or_equal` also the equal ones.
static uint32_t count_below(const double *sorted, uint32_t count, double value, bool or_equal) {
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sorted[middle] < value || (or_equal && sorted[middle] <= value))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void ranks_compute(const double *values, uint32_t count, double *scratch, double *ret_ranks) {
	memcpy(scratch, values, count * sizeof(*scratch));
	qsort(scratch, count, sizeof(*scratch), doubles_compare);
	for (uint32_t n = 0; n < count; n++)
		ret_ranks[n] = (count_below(scratch, count, values[n], false) + 1.0 +
				count_below(scratch, count, values[n], true)) /
			       2;
}
