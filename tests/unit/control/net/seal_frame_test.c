// SPDX-License-Identifier: BSD-3-Clause
#include "control/net/seal_pair.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

#define SENTINEL 0xa5

static void nothing_is_sealed_or_opened_before_the_proof(void **state) {
	uint8_t bytes[SEAL_OVERHEAD] = {0};
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_spoken(&pair);
	assert_int_equal(seal_encrypt(&pair.connects, "", 0, bytes), -ENOTCONN);
	assert_int_equal(seal_encrypt(&pair.accepts, "", 0, bytes), -ENOTCONN);
	assert_int_equal(seal_decrypt(&pair.connects, bytes, sizeof(bytes), bytes), -ENOTCONN);
	assert_int_equal(seal_decrypt(&pair.accepts, bytes, sizeof(bytes), bytes), -ENOTCONN);
	pair_finish(&pair); // the early query did no harm
	pair_expect_both_ways(&pair);
	pair_teardown(&pair);
}

static void a_frame_that_comes_back_to_its_sender_is_refused(void **state) {
	uint8_t sealed[5 + SEAL_OVERHEAD];
	uint8_t opened[5];
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_proven(&pair);
	assert_int_equal(seal_encrypt(&pair.connects, "frame", 5, sealed), 0);
	assert_int_equal(seal_decrypt(&pair.connects, sealed, sizeof(sealed), opened), -EBADMSG);
	pair_teardown(&pair);
}

static void a_frame_of_another_session_is_refused(void **state) {
	uint8_t sealed[5 + SEAL_OVERHEAD], other[5 + SEAL_OVERHEAD], opened[5];
	struct seal_pair before = {0}, after = {0};

	(void)state;
	pair_setup_proven(&before);
	after.keys = seal_keys_get(before.keys);
	pair_start(&after, after.keys, after.keys);
	pair_answer(&after);
	pair_finish(&after);
	assert_int_equal(seal_encrypt(&before.connects, "frame", 5, sealed), 0);
	assert_int_equal(seal_encrypt(&after.connects, "frame", 5, other), 0);
	assert_memory_not_equal(sealed, other, sizeof(sealed));
	assert_int_equal(seal_decrypt(&after.accepts, sealed, sizeof(sealed), opened), -EBADMSG);
	after.keys = seal_keys_put(after.keys);
	pair_teardown(&after);
	pair_teardown(&before);
}

enum wrong_frame { REPLAYED, SWAPPED, LOST, CUT, EMPTY, TOO_SHORT, LONGER, TOO_LONG, WRONG_COUNT };

// Send three frames, of which the second is wrong.
static void expect_wrong_frame_ends(enum wrong_frame wrong) {
	static uint8_t sealed[3][SEAL_FRAME_MAX + SEAL_OVERHEAD + 1];
	uint8_t opened[SEAL_FRAME_MAX + 1];
	size_t size = 32 + SEAL_OVERHEAD;
	const uint8_t *second = sealed[1];
	struct seal_pair pair = {0};

	pair_setup_proven(&pair);
	for (size_t n = 0; n < 3; n++) {
		memset(opened, (int)n, 32);
		assert_int_equal(seal_encrypt(&pair.connects, opened, 32, sealed[n]), 0);
	}
	assert_int_equal(seal_decrypt(&pair.accepts, sealed[0], size, opened), 0);
	if (wrong == REPLAYED)
		second = sealed[0];
	if (wrong == SWAPPED || wrong == LOST)
		second = sealed[2];
	size = wrong == CUT	    ? size - 1
	       : wrong == EMPTY	    ? 0
	       : wrong == TOO_SHORT ? SEAL_OVERHEAD - 1
	       : wrong == LONGER    ? size + 1
	       : wrong == TOO_LONG  ? SEAL_FRAME_MAX + SEAL_OVERHEAD + 1
				    : size;
	memset(opened, SENTINEL, sizeof(opened));
	assert_int_equal(seal_decrypt(&pair.accepts, second, size, opened), -EBADMSG);
	for (size_t n = 0; n < sizeof(opened); n++)
		assert_int_equal(opened[n], SENTINEL);
	pair_expect_over(&pair.accepts);
	pair_teardown(&pair);
}

static void a_wrong_frame_writes_nothing_and_ends_the_session(void **state) {
	(void)state;
	for (enum wrong_frame wrong = 0; wrong < WRONG_COUNT; wrong++)
		expect_wrong_frame_ends(wrong);
}

static void a_turned_bit_in_a_frame_ends_the_session(void **state) {
	uint8_t sealed[5 + SEAL_OVERHEAD];
	uint8_t opened[5];
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_proven(&pair);
	assert_int_equal(seal_encrypt(&pair.connects, "frame", 5, sealed), 0);
	for (size_t bit = 0; bit < sizeof(sealed) * 8; bit++) {
		struct seal seal = pair_twin(&pair.accepts);

		sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
		assert_int_equal(seal_decrypt(&seal, sealed, sizeof(sealed), opened), -EBADMSG);
		sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
		pair_expect_over(&seal);
		seal_wipe(&seal);
	}
	assert_int_equal(seal_decrypt(&pair.accepts, sealed, sizeof(sealed), opened), 0);
	pair_teardown(&pair);
}

static void a_frame_too_long_to_seal_leaves_the_stream_as_it_was(void **state) {
	static uint8_t frame[SEAL_FRAME_MAX + 1];
	static uint8_t sealed[SEAL_FRAME_MAX + 1 + SEAL_OVERHEAD];
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_proven(&pair);
	assert_int_equal(seal_encrypt(&pair.connects, frame, sizeof(frame), sealed), -EMSGSIZE);
	assert_true(is_all_zero(sealed, sizeof(sealed)));
	pair_expect_both_ways(&pair);
	pair_teardown(&pair);
}

// Four times 16 MiB in one direction: the sender changes its key four times. The other direction
// keeps its key.
static void a_stream_changes_its_key_after_16_mib_and_goes_on(void **state) {
	struct seal_pair pair = {0};
	uint8_t key[32], other_way[32];
	uint32_t changes = 0;

	(void)state;
	pair_setup_proven(&pair);
	memcpy(other_way, pair.accepts.sending.k, sizeof(other_way));
	for (uint32_t n = 0; n < 4 * 256; n++) {
		memcpy(key, pair.connects.sending.k, sizeof(key));
		pair_expect_frame(&pair.connects, &pair.accepts, SEAL_FRAME_MAX);
		changes += memcmp(key, pair.connects.sending.k, sizeof(key)) != 0;
		assert_memory_equal(pair.connects.sending.k, pair.accepts.receiving.k, sizeof(key));
	}
	assert_int_equal(changes, 4);
	assert_memory_equal(other_way, pair.accepts.sending.k, sizeof(other_way));
	pair_expect_both_ways(&pair);
	pair_teardown(&pair);
}

UNIT_GROUP(seal_frame) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_sealed_or_opened_before_the_proof),
		cmocka_unit_test(a_frame_that_comes_back_to_its_sender_is_refused),
		cmocka_unit_test(a_frame_of_another_session_is_refused),
		cmocka_unit_test(a_wrong_frame_writes_nothing_and_ends_the_session),
		cmocka_unit_test(a_turned_bit_in_a_frame_ends_the_session),
		cmocka_unit_test(a_frame_too_long_to_seal_leaves_the_stream_as_it_was),
		cmocka_unit_test(a_stream_changes_its_key_after_16_mib_and_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
