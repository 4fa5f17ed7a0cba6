// SPDX-License-Identifier: BSD-3-Clause
// The handshake of two ends: success, recovery and failure.
#include "control/fabric/pairing/pairing_net.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <string.h>

#define A 0
#define B 1

static struct pairing_key key; // from A to B

static int two_nodes(void **state) {
	(void)state;
	net_create(2, 2, 1);
	key = net_key(0, B, 0);
	return 0;
}

static int fini(void **state) {
	(void)state;
	net_destroy();
	return 0;
}

static struct pairing_key back(void) {
	return net_key(0, A, 0);
}

static uint32_t sent(uint32_t node) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < PAIRING_MESSAGE_TYPE_END; n++)
		count += net.nodes[node].sent[n];
	return count;
}

// Normal operation

static void a_request_makes_one_pair_at_each_end_with_two_messages_each(void **state) {
	uint32_t waiter = net_request(A, key, SECOND);
	struct pairing_view view;

	(void)state;
	net_pass(SECOND);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_REASON_NONE);
	view = net_view(A, key);
	assert_int_equal(view.state, PAIRING_READY);
	assert_int_equal(net_answer(waiter)->generation, view.generation);
	assert_int_equal(net_view(B, back()).state, PAIRING_READY);
	assert_int_equal(net_view(B, back()).theirs.generation, view.generation);
	for (uint32_t n = A; n <= B; n++) {
		assert_int_equal(net.nodes[n].asked[NET_CREATE], 1);
		assert_int_equal(net.nodes[n].asked[NET_CONNECT], 1);
		assert_int_equal(net.nodes[n].sent[PAIRING_INFO], 1);
		assert_int_equal(net.nodes[n].sent[PAIRING_READY_SENT], 1);
		assert_int_equal(sent(n), 2);
	}
	assert_in_range(view.took_ns, 4 * MS, 6 * MS);
}

static void two_requests_at_once_get_the_same_pair(void **state) {
	uint32_t first = net_request(A, key, SECOND), second = net_request(A, key, SECOND);

	(void)state;
	net_pass(SECOND);
	assert_int_not_equal(net_answer(first)->generation, 0);
	assert_int_equal(net_answer(first)->generation, net_answer(second)->generation);
	assert_int_equal(net.nodes[A].asked[NET_CREATE], 1);
}

static void a_request_on_a_ready_pair_is_answered_at_once(void **state) {
	uint32_t first = net_request(A, key, SECOND), second;

	(void)state;
	net_pass(SECOND);
	second = net_request(A, key, SECOND);
	assert_int_equal(net_answer(second)->generation, net_answer(first)->generation);
}

static void both_may_begin_at_once_and_make_one_pair(void **state) {
	uint32_t a = net_request(A, key, SECOND), b = net_request(B, back(), SECOND);

	(void)state;
	net_pass(SECOND);
	assert_int_not_equal(net_answer(a)->generation, 0);
	assert_int_not_equal(net_answer(b)->generation, 0);
	assert_int_equal(net.nodes[A].asked[NET_CREATE], 1);
	assert_int_equal(net.nodes[B].asked[NET_CREATE], 1);
	assert_int_equal(net_counters(A)->stale + net_counters(B)->stale, 0);
}

static void a_device_connects_to_itself_without_a_message(void **state) {
	uint32_t waiter = net_request(A, net_key(0, A, 0), SECOND);
	const struct net_pair *pair = &net.nodes[A].pairs[0];

	(void)state;
	net_pass(SECOND);
	assert_int_not_equal(net_answer(waiter)->generation, 0);
	assert_int_equal(sent(A), 0);
	assert_int_equal(pair->theirs.queue_number, pair->own.queue_number);
	assert_int_equal(pair->theirs.psn, pair->own.psn);
}

