// SPDX-License-Identifier: BSD-3-Clause
// An independent end, written on libsodium from the description in seal.c only, that communicates
// with ours. It verifies that the wire format matches the description, including roles and
// X25519.
#include "control/net/seal_pair.h"

#include <support/cmocka.h>

#include <string.h>

#define HASH_BYTES 32
#define HEADER_BYTES crypto_secretstream_xchacha20poly1305_HEADERBYTES
#define HELLO_MAC 42 // offsets in a hello and in an answer
#define ANSWER_EPHEMERAL 3
#define ANSWER_MAC 35
#define ANSWER_HEADER 67

struct other {
	uint8_t transcript[HASH_BYTES], proof_key[HASH_BYTES], session[HASH_BYTES];
	uint8_t secret[32];
	crypto_secretstream_xchacha20poly1305_state sending, receiving;
};

static void
hash(const uint8_t *key, const char *purpose, const void *bytes, size_t size, uint8_t *ret_hash) {
	uint8_t personal[16] = {0};

	memcpy(personal, purpose, strlen(purpose));
	assert_int_equal(
		crypto_generichash_blake2b_salt_personal(
			ret_hash, HASH_BYTES, bytes, size, key, key == NULL ? 0 : HASH_BYTES, NULL,
			personal
		),
		0
	);
}

static void say(struct other *other, const void *bytes, size_t size) {
	hash(other->transcript, "tocsin said", bytes, size, other->transcript);
}

static void
mark(const struct other *other, const uint8_t *key, const char *purpose, uint8_t *ret_mark) {
	hash(key, purpose, other->transcript, HASH_BYTES, ret_mark);
}

static void expect_mark(
	const struct other *other, const uint8_t *key, const char *purpose, const uint8_t *given
) {
	uint8_t expected[HASH_BYTES];

	mark(other, key, purpose, expected);
	assert_memory_equal(expected, given, HASH_BYTES);
}

static void other_init(struct other *other, const struct seal_keys *keys, uint8_t *ret_ephemeral) {
	hash(NULL, "tocsin seal 1", CLUSTER, strlen(CLUSTER), other->transcript);
	mark(other, keys->keys[0].secret, "tocsin proof", other->proof_key);
	randombytes_buf(other->secret, sizeof(other->secret));
	assert_int_equal(crypto_scalarmult_base(ret_ephemeral, other->secret), 0);
}

static void agree(struct other *other, const uint8_t *ephemeral) {
	uint8_t material[32 + HASH_BYTES];

	assert_int_equal(crypto_scalarmult(material, other->secret, ephemeral), 0);
	memcpy(material + 32, other->transcript, HASH_BYTES);
	hash(other->proof_key, "tocsin session", material, sizeof(material), other->session);
}

static void
send_proof(struct other *other, const char *stream, const char *proof, uint8_t *ret_bytes) {
	uint8_t key[HASH_BYTES];

	hash(other->session, stream, NULL, 0, key);
	crypto_secretstream_xchacha20poly1305_init_push(&other->sending, ret_bytes, key);
	say(other, ret_bytes, HEADER_BYTES);
	mark(other, other->session, proof, ret_bytes + HEADER_BYTES);
}

static void
hear_proof(struct other *other, const char *stream, const char *proof, const uint8_t *bytes) {
	uint8_t key[HASH_BYTES];

	say(other, bytes, HEADER_BYTES);
	expect_mark(other, other->session, proof, bytes + HEADER_BYTES);
	hash(other->session, stream, NULL, 0, key);
	crypto_secretstream_xchacha20poly1305_init_pull(&other->receiving, bytes, key);
}

static void expect_frames(struct other *other, struct seal *ours) {
	uint8_t sealed[5 + SEAL_OVERHEAD];
	uint8_t opened[5];
	uint8_t tag;

	assert_int_equal(seal_encrypt(ours, "there", 5, sealed), 0);
	assert_int_equal(
		crypto_secretstream_xchacha20poly1305_pull(
			&other->receiving, opened, NULL, &tag, sealed, sizeof(sealed), NULL, 0
		),
		0
	);
	assert_memory_equal(opened, "there", 5);
	crypto_secretstream_xchacha20poly1305_push(
		&other->sending, sealed, NULL, (const uint8_t *)"again", 5, NULL, 0, 0
	);
	assert_int_equal(seal_decrypt(ours, sealed, sizeof(sealed), opened), 0);
	assert_memory_equal(opened, "again", 5);
}

static void an_end_made_from_the_description_connects_to_ours(void **state) {
	struct seal_reply hello = {.size = HELLO_BYTES}, answer, nothing;
	struct seal_reply finish = {.size = FINISH_BYTES};
	const struct seal_keys *keys = pair_make_keys();
	struct other other;
	struct seal ours;

	(void)state;
	seal_init(&ours, keys, SEAL_ACCEPTS, CLUSTER);
	memcpy(hello.bytes, keys->keys[0].id, SEAL_KEY_ID_BYTES);
	hello.bytes[8] = hello.bytes[9] = 1; // versions
	other_init(&other, keys, hello.bytes + 10);
	say(&other, hello.bytes, HELLO_MAC);
	mark(&other, other.proof_key, "tocsin mac conn", hello.bytes + HELLO_MAC);
	assert_int_equal(pair_take(&ours, &hello, &answer), 0);

	say(&other, answer.bytes, ANSWER_MAC);
	expect_mark(&other, other.proof_key, "tocsin mac acc", answer.bytes + ANSWER_MAC);
	agree(&other, answer.bytes + ANSWER_EPHEMERAL);
	hear_proof(&other, "tocsin from acc", "tocsin proof acc", answer.bytes + ANSWER_HEADER);
	send_proof(&other, "tocsin from conn", "tocsin proof con", finish.bytes);
	assert_int_equal(pair_take(&ours, &finish, &nothing), 0);
	assert_true(seal_proven(&ours));
	expect_frames(&other, &ours);
	seal_wipe(&ours);
	seal_keys_put(keys);
}

static void an_end_made_from_the_description_accepts_ours(void **state) {
	struct seal_reply hello, finish, answer = {.size = ANSWER_BYTES};
	const struct seal_keys *keys = pair_make_keys();
	struct other other;
	struct seal ours;

	(void)state;
	seal_init(&ours, keys, SEAL_CONNECTS, CLUSTER);
	seal_begin(&ours, &hello);
	memset(answer.bytes, 1, 3); // version and versions
	other_init(&other, keys, answer.bytes + ANSWER_EPHEMERAL);
	assert_memory_equal(hello.bytes, keys->keys[0].id, SEAL_KEY_ID_BYTES);
	say(&other, hello.bytes, HELLO_MAC);
	expect_mark(&other, other.proof_key, "tocsin mac conn", hello.bytes + HELLO_MAC);
	say(&other, answer.bytes, ANSWER_MAC);
	mark(&other, other.proof_key, "tocsin mac acc", answer.bytes + ANSWER_MAC);
	agree(&other, hello.bytes + 10);
	send_proof(&other, "tocsin from acc", "tocsin proof acc", answer.bytes + ANSWER_HEADER);
	assert_int_equal(pair_take(&ours, &answer, &finish), 0);

	hear_proof(&other, "tocsin from conn", "tocsin proof con", finish.bytes);
	assert_true(seal_proven(&ours));
	expect_frames(&other, &ours);
	seal_wipe(&ours);
	seal_keys_put(keys);
}

UNIT_GROUP(seal_wire) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_made_from_the_description_connects_to_ours),
		cmocka_unit_test(an_end_made_from_the_description_accepts_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
