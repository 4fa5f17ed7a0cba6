// SPDX-License-Identifier: BSD-3-Clause
#include <lib/netif/watch.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUIET_NS 200
#define LIMIT_NS 1000

// A watch with a socket pair in place of the kernel's socket.
struct rig {
	struct netif_watch *watch;
	int kernel;
};

static void rig_init(struct rig *rig) {
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	assert_int_equal(netif_watch_create_on(ends[0], QUIET_NS, LIMIT_NS, &rig->watch), 0);
	rig->kernel = ends[1];
}

static void rig_fini(struct rig *rig) {
	assert_null(netif_watch_destroy(rig->watch));
	close(rig->kernel);
}

static void say(struct rig *rig, uint16_t type, uint64_t now_ns) {
	struct nlmsghdr message = {.nlmsg_len = sizeof(message), .nlmsg_type = type};

	assert_int_equal(send(rig->kernel, &message, sizeof(message), 0), sizeof(message));
	assert_int_equal(netif_watch_read(rig->watch, now_ns), 0);
}

static void nothing_is_due_while_nothing_moves(void **state) {
	struct netif_watch_event event = {.messages = 77};
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(netif_watch_read(rig.watch, 5), 0);
	assert_true(deadline_is_never(netif_watch_deadline(rig.watch)));
	assert_false(netif_watch_consume(rig.watch, UINT64_MAX - 1, &event));
	assert_int_equal(event.messages, 77);
	say(&rig, NLMSG_NOOP, 5); // a NOOP is no change either
	assert_true(deadline_is_never(netif_watch_deadline(rig.watch)));
	rig_fini(&rig);
}

static void an_event_is_due_when_it_has_been_quiet(void **state) {
	struct netif_watch_event event;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	say(&rig, RTM_DELADDR, 1000);
	assert_int_equal(netif_watch_deadline(rig.watch).at_ns, 1200);
	say(&rig, RTM_NEWLINK, 1100);
	assert_false(netif_watch_consume(rig.watch, 1200, &event));
	assert_true(netif_watch_consume(rig.watch, 1300, &event));
	assert_int_equal(event.what, NETIF_WATCH_ADDRESS | NETIF_WATCH_LINK);
	assert_int_equal(event.messages, 2);
	assert_false(netif_watch_consume(rig.watch, 9000, &event)); // reported only once
	say(&rig, RTM_NEWROUTE, 9000);
	assert_int_equal(netif_watch_deadline(rig.watch).at_ns, 9200); // a new event begins
	rig_fini(&rig);
}

static void a_machine_that_never_rests_is_reported_at_the_limit(void **state) {
	struct netif_watch_event event;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	for (uint64_t now_ns = 1000; now_ns < 2000; now_ns += 100) {
		say(&rig, RTM_NEWLINK, now_ns);
		assert_false(netif_watch_consume(rig.watch, now_ns, &event));
	}
	assert_true(netif_watch_consume(rig.watch, 2000, &event));
	assert_int_equal(event.messages, 10);
	rig_fini(&rig);
}

static void several_messages_of_one_datagram_all_count(void **state) {
	struct nlmsghdr messages[2] = {
		{.nlmsg_len = sizeof(messages[0]), .nlmsg_type = RTM_DELROUTE},
		{.nlmsg_len = sizeof(messages[0]), .nlmsg_type = RTM_NEWADDR},
	};
	struct netif_watch_event event;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	assert_int_equal(send(rig.kernel, messages, sizeof(messages), 0), sizeof(messages));
	assert_int_equal(netif_watch_read(rig.watch, 0), 0);
	assert_true(netif_watch_consume(rig.watch, QUIET_NS, &event));
	assert_int_equal(event.what, NETIF_WATCH_ROUTE | NETIF_WATCH_ADDRESS);
	rig_fini(&rig);
}

static void what_cannot_be_read_counts_as_lost(void **state) {
	static uint8_t large[32768];
	static const struct nlmsghdr rows[] = {
		{.nlmsg_len = 3, .nlmsg_type = RTM_NEWLINK},
		{.nlmsg_len = 1000, .nlmsg_type = RTM_NEWLINK},
		{.nlmsg_len = 0, .nlmsg_type = RTM_NEWLINK},
	};
	struct netif_watch_event event;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		assert_int_equal(send(rig.kernel, &rows[n], sizeof(rows[n]), 0), sizeof(rows[n]));
		assert_int_equal(netif_watch_read(rig.watch, 0), 0);
		assert_true(netif_watch_consume(rig.watch, QUIET_NS, &event));
		assert_int_equal(event.what, NETIF_WATCH_LOST);
	}
	assert_int_equal(send(rig.kernel, &rows[0], 5, 0), 5);
	assert_int_equal(send(rig.kernel, large, sizeof(large), 0), sizeof(large));
	assert_int_equal(netif_watch_read(rig.watch, 0), 0);
	assert_true(netif_watch_consume(rig.watch, QUIET_NS, &event));
	assert_int_equal(event.what, NETIF_WATCH_LOST);
	assert_int_equal(event.messages, 2);
	rig_fini(&rig);
}

static void a_limit_below_the_quiet_time_is_refused_and_the_descriptor_closed(void **state) {
	struct netif_watch *watch = NULL;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	(void)state;
	assert_int_equal(netif_watch_create_on(fd, 200, 199, &watch), -EINVAL);
	assert_null(watch);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void the_kernel_lets_us_listen(void **state) {
	struct netif_watch *watch;

	(void)state;
	assert_int_equal(netif_watch_create(QUIET_NS, LIMIT_NS, &watch), 0);
	assert_true(netif_watch_fd(watch) >= 0);
	assert_int_equal(netif_watch_read(watch, 0), 0); // must not block
	netif_watch_destroy(watch);
	assert_null(netif_watch_destroy(NULL));
}

UNIT_GROUP(netif_watch) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_due_while_nothing_moves),
		cmocka_unit_test(an_event_is_due_when_it_has_been_quiet),
		cmocka_unit_test(a_machine_that_never_rests_is_reported_at_the_limit),
		cmocka_unit_test(several_messages_of_one_datagram_all_count),
		cmocka_unit_test(what_cannot_be_read_counts_as_lost),
		cmocka_unit_test(a_limit_below_the_quiet_time_is_refused_and_the_descriptor_closed),
		cmocka_unit_test(the_kernel_lets_us_listen),
	};

	return cmocka_run_group_tests_name("netif_watch", tests, NULL, NULL);
}
