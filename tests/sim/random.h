// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that are equal on all machines.
#pragma once

#include <lib/splitmix.h>

#include <stdint.h>

// Return 0 … bound-1. The bias is below bound / 2^32, which is acceptable here.
static inline uint32_t random_below(uint64_t *state, uint32_t bound) {
	return (uint32_t)((splitmix_next(state) >> 32) * bound >> 32);
}

// Return low … high, both inclusive.
static inline uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high) {
	return low + splitmix_next(state) % (high - low + 1);
}

// Derive an independent stream for each purpose, so that an additional draw does not change other
// streams.
static inline uint64_t random_stream(uint64_t seed, uint64_t purpose) {
	uint64_t state = seed ^ purpose * UINT64_C(0xd1342543de82ef95);

	return splitmix_next(&state);
}
