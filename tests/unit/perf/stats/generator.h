// SPDX-License-Identifier: BSD-3-Clause
// Random latencies with known true quantiles; the same seed gives the same latencies.
#pragma once

#include <stdint.h>

struct generator {
	uint64_t state[4];
	double level;  // level of the autoregressive process, in standard deviations
	double memory; // lag-1 correlation of the process
};

struct generator generator_seeded(uint64_t seed);
double generator_uniform(struct generator *generator); // in the open interval (0, 1)
double generator_normal(struct generator *generator);
// Set the lag-1 correlation and start in the stationary distribution.
void generator_start(struct generator *generator, double memory);
// The next level of the process: standard normal, each time.
double generator_next(struct generator *generator);
// A latency in ns around 1 ms, lognormal with deviation 0.3 of the level.
uint64_t latency_of_level(double level);
