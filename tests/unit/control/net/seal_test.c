// SPDX-License-Identifier: BSD-3-Clause
#include "control/net/seal_pair.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static void two_ends_with_the_key_prove_it_and_frames_of_any_size_pass_both_ways(void **state) {
	static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, SEAL_FRAME_MAX};
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_proven(&pair);
	assert_int_equal(seal_wanted_bytes(&pair.connects), 0);
	assert_int_equal(seal_wanted_bytes(&pair.accepts), 0);
	for (size_t n = 0; n < COUNT_OF(sizes); n++) {
		pair_expect_frame(&pair.connects, &pair.accepts, sizes[n]);
		pair_expect_frame(&pair.accepts, &pair.connects, sizes[n]);
	}
	pair_teardown(&pair);
}

static void both_ends_name_the_key_and_the_version_in_use(void **state) {
	char expected[SEAL_KEY_ID_TEXT_BYTES];
	char text[SEAL_KEY_ID_TEXT_BYTES];
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_proven(&pair);
	seal_keys_id(pair.keys, 0, expected);
	seal_key_id(&pair.connects, text);
	assert_string_equal(text, expected);
	seal_key_id(&pair.accepts, text);
	assert_string_equal(text, expected);
	assert_int_equal(seal_version(&pair.connects), SEAL_VERSION_MAX);
	assert_int_equal(seal_version(&pair.accepts), SEAL_VERSION_MAX);
	pair_teardown(&pair);
}

// Flip each bit of `said`. Each time, a copy of the receiver must reject the message without a
// reply.
static void expect_no_bit_may_turn(const struct seal *receiver, const struct seal_reply *said) {
	for (size_t bit = 0; bit < said->size * 8; bit++) {
		struct seal_reply altered = *said;
		struct seal seal = pair_twin(receiver);
		bool in_id = said->size == HELLO_BYTES && bit < (size_t)SEAL_KEY_ID_BYTES * 8;

		altered.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
		pair_expect_refused(&seal, &altered, in_id ? -ENOKEY : -EACCES);
		seal_wipe(&seal);
	}
}

static void a_turned_bit_in_the_hello_gets_no_answer(void **state) {
	struct seal_pair pair = {.keys = pair_make_keys()};

	(void)state;
	pair_start(&pair, pair.keys, pair.keys);
	expect_no_bit_may_turn(&pair.accepts, &pair.hello);
	pair_teardown(&pair);
}

static void a_turned_bit_in_the_answer_ends_the_connecting_side(void **state) {
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_spoken(&pair);
	expect_no_bit_may_turn(&pair.connects, &pair.answer);
	pair_teardown(&pair);
}

static void a_turned_bit_in_the_finish_ends_the_accepting_side(void **state) {
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_spoken(&pair);
	assert_int_equal(pair_take(&pair.connects, &pair.answer, &pair.finish), 0);
	expect_no_bit_may_turn(&pair.accepts, &pair.finish);
	pair_teardown(&pair);
}

static void random_bytes_get_no_answer(void **state) {
	struct seal_pair pair = {.keys = pair_make_keys()};

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		pair_start(&pair, pair.keys, pair.keys);
		randombytes_buf(pair.hello.bytes, pair.hello.size);
		pair_expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
		seal_wipe(&pair.connects);
	}
	pair_teardown(&pair);
}

static void an_unknown_key_gets_no_answer_and_is_named_in_the_log(void **state) {
	const struct seal_keys *other = pair_make_keys();
	char expected[SEAL_KEY_ID_TEXT_BYTES];
	char text[SEAL_KEY_ID_TEXT_BYTES];
	struct seal_pair pair = {.keys = pair_make_keys()};

	(void)state;
	pair_start(&pair, other, pair.keys);
	pair_expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
	seal_keys_id(other, 0, expected);
	seal_key_id(&pair.accepts, text);
	assert_string_equal(text, expected);
	pair_teardown(&pair);
	seal_keys_put(other);
}

static void the_id_of_a_key_without_the_key_gets_no_answer(void **state) {
	const struct seal_keys *forged = pair_make_keys();
	struct seal_pair pair = {.keys = pair_make_keys()};

	(void)state;
	memcpy(pair_keys_inside(forged)->keys[0].id, pair.keys->keys[0].id, SEAL_KEY_ID_BYTES);
	pair_start(&pair, forged, pair.keys);
	pair_expect_refused(&pair.accepts, &pair.hello, -EACCES);
	pair_teardown(&pair);
	seal_keys_put(forged);
}

