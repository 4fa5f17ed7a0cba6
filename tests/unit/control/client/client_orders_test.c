// SPDX-License-Identifier: BSD-3-Clause
// Commands that reach beyond this node's table: orders and who may give them, pings, and questions
// to and from other nodes.
#include "control/client/client_bench.h"

#include <lib/log.h>
#include <ras/relay.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_ping_tells_the_round_trip_or_who_refused(void **state) {
	struct ras_relay_report report = {.round_trip_ns = 830000, .hops = 3, .tries = 1};
	int fd = bench_connect();

	(void)state;
	report.destination = bench_peer("n3")->record->id;
	bench_say(fd, "PING n3\n");
	assert_string_equal(bench_shown(fd), "");
	bench.overlay.ping->ended(bench.overlay.ping, &report);
	assert_string_equal(bench_shown(fd), "n3 answers: 830 us there and back, 3 hops\n");
	bench_say(fd, "PING n3\n");
	bench_turn();
	report.outcome = RAS_RELAY_OUTCOME_REFUSED;
	report.reason = RAS_RELAY_NO_ROUTE;
	report.refuser = bench_peer("n2")->record->id;
	bench.overlay.ping->ended(bench.overlay.ping, &report);
	assert_string_equal(
		bench_shown(fd),
		"ERROR: n3 was not reached: n2 reports no-route after 3 hops, 1 tries in 830 us\n"
	);
	bench_say(fd, "PING n3\n");
	bench_turn();
	close(fd);
	bench_turn();
	assert_int_equal(
		bench.overlay.ping_cancelled, 0
	); // TCP: not known before something is sent
}

static void a_ping_whose_asker_goes_away_is_cancelled(void **state) {
	int fd = bench_connect_local();

	(void)state;
	bench_say(fd, "PING n3\n");
	bench_turn();
	close(fd);
	bench_turn();
	assert_int_equal(bench.overlay.ping_cancelled, 1);
}

static void orders_are_for_the_privileged_on_the_unix_socket_only(void **state) {
	static const char *const orders[] = {
		"REPORT n2 broken\n", "MAINT n2 on\n", "FORGET n2\n", "LOG info\n",
		"LEVEL kernels 60\n"};
	int tcp = bench_connect(), local = bench_connect_local();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(orders); n++) {
		bench_say(tcp, orders[n]);
		assert_non_null(bench_find(
			bench_shown(tcp),
			"works only through the Unix socket: TCP does not tell the agent who you "
			"are"
		));
		assert_string_equal(bench.overlay.order, "");
	}
	assert_int_equal(client_counters(bench.server)->lines_denied, COUNT_OF(orders));
	bench_say(local, orders[0]);
	assert_string_equal(bench_shown(local), "OK\n");
	assert_string_equal(bench.overlay.order, "report broken");
	bench_say(local, orders[1]);
	assert_string_equal(bench_shown(local), "OK\n");
	assert_string_equal(bench.overlay.order, "maint 1");
	bench_say(local, orders[2]);
	assert_string_equal(bench_shown(local), "OK\n");
	assert_string_equal(bench.overlay.order, "forget");
	bench_say(local, orders[3]);
	assert_string_equal(bench_shown(local), "OK\n");
	close(tcp);
	close(local);
}

static char level_asked[128];
static int level_answer;

static int
take_level(struct jobhost *jobhost, const char *level, uint64_t for_ns, const char *job) {
	assert_null(jobhost);
	snprintf(
		level_asked, sizeof(level_asked), "%s for %" PRIu64 " s of \"%s\"", level,
		for_ns / 1000000000, job
	);
	return level_answer;
}

