// SPDX-License-Identifier: BSD-3-Clause
// Drivers and lanes that reject or fail calls, or answer late, out of order, or never.
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

// Setting up

enum where {
	REFUSED, // the operation itself fails
	FAILED,	 // its answer reports an error
};

static const struct {
	const char *what;
	enum net_call call;
	enum where where;
	int err;
	enum pairing_reason reason;
	bool remembered;
} setups[] = {
	{"no memory to ask", NET_CREATE, REFUSED, -ENOMEM, PAIRING_NO_MEMORY, false},
	{"a keeper that is full", NET_CREATE, REFUSED, -EAGAIN, PAIRING_NO_ROOM, false},
	{"no memory to make it", NET_CREATE, FAILED, -ENOMEM, PAIRING_NO_MEMORY, false},
	{"no place in the lane", NET_CREATE, FAILED, -ENOSPC, PAIRING_NO_ROOM, false},
	{"a driver that says no", NET_CREATE, FAILED, -EPERM, PAIRING_DRIVER, true},
	{"no memory to ask to connect", NET_CONNECT, REFUSED, -ENOMEM, PAIRING_NO_MEMORY, false},
	{"no memory to connect", NET_CONNECT, FAILED, -ENOMEM, PAIRING_NO_MEMORY, false},
	{"a driver that cannot connect", NET_CONNECT, FAILED, -ETIMEDOUT, PAIRING_DRIVER, true},
	{"values it does not like", NET_CONNECT, FAILED, -EBADMSG, PAIRING_MALFORMED, true},
	{"limited members", NET_CONNECT, FAILED, -EKEYREJECTED, PAIRING_LIMITED_MEMBERS, true},
	{"another fabric", NET_CONNECT, FAILED, -EPROTONOSUPPORT, PAIRING_NO_COMMON_FABRIC, true},
};

static void own_lack_of_memory_or_room_is_told_and_not_remembered(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(setups); n++) {
		uint32_t waiter;

		print_message("# %s\n", setups[n].what);
		net_destroy();
		net_create(2, 2, n);
		if (setups[n].where == REFUSED)
			net.nodes[A].refuse[setups[n].call] = setups[n].err;
		else
			net.nodes[A].fail[setups[n].call] = setups[n].err;
		waiter = net_request(A, key, SECOND);
		net_pass(100 * MS);
		assert_int_equal(net_answer(waiter)->failure.reason, setups[n].reason);
		assert_int_equal(net_answer(waiter)->failure.err, setups[n].err);
		assert_false(net_answer(waiter)->failure.by_peer);
		assert_int_not_equal(net_answer(waiter)->failure.text[0], '\0');
		assert_int_equal(net_view(A, key).state == PAIRING_FAILED, setups[n].remembered);
		assert_int_equal(net.nodes[A].pair_count, 0);

		memset(net.nodes[A].refuse, 0, sizeof(net.nodes[A].refuse));
		memset(net.nodes[A].fail, 0, sizeof(net.nodes[A].fail));
		waiter = net_request(A, key, 2 * SECOND);
		net_pass(1100 * MS);
		assert_int_equal(net_answer(waiter)->generation == 0, setups[n].remembered);
	}
}

static void after_own_lack_of_memory_the_next_request_need_not_wait(void **state) {
	uint32_t waiter;

	(void)state;
	net.nodes[A].fail[NET_CREATE] = -ENOMEM;
	net_request(A, key, SECOND);
	net_pass(10 * MS);
	net.nodes[A].fail[NET_CREATE] = 0;
	waiter = net_request(A, key, SECOND);
	net_pass(10 * MS);
	assert_int_not_equal(net_answer(waiter)->generation, 0);
}

static void the_text_of_a_driver_that_refuses_names_device_and_error(void **state) {
	uint32_t waiter;

	(void)state;
	net.nodes[A].fail[NET_CREATE] = -EPERM;
	waiter = net_request(A, key, SECOND);
	net_pass(100 * MS);
	assert_string_equal(
		net_answer(waiter)->failure.text, "rdma0 cannot create a queue pair: EPERM"
	);
}