// A hello with an unknown id is checked with an all-zero key. A sender that uses that key must be
// rejected, too.
static void the_key_of_zeros_gets_no_answer(void **state) {
	const struct seal_keys *zeros = pair_make_keys();
	struct seal_pair pair = {.keys = pair_make_keys()};

	(void)state;
	memset(pair_keys_inside(zeros)->keys[0].secret, 0, SEAL_SECRET_BYTES);
	pair_start(&pair, zeros, pair.keys);
	pair_expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
	pair_teardown(&pair);
	seal_keys_put(zeros);
}

static void another_cluster_with_the_same_key_gets_no_answer(void **state) {
	static const char *const others[] = {"", "alp", "alpss", "ALPS", "alps "};
	struct seal_pair pair = {.keys = pair_make_keys()};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(others); n++) {
		pair_start(&pair, pair.keys, pair.keys);
		seal_wipe(&pair.accepts);
		seal_init(&pair.accepts, pair.keys, SEAL_ACCEPTS, others[n]);
		pair_expect_refused(&pair.accepts, &pair.hello, -EACCES);
		seal_wipe(&pair.connects);
	}
	pair_teardown(&pair);
}

struct version_row {
	uint8_t connects_min, connects_max, accepts_min, accepts_max;
	uint8_t agreed; // 0: no common version
};

static const struct version_row version_rows[] = {
	{1, 1, 1, 1, 1}, {1, 2, 1, 1, 1}, {1, 1, 1, 2, 1},	   {1, 2, 2, 3, 2}, {2, 3, 1, 2, 2},
	{1, 9, 3, 5, 5}, {3, 5, 1, 9, 5}, {255, 255, 1, 255, 255}, {1, 1, 2, 2, 0}, {2, 2, 1, 1, 0},
	{1, 3, 4, 9, 0}, {4, 9, 1, 3, 0}, {1, 1, 255, 255, 0},
};

static void expect_versions(const struct seal *seal, uint8_t min, uint8_t max) {
	uint8_t peer_min, peer_max;

	seal_peer_versions(seal, &peer_min, &peer_max);
	assert_int_equal(peer_min, min);
	assert_int_equal(peer_max, max);
}

static void expect_no_version(struct seal_pair *pair) {
	struct seal_reply nothing = {.size = 1};

	assert_int_equal(pair_take(&pair->accepts, &pair->hello, &pair->answer), -EPROTO);
	assert_int_equal(pair->answer.size, ANSWER_BYTES);
	pair_expect_over(&pair->accepts);
	assert_int_equal(pair_take(&pair->connects, &pair->answer, &nothing), -EPROTO);
	assert_int_equal(nothing.size, 0);
	pair_expect_over(&pair->connects);
}

static void the_highest_common_version_is_used_and_both_ends_learn_that_there_is_none(void **state
) {
	struct seal_pair pair = {.keys = pair_make_keys()};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(version_rows); n++) {
		const struct version_row *row = &version_rows[n];

		seal_init(&pair.connects, pair.keys, SEAL_CONNECTS, CLUSTER);
		seal_init(&pair.accepts, pair.keys, SEAL_ACCEPTS, CLUSTER);
		seal_limit_versions(&pair.connects, row->connects_min, row->connects_max);
		seal_limit_versions(&pair.accepts, row->accepts_min, row->accepts_max);
		seal_begin(&pair.connects, &pair.hello);
		if (row->agreed == 0) {
			expect_no_version(&pair);
		} else {
			pair_answer(&pair);
			pair_finish(&pair);
			pair_expect_both_ways(&pair);
		}
		assert_int_equal(seal_version(&pair.connects), row->agreed);
		assert_int_equal(seal_version(&pair.accepts), row->agreed);
		expect_versions(&pair.connects, row->accepts_min, row->accepts_max);
		expect_versions(&pair.accepts, row->connects_min, row->connects_max);
		seal_wipe(&pair.connects);
		seal_wipe(&pair.accepts);
	}
	pair_teardown(&pair);
}

