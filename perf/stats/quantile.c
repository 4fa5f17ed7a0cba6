// SPDX-License-Identifier: BSD-3-Clause
// The confidence interval of a quantile: the ranks of the samples that enclose it.
#include "quantile.h"

#include <lib/must.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>

// Bound that catches bugs: 2 sqrt(max(a, b)) terms are always enough.
#define FRACTION_TERMS_MAX 20000000u

// Evaluate the continued fraction of the incomplete beta function by Lentz's method.
static double beta_fraction(double a, double b, double x) {
	const double tiny = 1e-300;
	double c = 1;
	double d = 1 - (a + b) * x / (a + 1);
	double fraction;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	fraction = d;
	for (uint32_t m = 1; m < FRACTION_TERMS_MAX; m++) {
		double even = m * (b - m) * x / ((a + 2.0 * m - 1) * (a + 2.0 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1));

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		fraction *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		fraction *= d * c;
		if (fabs(d * c - 1) < 1e-15)
			break;
	}
	return fraction;
}

// Return log(gamma(x)) for x > 0, without the global sign variable of lgamma().
static double log_gamma(double x) {
	int sign;

	return lgamma_r(x, &sign);
}

static double beta_incomplete(double a, double b, double x) {
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double binomial_cdf(uint64_t trials, double p, uint64_t successes) {
	must(p >= 0 && p <= 1);
	if (successes >= trials)
		return 1;
	return beta_incomplete((double)(trials - successes), (double)successes + 1, 1 - p);
}

// Return the smallest k with P(B <= k) >= bound.
static uint64_t binomial_quantile(uint64_t trials, double p, double bound) {
	uint64_t low = 0, high = trials;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (binomial_cdf(trials, p, middle) >= bound)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

// Compute the ranks among independent samples. Returns false if there are too few.
static bool
independent_sample_ranks(uint64_t count, double p, double tail, struct quantile_ranks *ret_ranks) {
	uint64_t low = binomial_quantile(count, p, tail);
	uint64_t high = binomial_quantile(count, p, 1 - tail) + 1;

	// P(B <= low - 1) may equal `tail`, but binomial_quantile() stops there, so try one more.
	if (low < count && binomial_cdf(count, p, low) <= tail)
		low++;
	if (low == 0 || high > count)
		return false;
	*ret_ranks = (struct quantile_ranks){.low = low, .high = high};
	return true;
}

int quantile_interval(
	uint64_t count,
	double effective,
	uint32_t per_million,
	double level,
	struct quantile_ranks *ret_ranks
) {
	double p = (double)per_million / QUANTILE_ONE;
	struct quantile_ranks ranks;
	uint64_t worth;
	double scale;

	must(per_million > 0 && per_million < QUANTILE_ONE && level > 0 && level < 1);
	if (!(effective >= 1) || count == 0)
		return -ERANGE;
	worth = effective >= (double)count ? count : (uint64_t)effective;
	if (!independent_sample_ranks(worth, p, (1 - level) / 2, &ranks))
		return -ERANGE;
	scale = ((double)count + 1) / ((double)worth + 1);
	ranks.low = (uint64_t)floor((double)ranks.low * scale);
	ranks.high = (uint64_t)ceil((double)ranks.high * scale);
	ret_ranks->low = ranks.low > 0 ? ranks.low : 1;
	ret_ranks->high = ranks.high < count ? ranks.high : count;
	return 0;
}

// Return the share of the more common side of a quantile. The rarer side decides how many samples
// are needed.
static double common_share(uint32_t per_million) {
	double p = (double)per_million / QUANTILE_ONE;

	must(per_million > 0 && per_million < QUANTILE_ONE);
	return p > 0.5 ? p : 1 - p;
}

uint64_t quantile_samples_min(uint32_t per_million, double level) {
	double common = common_share(per_million);

	must(level > 0 && level < 1);
	return (uint64_t)ceil(log((1 - level) / 2) / log(common));
}

uint64_t quantile_samples_for_rate(uint32_t per_million, double level) {
	double common = common_share(per_million);
	double z;

	must(level > 0 && level < 1);
	z = normal_quantile((1 + level) / 2);
	return (uint64_t)ceil(z * z * common / (1 - common) / 0.01);
}

double normal_cdf(double x) {
	return erfc(-x / sqrt(2)) / 2;
}

// Bisect the distribution function: exact to the last bits, and not used in a hot path.
double normal_quantile(double p) {
	double low = -40, high = 40;

	must(p > 0 && p < 1);
	while (high - low > 1e-14 * (1 + fabs(low))) {
		double middle = (low + high) / 2;

		if (normal_cdf(middle) < p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}
