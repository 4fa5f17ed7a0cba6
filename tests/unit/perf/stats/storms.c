// SPDX-License-Identifier: BSD-3-Clause
// Latencies of two states with a heavy tail, and known properties of both processes.
#include "perf/stats/storms.h"

#include "quantile.h"

#include <math.h>

#define CALM_ENDS (1.0 / 200)
#define STORM_ENDS (1.0 / 20)
#define STORM_LEAST_NS 1.2e6
#define STORM_EXPONENT 1.5

static double storm_share(void) {
	return CALM_ENDS / (CALM_ENDS + STORM_ENDS);
}

struct storms storms_seeded(uint64_t seed) {
	struct storms storms = {.generator = generator_seeded(seed)};

	storms.stormy = generator_uniform(&storms.generator) < storm_share();
	return storms;
}

uint64_t storms_next(struct storms *storms) {
	struct generator *generator = &storms->generator;
	double ends = storms->stormy ? STORM_ENDS : CALM_ENDS;

	if (generator_uniform(generator) < ends)
		storms->stormy = !storms->stormy;
	if (!storms->stormy)
		return latency_of_level(generator_normal(generator));
	return (uint64_t)(STORM_LEAST_NS * pow(generator_uniform(generator), -1 / STORM_EXPONENT));
}

static double calm_below(double latency_ns) {
	return normal_cdf(log(latency_ns / 1e6) / 0.3);
}

static double storm_below(double latency_ns) {
	return latency_ns < STORM_LEAST_NS ? 0
					   : 1 - pow(latency_ns / STORM_LEAST_NS, -STORM_EXPONENT);
}

double storms_quantile(double p) {
	double low = 1, high = 1e15;

	while (high / low > 1 + 1e-12) {
		double middle = sqrt(low * high), share = storm_share();

		if ((1 - share) * calm_below(middle) + share * storm_below(middle) < p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

// Samples are correlated only through their states. That correlation falls by a constant factor per
// lag.
double storms_tau(double p) {
	double latency_ns = storms_quantile(p), share = storm_share();
	double apart = calm_below(latency_ns) - storm_below(latency_ns);
	double memory = 1 - CALM_ENDS - STORM_ENDS;

	return 1 + 2 * share * (1 - share) * apart * apart / (p * (1 - p)) * memory / (1 - memory);
}

// P(X <= z and Y <= z) - P(X <= z)^2 of two normal variables with this correlation. It is the
// integral of their density over the correlation, with the arc sine substituted, by Simpson's rule.
static double joint_excess(double z, double correlation) {
	double end = asin(correlation), step = end / 200, sum = 0;

	for (int n = 0; n <= 200; n++) {
		double weight = n == 0 || n == 200 ? 1 : n % 2 == 1 ? 4 : 2;

		sum += weight * exp(-z * z / (1 + sin(n * step)));
	}
	return sum * step / 3 / (2 * 3.14159265358979323846);
}

double autoregressive_tau(double memory, double p) {
	double z = normal_quantile(p), tau = 1, correlation = memory;

	while (correlation > 1e-9) {
		tau += 2 * joint_excess(z, correlation) / (p * (1 - p));
		correlation *= memory;
	}
	return tau;
}
