// SPDX-License-Identifier: BSD-3-Clause
// The HTTP server with clients on loopback. Its start: each failure has an explanation; the
// allocations of http.c can fail.
#include "feeds/http/http_places.h"

#include <control/http.h>
#include <control/snapshot.h>
#include <dataplane/peer_table.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Allocation function that http.c is built to call.
void *faulty_calloc(size_t count, size_t size);

static int fail_nth; // 1: the next allocation fails; 0: none

void *faulty_calloc(size_t count, size_t size) {
	if (fail_nth > 0 && --fail_nth == 0)
		return NULL;
	return calloc(count, size);
}

static struct clock monotonic;

static struct http_config config_on_loopback(void) {
	static struct cidr allow[1];
	struct http_config config = {.allow = allow, .allow_count = 1, .clock = &monotonic};

	clock_init_monotonic(&monotonic);
	assert_int_equal(cidr_parse("10.0.0.0/8", strlen("10.0.0.0/8"), NULL, &allow[0]), 0);
	assert_int_equal(
		sock_addr_parse("127.0.0.1", strlen("127.0.0.1"), 0, NULL, &config.listen), 0
	);
	return config;
}

static void start_without_memory_names_the_address(void **state) {
	struct http_config config = config_on_loopback();

	(void)state;
	// The server itself, and the copy of its rules.
	for (int nth = 1; nth <= 2; nth++) {
		char detail[HTTP_DETAIL_BYTES] = "";
		struct http *http = NULL;

		fail_nth = nth;
		assert_int_equal(http_start(&config, detail, &http), -ENOMEM);
		assert_null(http);
		assert_non_null(strstr(detail, "127.0.0.1"));
		assert_non_null(strstr(detail, "Cannot allocate memory"));
	}
	fail_nth = 0;
}

static void start_on_a_used_port_names_the_address(void **state) {
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	struct http_config config = config_on_loopback();
	char detail[HTTP_DETAIL_BYTES] = "";
	struct http *http = NULL;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_true(fd >= 0);
	length = sock_addr_to_sockaddr(&config.listen, &storage);
	assert_int_equal(bind(fd, (const struct sockaddr *)&storage, length), 0);
	assert_int_equal(listen(fd, 1), 0);
	length = sizeof(storage);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&storage, &length), 0);
	assert_int_equal(
		sock_addr_from_sockaddr((const struct sockaddr *)&storage, length, &config.listen),
		0
	);
	assert_int_equal(http_start(&config, detail, &http), -EADDRINUSE);
	assert_null(http);
	assert_non_null(strstr(detail, "127.0.0.1"));
	assert_non_null(strstr(detail, "Address already in use"));
	close(fd);
}

// A server with a table of ROWS peers. The test's thread is its control thread.

#define SILENT (2 * HTTP_CONNECTIONS_MAX)
#define ROWS 20000 // a page of 3 MB, more than the buffers of a socket

static struct {
	struct http *http;
	struct peer_table *peers;
	struct snapshots *snapshots;
	struct http_counters counters;
	struct sock_addr address;
	struct clock clock;
} stage;

static void snapshot_publish(void) {
	struct snapshot snapshot = {
		.at_ns = clock_now_ns(&stage.clock),
		.view = {.joined = true},
		.finding = {.reason = "None"},
	};

	rcu_thread_online(snapshot.at_ns);
	assert_int_equal(snapshots_publish(stage.snapshots, &snapshot), 0);
	rcu_thread_offline();
}

static void peers_publish(uint32_t count) {
	struct peer_view view = {.number = 1, .joined = true, .alive = count};

	for (uint32_t n = 0; n < count; n++) {
		struct peer_row row = {.id = n + 1, .slot = n, .state = PEER_ALIVE};

		snprintf(row.name, sizeof(row.name), "node%05u", (unsigned)n);
		row.name_length = (uint8_t)strlen(row.name);
		assert_int_equal(peer_table_set(stage.peers, &row), 0);
	}
	rcu_thread_online(0);
	assert_int_equal(peer_table_publish(stage.peers, &view), 0);
	rcu_thread_offline();
}

