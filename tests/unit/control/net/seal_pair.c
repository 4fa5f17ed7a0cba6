// SPDX-License-Identifier: BSD-3-Clause
#include "control/net/seal_pair.h"

#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

const struct seal_keys *pair_make_keys(void) {
	const struct seal_keys *keys;

	assert_int_equal(seal_keys_create_random(&keys), 0);
	return keys;
}

struct seal_keys *pair_keys_inside(const struct seal_keys *keys) {
	return (struct seal_keys *)keys;
}

void pair_start(
	struct seal_pair *pair,
	const struct seal_keys *connecting,
	const struct seal_keys *accepting
) {
	seal_init(&pair->connects, connecting, SEAL_CONNECTS, CLUSTER);
	seal_init(&pair->accepts, accepting, SEAL_ACCEPTS, CLUSTER);
	seal_begin(&pair->connects, &pair->hello);
	assert_int_equal(pair->hello.size, HELLO_BYTES);
}

int pair_take(struct seal *seal, const struct seal_reply *said, struct seal_reply *ret_reply) {
	assert_int_equal(seal_wanted_bytes(seal), said->size);
	return seal_receive(seal, said->bytes, said->size, ret_reply);
}

void pair_answer(struct seal_pair *pair) {
	assert_int_equal(pair_take(&pair->accepts, &pair->hello, &pair->answer), 0);
	assert_int_equal(pair->answer.size, ANSWER_BYTES);
	assert_false(seal_proven(&pair->accepts));
}

void pair_finish(struct seal_pair *pair) {
	struct seal_reply nothing = {.size = 1};

	assert_int_equal(pair_take(&pair->connects, &pair->answer, &pair->finish), 0);
	assert_int_equal(pair->finish.size, FINISH_BYTES);
	assert_true(seal_proven(&pair->connects));
	assert_int_equal(pair_take(&pair->accepts, &pair->finish, &nothing), 0);
	assert_int_equal(nothing.size, 0);
	assert_true(seal_proven(&pair->accepts));
}

void pair_setup_spoken(struct seal_pair *pair) {
	pair->keys = pair_make_keys();
	pair_start(pair, pair->keys, pair->keys);
	pair_answer(pair);
}

void pair_setup_proven(struct seal_pair *pair) {
	pair_setup_spoken(pair);
	pair_finish(pair);
}

void pair_teardown(struct seal_pair *pair) {
	seal_wipe(&pair->connects);
	seal_wipe(&pair->accepts);
	if (pair->keys != NULL)
		assert_int_equal(pair_keys_inside(pair->keys)->references, 1);
	pair->keys = seal_keys_put(pair->keys);
}

struct seal pair_twin(const struct seal *seal) {
	struct seal copy = *seal;

	if (copy.keys != NULL)
		seal_keys_get(copy.keys);
	return copy;
}

bool is_all_zero(const void *bytes, size_t size) {
	return sodium_is_zero(bytes, size) == 1;
}

void pair_expect_over(struct seal *seal) {
	uint8_t bytes[SEAL_OVERHEAD + 1] = {0};

	assert_false(seal_proven(seal));
	assert_int_equal(seal_wanted_bytes(seal), 0);
	assert_int_equal(seal_encrypt(seal, "x", 1, bytes), -ENOTCONN);
	assert_int_equal(seal_decrypt(seal, bytes, sizeof(bytes), bytes), -ENOTCONN);
	assert_null(seal->keys);
	assert_true(is_all_zero(seal->transcript, sizeof(seal->transcript)));
	assert_true(is_all_zero(seal->proof_key, sizeof(seal->proof_key)));
	assert_true(is_all_zero(seal->ephemeral_secret, sizeof(seal->ephemeral_secret)));
	assert_true(is_all_zero(seal->session_secret, sizeof(seal->session_secret)));
	assert_true(is_all_zero(&seal->sending, sizeof(seal->sending)));
	assert_true(is_all_zero(&seal->receiving, sizeof(seal->receiving)));
}

void pair_expect_refused(struct seal *seal, const struct seal_reply *said, int err) {
	struct seal_reply reply = {.size = 1};

	assert_int_equal(pair_take(seal, said, &reply), err);
	assert_int_equal(reply.size, 0);
	pair_expect_over(seal);
}

void pair_expect_frame(struct seal *from, struct seal *to, size_t size) {
	static uint8_t frame[SEAL_FRAME_MAX];
	static uint8_t opened[SEAL_FRAME_MAX];
	static uint8_t sealed[SEAL_FRAME_MAX + SEAL_OVERHEAD];

	randombytes_buf(frame, size);
	assert_int_equal(seal_encrypt(from, frame, size, sealed), 0);
	assert_int_equal(seal_decrypt(to, sealed, size + SEAL_OVERHEAD, opened), 0);
	assert_memory_equal(frame, opened, size);
}

void pair_expect_both_ways(struct seal_pair *pair) {
	pair_expect_frame(&pair->connects, &pair->accepts, 100);
	pair_expect_frame(&pair->accepts, &pair->connects, 100);
}
