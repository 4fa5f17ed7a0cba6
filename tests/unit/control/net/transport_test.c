// SPDX-License-Identifier: BSD-3-Clause
// The transport among members, and the ways in which connections end.
#include "control/net/net_world.h"

#include <lib/scoped.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define A (&world_agents[0])
#define B (&world_agents[1])

static void frames_of_every_size_arrive_whole_and_in_order_both_ways(void **state) {
	static const size_t sizes[] = {0, 1, 17, 1000, 4096, 65535, RAS_FRAME_MAX, 3};

	(void)state;
	world_connect_pair();
	for (uint32_t n = 0; n < COUNT_OF(sizes); n++) {
		WORLD_UNTIL(world_send(0, 0, n, sizes[n]) == 0);
		WORLD_UNTIL(world_send(1, 0, n, sizes[n]) == 0);
	}
	WORLD_UNTIL(A->conns[0].frames == COUNT_OF(sizes));
	WORLD_UNTIL(B->conns[0].frames == COUNT_OF(sizes));
	assert_int_equal(A->conns[0].bad + B->conns[0].bad, 0);
	assert_int_equal(transport_counters(A->transport)->frames_sent, COUNT_OF(sizes));
	assert_int_equal(transport_counters(A->transport)->frames_received, COUNT_OF(sizes));
	assert_int_equal(
		transport_counters(A->transport)->bytes_sent,
		transport_counters(B->transport)->bytes_received
	);
}

static void peer_is_known_by_its_address_and_bound_to_the_source(void **state) {
	struct sock_addr to;

	(void)state;
	world_config.source = world_loopback("127.0.0.9");
	world_connect_pair();
	to = world_loopback("127.0.0.9");
	assert_true(sock_addr_same_prefix(&B->conns[0].from, &to, 32));
	assert_int_equal(transport_counters(A->transport)->open, 1);
	assert_int_equal(transport_counters(B->transport)->open, 1);
	assert_int_equal(transport_counters(B->transport)->proving, 0);
}

static void what_listens_elsewhere_now_is_reached_there_only_and_speaks_from_there(void **state) {
	struct sock_addr there = world_loopback("127.0.0.8"), before, after;
	char detail[256];
	uint32_t conn;

	(void)state;
	world_connect_pair();
	before = world_address(0);
	assert_int_equal(transport_rebind(world_agents[0].transport, &there, NULL, detail), 0);
	after = world_address(0);
	assert_true(sock_addr_same_prefix(&after, &there, 32));
	assert_int_equal(world_send(0, 0, 0, 100), 0); // established connections stay
	WORLD_UNTIL(world_agents[1].conns[0].frames == 1);
	conn = world_open(1, &before);
	WORLD_UNTIL(world_agents[1].conns[conn].ended);
	// Refused by the kernel of this machine.
	assert_int_equal(world_agents[1].conns[conn].cause, RAS_CAUSE_EXITED);
	conn = world_open(1, &after);
	WORLD_UNTIL(world_agents[1].conns[conn].opened);
	before = world_address(1);
	conn = world_open(0, &before);
	WORLD_UNTIL(world_agents[0].conns[conn].opened);
	WORLD_UNTIL(B->accepted == 2);
	assert_true(sock_addr_same_prefix(&B->conns[B->count - 1].from, &there, 32));
}

static void what_cannot_listen_elsewhere_stays_where_it_is(void **state) {
	struct sock_addr taken, before, after;
	char detail[256] = "";

	(void)state;
	world_start(0);
	world_start(1);
	taken = world_address(1);
	before = world_address(0);
	assert_int_equal(
		transport_rebind(world_agents[0].transport, &taken, NULL, detail), -EADDRINUSE
	);
	assert_non_null(strstr(detail, "EADDRINUSE")); // the holder of the port is not searched
	after = world_address(0);
	assert_true(sock_addr_equal(&after, &before));
	world_open(1, &after);
	WORLD_UNTIL(world_agents[1].conns[0].opened);
}

static void agent_without_a_key_that_may_not_leave_loopback_gives_the_reason(void **state) {
	struct sock_addr there = {.family = SOCK_ADDR_V4}, before, after;
	const struct seal_keys *keyless;
	char detail[256] = "";

	(void)state;
	assert_int_equal(seal_keys_create_keyless(WORLD_CLUSTER, &keyless), 0);
	world_config.keys = keyless;
	world_start(0);
	before = world_address(0);
	assert_int_equal(transport_rebind(A->transport, &there, NULL, detail), -EPERM);
	assert_non_null(strstr(detail, "without a key"));
	assert_non_null(strstr(detail, "0.0.0.0"));
	after = world_address(0);
	assert_true(sock_addr_equal(&after, &before));
	seal_keys_put(keyless);
}

