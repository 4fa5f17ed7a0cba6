// SPDX-License-Identifier: BSD-3-Clause
// Mann-Whitney test, Hodges-Lehmann shift and Holm's adjustment.
#include "compare.h"

#include "quantile.h"
#include "ranks.h"

#include <lib/must.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct null_law {
	double *exact; // probabilities of U = 0, 1, ...; NULL: normal distribution
	double mean, deviation;
	uint32_t most;
};

// Compute the distribution of U if both sides are equally fast. Returns 0 or -ENOMEM.
static int law_make(uint32_t a_count, uint32_t b_count, struct null_law *law) {
	double count = (double)a_count * b_count, *ways;

	*law = (struct null_law){.most = a_count * b_count};
	law->mean = count / 2;
	law->deviation = sqrt(count * (a_count + b_count + 1.0) / 12);
	if (a_count > COMPARE_EXACT_MAX || b_count > COMPARE_EXACT_MAX)
		return 0;
	ways = calloc(law->most + 1u, sizeof(*ways));
	if (ways == NULL)
		return -ENOMEM;

	// Each run of b may rank above 0 to a_count runs of a, and all such combinations are
	// equally likely. So the number of combinations with sum U is a number of partitions.
	//
	// Compute the coefficients of the Gaussian binomial, scaled to probabilities at each step.
	// Factor n is (1 - q^(a + n)) / (1 - q^n), multiplied by n / (a + n).
	ways[0] = 1;
	for (uint32_t n = 1; n <= b_count; n++) {
		for (uint32_t u = law->most; u >= a_count + n; u--)
			ways[u] -= ways[u - a_count - n];
		for (uint32_t u = n; u <= law->most; u++)
			ways[u] += ways[u - n];
		for (uint32_t u = 0; u <= law->most; u++)
			ways[u] *= (double)n / (a_count + n);
	}
	law->exact = ways;
	return 0;
}

// Return P(U <= u).
static double law_cdf(const struct null_law *law, uint32_t u) {
	double sum = 0;

	if (law->exact == NULL)
		return normal_cdf((u + 0.5 - law->mean) / law->deviation);
	for (uint32_t n = 0; n <= u && n <= law->most; n++)
		sum += law->exact[n];
	return sum;
}

// Sort the differences and compute the result. Returns 0, or -ERANGE if there are too few.
static int compare_differences(
	double *differences,
	const struct null_law *law,
	double level,
	struct compare_result *ret_result
) {
	double tail = (1 - level) / 2, below = 0, above;
	uint32_t count = law->most, out = 0;

	// The interval leaves out `out` differences at each end. Too few runs allow not even 0.
	if (law_cdf(law, 0) > tail)
		return -ERANGE;
	while (out + 1 < count / 2 && law_cdf(law, out + 1) <= tail)
		out++;
	qsort(differences, count, sizeof(*differences), doubles_compare);
	ret_result->shift = (differences[(count - 1) / 2] + differences[count / 2]) / 2;
	ret_result->low = differences[out];
	ret_result->high = differences[count - 1 - out];

	// U is the smaller one of both pair counts. A tie counts half; the result is rounded up.
	for (uint32_t n = 0; n < count; n++)
		below += differences[n] < 0 ? 1 : differences[n] <= 0 ? 0.5 : 0;
	above = count - below;
	ret_result->p = fmin(1, 2 * law_cdf(law, (uint32_t)ceil(fmin(below, above))));
	return 0;
}

int compare_runs(
	const double *a,
	uint32_t a_count,
	const double *b,
	uint32_t b_count,
	double level,
	struct compare_result *ret_result
) {
	struct null_law law;
	struct compare_result shifts, ratios = {.shift = NAN, .low = NAN, .high = NAN};
	double *differences;
	bool positive = true;
	int err;

	must(level > 0 && level < 1);
	if (a_count == 0 || b_count == 0)
		return -ERANGE;
	err = law_make(a_count, b_count, &law);
	if (err < 0)
		return err;
	differences = calloc(law.most, sizeof(*differences));
	if (differences == NULL) {
		free(law.exact);
		return -ENOMEM;
	}
	for (uint32_t n = 0; n < law.most; n++)
		differences[n] = b[n % b_count] - a[n / b_count];
	err = compare_differences(differences, &law, level, &shifts);
	for (uint32_t n = 0; n < law.most; n++) {
		positive &= a[n / b_count] > 0 && b[n % b_count] > 0;
		differences[n] = positive ? log(b[n % b_count] / a[n / b_count]) : 0;
	}
	if (err == 0 && positive)
		err = compare_differences(differences, &law, level, &ratios);
	if (err == 0) {
		*ret_result = shifts;
		ret_result->share = expm1(ratios.shift);
		ret_result->share_low = expm1(ratios.low);
		ret_result->share_high = expm1(ratios.high);
	}
	free(differences);
	free(law.exact);
	return err;
}

// The smallest p belongs to the case that all runs of one side are above all of the other. Only 2
// of all orders are of this kind.
double compare_p_min(uint32_t a_count, uint32_t b_count) {
	double probability = 2;

	for (uint32_t n = 1; n <= a_count; n++)
		probability *= (double)n / (b_count + n);
	return fmin(1, probability);
}

uint32_t compare_runs_min(double level, uint32_t claims) {
	uint32_t runs = 0;

	must(level > 0 && level < 1 && claims > 0);
	while (compare_p_min(runs, runs) > (1 - level) / claims)
		runs++;
	return runs;
}

void compare_adjust(double *ps, uint32_t count) {
	double least = 0;

	// From the smallest p on, multiply each by the number of remaining claims. The result is
	// never below the previous one. A negative sign marks the finished values (-0 for zero).
	for (uint32_t left = count; left > 0; left--) {
		uint32_t next = count;

		for (uint32_t n = 0; n < count; n++) {
			if (!signbit(ps[n]) && (next == count || ps[n] < ps[next]))
				next = n;
		}
		least = fmax(least, fmin(1, ps[next] * left));
		ps[next] = -least;
	}
	for (uint32_t n = 0; n < count; n++)
		ps[n] = fabs(ps[n]);
}

bool compare_is_within(const struct compare_result *result, double margin) {
	return result->share_low >= -margin && result->share_high <= margin;
}
