// SPDX-License-Identifier: BSD-3-Clause
// Loads and stores of big-endian numbers at unaligned addresses.
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load_be16(const uint8_t *from) {
	uint16_t coded;

	memcpy(&coded, from, sizeof(coded));
	return be16toh(coded);
}

static inline uint32_t load_be24(const uint8_t *from) {
	return (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
}

static inline uint32_t load_be32(const uint8_t *from) {
	uint32_t coded;

	memcpy(&coded, from, sizeof(coded));
	return be32toh(coded);
}

static inline uint64_t load_be64(const uint8_t *from) {
	uint64_t coded;

	memcpy(&coded, from, sizeof(coded));
	return be64toh(coded);
}

static inline void store_be16(uint8_t *to, uint16_t value) {
	const uint16_t coded = htobe16(value);

	memcpy(to, &coded, sizeof(coded));
}

static inline void store_be32(uint8_t *to, uint32_t value) {
	const uint32_t coded = htobe32(value);

	memcpy(to, &coded, sizeof(coded));
}

static inline void store_be64(uint8_t *to, uint64_t value) {
	const uint64_t coded = htobe64(value);

	memcpy(to, &coded, sizeof(coded));
}
