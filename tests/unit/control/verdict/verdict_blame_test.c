// SPDX-License-Identifier: BSD-3-Clause
// Who is to blame: a path fault is no node fault, and no liar blames anybody but itself.
#include "control/verdict/verdict_bed.h"

#include <stdio.h>
#include <string.h>

#define AGENTS 12

static void settle(struct bed *bed) {
	bed_pass(bed, SEC);
}

static void good_from(struct bed *bed, uint32_t subject, uint32_t first, uint32_t last) {
	for (uint32_t observer = first; observer <= last; observer++) {
		if (observer != subject)
			assert_int_equal(bed_see(bed, observer, subject, OBSERVATION_GOOD), 0);
	}
}

// The only bad path, or the first, from this observer.
static struct verdict_path_view
path_of(const struct bed *bed, uint32_t observer, uint32_t subject) {
	struct verdict_path_view view;
	uint32_t cursor = 0;

	while (verdict_path_next(bed->engine, &cursor, &view)) {
		if (view.observation.observer == bed_id(observer) &&
		    view.observation.subject == bed_id(subject))
			return view;
	}
	fail_msg("no bad path from %u to %u", observer, subject);
	return view;
}

static void expect_all_well(const struct bed *bed) {
	struct verdict_view view;
	uint32_t cursor = 0;

	while (verdict_next(bed->engine, &cursor, &view))
		fail_msg(
			"agent %u is %s (%s)", (uint32_t)view.subject - 1,
			verdict_name(view.verdict), view.reason
		);
}

static void a_path_that_is_bad_for_one_blames_no_node(void **state) {
	static const enum observation_kind kinds[] = {
		OBSERVATION_SILENT, OBSERVATION_STANDING, OBSERVATION_DEGRADED, OBSERVATION_LOSSY};

	(void)state;
	for (uint32_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct bed *bed = bed_create(AGENTS);

		good_from(bed, 5, 2, 4);
		bed_see(bed, 1, 5, kinds[n]);
		bed_see(bed, 5, 1, kinds[n]); // the other end sees it as well
		good_from(bed, 1, 2, 4);
		settle(bed);
		expect_all_well(bed);
		assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_PATH);
		assert_int_equal(path_of(bed, 5, 1).blame, PATH_BLAME_PATH);
		assert_int_equal(path_of(bed, 1, 5).node, 0);
		bed_destroy(bed);
	}
}

static void one_observer_of_many_is_not_enough(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_pass(bed, 20 * SEC);
	expect_all_well(bed);
	bed_destroy(bed);
}

static void of_two_agents_one_is_enough_and_drains_nobody(void **state) {
	struct bed *bed = bed_create(2);

	(void)state;
	bed_see(bed, 0, 1, OBSERVATION_SILENT);
	settle(bed);
	bed_expect(bed, 1, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 1).confidence, VERDICT_LIKELY);
	assert_int_equal(bed_view(bed, 1).advice, VERDICT_ADVICE_WARN);
	bed_destroy(bed);
}

static void a_node_that_nobody_reads_is_to_blame_and_its_observers_are_not(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t n = 1; n <= 4; n++) {
		bed_see(bed, n, 5, OBSERVATION_SILENT);
		bed_see(bed, 5, n, OBSERVATION_SILENT);
		good_from(bed, n, 6, 8);
	}
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 5).confidence, VERDICT_SURE);
	assert_int_equal(bed_view(bed, 5).observer_count, 4);
	for (uint32_t n = 1; n <= 4; n++) {
		bed_expect(bed, n, VERDICT_HEALTHY, "None");
		assert_int_equal(path_of(bed, n, 5).blame, PATH_BLAME_NODE);
		assert_int_equal(path_of(bed, n, 5).node, bed_id(5));
		assert_int_equal(path_of(bed, 5, n).blame, PATH_BLAME_NODE);
		assert_int_equal(path_of(bed, 5, n).node, bed_id(5));
	}
	bed_destroy(bed);
}

