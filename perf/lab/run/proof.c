// SPDX-License-Identifier: BSD-3-Clause
// Messages and marks of a proof.
#include "run/proof.h"

#include <lib/wire.h>

#include <sodium.h>

#include <errno.h>
#include <string.h>

#define MARKED_BYTES (1 + 2 + SEAL_KEY_ID_BYTES + 2 * PROOF_NONCE_BYTES)

int proof_init(void) {
	return sodium_init() < 0 ? -EIO : 0;
}

void proof_secrets_wipe(struct proof_secrets *secrets) {
	sodium_memzero(secrets, sizeof(*secrets));
}

// Derive a secret of this protocol, and its id, from the bytes of a token or of a cluster's key.
static void
secret_add(struct proof_secrets *secrets, const uint8_t derived[static SEAL_SECRET_BYTES]) {
	struct seal_key *secret = &secrets->list[secrets->count];
	uint8_t hash[SEAL_SECRET_BYTES];

	if (secrets->count == PROOF_SECRETS_MAX)
		return;
	memcpy(secret->secret, derived, SEAL_SECRET_BYTES);
	seal_hash(secret->secret, "tocsin perf id", NULL, 0, hash);
	memcpy(secret->id, hash, sizeof(secret->id));
	secrets->count++;
}

void proof_add_token(struct proof_secrets *secrets, const char *token) {
	uint8_t derived[SEAL_SECRET_BYTES];

	seal_hash(NULL, "tocsin perf tok", token, strlen(token), derived);
	secret_add(secrets, derived);
	sodium_memzero(derived, sizeof(derived));
}

void proof_add_key(struct proof_secrets *secrets, const struct seal_key *key) {
	uint8_t derived[SEAL_SECRET_BYTES];

	seal_hash(key->secret, "tocsin perf key", NULL, 0, derived);
	secret_add(secrets, derived);
	sodium_memzero(derived, sizeof(derived));
}

static const struct seal_key *
secret_find(const struct proof_secrets *secrets, const uint8_t id[static SEAL_KEY_ID_BYTES]) {
	for (uint32_t n = 0; n < secrets->count; n++) {
		if (memcmp(secrets->list[n].id, id, SEAL_KEY_ID_BYTES) == 0)
			return &secrets->list[n];
	}
	return NULL;
}

void proof_knock(
	struct proof *proof, const struct proof_secrets *secrets, struct wire_writer *writer
) {
	randombytes_buf(proof->nonces[0], PROOF_NONCE_BYTES);
	wire_put_bytes(writer, proof->nonces[0], PROOF_NONCE_BYTES);
	wire_put_u16(writer, (uint16_t)secrets->count);
	for (uint32_t n = 0; n < secrets->count; n++)
		wire_put_bytes(writer, secrets->list[n].id, SEAL_KEY_ID_BYTES);
}

int proof_challenge(
	struct proof *proof,
	const struct proof_secrets *secrets,
	const struct channel_message *knock,
	struct wire_writer *writer,
	enum proof_answer *ret_answer
) {
	static const uint8_t none[SEAL_KEY_ID_BYTES];
	const struct seal_key *common = NULL;
	enum proof_answer answer;
	struct wire_reader reader;
	uint32_t count;

	wire_reader_init(&reader, knock->bytes, knock->size);
	wire_get_bytes(&reader, proof->nonces[0], PROOF_NONCE_BYTES);
	count = wire_get_count_u16(&reader, PROOF_SECRETS_MAX, SEAL_KEY_ID_BYTES);
	for (uint32_t n = 0; n < count; n++) {
		uint8_t id[SEAL_KEY_ID_BYTES] = {0};

		wire_get_bytes(&reader, id, sizeof(id));
		if (common == NULL)
			common = secret_find(secrets, id);
	}
	if (knock->kind != CHANNEL_KNOCK || wire_reader_finish(&reader) != 0)
		return -EBADMSG;
	proof->secret = common;
	answer = common != NULL	 ? PROOF_ANSWER_PROVE
		 : secrets->open ? PROOF_ANSWER_OPEN
				 : PROOF_ANSWER_UNKNOWN;
	randombytes_buf(proof->nonces[1], PROOF_NONCE_BYTES);
	wire_put_u8(writer, (uint8_t)answer);
	wire_put_bytes(writer, proof->nonces[1], PROOF_NONCE_BYTES);
	wire_put_bytes(writer, common != NULL ? common->id : none, SEAL_KEY_ID_BYTES);
	*ret_answer = answer;
	return 0;
}

int proof_read_challenge(
	struct proof *proof,
	const struct proof_secrets *secrets,
	const struct channel_message *challenge,
	enum proof_answer *ret_answer
) {
	uint8_t id[SEAL_KEY_ID_BYTES] = {0};
	struct wire_reader reader;
	uint8_t answer;

	wire_reader_init(&reader, challenge->bytes, challenge->size);
	answer = wire_get_u8(&reader);
	wire_get_bytes(&reader, proof->nonces[1], PROOF_NONCE_BYTES);
	wire_get_bytes(&reader, id, sizeof(id));
	if (challenge->kind != CHANNEL_CHALLENGE || wire_reader_finish(&reader) != 0 ||
	    answer >= PROOF_ANSWER_COUNT)
		return -EBADMSG;
	proof->secret = answer == PROOF_ANSWER_PROVE ? secret_find(secrets, id) : NULL;
	if (answer == PROOF_ANSWER_PROVE && proof->secret == NULL)
		return -EBADMSG;
	*ret_answer = (enum proof_answer)answer;
	return 0;
}

void proof_make_mark(
	const struct proof *proof, enum proof_role role, uint8_t ret_mark[static PROOF_MARK_BYTES]
) {
	uint8_t marked[MARKED_BYTES];
	struct wire_writer writer;

	wire_writer_init(&writer, marked, sizeof(marked));
	wire_put_u8(&writer, (uint8_t)role);
	wire_put_u16(&writer, CHANNEL_VERSION);
	wire_put_bytes(&writer, proof->secret->id, SEAL_KEY_ID_BYTES);
	wire_put_bytes(&writer, proof->nonces[0], PROOF_NONCE_BYTES);
	wire_put_bytes(&writer, proof->nonces[1], PROOF_NONCE_BYTES);
	seal_hash(
		proof->secret->secret, "tocsin perf prf", marked, wire_writer_used(&writer),
		ret_mark
	);
}

bool proof_mark_is_valid(
	const struct proof *proof, enum proof_role role, const struct channel_message *message
) {
	enum channel_kind kind = role == PROOF_CLIENT ? CHANNEL_PROOF : CHANNEL_PROVEN;
	uint8_t expected[PROOF_MARK_BYTES];
	bool is_valid;

	if (proof->secret == NULL || message->kind != kind || message->size != sizeof(expected))
		return false;
	proof_make_mark(proof, role, expected);
	is_valid = sodium_memcmp(expected, message->bytes, sizeof(expected)) == 0;
	sodium_memzero(expected, sizeof(expected));
	return is_valid;
}
