// SPDX-License-Identifier: BSD-3-Clause
// Shared by sealing and its keys: the secrets, and the one hash that derives everything.
#pragma once

#include <lib/seal_keys.h>

#define SEAL_SECRET_BYTES 32
#define SEAL_KEY_ID_BYTES 8

struct seal_key {
	uint8_t id[SEAL_KEY_ID_BYTES];
	uint8_t secret[SEAL_SECRET_BYTES];
};

// Allocated by sodium_malloc(): locked if the limits allow it, left out of core dumps.
struct seal_keys {
	uint32_t references;
	uint32_t count;
	bool is_keyless;
	struct seal_key keys[SEAL_KEYS_MAX];
};

// Hash bytes with BLAKE2b under a key (NULL: none). The purpose, at most 16 characters, separates
// the uses of one key. ret_hash may be the key itself.
void seal_hash(
	const uint8_t *key,
	const char *purpose,
	const void *bytes,
	size_t size,
	uint8_t ret_hash[static SEAL_SECRET_BYTES]
);

// Return the key with this id, or NULL. The id is sent in the clear.
const struct seal_key *
seal_keys_find(const struct seal_keys *keys, const uint8_t id[static SEAL_KEY_ID_BYTES]);