static void two_devices_of_one_node_connect_across(void **state) {
	uint32_t waiter = net_request(A, net_key(0, A, 1), SECOND);
	struct pairing_view there, back_again;

	(void)state;
	net_pass(SECOND);
	assert_int_not_equal(net_answer(waiter)->generation, 0);
	there = net_view(A, net_key(0, A, 1));
	back_again = net_view(A, net_key(1, A, 0));
	assert_int_equal(back_again.state, PAIRING_READY);
	assert_int_equal(there.theirs.generation, back_again.generation);
	assert_int_equal(back_again.theirs.generation, there.generation);
}

static void pairs_of_all_devices_with_one_peer_are_apart(void **state) {
	(void)state;
	for (uint32_t device = 0; device < 4; device++)
		net_want(A, device & 1, B, device >> 1);
	net_pass(10 * MS); // the requests do not wait for each other
	assert_int_equal(net_counters(A)->ready, 4);
	assert_int_equal(net_counters(B)->ready, 4);
}

static void what_each_end_says_of_itself_reaches_the_other(void **state) {
	struct pairing_device device = {
		.name = "rdma0",
		.responder = DEVICE_RESPONDER_KERNEL,
		.shares_overlay = true,
		.traffic_class = 106,
		.pulse = {.address = 0x7f0000001000, .key = 0x1234, .layout = 1},
	};
	struct pairing_end end;
	uint32_t index;

	(void)state;
	assert_int_equal(pairing_device(net.nodes[A].pairing, &device, &index), 0);
	net_want(A, 0, B, 0);
	net_settle();
	net_pass(MS);
	end = net_view(B, back()).theirs;
	assert_int_equal(end.start, 1);
	assert_int_equal(end.responder, DEVICE_RESPONDER_KERNEL);
	assert_true(end.shares_overlay && end.wanted);
	assert_int_equal(end.traffic_class, 106);
	assert_int_equal(end.flow_label, net_view(A, key).flow_label);
	assert_int_equal(end.pulse.address, device.pulse.address);
	assert_int_equal(end.pulse.key, device.pulse.key);
	assert_int_equal(end.pulse.layout, 1);
	assert_true(net_view(B, back()).guest);
	assert_int_equal(net_view(A, key).theirs.pulse.layout, 0);
}

// Lost messages

static uint32_t lose_from, lose_type, lose_count;

static bool lose(struct net *unused, uint32_t from, uint32_t to, uint8_t *bytes, size_t *size) {
	(void)unused;
	(void)to;
	(void)size;
	if (from != lose_from || bytes[2] != lose_type || lose_count == 0)
		return false;
	lose_count--;
	return true;
}

static const struct {
	const char *what;
	uint32_t from, type, count;
	uint64_t within_ns;
} losses[] = {
	{"the first word", A, PAIRING_INFO, 1, 300 * MS},
	{"the answer", B, PAIRING_INFO, 1, 300 * MS},
	{"that the asker is ready", A, PAIRING_READY_SENT, 1, 300 * MS},
	{"that the asked is ready", B, PAIRING_READY_SENT, 1, 300 * MS},
	{"three first words", A, PAIRING_INFO, 3, 1500 * MS},
	{"three answers", B, PAIRING_INFO, 3, 1500 * MS},
	{"three times that the asker is ready", A, PAIRING_READY_SENT, 3, 1500 * MS},
	{"three times that the asked is ready", B, PAIRING_READY_SENT, 3, 1500 * MS},
};

static void any_lost_message_is_made_up_for_within_the_same_handshake(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(losses); n++) {
		print_message("# %s\n", losses[n].what);
		net_destroy();
		net_create(2, 1, n);
		net.filter = lose;
		lose_from = losses[n].from;
		lose_type = losses[n].type;
		lose_count = losses[n].count;
		net_want(A, 0, B, 0);
		net_pass(losses[n].within_ns);
		assert_true(net_is_ready(A, B) && net_is_ready(B, A));
		assert_int_equal(net_counters(A)->begun, 1);
		assert_int_equal(net_counters(B)->begun, 1);
	}
}

