// SPDX-License-Identifier: BSD-3-Clause
// The virtual network with processes that only record their callbacks.
#include "net.h"
#include "trace.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEC UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define NODES 4
#define HANDLE 7	  // of the connecting node
#define HANDLE_ACCEPTED 9 // of the accepting node

enum told {
	TOLD_OPENED,
	TOLD_ACCEPTED,
	TOLD_FRAME,
	TOLD_WRITABLE,
	TOLD_ENDED,
};

struct word {
	enum told what;
	uint32_t node;
	uint32_t value; // number of a frame, or errno of an end
	uint64_t at_ns;
};

struct fixture {
	struct pool *pool;
	struct queue queue;
	struct trace trace;
	struct net net;
	struct word words[4096];
	uint32_t count;
	int accept_error;
};

static void tell(struct fixture *fixture, enum told what, uint32_t node, uint32_t value) {
	assert_true(fixture->count < sizeof(fixture->words) / sizeof(fixture->words[0]));
	fixture->words[fixture->count++] = (struct word){what, node, value, fixture->queue.now_ns};
}

static void on_opened(void *ctx, uint32_t node, uint32_t handle) {
	assert_int_equal(handle, HANDLE);
	tell(ctx, TOLD_OPENED, node, 0);
}

static int on_accepted(void *ctx, uint32_t node, uint32_t from, uint32_t *ret_handle) {
	struct fixture *fixture = ctx;

	tell(ctx, TOLD_ACCEPTED, node, from);
	*ret_handle = HANDLE_ACCEPTED + from;
	return fixture->accept_error;
}

static void on_frame(void *ctx, uint32_t node, uint32_t handle, const void *frame, uint32_t size) {
	uint32_t number;

	(void)handle;
	assert_true(size >= sizeof(number));
	memcpy(&number, frame, sizeof(number));
	tell(ctx, TOLD_FRAME, node, number);
}

static void on_writable(void *ctx, uint32_t node, uint32_t handle) {
	(void)handle;
	tell(ctx, TOLD_WRITABLE, node, 0);
}

static void on_ended(void *ctx, uint32_t node, uint32_t handle, int error) {
	(void)handle;
	tell(ctx, TOLD_ENDED, node, (uint32_t)error);
}

static const struct net_sink sink = {
	.opened = on_opened,
	.accepted = on_accepted,
	.frame = on_frame,
	.writable = on_writable,
	.ended = on_ended,
};

static int setup(void **state) {
	struct net_config config = {
		.nodes = NODES,
		.hosts = NODES,
		.seed = 3,
		.delay_median_ns = 100000,
		.delay_p99_ns = 1000000,
		.stall_ns = 2 * SEC,
		.buffer_bytes = 10000,
		.user_timeout_ns = 20 * SEC,
		.backlog_max = 2,
	};
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_int_equal(pool_create(&fixture->pool), 0);
	assert_int_equal(queue_init(&fixture->queue, fixture->pool), 0);
	assert_int_equal(trace_init(&fixture->trace, NULL), 0);
	assert_int_equal(
		net_init(&fixture->net, &config, &fixture->queue, &fixture->trace, &sink, fixture),
		0
	);
	for (uint32_t n = 0; n < NODES; n++)
		net_process_start(&fixture->net, n);
	*state = fixture;
	return 0;
}

static int teardown(void **state) {
	struct fixture *fixture = *state;

	net_fini(&fixture->net);
	trace_fini(&fixture->trace);
	queue_fini(&fixture->queue);
	pool_destroy(fixture->pool);
	free(fixture);
	return 0;
}

static void run(struct fixture *fixture, uint64_t for_ns) {
	uint64_t until_ns = fixture->queue.now_ns + for_ns;
	struct event *event;

	while ((event = queue_pop(&fixture->queue, until_ns)) != NULL)
		net_dispatch(&fixture->net, event);
	fixture->queue.now_ns = until_ns;
}

// Establish a connection from node 0 to node 1; both know it.
static void establish(struct fixture *fixture) {
	net_open(&fixture->net, 0, HANDLE, 1);
	run(fixture, 100 * MS);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(fixture->words[0].what, TOLD_OPENED);
	assert_int_equal(fixture->words[1].what, TOLD_ACCEPTED);
	fixture->count = 0;
}

static int send_number(struct fixture *fixture, uint32_t number, uint32_t size) {
	uint8_t frame[4096] = {0};

	assert_true(size <= sizeof(frame));
	memcpy(frame, &number, sizeof(number));
	return net_send(&fixture->net, 0, HANDLE, frame, size);
}

