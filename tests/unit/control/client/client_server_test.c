// SPDX-License-Identifier: BSD-3-Clause
// Clients that mean harm or do not care: limits, half-closes, those who never read, the file of
// the Unix socket.
#include "control/client/client_bench.h"

#include <lib/stream.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void pass_ns(uint64_t by_ns) {
	clock_advance(&bench.clock, by_ns);
	bench_turn();
}

// Half-closes: whatever was asked before is answered, then the connection ends.

static const struct {
	const char *asked;
	const char *answer;
} half_closed[] = {
	{"", ""},
	{"TIM", ""},
	{"TIMEOUT 3", ""},
	{"TIMEOUT 3\n", "OK\n"},
	{"CLIENT PROTOCOL 2\n", "SERVER PROTOCOL 2\n"},
	{"MONITOR\n", "OK\n"},
	{"TIMEOUT 3\nTIMEOUT 4\nTIMEOUT 5\nTIMEOUT 6\nTIMEOUT 7\nTIMEOUT 8\nHEL",
	 "OK\nOK\nOK\nOK\nOK\nOK\n"},
};

static void what_was_asked_before_a_half_close_is_answered(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(half_closed); n++) {
		int fds[] = {bench_connect(), bench_connect_local()};

		for (size_t i = 0; i < COUNT_OF(fds); i++) {
			bench_say(fds[i], half_closed[n].asked);
			assert_int_equal(shutdown(fds[i], SHUT_WR), 0);
			assert_string_equal(bench_hear_all(fds[i]), half_closed[n].answer);
			close(fds[i]);
		}
	}
	bench_turn();
	assert_int_equal(client_counters(bench.server)->clients, 0);
}

static void a_report_is_delivered_to_a_client_that_half_closed_and_the_loop_rests(void **state) {
	const struct loop_counters *counters = loop_counters(bench.loop);
	int fd = bench_connect();
	uint64_t events;
	const char *report;

	(void)state;
	bench_say(fd, "STATUS\n");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	bench_turn();
	assert_int_equal(bench.overlay.asked, 1);
	// Nothing to do until the answer comes: the seed turned without end here.
	events = counters->events;
	bench_turn();
	assert_int_equal(counters->events, events);
	bench_answer(bench_answer_new());
	report = bench_hear_all(fd);
	assert_non_null(bench_find(report, "Communicators... (0.003s)\n"));
	assert_non_null(bench_find(report, "\nWarnings\n========\n\n"));
	close(fd);
}

static void lines_behind_a_status_do_not_mix_into_its_report(void **state) {
	int fd = bench_connect();
	const char *report;

	(void)state;
	bench_say(fd, "STATUS\nTIMEOUT 2\nSTATUS\n");
	bench_turn();
	bench_say(fd, "TIMEOUT 3\n");
	bench_turn();
	bench_answer(bench_answer_new());
	report = bench_hear_all(fd);
	assert_null(bench_find(report, "OK\n"));
	assert_ptr_equal(strstr(report, "Job summary"), strstr(report, "Job summary"));
	assert_null(bench_find(strstr(report, "Job summary") + 1, "Job summary"));
	assert_int_equal(bench.overlay.asked, 1);
	close(fd);
}

static void a_client_that_goes_away_while_it_waits_leaves_nothing_behind(void **state) {
	struct linger reset = {.l_onoff = 1};
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "STATUS\n");
	bench_turn();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	bench_turn();
	assert_int_equal(bench.overlay.forgotten, 1);
	fd = bench_connect_local();
	bench_say(fd, "STATUS\n");
	bench_turn();
	close(fd);
	bench_turn();
	assert_int_equal(bench.overlay.forgotten, 2);
	assert_int_equal(client_counters(bench.server)->clients, 0);
}

// Those who take without end, or nothing

