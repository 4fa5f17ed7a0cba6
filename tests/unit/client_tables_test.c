// SPDX-License-Identifier: BSD-3-Clause
// Tocsin's own commands: their tables fit 100 columns, their JSON is one line, their errors say
// what is wrong and what is allowed.
#include "client_bench.h"

#include <control/fabric.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// n3 is dead (its process gone), n2 suspect, and there is a link to n2.
static void make_trouble(void) {
	struct ras_peer *dead = bench_peer("n3");
	struct ras_peer *suspect = bench_peer("n2");

	dead->state = RAS_DEAD;
	dead->cause = RAS_CAUSE_GONE;
	dead->observer_count = 2;
	dead->observers[0] = bench.overlay.records[0]->id;
	dead->observers[1] = bench.overlay.records[1]->id;
	suspect->state = RAS_SUSPECT;
	suspect->cause = RAS_CAUSE_SILENT;
	bench.overlay.links[0] = (struct ras_link_info){
		.peer = suspect->record->id,
		.ready = true,
		.delayed = true,
		.outgoing = true,
		.mine = RAS_USE_NEXT | RAS_USE_PREV,
		.silent_ns = 3200 * RAS_NS_PER_MS,
		.rtt_min_ns = 80000,
		.rtt_mean_ns = 120000,
		.rtt_max_ns = 500000,
		.sent_bytes = 123456,
		.received_bytes = 99,
		.reconnects = 1,
	};
	bench.overlay.links[1] = (struct ras_link_info){
		.peer = dead->record->id,
		.theirs = RAS_USE_LEVEL(2),
		.silent_ns = 90 * RAS_NS_PER_SEC,
		.rtt_min_ns = RAS_NEVER,
	};
	bench.overlay.link_count = 2;
	bench_add_event(RAS_EVENT_JOINED, "n3", RAS_CAUSE_NONE, 0);
	bench_add_event(RAS_EVENT_LINK_UP, "n3", RAS_CAUSE_NONE, 2 * RAS_NS_PER_MS);
	bench_add_event(RAS_EVENT_SUSPECT, "n3", RAS_CAUSE_RESET, 0);
	bench_add_event(RAS_EVENT_DEAD, "n3", RAS_CAUSE_GONE, 0);
	bench_add_event(RAS_EVENT_BRAKE_ON, NULL, RAS_CAUSE_NONE, 17);
}

static const char *const own[] = {
	"PEERS\n",    "PEERS dead\n", "LINKS\n",  "HEALTH\n", "HEALTH n3\n", "EVENTS\n",
	"EVENTS 2\n", "EVENTS 10m\n", "WHY n1\n", "WHY n2\n", "WHY n3\n",    "COUNTERS\n",
};

static void every_table_fits_and_ends_in_ok(void **state) {
	int fd = bench_connect();

	(void)state;
	make_trouble();
	for (size_t n = 0; n < COUNT_OF(own); n++) {
		const char *answer;

		bench_say(fd, own[n]);
		answer = bench_hear(fd);
		bench_assert_narrow(answer);
		assert_true(strlen(answer) > 3);
		assert_string_equal(answer + strlen(answer) - 4, "\nOK\n");
		if (getenv("CLIENT_SHOW") != NULL)
			printf("# %s%s\n", own[n], answer);
	}
	close(fd);
}

static void every_answer_in_json_is_one_line(void **state) {
	int fd = bench_connect_local();

	(void)state;
	make_trouble();
	bench_say(fd, "SET FORMAT json\n");
	assert_string_equal(bench_hear(fd), "OK\n");
	for (size_t n = 0; n < COUNT_OF(own); n++) {
		json_t *object = bench_ask_json(fd, own[n]);

		assert_null(json_object_get(object, "error"));
		json_decref(object);
	}
	close(fd);
}