static void expect_frames(const struct fixture *fixture, uint32_t from, uint32_t count) {
	uint32_t next = from;

	for (uint32_t n = 0; n < fixture->count; n++) {
		if (fixture->words[n].what == TOLD_FRAME)
			assert_int_equal(fixture->words[n].value, next++);
	}
	assert_int_equal(next, from + count);
}

// Return the value of the only callback of this kind; -1 if there was none.
static int64_t told(const struct fixture *fixture, enum told what, uint32_t node) {
	int64_t value = -1;

	for (uint32_t n = 0; n < fixture->count; n++) {
		if (fixture->words[n].what == what && fixture->words[n].node == node) {
			assert_int_equal(value, -1);
			value = fixture->words[n].value;
		}
	}
	return value;
}

static void a_process_that_is_not_there_is_refused_at_once(void **state) {
	struct fixture *fixture = *state;

	net_process_end(&fixture->net, 1);
	net_open(&fixture->net, 0, HANDLE, 1);
	run(fixture, 20 * MS);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), ECONNREFUSED);
	assert_int_equal(fixture->net.conns_open, 0);
}

static void a_dark_host_is_silent_until_the_connect_times_out(void **state) {
	struct fixture *fixture = *state;

	net_host_down(&fixture->net, 1, true, false);
	net_open(&fixture->net, 0, HANDLE, 1);
	run(fixture, 10 * SEC);
	assert_int_equal(fixture->count, 0);
	run(fixture, 40 * SEC);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), ETIMEDOUT);
}

static void a_connection_nobody_wants_is_reset(void **state) {
	struct fixture *fixture = *state;

	fixture->accept_error = -EMFILE;
	net_open(&fixture->net, 0, HANDLE, 1);
	run(fixture, SEC);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), ECONNRESET);
	assert_int_equal(fixture->net.conns_open, 0);
}

static void frames_of_a_stream_stay_in_order_whatever_their_delay(void **state) {
	struct fixture *fixture = *state;

	establish(fixture);
	for (uint32_t n = 0; n < 300; n++) {
		assert_int_equal(send_number(fixture, n, 30), 0);
		run(fixture, n * 100);
	}
	run(fixture, SEC);
	expect_frames(fixture, 0, 300);
	assert_true(fixture->net.nodes[0].sent_frames == 300);
	assert_true(
		fixture->net.nodes[0].sent_bytes ==
		300 * (30 + NET_FRAME_OVERHEAD) + 2 * NET_PROOF_BYTES
	);
}

static void a_stall_holds_what_is_sent_after_it_too(void **state) {
	struct fixture *fixture = *state;

	establish(fixture);
	fixture->net.config.stall_ppm = 1000000;
	assert_int_equal(send_number(fixture, 0, 30), 0);
	fixture->net.config.stall_ppm = 0;
	assert_int_equal(send_number(fixture, 1, 30), 0);
	run(fixture, 1900 * MS);
	assert_int_equal(fixture->count, 0);
	run(fixture, 200 * MS);
	expect_frames(fixture, 0, 2);
}

static void a_packet_that_is_lost_is_sent_again_and_late(void **state) {
	struct fixture *fixture = *state;
	struct net_host lossy;
	uint32_t in_time;

	establish(fixture);
	lossy = fixture->net.hosts[fixture->net.nodes[1].host];
	lossy.loss_in_percent = 60;
	lossy.loss_out_percent = 60;
	net_host_set(&fixture->net, fixture->net.nodes[1].host, &lossy);
	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(send_number(fixture, n, 30), 0);
	run(fixture, 100 * MS);
	in_time = fixture->count;
	assert_true(in_time < 20);
	run(fixture, fixture->net.config.user_timeout_ns * 2);
	expect_frames(fixture, 0, 20);
}

static void a_killed_process_ends_its_connections_behind_what_it_sent(void **state) {
	struct fixture *fixture = *state;

	establish(fixture);
	assert_int_equal(send_number(fixture, 0, 30), 0);
	net_process_end(&fixture->net, 0);
	run(fixture, 100 * MS);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(fixture->words[0].what, TOLD_FRAME);
	assert_int_equal(told(fixture, TOLD_ENDED, 1), ECONNRESET);
	assert_int_equal(fixture->net.conns_open, 0);
}

static void a_host_that_goes_dark_is_noticed_by_the_user_timeout_only(void **state) {
	struct fixture *fixture = *state;

	establish(fixture);
	net_host_down(&fixture->net, 1, true, false);
	assert_int_equal(send_number(fixture, 0, 30), 0);
	run(fixture, 19 * SEC);
	assert_int_equal(fixture->count, 0);
	run(fixture, 2 * SEC);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), ETIMEDOUT);
	assert_int_equal(fixture->net.conns_open, 0);
}