static void what_moves_again_and_again_is_reached_at_the_last_place(void **state) {
	static const char *const places[] = {"127.0.0.8", "127.0.0.9", "127.0.0.8", "127.0.0.7"};
	struct sock_addr there, before;
	char detail[256];
	uint32_t conn;

	(void)state;
	world_start(0);
	world_start(1);
	for (size_t n = 0; n < COUNT_OF(places); n++) {
		before = world_address(0);
		there = world_loopback(places[n]);
		assert_int_equal(transport_rebind(A->transport, &there, NULL, detail), 0);
		there = world_address(0);
		conn = world_open(1, &there);
		WORLD_UNTIL(B->conns[conn].opened);
		conn = world_open(1, &before);
		WORLD_UNTIL(B->conns[conn].ended);
	}
}

static void interface_is_bound_or_the_address_alone(void **state) {
	(void)state;
	world_config.interface = "lo";
	world_connect_pair();
	assert_true(A->conns[0].opened);
}

static void interface_that_does_not_exist_is_our_own_fault(void **state) {
	struct sock_addr to = world_loopback("127.0.0.1");

	(void)state;
	world_config.interface = "nosuch0";
	to.port = 9;
	world_start(0);
	world_open(0, &to);
	assert_false(A->conns[0].ended);
	WORLD_UNTIL(A->conns[0].ended);
	// Without the privilege to bind, the connect itself is rejected.
	assert_true(
		A->conns[0].cause == RAS_CAUSE_OWN_FAULT || A->conns[0].cause == RAS_CAUSE_REFUSED
	);
}

static void full_queue_takes_nothing_and_says_when_there_is_room(void **state) {
	uint32_t sent = 0;

	(void)state;
	world_connect_pair();
	while (sent < 40) {
		uint32_t writables = A->conns[0].writables;
		int err = world_send(0, 0, sent, 60000);

		if (err == 0) {
			sent++;
			continue;
		}
		assert_int_equal(err, -EAGAIN);
		WORLD_UNTIL(A->conns[0].writables > writables);
	}
	WORLD_UNTIL(B->conns[0].frames == sent);
	assert_int_equal(B->conns[0].bad, 0);
	assert_true(transport_counters(A->transport)->queues_full > 0);
	world_settle();
	assert_int_equal(
		A->conns[0].writables, transport_counters(A->transport)->queues_full
	); // once for each promised callback
}

static void send_on_what_is_not_open_takes_nothing(void **state) {
	struct sock_addr to;

	(void)state;
	world_start(0);
	world_start(1);
	to = world_address(1);
	world_open(0, &to);
	assert_int_equal(world_send(0, 0, 0, 10), -ENOTCONN);
	assert_int_equal(world_send(0, 7, 0, 10), -ENOTCONN);
	transport_close(A->transport, 7, RAS_CLOSE_SOFT); // an unknown connection: no effect
}

static void soft_close_delivers_everything_that_was_taken(void **state) {
	(void)state;
	world_connect_pair();
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(world_send(0, 0, n, RAS_FRAME_MAX), 0);
	transport_close(A->transport, 0, RAS_CLOSE_SOFT);
	assert_int_equal(transport_soft_close_count(A->transport), 1);
	assert_int_equal(world_send(0, 0, 3, 10), -ENOTCONN);
	WORLD_UNTIL(B->conns[0].ended);
	assert_int_equal(B->conns[0].frames, 3);
	assert_int_equal(B->conns[0].bad, 0);
	assert_int_equal(B->conns[0].cause, RAS_CAUSE_RESET);
	WORLD_UNTIL(transport_soft_close_count(A->transport) == 0);
	assert_false(A->conns[0].ended);
}

static void soft_close_of_both_sides_at_once_ends(void **state) {
	(void)state;
	world_connect_pair();
	assert_int_equal(world_send(0, 0, 0, 100), 0);
	assert_int_equal(world_send(1, 0, 0, 100), 0);
	transport_close(A->transport, 0, RAS_CLOSE_SOFT);
	transport_close(B->transport, 0, RAS_CLOSE_SOFT);
	WORLD_UNTIL(transport_soft_close_count(A->transport) == 0);
	WORLD_UNTIL(transport_soft_close_count(B->transport) == 0);
	assert_false(A->conns[0].ended || B->conns[0].ended);
}

