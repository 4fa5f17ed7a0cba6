// SPDX-License-Identifier: BSD-3-Clause
// Which agents report observations, and when: once asked, until enough have, and repeatedly while
// bad.
#include "control/verdict/engine/verdict_net.h"

#include <errno.h>

// Report an observation with `bytes`: for a lossy one, the size that is lost; for a good one, the
// size without a good read yet.
static int see_loss(
	struct net *net,
	uint32_t observer,
	uint32_t subject,
	enum observation_kind kind,
	uint32_t bytes
) {
	struct observation observation =
		make_observation(observer, subject, kind, VERDICT_REACH_ANSWERS);

	observation.lost_bytes = bytes;
	return observation_exchange_update(
		net->agents[observer].exchange, net->now_ns, &observation
	);
}

static void what_two_see_is_held_by_all(void **state) {
	struct net *net = net_create();

	(void)state;
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_FABRIC_DOWN);
	see(net, 1, 5, OBSERVATION_GOOD);
	see(net, 2, 5, OBSERVATION_GOOD);
	pass(net, 7 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_HEALTHY);
	net_destroy(net);
}

static void good_paths_are_told_when_they_are_asked_for_only(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t n = 6; n < 9; n++)
		see(net, n, 5, OBSERVATION_GOOD);
	pass(net, 5 * SEC);
	assert_int_equal(told_by_all(net), 0);
	for (uint32_t n = 6; n < 9; n++)
		see(net, n, 5, OBSERVATION_GOOD);
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, 2 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_HEALTHY);
	for (uint32_t n = 6; n < 9; n++) {
		assert_int_equal(told(net, n), 1);
		assert_int_equal(
			observation_exchange_counters(net->agents[n].exchange)->answered, 1
		);
	}
	net_destroy(net);
}

// Two of its paths are bad because of a spine switch on both. Nobody accused the node itself, so
// its readers were not asked. For the two nodes that it cannot read, only its own report existed.
static void who_accuses_two_is_vouched_for_by_those_who_read_it(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t second = 0; second < 20; second++) {
		see(net, 0, 1, OBSERVATION_SILENT);
		see(net, 0, 2, OBSERVATION_SILENT);
		for (uint32_t n = 6; n < 9 && second % 10 == 0; n++) {
			see(net, n, 1, OBSERVATION_GOOD);
			see(net, n, 2, OBSERVATION_GOOD);
		}
		see(net, 10, 0, OBSERVATION_GOOD);
		pass(net, SEC);
		for (uint32_t n = 0; n < AGENTS; n++)
			assert_int_equal(held(net, n, 0), VERDICT_HEALTHY);
	}
	assert_in_range(told(net, 10), 1, 3);
	net_destroy(net);
}

static void one_alone_asks_nobody(void **state) {
	struct net *net = net_create();

	(void)state;
	see(net, 6, 5, OBSERVATION_GOOD);
	see(net, 1, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	assert_int_equal(told(net, 6), 0);
	net_destroy(net);
}

static void who_is_to_blame_itself_says_no_more_of_others(void **state) {
	struct net *net = net_create();
	uint64_t before;

	(void)state;
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	assert_int_equal(held(net, 5, 5), VERDICT_FABRIC_DOWN);
	before = told(net, 5);
	for (uint32_t subject = 6; subject < 12; subject++)
		see(net, 5, subject, OBSERVATION_SILENT);
	pass(net, 5 * SEC);
	assert_int_equal(told(net, 5), before);
	net_destroy(net);
}

// Visitors, and observers with a new path, read a lossy node as if it were healthy.
static void who_has_not_read_largely_is_not_asked_of_loss(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t n = 6; n < 12; n++)
		see_loss(net, n, 5, OBSERVATION_GOOD, 4096);
	see_loss(net, 1, 5, OBSERVATION_LOSSY, 4096);
	see_loss(net, 2, 5, OBSERVATION_LOSSY, 4096);
	pass(net, 2 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_PATH_LOSSY);
	for (uint32_t n = 6; n < 12; n++)
		assert_int_equal(told(net, n), 0);
	// Now large reads have succeeded.
	for (uint32_t n = 6; n < 12; n++)
		see_loss(net, n, 5, OBSERVATION_GOOD, 0);
	pass(net, 8 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_HEALTHY);
	net_destroy(net);
}

