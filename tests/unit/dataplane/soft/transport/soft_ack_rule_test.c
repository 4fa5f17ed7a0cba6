// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ack_rule.h"

#include <support/cases.h>
#include <support/cmocka.h>

#define US UINT64_C(1000)

static struct ack_rule rule;
static uint64_t now_ns;

static int begin(void **state) {
	(void)state;
	rule = (struct ack_rule){0};
	now_ns = 1000 * US;
	return 0;
}

// Run one round trip: a request arrives, the program sees it and answers. Returns true if the
// acknowledgement was held back.
static bool volley(uint64_t ns) {
	bool held;

	ack_rule_note_request(&rule, now_ns, true);
	ack_rule_note_sent_packet(&rule);
	now_ns += ns;
	held = ack_rule_is_held(&rule, now_ns);
	if (!held)
		ack_rule_note_ack(&rule);
	return held;
}

// Run that many round trips; return the number of acknowledgements sent.
static uint32_t play(uint32_t volleys, uint64_t ns) {
	uint32_t sent = 0;

	for (uint32_t n = 0; n < volleys; n++)
		sent += !volley(ns);
	return sent;
}

static void nothing_is_held_without_a_ping_pong(void **state) {
	(void)state;
	assert_false(ack_rule_is_held(&rule, now_ns));
	for (uint32_t n = 0; n < 1000; n++) { // a stream of requests without an answer of ours
		ack_rule_note_request(&rule, now_ns += US, true);
		assert_false(ack_rule_is_held(&rule, now_ns));
		ack_rule_note_ack(&rule);
	}
	for (uint32_t n = 0; n < 1000; n++) { // messages of several packets, or retransmissions
		ack_rule_note_request(&rule, now_ns += US, false);
		assert_false(ack_rule_is_held(&rule, now_ns));
		ack_rule_note_ack(&rule);
		ack_rule_note_sent_packet(&rule);
	}
}

static void a_ping_pong_has_one_for_several_requests(void **state) {
	uint32_t sent;

	(void)state;
	play(10, 7 * US);
	sent = play(600, 7 * US);
	assert_in_range(sent, 600 / ACK_HOLD_REQUESTS, 600 / 3 + 1);
	begin(NULL);
	play(10, 100);
	sent = play(1600, 100);
	assert_in_range(sent, 1600 / ACK_HOLD_REQUESTS - 1, 1600 / ACK_HOLD_REQUESTS + 1);
}

static void none_is_held_for_longer_than_two_times(void **state) {
	(void)state;
	play(100, 3 * US);
	// The caller receives requests, but answers none.
	ack_rule_note_ack(&rule);
	ack_rule_note_sent_packet(&rule);
	ack_rule_note_request(&rule, now_ns, true);
	for (uint64_t age_ns = 0; ack_rule_is_held(&rule, now_ns + age_ns); age_ns += 100)
		assert_true(age_ns < 2 * ACK_HOLD_NS);
	assert_false(ack_rule_is_held(&rule, now_ns + ACK_STALL_NS));
}

// ib_write_lat does this: it waits for its completion before it continues.
static void a_peer_that_waits_for_it_waits_rarely(void **state) {
	uint32_t stalls = 0;

	(void)state;
	for (uint32_t n = 0; n < 10000; n++) {
		ack_rule_note_request(&rule, now_ns, true);
		ack_rule_note_sent_packet(&rule);
		if (ack_rule_is_held(&rule, now_ns += US)) {
			stalls++;
			while (ack_rule_is_held(&rule, now_ns))
				now_ns += US;
		}
		ack_rule_note_ack(&rule);
		now_ns += 5 * US;
	}
	assert_in_range(stalls, 1, 50);
}

static void a_stall_of_our_own_is_no_setback(void **state) {
	(void)state;
	play(20, 7 * US);
	ack_rule_note_request(&rule, now_ns, true);
	assert_true(ack_rule_is_held(&rule, now_ns));
	assert_false(ack_rule_is_held(&rule, now_ns + ACK_STALL_NS));
	ack_rule_note_ack(&rule);
	ack_rule_note_sent_packet(&rule);
	assert_int_equal(rule.setbacks, 0);
	now_ns += 2 * ACK_STALL_NS;
	assert_true(volley(US));
}

static void setbacks_are_made_good(void **state) {
	(void)state;
	play(20, 7 * US);
	while (!volley(US))
		continue;
	assert_false(ack_rule_is_held(&rule, now_ns + ACK_STALL_NS));
	ack_rule_note_ack(&rule);
	assert_int_equal(rule.setbacks, 1);
	play(100, 7 * US);
	assert_int_equal(rule.setbacks, 0);
}

#define TEST(function) cmocka_unit_test_setup(function, begin)

UNIT_GROUP(soft_ack_rule) {
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_held_without_a_ping_pong),
		TEST(a_ping_pong_has_one_for_several_requests),
		TEST(none_is_held_for_longer_than_two_times),
		TEST(a_peer_that_waits_for_it_waits_rarely),
		TEST(a_stall_of_our_own_is_no_setback),
		TEST(setbacks_are_made_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
