// SPDX-License-Identifier: BSD-3-Clause
// The transport with strangers and malicious peers: no stranger connects, and no member is kept
// out.
#include "control/net/net_world.h"
#include "net/admission.h"

#include <lib/scoped.h>

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define A (&world_agents[0])
#define B (&world_agents[1])

static const struct transport_counters *counters(void) {
	return transport_counters(A->transport);
}

// Check that a member can still connect.
static void assert_open_to_members(void) {
	struct seal seal;
	uint32_t conn;
	int fd = raw_member(&seal, &conn);

	transport_close(A->transport, conn, RAS_CLOSE_HARD);
	close(fd);
	seal_wipe(&seal);
}

static void random_bytes_get_nothing_back_but_the_end(void **state) {
	uint8_t bytes[4096];
	struct sock_addr to;
	uint8_t byte;
	int fd;

	(void)state;
	world_start(0);
	to = world_address(0);
	for (unsigned n = 0; n < 40; n++) {
		fd = raw_connect(&to, NULL);
		randombytes_buf(bytes, sizeof(bytes));
		raw_send(fd, bytes, 80 + n * 100);
		assert_false(raw_receive(fd, &byte, 1));
		close(fd);
	}
	assert_int_equal(A->accepted, 0);
	assert_int_equal(counters()->proof_failures, 40);
	assert_int_equal(counters()->proof_unknown_key, 40);
	assert_int_equal(transport_last_failures(A->transport)->strangers, 40);
	assert_int_equal(counters()->proving, 0);
	assert_open_to_members();
}

static void proof_said_byte_by_byte_is_as_good(void **state) {
	struct seal seal = {0};
	struct seal_reply reply;
	struct sock_addr to;
	uint8_t answer[SEAL_HANDSHAKE_BYTES_MAX];
	size_t size;
	int fd;

	(void)state;
	world_start(0);
	to = world_address(0);
	fd = raw_connect(&to, NULL);
	seal_init(&seal, world_keys, SEAL_CONNECTS, WORLD_CLUSTER);
	seal_begin(&seal, &reply);
	for (unsigned step = 0; step < 2; step++) {
		for (size_t n = 0; n < reply.size; n++) {
			raw_send(fd, reply.bytes + n, 1);
			world_turn();
		}
		size = seal_wanted_bytes(&seal);
		if (size == 0)
			break;
		assert_true(raw_receive(fd, answer, size));
		assert_int_equal(seal_receive(&seal, answer, size, &reply), 0);
	}
	WORLD_UNTIL(A->accepted == 1);
	close(fd);
	seal_wipe(&seal);
}

static void strangers_who_do_not_finish_are_reset_by_the_deadline(void **state) {
	struct sock_addr to;
	int fds[10];

	(void)state;
	world_start(0);
	to = world_address(0);
	for (uint32_t n = 0; n < COUNT_OF(fds); n++) {
		fds[n] = raw_connect(&to, NULL);
		if (n % 2 == 0)
			raw_send(fds[n], "slow", 4);
	}
	WORLD_UNTIL(counters()->proving == COUNT_OF(fds));
	world_settle();
	world_pass(world_config.proof_ns - 1);
	assert_int_equal(counters()->proving, COUNT_OF(fds));
	world_pass(1);
	assert_int_equal(counters()->proving, 0);
	assert_int_equal(counters()->proof_timeouts, COUNT_OF(fds));
	for (uint32_t n = 0; n < COUNT_OF(fds); n++) {
		assert_int_equal(raw_wait_end(fds[n]), -ECONNRESET);
		close(fds[n]);
	}
	assert_open_to_members();
}

static void port_scan_leaves_no_trace(void **state) {
	struct sock_addr to;

	(void)state;
	world_start(0);
	to = world_address(0);
	for (unsigned n = 0; n < 50; n++) {
		close(raw_connect(&to, "127.0.0.2"));
		raw_reset(raw_connect(&to, "127.0.0.3"));
		if (n % 8 == 0)
			world_settle();
	}
	world_settle();
	assert_int_equal(counters()->proving, 0);
	assert_int_equal(A->count, 0);
	assert_open_to_members();
}