// Find a port that is free now, since the server does not report the one that it has.
static struct sock_addr free_address(void) {
	struct http_config config = config_on_loopback();
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(&config.listen, &storage);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&storage, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&storage, &length), 0);
	assert_int_equal(
		sock_addr_from_sockaddr((const struct sockaddr *)&storage, length, &config.listen),
		0
	);
	close(fd);
	return config.listen;
}

// The clock stands, so that no page and no place becomes old during a test.
static int stage_begin(void **state) {
	struct http_config config = {.version = "1"};
	char detail[HTTP_DETAIL_BYTES];

	(void)state;
	memset(&stage, 0, sizeof(stage));
	clock_init_fake(&stage.clock, 1000);
	assert_int_equal(peer_table_create(&stage.peers), 0);
	peers_publish(ROWS);
	assert_int_equal(snapshots_create(&stage.snapshots), 0);
	snapshot_publish();
	config.clock = &stage.clock;
	config.peers = stage.peers;
	config.snapshots = stage.snapshots;
	config.counters = &stage.counters;
	config.listen = stage.address = free_address();
	assert_int_equal(http_start(&config, detail, &stage.http), 0);
	return 0;
}

static int stage_end(void **state) {
	(void)state;
	stage.http = http_stop(stage.http);
	stage.snapshots = snapshots_destroy(stage.snapshots);
	stage.peers = peer_table_destroy(stage.peers);
	return 0;
}

// Connect, and ask for a path with more lines of header.
static int client_ask(const char *method, const char *path, const char *more) {
	const int small = 4096;
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(&stage.address, &storage);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size;
	char request[512];

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&storage, length), 0);
	size = snprintf(
		request, sizeof(request),
		"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", method, path, more
	);
	assert_int_equal(send(fd, request, (size_t)size, MSG_NOSIGNAL), size);
	return fd;
}

// Read an answer to its end, terminated. The caller frees it.
static char *answer_read(int fd, size_t *ret_size) {
	size_t room = 16 << 20, size = 0;
	char *answer = malloc(room);
	ssize_t more;

	assert_non_null(answer);
	while ((more = recv(fd, answer + size, room - 1 - size, 0)) > 0)
		size += (size_t)more;
	assert_int_equal(more, 0);
	answer[size] = '\0';
	*ret_size = size;
	close(fd);
	return answer;
}

static uint64_t pages_written(void) {
	return atomic_load_explicit(&stage.counters.pages_written, memory_order_relaxed);
}

static void readers_at_once_get_one_page_that_is_written_once(void **state) {
	int fds[8];
	char *first = NULL;
	size_t first_size = 0;

	(void)state;
	for (size_t n = 0; n < 8; n++)
		fds[n] = client_ask("GET", "/status.json", "");
	for (size_t n = 0; n < 8; n++) {
		size_t size;
		char *answer = answer_read(fds[n], &size);

		assert_non_null(strstr(answer, "200 OK"));
		assert_non_null(strstr(answer, "node19999"));
		assert_string_equal(answer + size - strlen("\n  ]\n}\n"), "\n  ]\n}\n");
		if (first == NULL) {
			first = answer;
			first_size = size;
			continue;
		}
		assert_int_equal(size, first_size);
		free(answer);
	}
	free(first);
	assert_int_equal(pages_written(), 1);
}

static void reader_that_takes_gzip_gets_less_than_one_that_does_not(void **state) {
	static const char *const others[] = {
		"", "Accept-Encoding: identity\r\n", "Accept-Encoding: gzip;q=0\r\n",
		"Accept-Encoding: ,;=gzip\xff\r\n"};
	size_t size, gzip_size;
	char *answer = answer_read(
		client_ask("GET", "/status.json", "Accept-Encoding: br, gzip\r\n"), &gzip_size
	);

	(void)state;
	assert_non_null(strstr(answer, "Content-Encoding: gzip"));
	free(answer);
	for (size_t n = 0; n < sizeof(others) / sizeof(others[0]); n++) {
		answer = answer_read(client_ask("GET", "/status.json", others[n]), &size);
		assert_null(strstr(answer, "Content-Encoding"));
		assert_non_null(strstr(answer, "node19999"));
		assert_true(size > 10 * gzip_size);
		free(answer);
	}
	assert_int_equal(pages_written(), 2);
}

