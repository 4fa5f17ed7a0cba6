// SPDX-License-Identifier: BSD-3-Clause
// MONITOR: events as they come, under NCCL's names, and what a slow one is told.
#include "control/client/client_bench.h"

#include <lib/stream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int begin_monitor(const char *line) {
	int fd = bench_connect_local();

	bench_say(fd, line);
	assert_string_equal(bench_hear(fd), "OK\n");
	return fd;
}

struct shown {
	enum ras_event_kind kind;
	enum ras_cause cause;
	uint64_t value;
	bool lifecycle;
	const char *text; // behind the time
};

#define N2 "Process 101 on node 10.0.0.1 (n2) managing device mlx5_0 "

static const struct shown shown[] = {
	{RAS_EVENT_JOINED, RAS_CAUSE_NONE, 0, true, "PEER_NEW: " N2},
	{RAS_EVENT_REJOINED, RAS_CAUSE_NONE, 0, true, "PEER_NEW: " N2},
	{RAS_EVENT_DEAD, RAS_CAUSE_GONE, 0, true, "PEER_DEAD: " N2 "gone"},
	{RAS_EVENT_LEFT, RAS_CAUSE_LEAVE, 0, true, "PEER_DISCONNECTED: " N2 "leave"},
	{RAS_EVENT_SUSPECT, RAS_CAUSE_SILENT, 0, false, "PEER_UNRESPONSIVE: " N2 "silent"},
	{RAS_EVENT_UNREACHABLE, RAS_CAUSE_SILENT, 0, false, "PEER_UNRESPONSIVE: " N2 "silent"},
	{RAS_EVENT_ALIVE, RAS_CAUSE_NONE, 0, false, "PEER_RECOVERED: " N2},
	{RAS_EVENT_REFUTED, RAS_CAUSE_NONE, 0, false, "PEER_RECOVERED: " N2},
	{RAS_EVENT_LINK_UP, RAS_CAUSE_NONE, 5, false,
	 "PEER_CONNECTED: " N2 "connection established successfully"},
	{RAS_EVENT_LINK_RECOVERED, RAS_CAUSE_NONE, 5, false,
	 "PEER_RECOVERED: " N2 "peer responding again"},
	{RAS_EVENT_LINK_DELAYED, RAS_CAUSE_SILENT, 5 * RAS_NS_PER_SEC, false,
	 "PEER_UNRESPONSIVE: " N2 "peer not responding for 5s (keepalive warning)"},
	{RAS_EVENT_LINK_DOWN, RAS_CAUSE_SILENT, 0, false, "PEER_KEEPALIVE_TIMEOUT: " N2 "silent"},
	{RAS_EVENT_LINK_DOWN, RAS_CAUSE_TIMEOUT, 0, false, "PEER_INIT_TIMEOUT: " N2 "timeout"},
	{RAS_EVENT_LINK_DOWN, RAS_CAUSE_STUCK, 0, false, "PEER_SEND_STUCK: " N2 "stuck"},
	{RAS_EVENT_LINK_DOWN, RAS_CAUSE_REFUSED, 0, false, "PEER_RETRY: " N2 "refused"},
	{RAS_EVENT_LINK_DOWN, RAS_CAUSE_DEATH, 0, false, "PEER_TIMEOUT_DEAD: " N2 "death"},
	{RAS_EVENT_LINK_DOWN, RAS_CAUSE_RESET, 0, false, "PEER_DISCONNECTED: " N2 "reset"},
	{RAS_EVENT_LINK_FALLBACK, RAS_CAUSE_NONE, 0, false,
	 "PEER_CONNECTING: " N2 "fallback of next"},
	{RAS_EVENT_LINK_STUCK, RAS_CAUSE_NONE, 5 * RAS_NS_PER_SEC, false,
	 "PEER_SEND_STUCK: " N2 "send queue stalled for 5.0 s"},
	{RAS_EVENT_MAINT, RAS_CAUSE_NONE, 1, false, "MAINT: " N2 "on"},
};

