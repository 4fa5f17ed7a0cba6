// SPDX-License-Identifier: BSD-3-Clause
// Backoff of pairs, the limit of living pairs, and the answers to waiters meanwhile.
#include "control/fabric/pairing/pairing_net.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <string.h>

#define A 0
#define B 1
#define DEMAND_MAX 64	 // the default
#define KEYS (7 * 4 * 4) // of one node of a crowd: peers, own devices, their devices

static struct pairing_key key; // from A to B

static int two_nodes(void **state) {
	(void)state;
	net_create(2, 4, 1);
	key = net_key(0, B, 0);
	return 0;
}

static int fini(void **state) {
	(void)state;
	net_destroy();
	return 0;
}

// Backoff

static void a_failed_request_is_served_its_error_until_the_back_off_is_over(void **state) {
	uint32_t first, second, third;

	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	first = net_request(A, key, SECOND);
	net_pass(20 * MS);
	assert_int_equal(net_answer(first)->failure.reason, PAIRING_DRIVER);
	net.nodes[A].fail[NET_CONNECT] = 0;
	second = net_request(A, key, SECOND);
	assert_int_equal(net_answer(second)->failure.reason, PAIRING_DRIVER);
	assert_string_equal(net_answer(second)->failure.text, "the card says no");
	assert_int_equal(net.nodes[A].asked[NET_CREATE], 1);
	net_pass(400 * MS);
	third = net_request(A, key, 2 * SECOND);
	net_pass(SECOND);
	assert_int_not_equal(net_answer(third)->generation, 0);
}

static void nobody_tries_for_who_does_not_ask(void **state) {
	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	net_request(A, key, SECOND);
	net_pass(50 * SECOND);
	assert_int_equal(net.nodes[A].asked[NET_CREATE], 1);
	assert_int_equal(net_view(A, key).state, PAIRING_FAILED);
	net_pass(120 * SECOND);
	assert_int_equal(net_view(A, key).begun_ns, 0); // forgotten
}

// Request again and again, each time as soon as a try is allowed.
static void fail_times(uint32_t tries) {
	while (net_view(A, key).tries < tries) {
		struct pairing_view view = net_view(A, key);

		if (view.state == PAIRING_FAILED && view.next_try_ns > net.now_ns)
			net_pass(view.next_try_ns - net.now_ns);
		if (view.waiters == 0)
			net_request(A, key, PAIRING_NEVER);
		assert_true(net_step(PAIRING_NEVER));
	}
}

static void the_back_off_doubles_from_a_quarter_of_a_second_to_thirty(void **state) {
	static const uint64_t least_ms[] = {250, 500, 1000, 2000, 4000, 8000, 16000, 24000, 24000};
	struct pairing_view view;

	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	for (uint32_t n = 0; n < COUNT_OF(least_ms); n++) {
		fail_times(n + 1);
		view = net_view(A, key);
		assert_in_range(
			view.next_try_ns - net.now_ns, least_ms[n] * MS, least_ms[n] * MS * 5 / 4
		);
	}
}

static void a_wanted_pair_is_tried_each_second_and_no_more(void **state) {
	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	net_want(A, 0, B, 0);
	net_pass(60 * SECOND);
	assert_in_range(net.nodes[A].asked[NET_CREATE], 55, 61);
	assert_true(net.nodes[A].gap_ns[B] >= SECOND);
	net.nodes[A].fail[NET_CONNECT] = 0;
	assert_in_range(net_settle(), 0, SECOND + 20 * MS);
}

static void all_pairs_with_one_peer_share_its_second_while_it_fails(void **state) {
	(void)state;
	for (uint32_t device = 0; device < 4; device++)
		net_want(A, device, B, device);
	net_settle();
	net_pass(2 * SECOND);
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	for (uint32_t device = 0; device < 4; device++)
		net_break(A, net_key(device, B, device));
	net.nodes[A].gap_ns[B] = PAIRING_NEVER;
	net_pass(60 * SECOND);
	assert_true(net.nodes[A].gap_ns[B] >= SECOND);
	assert_in_range(net.nodes[A].asked[NET_CREATE], 4 + 55, 4 + 61);
	// The first success ends the backoff of the other keys.
	net.nodes[A].fail[NET_CONNECT] = 0;
	assert_in_range(net_settle(), 0, 2 * SECOND);
}