static void a_client_that_never_reads_is_closed_and_holds_little(void **state) {
	char name[32];
	int fd;

	(void)state;
	for (uint32_t n = 4; n < BENCH_PEERS_MAX; n++) {
		snprintf(name, sizeof(name), "node-with-a-long-name-%04u", n);
		bench_add_peer(name, name, RAS_ALIVE);
	}
	fd = bench_connect_local();
	for (uint32_t n = 0; n < 64; n++)
		bench_say(fd, "PEERS\n");
	bench_turn();
	assert_int_equal(client_counters(bench.server)->clients, 1);
	pass_ns(bench.config.drain_ns - 1);
	assert_int_equal(client_counters(bench.server)->clients, 1);
	pass_ns(1);
	assert_int_equal(client_counters(bench.server)->clients, 0);
	assert_int_equal(client_counters(bench.server)->closed_slow, 1);
	close(fd);
}

static void a_slow_reader_that_goes_on_reading_is_given_everything(void **state) {
	char name[32], piece[8192];
	size_t lines = 0;
	ssize_t size;
	int fd;

	(void)state;
	for (uint32_t n = 4; n < BENCH_PEERS_MAX; n++) {
		snprintf(name, sizeof(name), "node-with-a-long-name-%04u", n);
		bench_add_peer(name, name, RAS_ALIVE);
	}
	fd = bench_connect_local();
	bench_say(fd, "SET FORMAT json\nPEERS\nPEERS\nPEERS\nPEERS\n");
	for (uint32_t n = 0; n < 4096 && lines < 5; n++) {
		pass_ns(bench.config.drain_ns / 64);
		size = stream_receive(fd, piece, sizeof(piece));
		for (ssize_t i = 0; i < size; i++)
			lines += piece[i] == '\n';
	}
	assert_int_equal(lines, 5);
	assert_int_equal(client_counters(bench.server)->closed_slow, 0);
	close(fd);
}

static void an_idle_client_is_closed_and_a_byte_now_and_then_does_not_help(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_turn();
	for (uint32_t n = 0; n < 10; n++) {
		pass_ns(bench.config.idle_ns / 10 - 1);
		assert_true(bench_is_open(fd));
		bench_say(fd, "A");
		bench_turn();
	}
	pass_ns(10);
	assert_string_equal(bench_hear_all(fd), "");
	assert_int_equal(client_counters(bench.server)->closed_idle, 1);
	close(fd);
}

static void a_monitor_is_never_idle(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "MONITOR\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	pass_ns(10 * bench.config.idle_ns);
	assert_true(bench_is_open(fd));
	close(fd);
}

static void garbage_harms_nobody(void **state) {
	int neighbour = bench_connect();
	char junk[4096];

	(void)state;
	for (uint32_t seed = 1; seed < 64; seed++) {
		uint32_t dice = seed;
		int fd = seed % 2 == 0 ? bench_connect() : bench_connect_local();

		for (size_t n = 0; n < sizeof(junk); n++) {
			dice = dice * 1664525 + 1013904223;
			junk[n] = (dice >> 24) % 40 == 0 ? '\n' : (char)(dice >> 24);
		}
		bench_send(fd, junk, sizeof(junk));
		bench_turn();
		close(fd);
	}
	bench_say(neighbour, "TIMEOUT 1\n");
	assert_string_equal(bench_hear(neighbour), "OK\n");
	close(neighbour);
	bench_turn();
	assert_int_equal(client_counters(bench.server)->clients, 0);
}

// How many, and who

static void clients_beyond_the_limit_are_told_so(void **state) {
	int fds[3], late;

	(void)state;
	bench.config.clients_max = 3;
	bench_restart();
	for (size_t n = 0; n < COUNT_OF(fds); n++) {
		fds[n] = bench_connect();
		bench_say(fds[n], "MONITOR\n"); // idle ones would make room
		assert_string_equal(bench_hear(fds[n]), "OK\n");
	}
	late = bench_connect();
	assert_string_equal(bench_hear_all(late), "ERROR: Too many clients: 3 are connected\n");
	close(late);
	// The tests run as the agent's own user: room is kept for it.
	late = bench_connect_local();
	bench_say(late, "TIMEOUT 1\n");
	assert_string_equal(bench_hear(late), "OK\n");
	close(late);
	close(fds[0]);
	bench_turn();
	fds[0] = bench_connect();
	bench_say(fds[0], "TIMEOUT 1\n");
	assert_string_equal(bench_hear(fds[0]), "OK\n");
	for (size_t n = 0; n < COUNT_OF(fds); n++)
		close(fds[n]);
	assert_int_equal(client_counters(bench.server)->turned_away, 1);
}