static void a_lane_that_does_not_take_a_pair_fails_it(void **state) {
	uint32_t waiter;

	(void)state;
	net.nodes[A].hand_over_err = -EAGAIN;
	waiter = net_request(A, key, SECOND);
	net_pass(100 * MS);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_NO_ROOM);
	assert_int_equal(net.nodes[A].pair_count, 0);
	assert_int_equal(net.nodes[A].asked[NET_DRAIN], 0);
}

// Taking down

static void a_pair_that_fails_is_drained_before_it_is_destroyed(void **state) {
	(void)state;
	net_request(A, key, SECOND);
	net_pass(SECOND);
	net.nodes[A].hold[NET_DRAIN] = true;
	net_break(A, key);
	net_pass(20 * SECOND);
	assert_int_equal(net_view(A, key).state, PAIRING_DRAINING);
	assert_int_equal(net.nodes[A].asked[NET_DESTROY], 0);
	net_release(A);
	net_pass(10 * MS);
	assert_int_equal(net.nodes[A].asked[NET_DESTROY], 1);
	assert_int_equal(net_view(A, key).state, PAIRING_FAILED);
	assert_string_equal(net_view(A, key).failure.text, "RETRY_EXC_ERR of a read");
}

static void a_better_known_cause_replaces_the_first_words(void **state) {
	uint32_t generation;

	(void)state;
	net_request(A, key, SECOND);
	net_pass(SECOND);
	generation = net_view(A, key).generation;
	pairing_broken(net.nodes[A].pairing, net.now_ns, generation, -EIO, "WR_FLUSH_ERR");
	net.nodes[A].pairs[0].in_lane = false;
	pairing_drained(net.nodes[A].pairing, net.now_ns, generation, "REM_ACCESS_ERR of a read");
	net_pass(10 * MS);
	assert_string_equal(net_view(A, key).failure.text, "REM_ACCESS_ERR of a read");
	assert_int_equal(net_view(A, key).state, PAIRING_FAILED);
}

static void what_lane_or_keeper_refuse_is_asked_again(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	net_settle();
	net_pass(2 * SECOND);
	net.nodes[A].refuse[NET_DRAIN] = -EAGAIN;
	net.nodes[A].refuse[NET_DESTROY] = -EAGAIN;
	net_tell(A, B, PAIRING_PEER_HAS_DIED, 1);
	net_pass(350 * MS);
	assert_int_equal(net.nodes[A].asked[NET_DRAIN], 0);
	net.nodes[A].refuse[NET_DRAIN] = 0;
	net_pass(350 * MS);
	assert_int_equal(net.nodes[A].asked[NET_DRAIN], 1);
	assert_int_equal(net.nodes[A].pair_count, 1);
	net.nodes[A].refuse[NET_DESTROY] = 0;
	net_pass(350 * MS);
	assert_int_equal(net.nodes[A].pair_count, 0);
}

static void a_queue_pair_that_cannot_be_destroyed_is_kept_and_tried_again(void **state) {
	(void)state;
	net_request(A, key, SECOND);
	net_pass(SECOND);
	net.nodes[A].fail[NET_DESTROY] = -EBUSY;
	net_break(A, key);
	net_pass(10 * SECOND);
	assert_in_range(net.nodes[A].asked[NET_DESTROY], 9, 11);
	assert_int_equal(net_view(A, key).state, PAIRING_DRAINING);
	net.nodes[A].fail[NET_DESTROY] = 0;
	net_pass(2 * SECOND);
	assert_int_equal(net.nodes[A].pair_count, 0);
}

// Hanging calls

