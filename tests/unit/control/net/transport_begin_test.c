// SPDX-License-Identifier: BSD-3-Clause
// Begin of connections: connect, proof and listening, and every failure of each.
#include "control/net/net_world.h"

#include <lib/scoped.h>
#include <lib/tcp_owner.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define A (&world_agents[0])
#define B (&world_agents[1])

// Return the cause of a refusal at an address of this machine, as far as the kernel knows the
// listener.
static enum ras_cause cause_of_refusal(void) {
	struct sock_addr own = transport_address(A->transport);
	scoped_fd int fd = -1;

	return tcp_owner_open(&fd) == 0 && tcp_owner_check_listener(fd, &own) == 0
		       ? RAS_CAUSE_EXITED
		       : RAS_CAUSE_REFUSED;
}

static void connect_that_is_refused_says_so_later(void **state) {
	struct sock_addr to;

	(void)state;
	close(raw_listen(&to, 1));
	world_start(0);
	world_open(0, &to);
	assert_false(A->conns[0].ended);
	WORLD_UNTIL(A->conns[0].ended);
	assert_int_equal(A->conns[0].cause, cause_of_refusal());
	assert_int_equal(transport_counters(A->transport)->connect_failures, 1);
}

// The kernel is queried through a descriptor that the transport holds since its start. No further
// descriptor is available here.
static void connect_that_is_refused_takes_no_descriptor_to_ask_about(void **state) {
	struct rlimit limit, before;
	struct sock_addr to;
	int next;

	(void)state;
	close(raw_listen(&to, 1));
	world_start(0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	next = dup(0);
	close(next);
	limit = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	world_open(0, &to);
	WORLD_UNTIL(A->conns[0].ended);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(A->conns[0].cause, cause_of_refusal());
}

// An agent without a listener known to the kernel cannot query the kernel about others.
static void connect_that_is_refused_proves_no_exit_to_one_that_listens_no_more(void **state) {
	struct sock_addr to;

	(void)state;
	close(raw_listen(&to, 1));
	world_start(0);
	transport_stop_accepting(A->transport);
	world_open(0, &to);
	WORLD_UNTIL(A->conns[0].ended);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_REFUSED);
}

static void connect_from_an_address_that_is_not_ours_is_our_own_fault(void **state) {
	struct sock_addr to = world_loopback("127.0.0.1");

	(void)state;
	world_config.source = world_loopback("192.0.2.1");
	to.port = 9;
	world_start(0);
	world_open(0, &to);
	assert_false(A->conns[0].ended);
	WORLD_UNTIL(A->conns[0].ended);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_OWN_FAULT);
}

static void failed_open_that_is_closed_before_it_was_told_is_not_told(void **state) {
	struct sock_addr nowhere = {0};

	(void)state;
	world_start(0);
	world_open(0, &nowhere);
	world_open(0, &nowhere);
	transport_close(A->transport, 0, RAS_CLOSE_HARD);
	WORLD_UNTIL(A->conns[1].ended);
	assert_false(A->conns[0].ended);
}

// Row 11: connect, proof and INIT each have a deadline and a cause; the core handles INIT.
static void connect_that_nobody_answers_ends_by_its_deadline(void **state) {
	struct sock_addr to;
	int listener = raw_listen(&to, 0);
	int filler = raw_connect(&to, NULL); // the backlog is full, so the kernel does not answer

	(void)state;
	world_start(0);
	world_open(0, &to);
	world_pass(world_config.connect_ns - 1);
	assert_false(A->conns[0].ended);
	world_pass(1);
	assert_true(A->conns[0].ended);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_TIMEOUT);
	close(filler);
	close(listener);
}

// The backlog of a stopped agent is full: its kernel is alive, but drops connections.
static void kernel_behind_a_full_backlog_is_found_at_a_closed_port(void **state) {
	struct sock_addr to;
	int listener = raw_listen(&to, 0);
	int filler = raw_connect(&to, NULL);

	(void)state;
	world_start(0);
	assert_int_equal(transport_probe_kernel(A->transport, &to), 0);
	assert_int_equal(transport_probe_kernel(A->transport, &to), -EALREADY);
	assert_int_equal(A->asked, 0);
	WORLD_UNTIL(A->asked == 1);
	assert_true(A->answered);
	assert_true(sock_addr_equal(&A->asked_host, &to));
	close(filler);
	close(listener);
}

static int listen_at(const struct sock_addr *at) {
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(at, &storage);
	int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&storage, length) == 0 && listen(fd, 0) == 0)
		return fd;
	close(fd);
	return -1;
}