static void soft_close_that_is_not_answered_is_given_up(void **state) {
	struct seal seal;
	uint32_t conn;
	uint8_t bytes[64];
	scoped_fd int fd = -1;

	(void)state;
	world_start(0);
	fd = raw_member(&seal, &conn);
	assert_int_equal(world_send(0, conn, 0, 20), 0);
	transport_close(A->transport, conn, RAS_CLOSE_SOFT);
	assert_true(raw_receive(fd, bytes, 4 + 20 + SEAL_OVERHEAD));
	assert_false(raw_receive(fd, bytes, 1)); // half-closed: all data was sent
	world_pass(world_config.close_ns - 1);
	raw_send(fd, bytes, 1); // read and ignored
	world_settle();
	assert_int_equal(transport_soft_close_count(A->transport), 1);
	world_pass(1);
	assert_int_equal(transport_soft_close_count(A->transport), 0);
	seal_wipe(&seal);
}

static void soft_closes_that_take_all_places_are_cut_for_new_connections(void **state) {
	struct seal seal;
	uint32_t conn;
	int fds[12];

	(void)state;
	world_config.conns_max = 4;
	world_config.proving_max = 1;
	world_start(0);
	for (uint32_t n = 0; n < COUNT_OF(fds); n++) {
		fds[n] = raw_member(&seal, &conn);
		transport_close(A->transport, conn, RAS_CLOSE_SOFT);
		seal_wipe(&seal);
	}
	assert_int_equal(transport_soft_close_count(A->transport), 2 * 4 + 1);
	assert_int_equal(transport_counters(A->transport)->closes_cut, COUNT_OF(fds) - (2 * 4 + 1));
	for (uint32_t n = 0; n < COUNT_OF(fds); n++)
		close(fds[n]);
	WORLD_UNTIL(transport_soft_close_count(A->transport) == 0);
}

static void handle_that_was_closed_may_be_used_again_at_once(void **state) {
	struct sock_addr to;

	(void)state;
	world_connect_pair();
	to = world_address(1);
	for (unsigned n = 0; n < 3; n++) {
		transport_close(A->transport, 0, RAS_CLOSE_SOFT);
		A->conns[0] = (struct world_conn){.known = true};
		transport_open(A->transport, 0, &to);
		WORLD_UNTIL(A->conns[0].opened);
	}
	WORLD_UNTIL(transport_soft_close_count(A->transport) == 0);
	assert_int_equal(B->accepted, 4);
}

static void hard_close_is_not_told_here_and_ends_there(void **state) {
	(void)state;
	world_connect_pair();
	transport_close(A->transport, 0, RAS_CLOSE_HARD);
	WORLD_UNTIL(B->conns[0].ended);
	world_settle();
	assert_int_equal(B->conns[0].cause, RAS_CAUSE_RESET);
	assert_false(A->conns[0].ended);
	assert_int_equal(transport_counters(A->transport)->open, 0);
}

static void buffers_are_held_from_the_proof_to_the_end_of_a_connection(void **state) {
	const struct transport_counters *counters;

	(void)state;
	world_connect_pair();
	counters = transport_counters(A->transport);
	assert_in_range(counters->buffer_bytes, TRANSPORT_QUEUE_BYTES_MAX, SIZE_MAX);
	assert_int_equal(transport_counters(B->transport)->buffer_bytes, counters->buffer_bytes);
	transport_close(A->transport, 0, RAS_CLOSE_HARD);
	WORLD_UNTIL(B->conns[0].ended);
	world_settle();
	assert_int_equal(counters->buffer_bytes, 0);
	assert_int_equal(transport_counters(B->transport)->buffer_bytes, 0);
}

// Row 2: the last frames of a dying peer are delivered before its end.
static void what_came_before_a_reset_is_handed_over_before_its_cause(void **state) {
	uint8_t frame[5000];
	struct seal seal;
	uint32_t conn;
	int fd;

	(void)state;
	for (unsigned queued = 0; queued < 2; queued++) {
		if (A->transport == NULL)
			world_start(0);
		fd = raw_member(&seal, &conn);
		for (uint32_t n = 0; n < 5; n++) {
			world_fill(frame, sizeof(frame), n);
			raw_send_frame(fd, &seal, frame, sizeof(frame));
		}
		// In the second round our own send meets the reset first.
		for (uint32_t n = 0; n < queued; n++)
			assert_int_equal(world_send(0, conn, n, 1000), 0);
		raw_reset(fd);
		WORLD_UNTIL(A->conns[conn].ended);
		assert_int_equal(A->conns[conn].frames, 5);
		assert_int_equal(A->conns[conn].bad, 0);
		assert_int_equal(A->conns[conn].cause, RAS_CAUSE_RESET);
		seal_wipe(&seal);
	}
}

