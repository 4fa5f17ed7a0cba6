// SPDX-License-Identifier: BSD-3-Clause
// Operations of another thread, through a port; and telemetry, which shows them. EAL is started
// once, by the last test.
#include "dataplane/lane/lane_bed.h"
#include "lane/lane_port_impl.h"

#include <dataplane/eal.h>
#include <dataplane/telemetry.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define OPS 64

static const struct bed_config threaded = {
	.pair_max = 2,
	.depth = 8,
	.op_max = 256,
	.message_max = 4096,
	.threaded = true,
};

static void answer_is(struct bed *bed, uint32_t kind, const void *object, int err) {
	struct pollfd fd = {.fd = worker_event_fd(bed->worker), .events = POLLIN};
	struct worker_record record;

	while (worker_take(bed->worker, &record, 1) == 0)
		(void)poll(&fd, 1, 1000);
	assert_int_equal(record.kind, kind);
	assert_ptr_equal(worker_pointer(record.words[0]), object);
	assert_int_equal((int)(int64_t)record.words[1], err);
}

static void start(struct bed *bed, struct bed_pair *pair, struct lane_port **ret_port) {
	struct lane_port_config config = {.op_max = OPS};
	struct worker_facts facts;

	bed_open(bed, &threaded);
	bed_fill(bed, 0, 5);
	*pair = bed_pair_up(bed); // before the worker runs
	assert_int_equal(worker_start(bed->worker, &facts), 0);
	for (int side = 0; side < 2; side++) {
		const struct worker_record record = {
			.kind = LANE_REQUEST_ATTACH, .words = {worker_word(bed->lanes[side])}};

		assert_int_equal(worker_post(bed->worker, &record), 0);
		answer_is(bed, LANE_EVENT_ATTACHED, bed->lanes[side], 0);
	}
	config.lane = bed->lanes[0];
	config.worker = bed->worker;
	assert_int_equal(lane_port_create(&config, ret_port), 0);
	assert_int_equal(lane_port_attach(*ret_port), 0);
	answer_is(bed, LANE_EVENT_ATTACHED, *ret_port, 0);
}

static void stop(struct bed *bed, struct lane_port *port) {
	assert_int_equal(lane_port_detach(port), 0);
	answer_is(bed, LANE_EVENT_DETACHED, port, 0);
	worker_stop(bed->worker);
	lane_port_destroy(port);
	bed_close(bed);
}

static struct op *
take_op(struct bed *bed, const struct bed_pair *pair, struct lane_port *port, uint32_t n) {
	struct op *op = lane_port_take(port);

	if (op == NULL)
		return NULL;
	*op = bed_op(bed, pair, OP_WRITE, 64 * (n % 1000), 64);
	op->done = NULL;
	return op;
}

static uint32_t collect(struct lane_port *port, uint32_t wanted) {
	struct pollfd fd = {.fd = lane_port_fd(port), .events = POLLIN};
	struct op *ops[7];
	uint32_t seen = 0;

	while (seen < wanted) {
		uint32_t count = lane_port_ends(port, ops, 7);

		for (uint32_t n = 0; n < count; n++) {
			assert_int_equal(ops[n]->outcome, OP_OK);
			lane_port_give(port, ops[n]);
		}
		seen += count;
		if (count < 7 && seen < wanted)
			(void)poll(&fd, 1, 60000);
	}
	return seen;
}

static void port_moves(struct bed *bed, const struct bed_pair *pair, struct lane_port *port) {
	uint32_t total = 0;

	for (uint32_t round = 0; round < 200; round++) {
		struct op *ops[LANE_PORT_BATCH_MAX];
		uint32_t count = 1 + round % LANE_PORT_BATCH_MAX;

		for (uint32_t n = 0; n < count; n++) {
			ops[n] = take_op(bed, pair, port, total + n);
			assert_non_null(ops[n]);
		}
		assert_int_equal(lane_port_submit(port, ops, count), 0);
		total += collect(port, count);
	}
	assert_memory_equal(bed->memory[1], bed->memory[0], 64000);
}

static void another_thread_has_operations_done(void **state) {
	struct lane_port *port;
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	start(&bed, &pair, &port);
	port_moves(&bed, &pair, port);
	stop(&bed, port);
}