// Of the whole view; a question about one node is not about those who are not there.
static void health_names_whom_the_roster_misses(void **state) {
	int fd = bench_connect();
	json_t *object;

	(void)state;
	bench.overlay.missing[0] = "n5";
	bench.overlay.missing[1] = "n4";
	bench_say(fd, "HEALTH\n");
	assert_string_equal(
		bench_hear(fd),
		"unknown: 3 of 5 agents answer, 0 suspect, 0 unreachable, 0 dead, "
		"0 left, 0 in maintenance\n"
		"2 of 5 expected are not seen: n[4-5]\n\n"
		"NODE                 AGENT       VERDICT       FOR         REASON\n"
		"n5                   missing     unknown       -           NeverSeen\n"
		"n4                   missing     unknown       -           NeverSeen\n"
		"OK\n"
	);
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
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

static void health_of_one_counts_nobody_else(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	make_trouble();
	bench.overlay.missing[0] = "n4";
	bench_say(fd, "HEALTH n3\n");
	answer = bench_hear(fd);
	assert_memory_equal(answer, "critical: n3 is dead\n\nNODE ", 27);
	assert_null(strstr(answer, "agents answer"));
	assert_null(strstr(answer, "expected"));
	bench_say(fd, "HEALTH n2\n");
	assert_memory_equal(bench_hear(fd), "warning: n2 is suspect\n", 23);
	close(fd);
}

static void node_that_cannot_join_says_why(void **state) {
	static const char words[] = "the key is not that of 10.0.0.9:28030";
	static const char *const questions[] = {"HEALTH\n", "HEALTH n1\n", "WHY n1\n"};
	int fd = bench_connect();
	json_t *object;

	(void)state;
	bench.overlay.view.joined = false;
	bench.overlay.join_problem = words;
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		bench_say(fd, questions[n]);
		assert_non_null(strstr(bench_hear(fd), words));
	}
	bench_say(fd, "HEALTH n2\n");
	assert_null(strstr(bench_hear(fd), words));
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		object = bench_ask_json(fd, questions[n]);
		assert_string_equal(
			json_string_value(json_object_get(object, "join_problem")), words
		);
		json_decref(object);
	}
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
	answer = bench_hear(fd);
	bench_assert_narrow(answer);
	assert_non_null(strstr(answer, "Turned away: 17 connections without the key, the last from")
	);
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
	object = bench_ask_json(fd, "HEALTH\n");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(object, "strangers"), "count")),
		17
	);
	json_decref(object);
	close(fd);
}

static void peers_lists_whom_the_roster_misses_behind_the_rest(void **state) {
	int fd = bench_connect();
	json_t *object, *rows;
	const char *answer;

	(void)state;
	bench.overlay.missing[0] = "n5";
	bench.overlay.missing[1] = "n4";
	bench_say(fd, "PEERS\n");
	answer = bench_hear(fd);
	bench_assert_narrow(answer);
	assert_non_null(strstr(answer, "0 left, 2 missing; view"));
	assert_non_null(strstr(answer, "\nn5                     missing     -  "));
	bench_say(fd, "PEERS alive\n");
	assert_null(strstr(bench_hear(fd), "missing"));
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
	object = bench_ask_json(fd, "PEERS missing\n");
	rows = json_object_get(object, "peers");
	assert_int_equal(json_array_size(rows), 2);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 1), "node")), "n4"
	);
	assert_int_equal(json_integer_value(json_object_get(object, "missing")), 2);
	json_decref(object);
	close(fd);
}

static void maintenance_of_one_that_the_roster_misses_says_what_to_do(void **state) {
	int fd = bench_connect_local();

	(void)state;
	bench.overlay.missing[0] = "n4";
	bench_say(fd, "MAINT n4 on\n");
	assert_non_null(strstr(bench_hear(fd), "not seen; an order is for one that is known"));
	close(fd);
}

static void names_with_numbers_are_in_the_order_of_the_numbers(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_add_peer("n10", "n10", RAS_ALIVE);
	bench_say(fd, "PEERS\n");
	answer = bench_hear(fd);
	assert_true(strstr(answer, "\nn10 ") > strstr(answer, "\nn2 "));
	close(fd);
}

static void one_who_was_forgotten_keeps_its_name_in_what_it_saw(void **state) {
	uint64_t seen_by = ras_id("n7", 2);
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_add_event(RAS_EVENT_DEAD, "n3", RAS_CAUSE_GONE, 0);
	bench.overlay.events[bench.overlay.event_next - 1].observer_count = 1;
	bench.overlay.events[bench.overlay.event_next - 1].observers[0] = seen_by;
	bench_add_event(RAS_EVENT_FORGOTTEN, "n7", RAS_CAUSE_NONE, 0);
	bench_say(fd, "EVENTS\n");
	answer = bench_hear(fd);
	assert_null(strchr(answer, '#'));
	assert_non_null(strstr(answer, "seen by n7"));
	close(fd);
}

