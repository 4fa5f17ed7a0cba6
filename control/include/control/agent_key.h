// SPDX-License-Identifier: BSD-3-Clause
// The key pair of this agent, Ed25519. The cluster's key admits to the cluster; this one says which
// agent speaks. The public key is part of the agent's record.
//
// The file agent.key in the state directory has the form and the checks of a key file
// (<control/seal_keys.h>). The key pair is derived from it. Secrets are in locked memory, which is
// wiped at the end.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_KEY_BYTES 32 // a public key
#define AGENT_KEY_SIGNATURE_BYTES 64
#define AGENT_KEY_DETAIL_BYTES 256

struct agent_key;
struct seal_keys;

// Read the key of this state directory, or make it at the first start. Without a directory, or on a
// disk that cannot be written to, the key lives as long as the process. Returns 0, -ENOMEM, or
// another -errno with an explanation: the file exists and cannot be trusted or read, or it has a
// key of the cluster.
int agent_key_open(
	const char *directory, // NULL: none
	const struct seal_keys *cluster,
	char ret_detail[static AGENT_KEY_DETAIL_BYTES],
	struct agent_key **ret_key
);
// Check a key as agent_key_open() does, and make none. Returns 0 also if there is none.
int agent_key_check(
	const char *directory,
	const struct seal_keys *cluster,
	char ret_detail[static AGENT_KEY_DETAIL_BYTES]
);
// Wipe and free the key; NULL is allowed. Returns NULL.
struct agent_key *agent_key_close(struct agent_key *key);

const uint8_t *agent_key_public(const struct agent_key *key);
void agent_key_sign(
	const struct agent_key *key,
	const void *bytes,
	size_t size,
	uint8_t ret_signature[static AGENT_KEY_SIGNATURE_BYTES]
);
// Return true if the owner of this public key signed these bytes.
bool agent_key_verify(
	const uint8_t public[static AGENT_KEY_BYTES],
	const void *bytes,
	size_t size,
	const uint8_t signature[static AGENT_KEY_SIGNATURE_BYTES]
);
