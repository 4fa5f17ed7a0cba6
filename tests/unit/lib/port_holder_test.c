// SPDX-License-Identifier: BSD-3-Clause
#include <lib/port_holder.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Open a socket of this process on a free port of `host`; return its address in *ret_address.
static int open_socket(int type, const char *host, struct sock_addr *ret_address) {
	struct sockaddr_storage storage;
	socklen_t length;
	int fd;

	assert_int_equal(sock_addr_parse_host(host, strlen(host), NULL, ret_address), 0);
	length = sock_addr_to_sockaddr(ret_address, &storage);
	fd = socket(storage.ss_family, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&storage, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&storage, &length), 0);
	assert_int_equal(
		sock_addr_from_sockaddr((struct sockaddr *)&storage, length, ret_address), 0
	);
	return fd;
}

static void holder_is_found_by_protocol_and_address(void **state) {
	static const struct {
		const char *held, *asked;
		bool found;
	} cases[] = {
		{"127.0.0.1", "127.0.0.1", true},
		{"0.0.0.0", "127.0.0.1", true},
		{"127.0.0.1", "0.0.0.0", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"::1", "::1", true},
		{"::", "::1", true},
		{"::", "127.0.0.1", true},
	};
	struct port_holder holder;
	struct sock_addr address, asked;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		int fd = open_socket(SOCK_DGRAM, cases[n].held, &address);

		assert_int_equal(
			sock_addr_parse_host(cases[n].asked, strlen(cases[n].asked), NULL, &asked),
			0
		);
		asked.port = address.port;
		port_holder_find(PORT_UDP, &asked, &holder);
		assert_int_equal(
			holder.kind, cases[n].found ? PORT_HOLDER_PROCESS : PORT_HOLDER_NONE
		);
		if (cases[n].found)
			assert_int_equal(holder.pid, getpid());
		port_holder_find(PORT_TCP, &asked, &holder);
		assert_int_equal(holder.kind, PORT_HOLDER_NONE);
		close(fd);
	}
}

static void tcp_port_is_held_by_who_listens(void **state) {
	struct port_holder holder;
	struct sock_addr address;
	int fd = open_socket(SOCK_STREAM, "127.0.0.1", &address);

	(void)state;
	port_holder_find(PORT_TCP, &address, &holder);
	assert_int_equal(holder.kind, PORT_HOLDER_NONE);
	assert_int_equal(listen(fd, 1), 0);
	port_holder_find(PORT_TCP, &address, &holder);
	assert_int_equal(holder.kind, PORT_HOLDER_PROCESS);
	assert_int_equal(holder.pid, getpid());
	close(fd);
}

static void holder_is_told_in_words(void **state) {
	static const struct {
		struct port_holder holder;
		const char *words;
	} cases[] = {
		{{PORT_HOLDER_NONE, 0, ""}, "no process: the port is free now"},
		{{PORT_HOLDER_PROCESS, 4711, "tocsind"}, "tocsind, process 4711"},
		{{PORT_HOLDER_NOT_VISIBLE, 0, ""}, "a process of another user"},
		{{PORT_HOLDER_KERNEL, 0, ""}, "the kernel or a process of another container"},
	};
	char text[PORT_HOLDER_TEXT_BYTES];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		port_holder_format(&cases[n].holder, text);
		assert_string_equal(text, cases[n].words);
	}
}

UNIT_GROUP(port_holder) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holder_is_found_by_protocol_and_address),
		cmocka_unit_test(tcp_port_is_held_by_who_listens),
		cmocka_unit_test(holder_is_told_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