static void member_of_another_cluster_is_a_stranger(void **state) {
	struct seal seal = {0};
	struct sock_addr to;
	int fd;

	(void)state;
	world_start(0);
	to = world_address(0);
	fd = raw_connect(&to, NULL);
	seal_init(&seal, world_keys, SEAL_CONNECTS, "another");
	assert_int_equal(raw_prove(fd, &seal, world_keys, SEAL_CONNECTS), -ENODATA);
	assert_int_equal(A->accepted, 0);
	assert_int_equal(counters()->proof_failures, 1);
	close(fd);
	seal_wipe(&seal);
}

static void assert_ended_by_protocol(uint32_t conn, uint32_t frames) {
	WORLD_UNTIL(A->conns[conn].ended);
	assert_int_equal(A->conns[conn].cause, RAS_CAUSE_PROTOCOL);
	assert_int_equal(A->conns[conn].frames, frames);
}

static void frame_that_was_altered_or_repeated_ends_the_connection(void **state) {
	uint8_t frame[100];
	uint8_t sealed[4 + sizeof(frame) + SEAL_OVERHEAD] = {sizeof(frame) + SEAL_OVERHEAD};
	struct seal seal;
	uint32_t conn;
	int fd;

	(void)state;
	world_start(0);
	world_fill(frame, sizeof(frame), 0);
	for (unsigned round = 0; round < 2; round++) {
		fd = raw_member(&seal, &conn);
		seal_encrypt(&seal, frame, sizeof(frame), sealed + 4);
		raw_send(fd, sealed, sizeof(sealed));
		if (round == 0) {
			seal_encrypt(&seal, frame, sizeof(frame), sealed + 4);
			sealed[50] ^= 1;
		}
		raw_send(fd, sealed, sizeof(sealed));
		assert_ended_by_protocol(conn, 1);
		assert_int_equal(A->conns[conn].bad, 0);
		assert_int_equal(counters()->frames_forged, round + 1);
		close(fd);
		seal_wipe(&seal);
	}
}

static void size_that_no_frame_has_ends_the_connection(void **state) {
	static const uint32_t sizes[] = {
		0,
		SEAL_OVERHEAD - 1,
		RAS_FRAME_MAX + SEAL_OVERHEAD + 1,
		UINT32_MAX,
	};
	struct seal seal;
	uint32_t length;
	uint32_t conn;
	int fd;

	(void)state;
	world_start(0);
	for (uint32_t n = 0; n < COUNT_OF(sizes); n++) {
		fd = raw_member(&seal, &conn);
		length = htole32(sizes[n]);
		raw_send(fd, &length, sizeof(length));
		assert_ended_by_protocol(conn, 0);
		assert_int_equal(counters()->frames_malformed, n + 1);
		close(fd);
		seal_wipe(&seal);
	}
}

static void one_source_has_its_share_and_leaves_the_rest(void **state) {
	struct sock_addr to;
	int fds[20];

	(void)state;
	world_config.proving_per_source = 16;
	world_start(0);
	to = world_address(0);
	for (uint32_t n = 0; n < COUNT_OF(fds); n++)
		fds[n] = raw_connect(&to, "127.0.0.2");
	WORLD_UNTIL(counters()->turned_away_full == COUNT_OF(fds) - 16);
	assert_int_equal(counters()->proving, 16);
	assert_int_equal(raw_wait_end(fds[16]), -ECONNRESET);
	assert_open_to_members(); // from another address
	for (uint32_t n = 0; n < COUNT_OF(fds); n++)
		close(fds[n]);
	WORLD_UNTIL(counters()->proving == 0);
	close(raw_connect(&to, "127.0.0.2")); // the source has its share again
	WORLD_UNTIL(counters()->accepted == 18);
	assert_int_equal(counters()->turned_away_full, COUNT_OF(fds) - 16);
}