static void one_that_is_ready_answers_who_missed_it_and_nobody_answers_that(void **state) {
	(void)state;
	net.filter = lose;
	lose_from = A;
	lose_type = PAIRING_READY_SENT;
	lose_count = 1;
	net_request(A, key, SECOND);
	net_await(A, key, PAIRING_READY);
	assert_int_equal(net_view(B, back()).state, PAIRING_PENDING);
	net_pass(SECOND);
	assert_int_equal(net_view(B, back()).state, PAIRING_READY);
	assert_int_equal(net_counters(A)->repaired, 1);
	assert_int_equal(net.nodes[A].sent[PAIRING_READY_SENT], 2);
	assert_int_equal(net.nodes[B].sent[PAIRING_READY_SENT], 2);
}

static void a_peer_that_never_is_ready_is_given_up_once_in_time(void **state) {
	uint32_t waiter = net_request(A, key, PAIRING_NEVER);
	const struct pairing_failure *failure;
	uint64_t from_ns = net.now_ns;

	(void)state;
	net.filter = lose;
	lose_from = B;
	lose_type = PAIRING_READY_SENT;
	lose_count = UINT32_MAX;
	while (net.waiters[waiter].answers == 0)
		assert_true(net_step(from_ns + 20 * SECOND));
	// Both halves of the handshake share one time limit.
	assert_int_equal(net.now_ns - from_ns, 5 * SECOND);
	failure = &net_answer(waiter)->failure;
	assert_int_equal(failure->reason, PAIRING_TIMED_OUT);
	assert_string_equal(failure->text, "timed out, waiting for the peer to be ready");
	assert_int_equal(net_counters(A)->failed[PAIRING_TIMED_OUT], 1);
	net_pass(100 * MS);
	assert_int_equal(net.nodes[A].pair_count, 0);
}

// Failures, and how they are reported to the requester

static void silence_of_the_peer_times_out(void **state) {
	uint32_t waiter;

	(void)state;
	net.cut[A][B] = true;
	waiter = net_request(A, key, PAIRING_NEVER);
	net_pass(5 * SECOND);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_TIMED_OUT);
	assert_string_equal(
		net_answer(waiter)->failure.text, "timed out, waiting for an answer from the peer"
	);
	assert_int_equal(net_view(A, key).state, PAIRING_DRAINING);
	net_pass(10 * MS);
	assert_int_equal(net_view(A, key).state, PAIRING_FAILED);
	assert_int_equal(net.nodes[A].pair_count, 0);
}

static void the_peers_refusal_reaches_the_asker_in_its_words(void **state) {
	uint32_t waiter;

	(void)state;
	net.nodes[B].fail[NET_CONNECT] = -EINVAL;
	waiter = net_request(A, key, PAIRING_NEVER);
	net_pass(100 * MS);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_DRIVER);
	assert_true(net_answer(waiter)->failure.by_peer);
	assert_string_equal(net_answer(waiter)->failure.text, "the card says no");
	assert_int_equal(net_counters(A)->failed[PAIRING_DRIVER], 1);
	assert_int_equal(net_counters(A)->succeeded, 0);
}

static void a_message_that_cannot_be_delivered_fails_the_handshake_with_its_text(void **state) {
	uint32_t waiter;

	(void)state;
	net.undeliverable = true;
	net.cut[A][B] = true;
	waiter = net_request(A, key, PAIRING_NEVER);
	net_pass(100 * MS);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_UNREACHABLE);
	assert_string_equal(net_answer(waiter)->failure.text, "address not routable");
	assert_int_equal(net_counters(A)->failed[PAIRING_UNREACHABLE], 1);
}

static void a_ready_that_cannot_be_delivered_fails_the_handshake_too(void **state) {
	uint32_t waiter;

	(void)state;
	net.undeliverable = true;
	net.filter = lose;
	lose_from = A;
	lose_type = PAIRING_READY_SENT;
	lose_count = UINT32_MAX;
	net.nodes[B].hold[NET_CONNECT] = true;
	waiter = net_request(A, key, PAIRING_NEVER);
	net_pass(100 * MS);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_UNREACHABLE);
	assert_string_equal(net_answer(waiter)->failure.text, "address not routable");
}

