// SPDX-License-Identifier: BSD-3-Clause
// Signatures for tests and the simulator. They cost a few nanoseconds, and no test forges one by
// accident. Anyone who knows the public key can make one, so they protect against nothing.
#pragma once

#include <lib/splitmix.h>
#include <ras/record.h>

#include <string.h>

// Fill ret_key with a key derived from `seed`, the same one for the same seed.
static inline void fake_key(uint64_t seed, uint8_t ret_key[static RAS_KEY_BYTES]) {
	for (size_t n = 0; n < RAS_KEY_BYTES; n += sizeof(seed)) {
		seed = splitmix_mix(seed + n + 1);
		memcpy(ret_key + n, &seed, sizeof(seed));
	}
}

static inline void fake_sign(
	const uint8_t key[static RAS_KEY_BYTES],
	const void *bytes,
	size_t size,
	uint8_t ret_signature[static RAS_SIGNATURE_BYTES]
) {
	const uint8_t *at = bytes;
	uint64_t value;

	memcpy(&value, key, sizeof(value));
	for (size_t n = 0; n < size; n++)
		value = (value ^ at[n]) * UINT64_C(0x100000001b3);
	for (size_t n = 0; n < RAS_SIGNATURE_BYTES; n += sizeof(value)) {
		value = splitmix_mix(value + n + 1);
		memcpy(ret_signature + n, &value, sizeof(value));
	}
}

static inline bool fake_verify(
	const uint8_t key[static RAS_KEY_BYTES],
	const void *bytes,
	size_t size,
	const uint8_t signature[static RAS_SIGNATURE_BYTES]
) {
	uint8_t expected[RAS_SIGNATURE_BYTES];

	fake_sign(key, bytes, size, expected);
	return memcmp(expected, signature, sizeof(expected)) == 0;
}

// The same, as ras_ops.verify.
static inline bool fake_verify_op(
	void *ctx,
	const uint8_t key[static RAS_KEY_BYTES],
	const void *bytes,
	size_t size,
	const uint8_t signature[static RAS_SIGNATURE_BYTES]
) {
	(void)ctx;
	return fake_verify(key, bytes, size, signature);
}

static inline void fake_sign_op(
	void *ctx,
	const uint8_t key[static RAS_KEY_BYTES],
	const void *bytes,
	size_t size,
	uint8_t ret_signature[static RAS_SIGNATURE_BYTES]
) {
	(void)ctx;
	fake_sign(key, bytes, size, ret_signature);
}

// Signs each record with the key that it names.
static const struct ras_signer fake_signer __attribute__((unused)) = {
	.cluster = "test",
	.sign = fake_sign_op,
	.verify = fake_verify_op,
};