static void what_an_end_said_itself_proves_nothing_to_it(void **state) {
	struct seal_reply reflected = {.size = ANSWER_BYTES};
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_spoken(&pair);
	// The hello, sent back as an answer: version, versions, ephemeral and mac at the answer's
	// offsets.
	reflected.bytes[0] = SEAL_VERSION_MAX;
	memcpy(reflected.bytes + 1, pair.hello.bytes + SEAL_KEY_ID_BYTES,
	       HELLO_BYTES - SEAL_KEY_ID_BYTES);
	pair_expect_refused(&pair.connects, &reflected, -EACCES);
	// The answer's header and proof, sent back as the finish.
	reflected.size = FINISH_BYTES;
	memcpy(reflected.bytes, pair.answer.bytes + ANSWER_BYTES - FINISH_BYTES, FINISH_BYTES);
	pair_expect_refused(&pair.accepts, &reflected, -EACCES);
	pair_teardown(&pair);
}

static void a_replayed_hello_gets_a_fresh_answer_and_no_further(void **state) {
	struct seal_reply fresh;
	struct seal_pair pair = {0};
	struct seal again;

	(void)state;
	pair_setup_proven(&pair);
	seal_init(&again, pair.keys, SEAL_ACCEPTS, CLUSTER);
	assert_int_equal(pair_take(&again, &pair.hello, &fresh), 0);
	assert_memory_not_equal(fresh.bytes + 3, pair.answer.bytes + 3, 32); // the ephemeral key
	pair_expect_refused(&again, &pair.finish, -EACCES);
	seal_wipe(&again);
	pair_teardown(&pair);
}

static void a_replayed_answer_is_refused(void **state) {
	struct seal_reply hello;
	struct seal_pair pair = {0};
	struct seal again;

	(void)state;
	pair_setup_proven(&pair);
	seal_init(&again, pair.keys, SEAL_CONNECTS, CLUSTER);
	seal_begin(&again, &hello);
	assert_memory_not_equal(hello.bytes + 10, pair.hello.bytes + 10, 32);
	pair_expect_refused(&again, &pair.answer, -EACCES);
	seal_wipe(&again);
	pair_teardown(&pair);
}

// Key replacement as described in seal_keys.h: two ends that are at most one step apart can
// connect.
static void ends_meet_at_every_step_of_a_replacement(void **state) {
	const struct seal_keys *steps[4] = {pair_make_keys()};
	static const enum seal_keys_step step_of[] = {
		SEAL_KEYS_ADD, SEAL_KEYS_SWAP, SEAL_KEYS_DROP};
	struct seal_pair pair = {0};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(step_of); n++)
		assert_int_equal(seal_keys_create_step(steps[n], step_of[n], &steps[n + 1]), 0);
	for (size_t n = 0; n < 4; n++) {
		size_t next = n < 3 ? n + 1 : n;

		pair_start(&pair, steps[n], steps[next]);
		pair_answer(&pair);
		pair_finish(&pair);
		pair_teardown(&pair);
		pair_start(&pair, steps[next], steps[n]);
		pair_answer(&pair);
		pair_finish(&pair);
		pair_teardown(&pair);
	}
	// Two or more steps apart, a connection is not guaranteed. Here it is rejected.
	pair_start(&pair, steps[0], steps[3]);
	pair_expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
	pair_teardown(&pair);
	for (size_t n = 0; n < 4; n++)
		seal_keys_put(steps[n]);
}

static void a_handshake_outlives_the_keys_it_began_with(void **state) {
	struct seal_pair pair = {0};

	(void)state;
	pair_setup_spoken(&pair);
	pair.keys = seal_keys_put(pair.keys); // as a reload of the keys does
	pair_finish(&pair);
	assert_null(pair.connects.keys);
	assert_null(pair.accepts.keys);
	pair_expect_both_ways(&pair);
	pair_teardown(&pair);
}

static void agents_without_a_key_meet_by_the_name_of_their_cluster(void **state) {
	const struct seal_keys *same, *other;
	struct seal_pair pair = {0};

	(void)state;
	assert_int_equal(seal_keys_create_keyless(CLUSTER, &pair.keys), 0);
	assert_int_equal(seal_keys_create_keyless(CLUSTER, &same), 0);
	assert_int_equal(seal_keys_create_keyless("other", &other), 0);
	pair_start(&pair, pair.keys, same);
	pair_answer(&pair);
	pair_finish(&pair);
	pair_expect_both_ways(&pair);
	seal_wipe(&pair.connects);
	seal_wipe(&pair.accepts);
	pair_start(&pair, other, pair.keys);
	pair_expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
	seal_wipe(&pair.connects);
	seal_keys_put(same);
	seal_keys_put(other);
	pair_teardown(&pair);
}

