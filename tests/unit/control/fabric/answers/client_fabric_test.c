// SPDX-License-Identifier: BSD-3-Clause
// DEVICES, PAIRS and PROBE on a fabric that the test plays.
#include "control/client/client_bench.h"

#include <control/fabric.h>
#include <dataplane/memory.h>
#include <lib/histogram.h>
#include <support/cases.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// The fabric, as far as clients see it.
struct fabric {
	struct fabric_device_view devices[FABRIC_DEVICES_MAX];
	uint32_t device_count;
	struct fabric_pair_view pairs[32];
	uint32_t pair_count;
	int start_err;
	struct fabric_ping_request request;
	fabric_ping_fn *ended; // NULL: no ping is under way
	void *ctx;
	uint32_t cancelled;
};

static struct fabric fabric;

static uint32_t device_count(const struct fabric *given) {
	return given->device_count;
}

static void device_at(const struct fabric *given, uint32_t n, struct fabric_device_view *ret_view) {
	*ret_view = given->devices[n];
}

static bool
pair_next(const struct fabric *given, uint32_t *cursor, struct fabric_pair_view *ret_view) {
	if (*cursor >= given->pair_count)
		return false;
	*ret_view = given->pairs[(*cursor)++];
	return true;
}

static int ping_start(
	struct fabric *given,
	const struct fabric_ping_request *request,
	fabric_ping_fn *ended,
	void *ctx,
	struct fabric_ping **ret_ping
) {
	if (given->start_err != 0)
		return given->start_err;
	given->request = *request;
	given->ended = ended;
	given->ctx = ctx;
	*ret_ping = (struct fabric_ping *)(void *)given;
	return 0;
}

static void ping_cancel(struct fabric_ping *ping) {
	assert_ptr_equal(ping, &fabric);
	assert_non_null(fabric.ended);
	fabric.ended = NULL;
	fabric.cancelled++;
}

static void numbers(const struct fabric *given, struct fabric_numbers *ret_numbers) {
	(void)given;
	*ret_numbers = (struct fabric_numbers){0};
}

static bool
path_next(const struct fabric *given, uint32_t *cursor, struct fabric_path_view *ret_view) {
	(void)given;
	(void)cursor;
	(void)ret_view;
	return false;
}

static const struct fabric_calls calls = {
	.device_count = device_count,
	.device_at = device_at,
	.pair_next = pair_next,
	.path_next = path_next,
	.ping_start = ping_start,
	.ping_cancel = ping_cancel,
	.numbers = numbers,
};

static int begin(void **state) {
	memset(&fabric, 0, sizeof(fabric));
	if (bench_start(state) != 0)
		return -1;
	client_server_use_fabric(bench.server, &calls, &fabric);
	return 0;
}

#define FABRIC_TEST(name) cmocka_unit_test_setup_teardown(name, begin, bench_stop)

