// SPDX-License-Identifier: BSD-3-Clause
// Tocsin's own commands: their tables fit 100 columns, their JSON is one line, their errors say
// what is wrong and what is allowed.
#include "control/client/client_trouble.h"

#include <control/fabric.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const own[] = {
	"PEERS\n",    "PEERS dead\n", "LINKS\n",  "HEALTH\n", "HEALTH n3\n", "EVENTS\n",
	"EVENTS 2\n", "EVENTS 10m\n", "WHY n1\n", "WHY n2\n", "WHY n3\n",    "COUNTERS\n",
};

static void every_page_fits_and_ends_in_a_newline(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_make_trouble();
	for (size_t n = 0; n + 1 < COUNT_OF(own); n++) { // COUNTERS is for programs
		const char *answer;

		bench_say(fd, own[n]);
		answer = bench_shown(fd);
		bench_assert_narrow(answer, 80);
		assert_true(strlen(answer) > 3);
		assert_int_equal(answer[0] == '{' || answer[strlen(answer) - 1] != '\n', 0);
		if (getenv("CLIENT_SHOW") != NULL)
			printf("# %s%s\n", own[n], answer);
	}
	close(fd);
}

static void every_answer_in_json_is_one_line(void **state) {
	int fd = bench_connect_local();

	(void)state;
	bench_make_trouble();
	bench_say(fd, "SET FORMAT json\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	for (size_t n = 0; n < COUNT_OF(own); n++) {
		json_t *object = bench_ask_json(fd, own[n]);

		assert_null(json_object_get(object, "error"));
		json_decref(object);
	}
	close(fd);
}

// As nc does.
static void client_that_sets_no_format_is_answered_in_json(void **state) {
	int fd = bench_connect();
	json_t *object = bench_ask_json(fd, "PEERS\n");

	(void)state;
	assert_int_equal(json_array_size(json_object_get(object, "peers")), 3);
	json_decref(object);
	object = bench_ask_json(fd, "PING nobody\n");
	assert_true(json_is_string(json_object_get(object, "error")));
	json_decref(object);
	close(fd);
}

// As a tocsin of before does, also by an agent of before that it asks for another node.
static void client_that_wants_text_is_told_what_to_use(void **state) {
	static const char *const lines[] = {"PEERS\n", "NODE n2 PEERS\n"};
	static const char refusal[] =
		"ERROR: tocsind 0.1.0 answers PEERS in JSON only: use the tocsin of its version, "
		"or ask with --json\n";
	struct overlay *overlay = &bench.overlay;
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "SET FORMAT text\n");
	assert_string_equal(bench_hear(fd), "OK\n");
	for (size_t n = 0; n < COUNT_OF(lines); n++) {
		bench_say(fd, lines[n]);
		assert_string_equal(bench_hear(fd), refusal);
	}
	overlay->serve(overlay->serve_ctx, NULL, "text - PEERS");
	bench_turn();
	overlay->served[overlay->served_size] = '\0';
	assert_string_equal(overlay->served, refusal);
	// Orders are carried out.
	bench_say(fd, "MAINT n2\n");
	assert_int_equal(
		strncmp(bench_hear(fd), "ERROR: MAINT works only through the Unix socket", 47), 0
	);
	// The report that NCCL's tools ask for is text.
	bench_say(fd, "STATUS\n");
	assert_int_equal(strncmp(bench_hear(fd), "Tocsin version ", 15), 0);
	bench_answer(bench_answer_new());
	close(fd);
}

static void links_tell_bytes_a_second_since_they_began(void **state) {
	int fd = bench_connect();
	json_t *object, *rows;
	json_int_t most = 0;
	size_t n;

	(void)state;
	bench_make_trouble();
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "LINKS\n");
	rows = json_object_get(object, "links");
	for (n = 0; n < json_array_size(rows); n++) {
		const json_t *row = json_array_get(rows, n);
		json_int_t rate = json_integer_value(json_object_get(row, "sent_bytes_per_s"));

		most = rate > most ? rate : most;
	}
	assert_int_equal(most, 123456 / 4);
	json_decref(object);
	close(fd);
}

