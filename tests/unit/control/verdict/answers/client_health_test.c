// SPDX-License-Identifier: BSD-3-Clause
// Tests of HEALTH: which nodes it counts, how it grades each, and that it states only known facts.
#include "control/client/client_trouble.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Only the answer about the whole view lists missing nodes.
static void health_names_whom_the_roster_misses(void **state) {
	int fd = bench_connect();
	json_t *object;

	(void)state;
	bench.overlay.missing[0] = "n5";
	bench.overlay.missing[1] = "n4";
	bench_say(fd, "HEALTH\n");
	assert_string_equal(
		bench_shown(fd),
		"unknown: 3 of 5 agents answer, 0 suspect, 0 unreachable, 0 dead, 0 left, 0 in\n"
		"  maintenance\n"
		"2 of 5 expected nodes are missing: n[4-5]\n\n"
		"NODE AGENT   VERDICT FOR REASON\n"
		"n5   missing unknown -   NeverSeen\n"
		"n4   missing unknown -   NeverSeen\n"
	);
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "HEALTH\n");
	assert_int_equal(json_integer_value(json_object_get(object, "expected")), 5);
	assert_int_equal(json_integer_value(json_object_get(object, "missing")), 2);
	assert_string_equal(json_string_value(json_object_get(object, "missing_nodes")), "n[4-5]");
	assert_string_equal(json_string_value(json_object_get(object, "node")), "n1");
	assert_true(json_is_null(json_object_get(object, "of")));
	json_decref(object);
	object = bench_ask_json(fd, "HEALTH n2\n");
	assert_string_equal(json_string_value(json_object_get(object, "grade")), "ok");
	assert_string_equal(json_string_value(json_object_get(object, "of")), "n2");
	json_decref(object);
	close(fd);
}

// Regression: it said "no more than half" of five reached members out of six, some without a vote.
static void part_that_waits_says_why_it_declares_nobody(void **state) {
	static const struct {
		uint32_t reached, of;
		const char *words;
	} rows[] = {
		{2, 6, "reaches 2 of 6 agents, no more than half: it declares none of the other 4"},
		{3, 6, "reaches 3 of 6 agents, no more than half: it declares none of the other 3"},
		{5, 6, "5 of 6 agents, too few with a vote: it declares none of the other 1"},
	};
	int fd = bench_connect();

	(void)state;
	bench.overlay.view.waits = true;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		bench.overlay.view.reached = rows[n].reached;
		bench.overlay.view.reached_of = rows[n].of;
		bench_say(fd, "HEALTH\n");
		assert_non_null(bench_find(bench_shown(fd), rows[n].words));
	}
	close(fd);
}

static void health_of_one_counts_nobody_else(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_make_trouble();
	bench.overlay.missing[0] = "n4";
	bench_say(fd, "HEALTH n3\n");
	answer = bench_shown(fd);
	assert_memory_equal(answer, "critical: n3 is dead\n\nNODE ", 27);
	assert_null(bench_find(answer, "agents answer"));
	assert_null(bench_find(answer, "expected"));
	bench_say(fd, "HEALTH n2\n");
	assert_memory_equal(bench_shown(fd), "warning: n2 is suspect\n", 23);
	close(fd);
}

static void health_of_one_that_the_roster_misses_is_unknown_and_drains_nobody(void **state) {
	int fd = bench_connect();
	const json_t *row;
	json_t *object;

	(void)state;
	bench.overlay.missing[0] = "n5";
	bench.overlay.missing[1] = "n4";
	bench_say(fd, "HEALTH n4\n");
	assert_string_equal(
		bench_shown(fd), "unknown: n4 is missing\n\n"
				 "NODE AGENT   VERDICT FOR REASON\n"
				 "n4   missing unknown -   NeverSeen\n"
				 "        expected by the roster; it never came, or was forgotten\n"
	);
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "HEALTH n4\n");
	assert_string_equal(json_string_value(json_object_get(object, "of")), "n4");
	assert_int_equal(json_integer_value(json_object_get(object, "missing")), 2);
	assert_int_equal(json_array_size(json_object_get(object, "findings")), 1);
	row = json_array_get(json_object_get(object, "findings"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "reason")), "NeverSeen");
	assert_string_equal(json_string_value(json_object_get(row, "advice")), "show");
	assert_string_equal(json_string_value(json_object_get(row, "verdict")), "unknown");
	assert_true(json_is_null(json_object_get(row, "for_ns")));
	json_decref(object);
	close(fd);
}

