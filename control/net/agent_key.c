// SPDX-License-Identifier: BSD-3-Clause
// The key pair of this agent: read or made at the start, used by the control thread.

#include <control/agent_key.h>
#include <lib/error.h>
#include <lib/file_trust.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/scoped.h>
#include <lib/seal_secret.h>

#include <sodium.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(AGENT_KEY_BYTES == crypto_sign_PUBLICKEYBYTES, "the size of a public key");
static_assert(AGENT_KEY_SIGNATURE_BYTES == crypto_sign_BYTES, "the size of a signature");
static_assert(AGENT_KEY_DETAIL_BYTES >= SEAL_KEYS_DETAIL_BYTES, "explanations of key files fit");

#define FILE_NAME "agent.key"

// Allocated by sodium_malloc().
struct agent_key {
	uint8_t public[crypto_sign_PUBLICKEYBYTES];
	uint8_t secret[crypto_sign_SECRETKEYBYTES];
};

static int pair_create(const struct seal_keys *keys, struct agent_key **ret_key) {
	struct agent_key *key = sodium_malloc(sizeof(*key));
	uint8_t seed[SEAL_SECRET_BYTES];

	static_assert(sizeof(seed) == crypto_sign_SEEDBYTES, "the size of a seed");
	if (key == NULL)
		return -ENOMEM;
	seal_hash(keys->keys[0].secret, "tocsin agent key", NULL, 0, seed);
	must(crypto_sign_seed_keypair(key->public, key->secret, seed) == 0);
	sodium_memzero(seed, sizeof(seed));
	*ret_key = key;
	return 0;
}

// Write the file under another name first: a crash leaves no half of a key behind.
static int file_create(const char *path, const struct seal_keys *keys, char *detail) {
	scoped_mem char *fresh = NULL;
	int err;

	if (asprintf(&fresh, "%s.new", path) < 0)
		return -ENOMEM;
	unlink(fresh);
	err = seal_keys_write_new(fresh, keys, detail);
	if (err == 0 && rename(fresh, path) != 0) {
		err = neg_errno();
		unlink(fresh);
		snprintf(
			detail, AGENT_KEY_DETAIL_BYTES, "cannot rename the new key: %s",
			strerrordesc_np(-err)
		);
	}
	return err;
}

// Read the file. Returns -ENOENT without an explanation if there is none.
static int file_load(
	const char *path,
	const struct seal_keys *cluster,
	char *detail,
	const struct seal_keys **ret_keys
) {
	struct stat status;
	int err;

	if (lstat(path, &status) != 0 && errno == ENOENT)
		return -ENOENT;
	err = seal_keys_load(path, detail, ret_keys);
	// A link whose target is missing, perhaps only for now, keeps its name.
	if (err == -ENOENT)
		return -ENOLINK;
	if (err == -EINVAL)
		return file_trust_refuse(
			detail, err, path,
			": not a key file; remove it, and the next start makes another key"
		);
	if (err == 0 && seal_keys_find(cluster, (*ret_keys)->keys[0].id) != NULL) {
		seal_keys_put(*ret_keys);
		return file_trust_refuse(
			detail, -EINVAL, path,
			": this is the cluster's key, so every member could speak as this agent; "
			"remove it, and the next start makes another key"
		);
	}
	return err;
}

int agent_key_check(
	const char *directory,
	const struct seal_keys *cluster,
	char ret_detail[static AGENT_KEY_DETAIL_BYTES]
) {
	const struct seal_keys *keys = NULL;
	scoped_mem char *path = NULL;
	int err;

	if (asprintf(&path, "%s/" FILE_NAME, directory) < 0)
		return -ENOMEM;
	err = file_load(path, cluster, ret_detail, &keys);
	if (err == 0)
		seal_keys_put(keys);
	return err == -ENOENT ? 0 : err;
}

int agent_key_open(
	const char *directory,
	const struct seal_keys *cluster,
	char ret_detail[static AGENT_KEY_DETAIL_BYTES],
	struct agent_key **ret_key
) {
	const struct seal_keys *keys = NULL;
	scoped_mem char *path = NULL;
	int err = -ENOENT;

	ret_detail[0] = '\0';
	if (directory != NULL && asprintf(&path, "%s/" FILE_NAME, directory) < 0)
		return -ENOMEM;
	// Only a missing file is replaced. One that cannot be read has the name of this agent.
	if (path != NULL)
		err = file_load(path, cluster, ret_detail, &keys);
	if (err == -ENOENT) {
		err = seal_keys_create_random(&keys);
		if (err == 0 && path != NULL && file_create(path, keys, ret_detail) != 0)
			log_event(
				LOG_LEVEL_WARN, "agent_key_not_stored",
				log_str("error", ret_detail),
				log_str("effect", "the next start has another key")
			);
	}
	if (err != 0)
		return err;
	err = pair_create(keys, ret_key);
	seal_keys_put(keys);
	return err;
}

struct agent_key *agent_key_close(struct agent_key *key) {
	if (key != NULL)
		sodium_free(key); // wipes it
	return NULL;
}

const uint8_t *agent_key_public(const struct agent_key *key) {
	return key->public;
}

void agent_key_sign(
	const struct agent_key *key,
	const void *bytes,
	size_t size,
	uint8_t ret_signature[static AGENT_KEY_SIGNATURE_BYTES]
) {
	must(crypto_sign_detached(ret_signature, NULL, bytes, size, key->secret) == 0);
}

bool agent_key_verify(
	const uint8_t public[static AGENT_KEY_BYTES],
	const void *bytes,
	size_t size,
	const uint8_t signature[static AGENT_KEY_SIGNATURE_BYTES]
) {
	return crypto_sign_verify_detached(signature, bytes, size, public) == 0;
}
