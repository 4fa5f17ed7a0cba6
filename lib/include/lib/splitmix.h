// SPDX-License-Identifier: BSD-3-Clause
// splitmix64: a generator of one word, which gives the same sequence on every machine. All seeds
// are equally good. Not for secrets.
#pragma once

#include <stdint.h>

// Return a number in which each bit depends on each bit of the value; 0 gives 0.
static inline uint64_t splitmix_mix(uint64_t value) {
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

// Return the next number.
static inline uint64_t splitmix_next(uint64_t *state) {
	return splitmix_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}