static void tables_of_rdma_say_in_words_that_there_is_no_device(void **state) {
	static const char *const questions[] = {"PAIRS\n", "DEVICES\n"};
	int fd = bench_connect();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		bench_say(fd, questions[n]);
		assert_non_null(
			strstr(bench_hear(fd), "\nThis agent measures with no RDMA device: "
					       "`tocsin devices --explain` says why.\nOK\n")
		);
	}
	close(fd);
}

static void names_that_an_error_lists_are_in_the_order_of_their_numbers(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_add_peer("n10", "n10", RAS_ALIVE);
	bench_add_peer("n9", "n9", RAS_ALIVE);
	bench_say(fd, "WHY somewhere\n");
	assert_non_null(strstr(bench_hear(fd), "known are: n1, n2, n3, n9, n10"));
	close(fd);
}

static void clock_that_is_apart_tells_by_how_much(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_add_event(RAS_EVENT_CLOCK_OFFSET, "n3", RAS_CAUSE_NONE, 19 * RAS_NS_PER_SEC);
	bench_say(fd, "EVENTS\n");
	assert_non_null(strstr(bench_hear(fd), "apart by 19 s"));
	close(fd);
}

static void why_tells_who_reported_it_and_what_follows(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_add_event(RAS_EVENT_REPORTED, "n3", RAS_CAUSE_REPORT, 1000);
	bench.overlay.text = "its link flaps";
	bench_say(fd, "WHY n3\n");
	answer = bench_hear(fd);
	bench_assert_narrow(answer);
	answer = strstr(answer, "What follows\n");
	assert_non_null(answer);
	assert_non_null(strstr(answer, "by uid 1000:\n        its link flaps\n"));
	assert_true(strstr(answer, "neighbours were asked") < strstr(answer, "Links from here"));
	close(fd);
}

static void a_question_about_one_that_the_roster_misses_says_so(void **state) {
	int fd = bench_connect();

	(void)state;
	bench.overlay.missing[0] = "n4";
	bench_say(fd, "PING n4\n");
	assert_string_equal(
		bench_hear(fd), "ERROR: n4 is missing: expected ([overlay] expect), and not seen\n"
	);
	bench_add_event(RAS_EVENT_DEAD, "n4", RAS_CAUSE_GONE, 0);
	bench_add_event(RAS_EVENT_FORGOTTEN, "n4", RAS_CAUSE_NONE, 0);
	bench_say(fd, "PING n4\n");
	assert_non_null(strstr(bench_hear(fd), "not seen; the last of it was FORGOTTEN, 2026-"));
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
		bench_hear(fd),
		"unknown: n4 is missing\n\n"
		"NODE                 AGENT       VERDICT       FOR         REASON\n"
		"n4                   missing     unknown       -           NeverSeen\n"
		"        expected by the roster; it never came, or was forgotten\nOK\n"
	);
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
	object = bench_ask_json(fd, "HEALTH n4\n");
	assert_string_equal(json_string_value(json_object_get(object, "of")), "n4");
	assert_int_equal(json_integer_value(json_object_get(object, "missing")), 2);
	assert_int_equal(json_array_size(json_object_get(object, "findings")), 1);
	row = json_array_get(json_object_get(object, "findings"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "reason")), "NeverSeen");
	assert_string_equal(json_string_value(json_object_get(row, "advice")), "show");
	assert_string_equal(json_string_value(json_object_get(row, "verdict")), "unknown");
	assert_true(json_is_null(json_object_get(row, "for_s")));
	json_decref(object);
	close(fd);
}

static void why_of_one_that_the_roster_misses_tells_what_was_seen_of_it(void **state) {
	int fd = bench_connect();
	const char *answer;
	json_t *object;

	(void)state;
	bench.overlay.missing[0] = "n4";
	bench_add_event(RAS_EVENT_DEAD, "n4", RAS_CAUSE_GONE, 0);
	bench_add_event(RAS_EVENT_FORGOTTEN, "n4", RAS_CAUSE_NONE, 0);
	bench_say(fd, "WHY n4\n");
	answer = bench_hear(fd);
	bench_assert_narrow(answer);
	assert_memory_equal(answer, "n4 is missing: expected, and not seen.\n", 39);
	assert_non_null(strstr(answer, " FORGOTTEN "));
	assert_non_null(strstr(answer, "Start tocsind on it, or take it off the roster."));
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
	object = bench_ask_json(fd, "WHY n4\n");
	assert_string_equal(json_string_value(json_object_get(object, "state")), "missing");
	assert_int_equal(json_array_size(json_object_get(object, "events")), 2);
	json_decref(object);
	close(fd);
}