static void check_shown(int fd, const struct shown *row) {
	const char *text = bench_hear(fd);

	assert_true(text[0] == '[' && text[20] == ']');
	assert_true(text[11] == ' ' && text[5] == '-' && text[14] == ':');
	if (strncmp(text + 22, row->text, strlen(row->text)) != 0)
		fail_msg("%s instead of %s", text, row->text);
	assert_string_equal(text + 22 + strlen(row->text), "\n");
}

static void each_event_is_told_under_nccl_s_name_to_those_who_want_its_group(void **state) {
	int lives = begin_monitor("MONITOR\n"), traces = begin_monitor("MONITOR trace\n");
	int all = begin_monitor("MONITOR all\n");

	(void)state;
	for (size_t n = 0; n < COUNT_OF(shown); n++) {
		const struct shown *row = &shown[n];

		bench_add_event(row->kind, "n2", row->cause, row->value);
		check_shown(all, row);
		check_shown(row->lifecycle ? lives : traces, row);
		assert_string_equal(bench_hear(row->lifecycle ? traces : lives), "");
	}
	close(lives);
	close(traces);
	close(all);
}

static void an_event_about_nobody_or_somebody_forgotten_is_told_without_a_process(void **state) {
	int fd = begin_monitor("MONITOR all\n");

	(void)state;
	bench_add_event(RAS_EVENT_BRAKE_ON, NULL, RAS_CAUSE_NONE, 17);
	assert_string_equal(bench_hear(fd) + 22, "BRAKE_ON: 17 silent peers\n");
	bench_add_event(RAS_EVENT_FORGOTTEN, "n77", RAS_CAUSE_NONE, 0);
	assert_string_equal(bench_hear(fd) + 22, "FORGOTTEN: n77 \n");
	close(fd);
}

static void in_json_an_event_is_an_object_over_several_lines(void **state) {
	int fd = bench_connect();
	const char *text;
	json_t *object, *peer;

	(void)state;
	bench_say(fd, "SET FORMAT json\nMONITOR all\n");
	assert_string_equal(bench_hear(fd), "OK\nOK\n");
	bench_add_event(RAS_EVENT_DEAD, "n2", RAS_CAUSE_GONE, 0);
	text = bench_hear(fd);
	assert_int_equal(strncmp(text, "{\n  \"timestamp\": \"", 18), 0);
	object = json_loads(text, 0, NULL);
	assert_non_null(object);
	assert_string_equal(json_string_value(json_object_get(object, "group")), "LIFECYCLE");
	assert_string_equal(json_string_value(json_object_get(object, "event")), "PEER_DEAD");
	peer = json_object_get(object, "peer");
	assert_string_equal(json_string_value(json_object_get(peer, "host")), "10.0.0.1");
	assert_int_equal(json_integer_value(json_object_get(peer, "pid")), 101);
	assert_true(json_is_array(json_object_get(peer, "cuda_devs")));
	json_decref(object);
	close(fd);
}

static void the_longest_reason_of_a_report_is_told_whole(void **state) {
	char reason[161] = "", details[200];
	int fd = bench_connect();
	json_t *object;

	(void)state;
	for (size_t n = 0; n < 160; n += 2)
		memcpy(reason + n, "\xc3\xa9", 2);
	snprintf(details, sizeof(details), "report, by uid 0: %s", reason);
	bench_say(fd, "SET FORMAT json\nMONITOR all\n");
	assert_string_equal(bench_hear(fd), "OK\nOK\n");
	bench.overlay.text = reason;
	bench_add_event(RAS_EVENT_REPORTED, "n2", RAS_CAUSE_REPORT, 0);
	object = json_loads(bench_hear(fd), 0, NULL);
	assert_non_null(object);
	assert_string_equal(json_string_value(json_object_get(object, "details")), details);
	json_decref(object);
	close(fd);
}

