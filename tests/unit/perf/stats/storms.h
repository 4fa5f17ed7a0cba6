// SPDX-License-Identifier: BSD-3-Clause
// Random latencies of two states with known quantiles.
#pragma once

#include "perf/stats/generator.h"

// Mean lengths of both states in samples, and the latencies of a storm. Calm ones are lognormal.
struct storms_shape {
	double calm, storm;
	double factor; // of calm latencies; 0: a Pareto tail of exponent 1.5 (infinite variance)
};

struct storms {
	struct generator generator;
	struct storms_shape shape;
	int stormy, switches;
};

struct storms storms_seeded(const struct storms_shape *shape, uint64_t seed);
uint64_t storms_next(struct storms *storms);
double storms_quantile(const struct storms_shape *shape, double p);