static void part_of_a_frame_before_the_end_is_no_frame(void **state) {
	uint8_t bytes[100] = {50};
	struct seal seal;
	uint32_t conn;
	int fd;

	(void)state;
	world_start(0);
	fd = raw_member(&seal, &conn);
	raw_send(fd, bytes, 30);
	close(fd);
	WORLD_UNTIL(A->conns[conn].ended);
	assert_int_equal(A->conns[conn].frames, 0);
	assert_int_equal(A->conns[conn].cause, RAS_CAUSE_RESET);
	seal_wipe(&seal);
}

// Row 10: the peer's kernel acknowledges, but the peer does not read.
static void queue_whose_head_does_not_move_ends_the_connection(void **state) {
	struct seal seal;
	uint32_t conn;
	uint32_t sent = 0;
	uint32_t before;
	int fd;

	(void)state;
	world_start(0);
	fd = raw_member(&seal, &conn);
	do {
		before = sent;
		while (world_send(0, conn, sent, 60000) == 0)
			sent++;
		world_settle();
	} while (sent > before);
	world_pass(world_config.stuck_ns);
	world_pass(world_config.stuck_ns);
	assert_true(A->conns[conn].ended);
	assert_int_equal(A->conns[conn].cause, RAS_CAUSE_STUCK);
	assert_int_equal(transport_counters(A->transport)->stuck, 1);
	close(fd);
	seal_wipe(&seal);
}

static void quiet_connection_is_never_stuck(void **state) {
	(void)state;
	world_connect_pair();
	for (uint32_t n = 0; n < 5; n++) {
		assert_int_equal(world_send(0, 0, n, 10), 0);
		world_pass(3 * world_config.stuck_ns / 4);
		world_pass(3 * world_config.stuck_ns);
	}
	assert_false(A->conns[0].ended || B->conns[0].ended);
	assert_int_equal(B->conns[0].frames, 5);
}

static void busy_peer_has_a_step_a_turn_and_no_more(void **state) {
	static uint8_t frame[1000];
	uint64_t most = 0;
	uint64_t before;
	struct seal seal;
	uint32_t conn;
	int fd;

	(void)state;
	world_start(0);
	fd = raw_member(&seal, &conn);
	for (uint32_t n = 0; n < 400; n++) {
		world_fill(frame, sizeof(frame), n);
		raw_send_frame(fd, &seal, frame, sizeof(frame));
	}
	while (A->conns[conn].frames < 400) {
		before = A->conns[conn].bytes;
		world_turn();
		if (A->conns[conn].bytes - before > most)
			most = A->conns[conn].bytes - before;
	}
	assert_in_range(most, 1, LOOP_STEP_BYTES_MAX);
	close(fd);
	seal_wipe(&seal);
}

static void close_this(struct world_agent *agent, const char *op, uint32_t conn) {
	if (strcmp(op, "frame") == 0)
		transport_close(
			agent->transport, conn, conn % 2 == 0 ? RAS_CLOSE_HARD : RAS_CLOSE_SOFT
		);
}

static void connection_closed_by_its_own_frame_hears_no_more(void **state) {
	uint8_t frame[64];
	struct seal seal;
	uint32_t conn;
	int fd;

	(void)state;
	world_start(0);
	A->hook = close_this;
	for (unsigned round = 0; round < 2; round++) {
		fd = raw_member(&seal, &conn);
		for (uint32_t n = 0; n < 10; n++) {
			world_fill(frame, sizeof(frame), n);
			raw_send_frame(fd, &seal, frame, sizeof(frame));
		}
		WORLD_UNTIL(A->conns[conn].frames > 0);
		world_settle();
		assert_int_equal(A->conns[conn].frames, 1);
		assert_false(A->conns[conn].ended);
		close(fd);
		seal_wipe(&seal);
	}
	WORLD_UNTIL(transport_soft_close_count(A->transport) == 0);
}

static void close_all(struct world_agent *agent, const char *op, uint32_t conn) {
	(void)conn;
	if (strcmp(op, "frame") != 0)
		return;
	for (uint32_t n = 0; n < agent->count; n++)
		transport_close(agent->transport, n, RAS_CLOSE_HARD);
}