struct mistake {
	const char *line;
	const char *words[3];
};

static const struct mistake mistakes[] = {
	{"PEERS dea\n", {"\"dea\" is no state", "did you mean \"dead\"?"}},
	{"PEERS green\n",
	 {"\"green\" is no state", "alive, suspect, unreachable, dead, left, missing"}},
	{"LINKS now\n", {"LINKS takes nothing after it", "\"now\""}},
	{"WHY\n", {"WHY needs the name of a node: WHY node"}},
	{"WHY nn3\n", {"no node \"nn3\" is known", "did you mean \"n3\"?"}},
	{"WHY somewhere\n", {"no node \"somewhere\" is known", "known are: n1, n2, n3"}},
	{"WHY n1 n2\n", {"WHY takes one node", "\"n2\""}},
	{"HEALTH n9x\n", {"no node \"n9x\""}},
	{"EVENTS yesterday\n", {"\"yesterday\" is neither", "90s, 10m or 2h"}},
	{"PING\n", {"PING needs the name of a node"}},
	{"NODE n2 FORGET n3\n", {"another node answers PEERS", "PAIRS", "\"FORGET n3\""}},
	{"NODE n2 NODE n3 PEERS\n", {"another node answers", "\"NODE n3 PEERS\""}},
	{"MAINT n2\n", {"MAINT takes on or off", "\"\""}},
	{"MAINT n2 maybe\n", {"MAINT takes on or off", "\"maybe\""}},
	{"REPORT n2\n", {"REPORT needs a reason", "160 bytes"}},
	{"REPORT n2 \xff\xfe\n", {"REPORT needs a reason", "UTF-8"}},
	{"LOG loud\n", {"\"loud\" is no level", "error, warn, info and debug"}},
};

static void a_mistake_is_answered_with_the_value_and_what_is_allowed(void **state) {
	int fd = bench_connect_local();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(mistakes); n++) {
		const char *answer;

		bench_say(fd, mistakes[n].line);
		answer = bench_hear(fd);
		assert_int_equal(strncmp(answer, "ERROR: ", 7), 0);
		for (size_t w = 0; w < COUNT_OF(mistakes[n].words); w++) {
			if (mistakes[n].words[w] != NULL &&
			    strstr(answer, mistakes[n].words[w]) == NULL)
				fail_msg("%s in: %s", mistakes[n].words[w], answer);
		}
		assert_ptr_equal(strchr(answer, '\n'), answer + strlen(answer) - 1);
	}
	close(fd);
}

static void a_mistake_in_json_is_an_object_with_an_error(void **state) {
	int fd = bench_connect_local();

	(void)state;
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
	for (size_t n = 0; n < COUNT_OF(mistakes); n++) {
		json_t *object = bench_ask_json(fd, mistakes[n].line);

		assert_true(json_is_string(json_object_get(object, "error")));
		json_decref(object);
	}
	close(fd);
}

static void a_name_is_suggested_among_a_thousand_and_none_is_listed(void **state) {
	char name[32];
	int fd = bench_connect();

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		snprintf(name, sizeof(name), "node%04u", n);
		bench_add_peer(name, name, RAS_ALIVE);
	}
	bench_say(fd, "WHY nodee0501\n");
	assert_non_null(strstr(bench_hear(fd), "did you mean \"node0501\"?"));
	bench_say(fd, "WHY galaxy\n");
	assert_string_equal(
		bench_hear(fd), "ERROR: no node \"galaxy\" is known, nor one of a similar name "
				"among the 1003 that `tocsin peers` lists\n"
	);
	close(fd);
}

static void the_worst_peers_come_first_and_those_of_one_state_can_be_asked_for(void **state) {
	int fd = bench_connect();
	json_t *object, *peers;

	(void)state;
	make_trouble();
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
	object = bench_ask_json(fd, "PEERS\n");
	peers = json_object_get(object, "peers");
	assert_int_equal(json_array_size(peers), 3);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(peers, 0), "node")), "n3"
	);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(peers, 0), "verdict")),
		"agent-down"
	);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(peers, 1), "node")), "n2"
	);
	assert_int_equal(json_integer_value(json_object_get(object, "dead")), 1);
	json_decref(object);
	object = bench_ask_json(fd, "PEERS DEAD\n");
	assert_int_equal(json_array_size(json_object_get(object, "peers")), 1);
	json_decref(object);
	object = bench_ask_json(fd, "PEERS left\n");
	assert_int_equal(json_array_size(json_object_get(object, "peers")), 0);
	json_decref(object);
	close(fd);
}

