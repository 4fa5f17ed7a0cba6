// SPDX-License-Identifier: BSD-3-Clause
// Latencies of two states, and the quantiles of their mixture.
#include "perf/stats/storms.h"

#include "quantile.h"

#include <math.h>

#define STORM_LEAST_NS 1.2e6
#define STORM_EXPONENT 1.5

static double storm_share(const struct storms_shape *shape) {
	return shape->storm / (shape->calm + shape->storm);
}

struct storms storms_seeded(const struct storms_shape *shape, uint64_t seed) {
	struct storms storms = {.generator = generator_seeded(seed), .shape = *shape};

	storms.stormy = generator_uniform(&storms.generator) < storm_share(shape);
	return storms;
}

uint64_t storms_next(struct storms *storms) {
	struct generator *generator = &storms->generator;
	double length = storms->stormy ? storms->shape.storm : storms->shape.calm;
	double factor = storms->shape.factor, calm_ns;

	if (generator_uniform(generator) < 1 / length) {
		storms->stormy = !storms->stormy;
		storms->switches++;
	}
	if (storms->stormy && !(factor > 0))
		return (uint64_t
		)(STORM_LEAST_NS * pow(generator_uniform(generator), -1 / STORM_EXPONENT));
	calm_ns = (double)latency_of_level(generator_normal(generator));
	return (uint64_t)(storms->stormy ? calm_ns * factor : calm_ns);
}

static double calm_below(double latency_ns) {
	return normal_cdf(log(latency_ns / 1e6) / 0.3);
}

static double storm_below(const struct storms_shape *shape, double latency_ns) {
	if (shape->factor > 0)
		return calm_below(latency_ns / shape->factor);
	return latency_ns < STORM_LEAST_NS ? 0
					   : 1 - pow(latency_ns / STORM_LEAST_NS, -STORM_EXPONENT);
}

double storms_quantile(const struct storms_shape *shape, double p) {
	double low = 1, high = 1e15, share = storm_share(shape);

	while (high / low > 1 + 1e-12) {
		double middle = sqrt(low * high);

		if ((1 - share) * calm_below(middle) + share * storm_below(shape, middle) < p)
			low = middle;
		else
			high = middle;
	}
	return high;
}