static void what_is_undeliverable_after_the_end_fails_nothing_again(void **state) {
	uint32_t generation;

	(void)state;
	net.cut[A][B] = true;
	net_request(A, key, PAIRING_NEVER);
	generation = net_view(A, key).generation;
	net_pass(5 * SECOND + MS);
	assert_int_equal(net_counters(A)->failed[PAIRING_TIMED_OUT], 1);
	pairing_undelivered(net.nodes[A].pairing, net.now_ns, net_id(B), generation, "late");
	pairing_undelivered(net.nodes[A].pairing, net.now_ns, net_id(B), 0, "late");
	assert_int_equal(net_counters(A)->failed[PAIRING_UNREACHABLE], 0);
	assert_int_equal(net_counters(A)->undelivered, 2);
	assert_int_equal(net_view(A, key).failure.reason, PAIRING_TIMED_OUT);
}

static void two_limited_members_of_a_partition_are_told_so_and_wait_for_news(void **state) {
	uint32_t waiter;

	(void)state;
	net.nodes[A].limited = net.nodes[B].limited = true;
	net_want(A, 0, B, 0);
	waiter = net_request(A, key, PAIRING_NEVER);
	net_pass(30 * SECOND);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_LIMITED_MEMBERS);
	assert_true(net_answer(waiter)->failure.by_peer);
	assert_string_equal(pairing_reason_name(PAIRING_LIMITED_MEMBERS), "LimitedMembers");
	assert_int_equal(net_counters(A)->begun, 1);
	// One full member of the partition is enough.
	net.nodes[B].limited = false;
	net_tell(A, B, PAIRING_PEER_IS_ALIVE, 1);
	assert_true(net_settle() < 10 * MS);
}

static void devices_without_a_common_fabric_are_tried_once_until_there_is_news(void **state) {
	uint32_t waiter;

	(void)state;
	net.nodes[B].fabric[0] = 1;
	net_want(A, 0, B, 0);
	waiter = net_request(A, key, PAIRING_NEVER);
	net_pass(30 * SECOND);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_NO_COMMON_FABRIC);
	assert_int_equal(net_answer(waiter)->failure.err, -EPROTONOSUPPORT);
	assert_string_equal(
		net_answer(waiter)->failure.text, "one is InfiniBand, the other Ethernet"
	);
	assert_string_equal(pairing_reason_name(PAIRING_NO_COMMON_FABRIC), "NoCommonFabric");
	assert_int_equal(net_counters(A)->begun, 1);
	assert_int_equal(net_view(A, key).next_try_ns, PAIRING_NEVER);
	net.nodes[B].fabric[0] = 0;
	net_tell(A, B, PAIRING_PEER_IS_ALIVE, 1);
	assert_true(net_settle() < 10 * MS);
}

static void a_device_that_the_peer_does_not_have_is_named(void **state) {
	uint32_t waiter = net_request(A, net_key(0, B, 3), PAIRING_NEVER);

	(void)state;
	net_pass(100 * MS);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_NO_DEVICE);
	assert_true(net_answer(waiter)->failure.by_peer);
	assert_string_equal(net_answer(waiter)->failure.text, "there is no device rdma3");
	assert_int_equal(net.nodes[B].asked[NET_CREATE], 0);
}

static void a_device_of_the_peer_that_is_down_says_why(void **state) {
	uint32_t waiter;

	(void)state;
	pairing_device_state(
		net.nodes[B].pairing, net.now_ns, 0, PAIRING_DEVICE_DOWN, "port 1 is down"
	);
	waiter = net_request(A, key, PAIRING_NEVER);
	net_pass(100 * MS);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_NO_DEVICE);
	assert_string_equal(net_answer(waiter)->failure.text, "rdma0: port 1 is down");
}

// Restarts

