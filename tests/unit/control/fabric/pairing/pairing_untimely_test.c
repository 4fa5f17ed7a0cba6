// SPDX-License-Identifier: BSD-3-Clause
// Valid messages that come at the wrong time, too often, or from the wrong sender.
#include "control/fabric/pairing/pairing_liar.h"

#include <support/cases.h>

#include <string.h>

static void ready_from_who_has_another_pair_of_ours_in_mind_is_stale(void **state) {
	struct pairing_message message = liar_message(PAIRING_READY_SENT);

	(void)state;
	message.your_start = 1;
	message.your_generation = 4711;
	assert_int_equal(liar_say(&message), 0);
	assert_int_equal(liar_heard.message.type, PAIRING_REFUSE);
	assert_int_equal(liar_heard.message.failure.reason, PAIRING_STALE);
	message.your_start = 7;
	message.end.generation = 101;
	liar_heard.count = 0;
	assert_int_equal(liar_say(&message), 0); // for another start of this node
	assert_int_equal(liar_heard.count, 0);
	assert_int_equal(net_counters(NODE)->stale, 2);
	assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 0);
}

static void a_ready_pair_is_not_ended_by_refusals_or_by_who_is_not_its_peer(void **state) {
	struct pairing_message refusal = liar_message(PAIRING_REFUSE),
			       close = liar_message(PAIRING_CLOSE);
	struct pairing_message spoilt = liar_message(PAIRING_INFO);

	(void)state;
	liar_be_ready();
	refusal.your_start = 1;
	refusal.your_generation = node_generation();
	liar_say(&refusal);
	close.end.generation = 99;
	liar_say(&close);
	spoilt.end.generation = 101;
	spoilt.end.endpoint.mtu = 7;
	liar_say(&spoilt);
	memcpy(refusal.device, "rdma1", 6);
	refusal.failure.reason = PAIRING_STALE;
	liar_say(&refusal);
	assert_int_equal(net_view(NODE, liar_key).state, PAIRING_READY);
	assert_int_equal(net_counters(NODE)->stale, 3);
}

static const struct {
	const char *what;
	bool to_ours; // addressed to the current pair; otherwise to one that is long gone
} answers[] = {
	{"to one that is long gone", false},
	{"to ours, which has another", true},
};

static void a_newer_pair_that_is_bound_elsewhere_ends_ours_and_is_told_to_end(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(answers); n++) {
		struct pairing_message message = liar_message(PAIRING_INFO);

		print_message("# %s\n", answers[n].what);
		liar_end(NULL);
		liar_begin(NULL);
		liar_be_ready();
		message.your_start = 1;
		message.your_generation = answers[n].to_ours ? node_generation() : 4711;
		message.end.generation = 101;
		assert_int_equal(liar_say(&message), 0);
		assert_int_equal(liar_heard.message.type, PAIRING_REFUSE);
		assert_int_equal(liar_heard.message.failure.reason, PAIRING_STALE);
		assert_int_equal(liar_heard.message.your_generation, 101);
		assert_int_equal(net_view(NODE, liar_key).state, PAIRING_DRAINING);
		assert_int_equal(net_view(NODE, liar_key).failure.reason, PAIRING_REPLACED);
		net_pass(5 * SECOND);
		assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 1);
	}
}

static void what_the_peer_says_is_gone_is_gone(void **state) {
	struct pairing_message close = liar_message(PAIRING_CLOSE);

	(void)state;
	liar_be_ready();
	liar_say(&close);
	assert_int_not_equal(net_view(NODE, liar_key).state, PAIRING_READY);
	assert_int_equal(net_view(NODE, liar_key).failure.reason, PAIRING_DRIVER);
	close.type = PAIRING_INFO; // must not bring the pair back
	close.failure.reason = PAIRING_REASON_NONE;
	close.end = liar_message(PAIRING_INFO).end;
	net_pass(5 * SECOND);
	liar_heard.count = 0;
	liar_say(&close);
	net_pass(5 * SECOND);
	assert_int_equal(liar_heard.count, 0);
	assert_int_equal(net_view(NODE, liar_key).generation, 1);
}