// Silences of different lengths, so that a different step is in progress at the end of each.
static void a_pair_is_ready_within_a_second_after_silence_of_any_length(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 200; n++) {
		net_destroy();
		net_create(2, 1, n);
		net_want_all();
		net_settle();
		net_pass(2 * SECOND);
		net.cut[A][B] = true;
		net.cut[B][A] = true;
		net_break(A, key);
		net_break(B, net_key(0, A, 0));
		net_pass(500 * MS + net_random() % (30 * SECOND));
		assert_false(net_all_ready());
		net.cut[A][B] = false;
		net.cut[B][A] = false;
		assert_in_range(net_settle(), 0, SECOND);
	}
}

static void a_pair_that_breaks_again_and_again_is_not_made_more_than_once_a_second(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	for (uint32_t n = 0; n < 20; n++) {
		net_settle();
		net_break(A, key);
	}
	assert_true(net.nodes[A].gap_ns[B] >= SECOND);
	assert_true(net_view(A, key).tries >= 19);
}

static void a_pair_that_was_proved_counts_its_tries_anew(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	for (uint32_t n = 0; n < 3; n++) {
		net_settle();
		net_break(A, key);
	}
	assert_int_equal(net_view(A, key).tries, 3);
	net_settle();
	pairing_report_success(net.nodes[A].pairing, net.now_ns, net_view(A, key).generation);
	net_break(A, key);
	assert_int_equal(net_view(A, key).tries, 1);
	net_settle();
	net_pass(11 * SECOND);
	net_break(A, key);
	assert_int_equal(net_view(A, key).tries, 1);
}

// News about peers

static void to_tell_nothing(void) {
}

static void of_the_port(void) {
	pairing_device_state(net.nodes[A].pairing, net.now_ns, 0, PAIRING_DEVICE_ACTIVE, NULL);
}

static void of_the_peer(void) {
	net_tell(A, B, PAIRING_PEER_IS_ALIVE, 1);
}

static void of_another_peer(void) {
	net_tell(A, 2, PAIRING_PEER_IS_ALIVE, 1);
}

static void of_another_port(void) {
	pairing_device_state(net.nodes[A].pairing, net.now_ns, 1, PAIRING_DEVICE_ACTIVE, NULL);
}

static const struct {
	const char *what;
	void (*tell)(void);
	bool cuts_short;
} news[] = {
	{"nothing", to_tell_nothing, false},
	{"its own port is active", of_the_port, true},
	{"the peer is back", of_the_peer, true},
	{"another peer is back", of_another_peer, false},
	{"another port is active", of_another_port, false},
};

static void news_of_the_port_or_the_peer_cuts_the_back_off_short(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(news); n++) {
		uint32_t waiter;

		print_message("# %s\n", news[n].what);
		net_destroy();
		net_create(3, 2, n);
		net.nodes[A].fail[NET_CONNECT] = -EIO;
		fail_times(6);
		net_pass(2 * SECOND);
		net.nodes[A].fail[NET_CONNECT] = 0;
		assert_true(net_view(A, key).next_try_ns > net.now_ns + SECOND);
		news[n].tell();
		waiter = net_request(A, key, SECOND);
		net_pass(20 * MS);
		assert_int_equal(net_answer(waiter)->generation != 0, news[n].cuts_short);
	}
}

static void news_of_the_peer_sets_all_its_pairs_free(void **state) {
	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	for (uint32_t device = 0; device < 4; device++)
		net_want(A, device, B, device);
	net_pass(20 * SECOND);
	net.nodes[A].fail[NET_CONNECT] = 0;
	net_tell(A, B, PAIRING_PEER_IS_ALIVE, 1);
	net_pass(20 * MS);
	assert_true(net_counters(A)->ready >= 3); // one attempt had begun within the last second
	assert_in_range(net_settle(), 0, SECOND);
}

static void ports_that_flap_do_not_make_more_handshakes_than_one_a_second(void **state) {
	(void)state;
	net.nodes[A].fail[NET_CONNECT] = -EIO;
	net_want(A, 0, B, 0);
	for (uint32_t n = 0; n < 1000; n++) {
		net_pass(10 * MS);
		pairing_device_state(
			net.nodes[A].pairing, net.now_ns, 0,
			n & 1 ? PAIRING_DEVICE_ACTIVE : PAIRING_DEVICE_DOWN, "cable"
		);
	}
	assert_in_range(net.nodes[A].asked[NET_CREATE], 9, 11);
	assert_true(net.nodes[A].gap_ns[B] >= SECOND);
}