static int connect_as(uint32_t uid) {
	int fd = bench_connect_from(uid);

	bench_turn();
	return fd;
}

static bool is_served(int fd) {
	bench_say(fd, "TIMEOUT 1\n");
	return strcmp(bench_shown(fd), "OK\n") == 0;
}

static bool was_ended(int fd) {
	return bench_hear_all(fd)[0] == '\0';
}

static void who_has_been_idle_longest_makes_room(void **state) {
	int fds[3], late;

	(void)state;
	bench.config.clients_max = 3;
	bench_restart();
	for (size_t n = 0; n < COUNT_OF(fds); n++) {
		fds[n] = connect_as(1000);
		pass_ns(RAS_NS_PER_SEC);
	}
	assert_true(is_served(fds[0]));
	late = connect_as(1000);
	assert_true(was_ended(fds[1]));
	assert_true(is_served(fds[0]) && is_served(fds[2]) && is_served(late));
	assert_int_equal(client_counters(bench.server)->closed_for_room, 1);
	close(fds[0]);
	close(fds[1]);
	close(fds[2]);
	close(late);
}

// Idle or not: a user that took all places leaves some to others.
static void a_user_with_many_monitors_makes_room_for_others_until_shares_are_like(void **state) {
	int many[6], few[4];

	(void)state;
	bench.config.clients_max = COUNT_OF(many);
	bench_restart();
	for (size_t n = 0; n < COUNT_OF(many); n++) {
		many[n] = connect_as(1000);
		bench_say(many[n], "MONITOR\n");
		assert_string_equal(bench_hear(many[n]), "OK\n");
		pass_ns(RAS_NS_PER_SEC);
	}
	for (size_t n = 0; n < COUNT_OF(few); n++) {
		few[n] = connect_as(1001);
		if (n == 3)
			break;
		bench_say(few[n], "MONITOR\n");
		assert_string_equal(bench_hear(few[n]), "OK\n");
	}
	assert_string_equal(bench_hear_all(few[3]), "ERROR: Too many clients: 6 are connected\n");
	assert_true(was_ended(many[0]) && was_ended(many[1]) && was_ended(many[2]));
	assert_int_equal(client_counters(bench.server)->clients, COUNT_OF(many));
	for (size_t n = 0; n < COUNT_OF(many); n++)
		close(many[n]);
	for (size_t n = 0; n < COUNT_OF(few); n++)
		close(few[n]);
}

static void sixty_four_idle_ones_keep_nobody_out(void **state) {
	int idle[64], fd;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(idle); n++)
		idle[n] = connect_as(1000);
	for (uint32_t n = 0; n < 8; n++) {
		fd = connect_as(1000 + n);
		assert_true(is_served(fd));
		close(fd);
		bench_turn();
	}
	for (size_t n = 0; n < COUNT_OF(idle); n++)
		close(idle[n]);
	assert_int_equal(client_counters(bench.server)->turned_away, 0);
}

static void who_may_give_orders_is_ended_for_nobody(void **state) {
	int own[3], late;

	(void)state;
	bench.config.clients_max = COUNT_OF(own);
	bench_restart();
	for (size_t n = 0; n < COUNT_OF(own); n++) {
		own[n] = bench_connect_local();
		bench_turn();
	}
	late = connect_as(1000);
	assert_string_equal(bench_hear_all(late), "ERROR: Too many clients: 3 are connected\n");
	close(late);
	for (size_t n = 0; n < COUNT_OF(own); n++) {
		assert_true(is_served(own[n]));
		close(own[n]);
	}
}

