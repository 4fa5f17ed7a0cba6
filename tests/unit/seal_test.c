// SPDX-License-Identifier: BSD-3-Clause
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <seal.h>
#include <seal_keys_inside.h>
#include <string.h>

#define CLUSTER "alps"
#define HELLO_BYTES 74
#define ANSWER_BYTES 123
#define FINISH_BYTES 56
#define SENTINEL 0xa5

// One key, two ends and what they said to each other.
struct pair {
	const struct seal_keys *keys;
	struct seal connects, accepts;
	struct seal_reply hello, answer, finish;
};

static const struct seal_keys *make_keys(void) {
	const struct seal_keys *keys;

	assert_int_equal(seal_keys_create_random(&keys), 0);
	return keys;
}

// What a test may do to keys and nobody else.
static struct seal_keys *inside(const struct seal_keys *keys) {
	return (struct seal_keys *)keys;
}

static void
start(struct pair *pair, const struct seal_keys *connecting, const struct seal_keys *accepting) {
	seal_init(&pair->connects, connecting, SEAL_CONNECTS, CLUSTER);
	seal_init(&pair->accepts, accepting, SEAL_ACCEPTS, CLUSTER);
	seal_begin(&pair->connects, &pair->hello);
	assert_int_equal(pair->hello.size, HELLO_BYTES);
}

static int take(struct seal *seal, const struct seal_reply *said, struct seal_reply *ret_reply) {
	assert_int_equal(seal_wants(seal), said->size);
	return seal_take(seal, said->bytes, said->size, ret_reply);
}

static void answer(struct pair *pair) {
	assert_int_equal(take(&pair->accepts, &pair->hello, &pair->answer), 0);
	assert_int_equal(pair->answer.size, ANSWER_BYTES);
	assert_false(seal_proven(&pair->accepts));
}

static void finish(struct pair *pair) {
	struct seal_reply nothing = {.size = 1};

	assert_int_equal(take(&pair->connects, &pair->answer, &pair->finish), 0);
	assert_int_equal(pair->finish.size, FINISH_BYTES);
	assert_true(seal_proven(&pair->connects));
	assert_int_equal(take(&pair->accepts, &pair->finish, &nothing), 0);
	assert_int_equal(nothing.size, 0);
	assert_true(seal_proven(&pair->accepts));
}

static void setup_spoken(struct pair *pair) {
	pair->keys = make_keys();
	start(pair, pair->keys, pair->keys);
	answer(pair);
}

static void setup_proven(struct pair *pair) {
	setup_spoken(pair);
	finish(pair);
}

static void teardown(struct pair *pair) {
	seal_wipe(&pair->connects);
	seal_wipe(&pair->accepts);
	if (pair->keys != NULL)
		assert_int_equal(inside(pair->keys)->references, 1);
	pair->keys = seal_keys_put(pair->keys);
}

// A second one in the same state, with a reference of its own.
static struct seal twin(const struct seal *seal) {
	struct seal copy = *seal;

	if (copy.keys != NULL)
		seal_keys_get(copy.keys);
	return copy;
}

static bool all_zero(const void *bytes, size_t size) {
	return sodium_is_zero(bytes, size) == 1;
}

// Over: nothing wanted, nothing given, nothing left.
static void expect_over(struct seal *seal) {
	uint8_t bytes[SEAL_OVERHEAD + 1] = {0};

	assert_false(seal_proven(seal));
	assert_int_equal(seal_wants(seal), 0);
	assert_int_equal(seal_encrypt(seal, "x", 1, bytes), -ENOTCONN);
	assert_int_equal(seal_decrypt(seal, bytes, sizeof(bytes), bytes), -ENOTCONN);
	assert_null(seal->keys);
	assert_true(all_zero(seal->transcript, sizeof(seal->transcript)));
	assert_true(all_zero(seal->proof_key, sizeof(seal->proof_key)));
	assert_true(all_zero(seal->ephemeral_secret, sizeof(seal->ephemeral_secret)));
	assert_true(all_zero(seal->session_secret, sizeof(seal->session_secret)));
	assert_true(all_zero(&seal->sending, sizeof(seal->sending)));
	assert_true(all_zero(&seal->receiving, sizeof(seal->receiving)));
}