// Port 1 belongs to a listener with a full backlog, so it is as silent as a dead host.
static void kernel_that_answers_nowhere_is_silent_after_the_deadline(void **state) {
	struct sock_addr to = world_loopback("127.0.0.1"), first = to;
	int filler, listener;

	(void)state;
	first.port = 1;
	to.port = 9;
	listener = listen_at(&first);
	if (listener < 0)
		skip();
	filler = raw_connect(&first, NULL);
	world_start(0);
	assert_int_equal(transport_probe_kernel(A->transport, &to), 0);
	world_pass(world_config.connect_ns - 1);
	assert_int_equal(A->asked, 0);
	world_pass(1);
	assert_int_equal(A->asked, 1);
	assert_false(A->answered);
	close(filler);
	close(listener);
}

static void kernels_that_are_asked_at_the_end_are_forgotten(void **state) {
	struct sock_addr to = world_loopback("127.0.0.1");
	int err = 0;

	(void)state;
	world_start(0);
	for (to.port = 1; err == 0 && to.port < 1000; to.port++)
		err = transport_probe_kernel(A->transport, &to);
	assert_int_equal(err, -EBUSY);
	A->transport = transport_destroy(A->transport);
	world_settle();
	assert_int_equal(A->asked, 0);
}

static void peer_that_hangs_up_on_our_proof_has_no_use_for_it(void **state) {
	uint8_t bytes[SEAL_HANDSHAKE_BYTES_MAX];
	struct sock_addr to;
	scoped_fd int listener = raw_listen(&to, 8);
	int fd;

	(void)state;
	world_start(0);
	world_open(0, &to);
	fd = raw_accept(listener);
	assert_true(raw_receive(fd, bytes, 1));
	assert_true(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0); // no data is left unread
	close(fd);
	WORLD_UNTIL(A->conns[0].ended);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_PROOF);
}

static void peer_that_stays_silent_after_the_connect_is_silent(void **state) {
	struct sock_addr to;
	int listener = raw_listen(&to, 8);

	(void)state;
	world_start(0);
	world_open(0, &to);
	world_settle();
	world_pass(world_config.proof_ns - 1);
	assert_false(A->conns[0].ended);
	world_pass(1);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_SILENT);
	close(listener);
	assert_int_equal(transport_counters(A->transport)->proof_timeouts, 1);
}

static void peer_that_does_not_finish_its_proof_has_failed_it(void **state) {
	struct sock_addr to;
	scoped_fd int listener = raw_listen(&to, 8);
	scoped_fd int fd = -1;

	(void)state;
	world_start(0);
	world_open(0, &to);
	fd = raw_accept(listener);
	raw_send(fd, "half", 4);
	world_settle();
	world_pass(world_config.proof_ns);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_PROOF);
}

static void other_key_is_a_failed_proof_on_both_sides(void **state) {
	const struct seal_keys *other;
	struct sock_addr to;

	(void)state;
	assert_int_equal(seal_keys_create_random(&other), 0);
	world_start(1);
	world_config.keys = other;
	world_start(0);
	to = world_address(1);
	world_open(0, &to);
	WORLD_UNTIL(A->conns[0].ended);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_PROOF);
	assert_int_equal(B->accepted, 0);
	assert_int_equal(transport_counters(B->transport)->proof_failures, 1);
	assert_int_equal(transport_counters(B->transport)->proof_unknown_key, 1);
	assert_true(sock_addr_equal(&transport_last_failures(A->transport)->failed, &to));
	assert_int_equal(transport_last_failures(A->transport)->cause, RAS_CAUSE_PROOF);
	assert_int_equal(transport_last_failures(A->transport)->strangers, 0);
	assert_int_equal(transport_last_failures(B->transport)->strangers, 1);
	assert_int_equal(transport_last_failures(B->transport)->stranger.family, SOCK_ADDR_V4);
	// Once both sides have the same keys, the next connection starts with the new key.
	transport_rekey(B->transport, other);
	world_open(0, &to);
	WORLD_UNTIL(A->conns[1].opened);
	assert_int_equal(transport_last_failures(A->transport)->failed.family, SOCK_ADDR_NONE);
	seal_keys_put(other);
}

// Return the keys of a file after a step of the rotation; the caller releases them.
static const struct seal_keys *step_of(const struct seal_keys *keys, enum seal_keys_step step) {
	const struct seal_keys *next;

	assert_int_equal(seal_keys_create_step(keys, step, &next), 0);
	return next;
}