static void an_answer_that_is_too_old_waits_for_the_next_look(void **state) {
	struct net *net = net_create();

	(void)state;
	see(net, 6, 5, OBSERVATION_GOOD);
	pass(net, 3 * SEC);
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, 200 * MS);
	assert_int_equal(told(net, 6), 0);
	see(net, 6, 5, OBSERVATION_GOOD);
	pass(net, 200 * MS);
	assert_int_equal(told(net, 6), 1);
	net_destroy(net);
}

static void what_is_bad_is_repeated_and_what_clears_is_told_twice(void **state) {
	struct net *net = net_create();
	uint64_t before;

	(void)state;
	for (uint32_t second = 0; second < 35; second++) {
		see(net, 1, 5, OBSERVATION_SILENT);
		pass(net, SEC);
	}
	assert_int_equal(told(net, 1), 4);
	before = told(net, 1);
	for (uint32_t second = 0; second < 60; second++) {
		see(net, 1, 5, OBSERVATION_GOOD);
		pass(net, SEC);
	}
	assert_int_equal(told(net, 1), before + 2);
	net_destroy(net);
}

// Regression: a frozen node is not read, so observers dropped their paths to it after 30 s. Its own
// engine never got the withdrawal, and it called itself unknown for five minutes.
static void first_good_read_after_a_long_freeze_withdraws_the_report(void **state) {
	struct net *net = net_create();
	uint64_t before;

	(void)state;
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, 60 * SEC);
	assert_int_equal(held(net, 5, 5), VERDICT_UNKNOWN);
	see(net, 1, 5, OBSERVATION_GOOD);
	see(net, 2, 5, OBSERVATION_GOOD);
	pass(net, 6 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_HEALTHY);

	// Nobody holds the report for longer than that, so nobody needs a withdrawal.
	see(net, 1, 5, OBSERVATION_SILENT);
	pass(net, 400 * SEC);
	before = told(net, 1);
	see(net, 1, 5, OBSERVATION_GOOD);
	pass(net, SEC);
	assert_int_equal(told(net, 1), before);
	net_destroy(net);
}

// Regression: two halves of a cluster were told to forget each other and met again. Their old
// reports of the other half's silence were repeated, even to the subjects, and never withdrawn.
// All nodes were node-down or mgmt-net-down to all for twenty seconds.
static void what_was_told_of_one_that_was_forgotten_is_not_told_again(void **state) {
	struct net *net = net_create();
	uint64_t before;

	(void)state;
	for (uint32_t by = 1; by <= 3; by++)
		assert_int_equal(see_reach(net, by, 0, OBSERVATION_NO_PAIR, VERDICT_REACH_NONE), 0);
	pass(net, SEC);
	before = told_by_all(net);
	assert_int_equal(before, 3);
	for (uint32_t n = 0; n < AGENTS; n++) {
		struct agent *agent = &net->agents[n];
		struct verdict_peer_update back = {
			.id = id_of(0),
			.incarnation = ras_incarnation(1, 0),
			.state = RAS_ALIVE,
			.host = "",
			.leaf = "",
		};

		if (n == 0)
			continue; // it was cut off and does not know that it was forgotten
		verdict_peer_forget(agent->engine, net->now_ns, id_of(0));
		observation_exchange_forget(agent->exchange, id_of(0));
		assert_int_equal(verdict_peer_update(agent->engine, net->now_ns, &back), 0);
	}
	pass(net, 60 * SEC);
	assert_int_equal(told_by_all(net), before);
	for (uint32_t by = 1; by < AGENTS; by++)
		assert_int_equal(held(net, by, 0), VERDICT_HEALTHY);
	net_destroy(net);
}

static void what_enough_said_is_not_said_again(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t n = 0; n < AGENTS; n++) {
		if (n != 5)
			see(net, n, 5, OBSERVATION_SILENT);
	}
	pass(net, SEC);
	// Some agents drew the same random time.
	assert_in_range(told_by_all(net), OBSERVATION_ENOUGH, OBSERVATION_ENOUGH + 4);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_FABRIC_DOWN);
	net_destroy(net);
}