static void one_source_has_its_share_of_each_second(void **state) {
	struct sock_addr to;

	(void)state;
	world_config.accepts_per_source_per_s = 10;
	world_start(0);
	to = world_address(0);
	for (unsigned second = 1; second <= 3; second++) {
		for (unsigned n = 0; n < 30; n++) {
			close(raw_connect(&to, "127.0.0.2"));
			world_settle();
		}
		assert_int_equal(counters()->accepted, 10 * second);
		assert_int_equal(counters()->turned_away_rate, 20 * second);
		world_pass(SEC);
	}
}

static void members_are_not_held_to_the_rate_of_strangers(void **state) {
	(void)state;
	world_config.accepts_per_source_per_s = 5;
	world_start(0);
	for (unsigned n = 0; n < 20; n++)
		assert_open_to_members();
	assert_int_equal(counters()->turned_away_rate, 0);
}

static void oldest_stranger_makes_room_for_the_newest(void **state) {
	struct sock_addr to;
	char from[32];
	int fds[12];

	(void)state;
	world_config.proving_max = 8;
	world_start(0);
	to = world_address(0);
	for (uint32_t n = 0; n < COUNT_OF(fds); n++) {
		snprintf(from, sizeof(from), "127.0.1.%u", n + 1);
		fds[n] = raw_connect(&to, from);
		world_settle();
	}
	assert_int_equal(counters()->proving, 8);
	assert_int_equal(counters()->strangers_evicted, 4);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(raw_wait_end(fds[n]), -ECONNRESET);
	assert_open_to_members();
	for (uint32_t n = 0; n < COUNT_OF(fds); n++)
		close(fds[n]);
}

// Every stranger uses its own address, so that the limit per source does not stop them.
static void flood_of_strangers_delays_no_frame_and_keeps_no_member_out(void **state) {
	struct sock_addr to;
	uint32_t frames = 0;
	int fds[128];
	char from[32];
	uint32_t slot;

	(void)state;
	memset(fds, -1, sizeof(fds));
	world_connect_pair();
	to = world_address(0);
	for (uint32_t n = 0; n < 2000; n++) {
		slot = n % COUNT_OF(fds);
		if (fds[slot] >= 0)
			close(fds[slot]);
		snprintf(from, sizeof(from), "127.1.%u.%u", n / 250, n % 250 + 1);
		fds[slot] = raw_connect(&to, from);
		if (n % 20 != 0)
			continue;
		// A frame that is queued now is sent in this turn and received in one of the next
		// two.
		assert_int_equal(world_send(1, 0, frames, 100), 0);
		for (unsigned turn = 0; turn < 3; turn++)
			world_turn();
		assert_int_equal(A->conns[0].frames, ++frames);
		if (n % 500 == 0)
			assert_open_to_members();
	}
	world_settle();
	assert_int_equal(counters()->proving, world_config.proving_max);
	assert_open_to_members();
	for (slot = 0; slot < COUNT_OF(fds); slot++)
		close(fds[slot]);
	assert_int_equal(A->conns[0].bad, 0);
	assert_false(A->conns[0].ended || B->conns[0].ended);
}

static struct rlimit limit_before;

// Forbid descriptors from this number on.
static void limit_descriptors(rlim_t count) {
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit_before), 0);
	limit = limit_before;
	limit.rlim_cur = count;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void unlimit_descriptors(void) {
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
}