static void a_flood_of_new_generations_costs_one_handshake_a_second(void **state) {
	struct pairing_message message = liar_message(PAIRING_INFO);

	(void)state;
	for (uint32_t n = 0; n < 10000; n++) {
		message.end.generation++;
		assert_int_equal(liar_say(&message), 0);
		net_pass(MS);
	}
	assert_in_range(net.nodes[NODE].asked[NET_CREATE], 9, 11);
	assert_true(net.nodes[NODE].gap_ns[LIAR] >= SECOND);
	assert_true(net.nodes[NODE].pair_count <= 3);
}

static void a_flood_of_copies_is_not_answered_copy_by_copy(void **state) {
	struct pairing_message message = liar_message(PAIRING_INFO);

	(void)state;
	liar_say(&message);
	net_pass(20 * MS);
	liar_heard.count = 0;
	for (uint32_t n = 0; n < 10000; n++) {
		assert_int_equal(liar_say(&message), 0);
		net_pass(MS / 10);
	}
	assert_in_range(liar_heard.count, 1, 110);
}

static void a_flood_of_device_names_is_held_to_the_places_of_one_peer(void **state) {
	struct pairing_message message = liar_message(PAIRING_INFO);
	struct pairing_view view;
	uint32_t count = 0;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		message.device[0] = (char)('a' + n % 26);
		message.device[1] = (char)('a' + n / 26 % 26);
		message.device[2] = (char)('a' + n / 676);
		assert_int_equal(liar_say(&message), 0);
		net_pass(MS);
	}
	for (uint32_t cursor = 0; pairing_next(net.nodes[NODE].pairing, &cursor, &view);)
		count++;
	assert_in_range(count, 1, PAIRING_PEER_ENTRIES_MAX);
	assert_int_equal(liar_heard.message.failure.reason, PAIRING_NO_ROOM);
	assert_true(net.nodes[NODE].pair_count <= 64);
}

static void a_generation_from_the_far_end_blocks_no_more_than_its_start(void **state) {
	struct pairing_message message = liar_message(PAIRING_INFO);

	(void)state;
	message.end.generation = 0x7fffffff;
	liar_say(&message);
	net_pass(SECOND);
	message.end.generation = 100; // half-way round counts as older
	liar_say(&message);
	assert_int_equal(net_counters(NODE)->stale, 1);
	net_pass(20 * SECOND);
	// liar_end() shows that a new start of the liar is accepted.
}

static void words_of_a_dead_or_unknown_peer_are_not_believed(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = liar_message(PAIRING_INFO);
	size_t size = pairing_message_encode(&message, bytes);

	(void)state;
	assert_int_equal(
		pairing_receive(net.nodes[NODE].pairing, net.now_ns, net_id(6), 1, bytes, size), 0
	);
	net.nodes[NODE].views[LIAR].state = PAIRING_PEER_HAS_DIED;
	assert_int_equal(liar_say(&message), 0);
	assert_int_equal(net_counters(NODE)->stale, 2);
	assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 0);
	net.nodes[NODE].views[LIAR].state = PAIRING_PEER_IS_ALIVE;
}

static void our_own_device_does_not_offer_itself_to_itself(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = liar_message(PAIRING_INFO);
	size_t size = pairing_message_encode(&message, bytes);

	(void)state;
	assert_int_equal(
		pairing_receive(net.nodes[NODE].pairing, net.now_ns, net_id(NODE), 1, bytes, size),
		-EBADMSG
	);
	assert_int_equal(net_counters(NODE)->malformed, 1);
}

UNIT_GROUP(pairing_untimely) {
	const struct CMUnitTest tests[] = {
		LIAR_TEST(ready_from_who_has_another_pair_of_ours_in_mind_is_stale),
		LIAR_TEST(a_ready_pair_is_not_ended_by_refusals_or_by_who_is_not_its_peer),
		LIAR_TEST(a_newer_pair_that_is_bound_elsewhere_ends_ours_and_is_told_to_end),
		LIAR_TEST(what_the_peer_says_is_gone_is_gone),
		LIAR_TEST(a_flood_of_new_generations_costs_one_handshake_a_second),
		LIAR_TEST(a_flood_of_copies_is_not_answered_copy_by_copy),
		LIAR_TEST(a_flood_of_device_names_is_held_to_the_places_of_one_peer),
		LIAR_TEST(a_generation_from_the_far_end_blocks_no_more_than_its_start),
		LIAR_TEST(words_of_a_dead_or_unknown_peer_are_not_believed),
		LIAR_TEST(our_own_device_does_not_offer_itself_to_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