static void the_sentence_has_the_figures(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	settle(bed);
	assert_string_equal(
		bed_view(bed, 5).evidence,
		"2 of 2 observers do not read its pulse; its agent answers; "
		"own ports of the observers are good"
	);
	bed_destroy(bed);
	bed = bed_create(AGENTS);
	bed_see(bed, 1, 5, OBSERVATION_DEGRADED);
	bed_see(bed, 2, 5, OBSERVATION_DEGRADED);
	settle(bed);
	assert_string_equal(
		bed_view(bed, 5).evidence,
		"2 of 2 paths to it are slow: a median of 12 us, it was 4.0 us, through its "
		"rail dev0"
	);
	bed_destroy(bed);
}

static void see_without_a_past(struct bed *bed, uint32_t observer, uint32_t median_ns) {
	struct observation observation = bed_observation(observer, 5, OBSERVATION_GOOD);

	observation.median_ns = median_ns;
	observation.baseline_ns = 0;
	assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), 0);
}

static void one_without_a_past_excuses_a_slow_node_only_by_being_quick(void **state) {
	static const struct {
		uint32_t median_ns;
		enum verdict verdict;
		const char *reason;
	} rows[] = {
		{12000, VERDICT_PATH_DEGRADED, "PulseSlow"},
		{8000, VERDICT_PATH_DEGRADED, "PulseSlow"},
		{5000, VERDICT_HEALTHY, "None"},
		{0, VERDICT_HEALTHY, "None"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(AGENTS);

		bed_see(bed, 1, 5, OBSERVATION_DEGRADED);
		bed_see(bed, 2, 5, OBSERVATION_DEGRADED);
		see_without_a_past(bed, 3, rows[n].median_ns);
		see_without_a_past(bed, 4, rows[n].median_ns);
		settle(bed);
		bed_expect(bed, 5, rows[n].verdict, rows[n].reason);
		bed_destroy(bed);
	}
}

// What one lost and what others read well of it, from which bytes on they do not know.
static void good_looks_excuse_a_lossy_node_only_of_what_passed(void **state) {
	static const struct {
		uint32_t lost, unproven;
		enum verdict verdict;
	} rows[] = {
		{65536, 0, VERDICT_HEALTHY},	   {65536, 65536, VERDICT_PATH_LOSSY},
		{65536, 4096, VERDICT_PATH_LOSSY}, {4096, 65536, VERDICT_HEALTHY},
		{4096, 4096, VERDICT_PATH_LOSSY},  {0, 65536, VERDICT_HEALTHY},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(AGENTS);

		for (uint32_t observer = 1; observer <= 6; observer++) {
			bool lossy = observer <= 2;
			struct observation observation = bed_observation(
				observer, 7, lossy ? OBSERVATION_LOSSY : OBSERVATION_GOOD
			);

			observation.lost_bytes = lossy ? rows[n].lost : rows[n].unproven;
			assert_int_equal(
				verdict_observation(bed->engine, bed->now_ns, &observation), 0
			);
		}
		settle(bed);
		bed_expect(bed, 7, rows[n].verdict, NULL);
		bed_destroy(bed);
	}
}

// One that loses what is large everywhere, while others read those well.
static void who_reads_only_little_well_may_lose_what_is_large_itself(void **state) {
	static const struct {
		uint32_t own, others; // unproven
		enum verdict verdict;
	} rows[] = {
		{65536, 0, VERDICT_PATH_LOSSY},
		{0, 0, VERDICT_HEALTHY},
		{65536, 65536, VERDICT_HEALTHY},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(AGENTS);
		struct observation own = bed_observation(7, 4, OBSERVATION_GOOD);

		own.lost_bytes = rows[n].own;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &own), 0);
		for (uint32_t subject = 1; subject <= 3; subject++) {
			struct observation other = bed_observation(5, subject, OBSERVATION_GOOD);

			bed_see(bed, 7, subject, OBSERVATION_LOSSY);
			other.lost_bytes = rows[n].others;
			assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &other), 0);
		}
		bed_pass(bed, 3 * SEC);
		bed_expect(bed, 7, rows[n].verdict, NULL);
		bed_destroy(bed);
	}
}

// Agent 4 loses packets, as others have found.
static struct bed *bed_with_one_that_loses(void) {
	struct bed *bed = bed_create(9);

	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see(bed, observer, 4, OBSERVATION_LOSSY);
	bed_see(bed, 8, 4, OBSERVATION_GOOD);
	settle(bed);
	bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
	return bed;
}