static void health_is_answered_while_all_places_are_taken_by_clients_that_do_not_read(void **state
) {
	struct pollfd silent[SILENT];
	uint32_t connected = SILENT;

	(void)state;
	for (size_t n = 0; n < SILENT; n++) {
		size_t size;
		char *answer;

		silent[n] = (struct pollfd){
			.fd = client_ask("GET", "/status.json", ""),
			.events = POLLRDHUP,
		};
		answer = answer_read(client_ask("GET", "/health", ""), &size);
		assert_non_null(strstr(answer, "200 OK"));
		assert_non_null(strstr(answer, "\"grade\""));
		free(answer);
	}
	// All but some are dropped sooner or later.
	while (connected > PLACES_READERS_MAX) {
		assert_true(poll(silent, SILENT, -1) > 0);
		for (size_t n = 0; n < SILENT; n++) {
			if (silent[n].fd < 0 || silent[n].revents == 0)
				continue;
			close(silent[n].fd);
			silent[n].fd = -1;
			connected--;
		}
	}
	for (size_t n = 0; n < SILENT; n++) {
		if (silent[n].fd >= 0)
			close(silent[n].fd);
	}
	assert_int_equal(pages_written(), 1);
	assert_true(
		atomic_load_explicit(&stage.counters.readers_dropped, memory_order_relaxed) > 0
	);
}

static void next_snapshot_is_served_to_a_client_that_asks_after_it(void **state) {
	size_t size;
	char *answer = answer_read(client_ask("GET", "/metrics", ""), &size);

	(void)state;
	free(answer);
	clock_advance(&stage.clock, 1000000);
	snapshot_publish();
	answer = answer_read(client_ask("GET", "/metrics", ""), &size);
	assert_non_null(strstr(answer, "tocsin_snapshot_age_seconds 0.000"));
	free(answer);
	assert_int_equal(pages_written(), 2);
}

static void request_with_a_body_and_a_head_are_answered(void **state) {
	size_t size;
	char *answer =
		answer_read(client_ask("GET", "/metrics", "Content-Length: 2\r\n\r\nab"), &size);

	(void)state;
	assert_non_null(strstr(answer, "200 OK"));
	free(answer);
	answer = answer_read(client_ask("HEAD", "/status.json", ""), &size);
	assert_non_null(strstr(answer, "200 OK"));
	assert_string_equal(answer + size - 4, "\r\n\r\n");
	free(answer);
}

static void server_stops_while_clients_wait_and_read(void **state) {
	int reader = client_ask("GET", "/status.json", ""), waiter;
	char byte;

	(void)state;
	assert_int_equal(recv(reader, &byte, 1, 0), 1);
	waiter = client_ask("GET", "/status.json", "Accept-Encoding: gzip\r\n");
	stage.http = http_stop(stage.http);
	close(reader);
	close(waiter);
}

UNIT_GROUP(http) {
#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_begin, stage_end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_without_memory_names_the_address),
		cmocka_unit_test(start_on_a_used_port_names_the_address),
		STAGE_TEST(readers_at_once_get_one_page_that_is_written_once),
		STAGE_TEST(reader_that_takes_gzip_gets_less_than_one_that_does_not),
		STAGE_TEST(health_is_answered_while_all_places_are_taken_by_clients_that_do_not_read
		),
		STAGE_TEST(next_snapshot_is_served_to_a_client_that_asks_after_it),
		STAGE_TEST(request_with_a_body_and_a_head_are_answered),
		STAGE_TEST(server_stops_while_clients_wait_and_read),
	};
	int failed;

	if (rcu_reclaimer_start() != 0 || rcu_thread_register("control", 0) != 0)
		return 1;
	rcu_thread_offline();
	failed = cmocka_run_group_tests_name("http", tests, NULL, NULL);
	rcu_thread_unregister();
	return failed;
}