static rlim_t first_free_descriptor(void) {
	int fd = dup(0);

	assert_true(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

static void assert_loop_is_at_rest(void) {
	uint64_t events;

	world_settle();
	events = loop_counters(world_loop)->events;
	for (unsigned n = 0; n < 3; n++)
		world_turn();
	assert_int_equal(loop_counters(world_loop)->events, events);
}

static void without_descriptors_those_who_knock_are_turned_away(void **state) {
	struct sock_addr to;
	int fds[5];

	(void)state;
	world_start(0);
	to = world_address(0);
	for (uint32_t n = 0; n < COUNT_OF(fds); n++)
		fds[n] = raw_connect(&to, NULL);
	limit_descriptors(first_free_descriptor());
	WORLD_UNTIL(counters()->descriptors_short >= COUNT_OF(fds));
	assert_loop_is_at_rest();
	assert_int_equal(counters()->descriptors_short, COUNT_OF(fds));
	world_open(0, &to);
	WORLD_UNTIL(A->conns[0].ended);
	unlimit_descriptors();
	assert_int_equal(A->conns[0].cause, RAS_CAUSE_OWN_FAULT);
	for (uint32_t n = 0; n < COUNT_OF(fds); n++) {
		assert_int_equal(raw_wait_end(fds[n]), -ECONNRESET);
		close(fds[n]);
	}
	assert_open_to_members();
}

static void without_even_the_reserve_the_listener_rests_and_comes_back(void **state) {
	struct sock_addr to;
	int fd;

	(void)state;
	world_start(0);
	to = world_address(0);
	fd = raw_connect(&to, NULL);
	limit_descriptors(3);
	WORLD_UNTIL(counters()->descriptors_short == 1);
	assert_loop_is_at_rest();
	unlimit_descriptors();
	assert_int_equal(counters()->accepted, 0);
	world_pass(SEC);
	WORLD_UNTIL(counters()->accepted == 1); // a connection from the backlog
	close(fd);
	assert_open_to_members();
}

static void source_of_ipv6_is_its_64_bits_of_network(void **state) {
	struct sock_addr one = world_loopback("2001:db8::1");
	struct sock_addr other = world_loopback("2001:db8::ffff:2");
	struct admission *admission;
	uint32_t granted = 0;

	(void)state;
	assert_int_equal(admission_create(1, 100, &admission), 0);
	assert_int_equal(admission_request(admission, &one, SEC), ADMISSION_GRANTED);
	assert_int_equal(admission_request(admission, &other, SEC), ADMISSION_TOO_MANY);
	admission_release(admission, &one, false);
	assert_int_equal(admission_request(admission, &other, SEC), ADMISSION_GRANTED);
	admission_release(admission, &other, false);
	for (uint32_t n = 0; n < 100; n++) {
		one.address[7] = (uint8_t)n; // other networks, few of which share a bucket
		granted += admission_request(admission, &one, SEC) == ADMISSION_GRANTED;
	}
	assert_in_range(granted, 80, 100);
	admission_destroy(admission);
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

UNIT_GROUP(transport_hostile) {
	const struct CMUnitTest tests[] = {
		IN_A_WORLD(random_bytes_get_nothing_back_but_the_end),
		IN_A_WORLD(proof_said_byte_by_byte_is_as_good),
		IN_A_WORLD(strangers_who_do_not_finish_are_reset_by_the_deadline),
		IN_A_WORLD(port_scan_leaves_no_trace),
		IN_A_WORLD(member_of_another_cluster_is_a_stranger),
		IN_A_WORLD(frame_that_was_altered_or_repeated_ends_the_connection),
		IN_A_WORLD(size_that_no_frame_has_ends_the_connection),
		IN_A_WORLD(one_source_has_its_share_and_leaves_the_rest),
		IN_A_WORLD(one_source_has_its_share_of_each_second),
		IN_A_WORLD(members_are_not_held_to_the_rate_of_strangers),
		IN_A_WORLD(oldest_stranger_makes_room_for_the_newest),
		IN_A_WORLD(flood_of_strangers_delays_no_frame_and_keeps_no_member_out),
		IN_A_WORLD(without_descriptors_those_who_knock_are_turned_away),
		IN_A_WORLD(without_even_the_reserve_the_listener_rests_and_comes_back),
		IN_A_WORLD(source_of_ipv6_is_its_64_bits_of_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