static void node_that_cannot_join_says_why(void **state) {
	static const char words[] =
		"this node has another key or cluster name than the agent at 10.0.0.9:28030";
	static const char *const questions[] = {"HEALTH\n", "HEALTH n1\n", "WHY n1\n"};
	int fd = bench_connect();
	json_t *object;

	(void)state;
	bench.overlay.view.joined = false;
	bench.overlay.join_problem = words;
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		bench_say(fd, questions[n]);
		assert_non_null(bench_find(bench_shown(fd), words));
	}
	bench_say(fd, "HEALTH n2\n");
	assert_null(bench_find(bench_shown(fd), words));
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		object = bench_ask_json(fd, questions[n]);
		assert_string_equal(
			json_string_value(json_object_get(object, "join_problem")), words
		);
		json_decref(object);
	}
	close(fd);
}

static void node_that_is_alone_though_it_remembers_others_is_no_ok(void **state) {
	static const char words[] = "this node is alone, but remembers 3 other members";
	int fd = bench_connect();
	const char *answer;
	json_t *object;

	(void)state;
	bench.overlay.alone = true;
	bench.overlay.join_problem = words;
	bench_say(fd, "HEALTH\n");
	answer = bench_shown(fd);
	assert_non_null(bench_find(answer, "This node sees none of the nodes that it should see.\n")
	);
	assert_non_null(bench_find(answer, words));
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "HEALTH n1\n");
	assert_string_equal(json_string_value(json_object_get(object, "grade")), "warning");
	assert_true(json_is_true(json_object_get(object, "alone")));
	json_decref(object);
	close(fd);
}

static void mistake_in_the_configuration_is_a_warning_that_says_it(void **state) {
	static const char words[] = "at 10.0.0.3:28030, the address of n3, n2 answers";
	int fd = bench_connect();
	json_t *object;

	(void)state;
	bench.overlay.mistake = words;
	bench_say(fd, "HEALTH\n");
	assert_non_null(bench_find(bench_shown(fd), words));
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "HEALTH\n");
	assert_string_equal(json_string_value(json_object_get(object, "grade")), "warning");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(object, "mistakes"), 0)), words
	);
	json_decref(object);
	object = bench_ask_json(fd, "HEALTH n2\n");
	assert_int_equal(json_array_size(json_object_get(object, "mistakes")), 0);
	json_decref(object);
	close(fd);
}

// Found: an agent whose names to join through do not resolve had its state since the machine
// booted.
static void state_of_before_the_start_is_of_no_known_age(void **state) {
	int fd = bench_connect();
	const json_t *row;
	json_t *object;

	(void)state;
	bench_peer("n2")->since_ns = 0;
	bench_say(fd, "HEALTH n2\n");
	assert_non_null(
		bench_find(bench_shown(fd), "n2                   alive       unknown       -  ")
	);
	bench_say(fd, "PEERS\n");
	assert_non_null(bench_find(bench_shown(fd), "\nn2 alive -  "));
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "HEALTH n2\n");
	row = json_array_get(json_object_get(object, "findings"), 0);
	assert_true(json_is_null(json_object_get(row, "since")));
	assert_true(json_is_null(json_object_get(row, "for_ns")));
	json_decref(object);
	close(fd);
}

static void health_tells_of_strangers_that_were_turned_away(void **state) {
	int fd = bench_connect();
	const char *answer;
	json_t *object;

	(void)state;
	bench.overlay.strangers = (struct overlay_strangers){
		.count = 17,
		.last = bench_peer("n2")->record->address,
		.last_ns = clock_now_ns(&bench.clock),
	};
	bench_say(fd, "HEALTH\n");
	answer = bench_shown(fd);
	bench_assert_narrow(answer, 80);
	assert_non_null(
		bench_find(answer, "Rejected: 17 connections without the right key, the last from")
	);
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "HEALTH\n");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(object, "strangers"), "count")),
		17
	);
	assert_true(json_is_integer(json_object_get(json_object_get(object, "strangers"), "ago_ns"))
	);
	json_decref(object);
	close(fd);
}

struct health {
	enum ras_state state;
	enum ras_cause cause;
	bool sole, maint, brake;
	const char *grade, *verdict;
};

// The overlay alone knows this much; the rest is unknown, never healthy and never down.
static const struct health healths[] = {
	{RAS_ALIVE, RAS_CAUSE_NONE, false, false, false, "ok", NULL},
	{RAS_ALIVE, RAS_CAUSE_NONE, false, false, true, "ok", NULL}, // all are back
	{RAS_LEFT, RAS_CAUSE_LEAVE, false, false, false, "ok", NULL},
	{RAS_SUSPECT, RAS_CAUSE_SILENT, false, false, false, "warning", "unknown"},
	{RAS_UNREACHABLE, RAS_CAUSE_SILENT, false, false, true, "unknown", "unknown"},
	{RAS_DEAD, RAS_CAUSE_SILENT, false, false, false, "critical", "unknown"},
	{RAS_DEAD, RAS_CAUSE_GONE, false, false, false, "critical", "agent-down"},
	{RAS_DEAD, RAS_CAUSE_REFUSED, false, false, false, "critical", "agent-down"},
	{RAS_DEAD, RAS_CAUSE_GONE, true, false, false, "unknown", "unknown"},
	{RAS_DEAD, RAS_CAUSE_GONE, false, true, false, "ok", "agent-down"},
};

