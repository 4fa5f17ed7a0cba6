// SPDX-License-Identifier: BSD-3-Clause
// Mann-Whitney test of a quarter against the half after it, by the normal distribution.
#include "warmup.h"

#include "quantile.h"
#include "ranks.h"

#include <lib/must.h>
#include <lib/scoped.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

// Return the factor by which ties reduce the variance of U; coarse clocks cause many ties.
static double tie_share(const double *ranks, uint32_t count, double *scratch) {
	double sum = 0, n = count;

	for (uint32_t place = 0; place < count; place++)
		scratch[place] = ranks[place];
	qsort(scratch, count, sizeof(scratch[0]), doubles_compare);
	for (uint32_t first = 0, next; first < count; first = next) {
		double ties;

		for (next = first; next < count && scratch[next] == scratch[first]; next++)
			;
		ties = next - first;
		sum += ties * ties * ties - ties;
	}
	return 1 - sum / (n * n * n - n);
}

int warmup_check(const uint64_t *samples, uint32_t count, struct warmup_check *ret_look) {
	uint32_t quarter = count / 4, half = count / 2, used = quarter + half;
	scoped_mem double *values = calloc(3 * (size_t)used, sizeof(*values));
	double sum = 0, a = quarter, b = half, mean, deviation, z;
	double *scratch, *ranks;

	must(count >= WARMUP_SAMPLES_MIN && count <= WARMUP_SAMPLES_MAX);
	if (values == NULL)
		return -ENOMEM;
	scratch = values + used;
	ranks = scratch + used;
	for (uint32_t n = 0; n < used; n++)
		values[n] = (double)samples[count - used + n];
	ranks_compute(values, used, scratch, ranks);
	for (uint32_t n = 0; n < quarter; n++)
		sum += ranks[n];
	mean = a * (a + b + 1) / 2;
	deviation = sqrt(a * b * (a + b + 1) / 12 * tie_share(ranks, used, scratch));
	z = deviation > 0 ? fabs(sum - mean) / deviation : 0;
	ret_look->p = 2 * (1 - normal_cdf(z));
	ret_look->warm = ret_look->p > WARMUP_ALPHA;
	return 0;
}
