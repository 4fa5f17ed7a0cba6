// SPDX-License-Identifier: BSD-3-Clause
// Verdicts when several agents lose packets to a node, or lose packets themselves.
#include "control/verdict/engine/verdict_bed.h"

#include <errno.h>

static int say_loses(struct bed *bed, uint32_t observer, uint32_t subject, uint32_t permille) {
	struct observation observation = bed_observation(observer, subject, OBSERVATION_NO_PAIR);

	observation.device[0] = observation.peer_device[0] = '\0';
	observation.reach = permille > 0 ? VERDICT_REACH_LOSES : VERDICT_REACH_ANSWERS;
	observation.lost_permille = permille;
	return verdict_observation(bed->engine, bed->now_ns, &observation);
}

static void node_to_which_two_send_much_again_is_lossy_and_drains_nobody(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	verdict_self_update(
		bed->engine, bed->now_ns, &(struct verdict_self_update){.joined = true}
	);
	assert_int_equal(say_loses(bed, 1, 4, 300), 0);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	assert_int_equal(say_loses(bed, 2, 4, 412), 0);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_view(bed, 4).advice, VERDICT_ADVICE_WARN);
	assert_string_equal(
		bed_view(bed, 4).evidence,
		"2 observers retransmit up to 41.2 % of the packets that they send to it"
	);
	say_loses(bed, 1, 4, 0);
	say_loses(bed, 2, 4, 0);
	bed_pass(bed, 8 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void two_of_one_host_are_one_who_sends_again(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	bed_place(bed, 1, "rack", "");
	bed_place(bed, 2, "rack", "");
	say_loses(bed, 1, 4, 300);
	say_loses(bed, 2, 4, 300);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	say_loses(bed, 3, 4, 300);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	bed_destroy(bed);
}

static void what_is_sent_again_is_answered_in_the_end(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	bed_see_reach(bed, 1, 4, OBSERVATION_SILENT, VERDICT_REACH_LOSES);
	bed_see_reach(bed, 2, 4, OBSERVATION_SILENT, VERDICT_REACH_LOSES);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void who_loses_itself_calls_nobody_silent(void **state) {
	const struct verdict_self_update loses = {.joined = true, .loses = true};
	struct bed *bed = bed_create(6);

	(void)state;
	verdict_self_update(bed->engine, bed->now_ns, &loses);
	bed_see_two(bed, 4, OBSERVATION_SILENT);
	bed_pass(bed, 8 * SEC);
	bed_expect(bed, 4, VERDICT_UNKNOWN, "OwnLoss");
	// A node's own statement is no silence.
	assert_int_equal(bed_say(bed, 5, VERDICT_CHECK_FAILED, "DiskFull"), 0);
	bed_expect(bed, 5, VERDICT_CHECK_FAILED, "DiskFull");
	bed_destroy(bed);
}

// Heavy loss makes the node silent to some for a moment. None of its networks is down, and its
// agent runs.
static void suspect_that_loses_packets_stays_lossy(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	say_loses(bed, 1, 4, 700);
	say_loses(bed, 2, 4, 700);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_state(bed, 4, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
	bed_see_reach(bed, 3, 4, OBSERVATION_GOOD, VERDICT_REACH_NONE);
	bed_see_reach(bed, 5, 4, OBSERVATION_GOOD, VERDICT_REACH_NONE);
	bed_pass(bed, 4 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	bed_destroy(bed);
}

// So many of its beats were lost that the overlay declared it dead, but some observers read it.
// Without earlier losses, a silence of the overlay alone means a failed management network.
static void one_dead_by_its_losses_is_lossy_while_it_is_read(void **state) {
	for (uint32_t loses = 0; loses < 2; loses++) {
		struct bed *bed = bed_create(8);

		if (loses > 0) {
			say_loses(bed, 1, 4, 700);
			say_loses(bed, 2, 4, 700);
		}
		assert_int_equal(bed_state(bed, 4, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
		bed_pass(bed, 3 * SEC);
		assert_int_equal(bed_state(bed, 4, RAS_DEAD, RAS_CAUSE_SILENT), 0);
		bed_see_reach(bed, 3, 4, OBSERVATION_GOOD, VERDICT_REACH_NONE);
		bed_see_reach(bed, 5, 4, OBSERVATION_GOOD, VERDICT_REACH_NONE);
		bed_pass(bed, 6 * SEC);
		if (loses > 0)
			bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
		else
			bed_expect(bed, 4, VERDICT_MGMT_NET_DOWN, "PulseAlone");
		bed_destroy(bed);
	}
	(void)state;
}

static void tell_connections(struct bed *bed, uint32_t subject, enum verdict_reach reach) {
	for (uint32_t observer = 1; observer <= 2; observer++) {
		struct observation observation =
			bed_observation(observer, subject, OBSERVATION_NO_PAIR);

		observation.device[0] = observation.peer_device[0] = '\0';
		observation.reach = reach;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), 0);
	}
}

// An observer that finds it silent cannot know about its loss, and a connection succeeds on which
// nothing arrives. A lasting silence counts nevertheless.
static void silence_of_a_node_that_loses_packets_is_of_its_losses(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see(bed, 3, 4, OBSERVATION_GOOD);
	say_loses(bed, 1, 4, 600);
	say_loses(bed, 2, 4, 600);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_state(bed, 4, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
	tell_connections(bed, 4, VERDICT_REACH_ACCEPTS);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_state(bed, 4, RAS_ALIVE, RAS_CAUSE_NONE), 0);
	tell_connections(bed, 4, VERDICT_REACH_ANSWERS);
	for (uint32_t observer = 1; observer < 8; observer++) {
		if (observer != 4)
			bed_see_reach(bed, observer, 4, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
	}
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	bed_pass(bed, 15 * SEC);
	bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// The last observations of its readers are older, and still report loss.
static void what_a_few_do_not_read_leaves_it_lossy(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t observer = 1; observer <= 3; observer++)
		bed_see(bed, observer, 4, OBSERVATION_LOSSY);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_pass(bed, 3 * SEC);
	bed_see_reach(bed, 5, 4, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
	bed_see_reach(bed, 6, 4, OBSERVATION_SILENT, VERDICT_REACH_ANSWERS);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_destroy(bed);
}

static void losses_of_all_sizes_are_not_called_losses_of_large_ones(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t observer = 1; observer <= 3; observer++) {
		struct observation observation = bed_observation(observer, 4, OBSERVATION_LOSSY);

		observation.lost_bytes = observer == 1 ? 65536 : 0;
		observation.reach = VERDICT_REACH_ANSWERS;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), 0);
	}
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "ReadsLost");
	bed_destroy(bed);
}

static void who_is_found_to_lose_packets_calls_nobody_frozen(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see(bed, 3, 0, OBSERVATION_GOOD);
	say_loses(bed, 1, 0, 600);
	say_loses(bed, 2, 0, 600);
	bed_expect(bed, 0, VERDICT_PATH_LOSSY, "PacketsLost");
	assert_int_equal(bed_state(bed, 5, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
	tell_connections(bed, 5, VERDICT_REACH_ACCEPTS);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "OwnLoss");
	bed_destroy(bed);
}

// If one of several observers stops repeating its report, the other reports remain valid.
static void what_others_still_say_is_not_stale(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t s = 0; s < 60; s += 10) {
		if (s == 0)
			bed_see(bed, 1, 4, OBSERVATION_LOSSY);
		bed_see(bed, 2, 4, OBSERVATION_LOSSY);
		bed_see(bed, 3, 4, OBSERVATION_LOSSY);
		bed_pass(bed, 10 * SEC);
		bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	}
	bed_destroy(bed);
}

static void what_is_judged_over_windows_is_well_after_three_seconds(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	bed_see(bed, 1, 4, OBSERVATION_LOSSY);
	bed_see(bed, 2, 4, OBSERVATION_LOSSY);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_see(bed, 1, 4, OBSERVATION_GOOD);
	bed_see(bed, 2, 4, OBSERVATION_GOOD);
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Regression: reported with two paths, withdrawn when one of them had a good moment, reported a
// second later with five. The end of the fault was the fourth change in a minute, so the node was
// unstable.
static void what_few_paths_lose_is_not_taken_back_before_the_others_have_found_it(void **state) {
	static const enum observation_kind kinds[] = {OBSERVATION_LOSSY, OBSERVATION_DEGRADED};

	(void)state;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		enum verdict word =
			kinds[n] == OBSERVATION_LOSSY ? VERDICT_PATH_LOSSY : VERDICT_PATH_DEGRADED;
		struct bed *bed = bed_create(8);

		bed_see_two(bed, 4, kinds[n]);
		bed_pass(bed, SEC);
		bed_expect(bed, 4, word, NULL);
		bed_see(bed, 2, 4, OBSERVATION_GOOD);
		bed_pass(bed, 5 * SEC);
		for (uint32_t observer = 2; observer < 6; observer++)
			bed_see(bed, observer, 4, kinds[n]);
		bed_pass(bed, 10 * SEC);
		bed_expect(bed, 4, word, NULL);
		assert_int_equal(bed->changes, 1);
		for (uint32_t observer = 1; observer < 6; observer++)
			bed_see(bed, observer, 4, OBSERVATION_GOOD);
		bed_pass(bed, 4 * SEC);
		bed_expect(bed, 4, VERDICT_HEALTHY, "None");
		bed_destroy(bed);
	}
}

static void fault_of_a_moment_is_over_ten_seconds_after_its_end(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see_two(bed, 4, OBSERVATION_LOSSY);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_see_two(bed, 4, OBSERVATION_GOOD);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// A worse verdict is applied without delay.
static void lossy_node_that_falls_off_the_fabric_is_so_at_once(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	bed_see_two(bed, 4, OBSERVATION_LOSSY);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	bed_see_two(bed, 4, OBSERVATION_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// Each observer of the loss has counted itself that the loss is over.
static void lost_packets_are_over_a_second_after_half_say_so(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	say_loses(bed, 1, 4, 300);
	say_loses(bed, 2, 4, 300);
	bed_pass(bed, 10 * SEC);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	say_loses(bed, 1, 4, 0);
	bed_pass(bed, SEC / 2);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	bed_pass(bed, SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// Regression: a lossy link delayed the report of its end for seconds. The node that had lost
// packets called itself lossy again, and was unstable for a minute.
static void what_came_late_does_not_bring_back_a_loss_that_is_over(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint64_t number = 1; number <= 3; number++) {
		for (uint32_t n = 1; n <= 3; n++) {
			struct observation told = bed_observation(n, 0, OBSERVATION_NO_PAIR);

			// The first report announces the loss, the third withdraws it, and the
			// second one arrives after that.
			told.device[0] = told.peer_device[0] = '\0';
			told.number = number == 2 ? 3 : number == 3 ? 2 : 1;
			told.reach = number == 2 ? VERDICT_REACH_ANSWERS : VERDICT_REACH_LOSES;
			told.lost_permille = number == 2 ? 0 : 300;
			assert_int_equal(
				verdict_observation(bed->engine, bed->now_ns, &told),
				number == 3 ? -ESTALE : 0
			);
		}
		bed_pass(bed, 9 * SEC);
		bed_expect(
			bed, 0, number == 1 ? VERDICT_PATH_LOSSY : VERDICT_HEALTHY,
			number == 1 ? "PacketsLost" : "None"
		);
	}
	bed_destroy(bed);
}

// A light loss may seem over for a moment, by chance, to half of its observers.
static void light_loss_is_over_when_that_has_settled(void **state) {
	struct bed *bed = bed_create(6);

	(void)state;
	for (uint32_t turns = 0; turns < 6; turns++) {
		say_loses(bed, 1, 4, 60);
		say_loses(bed, 2, 4, 120);
		bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
		bed_pass(bed, 5 * SEC);
		say_loses(bed, 1, 4, 0);
		bed_pass(bed, 3 * SEC);
		bed_expect(bed, 4, VERDICT_PATH_LOSSY, "PacketsLost");
	}
	assert_int_equal(bed->changes, 1);
	bed_pass(bed, 2 * SEC);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// One end accuses the other one, so the path is bad, and is reported as a path.
static void link_that_loses_is_a_bad_path(void **state) {
	struct bed *bed = bed_create(6);
	struct verdict_path_view view;
	uint32_t cursor = 0;

	(void)state;
	say_loses(bed, 1, 4, 300);
	bed_expect(bed, 4, VERDICT_HEALTHY, "None");
	assert_true(verdict_bad_path_next(bed->engine, &cursor, &view));
	assert_int_equal(view.observation.reach, VERDICT_REACH_LOSES);
	assert_int_equal(view.blame, PATH_BLAME_PATH);
	say_loses(bed, 2, 4, 300);
	cursor = 0;
	assert_true(verdict_bad_path_next(bed->engine, &cursor, &view));
	assert_int_equal(view.blame, PATH_BLAME_NODE);
	assert_int_equal(view.node, bed_id(4));
	bed_destroy(bed);
}

UNIT_GROUP(verdict_loss) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_to_which_two_send_much_again_is_lossy_and_drains_nobody),
		cmocka_unit_test(two_of_one_host_are_one_who_sends_again),
		cmocka_unit_test(what_is_sent_again_is_answered_in_the_end),
		cmocka_unit_test(who_loses_itself_calls_nobody_silent),
		cmocka_unit_test(suspect_that_loses_packets_stays_lossy),
		cmocka_unit_test(one_dead_by_its_losses_is_lossy_while_it_is_read),
		cmocka_unit_test(silence_of_a_node_that_loses_packets_is_of_its_losses),
		cmocka_unit_test(what_a_few_do_not_read_leaves_it_lossy),
		cmocka_unit_test(losses_of_all_sizes_are_not_called_losses_of_large_ones),
		cmocka_unit_test(who_is_found_to_lose_packets_calls_nobody_frozen),
		cmocka_unit_test(what_others_still_say_is_not_stale),
		cmocka_unit_test(what_is_judged_over_windows_is_well_after_three_seconds),
		cmocka_unit_test(
			what_few_paths_lose_is_not_taken_back_before_the_others_have_found_it
		),
		cmocka_unit_test(fault_of_a_moment_is_over_ten_seconds_after_its_end),
		cmocka_unit_test(lossy_node_that_falls_off_the_fabric_is_so_at_once),
		cmocka_unit_test(lost_packets_are_over_a_second_after_half_say_so),
		cmocka_unit_test(what_came_late_does_not_bring_back_a_loss_that_is_over),
		cmocka_unit_test(light_loss_is_over_when_that_has_settled),
		cmocka_unit_test(link_that_loses_is_a_bad_path),
	};

	return cmocka_run_group_tests_name("verdict_loss", tests, NULL, NULL);
}