static void who_changes_its_mind_says_so_although_others_said_it(void **state) {
	struct net *net = net_create();

	(void)state;
	see(net, 9, 5, OBSERVATION_GOOD);
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, 300 * MS);
	assert_int_equal(told(net, 9), 1);
	pass(net, 2 * SEC);
	for (uint32_t n = 3; n < 7; n++)
		see(net, n, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	assert_int_equal(held(net, 0, 5), VERDICT_FABRIC_DOWN); // its good report was from before
	see(net, 9, 5, OBSERVATION_SILENT);
	pass(net, 300 * MS);
	assert_int_equal(told(net, 9), 2);
	net_destroy(net);
}

// A lossy report means that some reads succeed, so it contradicts what other observers reported
// since.
static void who_lost_some_says_that_it_stands_although_others_said_it(void **state) {
	static const enum observation_kind later[] = {OBSERVATION_STANDING, OBSERVATION_SILENT};

	(void)state;
	for (size_t row = 0; row < sizeof(later) / sizeof(later[0]); row++) {
		struct net *net = net_create();

		see(net, 9, 5, OBSERVATION_LOSSY);
		pass(net, 300 * MS);
		assert_int_equal(told(net, 9), 1);
		for (uint32_t n = 1; n < 7; n++) {
			if (n != 5)
				see(net, n, 5, later[row]);
		}
		pass(net, SEC);
		see(net, 9, 5, later[row]);
		pass(net, 300 * MS);
		assert_int_equal(told(net, 9), 2);
		net_destroy(net);
	}
}

static void a_pulse_that_outlives_its_agent_is_told_again_although_enough_told_it(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t second = 0; second < 5; second++) {
		for (uint32_t n = 0; n < AGENTS; n++) {
			if (n != 5)
				see_reach(net, n, 5, OBSERVATION_GOOD, VERDICT_REACH_NONE);
		}
		pass(net, SEC);
	}
	for (uint32_t n = 0; n < AGENTS; n++) {
		struct verdict_peer_update dead = {
			.id = id_of(5),
			.incarnation = ras_incarnation(1, 0),
			.state = RAS_DEAD,
			.cause = RAS_CAUSE_SILENT,
			.observer_count = 2,
			.observers = {id_of(1), id_of(2)},
			.host = "",
			.leaf = "",
		};

		assert_int_equal(verdict_peer_update(net->agents[n].engine, net->now_ns, &dead), 0);
		assert_int_equal(held(net, n, 5), VERDICT_MGMT_NET_DOWN);
	}
	net_destroy(net);
}

static void without_memory_it_says_so_and_goes_on(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint64_t n = 1; n < 8; n++) {
		int err;

		net->heap.fails_at = net->heap.asked + n;
		err = see(net, 1, 5, OBSERVATION_SILENT);
		assert_true(err == 0 || err == -ENOMEM);
	}
	net->heap.fails_at = 0;
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	assert_int_equal(held(net, 0, 5), VERDICT_FABRIC_DOWN);
	net_destroy(net);
}

UNIT_GROUP(verdict_exchange) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_two_see_is_held_by_all),
		cmocka_unit_test(good_paths_are_told_when_they_are_asked_for_only),
		cmocka_unit_test(who_accuses_two_is_vouched_for_by_those_who_read_it),
		cmocka_unit_test(one_alone_asks_nobody),
		cmocka_unit_test(who_is_to_blame_itself_says_no_more_of_others),
		cmocka_unit_test(who_has_not_read_largely_is_not_asked_of_loss),
		cmocka_unit_test(an_answer_that_is_too_old_waits_for_the_next_look),
		cmocka_unit_test(what_is_bad_is_repeated_and_what_clears_is_told_twice),
		cmocka_unit_test(first_good_read_after_a_long_freeze_withdraws_the_report),
		cmocka_unit_test(what_was_told_of_one_that_was_forgotten_is_not_told_again),
		cmocka_unit_test(what_enough_said_is_not_said_again),
		cmocka_unit_test(who_changes_its_mind_says_so_although_others_said_it),
		cmocka_unit_test(who_lost_some_says_that_it_stands_although_others_said_it),
		cmocka_unit_test(
			a_pulse_that_outlives_its_agent_is_told_again_although_enough_told_it
		),
		cmocka_unit_test(without_memory_it_says_so_and_goes_on),
	};

	return cmocka_run_group_tests_name("verdict_exchange", tests, NULL, NULL);
}
