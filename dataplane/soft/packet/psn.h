// SPDX-License-Identifier: BSD-3-Clause
// Packet sequence numbers: 24 bits, compared modulo 2^24 to the nearer side.
#pragma once

#include <stdint.h>

#define PSN_MASK UINT32_C(0xffffff)

static inline uint32_t psn_add(uint32_t psn, uint32_t count) {
	return (psn + count) & PSN_MASK;
}

// Return the distance from b to a: -2^23 … 2^23-1.
static inline int32_t psn_diff(uint32_t a, uint32_t b) {
	return (int32_t)((a - b) << 8) >> 8;
}