static void a_level_is_passed_on_or_refused_with_what_is_allowed(void **state) {
	static const struct {
		const char *line, *asked;
		int answer;
		const char *words;
	} cases[] = {
		{"LEVEL kernels 60\n", "kernels for 60 s of \"\"", 0, "OK\n"},
		{"LEVEL sampled 86400 slurm:1.0\n", "sampled for 86400 s of \"slurm:1.0\"", 0,
		 "OK\n"},
		{"LEVEL\n", "", 0, "LEVEL needs a level and a time in seconds"},
		{"LEVEL kernels\n", "", 0, "LEVEL level seconds [job], 1 to 86400"},
		{"LEVEL kernels 0\n", "", 0, "1 to 86400"},
		{"LEVEL kernels 86401 1\n", "", 0, "1 to 86400"},
		{"LEVEL a\x1b"
		 "b 1\n",
		 "a\x1b"
		 "b for 1 s of \"\"",
		 -EINVAL, "is not a level; choose default,"},
		{"LEVEL kernels 1 x\n", "kernels for 1 s of \"x\"", -ENOSPC, "64 other jobs"},
		{"LEVEL kernels 1 x\n", "kernels for 1 s of \"x\"", -ENAMETOOLONG, "too long"},
	};
	int fd;

	(void)state;
	bench.config.ask_level = take_level;
	bench_restart();
	fd = bench_connect_local();
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		const char *answer;

		level_asked[0] = '\0';
		level_answer = cases[n].answer;
		bench_say(fd, cases[n].line);
		answer = bench_shown(fd);
		if (strstr(answer, cases[n].words) == NULL || strchr(answer, '\x1b') != NULL)
			fail_msg("%s: %s", cases[n].line, answer);
		assert_string_equal(level_asked, cases[n].asked);
	}
	bench.config.ask_level = NULL;
	bench_restart();
	close(fd);
	fd = bench_connect_local();
	bench_say(fd, "LEVEL kernels 60\n");
	assert_non_null(bench_find(bench_shown(fd), "this agent serves no jobs"));
	close(fd);
}