static void expect_refused(struct seal *seal, const struct seal_reply *said, int err) {
	struct seal_reply reply = {.size = 1};

	assert_int_equal(take(seal, said, &reply), err);
	assert_int_equal(reply.size, 0);
	expect_over(seal);
}

static void expect_frame(struct seal *from, struct seal *to, size_t size) {
	static uint8_t frame[SEAL_FRAME_MAX];
	static uint8_t opened[SEAL_FRAME_MAX];
	static uint8_t sealed[SEAL_FRAME_MAX + SEAL_OVERHEAD];

	randombytes_buf(frame, size);
	assert_int_equal(seal_encrypt(from, frame, size, sealed), 0);
	assert_int_equal(seal_decrypt(to, sealed, size + SEAL_OVERHEAD, opened), 0);
	assert_memory_equal(frame, opened, size);
}

static void expect_both_ways(struct pair *pair) {
	expect_frame(&pair->connects, &pair->accepts, 100);
	expect_frame(&pair->accepts, &pair->connects, 100);
}

static void two_ends_with_the_key_prove_it_and_frames_of_any_size_pass_both_ways(void **state) {
	static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, SEAL_FRAME_MAX};
	struct pair pair = {0};

	(void)state;
	setup_proven(&pair);
	assert_int_equal(seal_wants(&pair.connects), 0);
	assert_int_equal(seal_wants(&pair.accepts), 0);
	for (size_t n = 0; n < COUNT_OF(sizes); n++) {
		expect_frame(&pair.connects, &pair.accepts, sizes[n]);
		expect_frame(&pair.accepts, &pair.connects, sizes[n]);
	}
	teardown(&pair);
}

static void both_ends_name_the_key_and_the_version_in_use(void **state) {
	char expected[SEAL_KEY_ID_TEXT_BYTES];
	char text[SEAL_KEY_ID_TEXT_BYTES];
	struct pair pair = {0};

	(void)state;
	setup_proven(&pair);
	seal_keys_id(pair.keys, 0, expected);
	seal_key_id(&pair.connects, text);
	assert_string_equal(text, expected);
	seal_key_id(&pair.accepts, text);
	assert_string_equal(text, expected);
	assert_int_equal(seal_version(&pair.connects), SEAL_VERSION_MAX);
	assert_int_equal(seal_version(&pair.accepts), SEAL_VERSION_MAX);
	teardown(&pair);
}

static void nothing_is_sealed_or_opened_before_the_proof(void **state) {
	uint8_t bytes[SEAL_OVERHEAD] = {0};
	struct pair pair = {0};

	(void)state;
	setup_spoken(&pair);
	assert_int_equal(seal_encrypt(&pair.connects, "", 0, bytes), -ENOTCONN);
	assert_int_equal(seal_encrypt(&pair.accepts, "", 0, bytes), -ENOTCONN);
	assert_int_equal(seal_decrypt(&pair.connects, bytes, sizeof(bytes), bytes), -ENOTCONN);
	assert_int_equal(seal_decrypt(&pair.accepts, bytes, sizeof(bytes), bytes), -ENOTCONN);
	finish(&pair); // asking too early did no harm
	expect_both_ways(&pair);
	teardown(&pair);
}

// Each bit of what `said` holds is turned, and a twin of the receiver has to refuse it in silence.
static void expect_no_bit_may_turn(const struct seal *receiver, const struct seal_reply *said) {
	for (size_t bit = 0; bit < said->size * 8; bit++) {
		struct seal_reply altered = *said;
		struct seal seal = twin(receiver);
		bool in_id = said->size == HELLO_BYTES && bit < (size_t)SEAL_KEY_ID_BYTES * 8;

		altered.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
		expect_refused(&seal, &altered, in_id ? -ENOKEY : -EACCES);
		seal_wipe(&seal);
	}
}

static void a_turned_bit_in_the_hello_gets_no_answer(void **state) {
	struct pair pair = {.keys = make_keys()};

	(void)state;
	start(&pair, pair.keys, pair.keys);
	expect_no_bit_may_turn(&pair.accepts, &pair.hello);
	teardown(&pair);
}