static void a_peer_in_json_has_its_id_beside_its_name(void **state) {
	int fd = bench_connect();
	json_t *object, *row;
	const char *name;
	char id[32];

	(void)state;
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "PEERS\n");
	row = json_array_get(json_object_get(object, "peers"), 0);
	name = json_string_value(json_object_get(row, "node"));
	snprintf(id, sizeof(id), "0x%016" PRIx64, ras_id(name, strlen(name)));
	assert_string_equal(json_string_value(json_object_get(row, "id")), id);
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
	answer = bench_shown(fd);
	bench_assert_narrow(answer, 80);
	assert_non_null(bench_find(answer, "0 left, 2 missing; view"));
	assert_non_null(bench_find(answer, "\nn5 missing -  "));
	bench_say(fd, "PEERS alive\n");
	assert_null(bench_find(bench_shown(fd), "missing"));
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
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
	assert_non_null(
		bench_find(bench_shown(fd), "does not; maintenance needs a node of the peer table")
	);
	close(fd);
}

static void names_with_numbers_are_in_the_order_of_the_numbers(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_add_peer("n10", "n10", RAS_ALIVE);
	bench_say(fd, "PEERS\n");
	answer = bench_shown(fd);
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
	answer = bench_shown(fd);
	assert_null(strchr(answer, '#'));
	assert_non_null(bench_find(answer, "seen by n7"));
	close(fd);
}

static void tables_of_rdma_say_in_words_that_there_is_no_device(void **state) {
	static const char *const questions[] = {"PAIRS\n"};
	int fd = bench_connect();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		bench_say(fd, questions[n]);
		assert_non_null(bench_find(
			bench_shown(fd), "\nThis agent measures with no RDMA device: "
					 "`tocsin devices --explain` says why.\n"
		));
	}
	close(fd);
}

static void names_that_an_error_lists_are_in_the_order_of_their_numbers(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_add_peer("n10", "n10", RAS_ALIVE);
	bench_add_peer("n9", "n9", RAS_ALIVE);
	bench_say(fd, "HEALTH somewhere\n");
	assert_non_null(bench_find(bench_shown(fd), "known are: n1, n2, n3, n9, n10"));
	close(fd);
}

static void clock_that_is_apart_tells_by_how_much(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_add_event(RAS_EVENT_CLOCK_OFFSET, "n3", RAS_CAUSE_NONE, 19 * RAS_NS_PER_SEC);
	bench_say(fd, "EVENTS\n");
	assert_non_null(bench_find(bench_shown(fd), "clocks differ by 19 s"));
	close(fd);
}

static void a_question_about_one_that_the_roster_misses_says_so(void **state) {
	int fd = bench_connect();

	(void)state;
	bench.overlay.missing[0] = "n4";
	bench_say(fd, "PING n4\n");
	assert_string_equal(
		bench_shown(fd),
		"ERROR: n4 is missing: [overlay] expect names it, but the peer table does not\n"
	);
	bench_add_event(RAS_EVENT_DEAD, "n4", RAS_CAUSE_GONE, 0);
	bench_add_event(RAS_EVENT_FORGOTTEN, "n4", RAS_CAUSE_NONE, 0);
	bench_say(fd, "PING n4\n");
	assert_non_null(bench_find(bench_shown(fd), "does not; its last event was FORGOTTEN, 2026-")
	);
	close(fd);
}

struct mistake {
	const char *line;
	const char *words[3];
};

static const struct mistake mistakes[] = {
	{"PEERS dea\n", {"\"dea\" is not a state", "did you mean \"dead\"?"}},
	{"PEERS green\n",
	 {"\"green\" is not a state", "alive, suspect, unreachable, dead, left, missing"}},
	{"LINKS now\n", {"LINKS takes no arguments", "\"now\""}},
	{"WHY\n", {"WHY needs the name of a node: WHY node"}},
	{"HEALTH nn3\n", {"no node \"nn3\" is known", "did you mean \"n3\"?"}},
	{"HEALTH somewhere\n", {"no node \"somewhere\" is known", "known are: n1, n2, n3"}},
	{"WHY n1 n2\n", {"WHY takes one node", "\"n2\""}},
	{"HEALTH n9x\n", {"no node \"n9x\""}},
	{"EVENTS 15:10\n", {"\"15:10\" is neither"}},
	{"EVENTS 5 6\n", {"\"6\" is neither"}},
	{"EVENTS yesterday\n", {"\"yesterday\" is neither", "90s, 10m, 2h or @"}},
	{"PING\n", {"PING needs the name of a node"}},
	{"NODE n2 FORGET n3\n",
	 {"\"FORGET n3\" cannot be sent to another node", "STATUS, ", "PAIRS"}},
	{"NODE n2 LOG debug\n", {", CHECKS, ", ", CONNS, ", ", MATRIX"}},
	{"NODE n2 NODE n3 PEERS\n", {"\"NODE n3 PEERS\" cannot be sent to another node"}},
	{"MAINT n2\n", {"MAINT takes on or off", "\"\""}},
	{"MAINT n2 maybe\n", {"MAINT takes on or off", "\"maybe\""}},
	{"REPORT n2\n", {"REPORT needs a reason", "160 bytes"}},
	{"REPORT n2 \xff\xfe\n", {"REPORT needs a reason", "UTF-8"}},
	{"REPORT n2 \xc2\x9b[J\n", {"REPORT needs a reason"}},
	{"MAINT n2 on 0 joe \xc2\x9b[J\n", {"the reason of MAINT is one line"}},
	{"LOG loud\n", {"\"loud\" is not a log level", "error, warn, info or debug"}},
};

