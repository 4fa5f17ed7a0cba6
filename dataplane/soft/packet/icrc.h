// SPDX-License-Identifier: BSD-3-Clause
// CRC-32 as Ethernet's (reflected, ones first and last) by the fastest way that this processor has,
// and its algebra: which 16 bits so far from the end would explain a difference.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As zlib's crc32() of these bytes. Any thread.
uint32_t icrc_crc(const uint8_t *bytes, size_t size);

// Each processor has those up to its best. For tests: false if this one has not the one asked for.
enum icrc_way {
	ICRC_BY_TABLE,
	ICRC_BY_BLOCKS,
	ICRC_BY_WIDE_BLOCKS,
};
bool icrc_crc_by(enum icrc_way way, const uint8_t *bytes, size_t size, uint32_t *ret_crc);

// The CRC is affine: two texts that differ in two adjacent bytes only, `after` bytes before their
// end, have CRCs that differ by one of 65,536 values. True if `difference` is one of them; then
// *ret_bits are the exclusive or of the two bytes (the first one in the low half). after: up to
// ICRC_AFTER_MAX.
#define ICRC_AFTER_MAX 4400
bool icrc_explained(uint32_t difference, size_t after, uint16_t *ret_bits);