static void one_that_loses_packets_blames_nobody_at_its_other_ends(void **state) {
	static const enum observation_kind kinds[] = {OBSERVATION_LOSSY, OBSERVATION_DEGRADED};

	(void)state;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct bed *bed = bed_with_one_that_loses();

		// And the path between 5 and 6 is bad.
		bed_see(bed, 4, 5, kinds[n]);
		bed_see(bed, 6, 5, kinds[n]);
		bed_pass(bed, 5 * SEC);
		bed_expect(bed, 5, VERDICT_HEALTHY, NULL);
		bed_expect(bed, 4, VERDICT_PATH_LOSSY, "LargeLost");
		bed_destroy(bed);
	}
}

static void who_loses_to_one_that_loses_is_not_to_blame_for_one_path_more(void **state) {
	struct bed *bed = bed_with_one_that_loses();

	(void)state;
	bed_see(bed, 6, 4, OBSERVATION_LOSSY);
	bed_see(bed, 6, 7, OBSERVATION_LOSSY);
	bed_pass(bed, SEC / 2);
	bed_see(bed, 8, 4, OBSERVATION_GOOD);
	bed_see(bed, 8, 7, OBSERVATION_GOOD);
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 6, VERDICT_HEALTHY, NULL);
	bed_destroy(bed);
}

// The busy machine of another observer makes a slow path of one end's no slow node.
static void path_that_both_ends_call_slow_speaks_against_neither_of_them(void **state) {
	struct bed *bed = bed_create(4);

	(void)state;
	bed_see(bed, 1, 2, OBSERVATION_DEGRADED);
	bed_see(bed, 2, 1, OBSERVATION_DEGRADED);
	good_from(bed, 2, 0, 0);
	good_from(bed, 1, 0, 0);
	bed_see(bed, 3, 2, OBSERVATION_DEGRADED);
	settle(bed);
	expect_all_well(bed);
	assert_int_equal(path_of(bed, 1, 2).blame, PATH_BLAME_PATH);
	// A second one without such a path does.
	bed_see(bed, 0, 2, OBSERVATION_DEGRADED);
	settle(bed);
	bed_expect(bed, 2, VERDICT_PATH_DEGRADED, "PulseSlow");
	bed_expect(bed, 1, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void one_of_three_that_finds_both_others_slow_is_slow(void **state) {
	struct bed *bed = bed_create(3);

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		bed_see(bed, n, 2, OBSERVATION_DEGRADED);
		bed_see(bed, 2, n, OBSERVATION_DEGRADED);
	}
	good_from(bed, 0, 1, 1);
	good_from(bed, 1, 0, 0);
	settle(bed);
	bed_expect(bed, 2, VERDICT_PATH_DEGRADED, "PulseSlow");
	bed_destroy(bed);
}

// What it reads of others may be the first for seconds.
static void one_that_loses_reads_does_not_excuse_a_counter_that_stands(void **state) {
	struct bed *bed = bed_with_one_that_loses();

	(void)state;
	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see_reach(bed, observer, 5, OBSERVATION_STANDING, VERDICT_REACH_ACCEPTS);
	bed_see_reach(bed, 4, 5, OBSERVATION_GOOD, VERDICT_REACH_ANSWERS);
	bed_pass(bed, SEC);
	bed_expect(bed, 5, VERDICT_AGENT_FROZEN, "PulseStands");
	bed_destroy(bed);
}

// Where a node beside it froze the overlay makes new links, and a window shows nothing for ten
// seconds.
static void who_began_to_look_late_excuses_nothing_before_a_window_has_passed(void **state) {
	static const enum observation_kind kinds[] = {OBSERVATION_LOSSY, OBSERVATION_DEGRADED};

	(void)state;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct bed *bed = bed_create(9);

		for (uint32_t turns = 0; turns < 5; turns++) {
			bed_see_two(bed, 5, kinds[n]);
			bed_pass(bed, 3 * SEC);
		}
		// Such as know no better, and then do.
		for (uint32_t turns = 0; turns < 3; turns++) {
			bed_see_two(bed, 5, kinds[n]);
			bed_see(bed, 6, 5, OBSERVATION_GOOD);
			bed_see(bed, 7, 5, OBSERVATION_GOOD);
			bed_pass(bed, 3 * SEC);
			assert_true(bed_view(bed, 5).verdict > VERDICT_HEALTHY);
		}
		bed_see_two(bed, 5, kinds[n]);
		bed_pass(bed, SEC);
		bed_see(bed, 6, 5, OBSERVATION_GOOD);
		bed_see(bed, 7, 5, OBSERVATION_GOOD);
		bed_pass(bed, 4 * SEC);
		bed_expect(bed, 5, VERDICT_HEALTHY, NULL);
		bed_destroy(bed);
	}
}