static int connect_json(void) {
	int fd = bench_connect();

	bench_say(fd, "SET FORMAT json\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	return fd;
}

static void add_device(const char *name, enum fabric_device_state state, const char *reason) {
	struct fabric_device_view *view = &fabric.devices[fabric.device_count++];

	*view = (struct fabric_device_view){
		.name = name,
		.state = state,
		.since_ns = clock_now_ns(&bench.clock) - 754 * RAS_NS_PER_SEC,
		.reason = reason,
		.open = state == FABRIC_DEVICE_UP,
	};
	view->facts.port.speed_mbps = 400000;
	view->facts.port.active_mtu = 4096;
	view->counters.submitted = 12345678;
}

static struct fabric_pair_view *add_pair(const char *peer_device, enum pairing_state state) {
	struct fabric_pair_view *view = &fabric.pairs[fabric.pair_count++];

	*view = (struct fabric_pair_view){.device = "mlx5_bond_number_10", .in_lane = true};
	view->pairing.key.peer = bench_peer("n2")->record->id;
	view->pairing.state = state;
	view->pairing.since_ns = clock_now_ns(&bench.clock) - 754 * RAS_NS_PER_SEC;
	memcpy(view->pairing.key.peer_device, peer_device, strlen(peer_device));
	view->counters.ops[OP_OK] = state == PAIRING_READY ? 100000000 : 0;
	return view;
}

// Tables.

static void node_without_devices_says_so(void **state) {
	int fd = bench_connect();

	(void)state;
	for (uint32_t round = 0; round < 2; round++) {
		bench_say(fd, "PAIRS\n");
		assert_int_equal(strncmp(bench_shown(fd), "0 pairs, 0 ready\n", 17), 0);
		client_server_use_fabric(bench.server, NULL, NULL); // not even a fabric
	}
	bench_say(fd, "PROBE n2\n");
	assert_string_equal(
		bench_shown(fd), "ERROR: no pair with n2: this node or n2 has no RDMA device\n"
	);
	close(fd);
}

static void memory_of_gpus_is_told_beside_devices_and_pairs(void **state) {
	static char reason[MEMORY_REASON_MAX + 1];
	static const struct fabric_gpu_view gpus[] = {
		{FABRIC_GPU_NONE, 0, "", ""},
		{FABRIC_GPU_AWAITED, 1, "", ""},
		{FABRIC_GPU_SHOWN, 2, "0000:1b:00.0", ""},
		{FABRIC_GPU_MISSING, 3, "", reason},
		{FABRIC_GPU_STUCK, 4, "", "a call into libcuda does not return"},
	};
	static const char *const words[] = {
		"waits for memory of cuda:1\n",
		"peers read memory of cuda:2, 0000:1b:00.0, through it\n",
		"memory of cuda:3 is not exposed: r r",
		"memory of cuda:4 is not exposed: a call into libcuda does not return\n",
	};
	int fd = bench_connect(), json = connect_json();
	json_t *object, *gpu;
	const char *text;

	(void)state;
	for (size_t n = 0; n < MEMORY_REASON_MAX; n++)
		reason[n] = n % 2 == 0 ? 'r' : ' ';
	for (size_t n = 0; n < COUNT_OF(gpus); n++) {
		add_device("mlx5_0", FABRIC_DEVICE_UP, "");
		fabric.devices[n].gpu = gpus[n];
	}
	bench_say(fd, "PAIRS\n");
	text = bench_shown(fd);
	bench_assert_narrow(text, 80);
	assert_null(bench_find(text, "cuda:0"));
	for (size_t n = 0; n < COUNT_OF(words); n++)
		assert_non_null(bench_find(text, words[n]));
	object = bench_ask_json(json, "PAIRS\n");
	assert_int_equal(json_array_size(json_object_get(object, "gpus")), COUNT_OF(gpus) - 1);
	gpu = json_array_get(json_object_get(object, "gpus"), 1);
	assert_string_equal(json_string_value(json_object_get(gpu, "state")), "shown");
	assert_string_equal(json_string_value(json_object_get(gpu, "device")), "mlx5_0");
	assert_string_equal(json_string_value(json_object_get(gpu, "pci")), "0000:1b:00.0");
	json_decref(object);
	object = bench_ask_json(json, "DEVICES\n");
	gpu = json_array_get(json_object_get(object, "devices"), 0);
	assert_true(json_is_null(json_object_get(gpu, "gpu")));
	gpu = json_object_get(json_array_get(json_object_get(object, "devices"), 3), "gpu");
	assert_string_equal(json_string_value(json_object_get(gpu, "reason")), reason);
	json_decref(object);
	close(fd);
	close(json);
}

static void devices_are_listed_with_their_reasons(void **state) {
	static char reason[DEVICE_REASON_MAX + 1];
	int json = connect_json();
	json_t *object, *rows;

	(void)state;
	memset(reason, 'r', DEVICE_REASON_MAX);
	add_device("mlx5_0", FABRIC_DEVICE_UP, "");
	add_device("a_name_of_thirty_one_bytes_long", FABRIC_DEVICE_WAITING, reason);
	add_device("mlx5_2", FABRIC_DEVICE_STUCK, "port 1 of mlx5_2 is down");
	object = bench_ask_json(json, "DEVICES\n");
	rows = json_object_get(object, "devices");
	assert_int_equal(json_array_size(rows), 3);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 1), "reason")), reason
	);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 2), "state")), "stuck"
	);
	json_decref(object);
	close(json);
}

