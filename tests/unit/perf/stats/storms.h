// SPDX-License-Identifier: BSD-3-Clause
// Random latencies of two states, and what is known of them and of autoregressive ones beforehand.
#pragma once

#include "perf/stats/generator.h"

// A machine that is calm most of the time: 200 samples in a row on average, lognormal, and then 20
// disturbed ones, with a tail of Pareto of exponent 1.5 (its variance is infinite).
struct storms {
	struct generator generator;
	int stormy;
};

struct storms storms_seeded(uint64_t seed);
uint64_t storms_next(struct storms *storms);
// The true quantile, and the autocorrelation time of {x <= it}.
double storms_quantile(double p);
double storms_tau(double p);
// The same time of the autoregressive process of that lag-1 correlation.
double autoregressive_tau(double memory, double p);