static void a_host_that_is_back_resets_connections_it_does_not_know(void **state) {
	struct fixture *fixture = *state;

	establish(fixture);
	net_host_down(&fixture->net, 1, true, false);
	net_host_down(&fixture->net, 1, false, false);
	net_process_start(&fixture->net, 1);
	assert_int_equal(send_number(fixture, 0, 30), 0);
	run(fixture, 100 * MS);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), ECONNRESET);
}

static void a_cut_shorter_than_the_timeout_loses_and_reorders_nothing(void **state) {
	struct net_cut cut = {.a = 1, .b = 0};
	struct fixture *fixture = *state;

	establish(fixture);
	net_pair_cut(&fixture->net, &cut, true);
	for (uint32_t n = 0; n < 10; n++) {
		assert_int_equal(send_number(fixture, n, 30), 0);
		run(fixture, SEC);
	}
	assert_int_equal(fixture->count, 0);
	net_pair_cut(&fixture->net, &cut, false);
	assert_int_equal(send_number(fixture, 10, 30), 0);
	run(fixture, 10 * SEC);
	expect_frames(fixture, 0, 11);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), -1);
}

static void what_is_lost_one_way_is_late_that_way_only(void **state) {
	struct net_host lossy = {.loss_in_percent = 90};
	struct fixture *fixture = *state;

	establish(fixture);
	net_host_set(&fixture->net, 0, &lossy);
	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(send_number(fixture, n, 30), 0);
	run(fixture, 100 * MS);
	expect_frames(fixture, 0, 20);
	lossy = (struct net_host){.loss_out_percent = 90};
	net_host_set(&fixture->net, 0, &lossy);
	for (uint32_t n = 20; n < 40; n++)
		assert_int_equal(send_number(fixture, n, 30), 0);
	run(fixture, 100 * MS);
	assert_true(fixture->count < 40);
	run(fixture, fixture->net.config.user_timeout_ns * 2);
	expect_frames(fixture, 0, 40);
}

static void a_cut_of_one_way_stops_that_way_only(void **state) {
	struct net_cut cut = {.a = 0, .b = 1, .one_way = true};
	struct fixture *fixture = *state;

	establish(fixture);
	net_pair_cut(&fixture->net, &cut, true);
	assert_false(net_reaches(&fixture->net, 0, 1));
	assert_true(net_reaches(&fixture->net, 1, 0));
	assert_true(net_reaches(&fixture->net, 0, 2));
	assert_int_equal(send_number(fixture, 0, 30), 0);
	run(fixture, SEC);
	assert_int_equal(fixture->count, 0);
	net_pair_cut(&fixture->net, &cut, false);
	assert_true(net_reaches(&fixture->net, 0, 1));
	run(fixture, 10 * SEC);
	expect_frames(fixture, 0, 1);
}

static void what_is_heard_but_not_acknowledged_ends_the_senders_connection(void **state) {
	struct net_host mute = {.mute = true};
	struct fixture *fixture = *state;

	establish(fixture);
	net_host_set(&fixture->net, 1, &mute);
	assert_int_equal(send_number(fixture, 0, 30), 0);
	run(fixture, 21 * SEC);
	expect_frames(fixture, 0, 1);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), ETIMEDOUT);
}

static void a_frozen_process_reads_everything_in_order_when_it_resumes(void **state) {
	struct fixture *fixture = *state;

	establish(fixture);
	net_process_freeze(&fixture->net, 1);
	for (uint32_t n = 0; n < 5; n++)
		assert_int_equal(send_number(fixture, n, 30), 0);
	run(fixture, 10 * SEC);
	net_close(&fixture->net, 0, HANDLE);
	run(fixture, 10 * SEC);
	assert_int_equal(fixture->count, 0);
	net_process_thaw(&fixture->net, 1);
	expect_frames(fixture, 0, 5);
	assert_int_equal(fixture->count, 6);
	assert_int_equal(fixture->words[5].what, TOLD_ENDED);
}

static void a_frozen_process_is_connected_to_until_its_backlog_is_full(void **state) {
	struct fixture *fixture = *state;

	net_process_freeze(&fixture->net, 1);
	net_open(&fixture->net, 0, HANDLE, 1);
	net_open(&fixture->net, 2, HANDLE, 1);
	run(fixture, 100 * MS);
	net_open(&fixture->net, 3, HANDLE, 1);
	run(fixture, 400 * MS);
	assert_int_equal(fixture->net.nodes[1].backlog, 2);
	assert_int_equal(fixture->count, 0); // the key proof needs the process
	net_process_thaw(&fixture->net, 1);
	run(fixture, 2 * SEC);
	for (uint32_t n = 0; n < NODES; n++)
		assert_int_equal(told(fixture, TOLD_OPENED, n), n == 1 ? -1 : 0);
}

