// SPDX-License-Identifier: BSD-3-Clause
// CHECKS, on checks that the test plays.
#include "control/client/client_bench.h"

#include <control/checks.h>
#include <control/congestion.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONG_NAME "a-check-whose-name-is-longer-than-its-column-of-the-table"

struct checks {
	struct check_view views[4];
	uint32_t count;
};

static struct checks played;

uint32_t checks_count(const struct checks *checks) {
	return checks->count;
}

void checks_at(const struct checks *checks, uint32_t n, struct check_view *ret_view) {
	*ret_view = checks->views[n];
}

void checks_counters(const struct checks *checks, struct checks_counters *ret_counters) {
	*ret_counters = (struct checks_counters
	){.checks = checks->count, .critical = 1, .unknown = 2, .stuck_now = 1};
}

uint32_t checks_congestion(const struct checks *checks, const struct congestion_port **ret_ports) {
	(void)checks;
	(void)ret_ports;
	return 0;
}

static struct check_view *add(const char *name, bool ran) {
	struct check_view *view = &played.views[played.count++];

	*view = (struct check_view){
		.name = name,
		.command = "/bin/check -a",
		.interval_ns = 30 * RAS_NS_PER_SEC,
		.timeout_ns = 5 * RAS_NS_PER_SEC,
		.ran = ran,
		.evidence = "",
		.reason = "",
		.next_ns = UINT64_MAX,
	};
	return view;
}

static int start(void **state) {
	struct check_view *view;
	int err = bench_start(state);

	played.count = 0;
	view = add("disk", true);
	view->level = view->told = CHECK_CRITICAL;
	view->evidence = "full";
	view->reason = "CheckDisk";
	view->took_ns = 3000000;
	view->counts[CHECK_CRITICAL] = 7;
	view = add("mount", true);
	view->level = CHECK_UNKNOWN;
	view->evidence = "timed out after 5.0 s";
	view->reason = "CheckStuckMount";
	view->running = view->stuck = true;
	view->what = (struct spawn_stuck){4711, 'D', "c\xff\x1b", "nfs_wait_bit_killable"};
	add(LONG_NAME, false)->reason = "CheckUnknownAVeryLongReasonOfIt";
	view = add("own", true);
	view->command = "";
	view->evidence =
		"what is said of it goes on and on and on and on and on and on and on and on "
		"and on and on and on and on and on and on and on and on and on and on";
	return err;
}

static void a_row_tells_what_was_found_and_when_it_is_looked_at_again(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	client_server_use_checks(bench.server, &played);
	bench_say(fd, "CHECKS\n");
	answer = bench_shown(fd);
	bench_assert_narrow(answer, 80);
	assert_non_null(bench_find(answer, "4 checks: 0 warning, 1 failed, 2 could not tell, 1 of ")
	);
	assert_non_null(bench_find(answer, "\n  CheckDisk: full\n"));
	assert_non_null(bench_find(answer, "hangs"));
	assert_non_null(bench_find(answer, "\n  CheckUnknownAVeryLongReasonOfIt\n"));
	assert_null(bench_find(answer, LONG_NAME));
	bench.whole = true;
	bench_say(fd, "CHECKS\n");
	assert_non_null(bench_find(bench_shown(fd), LONG_NAME));
	client_server_use_checks(bench.server, NULL);
	close(fd);
}

static void in_json_everything_is_there_and_what_is_not_utf8_is_escaped(void **state) {
	int fd = bench_connect();
	json_t *answer, *row;

	(void)state;
	client_server_use_checks(bench.server, &played);
	bench_say(fd, "SET FORMAT json\n");
	bench_shown(fd);
	answer = bench_ask_json(fd, "CHECKS\n");
	assert_int_equal(json_array_size(json_object_get(answer, "checks")), 4);
	assert_int_equal(json_integer_value(json_object_get(answer, "stuck")), 1);
	row = json_array_get(json_object_get(answer, "checks"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "said")), "critical");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(row, "counts"), "critical")), 7
	);
	row = json_array_get(json_object_get(answer, "checks"), 1);
	row = json_object_get(row, "stuck");
	assert_int_equal(json_integer_value(json_object_get(row, "pid")), 4711);
	assert_string_equal(json_string_value(json_object_get(row, "state")), "D");
	row = json_array_get(json_object_get(answer, "checks"), 2);
	assert_true(json_is_null(json_object_get(row, "last")));
	row = json_array_get(json_object_get(answer, "checks"), 3);
	assert_true(json_is_null(json_object_get(row, "command")));
	json_decref(answer);
	client_server_use_checks(bench.server, NULL);
	close(fd);
}

static void before_there_are_any_there_are_none(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "CHECKS\n");
	assert_non_null(bench_find(bench_shown(fd), "0 checks"));
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, bench_stop)

UNIT_GROUP(client_checks) {
	const struct CMUnitTest tests[] = {
		TEST(a_row_tells_what_was_found_and_when_it_is_looked_at_again),
		TEST(in_json_everything_is_there_and_what_is_not_utf8_is_escaped),
		TEST(before_there_are_any_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
