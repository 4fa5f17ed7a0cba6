// SPDX-License-Identifier: BSD-3-Clause
// NCCL's client protocol byte for byte, as its RAS 2.30.7 was seen to answer.
#include "control/client/client_bench.h"

#include <string.h>
#include <unistd.h>

struct raw {
	const char *line;
	const char *answer;
};

static const struct raw raws[] = {
	{"CLIENT PROTOCOL 2\n", "SERVER PROTOCOL 2\n"},
	{"client protocol xyz\n", "SERVER PROTOCOL 2\n"},
	{"CLIENT PROTOCOL\n", "ERROR: Unknown command CLIENT PROTOCOL\n"},
	{"TIMEOUT 3\n", "OK\n"},
	{"TIMEOUT 3\r\n", "OK\n"},
	{"TIMEOUT \n", "OK\n"},
	{"TIMEOUT\n", "ERROR: Unknown command TIMEOUT\n"},
	{"TIMEOUT -1\n", "ERROR: Invalid timeout value -1\n"},
	{"TIMEOUT 3.5\n", "ERROR: Invalid timeout value 3.5\n"},
	{"TIMEOUT 3 \n", "ERROR: Invalid timeout value 3 \n"},
	{"TIMEOUT 99999999999999999999\n", "ERROR: Invalid timeout value 99999999999999999999\n"},
	{"SET FORMAT json\n", "OK\n"},
	{"set format TEXT\n", "OK\n"},
	{"SET FORMAT JSON \n", "ERROR: Invalid format JSON \n"},
	{"SET FORMAT yaml\n", "ERROR: Invalid format yaml\n"},
	{"MONITOR bogus\n", "ERROR: Invalid event group 'bogus'\n"},
	{"MONITOR lifecycle,bogus\n", "ERROR: Invalid event group 'bogus'\n"},
	{"MONITOR lifecycle, trace\n", "ERROR: Invalid event group ' trace'\n"},
	{"MONITOR   trace\n", "OK\n"},
	{"MONITOR all\n", "OK\n"},
	{"MONITOR ,\n", "OK\n"},
	{"MONITOR\n", "OK\n"},
	{"MONITORx\n", "ERROR: Unknown command MONITORx\n"},
	{"STATUS \n", "ERROR: Unknown command STATUS \n"},
	{" STATUS\n", "ERROR: Unknown command  STATUS\n"},
	{"HELP\n", "ERROR: Unknown command HELP\n"},
	{"\n", "ERROR: Unknown command \n"},
	{"DIAGNOSTICS\n", "ERROR: Unknown command DIAGNOSTICS\n"},
	{"PEERSx\n", "ERROR: Unknown command PEERSx\n"},
};

static void check_raw(int fd, const struct raw *raw) {
	bench_say(fd, raw->line);
	assert_string_equal(bench_hear(fd), raw->answer);
	assert_true(bench_is_open(fd));
	close(fd);
}

static void each_line_is_answered_as_nccl_does_and_the_connection_stays(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(raws); n++) {
		check_raw(bench_connect(), &raws[n]);
		check_raw(bench_connect_local(), &raws[n]);
	}
}

static void lines_of_one_packet_are_answered_in_order(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_say(
		fd, "CLIENT PROTOCOL 2\nTIMEOUT 3\nSET FORMAT "
		    "x\nHELP\n1\n2\n3\n4\n5\nTIMEOUT 4\n"
	);
	assert_string_equal(
		bench_hear(fd), "SERVER PROTOCOL 2\nOK\nERROR: Invalid format x\n"
				"ERROR: Unknown command HELP\nERROR: Unknown command 1\n"
				"ERROR: Unknown command 2\nERROR: Unknown command 3\n"
				"ERROR: Unknown command 4\nERROR: Unknown command 5\nOK\n"
	);
	close(fd);
}

static void a_line_in_single_bytes_is_answered_once_it_is_whole(void **state) {
	static const char line[] = "CLIENT PROTOCOL 2\n";
	int fd = bench_connect();

	(void)state;
	for (size_t n = 0; n + 2 < sizeof(line); n++) {
		bench_send(fd, line + n, 1);
		assert_string_equal(bench_hear(fd), "");
	}
	bench_send(fd, "\n", 1);
	assert_string_equal(bench_hear(fd), "SERVER PROTOCOL 2\n");
	close(fd);
}

static void the_longest_line_is_answered_whole(void **state) {
	char line[CLIENT_LINE_BYTES_MAX];
	const char *answer;
	int fd = bench_connect();

	(void)state;
	memset(line, 'A', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	bench_send(fd, line, sizeof(line));
	answer = bench_hear(fd);
	assert_int_equal(strlen(answer), strlen("ERROR: Unknown command ") + sizeof(line));
	assert_true(bench_is_open(fd));
	close(fd);
}

static void a_line_without_end_closes_after_what_was_asked_before_was_answered(void **state) {
	char line[CLIENT_LINE_BYTES_MAX];
	int fd = bench_connect();

	(void)state;
	memset(line, 'A', sizeof(line));
	bench_send(fd, line, sizeof(line));
	assert_string_equal(bench_hear_all(fd), "");
	close(fd);
	fd = bench_connect();
	bench_say(fd, "TIMEOUT 3\n");
	bench_send(fd, line, sizeof(line));
	assert_string_equal(bench_hear_all(fd), "OK\n");
	assert_int_equal(client_counters(bench.server)->lines_too_long, 2);
	close(fd);
}

static void a_nul_ends_what_is_read_of_a_line(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_send(fd, TEXT("TIMEOUT 3\0junk\nX\0Y\n"));
	assert_string_equal(bench_hear(fd), "OK\nERROR: Unknown command X\n");
	close(fd);
}

UNIT_GROUP(client_raw) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(each_line_is_answered_as_nccl_does_and_the_connection_stays),
		BENCH_TEST(lines_of_one_packet_are_answered_in_order),
		BENCH_TEST(a_line_in_single_bytes_is_answered_once_it_is_whole),
		BENCH_TEST(the_longest_line_is_answered_whole),
		BENCH_TEST(a_line_without_end_closes_after_what_was_asked_before_was_answered),
		BENCH_TEST(a_nul_ends_what_is_read_of_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
