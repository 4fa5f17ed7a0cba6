// SPDX-License-Identifier: BSD-3-Clause
// CRC-32 of Ethernet (reflected, inverted at start and end), computed the fastest way of this
// processor. It also finds 16 adjacent bits that explain a CRC difference.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Return the same value as zlib's crc32(). Any thread.
uint32_t icrc_crc32(const uint8_t *bytes, size_t size);

// Methods; each processor supports those up to its best one. icrc_crc32_by() is for tests and
// returns false for an unsupported method.
enum icrc_method {
	ICRC_BY_TABLE,
	ICRC_BY_BLOCKS,
	ICRC_BY_WIDE_BLOCKS,
};
bool icrc_crc32_by(enum icrc_method way, const uint8_t *bytes, size_t size, uint32_t *ret_crc);

// Find a changed pair of adjacent bytes, `after` bytes before the end (up to ICRC_TRAILING_MAX).
// The CRC is affine, so such texts differ in their CRC by one of 65,536 values. Returns true if
// `difference` is one of them; then *ret_bits is the exclusive or of the two bytes, the first in
// the low half.
#define ICRC_TRAILING_MAX 4400
bool icrc_find_changed_bytes(uint32_t difference, size_t after, uint16_t *ret_bits);