static void pool_that_is_empty_says_so(void **state) {
	struct op *ops[OPS], *one;
	struct lane_port *port;
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	start(&bed, &pair, &port);
	for (uint32_t n = 0; n < OPS; n++)
		assert_non_null(ops[n] = take_op(&bed, &pair, port, n));
	assert_null(lane_port_take(port));
	lane_port_give(port, ops[OPS - 1]);
	assert_non_null(one = lane_port_take(port));
	lane_port_give(port, one);
	assert_int_equal(lane_port_submit(port, ops, 0), -EINVAL);
	assert_int_equal(lane_port_submit(port, ops, LANE_PORT_BATCH_MAX + 1), -EINVAL);
	// All at once, one by one: the rings hold as many as there are.
	for (uint32_t n = 0; n < OPS - 1; n++)
		assert_int_equal(lane_port_submit(port, &ops[n], 1), 0);
	collect(port, OPS - 1);
	stop(&bed, port);
}

static void port_with_operations_under_way_is_not_detached(void **state) {
	struct lane_port *port;
	struct bed_pair pair;
	struct bed bed;
	struct op *op;

	(void)state;
	start(&bed, &pair, &port);
	fake_qp_hold(pair.qps[0]);
	op = take_op(&bed, &pair, port, 0);
	assert_int_equal(lane_port_submit(port, &op, 1), 0);
	assert_int_equal(lane_port_detach(port), 0);
	answer_is(&bed, LANE_EVENT_DETACHED, port, -EBUSY);
	fake_qp_let_go(pair.qps[0], UINT32_MAX);
	worker_wake(bed.worker);
	fake_verbs_run();
	collect(port, 1);
	stop(&bed, port);
}

static void port_that_makes_no_sense_is_refused(void **state) {
	struct lane_port_config config = {.op_max = 0};
	struct lane_port *port = NULL;

	(void)state;
	assert_int_equal(lane_port_create(&config, &port), -EINVAL);
	config.op_max = LANE_PORT_OPS_MAX + 1;
	assert_int_equal(lane_port_create(&config, &port), -EINVAL);
	assert_null(port);
	assert_null(lane_port_destroy(NULL));
}

static struct eal_facts eal;

static int telemetry_connect(void) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char hello[1024];

	snprintf(
		address.sun_path, sizeof(address.sun_path), "%.80s/dpdk_telemetry.v2",
		eal.runtime_dir
	);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(recv(fd, hello, sizeof(hello), 0) > 0);
	return fd;
}

static void ask(int fd, const char *command, char *answer, size_t size) {
	ssize_t length;

	assert_true(send(fd, command, strlen(command), 0) > 0);
	length = recv(fd, answer, size - 1, 0);
	assert_true(length > 0);
	answer[length] = '\0';
}

static void telemetry_shows_counters_by_name(void **state) {
	struct lane_port *port;
	struct bed_pair pair;
	struct bed bed;
	const struct eal_config config = {
		.name = "lane-port-test", .memory = EAL_MEMORY_PLAIN, .memory_mib = 8};
	char answer[4096];
	int fd;

	(void)state;
	assert_int_equal(eal_start(&config, &eal), 0);
	start(&bed, &pair, &port);
	port_moves(&bed, &pair, port);
	assert_int_equal(telemetry_start(), 0);
	assert_int_equal(telemetry_add_worker("", bed.worker), -EINVAL);
	assert_int_equal(telemetry_add_worker("bed", bed.worker), 0);
	assert_int_equal(telemetry_add_lane("bed:fake0", bed.lanes[0]), 0);
	assert_int_equal(telemetry_add_lane("bed:fake1", bed.lanes[1]), 0);
	fd = telemetry_connect();
	ask(fd, "/tocsin/lane", answer, sizeof(answer));
	assert_string_equal(answer, "{\"/tocsin/lane\":[\"bed:fake0\",\"bed:fake1\"]}");
	ask(fd, "/tocsin/lane,bed:fake0", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"ended_ok\":3204"));
	assert_non_null(strstr(answer, "\"pairs\":1"));
	ask(fd, "/tocsin/worker,bed", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"turns\":"));
	ask(fd, "/tocsin/worker,bed:fake0", answer, sizeof(answer)); // a lane's
	assert_string_equal(answer, "{\"/tocsin/worker\":null}");
	telemetry_remove(bed.lanes[0]);
	telemetry_remove(bed.lanes[0]);
	ask(fd, "/tocsin/lane", answer, sizeof(answer));
	assert_string_equal(answer, "{\"/tocsin/lane\":[\"bed:fake1\"]}");
	telemetry_remove(bed.lanes[1]);
	telemetry_remove(bed.worker);
	close(fd);
	stop(&bed, port);
	eal_stop();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_thread_has_operations_done),
		cmocka_unit_test(pool_that_is_empty_says_so),
		cmocka_unit_test(port_with_operations_under_way_is_not_detached),
		cmocka_unit_test(port_that_makes_no_sense_is_refused),
		cmocka_unit_test(telemetry_shows_counters_by_name),
	};

	return cmocka_run_group_tests_name("lane_port", tests, NULL, NULL);
}