static void a_turned_bit_in_the_answer_ends_the_connecting_side(void **state) {
	struct pair pair = {0};

	(void)state;
	setup_spoken(&pair);
	expect_no_bit_may_turn(&pair.connects, &pair.answer);
	teardown(&pair);
}

static void a_turned_bit_in_the_finish_ends_the_accepting_side(void **state) {
	struct pair pair = {0};

	(void)state;
	setup_spoken(&pair);
	assert_int_equal(take(&pair.connects, &pair.answer, &pair.finish), 0);
	expect_no_bit_may_turn(&pair.accepts, &pair.finish);
	teardown(&pair);
}

static void random_bytes_get_no_answer(void **state) {
	struct pair pair = {.keys = make_keys()};

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		start(&pair, pair.keys, pair.keys);
		randombytes_buf(pair.hello.bytes, pair.hello.size);
		expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
		seal_wipe(&pair.connects);
	}
	teardown(&pair);
}

static void an_unknown_key_gets_no_answer_and_is_named_in_the_log(void **state) {
	const struct seal_keys *other = make_keys();
	char expected[SEAL_KEY_ID_TEXT_BYTES];
	char text[SEAL_KEY_ID_TEXT_BYTES];
	struct pair pair = {.keys = make_keys()};

	(void)state;
	start(&pair, other, pair.keys);
	expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
	seal_keys_id(other, 0, expected);
	seal_key_id(&pair.accepts, text);
	assert_string_equal(text, expected);
	teardown(&pair);
	seal_keys_put(other);
}

static void the_id_of_a_key_without_the_key_gets_no_answer(void **state) {
	const struct seal_keys *forged = make_keys();
	struct pair pair = {.keys = make_keys()};

	(void)state;
	memcpy(inside(forged)->keys[0].id, pair.keys->keys[0].id, SEAL_KEY_ID_BYTES);
	start(&pair, forged, pair.keys);
	expect_refused(&pair.accepts, &pair.hello, -EACCES);
	teardown(&pair);
	seal_keys_put(forged);
}

// An id that nobody has is tested against a key of zeros: that must open no door.
static void the_key_of_zeros_gets_no_answer(void **state) {
	const struct seal_keys *zeros = make_keys();
	struct pair pair = {.keys = make_keys()};

	(void)state;
	memset(inside(zeros)->keys[0].secret, 0, SEAL_SECRET_BYTES);
	start(&pair, zeros, pair.keys);
	expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
	teardown(&pair);
	seal_keys_put(zeros);
}

static void another_cluster_with_the_same_key_gets_no_answer(void **state) {
	static const char *const others[] = {"", "alp", "alpss", "ALPS", "alps "};
	struct pair pair = {.keys = make_keys()};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(others); n++) {
		start(&pair, pair.keys, pair.keys);
		seal_wipe(&pair.accepts);
		seal_init(&pair.accepts, pair.keys, SEAL_ACCEPTS, others[n]);
		expect_refused(&pair.accepts, &pair.hello, -EACCES);
		seal_wipe(&pair.connects);
	}
	teardown(&pair);
}

struct version_row {
	uint8_t connects_min, connects_max, accepts_min, accepts_max;
	uint8_t agreed; // 0: none
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

static void expect_no_version(struct pair *pair) {
	struct seal_reply nothing = {.size = 1};

	assert_int_equal(take(&pair->accepts, &pair->hello, &pair->answer), -EPROTO);
	assert_int_equal(pair->answer.size, ANSWER_BYTES);
	expect_over(&pair->accepts);
	assert_int_equal(take(&pair->connects, &pair->answer, &nothing), -EPROTO);
	assert_int_equal(nothing.size, 0);
	expect_over(&pair->connects);
}

static void the_highest_common_version_is_used_and_both_ends_learn_that_there_is_none(void **state
) {
	struct pair pair = {.keys = make_keys()};

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
			answer(&pair);
			finish(&pair);
			expect_both_ways(&pair);
		}
		assert_int_equal(seal_version(&pair.connects), row->agreed);
		assert_int_equal(seal_version(&pair.accepts), row->agreed);
		expect_versions(&pair.connects, row->accepts_min, row->accepts_max);
		expect_versions(&pair.accepts, row->connects_min, row->connects_max);
		seal_wipe(&pair.connects);
		seal_wipe(&pair.accepts);
	}
	teardown(&pair);
}