static void connections_live_until_their_key_is_dropped(void **state) {
	const struct seal_keys *both, *swapped, *dropped;
	struct sock_addr to;

	(void)state;
	world_connect_pair();
	both = step_of(world_keys, SEAL_KEYS_ADD);
	swapped = step_of(both, SEAL_KEYS_SWAP);
	dropped = step_of(swapped, SEAL_KEYS_DROP);
	transport_rekey(A->transport, both);
	transport_rekey(B->transport, both);
	transport_rekey(A->transport, swapped);
	transport_rekey(B->transport, swapped);
	to = world_address(1);
	world_open(0, &to); // uses the new key
	WORLD_UNTIL(A->conns[1].opened);
	assert_false(A->conns[0].ended);
	transport_rekey(A->transport, dropped);
	WORLD_UNTIL(A->conns[0].ended);
	WORLD_UNTIL(B->conns[0].ended);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_RESET);
	assert_int_equal(transport_counters(A->transport)->revoked, 1);
	transport_rekey(B->transport, dropped);
	assert_false(A->conns[1].ended);
	assert_int_equal(transport_counters(B->transport)->revoked, 0);
	seal_keys_put(both);
	seal_keys_put(swapped);
	seal_keys_put(dropped);
}

static void revoked_connections_end_one_at_a_time(void **state) {
	const struct seal_keys *other;
	struct sock_addr to;

	(void)state;
	assert_int_equal(seal_keys_create_random(&other), 0);
	world_connect_pair();
	to = world_address(1);
	for (uint32_t n = 1; n < 3; n++) {
		world_open(0, &to);
		WORLD_UNTIL(A->conns[n].opened);
	}
	transport_rekey(A->transport, other);
	for (uint32_t n = 1; n <= 3; n++) {
		WORLD_UNTIL(transport_counters(A->transport)->revoked == n);
		assert_int_equal(A->conns[0].ended + A->conns[1].ended + A->conns[2].ended, (int)n);
		world_pass(RAS_NS_PER_SEC / 4);
	}
	seal_keys_put(other);
}

static void one_that_proves_a_key_dropped_meanwhile_is_ended(void **state) {
	const struct seal_keys *other;
	struct sock_addr to;

	(void)state;
	assert_int_equal(seal_keys_create_random(&other), 0);
	world_start(0);
	world_start(1);
	to = world_address(1);
	world_open(0, &to);
	WORLD_UNTIL(transport_counters(B->transport)->accepted == 1);
	transport_rekey(B->transport, other);
	WORLD_UNTIL(A->conns[0].ended);
	WORLD_UNTIL(
		transport_counters(B->transport)->revoked +
			transport_counters(B->transport)->proof_failures ==
		1
	);
	seal_keys_put(other);
}

static void peer_of_another_version_ends_with_that_cause(void **state) {
	struct sock_addr to;
	scoped_fd int listener = raw_listen(&to, 8);
	scoped_fd int fd = -1;
	struct seal seal = {0};

	(void)state;
	world_start(0);
	world_open(0, &to);
	fd = raw_accept(listener);
	seal_init(&seal, world_keys, SEAL_ACCEPTS, WORLD_CLUSTER);
	seal_limit_versions(&seal, SEAL_VERSION_MAX + 1, SEAL_VERSION_MAX + 1);
	assert_int_equal(raw_prove(fd, &seal, world_keys, SEAL_ACCEPTS), -EPROTO);
	WORLD_UNTIL(A->conns[0].ended);
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_VERSION);
	seal_wipe(&seal);
}

static void deaf_transport_keeps_what_it_has_and_takes_no_more(void **state) {
	struct sock_addr to;

	(void)state;
	world_connect_pair();
	to = world_address(1);
	transport_stop_accepting(B->transport);
	world_open(0, &to);
	WORLD_UNTIL(A->conns[1].ended);
	assert_int_equal(A->conns[1].cause, cause_of_refusal());
	assert_int_equal(world_send(0, 0, 0, 10), 0);
	WORLD_UNTIL(B->conns[0].frames == 1);
}

static void member_for_whom_there_is_no_number_is_closed(void **state) {
	struct sock_addr to;

	(void)state;
	world_start(0);
	world_start(1);
	B->full = true;
	to = world_address(1);
	world_open(0, &to);
	WORLD_UNTIL(A->conns[0].ended);
	assert_int_equal(B->accepted, 0);
	assert_int_equal(transport_counters(B->transport)->open, 0);
}

static void ipv6_is_as_good(void **state) {
	struct sock_addr address = world_loopback("::1");
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(&address, &storage);
	scoped_fd int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	if (fd < 0 || bind(fd, (struct sockaddr *)&storage, length) != 0) {
		print_message("# this machine has no IPv6 loopback address\n");
		skip();
	}
	world_config.listen = address;
	world_config.source = address;
	world_connect_pair();
	assert_int_equal(B->conns[0].from.family, SOCK_ADDR_V6);
	assert_int_equal(world_send(0, 0, 0, 1000), 0);
	WORLD_UNTIL(B->conns[0].frames == 1);
	assert_int_equal(B->conns[0].bad, 0);
}

