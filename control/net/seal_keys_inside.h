// SPDX-License-Identifier: BSD-3-Clause
// What sealing and its keys share: the secrets, and the one hash that everything is derived by.
#pragma once

#include <control/seal_keys.h>

#define SEAL_SECRET_BYTES 32
#define SEAL_KEY_ID_BYTES 8

struct seal_key {
	uint8_t id[SEAL_KEY_ID_BYTES];
	uint8_t secret[SEAL_SECRET_BYTES];
};

// Lives in memory of sodium_malloc(): locked if the limits allow, left out of core dumps.
struct seal_keys {
	uint32_t references;
	uint32_t count;
	bool is_keyless;
	struct seal_key keys[SEAL_KEYS_MAX];
};

// BLAKE2b of bytes under a key (NULL: none). The purpose, at most 16 characters, parts the uses of
// one key from each other. ret_hash may be the key itself.
void seal_hash(
	const uint8_t *key,
	const char *purpose,
	const void *bytes,
	size_t size,
	uint8_t ret_hash[static SEAL_SECRET_BYTES]
);

// The key with this id, or NULL. The id travels in the clear.
const struct seal_key *
seal_keys_find(const struct seal_keys *keys, const uint8_t id[static SEAL_KEY_ID_BYTES]);