static void a_driver_that_hangs_is_named_and_nothing_more_is_asked_of_it(void **state) {
	static const struct {
		enum net_call call;
		const char *text;
	} hangs[] = {
		{NET_CREATE,
		 "a call into the driver of rdma0 does not return: creating a queue pair"},
		{NET_CONNECT,
		 "a call into the driver of rdma0 does not return: connecting a queue pair"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(hangs); n++) {
		uint32_t waiter, other;

		net_destroy();
		net_create(2, 2, n);
		net.nodes[A].hold[hangs[n].call] = true;
		net_want(A, 0, B, 0);
		waiter = net_request(A, key, PAIRING_NEVER);
		net_pass(60 * SECOND);
		assert_int_not_equal(net_answer(waiter)->failure.reason, PAIRING_REASON_NONE);
		assert_int_equal(net_view(A, key).state, PAIRING_FAILED);
		assert_true(net_view(A, key).stuck);
		assert_int_equal(net_view(A, key).failure.reason, PAIRING_DEVICE_STUCK);
		assert_string_equal(net_view(A, key).failure.text, hangs[n].text);
		assert_int_equal(net.nodes[A].asked[NET_CREATE], 1);
		assert_int_equal(net_counters(A)->stuck, 1);
		other = net_request(A, net_key(0, B, 1), PAIRING_NEVER);
		assert_int_equal(net_answer(other)->failure.reason, PAIRING_DEVICE_STUCK);
		net_release(A);
		assert_true(net_settle() < SECOND);
		assert_false(net_view(A, key).stuck);
		assert_int_equal(net.nodes[A].pair_count, 1);
	}
}

static void other_devices_go_on_while_one_hangs(void **state) {
	uint32_t waiter;

	(void)state;
	net.nodes[A].hold[NET_CREATE] = true;
	net_request(A, key, PAIRING_NEVER);
	net_pass(10 * SECOND);
	net.nodes[A].hold[NET_CREATE] = false;
	waiter = net_request(A, net_key(1, B, 1), SECOND);
	net_pass(SECOND);
	assert_int_not_equal(net_answer(waiter)->generation, 0);
}

static void a_peer_is_told_that_the_device_hangs(void **state) {
	uint32_t waiter;

	(void)state;
	net.nodes[B].hold[NET_CREATE] = true;
	net_request(B, net_key(0, A, 0), PAIRING_NEVER);
	net_pass(10 * SECOND);
	waiter = net_request(A, key, SECOND);
	net_pass(SECOND);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_DEVICE_STUCK);
	assert_true(net_answer(waiter)->failure.by_peer);
}

static void a_device_that_never_flushes_is_stuck_after_its_limit(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	net_settle();
	net_pass(2 * SECOND);
	net.nodes[A].hold[NET_DRAIN] = true;
	net_break(A, key);
	net_pass(29 * SECOND);
	assert_int_equal(net_view(A, key).state, PAIRING_DRAINING);
	net_pass(2 * SECOND);
	assert_int_equal(net_view(A, key).state, PAIRING_FAILED);
	assert_int_equal(net_view(A, key).failure.reason, PAIRING_DEVICE_STUCK);
	net_release(A);
	assert_true(net_settle() < 2 * SECOND);
}

// Late answers

static void answers_that_come_after_the_end_touch_nothing_newer(void **state) {
	uint32_t generation;

	(void)state;
	net.nodes[A].hold[NET_CREATE] = true;
	net_request(A, key, PAIRING_NEVER);
	net_pass(SECOND);
	net_tell(A, B, PAIRING_PEER_HAS_DIED, 1);
	assert_int_equal(net_view(A, key).state, PAIRING_DRAINING);
	net_tell(A, B, PAIRING_PEER_IS_ALIVE, 1);
	net_release(A);
	net_pass(5 * MS);
	assert_int_equal(net.nodes[A].pair_count, 0); // created and destroyed at once
	net_request(A, key, PAIRING_NEVER);
	net_pass(2 * SECOND);
	generation = net_view(A, key).generation;
	assert_true(net_is_ready(A, B));
	pairing_created(net.nodes[A].pairing, net.now_ns, generation - 1, -EIO, NULL);
	pairing_created(net.nodes[A].pairing, net.now_ns, generation, -EIO, NULL);
	pairing_connected(net.nodes[A].pairing, net.now_ns, generation, -EIO, NULL);
	pairing_drained(net.nodes[A].pairing, net.now_ns, generation, NULL);
	pairing_destroyed(net.nodes[A].pairing, net.now_ns, generation, 0);
	pairing_broken(net.nodes[A].pairing, net.now_ns, generation - 1, -EIO, NULL);
	assert_int_equal(net_counters(A)->late, 6);
	assert_int_equal(net_view(A, key).generation, generation);
	assert_true(net_is_ready(A, B));
}