static void a_restarted_peer_is_answered_with_a_new_pair_in_the_same_exchange(void **state) {
	uint32_t first, waiter;

	(void)state;
	net_request(B, back(), SECOND);
	net_pass(SECOND);
	first = net_view(A, key).generation;
	net.nodes[A].hold[NET_DRAIN] = true; // the former pair is not drained yet
	net_crash(B, false);
	net_start(B, false);
	waiter = net_request(B, back(), SECOND);
	net_pass(20 * MS);
	assert_int_not_equal(net_answer(waiter)->generation, 0);
	assert_int_equal(net.nodes[B].sent[PAIRING_INFO], 2); // one earlier, one now
	assert_int_equal(net_view(A, key).state, PAIRING_READY);
	assert_int_not_equal(net_view(A, key).generation, first);
	assert_int_equal(net_view(A, key).retired, 1);
	assert_int_equal(net_view(A, key).failure.reason, PAIRING_PEER_DEAD);
}

static void a_peer_that_lost_its_pair_is_answered_with_a_new_one_too(void **state) {
	(void)state;
	net_request(A, key, SECOND);
	net_pass(2 * SECOND);
	net.filter = lose; // loses B's close messages
	lose_from = B;
	lose_type = PAIRING_CLOSE;
	lose_count = 1;
	net_break(B, back());
	net_pass(300 * MS); // of backoff
	net_request(B, back(), SECOND);
	net_pass(SECOND);
	assert_int_equal(net_counters(A)->replaced, 1);
	assert_true(net_is_ready(A, B) && net_is_ready(B, A));
}

static void the_end_of_one_side_ends_the_other_at_once(void **state) {
	struct pairing_view view;

	(void)state;
	net_request(A, key, SECOND);
	net_pass(SECOND);
	net_break(B, back());
	net_pass(5 * MS);
	view = net_view(A, key);
	assert_int_not_equal(view.state, PAIRING_READY);
	assert_int_equal(view.failure.reason, PAIRING_BROKEN);
	assert_true(view.failure.by_peer);
	assert_string_equal(view.failure.text, "RETRY_EXC_ERR of a read");
	assert_int_equal(view.broken, 1);
	assert_int_equal(net_view(B, back()).broken, 1);
}

// Late messages of an older generation.
static struct net_event_copy {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	size_t size;
} copies[16];
static uint32_t copy_count;

static bool keep(struct net *unused, uint32_t from, uint32_t to, uint8_t *bytes, size_t *size) {
	(void)unused;
	(void)to;
	if (from == A && copy_count < COUNT_OF(copies)) {
		memcpy(copies[copy_count].bytes, bytes, *size);
		copies[copy_count++].size = *size;
	}
	return false;
}

static void messages_of_an_older_generation_are_counted_and_left(void **state) {
	uint64_t stale;
	uint32_t old, generation;

	(void)state;
	net.filter = keep;
	copy_count = 0;
	net_want(A, 0, B, 0);
	net_settle();
	net_pass(2 * SECOND);
	net_break(A, key);
	net_pass(10 * MS);
	old = copy_count;
	net_settle();
	net_pass(SECOND);
	generation = net_view(B, back()).generation;
	stale = net_counters(B)->stale;
	for (uint32_t n = 0; n < old; n++)
		assert_int_equal(
			pairing_receive(
				net.nodes[B].pairing, net.now_ns, net_id(A), 1, copies[n].bytes,
				copies[n].size
			),
			0
		);
	assert_int_equal(net_counters(B)->stale, stale + old);
	net_pass(SECOND);
	assert_int_equal(net_view(B, back()).generation, generation);
	assert_true(net_is_ready(B, A) && net_is_ready(A, B));
}

static void a_wanted_pair_is_made_anew_with_another_flow_label_each_ten_minutes(void **state) {
	struct pairing_view before, after;
	uint64_t gone_ns = 0, since_ns;

	(void)state;
	net_want(A, 0, B, 0);
	net_want(B, 0, A, 0);
	net_settle();
	before = net_view(A, key);
	since_ns = net.now_ns;
	net_pass(500 * SECOND);
	assert_int_equal(net_view(A, key).generation, before.generation);
	while (net_view(A, key).generation == before.generation)
		assert_true(net_step(since_ns + 700 * SECOND));
	assert_in_range(net.now_ns - since_ns, 525 * SECOND, 675 * SECOND);
	gone_ns = net.now_ns;
	net_settle();
	assert_true(net.now_ns - gone_ns < SECOND);
	after = net_view(A, key);
	assert_int_not_equal(after.flow_label, before.flow_label);
	// One side starts the renewal, for both.
	assert_int_equal(net_counters(A)->renewed + net_counters(B)->renewed, 1);
	net_pass(6000 * SECOND);
	assert_in_range(net_counters(A)->renewed + net_counters(B)->renewed, 9, 12);
	assert_true(net_is_ready(A, B) && net_is_ready(B, A));
	assert_int_equal(net_counters(A)->failed[PAIRING_TIMED_OUT], 0);
}

