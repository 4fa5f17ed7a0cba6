// SPDX-License-Identifier: BSD-3-Clause
// xoshiro256**, normal values by Box and Muller, and a first-order autoregressive process.
#include "perf/stats/generator.h"

#include <lib/splitmix.h>

#include <math.h>

static uint64_t rotate_left(uint64_t value, unsigned int bits) {
	return value << bits | value >> (64 - bits);
}

static uint64_t next_word(struct generator *generator) {
	uint64_t *state = generator->state;
	uint64_t word = rotate_left(state[1] * 5, 7) * 9;
	uint64_t shifted = state[1] << 17;

	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= shifted;
	state[3] = rotate_left(state[3], 45);
	return word;
}

// splitmix64 spreads the seed over the state.
struct generator generator_seeded(uint64_t seed) {
	struct generator generator = {.level = 0};

	for (int n = 0; n < 4; n++)
		generator.state[n] = splitmix_next(&seed);
	return generator;
}

double generator_uniform(struct generator *generator) {
	return ((double)(next_word(generator) >> 11) + 0.5) / 9007199254740992.0;
}

double generator_normal(struct generator *generator) {
	double radius = sqrt(-2 * log(generator_uniform(generator)));

	return radius * cos(2 * 3.14159265358979323846 * generator_uniform(generator));
}

void generator_start(struct generator *generator, double memory) {
	generator->memory = memory;
	generator->level = generator_normal(generator);
}

double generator_next(struct generator *generator) {
	double memory = generator->memory;

	generator->level =
		memory * generator->level + sqrt(1 - memory * memory) * generator_normal(generator);
	return generator->level;
}

uint64_t latency_of_level(double level) {
	return (uint64_t)(1e6 * exp(0.3 * level));
}