static void the_log_names_a_node_that_was_just_forgotten(void **state) {
	int file = memfd_create("log", MFD_CLOEXEC);
	struct log_sink sink = {
		.fd = file, .monotonic_ns = clock_monotonic_ns, .realtime_ns = clock_monotonic_ns};
	int fd = bench_connect_local();
	char said[512] = "";

	(void)state;
	log_set_sink(&sink);
	bench_say(fd, "FORGET n2\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	log_set_sink(NULL);
	assert_true(pread(file, said, sizeof(said) - 1, 0) > 0);
	if (strstr(said, "client_order order=forget node=n2 ") == NULL)
		fail_msg("%s", said);
	close(file);
	close(fd);
}

static void names_that_an_error_lists_are_made_fit_to_be_shown(void **state) {
	int fd = bench_connect_local();
	const char *answer;

	(void)state;
	bench_add_peer("z\nOK\n\x1b[2J", "h", RAS_ALIVE);
	bench_say(fd, "HEALTH nobody-at-all\n");
	answer = bench_shown(fd);
	if (strchr(answer, '\n') != answer + strlen(answer) - 1 || strchr(answer, '\x1b') != NULL)
		fail_msg("%s", answer);
	assert_non_null(bench_find(answer, "z?OK??[2J"));
	bench_say(fd, "SET FORMAT json\nHEALTH nobody-at-all\n");
	answer = bench_shown(fd);
	assert_non_null(bench_find(answer, "{\"error\":"));
	close(fd);
}

static void another_user_is_told_who_may_give_orders(void **state) {
	const char *answer;
	int fd = -1;

	(void)state;
	if (geteuid() != 0)
		skip();
	bench.config.has_group = true;
	bench.config.group = 4711;
	bench_restart();
	assert_int_equal(chmod(bench.directory, 0755), 0);
	assert_int_equal(seteuid(65534), 0);
	fd = bench_connect_local();
	assert_int_equal(seteuid(0), 0);
	bench_say(fd, "FORGET n2\n");
	answer = bench_shown(fd);
	assert_string_equal(
		answer, "ERROR: `tocsin forget` is for root and the agent's own user and members "
			"of group 4711; you are uid 65534\n"
	);
	assert_string_equal(bench.overlay.order, "");
	close(fd);
}

static void a_name_that_would_forge_a_line_is_shown_harmless(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_add_peer("x\nOK\n\x1b[2J", "h\nh", RAS_DEAD);
	bench_add_event(RAS_EVENT_DEAD, "x\nOK\n\x1b[2J", RAS_CAUSE_GONE, 0);
	bench_say(fd, "PEERS\n");
	answer = bench_shown(fd);
	assert_non_null(bench_find(answer, "\nx\\nOK\\n\\x1b[2J "));
	bench_say(fd, "EVENTS\n");
	answer = bench_shown(fd);
	assert_null(strchr(answer, '\x1b'));
	assert_null(bench_find(answer, "\nOK"));
	close(fd);
}

static void forgetting_the_remembered_is_an_order_that_names_no_node(void **state) {
	int tcp = bench_connect(), local = bench_connect_local();

	(void)state;
	bench_say(tcp, "FORGET --remembered\n");
	assert_non_null(bench_find(bench_shown(tcp), "works only through the Unix socket"));
	assert_int_equal(bench.overlay.remembered_forgotten, 0);
	bench_say(local, "FORGET --remembered\n");
	assert_string_equal(bench_shown(local), "OK\n");
	assert_int_equal(bench.overlay.remembered_forgotten, 1);
	assert_string_equal(bench.overlay.order, "");
	close(tcp);
	close(local);
}

static void an_order_that_fails_says_why(void **state) {
	int fd = bench_connect_local();

	(void)state;
	bench.overlay.order_err = -EBUSY;
	bench_say(fd, "FORGET n2\n");
	assert_string_equal(
		bench_shown(fd), "ERROR: n2 is alive: only a node that is dead, unreachable or has "
				 "left can be forgotten\n"
	);
	close(fd);
}

static void another_node_is_asked_and_its_answer_passed_on(void **state) {
	int fd = bench_connect();
	struct overlay_call *call;

	(void)state;
	bench_say(fd, "SET FORMAT json\nTIMEOUT 7\nNODE n3 PEERS dead\n");
	assert_string_equal(bench_shown(fd), "OK\nOK\n");
	assert_string_equal(bench.overlay.call_line, "json 7 PEERS dead");
	call = bench.overlay.call;
	assert_int_equal(call->piece(call, "{\"peers\":", 9), 0);
	assert_string_equal(bench_shown(fd), "{\"peers\":");
	assert_int_equal(call->piece(call, "[]}\n", 4), 0);
	call->ended(call, 0);
	assert_string_equal(bench_shown(fd), "[]}\n");
	bench_say(fd, "TIMEOUT 3\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	close(fd);
}

static void an_answer_of_another_node_that_breaks_off_says_so(void **state) {
	int fd = bench_connect();
	struct overlay_call *call;

	(void)state;
	bench_say(fd, "NODE n3 PEERS\n");
	bench_turn();
	assert_string_equal(bench.overlay.call_line, "json - PEERS");
	call = bench.overlay.call;
	assert_int_equal(call->piece(call, "half a li", 9), 0);
	call->ended(call, -ETIMEDOUT);
	assert_string_equal(
		bench_shown(fd), "half a li\n{\"error\":\"n3 did not answer in time\"}\n"
	);
	bench_say(fd, "NODE n3 PEERS\n");
	bench_turn();
	call = bench.overlay.call;
	call->ended(call, -65535); // no errno of this machine's
	assert_string_equal(bench_shown(fd), "ERROR: n3 sent an invalid answer\n");
	bench.overlay.call_err = -EHOSTDOWN;
	bench_say(fd, "NODE n3 PEERS\n");
	assert_string_equal(
		bench_shown(fd),
		"ERROR: n3 is down; `tocsin why` shows what this agent knows of it\n"
	);
	close(fd);
}

static void a_reader_that_is_slower_than_another_node_holds_it_back(void **state) {
	static char piece[65536];
	int fd = bench_connect_local();
	struct overlay_call *call;
	uint32_t taken = 0;

	(void)state;
	bench_say(fd, "NODE n3 PEERS\n");
	bench_turn();
	call = bench.overlay.call;
	memset(piece, 'x', sizeof(piece));
	while (call->piece(call, piece, sizeof(piece)) == 0) {
		taken++;
		assert_true(taken < 64);
	}
	assert_int_equal(bench.overlay.call_readies, 0);
	while (bench.overlay.call_readies == 0)
		assert_true(strlen(bench_shown(fd)) > 0);
	call->ended(call, 0);
	bench_turn();
	close(fd);
}

static void another_node_s_question_is_answered_as_a_client_s(void **state) {
	struct overlay *overlay = &bench.overlay;

	(void)state;
	overlay->serve(overlay->serve_ctx, NULL, "json - PEERS");
	bench_turn();
	assert_true(overlay->served_ended);
	assert_int_equal(overlay->served_err, 0);
	assert_int_equal(strncmp(overlay->served, "{\"view\":12,", 11), 0);
	assert_string_equal(overlay->served + overlay->served_size - 3, "]}\n");
}

static void another_node_may_not_give_orders_nor_ask_on(void **state) {
	static const char *const lines[] = {
		"json - FORGET n2",
		"json - NODE n2 PEERS",
		"json - MONITOR",
		"json - SET FORMAT json",
	};
	struct overlay *overlay = &bench.overlay;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(lines); n++) {
		overlay->served_size = 0;
		overlay->served_ended = false;
		overlay->serve(overlay->serve_ctx, NULL, lines[n]);
		bench_turn();
		assert_true(overlay->served_ended);
		assert_non_null(bench_find(overlay->served, "is not available to other nodes\"}\n")
		);
	}
	overlay->served_ended = false;
	overlay->serve(overlay->serve_ctx, NULL, "yaml - PEERS");
	assert_true(overlay->served_ended);
	assert_int_equal(overlay->served_err, -EBADMSG);
	assert_string_equal(overlay->order, "");
}

static void what_another_node_asked_for_ends_when_it_waits_no_more(void **state) {
	struct overlay *overlay = &bench.overlay;

	(void)state;
	overlay->served_life_ns = 3 * RAS_NS_PER_SEC;
	overlay->serve(overlay->serve_ctx, NULL, "json - PING n2");
	clock_advance(&bench.clock, 2 * RAS_NS_PER_SEC);
	bench_turn();
	assert_false(overlay->served_ended);
	clock_advance(&bench.clock, 2 * RAS_NS_PER_SEC);
	bench_turn();
	assert_true(overlay->served_ended);
	assert_int_equal(overlay->served_err, -ETIMEDOUT);
	assert_int_equal(overlay->ping_cancelled, 1);
}

static void an_agent_does_not_report_itself(void **state) {
	int fd = bench_connect_local();

	(void)state;
	bench_say(fd, "REPORT n1 broken\n");
	assert_string_equal(bench_shown(fd), "ERROR: n1 is this agent: it cannot report itself\n");
	assert_string_equal(bench.overlay.order, "");
	close(fd);
}

static void the_reason_of_a_report_is_told_whole_by_events_and_by_why(void **state) {
	static const char *const questions[] = {"EVENTS\n", "WHY n2\n"};
	static const char reason[] =
		"the switch's port counts symbol errors \x1b[2J since the cable was moved, and "
		"two jobs on it have seen timeouts";
	int fd = bench_connect_local();
	const json_t *event;
	json_t *answer;

	(void)state;
	bench_add_event(RAS_EVENT_REPORTED, "n2", RAS_CAUSE_REPORT, 0);
	bench.overlay.text = reason;
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		const char *text;

		bench_say(fd, questions[n]);
		text = bench_shown(fd);
		assert_non_null(bench_find(text, " REPORTED n2 report, by uid 0"));
		assert_non_null(
			bench_find(text, "\n        the switch's port counts symbol errors ")
		);
		assert_non_null(bench_find(text, "seen timeouts\n"));
	}
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	answer = bench_ask_json(fd, "WHY n2\n");
	event = json_array_get(json_object_get(answer, "events"), 0);
	assert_string_equal(json_string_value(json_object_get(event, "text")), reason);
	json_decref(answer);
	close(fd);
}