struct health {
	enum ras_state state;
	enum ras_cause cause;
	bool sole, maint, brake;
	const char *grade, *verdict;
};

// What the overlay alone can know; the rest is unknown, never healthy and never down.
static const struct health healths[] = {
	{RAS_ALIVE, RAS_CAUSE_NONE, false, false, false, "ok", NULL},
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
	bench_hear(fd);
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

static void why_tells_the_story_of_a_killed_node(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	make_trouble();
	bench.earlier_count = 1;
	bench.earlier[0] = (struct state_event){
		.realtime_ns = INT64_C(1790000000000000000),
		.event =
			{
				.sequence = 9,
				.kind = RAS_EVENT_LEFT,
				.peer = bench_peer("n3")->record->id,
				.name = "n3",
			},
	};
	bench_say(fd, "WHY n3\n");
	answer = bench_hear(fd);
	assert_non_null(
		strstr(answer, "n3 is dead: its host answers, its agent's process is gone.\n")
	);
	assert_non_null(strstr(answer, "  says who     n1 and n2\n"));
	assert_non_null(strstr(answer, "1 min 5 s ago\n"));
	assert_non_null(strstr(answer, "Start tocsind on it again"));
	assert_non_null(strstr(answer, "If it is gone for good: `tocsin forget n3`.\n"));
	assert_non_null(strstr(answer, "SUSPECT"));
	// From the journal of an earlier run.
	assert_non_null(strstr(answer, "LEFT"));
	close(fd);
}

struct past_link {
	enum ras_event_kind kinds[4];
	bool tried, ready; // a link is there; it is up
	const char *words;
};

// What a link was is not lost with it, nor with the next try.
static const struct past_link past_links[] = {
	{{0}, false, false, "\n  none, nor was there one: what is known came from others\n"},
	{{RAS_EVENT_LINK_UP, RAS_EVENT_LINK_DOWN},
	 true,
	 false,
	 "\n  none now: the last said LINK_DOWN, reset 0 ns ago; lost once\n"},
	{{RAS_EVENT_LINK_UP, RAS_EVENT_LINK_DELAYED},
	 false,
	 false,
	 "\n  none now: the last said LINK_DELAYED, reset 0 ns ago; never lost\n"},
	{{RAS_EVENT_LINK_DOWN, RAS_EVENT_LINK_UP, RAS_EVENT_LINK_DOWN, RAS_EVENT_LINK_UP},
	 true,
	 true,
	 "\n  in, up, silent for 118 us, lost 2 times\n"},
	{{RAS_EVENT_LINK_DOWN, RAS_EVENT_LINK_UP},
	 true,
	 true,
	 "\n  in, up, silent for 118 us, lost once\n"},
	{{RAS_EVENT_LINK_UP}, true, true, "\n  in, up, silent for 118 us, never lost\n"},
};

static void why_tells_of_the_link_that_was_when_there_is_none(void **state) {
	for (size_t n = 0; n < COUNT_OF(past_links); n++) {
		const struct past_link *past = &past_links[n];
		struct ras_peer *peer;
		const char *answer;
		int fd;

		assert_int_equal(bench_stop(state), 0);
		assert_int_equal(bench_start(state), 0);
		peer = bench_peer("n3");
		peer->state = past->ready ? RAS_ALIVE : RAS_DEAD;
		fd = bench_connect();
		bench.overlay.links[0] = (struct ras_link_info){
			.peer = peer->record->id,
			.ready = past->ready,
			.silent_ns = 118000,
			.rtt_min_ns = RAS_NEVER,
		};
		bench.overlay.link_count = past->tried;
		for (size_t k = 0; k < 4 && past->kinds[k] != 0; k++)
			bench_add_event(past->kinds[k], "n3", RAS_CAUSE_RESET, 0);
		bench_say(fd, "WHY n3\n");
		answer = bench_hear(fd);
		bench_assert_narrow(answer);
		if (strstr(answer, past->words) == NULL)
			fail_msg("%s not in: %s", past->words, answer);
		close(fd);
	}
}

static void why_of_a_frozen_node_names_no_culprit(void **state) {
	struct ras_peer *peer = bench_peer("n3");
	int fd = bench_connect();
	const char *answer;

	(void)state;
	peer->state = RAS_DEAD;
	peer->cause = RAS_CAUSE_SILENT;
	bench_say(fd, "WHY n3\n");
	answer = bench_hear(fd);
	assert_non_null(strstr(answer, "n3 is dead: nothing was heard of it any more.\n"));
	assert_non_null(strstr(answer, "cannot be told"));
	close(fd);
}

static void why_of_a_departed_and_of_a_healthy_node_gives_no_alarm(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_peer("n3")->state = RAS_LEFT;
	bench_peer("n3")->cause = RAS_CAUSE_LEAVE;
	bench_say(fd, "WHY n3\n");
	answer = bench_hear(fd);
	assert_non_null(strstr(answer, "n3 has left.\n"));
	assert_non_null(strstr(answer, "stopped in good order"));
	bench_say(fd, "WHY n2\n");
	assert_non_null(strstr(bench_hear(fd), "n2 is alive.\n"));
	bench_say(fd, "WHY n1\n");
	assert_non_null(strstr(bench_hear(fd), "n1 is alive, and it is the node you ask.\n"));
	close(fd);
}

static void a_node_that_was_forgotten_is_told_from_one_that_never_was(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_add_event(RAS_EVENT_LEFT, "n7", RAS_CAUSE_LEAVE, 0);
	bench_add_event(RAS_EVENT_FORGOTTEN, "n7", RAS_CAUSE_NONE, 0);
	bench_say(fd, "WHY n7\n");
	assert_string_equal(
		bench_hear(fd), "ERROR: no node \"n7\" is known any more: the last of it was "
				"FORGOTTEN, 2026-11-18T11:06:40.000Z\n"
	);
	bench_say(fd, "WHY n8\n");
	assert_non_null(strstr(bench_hear(fd), "no node \"n8\" is known, "));
	close(fd);
}

static void events_go_on_from_a_number_and_count_what_they_left_out(void **state) {
	int fd = bench_connect();
	json_t *object;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++)
		bench_add_event(RAS_EVENT_LINK_UP, "n2", RAS_CAUSE_NONE, n);
	bench_say(fd, "SET FORMAT json\n");
	bench_hear(fd);
	object = bench_ask_json(fd, "EVENTS\n");
	assert_int_equal(json_array_size(json_object_get(object, "events")), 100);
	assert_int_equal(json_integer_value(json_object_get(object, "skipped")), 900);
	assert_int_equal(json_integer_value(json_object_get(object, "last")), 1000);
	json_decref(object);
	object = bench_ask_json(fd, "EVENTS 0\n");
	assert_int_equal(json_array_size(json_object_get(object, "events")), 1000);
	json_decref(object);
	object = bench_ask_json(fd, "EVENTS 997\n");
	assert_int_equal(json_array_size(json_object_get(object, "events")), 3);
	json_decref(object);
	// A number from before a restart.
	object = bench_ask_json(fd, "EVENTS 5000\n");
	assert_int_equal(json_array_size(json_object_get(object, "events")), 0);
	assert_int_equal(json_integer_value(json_object_get(object, "last")), 1000);
	json_decref(object);
	clock_advance(&bench.clock, 3600 * RAS_NS_PER_SEC);
	bench_add_event(RAS_EVENT_LINK_UP, "n2", RAS_CAUSE_NONE, 0);
	object = bench_ask_json(fd, "EVENTS 5m\n");
	assert_int_equal(json_array_size(json_object_get(object, "events")), 1);
	json_decref(object);
	close(fd);
}

