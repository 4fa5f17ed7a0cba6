// SPDX-License-Identifier: BSD-3-Clause
// Two sets of runs against each other, one quantile at a time.
//
// The unit is a run: what is compared is each run's quantile, since runs of one machine differ from
// each other by more than samples of one run do. The test is that of Mann and Whitney, exact for
// few runs; the shift is that of Hodges and Lehmann, the median of all differences, with the
// interval that belongs to the test. Several quantiles are several claims: their probabilities are
// adjusted by Holm's method. "No change" is a claim of its own, that the interval lies within a
// margin.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Of each side; above it the normal law is used.
#define COMPARE_EXACT_MAX 60

struct compare_result {
	double shift;	  // of b against a, in the unit of the values
	double low, high; // its interval
	double p;	  // two-sided
};

// Values without NAN. Returns 0; -ERANGE, and nothing set, if no interval of that level exists for
// so few runs; -ENOMEM. A value that both sides have counts half, and p is rounded up.
int compare_runs(
	const double *a,
	uint32_t a_count,
	const double *b,
	uint32_t b_count,
	double level,
	struct compare_result *ret_result
);

// The least p that so many runs can give, whatever their values.
double compare_p_least(uint32_t a_count, uint32_t b_count);

// The fewest runs of each side with which the test can reject at all, if `claims` are made at once.
uint32_t compare_runs_least(double level, uint32_t claims);

// Adjusts the probabilities of `count` claims made at once; the order stays.
void compare_adjust(double *ps, uint32_t count);

// Both sides are within `margin` of each other, as an interval of level 1 - 2a tells for a test at
// a.
bool compare_is_within(const struct compare_result *result, double margin);