static void maintenance_is_ordered_with_reason_author_and_end(void **state) {
	static const struct {
		const char *line, *error;
	} cases[] = {
		{"MAINT n2 on 31622401 joe\n", "takes a time in seconds, 0 to 31622400"},
		{"MAINT n2 on -1 joe\n", "takes a time in seconds"},
		{"MAINT n2 on 7200\n", "and a user name"},
		{"MAINT n2 on 0 0123456789012345678901234567890123\n", "at most 32 bytes"},
		{"MAINT n2 on 0 joe \xff\n", "is one line of UTF-8 text"},
		{"MAINT n2 on 0 joe \x1b[2J\n", "is one line of UTF-8 text"},
		{"MAINT n2 off 0 joe\n", "takes on or off"},
	};
	const struct overlay_maintenance_order *order = &bench.overlay.maintenance;
	int fd = bench_connect_local();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bench_say(fd, cases[n].line);
		assert_non_null(bench_find(bench_shown(fd), cases[n].error));
		assert_string_equal(bench.overlay.order, "");
	}
	bench_say(fd, "MAINT n2 on 7200 joe RMA 123, second disk\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	assert_string_equal(order->reason, "RMA 123, second disk");
	assert_string_equal(order->user, "joe");
	assert_int_equal(order->for_ns, 7200 * RAS_NS_PER_SEC);
	assert_int_equal(order->uid, 0);
	bench_say(fd, "MAINT n2 ON 0 -\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	assert_string_equal(order->user, "");
	assert_true(order->for_ns == RAS_NEVER);
	bench.overlay.order_err = -EOVERFLOW;
	bench_say(fd, "MAINT n2 on\n");
	assert_non_null(bench_find(bench_shown(fd), "`tocsin forget n2` after its agent has ended")
	);
	bench.overlay.order_err = -ENOSPC;
	bench_say(fd, "MAINT n2 on\n");
	assert_non_null(bench_find(bench_shown(fd), "2048 nodes are in maintenance"));
	close(fd);
}

UNIT_GROUP(client_orders) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(a_ping_tells_the_round_trip_or_who_refused),
		BENCH_TEST(a_ping_whose_asker_goes_away_is_cancelled),
		BENCH_TEST(orders_are_for_the_privileged_on_the_unix_socket_only),
		BENCH_TEST(a_level_is_passed_on_or_refused_with_what_is_allowed),
		BENCH_TEST(the_log_names_a_node_that_was_just_forgotten),
		BENCH_TEST(names_that_an_error_lists_are_made_fit_to_be_shown),
		BENCH_TEST(another_user_is_told_who_may_give_orders),
		BENCH_TEST(a_name_that_would_forge_a_line_is_shown_harmless),
		BENCH_TEST(an_order_that_fails_says_why),
		BENCH_TEST(maintenance_is_ordered_with_reason_author_and_end),
		BENCH_TEST(forgetting_the_remembered_is_an_order_that_names_no_node),
		BENCH_TEST(an_agent_does_not_report_itself),
		BENCH_TEST(the_reason_of_a_report_is_told_whole_by_events_and_by_why),
		BENCH_TEST(another_node_is_asked_and_its_answer_passed_on),
		BENCH_TEST(an_answer_of_another_node_that_breaks_off_says_so),
		BENCH_TEST(a_reader_that_is_slower_than_another_node_holds_it_back),
		BENCH_TEST(another_node_s_question_is_answered_as_a_client_s),
		BENCH_TEST(another_node_may_not_give_orders_nor_ask_on),
		BENCH_TEST(what_another_node_asked_for_ends_when_it_waits_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