// One device, and a pair with the last peer.
#define LONG_DEVICE "mlx5_a_name_of_31_bytes_12345678"

static uint32_t device_count(const struct fabric *fabric) {
	(void)fabric;
	return 1;
}

static void
device_at(const struct fabric *fabric, uint32_t n, struct fabric_device_view *ret_view) {
	(void)fabric;
	(void)n;
	*ret_view = (struct fabric_device_view){.name = LONG_DEVICE, .reason = ""};
}

static bool
pair_next(const struct fabric *fabric, uint32_t *cursor, struct fabric_pair_view *ret_view) {
	const struct overlay *overlay = &bench.overlay;
	uint64_t peer = overlay->records[overlay->peer_count - 1]->id;

	(void)fabric;
	*ret_view = (struct fabric_pair_view){.device = "d0", .pairing.key.peer = peer};
	return (*cursor)++ == 0;
}

static const struct fabric_calls played_fabric = {
	.device_count = device_count,
	.device_at = device_at,
	.pair_next = pair_next,
};

static void columns_are_whole_for_one_that_wants_them_so(void **state) {
	static const char name[] = "a-name-that-is-longer-than-any-column-of-a-table-of-nodes";
	static const struct {
		const char *line, *name;
	} questions[] = {
		{"PEERS\n", name}, {"HEALTH\n", name}, {"EVENTS\n", name},
		{"LINKS\n", name}, {"PAIRS\n", name},  {"DEVICES\n", LONG_DEVICE},
	};
	int fd = bench_connect();

	(void)state;
	bench_add_peer(name, "h", RAS_DEAD);
	bench_peer(name)->cause = RAS_CAUSE_GONE;
	bench_add_event(RAS_EVENT_DEAD, name, RAS_CAUSE_GONE, 0);
	bench.overlay.links[bench.overlay.link_count++] = (struct ras_link_info
	){.peer = ras_id(name, strlen(name)), .ready = true, .rtt_min_ns = RAS_NEVER};
	client_server_use_fabric(bench.server, &played_fabric, (struct fabric *)&bench);
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		bench_say(fd, "SET COLUMNS cut\n");
		assert_string_equal(bench_hear(fd), "OK\n");
		bench_say(fd, questions[n].line);
		assert_null(strstr(bench_hear(fd), questions[n].name));
		bench_say(fd, "set columns WHOLE\n");
		assert_string_equal(bench_hear(fd), "OK\n");
		bench_say(fd, questions[n].line);
		assert_non_null(strstr(bench_hear(fd), questions[n].name));
	}
	bench_say(fd, "SET COLUMNS 80\n");
	assert_string_equal(bench_hear(fd), "ERROR: SET COLUMNS takes cut or whole, not \"80\"\n");
	client_server_use_fabric(bench.server, NULL, NULL);
	close(fd);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(every_table_fits_and_ends_in_ok),
		BENCH_TEST(every_answer_in_json_is_one_line),
		BENCH_TEST(health_names_whom_the_roster_misses),
		BENCH_TEST(health_of_one_counts_nobody_else),
		BENCH_TEST(node_that_cannot_join_says_why),
		BENCH_TEST(health_tells_of_strangers_that_were_turned_away),
		BENCH_TEST(peers_lists_whom_the_roster_misses_behind_the_rest),
		BENCH_TEST(maintenance_of_one_that_the_roster_misses_says_what_to_do),
		BENCH_TEST(names_with_numbers_are_in_the_order_of_the_numbers),
		BENCH_TEST(one_who_was_forgotten_keeps_its_name_in_what_it_saw),
		BENCH_TEST(tables_of_rdma_say_in_words_that_there_is_no_device),
		BENCH_TEST(names_that_an_error_lists_are_in_the_order_of_their_numbers),
		BENCH_TEST(clock_that_is_apart_tells_by_how_much),
		BENCH_TEST(why_tells_who_reported_it_and_what_follows),
		BENCH_TEST(a_question_about_one_that_the_roster_misses_says_so),
		BENCH_TEST(health_of_one_that_the_roster_misses_is_unknown_and_drains_nobody),
		BENCH_TEST(why_of_one_that_the_roster_misses_tells_what_was_seen_of_it),
		BENCH_TEST(a_mistake_is_answered_with_the_value_and_what_is_allowed),
		BENCH_TEST(a_mistake_in_json_is_an_object_with_an_error),
		BENCH_TEST(a_name_is_suggested_among_a_thousand_and_none_is_listed),
		BENCH_TEST(the_worst_peers_come_first_and_those_of_one_state_can_be_asked_for),
		BENCH_TEST(health_never_says_more_than_the_overlay_knows),
		BENCH_TEST(why_tells_the_story_of_a_killed_node),
		BENCH_TEST(why_tells_of_the_link_that_was_when_there_is_none),
		BENCH_TEST(why_of_a_frozen_node_names_no_culprit),
		BENCH_TEST(why_of_a_departed_and_of_a_healthy_node_gives_no_alarm),
		BENCH_TEST(a_node_that_was_forgotten_is_told_from_one_that_never_was),
		BENCH_TEST(events_go_on_from_a_number_and_count_what_they_left_out),
		BENCH_TEST(columns_are_whole_for_one_that_wants_them_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
