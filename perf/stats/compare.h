// SPDX-License-Identifier: BSD-3-Clause
// Comparison of two sets of runs, one quantile at a time.
//
// The unit is a run: each run gives one value of the quantile. Runs on one machine differ more from
// each other than samples of one run. The test is the Mann-Whitney test, which is exact for few
// runs. The shift is the Hodges-Lehmann estimate, the median of all differences, with the interval
// of the same test. The share is the same estimate of the ratios. Several quantiles are several
// claims, so their p-values are adjusted by Holm's method. "No change" is a claim of its own: the
// interval lies within a margin.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Limit per side; with more runs the normal distribution is used.
#define COMPARE_EXACT_MAX 60

struct compare_result {
	double shift;	  // b minus a, in the unit of the values
	double low, high; // interval of the shift
	// b / a - 1, and its interval; NAN if a value is not positive. They come from the
	// logarithms of the values: the shift divided by one value of a may be below -1.
	double share, share_low, share_high;
	double p; // two-sided
};

// Compare two sets without NAN. A tie counts half, and p is rounded up. Returns 0, -ERANGE if so
// few runs give no interval of this level (nothing is set), or -ENOMEM.
int compare_runs(
	const double *a,
	uint32_t a_count,
	const double *b,
	uint32_t b_count,
	double level,
	struct compare_result *ret_result
);

// Return the smallest p that this number of runs can give.
double compare_p_min(uint32_t a_count, uint32_t b_count);

// Return the smallest number of runs per side with which the test can reject, for `claims`
// simultaneous claims.
uint32_t compare_runs_min(double level, uint32_t claims);

// Adjust the p-values of `count` simultaneous claims by Holm's method. The order stays.
void compare_adjust(double *ps, uint32_t count);

// Return true if the interval of the share lies within the margin. For a test at level a the
// interval must have level 1 - 2a.
bool compare_is_within(const struct compare_result *result, double margin);