static void what_an_end_said_itself_proves_nothing_to_it(void **state) {
	struct seal_reply reflected = {.size = ANSWER_BYTES};
	struct pair pair = {0};

	(void)state;
	setup_spoken(&pair);
	// The hello, as an answer: version, versions, ephemeral and mac where an answer has them.
	reflected.bytes[0] = SEAL_VERSION_MAX;
	memcpy(reflected.bytes + 1, pair.hello.bytes + SEAL_KEY_ID_BYTES,
	       HELLO_BYTES - SEAL_KEY_ID_BYTES);
	expect_refused(&pair.connects, &reflected, -EACCES);
	// The answer's header and proof, as the finish.
	reflected.size = FINISH_BYTES;
	memcpy(reflected.bytes, pair.answer.bytes + ANSWER_BYTES - FINISH_BYTES, FINISH_BYTES);
	expect_refused(&pair.accepts, &reflected, -EACCES);
	teardown(&pair);
}

static void a_frame_that_comes_back_to_its_sender_is_refused(void **state) {
	uint8_t sealed[5 + SEAL_OVERHEAD];
	uint8_t opened[5];
	struct pair pair = {0};

	(void)state;
	setup_proven(&pair);
	assert_int_equal(seal_encrypt(&pair.connects, "frame", 5, sealed), 0);
	assert_int_equal(seal_decrypt(&pair.connects, sealed, sizeof(sealed), opened), -EBADMSG);
	teardown(&pair);
}

static void a_replayed_hello_gets_a_fresh_answer_and_no_further(void **state) {
	struct seal_reply fresh;
	struct pair pair = {0};
	struct seal again;

	(void)state;
	setup_proven(&pair);
	seal_init(&again, pair.keys, SEAL_ACCEPTS, CLUSTER);
	assert_int_equal(take(&again, &pair.hello, &fresh), 0);
	assert_memory_not_equal(fresh.bytes + 3, pair.answer.bytes + 3, 32); // the ephemeral
	expect_refused(&again, &pair.finish, -EACCES);
	seal_wipe(&again);
	teardown(&pair);
}

static void a_replayed_answer_is_refused(void **state) {
	struct seal_reply hello;
	struct pair pair = {0};
	struct seal again;

	(void)state;
	setup_proven(&pair);
	seal_init(&again, pair.keys, SEAL_CONNECTS, CLUSTER);
	seal_begin(&again, &hello);
	assert_memory_not_equal(hello.bytes + 10, pair.hello.bytes + 10, 32);
	expect_refused(&again, &pair.answer, -EACCES);
	seal_wipe(&again);
	teardown(&pair);
}

static void a_frame_of_another_session_is_refused(void **state) {
	uint8_t sealed[5 + SEAL_OVERHEAD], other[5 + SEAL_OVERHEAD], opened[5];
	struct pair before = {0}, after = {0};

	(void)state;
	setup_proven(&before);
	after.keys = seal_keys_get(before.keys);
	start(&after, after.keys, after.keys);
	answer(&after);
	finish(&after);
	assert_int_equal(seal_encrypt(&before.connects, "frame", 5, sealed), 0);
	assert_int_equal(seal_encrypt(&after.connects, "frame", 5, other), 0);
	assert_memory_not_equal(sealed, other, sizeof(sealed));
	assert_int_equal(seal_decrypt(&after.accepts, sealed, sizeof(sealed), opened), -EBADMSG);
	after.keys = seal_keys_put(after.keys);
	teardown(&after);
	teardown(&before);
}

enum wrong_frame { REPLAYED, SWAPPED, LOST, CUT, EMPTY, TOO_SHORT, LONGER, TOO_LONG, WRONG_COUNT };

// Three frames; what comes second is wrong.
static void expect_wrong_frame_ends(enum wrong_frame wrong) {
	static uint8_t sealed[3][SEAL_FRAME_MAX + SEAL_OVERHEAD + 1];
	uint8_t opened[SEAL_FRAME_MAX + 1];
	size_t size = 32 + SEAL_OVERHEAD;
	const uint8_t *second = sealed[1];
	struct pair pair = {0};

	setup_proven(&pair);
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
	expect_over(&pair.accepts);
	teardown(&pair);
}

