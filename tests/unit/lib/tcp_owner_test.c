// SPDX-License-Identifier: BSD-3-Clause
#include <lib/tcp_owner.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#define SOMEBODY 54321

// A connection within this process, and the addresses as the accepting side sees them.
struct pair {
	int listener, connected, accepted;
	struct sock_addr theirs, ours;
};

static struct sock_addr address_of(int fd) {
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	struct sock_addr address;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&storage, &length), 0);
	assert_int_equal(sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &address), 0);
	return address;
}

static struct pair connect_on(const char *host) {
	struct sockaddr_storage storage;
	struct sock_addr address;
	struct pair pair;
	socklen_t length;

	assert_int_equal(sock_addr_parse_host(host, strlen(host), NULL, &address), 0);
	address.port = 0;
	length = sock_addr_to_sockaddr(&address, &storage);
	pair.listener = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(pair.listener, (struct sockaddr *)&storage, length), 0);
	assert_int_equal(listen(pair.listener, 1), 0);
	pair.ours = address_of(pair.listener);
	length = sock_addr_to_sockaddr(&pair.ours, &storage);
	pair.connected = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(pair.connected, (struct sockaddr *)&storage, length), 0);
	pair.accepted = accept(pair.listener, NULL, NULL);
	assert_true(pair.accepted >= 0);
	pair.theirs = address_of(pair.connected);
	return pair;
}

static void pair_close(struct pair *pair) {
	close(pair->accepted);
	close(pair->connected);
	close(pair->listener);
}

// Return a tcp_diag socket; skip the test if the kernel has no tcp_diag.
static int open_or_skip(void) {
	struct pair pair = connect_on("127.0.0.1");
	uint32_t uid;
	int fd;

	if (tcp_owner_open(&fd) != 0 || tcp_owner_find(fd, &pair.theirs, &pair.ours, &uid) != 0) {
		print_message("this kernel does not tell who owns a socket (tcp_diag)\n");
		skip();
	}
	pair_close(&pair);
	return fd;
}

static void the_other_end_is_of_this_user(void **state) {
	static const char *const hosts[] = {"127.0.0.1", "127.9.8.7", "::1"};
	int fd = open_or_skip();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(hosts); n++) {
		struct pair pair = connect_on(hosts[n]);
		uint32_t uid = UINT32_MAX;

		assert_int_equal(tcp_owner_find(fd, &pair.theirs, &pair.ours, &uid), 0);
		assert_int_equal(uid, geteuid());
		pair_close(&pair);
	}
	close(fd);
}

static void a_socket_of_somebody_else_is_theirs(void **state) {
	int fd = open_or_skip();
	struct pair pair = connect_on("127.0.0.1");
	uint32_t uid = UINT32_MAX;

	(void)state;
	if (fchown(pair.connected, SOMEBODY, (gid_t)-1) != 0) {
		print_message("only root gives a socket away\n");
		skip();
	}
	assert_int_equal(tcp_owner_find(fd, &pair.theirs, &pair.ours, &uid), 0);
	assert_int_equal(uid, SOMEBODY);
	pair_close(&pair);
	close(fd);
}

// The kernel reports uid 0 for such sockets, which does not mean root.
static void a_socket_that_was_closed_is_nobodys(void **state) {
	int fd = open_or_skip();
	struct pair pair = connect_on("127.0.0.1");
	uint32_t uid = 7;

	(void)state;
	close(pair.connected);
	assert_int_equal(tcp_owner_find(fd, &pair.theirs, &pair.ours, &uid), -ENOENT);
	assert_int_equal(uid, 7);
	close(pair.accepted);
	close(pair.listener);
	close(fd);
}

// An address has a listener if a SYN to that address would find one.
static void an_address_is_listened_at_as_long_as_a_listener_of_it_or_of_all_is_open(void **state) {
	static const struct {
		const char *listens, *asked;
	} rows[] = {
		{"127.0.0.1", "127.0.0.1"},
		{"127.9.8.7", "127.9.8.7"},
		{"0.0.0.0", "127.3.2.1"},
		{"::1", "::1"},
		{"::", "127.0.0.1"}};
	int fd = open_or_skip();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct pair pair = connect_on(rows[n].listens);
		struct sock_addr at;

		assert_int_equal(
			sock_addr_parse_host(rows[n].asked, strlen(rows[n].asked), NULL, &at), 0
		);
		at.port = pair.ours.port;
		assert_int_equal(tcp_owner_check_listener(fd, &at), 0);
		close(pair.listener); // accepted connections stay open
		assert_int_equal(tcp_owner_check_listener(fd, &at), -ENOENT);
		close(pair.connected);
		close(pair.accepted);
	}
	close(fd);
}

// Acknowledgements of earlier requests are still unread in the socket.
static void what_was_not_read_is_not_the_next_answer(void **state) {
	const struct nlmsghdr noop = {
		.nlmsg_len = sizeof(noop),
		.nlmsg_type = NLMSG_NOOP,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
	};
	int fd = open_or_skip();
	struct pair pair = connect_on("127.0.0.1");
	uint32_t uid = UINT32_MAX;

	(void)state;
	for (int n = 0; n < 3; n++)
		assert_int_equal(send(fd, &noop, sizeof(noop), 0), sizeof(noop));
	assert_int_equal(tcp_owner_find(fd, &pair.theirs, &pair.ours, &uid), 0);
	assert_int_equal(uid, geteuid());
	pair_close(&pair);
	close(fd);
}

static void a_question_between_families_is_refused(void **state) {
	const struct sock_addr v4 = {.family = SOCK_ADDR_V4}, v6 = {.family = SOCK_ADDR_V6};
	const struct sock_addr none = {.family = SOCK_ADDR_NONE};
	int fd = open_or_skip();
	uint32_t uid = 7;

	(void)state;
	assert_int_equal(tcp_owner_find(fd, &v4, &v6, &uid), -EINVAL);
	assert_int_equal(tcp_owner_find(fd, &none, &none, &uid), -EINVAL);
	assert_int_equal(uid, 7);
	close(fd);
}

UNIT_GROUP(tcp_owner) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_other_end_is_of_this_user),
		cmocka_unit_test(a_socket_of_somebody_else_is_theirs),
		cmocka_unit_test(a_socket_that_was_closed_is_nobodys),
		cmocka_unit_test(
			an_address_is_listened_at_as_long_as_a_listener_of_it_or_of_all_is_open
		),
		cmocka_unit_test(what_was_not_read_is_not_the_next_answer),
		cmocka_unit_test(a_question_between_families_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