static void connections_ready_in_the_same_turn_may_be_closed_by_one_of_them(void **state) {
	uint32_t frames = 0;
	struct sock_addr to;

	(void)state;
	world_start(0);
	world_start(1);
	to = world_address(1);
	for (uint32_t n = 0; n < 8; n++)
		world_open(0, &to);
	WORLD_UNTIL(B->accepted == 8);
	B->hook = close_all;
	for (uint32_t n = 0; n < 8; n++) {
		WORLD_UNTIL(A->conns[n].opened);
		assert_int_equal(world_send(0, n, 0, 100), 0);
	}
	for (uint32_t n = 0; n < 8; n++)
		WORLD_UNTIL(A->conns[n].ended);
	for (uint32_t n = 0; n < 8; n++)
		frames += B->conns[n].frames;
	assert_int_equal(frames, 1);
}

static const char *destroyed_by;

static void destroy(struct world_agent *agent, const char *op, uint32_t conn) {
	(void)conn;
	if (strcmp(op, destroyed_by) == 0)
		agent->transport = transport_destroy(agent->transport);
}

static void transport_may_be_destroyed_from_inside_whatever_it_calls(void **state) {
	static const char *const names[] = {"accepted", "opened", "frame", "writable", "ended"};
	struct sock_addr to;
	uint32_t conn;
	int err;

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(names); n++) {
		destroyed_by = names[n];
		world_start(0);
		world_start(1);
		A->hook = destroy;
		B->hook = destroy;
		to = world_address(1);
		conn = world_open(0, &to);
		// Run all kinds of operations until one agent is gone.
		for (uint32_t number = 0; A->transport != NULL && B->transport != NULL;) {
			world_turn();
			do {
				err = A->transport == NULL ? -ENOTCONN
							   : world_send(0, conn, number, 60000);
				number += err == 0;
			} while (err == 0);
			if (number > 20 && A->transport != NULL)
				transport_close(B->transport, B->count - 1, RAS_CLOSE_HARD);
		}
		A->transport = transport_destroy(A->transport);
		B->transport = transport_destroy(B->transport);
		memset(world_agents, 0, sizeof(world_agents));
	}
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

UNIT_GROUP(transport) {
	const struct CMUnitTest tests[] = {
		IN_A_WORLD(frames_of_every_size_arrive_whole_and_in_order_both_ways),
		IN_A_WORLD(peer_is_known_by_its_address_and_bound_to_the_source),
		IN_A_WORLD(what_listens_elsewhere_now_is_reached_there_only_and_speaks_from_there),
		IN_A_WORLD(what_cannot_listen_elsewhere_stays_where_it_is),
		IN_A_WORLD(agent_without_a_key_that_may_not_leave_loopback_gives_the_reason),
		IN_A_WORLD(what_moves_again_and_again_is_reached_at_the_last_place),
		IN_A_WORLD(interface_is_bound_or_the_address_alone),
		IN_A_WORLD(interface_that_does_not_exist_is_our_own_fault),
		IN_A_WORLD(full_queue_takes_nothing_and_says_when_there_is_room),
		IN_A_WORLD(send_on_what_is_not_open_takes_nothing),
		IN_A_WORLD(soft_close_delivers_everything_that_was_taken),
		IN_A_WORLD(soft_close_of_both_sides_at_once_ends),
		IN_A_WORLD(soft_close_that_is_not_answered_is_given_up),
		IN_A_WORLD(soft_closes_that_take_all_places_are_cut_for_new_connections),
		IN_A_WORLD(handle_that_was_closed_may_be_used_again_at_once),
		IN_A_WORLD(hard_close_is_not_told_here_and_ends_there),
		IN_A_WORLD(buffers_are_held_from_the_proof_to_the_end_of_a_connection),
		IN_A_WORLD(what_came_before_a_reset_is_handed_over_before_its_cause),
		IN_A_WORLD(part_of_a_frame_before_the_end_is_no_frame),
		IN_A_WORLD(queue_whose_head_does_not_move_ends_the_connection),
		IN_A_WORLD(quiet_connection_is_never_stuck),
		IN_A_WORLD(busy_peer_has_a_step_a_turn_and_no_more),
		IN_A_WORLD(connection_closed_by_its_own_frame_hears_no_more),
		IN_A_WORLD(connections_ready_in_the_same_turn_may_be_closed_by_one_of_them),
		IN_A_WORLD(transport_may_be_destroyed_from_inside_whatever_it_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