static void a_peer_that_died_takes_its_pairs_with_it_and_brings_them_back(void **state) {
	uint32_t waiter;
	struct pairing_view view;

	(void)state;
	net_want(A, 0, B, 0);
	net_settle();
	net_pass(2 * SECOND);
	waiter = net_request(A, net_key(1, B, 1), PAIRING_NEVER);
	net_crash(B, false);
	net_tell(A, B, PAIRING_PEER_HAS_DIED, 1);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_PEER_DEAD);
	view = net_view(A, key);
	assert_int_equal(view.state, PAIRING_DRAINING);
	assert_int_equal(view.failure.reason, PAIRING_PEER_DEAD);
	assert_int_equal(view.failure.err, -EHOSTDOWN);
	waiter = net_request(A, net_key(1, B, 1), PAIRING_NEVER);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_PEER_DEAD);
	net_pass(30 * SECOND);
	assert_int_equal(net_view(A, key).state, PAIRING_ABSENT);
	assert_int_equal(net.nodes[A].pair_count, 0);
	assert_int_equal(net.nodes[A].asked[NET_CREATE], 2);
	net_start(B, true);
	assert_true(net_settle() < 100 * MS);
}

static void a_silent_peer_keeps_the_pair_that_works_and_gets_no_other(void **state) {
	uint32_t waiter;

	(void)state;
	net_want(A, 0, B, 0);
	net_settle();
	waiter = net_request(A, net_key(1, B, 1), PAIRING_NEVER);
	net_tell(A, B, PAIRING_PEER_IS_SILENT, 1);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_PEER_DEAD);
	net_pass(60 * SECOND);
	assert_true(net_is_ready(A, B));
	waiter = net_request(A, net_key(1, B, 1), PAIRING_NEVER);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_PEER_DEAD);
	// A newer observation of the peer weighs more.
	net_tell(A, B, PAIRING_PEER_HAS_DIED, 1);
	assert_int_equal(net_view(A, key).state, PAIRING_DRAINING);
}

static void news_of_an_older_start_of_the_peer_is_no_news(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	net_crash(B, false);
	net_start(B, false);
	net_tell(A, B, PAIRING_PEER_IS_ALIVE, 2);
	net_settle();
	pairing_peer(net.nodes[A].pairing, net.now_ns, net_id(B), PAIRING_PEER_HAS_DIED, 1);
	assert_true(net_is_ready(A, B));
}

// Rates

static void storms_of_handshakes_over_all_peers_are_held_to_the_rate(void **state) {
	(void)state;
	net_destroy();
	net = (struct net){0};
	net_create(8, 4, 1);
	for (uint32_t n = 0; n < 56; n++)
		net_want(0, n % 4, 1 + n % 7, n / 14);
	net_settle();
	net_pass(20 * SECOND);
	assert_int_equal(net_counters(0)->deferred, 0);
	// The same with a rate below the demand.
	net_crash(0, false);
	net.config.rate = 20;
	net_start(0, true);
	net_pass(100 * MS);
	assert_in_range(net_counters(0)->begun, 20, 24);
	net_pass(SECOND);
	assert_in_range(net_counters(0)->begun, 40, 44);
	assert_in_range(net_counters(0)->deferred, 30, 56);
	assert_in_range(net_settle(), 0, 2 * SECOND);
}

// Limited number of pairs

static void make_crowd(uint32_t demand_max) {
	net_destroy();
	net_create(8, 4, 1);
	net_crash(0, false);
	net.config.demand_max = demand_max;
	net_start(0, true);
	net_pass(10 * MS);
}

static void the_pair_unused_for_longest_gives_way_to_another(void **state) {
	uint32_t waiter;

	(void)state;
	make_crowd(4);
	for (uint32_t n = 1; n <= 4; n++) {
		net_request(0, net_key(0, n, 0), SECOND);
		net_pass(100 * MS);
	}
	net_pass(SECOND);
	pairing_report_success(
		net.nodes[0].pairing, net.now_ns, net_view(0, net_key(0, 1, 0)).generation
	);
	net_pass(100 * MS);
	waiter = net_request(0, net_key(0, 5, 0), SECOND);
	net_pass(100 * MS);
	assert_int_not_equal(net_answer(waiter)->generation, 0);
	assert_int_equal(net_counters(0)->evicted, 1);
	assert_int_equal(net_counters(0)->ready, 4);
	assert_int_equal(net_view(0, net_key(0, 2, 0)).failure.reason, PAIRING_IDLE);
	assert_int_equal(net_view(0, net_key(0, 2, 0)).state, PAIRING_ABSENT);
	assert_int_equal(net_view(2, net_key(0, 0, 0)).state, PAIRING_ABSENT);
	assert_true(net_is_ready(0, 1));
}