static void a_full_buffer_refuses_and_says_when_there_is_room(void **state) {
	struct fixture *fixture = *state;
	uint32_t taken = 0;

	establish(fixture);
	net_process_freeze(&fixture->net, 1);
	while (send_number(fixture, taken, 1000) == 0)
		taken++;
	assert_int_equal(taken, 10);
	run(fixture, SEC);
	assert_int_equal(told(fixture, TOLD_WRITABLE, 0), -1);
	net_process_thaw(&fixture->net, 1);
	run(fixture, SEC);
	expect_frames(fixture, 0, taken);
	assert_int_equal(told(fixture, TOLD_WRITABLE, 0), 0);
	assert_int_equal(send_number(fixture, taken, 1000), 0);
}

static void a_buffer_that_stays_full_ends_the_connection(void **state) {
	struct fixture *fixture = *state;

	establish(fixture);
	net_process_freeze(&fixture->net, 1);
	while (send_number(fixture, 0, 1000) == 0)
		continue;
	run(fixture, 19 * SEC);
	assert_int_equal(fixture->count, 0);
	run(fixture, 2 * SEC);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), ETIMEDOUT);
}

static void a_firewall_refuses_new_connections_and_keeps_old_ones(void **state) {
	struct net_host rejecting = {.refuses = true};
	struct fixture *fixture = *state;

	establish(fixture);
	net_host_set(&fixture->net, 1, &rejecting);
	net_open(&fixture->net, 2, HANDLE, 1);
	assert_int_equal(send_number(fixture, 0, 30), 0);
	run(fixture, 100 * MS);
	expect_frames(fixture, 0, 1);
	assert_int_equal(told(fixture, TOLD_ENDED, 2), ECONNREFUSED);
	assert_int_equal(told(fixture, TOLD_ENDED, 0), -1);
}

static void delays_have_the_median_and_the_tail_they_should(void **state) {
	struct fixture *fixture = *state;
	const uint32_t *delays = fixture->net.delays;

	assert_in_range(delays[2048], 98000, 102000);
	assert_in_range(delays[4055], 950000, 1050000);
}

static void the_same_seed_gives_the_same_digest(void **state) {
	uint64_t digests[2];

	for (uint32_t n = 0; n < 2; n++) {
		struct fixture *fixture;
		void *again = NULL;

		assert_int_equal(setup(&again), 0);
		fixture = again;
		establish(fixture);
		for (uint32_t m = 0; m < 50; m++)
			assert_int_equal(send_number(fixture, m, 30), 0);
		net_process_cut(&fixture->net, 1);
		run(fixture, SEC);
		digests[n] = fixture->trace.digest;
		teardown(&again);
	}
	(void)state;
	assert_true(digests[0] != 0);
	assert_int_equal(digests[0], digests[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_GROUP(sim_net) {
	const struct CMUnitTest tests[] = {
		TEST(a_process_that_is_not_there_is_refused_at_once),
		TEST(a_dark_host_is_silent_until_the_connect_times_out),
		TEST(a_connection_nobody_wants_is_reset),
		TEST(frames_of_a_stream_stay_in_order_whatever_their_delay),
		TEST(a_stall_holds_what_is_sent_after_it_too),
		TEST(a_packet_that_is_lost_is_sent_again_and_late),
		TEST(a_killed_process_ends_its_connections_behind_what_it_sent),
		TEST(a_host_that_goes_dark_is_noticed_by_the_user_timeout_only),
		TEST(a_host_that_is_back_resets_connections_it_does_not_know),
		TEST(a_cut_shorter_than_the_timeout_loses_and_reorders_nothing),
		TEST(a_cut_of_one_way_stops_that_way_only),
		TEST(what_is_lost_one_way_is_late_that_way_only),
		TEST(what_is_heard_but_not_acknowledged_ends_the_senders_connection),
		TEST(a_frozen_process_reads_everything_in_order_when_it_resumes),
		TEST(a_frozen_process_is_connected_to_until_its_backlog_is_full),
		TEST(a_full_buffer_refuses_and_says_when_there_is_room),
		TEST(a_buffer_that_stays_full_ends_the_connection),
		TEST(a_firewall_refuses_new_connections_and_keeps_old_ones),
		TEST(delays_have_the_median_and_the_tail_they_should),
		cmocka_unit_test(the_same_seed_gives_the_same_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
