// SPDX-License-Identifier: BSD-3-Clause
// Print random data and the results of our statistics as JSON. scipy_test.py compares the results
// with scipy's.
#include "compare.h"
#include "perf/stats/generator.h"
#include "quantile.h"
#include "segments.h"

#include <inttypes.h>
#include <stdio.h>

static void print_binomials(struct generator *generator) {
	for (int n = 0; n < 300; n++) {
		uint64_t trials = 1 + (uint64_t)(generator_uniform(generator) * 100000);
		double p = generator_uniform(generator);
		// Choose successes around the mean, where the function changes most.
		double spread = 8 * (generator_uniform(generator) - 0.5) *
				(1 + (double)trials * p * (1 - p)) / (1 + (double)trials * 0.01);
		double middle = (double)trials * p + spread;
		uint64_t successes = middle < 0 ? 0 : (uint64_t)middle;

		printf("%s[%" PRIu64 ", %.17g, %" PRIu64 ", %.17g]", n == 0 ? "" : ", ", trials, p,
		       successes, binomial_cdf(trials, p, successes));
	}
}

static void print_values(const double *values, uint32_t count) {
	for (uint32_t n = 0; n < count; n++)
		printf("%s%.17g", n == 0 ? "[" : ", ", values[n]);
	printf("]");
}

static void print_comparisons(struct generator *generator) {
	for (uint32_t n = 0; n < 100; n++) {
		double a[12], b[12];
		uint32_t a_count = 4 + n % 9, b_count = 4 + n / 9 % 9;
		struct compare_result result = {0};

		for (uint32_t run = 0; run < 12; run++) {
			a[run] = generator_normal(generator);
			b[run] = generator_normal(generator) + n % 3;
		}
		if (compare_runs(a, a_count, b, b_count, 0.95, &result) != 0)
			continue;
		printf("%s{\"a\": ", n == 0 ? "" : ", ");
		print_values(a, a_count);
		printf(", \"b\": ");
		print_values(b, b_count);
		printf(", \"p\": %.17g, \"shift\": %.17g}", result.p, result.shift);
	}
}

int main(void) {
	struct generator generator = generator_seeded(7);

	printf("{\"binomials\": [");
	print_binomials(&generator);
	printf("], \"kolmogorov\": [");
	for (int n = 1; n < 100; n++)
		printf("%s[%.17g, %.17g]", n == 1 ? "" : ", ", n * 0.04, kolmogorov_tail(n * 0.04));
	printf("], \"normal\": [");
	for (int n = 1; n < 100; n++)
		printf("%s[%.17g, %.17g]", n == 1 ? "" : ", ", n * 0.01, normal_quantile(n * 0.01));
	printf("], \"comparisons\": [");
	print_comparisons(&generator);
	printf("]}\n");
	return 0;
}