static void a_lost_device_takes_its_pairs_and_no_others(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	net_want(A, 1, B, 1);
	net_settle();
	net_pass(2 * SECOND);
	pairing_device_state(
		net.nodes[A].pairing, net.now_ns, 0, PAIRING_DEVICE_LOST, "DEVICE_FATAL"
	);
	net_pass(10 * SECOND);
	assert_int_equal(net_view(A, key).failure.reason, PAIRING_DEVICE_GONE);
	assert_string_equal(net_view(A, key).failure.text, "rdma0: DEVICE_FATAL");
	assert_int_equal(net_view(A, net_key(1, B, 1)).state, PAIRING_READY);
	assert_string_equal(net_view(B, net_key(0, A, 0)).failure.text, "rdma0: DEVICE_FATAL");
	pairing_device_state(net.nodes[A].pairing, net.now_ns, 0, PAIRING_DEVICE_ACTIVE, NULL);
	assert_true(net_settle() < 10 * MS);
}

static void a_port_that_is_down_keeps_ready_pairs_and_begins_none(void **state) {
	uint32_t waiter;

	(void)state;
	net_request(A, key, SECOND);
	net_pass(SECOND);
	pairing_device_state(
		net.nodes[A].pairing, net.now_ns, 0, PAIRING_DEVICE_DOWN, "port 1 is down"
	);
	assert_true(net_is_ready(A, B));
	waiter = net_request(A, net_key(0, B, 1), SECOND);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_NO_DEVICE);
	assert_string_equal(net_answer(waiter)->failure.text, "rdma0: port 1 is down");
	net_want(A, 0, B, 1);
	net_pass(10 * SECOND);
	assert_int_equal(net_view(A, net_key(0, B, 1)).state, PAIRING_ABSENT);
	pairing_device_state(net.nodes[A].pairing, net.now_ns, 0, PAIRING_DEVICE_ACTIVE, NULL);
	assert_true(net_settle() < 10 * MS);
}

static void a_thousand_pairs_opened_and_closed_leave_nothing(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		net_request(A, key, 2 * SECOND);
		net_pass(1200 * MS);
		assert_true(net_is_ready(A, B));
		net_break(n & 1 ? A : B, n & 1 ? key : net_key(0, A, 0));
		pairing_report_success(
			net.nodes[A].pairing, net.now_ns, net_view(A, key).generation
		);
		net_pass(30 * SECOND);
		assert_int_equal(net.nodes[A].pair_count + net.nodes[B].pair_count, 0);
	}
}

UNIT_GROUP(pairing_driver) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, two_nodes, fini)
	const struct CMUnitTest tests[] = {
		TEST(own_lack_of_memory_or_room_is_told_and_not_remembered),
		TEST(after_own_lack_of_memory_the_next_request_need_not_wait),
		TEST(the_text_of_a_driver_that_refuses_names_device_and_error),
		TEST(a_lane_that_does_not_take_a_pair_fails_it),
		TEST(a_pair_that_fails_is_drained_before_it_is_destroyed),
		TEST(a_better_known_cause_replaces_the_first_words),
		TEST(what_lane_or_keeper_refuse_is_asked_again),
		TEST(a_queue_pair_that_cannot_be_destroyed_is_kept_and_tried_again),
		TEST(a_driver_that_hangs_is_named_and_nothing_more_is_asked_of_it),
		TEST(other_devices_go_on_while_one_hangs),
		TEST(a_peer_is_told_that_the_device_hangs),
		TEST(a_device_that_never_flushes_is_stuck_after_its_limit),
		TEST(answers_that_come_after_the_end_touch_nothing_newer),
		TEST(a_lost_device_takes_its_pairs_and_no_others),
		TEST(a_port_that_is_down_keeps_ready_pairs_and_begins_none),
		TEST(a_thousand_pairs_opened_and_closed_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
