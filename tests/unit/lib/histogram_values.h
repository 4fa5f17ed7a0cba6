// SPDX-License-Identifier: BSD-3-Clause
// Reproducible values of several distributions for the histogram tests.
#pragma once

#include <lib/splitmix.h>

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define VALUES_MAX 20000

struct distribution {
	const char *name;
	uint64_t (*draw)(uint64_t *random_state);
};

// Return a number in (0, 1].
static inline double random_unit(uint64_t *random_state) {
	return (double)((splitmix_next(random_state) >> 11) + 1) * 0x1p-53;
}

static inline uint64_t draw_constant(uint64_t *random_state) {
	(void)random_state;
	return 123457;
}

static inline uint64_t draw_uniform(uint64_t *random_state) {
	return 1 + splitmix_next(random_state) % 1000000;
}

static inline uint64_t draw_small(uint64_t *random_state) {
	return splitmix_next(random_state) % 200;
}

static inline uint64_t draw_exponential(uint64_t *random_state) {
	return 1 + (uint64_t)(-log(random_unit(random_state)) * 25000);
}

static inline uint64_t draw_bimodal(uint64_t *random_state) {
	uint64_t around = splitmix_next(random_state) % 10 < 9 ? 2000 : 5000000;

	return around + splitmix_next(random_state) % (around / 8);
}

// Pareto with exponent 0.7: it has no finite mean, and values reach past an hour.
static inline uint64_t draw_heavy_tail(uint64_t *random_state) {
	double value = 1000 * pow(random_unit(random_state), -1 / 0.7);

	return value < 0x1p63 ? (uint64_t)value : 1ULL << 63;
}

static inline uint64_t draw_power_edge(uint64_t *random_state) {
	uint64_t power = 1ULL << splitmix_next(random_state) % 42;

	return power + splitmix_next(random_state) % 3 - 1;
}

static inline uint64_t draw_anything(uint64_t *random_state) {
	return splitmix_next(random_state) >> splitmix_next(random_state) % 64;
}

static const struct distribution distributions[] = {
	{"constant", draw_constant},
	{"uniform", draw_uniform},
	{"small", draw_small},
	{"exponential", draw_exponential},
	{"bimodal", draw_bimodal},
	{"heavy tail", draw_heavy_tail},
	{"power edges", draw_power_edge},
	{"anything", draw_anything},
};

#define DISTRIBUTION_COUNT (sizeof(distributions) / sizeof(distributions[0]))

static inline void
values_fill(const struct distribution *distribution, uint64_t *ret_values, size_t count) {
	uint64_t random_state = 20;

	for (size_t n = 0; n < count; n++)
		ret_values[n] = distribution->draw(&random_state);
}