static int see_port(
	struct bed *bed,
	uint32_t observer,
	uint32_t subject,
	const char *port,
	enum observation_kind kind
) {
	struct observation observation = bed_observation(observer, subject, kind);

	observation.reach = VERDICT_REACH_ANSWERS;
	memcpy(observation.peer_device, port, strlen(port) + 1);
	return verdict_observation(bed->engine, bed->now_ns, &observation);
}

static void one_port_of_two_is_named(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t n = 1; n <= 3; n++) {
		assert_int_equal(see_port(bed, n, 5, "mlx5_0", OBSERVATION_GOOD), 0);
		assert_int_equal(see_port(bed, n, 5, "mlx5_1", OBSERVATION_SILENT), 0);
	}
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PortUnread");
	assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_PORT);
	assert_string_equal(path_of(bed, 1, 5).what, "mlx5_1");
	assert_non_null(strstr(bed_view(bed, 5).evidence, "mlx5_1"));
	bed_destroy(bed);
}

// Eight ports at each end is what such nodes have: all of that is kept, in whatever order it comes,
// and one observer's many paths push no other's out.
static void one_port_of_eight_is_named_for_as_long_as_it_is_bad(void **state) {
	struct bed *bed = bed_create(AGENTS);
	uint32_t random = 7;

	(void)state;
	for (uint32_t n = 0; n < 60 * 40; n++) {
		char port[VERDICT_DEVICE_MAX + 1];
		uint32_t of;

		random = random * 1103515245 + 12345;
		of = random >> 16;
		snprintf(port, sizeof(port), "mlx5_%u", of % 8);
		(void)see_port(
			bed, 1 + of / 8 % 5, 10, port,
			of % 8 == 3 ? OBSERVATION_SILENT : OBSERVATION_GOOD
		);
		bed_pass(bed, SEC / 40);
		if (n > 20 * 40)
			bed_expect(bed, 10, VERDICT_FABRIC_DOWN, "PortUnread");
	}
	bed_destroy(bed);
}

static void one_with_many_paths_pushes_nobody_out(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t second = 0; second < 60; second++) {
		if (second % 10 == 0) {
			assert_int_equal(see_port(bed, 1, 5, "mlx5_0", OBSERVATION_SILENT), 0);
			assert_int_equal(see_port(bed, 2, 5, "mlx5_0", OBSERVATION_SILENT), 0);
		}
		for (uint32_t n = 0; n < 2 * VERDICT_SUBJECT_OBSERVATIONS_MAX; n++) {
			char port[VERDICT_DEVICE_MAX + 1];

			snprintf(port, sizeof(port), "port%u", n);
			(void)see_port(bed, 3, 5, port, OBSERVATION_SILENT);
		}
		bed_pass(bed, SEC);
		if (second > 1)
			assert_int_equal(bed_view(bed, 5).observer_count, 3);
	}
	bed_destroy(bed);
}

static void an_observer_whose_own_port_is_bad_blames_nobody(void **state) {
	struct bed *bed = bed_create(AGENTS);
	struct observation observation;

	(void)state;
	for (uint32_t observer = 1; observer <= 2; observer++) {
		for (uint32_t subject = 4; subject <= 7; subject++) {
			observation = bed_observation(observer, subject, OBSERVATION_SILENT);
			observation.own_good = false;
			observation.reach = VERDICT_REACH_ANSWERS;
			assert_int_equal(
				verdict_observation(bed->engine, bed->now_ns, &observation), 0
			);
		}
	}
	settle(bed);
	expect_all_well(bed);
	assert_int_equal(path_of(bed, 1, 4).blame, PATH_BLAME_PORT);
	assert_int_equal(path_of(bed, 1, 4).node, bed_id(1));
	assert_string_equal(path_of(bed, 1, 4).what, "dev0");
	bed_destroy(bed);
}