static void every_reason_and_state_of_a_pair_fits_a_terminal(void **state) {
	int fd = bench_connect(), json = connect_json();
	struct fabric_pair_view *view;
	const char *text;
	json_t *object, *rows, *row;

	(void)state;
	for (uint32_t reason = 1; reason < PAIRING_REASON_COUNT; reason++) {
		view = add_pair("a_name_of_thirty_one_bytes_long", PAIRING_FAILED);
		view->pairing.failure.reason = reason;
		view->pairing.failure.by_peer = true;
	}
	for (uint32_t n = 0; n < PAIRING_STATE_COUNT; n++) {
		view = add_pair("mlx5_0", (enum pairing_state)n);
		// For 754 seconds.
		view->counters.bytes_out = UINT64_C(754) * 1000 * 1024;
		view->counters.bytes_in = UINT64_C(754) * 1000 * 1024 * 1024;
		view->pairing.broken = 3;
	}
	bench_say(fd, "PAIRS\n");
	text = bench_shown(fd);
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(text, " pairs, 1 ready\n"));
	assert_non_null(bench_find(text, "NoCommonVersion\n"));
	assert_non_null(bench_find(text, " 1000 KiB, 1000 MiB\n"));
	object = bench_ask_json(json, "PAIRS\n");
	rows = json_object_get(object, "pairs");
	assert_int_equal(json_array_size(rows), fabric.pair_count);
	row = json_array_get(rows, fabric.pair_count - 1); // the ready one comes last
	assert_int_equal(json_integer_value(json_object_get(row, "sent_bytes_per_s")), 1024000);
	assert_string_equal(
		json_string_value(json_object_get(row, "port_congestion")), "not-counted"
	);
	assert_int_equal(json_integer_value(json_object_get(row, "errors")), 3);
	assert_true(json_is_null(json_object_get(row, "retransmits")));
	json_decref(object);
	close(fd);
	close(json);
}

// Only the peer knows the name of its device.
static void why_says_which_pairs_there_are_not_and_the_reason(void **state) {
	int fd = bench_connect(), json = connect_json();
	struct pairing_failure *failure;
	json_t *object, *rows;
	const char *text;

	(void)state;
	bench_say(fd, "WHY n2\n");
	assert_null(bench_find(bench_shown(fd), "RDMA pairs"));
	add_pair("mlx5_2", PAIRING_READY);
	failure = &add_pair("mlx5_3", PAIRING_FAILED)->pairing.failure;
	failure->reason = PAIRING_LIMITED_MEMBERS;
	memset(failure->text, 'w', PAIRING_TEXT_MAX);
	memcpy(failure->text, "both are limited members ", 25);
	bench_say(fd, "WHY n2\n");
	text = bench_shown(fd);
	assert_non_null(bench_find(text, "\nRDMA pairs from here to it\n  1 of 2 ready\n"));
	assert_non_null(
		bench_find(text, "mlx5_bond_number_10>mlx5_3 failed, LimitedMembers: both are")
	);
	object = bench_ask_json(json, "WHY n2\n");
	rows = json_object_get(object, "pairs");
	assert_int_equal(json_array_size(rows), 2);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "reason")));
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 1), "reason")),
		"LimitedMembers"
	);
	json_decref(object);
	close(fd);
	close(json);
}

static void hostile_names_and_words_of_peers_break_no_line_and_no_document(void **state) {
	static const char *const hostile[] = {
		"\x1b[2J",
		"a\nOK\n",
		"\xff\xfe",
		"\xe2\x82",
		"\"},{\"state\":\"x\"",
		"0123456789012345678901234567\xe2\x82\xac",
		"\xc0\x80\xc1",
	};
	int fd = bench_connect(), json = connect_json();
	json_t *object;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(hostile); n++) {
		struct fabric_pair_view *view = add_pair(hostile[n], PAIRING_FAILED);

		view->pairing.failure.reason = PAIRING_CLOSED;
		snprintf(
			view->pairing.failure.text, sizeof(view->pairing.failure.text), "%s%s",
			hostile[n], hostile[COUNT_OF(hostile) - 1 - n]
		);
		memset(view->pairing.failure.text + 20, '\xe2', PAIRING_TEXT_MAX - 20);
	}
	bench_say(fd, "PAIRS\n");
	bench_assert_narrow(bench_shown(fd), 80);
	object = bench_ask_json(json, "PAIRS\n"); // one line that parses
	assert_int_equal(json_array_size(json_object_get(object, "pairs")), COUNT_OF(hostile));
	json_decref(object);
	bench_say(fd, "PAIRS\n");
	assert_null(strpbrk(bench_shown(fd), "\x1b\xff\xfe"));
	close(fd);
	close(json);
}