static void what_happened_before_is_not_told(void **state) {
	int fd;

	(void)state;
	for (uint32_t n = 0; n < 200; n++)
		bench_add_event(RAS_EVENT_JOINED, "n2", RAS_CAUSE_NONE, 0);
	fd = begin_monitor("MONITOR all\n");
	assert_string_equal(bench_hear(fd), "");
	bench_add_event(RAS_EVENT_DEAD, "n2", RAS_CAUSE_GONE, 0);
	assert_non_null(strstr(bench_hear(fd), "PEER_DEAD"));
	close(fd);
}

static void
commands_are_answered_between_events_and_a_second_monitor_changes_the_groups(void **state) {
	int fd = begin_monitor("MONITOR\n");

	(void)state;
	bench_add_event(RAS_EVENT_JOINED, "n2", RAS_CAUSE_NONE, 0);
	assert_non_null(strstr(bench_hear(fd), "PEER_NEW"));
	bench_say(fd, "TIMEOUT 3\nMONITOR trace\n");
	assert_string_equal(bench_hear(fd), "OK\nOK\n");
	bench_add_event(RAS_EVENT_JOINED, "n2", RAS_CAUSE_NONE, 0);
	assert_string_equal(bench_hear(fd), "");
	bench_add_event(RAS_EVENT_LINK_UP, "n2", RAS_CAUSE_NONE, 0);
	assert_non_null(strstr(bench_hear(fd), "PEER_CONNECTED"));
	close(fd);
}

static void a_status_ends_the_monitoring_and_the_connection(void **state) {
	int fd = begin_monitor("MONITOR all\n");

	(void)state;
	bench_say(fd, "STATUS\n");
	bench_turn();
	bench_add_event(RAS_EVENT_DEAD, "n2", RAS_CAUSE_GONE, 0);
	bench_answer(bench_answer_new());
	assert_null(strstr(bench_hear_all(fd), "PEER_DEAD"));
	close(fd);
}

static void a_slow_monitor_is_told_how_many_events_it_missed(void **state) {
	int fd = begin_monitor("MONITOR all\n");
	uint32_t told = 0, lost = 0;
	const char *text;

	(void)state;
	bench.overlay.event_capacity = 256;
	// More than the kernel takes for it, then more than the history keeps.
	for (uint32_t n = 0; n < 5000; n++) {
		bench_add_event(RAS_EVENT_JOINED, "n2", RAS_CAUSE_NONE, 0);
		assert_int_equal(loop_turn(bench.loop, 0), 0);
	}
	do {
		text = bench_hear(fd);
		for (const char *at = text; (at = strstr(at, "PEER_NEW")) != NULL; at++)
			told++;
		for (const char *at = text; (at = strstr(at, "EVENTS_LOST: ")) != NULL; at++)
			lost += (uint32_t)strtoul(at + 13, NULL, 10);
	} while (*text != '\0');
	assert_true(lost > 0);
	assert_int_equal(told + lost, 5000);
	assert_int_equal(client_counters(bench.server)->monitor_lost, lost);
	close(fd);
}

UNIT_GROUP(client_monitor) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(each_event_is_told_under_nccl_s_name_to_those_who_want_its_group),
		BENCH_TEST(an_event_about_nobody_or_somebody_forgotten_is_told_without_a_process),
		BENCH_TEST(in_json_an_event_is_an_object_over_several_lines),
		BENCH_TEST(the_longest_reason_of_a_report_is_told_whole),
		BENCH_TEST(what_happened_before_is_not_told),
		BENCH_TEST(
			commands_are_answered_between_events_and_a_second_monitor_changes_the_groups
		),
		BENCH_TEST(a_status_ends_the_monitoring_and_the_connection),
		BENCH_TEST(a_slow_monitor_is_told_how_many_events_it_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