static void a_node_that_says_its_port_is_down_explains_what_it_does_not_see(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t observer = 1; observer <= 2; observer++) {
		bed_see(bed, observer, 5, OBSERVATION_SILENT);
		bed_see(bed, observer, 6, OBSERVATION_SILENT);
	}
	assert_int_equal(bed_say(bed, 1, VERDICT_FABRIC_DOWN, "PortDown"), 0);
	assert_int_equal(bed_say(bed, 2, VERDICT_DEVICE_STUCK, "DeviceStuck"), 0);
	settle(bed);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_expect(bed, 6, VERDICT_HEALTHY, "None");
	bed_expect(bed, 1, VERDICT_FABRIC_DOWN, "PortDown");
	bed_expect(bed, 2, VERDICT_DEVICE_STUCK, "DeviceStuck");
	assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_PORT);
	bed_destroy(bed);
}

static void who_reads_nobody_that_others_read_is_to_blame(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t subject = 2; subject <= 6; subject++) {
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
		good_from(bed, subject, 7, 8);
	}
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 1, VERDICT_FABRIC_DOWN, "PeersUnread");
	for (uint32_t subject = 2; subject <= 6; subject++) {
		bed_expect(bed, subject, VERDICT_HEALTHY, "None");
		assert_int_equal(path_of(bed, 1, subject).node, bed_id(1));
	}
	bed_destroy(bed);
}

static void who_has_not_yet_said_that_all_is_mended_is_not_to_blame(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t subject = 2; subject <= 4; subject++)
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
	bed_pass(bed, 5 * SEC);
	for (uint32_t subject = 2; subject <= 4; subject++)
		good_from(bed, subject, 7, 8);
	bed_pass(bed, 3 * SEC);
	expect_all_well(bed);
	bed_destroy(bed);
}

static void one_that_is_cut_off_does_not_count_what_it_sees_itself(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 0, OBSERVATION_SILENT);
	bed_see(bed, 2, 0, OBSERVATION_SILENT);
	bed_pass(bed, SEC);
	bed_expect(bed, 0, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_see(bed, 0, 5, OBSERVATION_SILENT);
	bed_see(bed, 3, 5, OBSERVATION_SILENT); // one path of its own, which is bad
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void a_liar_that_others_read_well_blames_nobody_and_is_not_blamed(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t subject = 2; subject <= 9; subject++) {
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
		good_from(bed, subject, 10, 11);
	}
	good_from(bed, 1, 10, 11);
	settle(bed);
	expect_all_well(bed);
	bed_destroy(bed);
}