static void a_mistake_is_answered_with_the_value_and_what_is_allowed(void **state) {
	int fd = bench_connect_local();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(mistakes); n++) {
		const char *answer;

		bench_say(fd, mistakes[n].line);
		answer = bench_shown(fd);
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
	bench_shown(fd);
	for (size_t n = 0; n < COUNT_OF(mistakes); n++) {
		json_t *object = bench_ask_json(fd, mistakes[n].line);

		assert_true(json_is_string(json_object_get(object, "error")));
		json_decref(object);
	}
	close(fd);
}

static void an_answer_has_the_number_of_its_schema(void **state) {
	static const char *const questions[] = {
		"PEERS\n", "LINKS\n",  "PAIRS\n",  "DEVICES\n",	 "HEALTH\n",
		"PATHS\n", "EVENTS\n", "CHECKS\n", "COUNTERS\n", "WHY n2\n",
	};
	int fd = bench_connect_local();

	(void)state;
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		json_t *object = bench_ask_json(fd, questions[n]);

		if (json_integer_value(json_object_get(object, "schema")) != 2)
			fail_msg("%s", questions[n]);
		json_decref(object);
	}
	close(fd);
}

static void number_of_an_event_is_a_duration_or_something_else(void **state) {
	static const struct {
		enum ras_event_kind kind;
		enum ras_cause cause;
		const char *key, *null_key;
	} cases[] = {
		{RAS_EVENT_LINK_UP, RAS_CAUSE_NONE, "duration_ns", "value"},
		{RAS_EVENT_SUSPECT, RAS_CAUSE_SILENT, "duration_ns", "value"},
		{RAS_EVENT_FLAPPING, RAS_CAUSE_DEATH, "value", "duration_ns"},
		{RAS_EVENT_LINK_UP, RAS_CAUSE_VERSION, "value", "duration_ns"},
	};
	int fd = bench_connect_local();
	json_t *object, *row;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++)
		bench_add_event(cases[n].kind, "n2", cases[n].cause, 4711);
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	object = bench_ask_json(fd, "EVENTS\n");
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		row = json_array_get(json_object_get(object, "events"), n);
		assert_int_equal(json_integer_value(json_object_get(row, cases[n].key)), 4711);
		assert_true(json_is_null(json_object_get(row, cases[n].null_key)));
	}
	json_decref(object);
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
	bench_say(fd, "HEALTH nodee0501\n");
	assert_non_null(bench_find(bench_shown(fd), "did you mean \"node0501\"?"));
	bench_say(fd, "HEALTH galaxy\n");
	assert_string_equal(
		bench_shown(fd), "ERROR: no node \"galaxy\" is known, and none of the 1003 nodes "
				 "that `tocsin peers` lists has a similar name\n"
	);
	close(fd);
}