static void a_wrong_frame_writes_nothing_and_ends_the_session(void **state) {
	(void)state;
	for (enum wrong_frame wrong = 0; wrong < WRONG_COUNT; wrong++)
		expect_wrong_frame_ends(wrong);
}

static void a_turned_bit_in_a_frame_ends_the_session(void **state) {
	uint8_t sealed[5 + SEAL_OVERHEAD];
	uint8_t opened[5];
	struct pair pair = {0};

	(void)state;
	setup_proven(&pair);
	assert_int_equal(seal_encrypt(&pair.connects, "frame", 5, sealed), 0);
	for (size_t bit = 0; bit < sizeof(sealed) * 8; bit++) {
		struct seal seal = twin(&pair.accepts);

		sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
		assert_int_equal(seal_decrypt(&seal, sealed, sizeof(sealed), opened), -EBADMSG);
		sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
		expect_over(&seal);
		seal_wipe(&seal);
	}
	assert_int_equal(seal_decrypt(&pair.accepts, sealed, sizeof(sealed), opened), 0);
	teardown(&pair);
}

static void a_frame_too_long_to_seal_leaves_the_stream_as_it_was(void **state) {
	static uint8_t frame[SEAL_FRAME_MAX + 1];
	static uint8_t sealed[SEAL_FRAME_MAX + 1 + SEAL_OVERHEAD];
	struct pair pair = {0};

	(void)state;
	setup_proven(&pair);
	assert_int_equal(seal_encrypt(&pair.connects, frame, sizeof(frame), sealed), -EMSGSIZE);
	assert_true(all_zero(sealed, sizeof(sealed)));
	expect_both_ways(&pair);
	teardown(&pair);
}

// Four times 16 MiB one way: the sender changes its key four times, the other direction never.
static void a_stream_changes_its_key_after_16_mib_and_goes_on(void **state) {
	struct pair pair = {0};
	uint8_t key[32], other_way[32];
	uint32_t changes = 0;

	(void)state;
	setup_proven(&pair);
	memcpy(other_way, pair.accepts.sending.k, sizeof(other_way));
	for (uint32_t n = 0; n < 4 * 256; n++) {
		memcpy(key, pair.connects.sending.k, sizeof(key));
		expect_frame(&pair.connects, &pair.accepts, SEAL_FRAME_MAX);
		changes += memcmp(key, pair.connects.sending.k, sizeof(key)) != 0;
		assert_memory_equal(pair.connects.sending.k, pair.accepts.receiving.k, sizeof(key));
	}
	assert_int_equal(changes, 4);
	assert_memory_equal(other_way, pair.accepts.sending.k, sizeof(other_way));
	expect_both_ways(&pair);
	teardown(&pair);
}

// A replacement as seal_keys.h describes it: whatever step either end is at, they meet.
static void ends_meet_at_every_step_of_a_replacement(void **state) {
	const struct seal_keys *steps[4] = {make_keys()};
	static const enum seal_keys_step step_of[] = {
		SEAL_KEYS_ADD, SEAL_KEYS_SWAP, SEAL_KEYS_DROP};
	struct pair pair = {0};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(step_of); n++)
		assert_int_equal(seal_keys_create_step(steps[n], step_of[n], &steps[n + 1]), 0);
	for (size_t n = 0; n < 4; n++) {
		size_t next = n < 3 ? n + 1 : n;

		start(&pair, steps[n], steps[next]);
		answer(&pair);
		finish(&pair);
		teardown(&pair);
		start(&pair, steps[next], steps[n]);
		answer(&pair);
		finish(&pair);
		teardown(&pair);
	}
	// Two steps apart, or more, they need not.
	start(&pair, steps[0], steps[3]);
	expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
	teardown(&pair);
	for (size_t n = 0; n < 4; n++)
		seal_keys_put(steps[n]);
}

static void a_handshake_outlives_the_keys_it_began_with(void **state) {
	struct pair pair = {0};

	(void)state;
	setup_spoken(&pair);
	pair.keys = seal_keys_put(pair.keys); // a reload
	finish(&pair);
	assert_null(pair.connects.keys);
	assert_null(pair.accepts.keys);
	expect_both_ways(&pair);
	teardown(&pair);
}