static int create_failing(char detail[static 256]) {
	static const struct transport_ops no_ops;
	struct transport *transport = NULL;
	int err;

	err = transport_create(world_loop, &world_config, &no_ops, NULL, detail, &transport);
	assert_null(transport);
	return err;
}

static void port_that_is_taken_names_its_holder(void **state) {
	char detail[256];
	char expected[64];

	(void)state;
	world_start(0);
	world_config.listen = world_address(0);
	assert_int_equal(create_failing(detail), -EADDRINUSE);
	snprintf(expected, sizeof(expected), ", process %d", getpid());
	assert_non_null(strstr(detail, expected));
	world_config.listen = (struct sock_addr){.family = SOCK_ADDR_V4};
	world_config.listen.port = world_address(0).port;
	assert_int_equal(create_failing(detail), -EADDRINUSE);
	assert_non_null(strstr(detail, expected));
}

static void address_that_is_not_ours_is_named(void **state) {
	char detail[256];

	(void)state;
	world_config.listen = world_loopback("192.0.2.1");
	assert_int_equal(create_failing(detail), -EADDRNOTAVAIL);
	assert_non_null(strstr(detail, "192.0.2.1"));
}

static void without_a_key_only_loopback_is_listened_on(void **state) {
	const struct seal_keys *keyless;
	char detail[256];

	(void)state;
	assert_int_equal(seal_keys_create_keyless(WORLD_CLUSTER, &keyless), 0);
	world_config.keys = keyless;
	world_config.listen = (struct sock_addr){.family = SOCK_ADDR_V4};
	assert_int_equal(create_failing(detail), -EPERM);
	assert_non_null(strstr(detail, "0.0.0.0"));
	world_config.listen = world_loopback("127.0.0.1");
	world_connect_pair();
	seal_keys_put(keyless);
}

// Row 29: the port of a killed agent can be bound again at once.
static void port_is_had_again_while_old_connections_still_stand(void **state) {
	(void)state;
	world_connect_pair();
	world_config.listen = world_address(1);
	// The side that closes first keeps the port in TIME_WAIT.
	B->transport = transport_destroy(B->transport);
	world_start(1);
	world_settle();
	assert_true(A->conns[0].ended);
}

// The first query after boot loads a kernel module, which may take longer than a query may take.
// It is made here, before a test compares two answers.
static int ask_first(void **state) {
	scoped_fd int fd = -1;

	(void)state;
	(void)tcp_owner_open(&fd);
	return 0;
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

UNIT_GROUP(transport_begin) {
	const struct CMUnitTest tests[] = {
		IN_A_WORLD(connect_that_is_refused_says_so_later),
		IN_A_WORLD(connect_that_is_refused_takes_no_descriptor_to_ask_about),
		IN_A_WORLD(connect_that_is_refused_proves_no_exit_to_one_that_listens_no_more),
		IN_A_WORLD(connect_from_an_address_that_is_not_ours_is_our_own_fault),
		IN_A_WORLD(failed_open_that_is_closed_before_it_was_told_is_not_told),
		IN_A_WORLD(connect_that_nobody_answers_ends_by_its_deadline),
		IN_A_WORLD(kernel_behind_a_full_backlog_is_found_at_a_closed_port),
		IN_A_WORLD(kernel_that_answers_nowhere_is_silent_after_the_deadline),
		IN_A_WORLD(kernels_that_are_asked_at_the_end_are_forgotten),
		IN_A_WORLD(peer_that_hangs_up_on_our_proof_has_no_use_for_it),
		IN_A_WORLD(peer_that_stays_silent_after_the_connect_is_silent),
		IN_A_WORLD(peer_that_does_not_finish_its_proof_has_failed_it),
		IN_A_WORLD(other_key_is_a_failed_proof_on_both_sides),
		IN_A_WORLD(connections_live_until_their_key_is_dropped),
		IN_A_WORLD(revoked_connections_end_one_at_a_time),
		IN_A_WORLD(one_that_proves_a_key_dropped_meanwhile_is_ended),
		IN_A_WORLD(peer_of_another_version_ends_with_that_cause),
		IN_A_WORLD(deaf_transport_keeps_what_it_has_and_takes_no_more),
		IN_A_WORLD(member_for_whom_there_is_no_number_is_closed),
		IN_A_WORLD(ipv6_is_as_good),
		IN_A_WORLD(port_that_is_taken_names_its_holder),
		IN_A_WORLD(address_that_is_not_ours_is_named),
		IN_A_WORLD(without_a_key_only_loopback_is_listened_on),
		IN_A_WORLD(port_is_had_again_while_old_connections_still_stand),
	};

	return cmocka_run_group_tests(tests, ask_first, NULL);
}