// PROBE.

static void end_ping(const struct fabric_ping_result *result) {
	fabric_ping_fn *ended = fabric.ended;

	assert_non_null(ended);
	fabric.ended = NULL;
	ended(fabric.ctx, result);
}

static char own_device[DEVICE_NAME_MAX + 1];

static struct fabric_ping_result good_result(struct histogram **ret_latency) {
	struct fabric_ping_result result = {.device = own_device, .sent = 20, .answered = 20};

	snprintf(own_device, sizeof(own_device), "mlx5_0");
	memcpy(result.key.peer_device, "mlx5_7", 7);
	assert_int_equal(histogram_create(&histogram_shape_latency, ret_latency), 0);
	for (uint64_t n = 1; n <= 20; n++)
		histogram_record(*ret_latency, n * 100);
	result.latency = *ret_latency;
	return result;
}

static void probe_says_what_was_measured(void **state) {
	int fd = bench_connect(), json = connect_json();
	struct histogram *latency;
	struct fabric_ping_result result = good_result(&latency);
	json_t *object;
	const char *text;

	(void)state;
	bench_say(fd, "PROBE n2 20 64 1000\n");
	bench_turn();
	assert_int_equal(fabric.request.count, 20);
	assert_int_equal(fabric.request.bytes, 64);
	assert_int_equal(fabric.request.interval_ns, 1000000);
	assert_int_equal(fabric.request.peer, bench_peer("n2")->record->id);
	end_ping(&result);
	memset(own_device, 'x', 3); // it is the fabric's, and may go
	text = bench_shown(fd);
	assert_non_null(bench_find(
		text, "n2 answers by RDMA, mlx5_0 to mlx5_7: 20 reads of 64 bytes, min 100 ns"
	));
	bench_say(json, "PROBE n2\n");
	bench_turn();
	assert_int_equal(fabric.request.count, 100);
	assert_int_equal(fabric.request.bytes, 8);
	end_ping(&result);
	object = json_loads(bench_hear(json), 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(object, "answered")), 20);
	assert_int_equal(json_integer_value(json_object_get(object, "min_ns")), 100);
	json_decref(object);
	histogram_destroy(latency);
	close(fd);
	close(json);
}

static void probe_tells_the_time_of_each_read(void **state) {
	int json = connect_json();
	uint32_t times_ns[20];
	struct histogram *latency;
	struct fabric_ping_result result = good_result(&latency);
	const json_t *times;
	json_t *object;

	(void)state;
	for (uint32_t n = 0; n < 20; n++)
		times_ns[n] = 1000 * n + 7;
	result.times_ns = times_ns;
	result.took_ns = 190140;
	bench_say(json, "PROBE n2 20 64 0 times\n");
	bench_turn();
	assert_true(fabric.request.keeps_times);
	end_ping(&result);
	memset(times_ns, 0, sizeof(times_ns)); // they are the fabric's, and may go
	object = json_loads(bench_hear(json), 0, NULL);
	times = json_object_get(object, "times_ns");
	assert_int_equal(json_array_size(times), 20);
	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(json_integer_value(json_array_get(times, n)), 1000 * n + 7);
	assert_int_equal(json_integer_value(json_object_get(object, "took_ns")), 190140);
	json_decref(object);
	bench_say(json, "PROBE n2 65537 64 0 times\n");
	object = json_loads(bench_hear(json), 0, NULL);
	assert_string_equal(
		json_string_value(json_object_get(object, "error")),
		"times can be listed for at most 65536 reads"
	);
	json_decref(object);
	histogram_destroy(latency);
	close(json);
}

