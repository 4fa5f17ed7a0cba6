// SPDX-License-Identifier: BSD-3-Clause
// Random latencies of two states, and known properties of this process and of autoregressive ones.
#pragma once

#include "perf/stats/generator.h"

// A machine that is calm most of the time. A calm phase has 200 lognormal samples on average. A
// storm has 20, with a Pareto tail of exponent 1.5, whose variance is infinite.
struct storms {
	struct generator generator;
	int stormy;
};

struct storms storms_seeded(uint64_t seed);
uint64_t storms_next(struct storms *storms);
// Return the true quantile, and the autocorrelation time of the indicator {x <= quantile}.
double storms_quantile(double p);
double storms_tau(double p);
// Return that autocorrelation time for the autoregressive process with lag-1 correlation `memory`.
double autoregressive_tau(double memory, double p);