// The handshake's secrets are erased at its end, and all others with the session.
static void nothing_is_left_of_what_is_over(void **state) {
	struct seal_pair pair = {0};
	struct seal *ends[] = {&pair.connects, &pair.accepts};

	(void)state;
	pair_setup_proven(&pair);
	for (size_t n = 0; n < COUNT_OF(ends); n++) {
		struct seal *seal = ends[n];

		assert_null(seal->keys);
		assert_true(is_all_zero(seal->transcript, sizeof(seal->transcript)));
		assert_true(is_all_zero(seal->proof_key, sizeof(seal->proof_key)));
		assert_true(is_all_zero(seal->ephemeral_secret, sizeof(seal->ephemeral_secret)));
		assert_true(is_all_zero(seal->session_secret, sizeof(seal->session_secret)));
		assert_false(is_all_zero(&seal->sending, sizeof(seal->sending)));
		seal_wipe(seal);
		assert_true(is_all_zero(seal, sizeof(*seal)));
		seal_wipe(seal);
	}
	pair_teardown(&pair);
}

// Create the hello of a holder of the key, according to the description in seal.c only.
static void
forge_hello(const struct seal_keys *keys, const uint8_t fields[static 34], struct seal_reply *ret) {
	const struct seal_key *key = &keys->keys[0];
	uint8_t transcript[32], proof_key[32];

	ret->size = HELLO_BYTES;
	memcpy(ret->bytes, key->id, 8);
	memcpy(ret->bytes + 8, fields, 34);
	seal_hash(NULL, "tocsin seal 1", CLUSTER, strlen(CLUSTER), transcript);
	seal_hash(key->secret, "tocsin proof", transcript, sizeof(transcript), proof_key);
	seal_hash(transcript, "tocsin said", ret->bytes, 42, transcript);
	seal_hash(proof_key, "tocsin mac conn", transcript, sizeof(transcript), ret->bytes + 42);
}

static void a_holder_of_the_key_who_talks_nonsense_is_refused(void **state) {
	static const uint8_t rows[][34] = {
		{0, 1, 9}, // version 0 does not exist
		{2, 1, 9}, // a range from 2 down to 1
		{1, 1, 0}, // a point of low order
		{1, 1, 1}, // another point of low order
	};
	static const uint8_t good[34] = {1, 1, 9}; // the base point
	struct seal_pair pair = {.keys = pair_make_keys()};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		seal_init(&pair.accepts, pair.keys, SEAL_ACCEPTS, CLUSTER);
		forge_hello(pair.keys, rows[n], &pair.hello);
		pair_expect_refused(&pair.accepts, &pair.hello, -EBADMSG);
	}
	seal_init(&pair.accepts, pair.keys, SEAL_ACCEPTS, CLUSTER);
	forge_hello(pair.keys, good, &pair.hello);
	pair_answer(&pair);
	pair_teardown(&pair);
}

UNIT_GROUP(seal) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			two_ends_with_the_key_prove_it_and_frames_of_any_size_pass_both_ways
		),
		cmocka_unit_test(both_ends_name_the_key_and_the_version_in_use),
		cmocka_unit_test(a_turned_bit_in_the_hello_gets_no_answer),
		cmocka_unit_test(a_turned_bit_in_the_answer_ends_the_connecting_side),
		cmocka_unit_test(a_turned_bit_in_the_finish_ends_the_accepting_side),
		cmocka_unit_test(random_bytes_get_no_answer),
		cmocka_unit_test(an_unknown_key_gets_no_answer_and_is_named_in_the_log),
		cmocka_unit_test(the_id_of_a_key_without_the_key_gets_no_answer),
		cmocka_unit_test(the_key_of_zeros_gets_no_answer),
		cmocka_unit_test(another_cluster_with_the_same_key_gets_no_answer),
		cmocka_unit_test(
			the_highest_common_version_is_used_and_both_ends_learn_that_there_is_none
		),
		cmocka_unit_test(what_an_end_said_itself_proves_nothing_to_it),
		cmocka_unit_test(a_replayed_hello_gets_a_fresh_answer_and_no_further),
		cmocka_unit_test(a_replayed_answer_is_refused),
		cmocka_unit_test(ends_meet_at_every_step_of_a_replacement),
		cmocka_unit_test(a_handshake_outlives_the_keys_it_began_with),
		cmocka_unit_test(agents_without_a_key_meet_by_the_name_of_their_cluster),
		cmocka_unit_test(nothing_is_left_of_what_is_over),
		cmocka_unit_test(a_holder_of_the_key_who_talks_nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