// Request all keys in turn three times, as the rotation of probes does.
static void so_many_pairs_and_no_more_live_however_many_are_asked_for_in_turn(void **state) {
	uint32_t most = 0;

	(void)state;
	make_crowd(0); // the default limit
	for (uint32_t n = 0; n < 3 * KEYS; n++) {
		uint32_t own = n % 4, theirs = n / 4 % 4, peer = 1 + n / 16 % 7;
		uint32_t waiter = net_request(0, net_key(own, peer, theirs), 10 * SECOND);

		net_pass(100 * MS);
		assert_int_not_equal(net_answer(waiter)->generation, 0);
		assert_true(net_counters(0)->ready <= DEMAND_MAX);
		if (net.nodes[0].pair_count > most)
			most = net.nodes[0].pair_count;
	}
	// The new pair begins before the evicted one is gone.
	assert_in_range(most, DEMAND_MAX, DEMAND_MAX + 1);
	assert_true(net_counters(0)->evicted >= 3 * KEYS - DEMAND_MAX);
}

static void no_room_is_said_and_not_remembered(void **state) {
	uint32_t waiter;

	(void)state;
	make_crowd(2);
	for (uint32_t n = 1; n <= 2; n++)
		net_request(0, net_key(0, n, 0), SECOND);
	net_pass(100 * MS); // too young to be evicted
	waiter = net_request(0, net_key(0, 3, 0), SECOND);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_NO_ROOM);
	assert_int_equal(net_view(0, net_key(0, 3, 0)).state, PAIRING_ABSENT);
	net_pass(SECOND);
	waiter = net_request(0, net_key(0, 3, 0), SECOND);
	net_pass(100 * MS);
	assert_int_not_equal(net_answer(waiter)->generation, 0);
}

static void no_room_at_the_peer_reaches_the_asker(void **state) {
	uint32_t waiter;

	(void)state;
	make_crowd(2);
	for (uint32_t n = 1; n <= 2; n++)
		net_request(0, net_key(0, n, 0), SECOND);
	net_pass(100 * MS);
	waiter = net_request(3, net_key(0, 0, 0), SECOND);
	net_pass(100 * MS);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_NO_ROOM);
	assert_true(net_answer(waiter)->failure.by_peer);
	assert_int_equal(net_view(3, net_key(0, 0, 0)).state, PAIRING_FAILED);
}

static void wanted_pairs_have_room_and_stay_here_and_there(void **state) {
	(void)state;
	make_crowd(1);
	for (uint32_t n = 1; n < 8; n++)
		net_want(0, 0, n, 0);
	net_settle();
	net_pass(1300 * SECOND);
	assert_true(net_all_ready());
	assert_int_equal(net_counters(0)->evicted, 0);
	assert_int_equal(net_counters(3)->evicted, 0);
}

static void a_pair_that_nobody_keeps_or_uses_is_closed(void **state) {
	(void)state;
	net_request(A, key, SECOND);
	net_pass(599 * SECOND);
	assert_true(net_is_ready(A, B));
	net_pass(2 * SECOND);
	assert_false(net_is_ready(A, B));
	assert_false(net_is_ready(B, A));
	net_pass(70 * SECOND);
	assert_int_equal(net_view(A, key).begun_ns, 0); // the key is forgotten
}

static void one_that_is_not_wanted_any_more_is_closed_as_others_are(void **state) {
	(void)state;
	net_want(A, 0, B, 0);
	net_settle();
	net_pass(SECOND);
	assert_true(net_view(B, net_key(0, A, 0)).guest);
	pairing_set_wanted(net.nodes[A].pairing, net.now_ns, &key, false);
	net_pass(SECOND);
	assert_false(net_view(B, net_key(0, A, 0)).guest);
	net_pass(601 * SECOND);
	assert_false(net_is_ready(A, B));
	net.nodes[A].wanted_count = 0;
}

// Waiters

static void a_waiter_is_told_when_its_time_is_over_and_the_handshake_goes_on(void **state) {
	uint32_t waiter;

	(void)state;
	net.delay_min_ns = net.delay_max_ns = 100 * MS;
	waiter = net_request(A, key, 50 * MS);
	net_pass(51 * MS);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_DEADLINE);
	net_pass(SECOND);
	assert_true(net_is_ready(A, B));
}