static void two_liars_are_outweighed_by_one_who_reads(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t subject = 3; subject <= 9; subject++) {
		bed_see(bed, 1, subject, OBSERVATION_SILENT);
		bed_see(bed, 2, subject, OBSERVATION_SILENT);
		good_from(bed, subject, 10, 10);
	}
	settle(bed);
	for (uint32_t subject = 3; subject <= 9; subject++)
		bed_expect(bed, subject, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void who_sees_well_has_a_moment_to_say_so(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	bed_pass(bed, 300 * MS);
	expect_all_well(bed);
	bed_see(bed, 3, 5, OBSERVATION_GOOD);
	bed_pass(bed, 10 * SEC);
	expect_all_well(bed);
	assert_int_equal(bed->changes, 0);
	bed_destroy(bed);
}

static void a_good_look_from_before_does_not_excuse(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	good_from(bed, 5, 3, 6);
	bed_pass(bed, 2 * SEC);
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// The overlay of a fabric in two parts makes new links now and then: who comes late and does not
// read it either makes nobody's good look old.
static void one_that_comes_late_does_not_outdate_good_looks(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	for (uint32_t observer = 1; observer <= 3; observer++)
		bed_see(bed, observer, 5, OBSERVATION_SILENT);
	good_from(bed, 5, 6, 9);
	bed_pass(bed, 10 * SEC);
	good_from(bed, 5, 6, 9);
	for (uint32_t observer = 1; observer <= 3; observer++)
		bed_see(bed, observer, 5, OBSERVATION_SILENT);
	bed_pass(bed, 5 * SEC);
	bed_see(bed, 4, 5, OBSERVATION_SILENT);
	bed_pass(bed, 6 * SEC);
	expect_all_well(bed);
	// Where most of them turn bad at a later time, all good looks are of before.
	for (uint32_t observer = 6; observer <= 9; observer++)
		bed_see(bed, observer, 5, OBSERVATION_SILENT);
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

static void two_agents_of_one_host_are_one_pair_of_eyes(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_place(bed, 1, "shared", "");
	bed_place(bed, 2, "shared", "");
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	settle(bed);
	expect_all_well(bed);
	bed_see(bed, 3, 5, OBSERVATION_SILENT);
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// Of two hosts there is no choice; but what both of one host do not read may be that host's cable.
static void observers_of_one_host_drain_nobody_on_the_other(void **state) {
	struct bed *bed = bed_create(4);

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		bed_place(bed, n, "near", "");
	bed_place(bed, 3, "far", "");
	bed_see(bed, 1, 3, OBSERVATION_SILENT);
	bed_see(bed, 2, 3, OBSERVATION_SILENT);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 3, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 3).advice, VERDICT_ADVICE_WARN);
	bed_destroy(bed);
}

static void where_all_live_on_one_host_they_are_two(void **state) {
	struct bed *bed = bed_create(4);

	(void)state;
	for (uint32_t n = 0; n < 4; n++)
		bed_place(bed, n, "laptop", "");
	bed_see(bed, 1, 3, OBSERVATION_SILENT);
	bed_see(bed, 2, 3, OBSERVATION_SILENT);
	bed_pass(bed, 20 * SEC);
	bed_expect(bed, 3, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(bed_view(bed, 3).advice, VERDICT_ADVICE_DRAIN);
	bed_destroy(bed);
}

static void a_bad_host_of_two_agents_is_named(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_place(bed, 5, "twin", "");
	bed_place(bed, 6, "twin", "");
	for (uint32_t n = 1; n <= 3; n++) {
		bed_see(bed, n, 5, OBSERVATION_SILENT);
		bed_see(bed, n, 6, OBSERVATION_SILENT);
	}
	// They read each other without the fabric between.
	bed_see(bed, 5, 6, OBSERVATION_GOOD);
	bed_see(bed, 6, 5, OBSERVATION_GOOD);
	settle(bed);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_expect(bed, 6, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_HOST);
	assert_string_equal(path_of(bed, 1, 5).what, "twin");
	bed_destroy(bed);
}

static void one_bad_agent_of_a_host_is_a_node(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_place(bed, 5, "twin", "");
	bed_place(bed, 6, "twin", "");
	for (uint32_t n = 1; n <= 3; n++) {
		bed_see(bed, n, 5, OBSERVATION_SILENT);
		bed_see(bed, n, 6, OBSERVATION_GOOD);
	}
	settle(bed);
	bed_expect(bed, 6, VERDICT_HEALTHY, "None");
	assert_int_equal(path_of(bed, 1, 5).blame, PATH_BLAME_NODE);
	bed_destroy(bed);
}

static void place_leaves(struct bed *bed) {
	for (uint32_t n = 0; n < AGENTS; n++) {
		const char host[] = {'h', (char)('a' + n), '\0'};

		assert_int_equal(bed_place(bed, n, host, n < 6 ? "leaf1" : "leaf2"), 0);
	}
}

static void a_bad_leaf_is_named_and_its_nodes_are_read_within(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	place_leaves(bed);
	for (uint32_t n = 6; n < AGENTS; n++) {
		bed_see(bed, n - 6, n, OBSERVATION_DEGRADED);
		bed_see(bed, n, n - 6, OBSERVATION_DEGRADED);
		bed_see(bed, n == 6 ? 11 : n - 1, n, OBSERVATION_GOOD);
	}
	settle(bed);
	expect_all_well(bed);
	assert_int_equal(path_of(bed, 1, 7).blame, PATH_BLAME_LEAF);
	bed_destroy(bed);
}

static void a_topology_file_that_contradicts_what_is_seen_names_no_leaf(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	place_leaves(bed);
	bed_see(bed, 0, 6, OBSERVATION_DEGRADED);
	bed_see(bed, 1, 7, OBSERVATION_DEGRADED);
	bed_see(bed, 2, 8, OBSERVATION_GOOD);
	bed_see(bed, 3, 6, OBSERVATION_GOOD);
	settle(bed);
	expect_all_well(bed);
	assert_int_equal(path_of(bed, 0, 6).blame, PATH_BLAME_PATH);
	bed_destroy(bed);
}

static void what_the_dead_and_the_departed_said_no_longer_counts(void **state) {
	struct bed *bed = bed_create(AGENTS);

	(void)state;
	bed_see(bed, 1, 5, OBSERVATION_SILENT);
	bed_see(bed, 2, 5, OBSERVATION_SILENT);
	bed_state(bed, 1, RAS_DEAD, RAS_CAUSE_GONE);
	settle(bed);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_is_bad_for_one_blames_no_node),
		cmocka_unit_test(one_observer_of_many_is_not_enough),
		cmocka_unit_test(of_two_agents_one_is_enough_and_drains_nobody),
		cmocka_unit_test(a_node_that_nobody_reads_is_to_blame_and_its_observers_are_not),
		cmocka_unit_test(the_sentence_has_the_figures),
		cmocka_unit_test(one_without_a_past_excuses_a_slow_node_only_by_being_quick),
		cmocka_unit_test(good_looks_excuse_a_lossy_node_only_of_what_passed),
		cmocka_unit_test(who_reads_only_little_well_may_lose_what_is_large_itself),
		cmocka_unit_test(one_that_loses_packets_blames_nobody_at_its_other_ends),
		cmocka_unit_test(who_loses_to_one_that_loses_is_not_to_blame_for_one_path_more),
		cmocka_unit_test(path_that_both_ends_call_slow_speaks_against_neither_of_them),
		cmocka_unit_test(one_of_three_that_finds_both_others_slow_is_slow),
		cmocka_unit_test(one_that_loses_reads_does_not_excuse_a_counter_that_stands),
		cmocka_unit_test(who_began_to_look_late_excuses_nothing_before_a_window_has_passed),
		cmocka_unit_test(one_port_of_two_is_named),
		cmocka_unit_test(one_port_of_eight_is_named_for_as_long_as_it_is_bad),
		cmocka_unit_test(one_with_many_paths_pushes_nobody_out),
		cmocka_unit_test(an_observer_whose_own_port_is_bad_blames_nobody),
		cmocka_unit_test(a_node_that_says_its_port_is_down_explains_what_it_does_not_see),
		cmocka_unit_test(who_reads_nobody_that_others_read_is_to_blame),
		cmocka_unit_test(who_has_not_yet_said_that_all_is_mended_is_not_to_blame),
		cmocka_unit_test(one_that_is_cut_off_does_not_count_what_it_sees_itself),
		cmocka_unit_test(a_liar_that_others_read_well_blames_nobody_and_is_not_blamed),
		cmocka_unit_test(two_liars_are_outweighed_by_one_who_reads),
		cmocka_unit_test(who_sees_well_has_a_moment_to_say_so),
		cmocka_unit_test(a_good_look_from_before_does_not_excuse),
		cmocka_unit_test(one_that_comes_late_does_not_outdate_good_looks),
		cmocka_unit_test(two_agents_of_one_host_are_one_pair_of_eyes),
		cmocka_unit_test(observers_of_one_host_drain_nobody_on_the_other),
		cmocka_unit_test(where_all_live_on_one_host_they_are_two),
		cmocka_unit_test(a_bad_host_of_two_agents_is_named),
		cmocka_unit_test(one_bad_agent_of_a_host_is_a_node),
		cmocka_unit_test(a_bad_leaf_is_named_and_its_nodes_are_read_within),
		cmocka_unit_test(a_topology_file_that_contradicts_what_is_seen_names_no_leaf),
		cmocka_unit_test(what_the_dead_and_the_departed_said_no_longer_counts),
	};

	return cmocka_run_group_tests_name("verdict_blame", tests, NULL, NULL);
}
