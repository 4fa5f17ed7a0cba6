// SPDX-License-Identifier: BSD-3-Clause
// Random latencies whose true quantiles are known: the same for the same seed.
#pragma once

#include <stdint.h>

struct generator {
	uint64_t state[4];
	double level;  // of the autoregressive process, in deviations
	double memory; // its lag-1 correlation
};

struct generator generator_seeded(uint64_t seed);
double generator_uniform(struct generator *generator); // within 0..1, neither of them
double generator_normal(struct generator *generator);
// Sets the correlation and begins in the stationary law.
void generator_start(struct generator *generator, double memory);
// The next level of the process: standard normal, each time.
double generator_next(struct generator *generator);
// A latency in ns around 1 ms, lognormal with deviation 0.3 of the level.
uint64_t latency_of_level(double level);