static void agents_without_a_key_meet_by_the_name_of_their_cluster(void **state) {
	const struct seal_keys *same, *other;
	struct pair pair = {0};

	(void)state;
	assert_int_equal(seal_keys_create_keyless(CLUSTER, &pair.keys), 0);
	assert_int_equal(seal_keys_create_keyless(CLUSTER, &same), 0);
	assert_int_equal(seal_keys_create_keyless("other", &other), 0);
	start(&pair, pair.keys, same);
	answer(&pair);
	finish(&pair);
	expect_both_ways(&pair);
	seal_wipe(&pair.connects);
	seal_wipe(&pair.accepts);
	start(&pair, other, pair.keys);
	expect_refused(&pair.accepts, &pair.hello, -ENOKEY);
	seal_wipe(&pair.connects);
	seal_keys_put(same);
	seal_keys_put(other);
	teardown(&pair);
}

// The secrets of the handshake are gone with it, all of them with the session.
static void nothing_is_left_of_what_is_over(void **state) {
	struct pair pair = {0};
	struct seal *ends[] = {&pair.connects, &pair.accepts};

	(void)state;
	setup_proven(&pair);
	for (size_t n = 0; n < COUNT_OF(ends); n++) {
		struct seal *seal = ends[n];

		assert_null(seal->keys);
		assert_true(all_zero(seal->transcript, sizeof(seal->transcript)));
		assert_true(all_zero(seal->proof_key, sizeof(seal->proof_key)));
		assert_true(all_zero(seal->ephemeral_secret, sizeof(seal->ephemeral_secret)));
		assert_true(all_zero(seal->session_secret, sizeof(seal->session_secret)));
		assert_false(all_zero(&seal->sending, sizeof(seal->sending)));
		seal_wipe(seal);
		assert_true(all_zero(seal, sizeof(*seal)));
		seal_wipe(seal);
	}
	teardown(&pair);
}

// A hello as a holder of the key can make it, from the words at the top of seal.c alone.
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
		{0, 1, 9}, // no version is 0
		{2, 1, 9}, // from 2 to 1
		{1, 1, 0}, // a point of low order
		{1, 1, 1}, // another
	};
	static const uint8_t good[34] = {1, 1, 9}; // the base point
	struct pair pair = {.keys = make_keys()};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		seal_init(&pair.accepts, pair.keys, SEAL_ACCEPTS, CLUSTER);
		forge_hello(pair.keys, rows[n], &pair.hello);
		expect_refused(&pair.accepts, &pair.hello, -EBADMSG);
	}
	seal_init(&pair.accepts, pair.keys, SEAL_ACCEPTS, CLUSTER);
	forge_hello(pair.keys, good, &pair.hello);
	answer(&pair);
	teardown(&pair);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			two_ends_with_the_key_prove_it_and_frames_of_any_size_pass_both_ways
		),
		cmocka_unit_test(both_ends_name_the_key_and_the_version_in_use),
		cmocka_unit_test(nothing_is_sealed_or_opened_before_the_proof),
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
		cmocka_unit_test(a_frame_that_comes_back_to_its_sender_is_refused),
		cmocka_unit_test(a_replayed_hello_gets_a_fresh_answer_and_no_further),
		cmocka_unit_test(a_replayed_answer_is_refused),
		cmocka_unit_test(a_frame_of_another_session_is_refused),
		cmocka_unit_test(a_wrong_frame_writes_nothing_and_ends_the_session),
		cmocka_unit_test(a_turned_bit_in_a_frame_ends_the_session),
		cmocka_unit_test(a_frame_too_long_to_seal_leaves_the_stream_as_it_was),
		cmocka_unit_test(a_stream_changes_its_key_after_16_mib_and_goes_on),
		cmocka_unit_test(ends_meet_at_every_step_of_a_replacement),
		cmocka_unit_test(a_handshake_outlives_the_keys_it_began_with),
		cmocka_unit_test(agents_without_a_key_meet_by_the_name_of_their_cluster),
		cmocka_unit_test(nothing_is_left_of_what_is_over),
		cmocka_unit_test(a_holder_of_the_key_who_talks_nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