static void a_request_whose_time_is_over_already_begins_nothing(void **state) {
	uint32_t waiter = net_request(A, key, 0);

	(void)state;
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_DEADLINE);
	net_pass(SECOND);
	assert_int_equal(net.nodes[A].asked[NET_CREATE], 0);
}

static void a_waiter_can_be_cancelled_once(void **state) {
	struct net_waiter *waiter = &net.waiters[net_request(A, key, PAIRING_NEVER)];

	(void)state;
	assert_int_equal(pairing_cancel(net.nodes[A].pairing, &waiter->waiter), 0);
	assert_int_equal(waiter->answer.failure.reason, PAIRING_CANCELLED);
	assert_int_equal(pairing_cancel(net.nodes[A].pairing, &waiter->waiter), -ENOENT);
	net_pass(SECOND);
	assert_int_equal(waiter->answers, 1);
}

static void who_waits_when_the_agent_ends_is_told_so(void **state) {
	uint32_t waiter = net_request(A, key, PAIRING_NEVER), late;

	(void)state;
	pairing_stop(net.nodes[A].pairing, net.now_ns);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_SHUTDOWN);
	late = net_request(A, key, PAIRING_NEVER);
	assert_int_equal(net_answer(late)->failure.reason, PAIRING_SHUTDOWN);
	net_pass(SECOND);
	assert_true(pairing_is_empty(net.nodes[A].pairing));
}

static void unknown_peers_and_devices_are_told_at_once(void **state) {
	struct pairing_key nobody = net_key(0, 5, 0), nothing = net_key(9, B, 0);

	(void)state;
	assert_int_equal(
		net_answer(net_request(A, nobody, SECOND))->failure.reason, PAIRING_UNREACHABLE
	);
	assert_int_equal(
		net_answer(net_request(A, nothing, SECOND))->failure.reason, PAIRING_NO_DEVICE
	);
	nothing = net_key(0, B, 0);
	nothing.peer_device[0] = '\0';
	assert_int_equal(
		pairing_set_wanted(net.nodes[A].pairing, net.now_ns, &nothing, true), -EINVAL
	);
}

UNIT_GROUP(pairing_pace) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, two_nodes, fini)
	const struct CMUnitTest tests[] = {
		TEST(a_failed_request_is_served_its_error_until_the_back_off_is_over),
		TEST(nobody_tries_for_who_does_not_ask),
		TEST(the_back_off_doubles_from_a_quarter_of_a_second_to_thirty),
		TEST(a_wanted_pair_is_tried_each_second_and_no_more),
		TEST(all_pairs_with_one_peer_share_its_second_while_it_fails),
		TEST(a_pair_is_ready_within_a_second_after_silence_of_any_length),
		TEST(a_pair_that_breaks_again_and_again_is_not_made_more_than_once_a_second),
		TEST(a_pair_that_was_proved_counts_its_tries_anew),
		TEST(news_of_the_port_or_the_peer_cuts_the_back_off_short),
		TEST(news_of_the_peer_sets_all_its_pairs_free),
		TEST(ports_that_flap_do_not_make_more_handshakes_than_one_a_second),
		TEST(a_peer_that_died_takes_its_pairs_with_it_and_brings_them_back),
		TEST(a_silent_peer_keeps_the_pair_that_works_and_gets_no_other),
		TEST(news_of_an_older_start_of_the_peer_is_no_news),
		TEST(storms_of_handshakes_over_all_peers_are_held_to_the_rate),
		TEST(the_pair_unused_for_longest_gives_way_to_another),
		TEST(so_many_pairs_and_no_more_live_however_many_are_asked_for_in_turn),
		TEST(no_room_is_said_and_not_remembered),
		TEST(no_room_at_the_peer_reaches_the_asker),
		TEST(wanted_pairs_have_room_and_stay_here_and_there),
		TEST(a_pair_that_nobody_keeps_or_uses_is_closed),
		TEST(one_that_is_not_wanted_any_more_is_closed_as_others_are),
		TEST(a_waiter_is_told_when_its_time_is_over_and_the_handshake_goes_on),
		TEST(a_request_whose_time_is_over_already_begins_nothing),
		TEST(a_waiter_can_be_cancelled_once),
		TEST(who_waits_when_the_agent_ends_is_told_so),
		TEST(unknown_peers_and_devices_are_told_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