static void what_a_device_shows_newly_is_told_by_pairs_made_anew_at_once(void **state) {
	struct pairing_device device = {
		.responder = DEVICE_RESPONDER_HARDWARE,
		.gpu = {.address = 0xa000, .word = 77, .key = 6, .length = 65536, .ordinal = 3},
	};
	uint32_t number = UINT32_MAX, generation;
	struct pairing_view view;

	(void)state;
	net_want(A, 0, B, 0);
	net_want(B, 0, A, 0);
	net_settle();
	generation = net_view(A, key).generation;
	memcpy(device.name, key.peer_device, sizeof(device.name));
	assert_int_equal(pairing_device(net.nodes[B].pairing, &device, &number), 0);
	assert_int_equal(number, 0);
	pairing_device_renew(net.nodes[B].pairing, net.now_ns, number);
	net_pass(2 * SECOND);
	net_settle();
	view = net_view(A, key);
	assert_true(net_is_ready(A, B) && net_is_ready(B, A));
	assert_int_not_equal(view.generation, generation);
	assert_int_equal(view.theirs.gpu.address, 0xa000);
	assert_int_equal(view.theirs.gpu.word, 77);
	assert_int_equal(view.theirs.gpu.ordinal, 3);
	assert_int_equal(net_counters(B)->renewed, 1);
}

// The labels cycle, so that the statistics of each label can be distinguished.
static void flow_labels_of_a_pair_come_in_turn(void **state) {
	uint32_t labels[PAIRING_FLOWS], generation, found = 0;

	(void)state;
	net_want(A, 0, B, 0);
	net_settle();
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t n = 0; n < PAIRING_FLOWS; n++) {
			if (turn == 0)
				labels[n] = net_view(A, key).flow_label;
			assert_int_equal(net_view(A, key).flow_label, labels[n]);
			for (uint32_t m = 0; m < n; m++)
				found += labels[m] == labels[n];
			generation = net_view(A, key).generation;
			while (net_view(A, key).generation == generation)
				assert_true(net_step(net.now_ns + 700 * SECOND));
			net_settle();
		}
	}
	assert_int_equal(found, 0);
}

static void a_pair_of_a_silent_peer_is_not_made_anew(void **state) {
	uint32_t generation;

	(void)state;
	net_want(A, 0, B, 0);
	net_want(B, 0, A, 0);
	net_settle();
	generation = net_view(A, key).generation;
	net_tell(A, B, PAIRING_PEER_IS_SILENT, 1);
	net_tell(B, A, PAIRING_PEER_IS_SILENT, 1);
	net_pass(2000 * SECOND);
	assert_int_equal(net_view(A, key).generation, generation);
	assert_true(net_is_ready(A, B));
	net_tell(A, B, PAIRING_PEER_IS_ALIVE, 1);
	net_tell(B, A, PAIRING_PEER_IS_ALIVE, 1);
	net_pass(SECOND);
	assert_true(net_is_ready(A, B));
	assert_int_not_equal(net_view(A, key).generation, generation);
}

static void a_time_that_goes_back_counts_as_the_last_one(void **state) {
	struct pairing *pairing = net.nodes[A].pairing;

	(void)state;
	net_want(A, 0, B, 0);
	net_settle();
	pairing_tick(pairing, net.now_ns + 3 * SECOND);
	pairing_tick(pairing, net.now_ns);
	pairing_report_success(pairing, net.now_ns, net_view(A, key).generation);
	assert_true(net_view(A, key).used_ns >= net.now_ns + 3 * SECOND);
	net_break(A, key);
	assert_true(net_view(A, key).next_try_ns >= net.now_ns + 3 * SECOND + 250 * MS);
	assert_in_range(net_settle(), 3 * SECOND, 4 * SECOND);
}

