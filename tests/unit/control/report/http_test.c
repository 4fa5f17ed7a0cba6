// SPDX-License-Identifier: BSD-3-Clause
// Start of the HTTP server: each failure has an explanation. The allocations of http.c can fail.
#include <control/http.h>
#include <support/cmocka.h>

#include <errno.h>
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

UNIT_GROUP(http) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_without_memory_names_the_address),
		cmocka_unit_test(start_on_a_used_port_names_the_address),
	};

	return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