// As many as there may be are told in pieces, a turn of the loop for each.
static void probe_tells_many_times_in_pieces(void **state) {
	static uint32_t times_ns[FABRIC_PING_TIMES_MAX];
	static char said[FABRIC_PING_TIMES_MAX * 8];
	int json = connect_json();
	struct histogram *latency;
	struct fabric_ping_result result = good_result(&latency);
	size_t used = 0, pieces = 0;
	const json_t *times;
	json_t *object;

	(void)state;
	for (uint32_t n = 0; n < FABRIC_PING_TIMES_MAX; n++)
		times_ns[n] = n;
	result.times_ns = times_ns;
	result.sent = result.answered = FABRIC_PING_TIMES_MAX;
	bench_say(json, "PROBE n2 65536 64 0 times\n");
	bench_turn();
	end_ping(&result);
	while (used == 0 || said[used - 1] != '\n') {
		ssize_t got;

		assert_in_range(++pieces, 1, 1000);
		assert_int_equal(loop_turn(bench.loop, 0), 0);
		got = recv(json, said + used, sizeof(said) - used, MSG_DONTWAIT);
		assert_true(got <= 16384);
		used += got > 0 ? (size_t)got : 0;
	}
	object = json_loadb(said, used, 0, NULL);
	times = json_object_get(object, "times_ns");
	assert_int_equal(json_array_size(times), FABRIC_PING_TIMES_MAX);
	for (uint32_t n = 0; n < FABRIC_PING_TIMES_MAX; n++)
		assert_int_equal(json_integer_value(json_array_get(times, n)), n);
	json_decref(object);
	histogram_destroy(latency);
	close(json);
}

static void probe_that_fails_says_how(void **state) {
	static const struct {
		struct fabric_ping_result result;
		const char *said;
	} cases[] = {
		{{.err = -ENETDOWN,
		  .failure = {.reason = PAIRING_NO_COMMON_FABRIC, .text = "a\x1b[2J\nb"}},
		 "ERROR: no pair with n2: NoCommonFabric: a?[2J?b\n"},
		{{.err = -ENETDOWN, .failure = {.reason = PAIRING_DEADLINE}},
		 "ERROR: no pair with n2: Deadline\n"},
		{{.err = -ENODEV}, "ERROR: n2 offers no page to read\n"},
		{{.err = -ESHUTDOWN, .failure = {.reason = PAIRING_SHUTDOWN}},
		 "ERROR: no pair with n2: Shutdown\n"},
		{{.end = PROBE_NO_PATH, .sent = 5, .answered = 5},
		 "ERROR: the pair with n2 was lost after 5 of 5 reads\n"},
		{{.end = PROBE_FAILED, .sent = 3, .outcome = OP_TIMED_OUT},
		 "ERROR: n2 did not answer read 3: "},
		{{.end = PROBE_FAILED,
		  .sent = 1,
		  .paired_ns = 990 * RAS_NS_PER_MS,
		  .outcome = OP_TIMED_OUT,
		  .cause = {.err = -ETIMEDOUT, .kind = OP_READ, .length = 8, .remote_key = 5}},
		 "ERROR: n2 did not answer read 1: timed-out, ETIMEDOUT of a read of 8 bytes at 0x0, "
		 "key 0x5; making the pair took 990 ms\n"},
	};
	int fd = bench_connect(), json = connect_json();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct fabric_ping_result result = cases[n].result;
		const char *text;
		json_t *object;

		result.device = "mlx5_0";
		bench_say(fd, "PROBE n2\n");
		bench_turn();
		end_ping(&result);
		text = bench_shown(fd);
		assert_int_equal(strncmp(text, cases[n].said, strlen(cases[n].said)), 0);
		bench_say(json, "PROBE n2\n");
		bench_turn();
		end_ping(&result);
		object = json_loads(bench_hear(json), 0, NULL);
		assert_non_null(json_object_get(object, "error"));
		json_decref(object);
	}
	close(fd);
	close(json);
}