static void without_descriptors_accepting_pauses_and_goes_on_later(void **state) {
	struct rlimit limit, tight;
	uint64_t events;
	int fd, spare;

	(void)state;
	fd = bench_connect(); // waits in the kernel's queue
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	spare = dup(fd);
	tight = limit;
	tight.rlim_cur = (rlim_t)spare + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	bench_turn();
	events = loop_counters(bench.loop)->events;
	bench_turn();
	assert_int_equal(loop_counters(bench.loop)->events, events);
	assert_int_equal(client_counters(bench.server)->accept_failures, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	pass_ns(RAS_NS_PER_SEC);
	bench_say(fd, "TIMEOUT 1\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	close(spare);
	close(fd);
}

static void questions_to_others_have_a_rate(void **state) {
	int fd;

	(void)state;
	bench.config.asks_burst = 2;
	bench.config.asks_per_s = 1;
	bench_restart();
	fd = bench_connect();
	bench.overlay.ping_err = -EHOSTDOWN;
	for (uint32_t n = 0; n < 2; n++) {
		bench_say(fd, "PING n2\n");
		assert_non_null(bench_find(bench_shown(fd), "ERROR: n2 is alive"));
	}
	bench_say(fd, "PING n2\n");
	assert_string_equal(
		bench_shown(fd), "ERROR: too many questions to other nodes or about the past: "
				 "1 a second are allowed, try again\n"
	);
	pass_ns(RAS_NS_PER_SEC);
	bench_say(fd, "PING n2\n");
	assert_non_null(bench_find(bench_shown(fd), "ERROR: n2 is alive"));
	close(fd);
}

static void users_of_tcp_have_a_rate_each(void **state) {
	int greedy, other;

	(void)state;
	bench.config.asks_burst = 1;
	bench.config.asks_per_s = 1;
	bench_restart();
	greedy = connect_as(1000);
	other = connect_as(1001);
	bench.overlay.ping_err = -EHOSTDOWN;
	bench_say(greedy, "PING n2\n");
	assert_non_null(bench_find(bench_shown(greedy), "ERROR: n2 is alive"));
	bench_say(greedy, "PING n2\n");
	assert_non_null(bench_find(bench_shown(greedy), "ERROR: too many questions"));
	bench_say(other, "PING n2\n");
	assert_non_null(bench_find(bench_shown(other), "ERROR: n2 is alive"));
	close(greedy);
	close(other);
}

// Root by TCP, too, since TCP gives no orders; by the Unix socket it may.
static void reads_of_other_nodes_have_a_budget_of_bytes(void **state) {
	int tcp = bench_connect(), local = bench_connect_local();

	(void)state;
	bench_say(tcp, "PROBE n2 1000000 65536\n");
	assert_string_equal(
		bench_shown(tcp),
		"ERROR: 61 GiB from other nodes: a user without privileges may read 64 MiB at "
		"once and 8.0 MiB a second, all such users together 4 times as much; try again\n"
	);
	bench_say(tcp, "PROBE n2 1000 65280\n");
	assert_non_null(bench_find(bench_shown(tcp), "no RDMA device"));
	bench_say(tcp, "PROBE n2 100 65280\n");
	assert_non_null(bench_find(bench_shown(tcp), "from other nodes"));
	bench_say(tcp, "PROBE n2\n");
	assert_non_null(bench_find(bench_shown(tcp), "no RDMA device"));
	bench_say(local, "PROBE n2 1000000 65536\n");
	assert_non_null(bench_find(bench_shown(local), "no RDMA device"));
	close(tcp);
	close(local);
}

// The file

static int create_beside(char detail[static CLIENT_DETAIL_BYTES]) {
	struct client_config config = bench.config;
	struct client_server *other;
	int err;

	config.listen = (struct sock_addr){0};
	err = client_server_create(bench.loop, &config, &bench.overlay, detail, &other);
	if (err == 0)
		client_server_destroy(other);
	return err;
}

static void a_socket_that_is_answered_is_not_taken_over(void **state) {
	char detail[CLIENT_DETAIL_BYTES];
	struct stat status;

	(void)state;
	bench.server = client_server_destroy(bench.server);
	{
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		struct sockaddr_un address = {.sun_family = AF_UNIX};

		snprintf(address.sun_path, sizeof(address.sun_path), "%s", bench.path);
		assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		assert_int_equal(listen(fd, 1), 0);
		assert_int_equal(create_beside(detail), -EADDRINUSE);
		assert_non_null(bench_find(detail, bench.path));
		assert_non_null(bench_find(detail, "another agent already listens here"));
		assert_int_equal(lstat(bench.path, &status), 0);
		close(fd);
	}
	// Nobody answers any more: stale.
	assert_int_equal(create_beside(detail), 0);
	assert_int_equal(lstat(bench.path, &status), -1);
}

static void a_file_that_is_no_socket_is_left_alone(void **state) {
	char detail[CLIENT_DETAIL_BYTES];
	FILE *file;

	(void)state;
	bench.server = client_server_destroy(bench.server);
	file = fopen(bench.path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(create_beside(detail), -EADDRINUSE);
	assert_non_null(bench_find(detail, "exists and is not a socket"));
	assert_int_equal(access(bench.path, F_OK), 0);
}

static void the_mode_of_the_file_is_as_configured_whatever_the_umask(void **state) {
	static const mode_t modes[] = {0600, 0660, 0666};
	mode_t mask = umask(077);
	struct stat status;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(modes); n++) {
		bench.config.socket_mode = modes[n];
		bench_restart();
		assert_int_equal(lstat(bench.path, &status), 0);
		assert_int_equal(status.st_mode & 07777, modes[n]);
	}
	umask(mask);
}

static void a_successor_s_file_is_not_unlinked(void **state) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(unlink(bench.path), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", bench.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	bench.server = client_server_destroy(bench.server);
	assert_int_equal(access(bench.path, F_OK), 0);
	close(fd);
}

static void a_port_in_use_is_named(void **state) {
	struct client_config config = bench.config;
	char detail[CLIENT_DETAIL_BYTES];
	struct client_server *other;

	(void)state;
	config.listen = client_server_address(bench.server);
	config.socket_path = NULL;
	assert_int_equal(
		client_server_create(bench.loop, &config, &bench.overlay, detail, &other),
		-EADDRINUSE
	);
	assert_non_null(bench_find(detail, "127.0.0.1:"));
	assert_non_null(bench_find(detail, " listens there"));
}

static void tcp_is_served_on_loopback_only(void **state) {
	struct client_config config = bench.config;
	char detail[CLIENT_DETAIL_BYTES];
	struct client_server *other;

	(void)state;
	config.listen = (struct sock_addr){.family = SOCK_ADDR_V4};
	config.socket_path = NULL;
	assert_int_equal(
		client_server_create(bench.loop, &config, &bench.overlay, detail, &other), -EPERM
	);
	assert_string_equal(detail, "0.0.0.0:0: clients are served on loopback only");
}

UNIT_GROUP(client_server) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(what_was_asked_before_a_half_close_is_answered),
		BENCH_TEST(a_report_is_delivered_to_a_client_that_half_closed_and_the_loop_rests),
		BENCH_TEST(lines_behind_a_status_do_not_mix_into_its_report),
		BENCH_TEST(a_client_that_goes_away_while_it_waits_leaves_nothing_behind),
		BENCH_TEST(a_client_that_never_reads_is_closed_and_holds_little),
		BENCH_TEST(a_slow_reader_that_goes_on_reading_is_given_everything),
		BENCH_TEST(an_idle_client_is_closed_and_a_byte_now_and_then_does_not_help),
		BENCH_TEST(a_monitor_is_never_idle),
		BENCH_TEST(garbage_harms_nobody),
		BENCH_TEST(clients_beyond_the_limit_are_told_so),
		BENCH_TEST(who_has_been_idle_longest_makes_room),
		BENCH_TEST(a_user_with_many_monitors_makes_room_for_others_until_shares_are_like),
		BENCH_TEST(sixty_four_idle_ones_keep_nobody_out),
		BENCH_TEST(who_may_give_orders_is_ended_for_nobody),
		BENCH_TEST(users_of_tcp_have_a_rate_each),
		BENCH_TEST(reads_of_other_nodes_have_a_budget_of_bytes),
		BENCH_TEST(without_descriptors_accepting_pauses_and_goes_on_later),
		BENCH_TEST(questions_to_others_have_a_rate),
		BENCH_TEST(a_socket_that_is_answered_is_not_taken_over),
		BENCH_TEST(a_file_that_is_no_socket_is_left_alone),
		BENCH_TEST(the_mode_of_the_file_is_as_configured_whatever_the_umask),
		BENCH_TEST(a_successor_s_file_is_not_unlinked),
		BENCH_TEST(a_port_in_use_is_named),
		BENCH_TEST(tcp_is_served_on_loopback_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