static void health_never_says_more_than_the_overlay_knows(void **state) {
	struct ras_peer *peer = bench_peer("n3");
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	for (size_t n = 0; n < COUNT_OF(healths); n++) {
		const struct health *health = &healths[n];
		json_t *object, *row;

		peer->state = health->state;
		peer->cause = health->cause;
		peer->sole = health->sole;
		peer->maint = health->maint;
		bench.overlay.view.brake = health->brake;
		object = bench_ask_json(fd, "HEALTH\n");
		assert_string_equal(
			json_string_value(json_object_get(object, "grade")), health->grade
		);
		row = json_array_get(json_object_get(object, "findings"), 0);
		if (health->verdict == NULL)
			assert_null(row);
		else
			assert_string_equal(
				json_string_value(json_object_get(row, "verdict")), health->verdict
			);
		json_decref(object);
	}
	close(fd);
}

static void add_peer_of_version(const char *name, const char *version) {
	struct overlay *overlay = &bench.overlay;
	uint32_t n = overlay->peer_count;
	struct ras_peer_info info;

	bench_add_peer(name, name, RAS_ALIVE);
	ras_record_info(overlay->records[n], &info);
	snprintf(info.version, sizeof(info.version), "%s", version);
	ras_record_put(overlay->interner, overlay->records[n]);
	assert_int_equal(ras_record_from_info(overlay->interner, &info, &overlay->records[n]), 0);
	overlay->peers[n].record = overlay->records[n];
}

static void health_counts_the_versions_of_living_agents(void **state) {
	int fd = bench_connect();
	const json_t *versions, *row;
	char name[8], version[8];
	json_t *object;

	(void)state;
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	add_peer_of_version("n4", "0.0.9");
	bench_peer("n2")->state = RAS_DEAD;
	bench_peer("n3")->state = RAS_SUSPECT;
	object = bench_ask_json(fd, "HEALTH\n");
	versions = json_object_get(object, "versions");
	assert_int_equal(json_array_size(versions), 2);
	row = json_array_get(versions, 0);
	assert_string_equal(json_string_value(json_object_get(row, "version")), "0.1.0");
	assert_int_equal(json_integer_value(json_object_get(row, "count")), 2);
	row = json_array_get(versions, 1);
	assert_string_equal(json_string_value(json_object_get(row, "version")), "0.0.9");
	assert_int_equal(json_integer_value(json_object_get(row, "count")), 1);
	json_decref(object);
	// Beyond eight versions the rest is one row.
	for (int n = 5; n < 15; n++) {
		snprintf(name, sizeof(name), "n%d", n);
		snprintf(version, sizeof(version), "1.%d", n);
		add_peer_of_version(name, version);
	}
	object = bench_ask_json(fd, "HEALTH\n");
	versions = json_object_get(object, "versions");
	assert_int_equal(json_array_size(versions), 9);
	row = json_array_get(versions, 8);
	assert_true(json_is_null(json_object_get(row, "version")));
	assert_int_equal(json_integer_value(json_object_get(row, "count")), 4);
	json_decref(object);
	object = bench_ask_json(fd, "HEALTH n2\n");
	assert_int_equal(json_array_size(json_object_get(object, "versions")), 0);
	json_decref(object);
	close(fd);
}

UNIT_GROUP(client_health) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(health_names_whom_the_roster_misses),
		BENCH_TEST(part_that_waits_says_why_it_declares_nobody),
		BENCH_TEST(health_of_one_counts_nobody_else),
		BENCH_TEST(health_of_one_that_the_roster_misses_is_unknown_and_drains_nobody),
		BENCH_TEST(node_that_cannot_join_says_why),
		BENCH_TEST(mistake_in_the_configuration_is_a_warning_that_says_it),
		BENCH_TEST(state_of_before_the_start_is_of_no_known_age),
		BENCH_TEST(health_tells_of_strangers_that_were_turned_away),
		BENCH_TEST(node_that_is_alone_though_it_remembers_others_is_no_ok),
		BENCH_TEST(health_never_says_more_than_the_overlay_knows),
		BENCH_TEST(health_counts_the_versions_of_living_agents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