static const struct {
	uint32_t last, next, after;
} counts[] = {
	{0xfffffe, 0xffffff, 0x1000001},      // a lane uses 24 bits, and 0 means no pair
	{0xfffffffe, 0xffffffff, 0x00000001}, // wraps around
};

static void generations_are_counted_round_and_never_none(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(counts); n++) {
		net_destroy();
		net_create(2, 2, n);
		net.nodes[A].pairing->generation = counts[n].last;
		net_want(A, 0, B, 0);
		net_settle();
		net_pass(2 * SECOND);
		assert_int_equal(net_view(A, key).generation, counts[n].next);
		net_break(A, key);
		net_pass(10 * MS);
		net_settle();
		net_pass(SECOND);
		assert_int_equal(net_view(A, key).generation, counts[n].after);
		assert_true(net_is_ready(B, A));
	}
}

static void another_start_of_our_own_ends_all_pairs_and_makes_them_anew(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	net_settle();
	net_pass(2 * SECOND);
	net.nodes[A].start = 2;
	pairing_restart(net.nodes[A].pairing, net.now_ns, 2);
	net_pass(SECOND);
	assert_true(net_is_ready(A, B) && net_is_ready(B, A));
	assert_int_equal(net_view(B, back()).theirs.start, 2);
}

UNIT_GROUP(pairing) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, two_nodes, fini)
	const struct CMUnitTest tests[] = {
		TEST(a_request_makes_one_pair_at_each_end_with_two_messages_each),
		TEST(two_requests_at_once_get_the_same_pair),
		TEST(a_request_on_a_ready_pair_is_answered_at_once),
		TEST(both_may_begin_at_once_and_make_one_pair),
		TEST(a_device_connects_to_itself_without_a_message),
		TEST(two_devices_of_one_node_connect_across),
		TEST(pairs_of_all_devices_with_one_peer_are_apart),
		TEST(what_each_end_says_of_itself_reaches_the_other),
		TEST(any_lost_message_is_made_up_for_within_the_same_handshake),
		TEST(one_that_is_ready_answers_who_missed_it_and_nobody_answers_that),
		TEST(a_peer_that_never_is_ready_is_given_up_once_in_time),
		TEST(silence_of_the_peer_times_out),
		TEST(the_peers_refusal_reaches_the_asker_in_its_words),
		TEST(a_message_that_cannot_be_delivered_fails_the_handshake_with_its_text),
		TEST(a_ready_that_cannot_be_delivered_fails_the_handshake_too),
		TEST(what_is_undeliverable_after_the_end_fails_nothing_again),
		TEST(two_limited_members_of_a_partition_are_told_so_and_wait_for_news),
		TEST(devices_without_a_common_fabric_are_tried_once_until_there_is_news),
		TEST(a_device_that_the_peer_does_not_have_is_named),
		TEST(a_device_of_the_peer_that_is_down_says_why),
		TEST(a_restarted_peer_is_answered_with_a_new_pair_in_the_same_exchange),
		TEST(a_peer_that_lost_its_pair_is_answered_with_a_new_one_too),
		TEST(the_end_of_one_side_ends_the_other_at_once),
		TEST(messages_of_an_older_generation_are_counted_and_left),
		TEST(a_wanted_pair_is_made_anew_with_another_flow_label_each_ten_minutes),
		TEST(what_a_device_shows_newly_is_told_by_pairs_made_anew_at_once),
		TEST(flow_labels_of_a_pair_come_in_turn),
		TEST(a_pair_of_a_silent_peer_is_not_made_anew),
		TEST(a_time_that_goes_back_counts_as_the_last_one),
		TEST(generations_are_counted_round_and_never_none),
		TEST(another_start_of_our_own_ends_all_pairs_and_makes_them_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