static void the_worst_peers_come_first_and_those_of_one_state_can_be_asked_for(void **state) {
	int fd = bench_connect();
	json_t *object, *peers;

	(void)state;
	bench_make_trouble();
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
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

static void events_go_on_from_a_number_and_count_what_they_left_out(void **state) {
	int fd = bench_connect();
	json_t *object;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++)
		bench_add_event(RAS_EVENT_LINK_UP, "n2", RAS_CAUSE_NONE, n);
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
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

// Return the sequence numbers of the events of an answer as text, such as "0 1 2".
static const char *events_asked(int fd, const char *question) {
	json_t *object = bench_ask_json(fd, question);
	const json_t *event;
	static char text[128];
	size_t n, used = 0;

	text[0] = '\0';
	json_array_foreach(json_object_get(object, "events"), n, event) used += (size_t)snprintf(
		text + used, sizeof(text) - used, "%s%lld", n > 0 ? " " : "",
		json_integer_value(json_object_get(event, "sequence"))
	);
	json_decref(object);
	return text;
}

// Two events of an earlier start, an hour and half an hour ago, and one now. Then a minute passes,
// and one more is added.
static void events_between_two_times_are_shown_with_those_of_earlier_starts(void **state) {
	int64_t now_ns = overlay_realtime_ns(&bench.overlay, overlay_now_ns(&bench.overlay));
	int fd = bench_connect();
	char question[96];

	(void)state;
	bench.earlier_count = 2;
	for (int64_t n = 0; n < 2; n++)
		bench.earlier[n] = (struct state_event
		){.realtime_ns = now_ns - (2 - n) * 1800 * (int64_t)RAS_NS_PER_SEC};
	bench_add_event(RAS_EVENT_LINK_UP, "n2", RAS_CAUSE_NONE, 0);
	clock_advance(&bench.clock, 60 * RAS_NS_PER_SEC);
	bench_add_event(RAS_EVENT_LINK_UP, "n2", RAS_CAUSE_NONE, 0);
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	assert_string_equal(events_asked(fd, "EVENTS 2h\n"), "0 0 1 2");
	assert_string_equal(events_asked(fd, "EVENTS 40m\n"), "0 1 2");
	assert_string_equal(events_asked(fd, "EVENTS 2h 30s\n"), "0 0 1");
	assert_string_equal(events_asked(fd, "EVENTS @0 45m\n"), "0");
	assert_string_equal(events_asked(fd, "EVENTS 1 30s\n"), "");
	snprintf(
		question, sizeof(question), "EVENTS @%" PRId64 " @%" PRId64 "\n",
		now_ns / (int64_t)RAS_NS_PER_SEC - 1, now_ns / (int64_t)RAS_NS_PER_SEC + 1
	);
	assert_string_equal(events_asked(fd, question), "1");
	// Those of earlier starts have no numbers to go on from.
	assert_string_equal(events_asked(fd, "EVENTS\n"), "1 2");
	assert_string_equal(events_asked(fd, "EVENTS 0\n"), "1 2");
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

static void columns_are_whole_where_no_terminal_is(void **state) {
	static const char name[] = "a-name-that-is-longer-than-any-column-of-a-table-of-nodes";
	static const struct {
		const char *line, *name;
	} questions[] = {
		{"PEERS\n", name}, {"HEALTH\n", name}, {"EVENTS\n", name},
		{"LINKS\n", name}, {"PAIRS\n", name},
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
		bench.whole = false;
		bench_say(fd, questions[n].line);
		assert_null(bench_find(bench_shown(fd), questions[n].name));
		bench.whole = true;
		bench_say(fd, questions[n].line);
		assert_non_null(bench_find(bench_shown(fd), questions[n].name));
	}
	client_server_use_fabric(bench.server, NULL, NULL);
	close(fd);
}

UNIT_GROUP(client_tables) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(every_page_fits_and_ends_in_a_newline),
		BENCH_TEST(every_answer_in_json_is_one_line),
		BENCH_TEST(client_that_sets_no_format_is_answered_in_json),
		BENCH_TEST(client_that_wants_text_is_told_what_to_use),
		BENCH_TEST(links_tell_bytes_a_second_since_they_began),
		BENCH_TEST(a_peer_in_json_has_its_id_beside_its_name),
		BENCH_TEST(peers_lists_whom_the_roster_misses_behind_the_rest),
		BENCH_TEST(maintenance_of_one_that_the_roster_misses_says_what_to_do),
		BENCH_TEST(names_with_numbers_are_in_the_order_of_the_numbers),
		BENCH_TEST(one_who_was_forgotten_keeps_its_name_in_what_it_saw),
		BENCH_TEST(tables_of_rdma_say_in_words_that_there_is_no_device),
		BENCH_TEST(names_that_an_error_lists_are_in_the_order_of_their_numbers),
		BENCH_TEST(clock_that_is_apart_tells_by_how_much),
		BENCH_TEST(a_question_about_one_that_the_roster_misses_says_so),
		BENCH_TEST(a_mistake_is_answered_with_the_value_and_what_is_allowed),
		BENCH_TEST(a_mistake_in_json_is_an_object_with_an_error),
		BENCH_TEST(an_answer_has_the_number_of_its_schema),
		BENCH_TEST(number_of_an_event_is_a_duration_or_something_else),
		BENCH_TEST(a_name_is_suggested_among_a_thousand_and_none_is_listed),
		BENCH_TEST(the_worst_peers_come_first_and_those_of_one_state_can_be_asked_for),
		BENCH_TEST(events_go_on_from_a_number_and_count_what_they_left_out),
		BENCH_TEST(events_between_two_times_are_shown_with_those_of_earlier_starts),
		BENCH_TEST(columns_are_whole_where_no_terminal_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