static void probe_that_cannot_begin_says_why(void **state) {
	static const struct {
		int err;
		const char *said;
	} cases[] = {
		{-EHOSTDOWN, "ERROR: n2 is dead or has left, `tocsin why n2` tells more\n"},
		{-ENODEV, "ERROR: no pair with n2: this node or n2 has no RDMA device\n"},
		{-EINVAL, "ERROR: count and bytes must be at least 1\n"},
		{-EAGAIN, "ERROR: too many probes are under way, try again\n"},
		{-ENOMEM, "ERROR: n2: Cannot allocate memory\n"},
	};
	static const char *const wrong[] = {
		"PROBE\n",
		"PROBE nobody\n",
		"PROBE n2 x\n",
		"PROBE n2 1000001\n",
		"PROBE n2 1 65537\n",
		"PROBE n2 1 1 1000001\n",
		"PROBE n2 1 1 1 1\n",
		"PROBE n2 1 1 1 timesx\n",
		"PROBE n2 1 1 1 times times\n",
		"PROBE n2 -1\n",
		"PROBE n2 123456789012345678901234567\n",
	};
	int fd = bench_connect();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		fabric.start_err = cases[n].err;
		bench_say(fd, "PROBE n2\n");
		assert_string_equal(bench_shown(fd), cases[n].said);
	}
	fabric.start_err = 0;
	for (size_t n = 0; n < COUNT_OF(wrong); n++) {
		bench_say(fd, wrong[n]);
		assert_int_equal(strncmp(bench_shown(fd), "ERROR: ", 7), 0);
		assert_null(fabric.ended);
	}
	close(fd);
}

static void probe_is_cancelled_with_the_client_that_asked(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "PROBE n2\n");
	bench_turn();
	assert_non_null(fabric.ended);
	bench_restart(); // all clients are closed
	assert_int_equal(fabric.cancelled, 1);
	close(fd);
}

static void fabric_may_be_taken_down_while_a_probe_is_under_way(void **state) {
	struct fabric_ping_result result = {
		.err = -ESHUTDOWN,
		.failure = {.reason = PAIRING_SHUTDOWN},
		.device = "mlx5_0",
	};
	int fd = bench_connect(), other = bench_connect();

	(void)state;
	bench_say(fd, "PROBE n2\n");
	bench_turn();
	client_server_use_fabric(bench.server, NULL, NULL);
	end_ping(&result);
	assert_string_equal(bench_shown(fd), "ERROR: no pair with n2: Shutdown\n");
	client_server_use_fabric(bench.server, &calls, &fabric);
	bench_say(other, "PROBE n2\n");
	bench_turn();
	client_server_use_fabric(bench.server, NULL, NULL);
	bench_restart(); // its client goes first
	assert_int_equal(fabric.cancelled, 1);
	close(fd);
	close(other);
}

static void other_nodes_may_ask_all_of_it(void **state) {
	static const char *const lines[] = {"json - DEVICES", "json - PAIRS", "json - PROBE n2"};
	struct histogram *latency;
	struct fabric_ping_result result = good_result(&latency);

	(void)state;
	for (size_t n = 0; n < COUNT_OF(lines); n++) {
		bench.overlay.served_size = 0;
		bench.overlay.served_ended = false;
		bench.overlay.serve(
			bench.overlay.serve_ctx, (struct overlay_served *)(void *)&fabric, lines[n]
		);
		bench_turn();
		if (fabric.ended != NULL)
			end_ping(&result);
		bench_turn();
		assert_true(bench.overlay.served_ended);
		assert_int_equal(bench.overlay.served_err, 0);
		assert_null(bench_find(bench.overlay.served, "\"error\""));
	}
	histogram_destroy(latency);
}

UNIT_GROUP(client_fabric) {
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(node_without_devices_says_so),
		FABRIC_TEST(memory_of_gpus_is_told_beside_devices_and_pairs),
		FABRIC_TEST(devices_are_listed_with_their_reasons),
		FABRIC_TEST(every_reason_and_state_of_a_pair_fits_a_terminal),
		FABRIC_TEST(why_says_which_pairs_there_are_not_and_the_reason),
		FABRIC_TEST(hostile_names_and_words_of_peers_break_no_line_and_no_document),
		FABRIC_TEST(probe_says_what_was_measured),
		FABRIC_TEST(probe_tells_the_time_of_each_read),
		FABRIC_TEST(probe_tells_many_times_in_pieces),
		FABRIC_TEST(probe_that_fails_says_how),
		FABRIC_TEST(probe_that_cannot_begin_says_why),
		FABRIC_TEST(probe_is_cancelled_with_the_client_that_asked),
		FABRIC_TEST(fabric_may_be_taken_down_while_a_probe_is_under_way),
		FABRIC_TEST(other_nodes_may_ask_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
