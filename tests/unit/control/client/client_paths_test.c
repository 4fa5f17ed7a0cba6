// SPDX-License-Identifier: BSD-3-Clause
// PATHS, PATH and MATRIX on a fabric and answers of others that the test plays.
#include "control/client/client_bench.h"

#include <control/congestion.h>
#include <control/fabric.h>
#include <lib/wire.h>
#include <ras/payload.h>
#include <support/heap.h>
#include <verdict/observation.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATHS_MAX 64
#define BYTES_MAX (1 << 16)

struct fabric {
	struct fabric_path_view views[PATHS_MAX];
	struct ras_path_row rows[PATHS_MAX];
	uint32_t count;
	uint64_t interval_ns;
};

static struct fabric fabric;

// Two ports that count, and what they count.
struct checks {
	struct congestion_port ports[2];
};

static struct checks checks;

uint32_t checks_congestion(const struct checks *given, const struct congestion_port **ret_ports) {
	*ret_ports = given->ports;
	return 2;
}

uint32_t checks_count(const struct checks *given) {
	(void)given;
	return 0;
}

void checks_at(const struct checks *given, uint32_t n, struct check_view *ret_view) {
	(void)given;
	(void)n;
	(void)ret_view;
}

void checks_counters(const struct checks *given, struct checks_counters *ret_counters) {
	(void)given;
	(void)ret_counters;
}

static void play_congestion(void) {
	memset(&checks, 0xff, sizeof(checks));
	snprintf(checks.ports[0].device, sizeof(checks.ports[0].device), "mlx5_0");
	snprintf(checks.ports[1].device, sizeof(checks.ports[1].device), "mlx5_1");
	checks.ports[0].number = checks.ports[1].number = 1;
	checks.ports[0].totals[CONGESTION_CNP_SENT] = 4711;
	checks.ports[0].milli_per_s[CONGESTION_CNP_SENT] = 12500;
	checks.ports[0].totals[CONGESTION_ECN_MARKED] = 9;
	checks.ports[0].milli_per_s[CONGESTION_ECN_MARKED] = 0;
	checks.ports[0].received_permille = 625;
}

static uint32_t device_count(const struct fabric *given) {
	return given->count > 0;
}

static bool
path_next(const struct fabric *given, uint32_t *cursor, struct fabric_path_view *ret_view) {
	if (*cursor >= given->count)
		return false;
	*ret_view = given->views[(*cursor)++];
	return true;
}

static void path_row(
	const struct fabric *given,
	const struct fabric_path_view *view,
	struct ras_path_row *ret_row
) {
	uint32_t n = 0;

	while (given->rows[n].peer != view->peer ||
	       strcmp(given->rows[n].peer_device, view->peer_device) != 0)
		n++;
	*ret_row = given->rows[n];
}

static void numbers(const struct fabric *given, struct fabric_numbers *ret_numbers) {
	*ret_numbers = (struct fabric_numbers
	){.probes = {.interval_ns = given->interval_ns, .neighbours = given->count}};
}

static bool
pair_next(const struct fabric *given, uint32_t *cursor, struct fabric_pair_view *ret_view) {
	(void)given;
	(void)cursor;
	(void)ret_view;
	return false;
}

static const struct fabric_calls calls = {
	.pair_next = pair_next,
	.device_count = device_count,
	.path_next = path_next,
	.path_row = path_row,
	.numbers = numbers,
};

static int begin(void **state) {
	memset(&fabric, 0, sizeof(fabric));
	fabric.interval_ns = RAS_NS_PER_SEC;
	if (bench_start(state) != 0)
		return -1;
	client_server_use_fabric(bench.server, &calls, &fabric);
	return 0;
}

#define PATHS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, bench_stop)

static int connect_json(void) {
	int fd = bench_connect();

	bench_say(fd, "SET FORMAT json\n");
	assert_string_equal(bench_shown(fd), "OK\n");
	return fd;
}

static struct ras_path_row a_row(const char *peer, enum observation_kind seen, uint64_t median_ns) {
	struct ras_path_row row = {
		.peer = bench_peer(peer)->record->id,
		.device = "mlx5_0",
		.peer_device = "mlx5_1",
		.seen = (uint8_t)seen,
		.for_s = 754,
		.steady = true,
	};

	if (median_ns == 0)
		return row;
	row.count = 1200;
	row.lost = 3;
	row.min_ns = median_ns / 2;
	row.median_ns = row.baseline_ns = median_ns;
	row.p99_ns = 2 * median_ns;
	return row;
}

static void add_own(const struct ras_path_row *row) {
	struct fabric_path_view *view = &fabric.views[fabric.count];

	assert_true(fabric.count < PATHS_MAX);
	fabric.rows[fabric.count] = *row;
	*view = (struct fabric_path_view){
		.peer = row->peer,
		.device = fabric.rows[fabric.count].device,
		.peer_device = fabric.rows[fabric.count].peer_device,
		.neighbour = true,
		.known = true,
		.mtu = 4096,
		.flow_label = 0x1234,
	};
	view->summary.last_answer_ns = RAS_NEVER;
	view->summary.last_probe_ns = clock_now_ns(&bench.clock) - RAS_NS_PER_SEC / 2;
	fabric.count++;
}

// Own.

static void own_paths_are_listed_the_worst_first_and_the_rest_is_counted(void **state) {
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	int fd = bench_connect();
	const char *text, *silent, *lossy;

	(void)state;
	for (uint32_t n = 0; n < 50; n++) {
		snprintf(row.peer_device, sizeof(row.peer_device), "soft%u", n);
		add_own(&row);
	}
	row = a_row("n3", OBSERVATION_LOSSY, 26000);
	add_own(&row);
	row = a_row("n3", OBSERVATION_SILENT, 0);
	memset(row.peer_device, 'd', RAS_PATH_DEVICE_MAX);
	add_own(&row);
	bench_say(fd, "PATHS --worst\n");
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(text, "52 paths that n1 reads: 1 silent, 1 lossy, 50 good\n"));
	assert_non_null(strstr(text, "52 to neighbours and itself, each probed every 1.0 s\n"));
	silent = strstr(text, "\nn1           n3           mlx5_0>ddddd~ silent ");
	lossy = strstr(text, "\nn1           n3           mlx5_0>mlx5_1 lossy ");
	assert_true(silent != NULL && lossy != NULL && silent < lossy);
	assert_non_null(strstr(text, " 26 us   26 us   52 us   3/1203\n"));
	assert_non_null(strstr(text, "\nand 12 more: 12 good\n"));
	close(fd);
}

static void agent_that_probes_nothing_says_why(void **state) {
	struct ras_path_row row = a_row("n2", OBSERVATION_NO_PAIR, 0);
	int fd = bench_connect(), json = connect_json();
	json_t *object;

	(void)state;
	bench_say(fd, "PATHS --worst\n");
	assert_non_null(strstr(bench_shown(fd), "This agent measures with no RDMA device"));
	add_own(&row);
	fabric.interval_ns = 0;
	bench_say(fd, "PATHS --worst\n");
	assert_non_null(strstr(bench_shown(fd), "[probe] enabled is no"));
	object = bench_ask_json(json, "PATHS\n");
	assert_true(json_is_false(json_object_get(object, "probing")));
	assert_int_equal(json_array_size(json_object_get(object, "paths")), 1);
	json_decref(object);
	client_server_use_fabric(bench.server, NULL, NULL); // not even a fabric
	bench_say(fd, "PATHS --worst\n");
	assert_int_equal(strncmp(bench_shown(fd), "0 paths that n1 reads\n", 22), 0);
	close(fd);
	close(json);
}

// All.

static void add_rows(
	struct overlay_answer *answer,
	const char *node,
	const struct ras_path_row *rows,
	uint32_t count
) {
	static uint8_t bytes[BYTES_MAX];
	struct ras_collected_part part = {.node = bench_peer(node)->record->id, .payload = bytes};
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	for (uint32_t n = 0; n < count; n++)
		assert_int_equal(ras_path_put(&writer, &rows[n]), 0);
	assert_int_equal(wire_writer_finish(&writer, &part.size), 0);
	assert_int_equal(ras_paths_add(answer->paths, &part), 0);
}

static struct overlay_answer *paths_answer(void) {
	static const struct ras_memory memory = HEAP_MEMORY(NULL);
	struct overlay_answer *answer = bench_answer_new();

	answer->kind = RAS_COLLECT_PATHS;
	assert_int_equal(ras_paths_create(&memory, &answer->paths), 0);
	return answer;
}

static void answer_paths(struct overlay_answer *answer) {
	bench_turn();
	assert_int_equal(bench.overlay.ask_kind, RAS_COLLECT_PATHS);
	ras_paths_settle(answer->paths);
	bench_answer(answer);
}

static struct overlay_answer *some_paths(void) {
	struct overlay_answer *answer = paths_answer();
	struct ras_path_row rows[] = {
		a_row("n1", OBSERVATION_GOOD, 20000),
		a_row("n3", OBSERVATION_DEGRADED, 310000),
	};

	add_rows(answer, "n2", rows, 2);
	rows[0] = a_row("n1", OBSERVATION_GOOD, 21000);
	rows[1] = a_row("n1", OBSERVATION_SILENT, 0); // by another device
	memcpy(rows[1].device, "mlx5_9", 6);
	add_rows(answer, "n3", rows, 2);
	return answer;
}

static void paths_of_all_are_merged_and_counted(void **state) {
	int fd = bench_connect(), json = connect_json();
	const char *text;
	json_t *object;

	(void)state;
	bench_say(fd, "PATHS * --worst\n");
	answer_paths(some_paths());
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(
		strstr(text, "4 paths, each as one end reads it, of 3 of 3 agents in 0.003 "
			     "s: 1 silent, 1 degraded, 2 good\n")
	);
	assert_non_null(strstr(text, "\nn2           n3           mlx5_0>mlx5_1 degraded  12 min"));
	bench_say(json, "PATHS *\n");
	answer_paths(some_paths());
	object = json_loads(bench_hear(json), 0, NULL);
	assert_int_equal(json_array_size(json_object_get(object, "paths")), 4);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(object, "counts"), "good")), 2
	);
	json_decref(object);
	close(fd);
	close(json);
}

static void paths_that_cannot_be_collected_are_an_error(void **state) {
	static const char *const questions[] = {"PATHS *\n", "MATRIX\n"};
	int fd = bench_connect();

	(void)state;
	bench.overlay.ask_err = -EAGAIN;
	for (size_t n = 0; n < COUNT_OF(questions); n++) {
		bench_say(fd, questions[n]);
		assert_string_equal(
			bench_shown(fd), "ERROR: no paths could be collected: this agent is not a "
					 "member of a ring yet, or is leaving it\n"
		);
	}
	close(fd);
}

// What another node says is not known to be sound beyond what the payload checks.
static void hostile_rows_break_no_line_and_no_document(void **state) {
	static const char *const names[] = {
		"\x1b[2J", "a\nOK\n", "\"},{", "\xe2\x80\xae",
		"0123456789012345678901234567\xe2\x82\xac"};
	int fd = bench_connect(), json = connect_json();
	struct ras_path_row rows[COUNT_OF(names)];
	json_t *object;

	(void)state;
	for (uint32_t round = 0; round < 2; round++) {
		struct overlay_answer *answer = paths_answer();

		for (size_t n = 0; n < COUNT_OF(names); n++) {
			rows[n] = a_row("n2", (enum observation_kind)(250 + n), UINT64_MAX / 4);
			rows[n].peer += n; // some are not known
			rows[n].count = rows[n].lost = rows[n].for_s = UINT64_MAX / 2;
			snprintf(rows[n].device, sizeof(rows[n].device), "%s", names[n]);
		}
		add_rows(answer, "n3", rows, COUNT_OF(names));
		bench_say(round == 0 ? fd : json, round == 0 ? "PATHS * --worst\n" : "PATHS *\n");
		answer_paths(answer);
		if (round == 0) {
			const char *text = bench_shown(fd);

			bench_assert_narrow(text);
			assert_null(strchr(text, '\x1b'));
			assert_non_null(strstr(text, ": 5 no-pair\n"));
		}
	}
	object = json_loads(bench_hear(json), 0, NULL);
	assert_int_equal(json_array_size(json_object_get(object, "paths")), COUNT_OF(names));
	json_decref(object);
	close(fd);
	close(json);
}

static void matrix_has_the_worst_of_each_pair_and_all_nodes(void **state) {
	int json = connect_json();
	json_t *object, *cells, *cell;
	size_t n, silent = 0;

	(void)state;
	bench_say(json, "MATRIX\n");
	answer_paths(some_paths());
	object = json_loads(bench_hear(json), 0, NULL);
	cells = json_object_get(object, "cells");
	assert_int_equal(json_array_size(json_object_get(object, "nodes")), 3);
	assert_int_equal(json_array_size(json_object_get(object, "columns")), 8);
	assert_int_equal(json_array_size(cells), 3);
	json_array_foreach(cells, n, cell) {
		// What a client of before takes: it refuses any other number.
		assert_int_equal(json_array_size(cell), 8);
		silent += json_integer_value(json_array_get(cell, 2)) == OBSERVATION_SILENT;
	}
	assert_int_equal(silent, 1);
	cells = json_object_get(object, "rails");
	assert_int_equal(json_array_size(cells), 1);
	assert_string_equal(json_string_value(json_array_get(json_array_get(cells, 0), 2)), ".X");
	json_decref(object);
	close(json);
}

// One path.

static void say(struct overlay_call *call, const char *text) {
	assert_non_null(call);
	assert_int_equal(call->piece(call, text, strlen(text)), 0);
}

static const char from_n2[] =
	"{\"node\":\"n2\",\"peer\":\"n1\",\"devices\":1,\"probing\":true,\"paths\":[{\"device\":"
	"\"soft0\",\"peer_device\":\"soft1\",\"seen\":\"degraded\",\"for_s\":12,\"median_ns\":310000,"
	"\"baseline_ns\":26000,\"lost\":3,\"answered\":97,\"sizes\":[{\"bytes\":8,\"sent\":60}]}]}\n";

static void path_is_told_from_both_ends(void **state) {
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	int fd = bench_connect(), json = connect_json();
	const char *text;
	json_t *object;

	(void)state;
	add_own(&row);
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	assert_string_equal(bench.overlay.call_line, "json - PATHS n1");
	say(bench.overlay.call, from_n2);
	bench.overlay.call->ended(bench.overlay.call, 0);
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(text, "n1 reads n2, mlx5_0 > mlx5_1: good, for 12 min 34 s\n"));
	assert_non_null(strstr(text, "usually 26 us +- -: drift x1.00\n"));
	assert_non_null(strstr(text, "n2 reads n1, soft0 > soft1: degraded, for 12 s\n"));
	assert_non_null(strstr(text, "drift x11.92\n"));
	assert_non_null(strstr(text, "\nVerdicts, as this agent holds them\n  n1 is alive"));
	bench_say(json, "PATH n2 n1\n");
	bench_turn();
	say(bench.overlay.call, from_n2);
	bench.overlay.call->ended(bench.overlay.call, 0);
	object = json_loads(bench_hear(json), 0, NULL);
	assert_int_equal(json_array_size(json_object_get(object, "ends")), 2);
	assert_int_equal(json_array_size(json_object_get(object, "verdicts")), 2);
	json_decref(object);
	close(fd);
	close(json);
}

static void add_flows(struct fabric_path_view *view) {
	view->flow_count = 3;
	view->flows[0] = (struct fabric_flow){.label = 0x12345, .probes = 600, .median_ns = 26000};
	view->flows[1] = (struct fabric_flow
	){.label = 0xfffff, .probes = 300, .lost = 1, .late = 30, .median_ns = 27000, .bad = true};
	view->flows[2] = (struct fabric_flow){.label = 1, .current = true};
}

static void ways_that_flow_labels_choose_are_told_each_and_the_bad_one_is_named(void **state) {
	static const char hostile[] =
		"{\"devices\":1,\"probing\":true,\"paths\":[{\"flows\":[{\"label\":-1},{\"label\":1e99},"
		"{\"label\":\"x\",\"bad\":1},[],{\"label\":4294967296,\"lost\":99999999999,\"bad\":true},"
		"{\"label\":77}]},{\"flows\":7},{\"flows\":[{\"label\":8}]}]}\n";
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	int fd = bench_connect();
	const char *text;

	(void)state;
	add_own(&row);
	add_flows(&fabric.views[0]);
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	say(bench.overlay.call, hostile);
	bench.overlay.call->ended(bench.overlay.call, 0);
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(text, "  flow      0x12345: 0 lost, 0 late of 600, median 26 us\n"));
	assert_non_null(strstr(
		text, "  flow      0xfffff: 1 lost, 30 late of 300, median 27 us; the bad one\n"
	));
	assert_non_null(strstr(text, "  flow      0x00001: 0 lost, 0 late of 0, median -; now\n"));
	assert_null(strstr(text, "0x0004d")); // no more than there can be
	assert_null(strstr(text, "0x00008")); // one alone says nothing new
	bench_say(fd, "WHY n2\n");
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(text, "of 3 flow labels 0xfffff is the bad one: 1 lost and 30 late")
	);
	close(fd);
}

static struct fabric_gpu_path bad_gpu(void) {
	return (struct fabric_gpu_path){
		.shown = true,
		.ordinal = 3,
		.seen = FABRIC_GPU_REFUSED,
		.since_ns = clock_now_ns(&bench.clock) - 200 * RAS_NS_PER_SEC,
		.probes = UINT64_MAX / 4,
		.silent = UINT64_MAX / 4,
		.refused = 34,
		.median_ns = 22000,
		.usual_ns = 20000,
		.p99_ns = 40000,
	};
}

static void memory_of_a_gpu_is_told_with_its_path_and_named_where_it_alone_is_bad(void **state) {
	static const char hostile[] =
		"{\"devices\":1,\"probing\":true,\"paths\":[{\"gpu\":7},{\"gpu\":[]},{\"gpu\":null},"
		"{\"gpu\":{\"ordinal\":1e99,\"seen\":\"\\u001b[2J\",\"for_s\":-4,\"probes\":"
		"9223372036854775807,\"median_ns\":\"x\"}}]}\n";
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	int fd = bench_connect();
	const char *text;

	(void)state;
	add_own(&row);
	row = a_row("n3", OBSERVATION_GOOD, 26000);
	add_own(&row);
	fabric.views[0].gpu = bad_gpu();
	fabric.views[1].gpu = bad_gpu();
	fabric.views[1].gpu.seen = FABRIC_GPU_GOOD;
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	say(bench.overlay.call, hostile);
	bench.overlay.call->ended(bench.overlay.call, 0);
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(text, "  GPU       cuda:3 refused, for 3 min 20 s; "));
	assert_non_null(strstr(text, " silent, 34 refused, 0 wrong of "));
	assert_non_null(strstr(text, "\n            8 bytes take 22 us, usually 20 us, p99 40 us\n")
	);
	assert_non_null(strstr(text, "  GPU       cuda:0 \\x1b[2J, for "));
	bench_say(fd, "WHY n2\n");
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(
		text,
		"\nMemory of its GPU, as it is read from here\n  mlx5_0>mlx5_1: cuda:3 refused"
	));
	bench_say(fd, "WHY n3\n");
	assert_null(strstr(bench_shown(fd), "Memory of its GPU"));
	bench_say(fd, "PATHS --worst\n");
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(
		text,
		"Memory of GPUs that is not read as it should be:\n  n2, mlx5_0>mlx5_1: cuda:3 "
	));
	assert_null(strstr(text, "  n3, mlx5_0"));
	close(fd);
}

static void memory_of_a_gpu_is_in_the_json_of_paths_and_why(void **state) {
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	json_t *object, *gpu;
	int fd = connect_json();

	(void)state;
	add_own(&row);
	fabric.views[0].gpu = bad_gpu();
	for (uint32_t n = 0; n < 2; n++) {
		bench_say(fd, n == 0 ? "PATHS\n" : "WHY n2\n");
		object = json_loads(bench_hear(fd), 0, NULL);
		gpu = json_array_get(json_object_get(object, "gpus"), 0);
		assert_string_equal(json_string_value(json_object_get(gpu, "seen")), "refused");
		assert_string_equal(json_string_value(json_object_get(gpu, "peer")), "n2");
		assert_string_equal(json_string_value(json_object_get(gpu, "device")), "mlx5_0");
		assert_int_equal(json_integer_value(json_object_get(gpu, "ordinal")), 3);
		assert_int_equal(json_integer_value(json_object_get(gpu, "for_s")), 200);
		assert_int_equal(json_integer_value(json_object_get(gpu, "median_ns")), 22000);
		json_decref(object);
	}
	close(fd);
}

static void tables_mark_whose_port_is_congested_or_storms(void **state) {
	struct ras_path_row row = a_row("n2", OBSERVATION_DEGRADED, 26000);
	int fd = bench_connect(), json = connect_json();
	json_t *object, *rows;
	const char *text;

	(void)state;
	play_congestion();
	client_server_use_checks(bench.server, &checks);
	add_own(&row);
	row = a_row("n3", OBSERVATION_DEGRADED, 26000);
	snprintf(row.device, sizeof(row.device), "mlx5_1");
	add_own(&row);
	bench_say(fd, "PATHS --worst\n");
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(text, " mlx5_0>mlx5_1 degraded^ "));
	assert_non_null(strstr(text, " mlx5_1>mlx5_1 degraded  "));
	assert_non_null(strstr(text, "\n^ the device here counts congestion now, ! it sends "));
	checks.ports[0].sent_permille = 500;
	bench_say(fd, "PATHS --worst\n");
	assert_non_null(strstr(bench_shown(fd), " mlx5_0>mlx5_1 degraded! "));
	bench_say(json, "PATHS\n");
	object = json_loads(bench_hear(json), 0, NULL);
	rows = json_object_get(object, "paths");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "port_congestion")),
		"pause-storm"
	);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 1), "port_congestion")),
		"not-counted"
	);
	json_decref(object);
	// Nothing moves: no mark, and nothing that explains it.
	checks.ports[0].sent_permille = UINT32_MAX;
	checks.ports[0].milli_per_s[CONGESTION_CNP_SENT] = 0;
	bench_say(fd, "PATHS --worst\n");
	text = bench_shown(fd);
	assert_non_null(strstr(text, " mlx5_0>mlx5_1 degraded  "));
	assert_null(strstr(text, "counts congestion"));
	close(fd);
	close(json);
}

static void ports_congestion_is_told_beside_its_path(void **state) {
	static const char of_n2[] =
		"{\"devices\":1,\"probing\":true,\"paths\":["
		"{\"device\":\"soft0\",\"congestion\":[{\"counts\":{\"cnp_sent\":{\"per_s\":1e300},"
		"\"ecn_marked\":{\"per_s\":-4},\"rx_discards\":{\"per_s\":\"9\"},\"retransmits\":7,"
		"\"\\u001b[2J\":{\"per_s\":5}},\"paused_sent\":17,\"paused_received\":null}]},"
		"{\"congestion\":[{\"counts\":{\"adaptive_retransmits\":{\"per_s\":2.25}},"
		"\"paused_sent\":0.5}]},{\"congestion\":{}},{\"congestion\":[[]]}]}\n";
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	int fd = bench_connect(), json = connect_json();
	json_t *object, *port;
	const char *text;

	(void)state;
	play_congestion();
	client_server_use_checks(bench.server, &checks);
	add_own(&row);
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	say(bench.overlay.call, of_n2);
	bench.overlay.call->ended(bench.overlay.call, 0);
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_non_null(strstr(
		text, "  congested cnp_sent 12.5/s, paused by its switch 62.5 % of the time\n"
	));
	assert_non_null(strstr(text, "  congested none counted of late\n"));
	assert_non_null(strstr(
		text,
		"  congested adaptive_retransmits 2.2/s, pauses its switch 50.0 % of the time\n"
	));
	assert_null(strchr(text, '\x1b'));
	object = bench_ask_json(json, "WHY n2\n");
	assert_int_equal(json_array_size(json_object_get(object, "congestion")), 2);
	port = json_array_get(json_object_get(object, "congestion"), 0);
	assert_string_equal(json_string_value(json_object_get(port, "device")), "mlx5_0");
	assert_true(json_is_null(json_object_get(port, "paused_sent")));
	port = json_object_get(json_object_get(port, "counts"), "cnp_sent");
	assert_int_equal(json_integer_value(json_object_get(port, "total")), 4711);
	json_decref(object);
	bench_say(fd, "WHY n2\n");
	assert_non_null(
		strstr(bench_shown(fd),
		       "\nCongestion at the ports of the node you ask\n  mlx5_0 port 1: cnp_")
	);
	client_server_use_checks(bench.server, NULL);
	close(fd);
	close(json);
}

// Or who asked for both would have given up by then.
static void end_has_a_little_less_time_than_who_asked_gives(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "TIMEOUT 1\n");
	bench_turn();
	bench_shown(fd);
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	assert_string_equal(bench.overlay.call_line, "json 1 PATHS n1");
	assert_in_range(bench.overlay.call_timeout_ns, RAS_NS_PER_SEC / 4, RAS_NS_PER_SEC * 3 / 4);
	bench.overlay.call->ended(bench.overlay.call, -ETIMEDOUT);
	bench_shown(fd);
	close(fd);
}

static void end_that_does_not_answer_is_said_to(void **state) {
	static const struct {
		int err;
		const char *said;
	} cases[] = {
		{-ETIMEDOUT, "\nn2 did not answer in time\n"},
		{-EHOSTDOWN, "\nn2 is down; "},
		{-EHOSTUNREACH, "\nn2 is reached by no way at the moment; "},
		{-65535, "\nn2 answers what no agent answers\n"},
	};
	struct ras_path_row row = a_row("n2", OBSERVATION_SILENT, 0);
	int fd = bench_connect();

	(void)state;
	add_own(&row);
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bench_say(fd, "PATH n1 n2\n");
		bench_turn();
		bench.overlay.call->ended(bench.overlay.call, cases[n].err);
		assert_non_null(strstr(bench_shown(fd), cases[n].said));
	}
	close(fd);
}

static const char odd_path[] =
	"{\"node\":\"a\\nOK\\n\",\"paths\":[{\"median_ns\":-1,\"baseline_ns\":1e300,"
	"\"last_answer_s\":-1e300,\"lost\":9223372036854775807,\"flow_label\":\"x\","
	"\"responder\":\"\\u202e\\u001b\\u0007\"}]}\n";

static void answer_of_an_end_may_be_anything(void **state) {
	static const char *const answers[] = {
		"",
		"{",
		"[]\n",
		"{\"paths\":1}\n",
		"{\"paths\":[]}\n",
		"{\"error\":\"\\u001b[2J\"}\n",
		"{\"paths\":[1,{},{\"seen\":7,\"sizes\":[1,2,3,4,5,6,7]}]}\n",
		odd_path,
	};
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	int fd = bench_connect();
	const char *text;

	(void)state;
	add_own(&row);
	for (size_t n = 0; n < COUNT_OF(answers); n++) {
		bench_say(fd, "PATH n1 n2\n");
		bench_turn();
		say(bench.overlay.call, answers[n]);
		bench.overlay.call->ended(bench.overlay.call, 0);
		text = bench_shown(fd);
		bench_assert_narrow(text);
		assert_null(strpbrk(text, "\x1b\x07"));
		assert_non_null(strstr(text, "n1 reads n2, "));
	}
	close(fd);
}

// Whose it is, and how many there are.
static void answer_of_an_end_is_not_believed_beyond_its_paths(void **state) {
	struct ras_path_row row = a_row("n2", OBSERVATION_GOOD, 26000);
	int fd = bench_connect();
	const char *text;
	uint32_t told = 0;

	(void)state;
	add_own(&row);
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	say(bench.overlay.call, "{\"node\":\"n3\",\"peer\":\"n1\",\"paths\":[{}");
	for (uint32_t n = 1; n < 1000; n++)
		say(bench.overlay.call, ",{}");
	say(bench.overlay.call, "]}\n");
	bench.overlay.call->ended(bench.overlay.call, 0);
	text = bench_shown(fd);
	bench_assert_narrow(text);
	assert_null(strstr(text, "n3 reads"));
	for (const char *at = text; (at = strstr(at, "n2 reads n1, ")) != NULL; at++)
		told++;
	assert_in_range(told, 8, 64);
	assert_non_null(strstr(text, " more\n"));
	close(fd);
}

static void answer_without_end_is_cut_off(void **state) {
	static char piece[1 << 16];
	int fd = bench_connect();
	uint32_t taken = 0;

	(void)state;
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	while (bench.overlay.call->piece(bench.overlay.call, piece, sizeof(piece)) == 0)
		assert_true(++taken < 16);
	bench.overlay.call->ended(bench.overlay.call, -EMSGSIZE);
	assert_int_equal(
		strncmp(bench_shown(fd), "ERROR: no path between n1 and n2 is known", 41), 0
	);
	close(fd);
}

static void path_that_is_none_is_an_error_that_says_why(void **state) {
	static const struct {
		const char *question, *said;
	} cases[] = {
		{"PATH\n", "ERROR: PATH needs the name of a node: PATH node node\n"},
		{"PATH n1\n", "ERROR: PATH needs the name of a node: PATH node node\n"},
		{"PATH n1 nobody\n", "ERROR: no node \"nobody\" is known, "},
		{"PATH n1 n2 n3\n", "ERROR: PATH takes two nodes, not also \"n3\"\n"},
		{"PATH n1 n1\n",
		 "ERROR: no path of n1 with itself is known: n1 has no RDMA device\n"},
		{"PATHS nobody\n", "ERROR: no node \"nobody\" is known, "},
		{"PATHS n1 n2\n", "ERROR: PATHS takes one node, not also \"n2\"\n"},
		{"MATRIX x\n", "ERROR: MATRIX takes nothing after it, not \"x\"\n"},
	};
	int fd = bench_connect();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		const char *text;

		bench_say(fd, cases[n].question);
		text = bench_shown(fd);
		assert_int_equal(strncmp(text, cases[n].said, strlen(cases[n].said)), 0);
	}
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	say(bench.overlay.call, "{\"devices\":1,\"probing\":true,\"paths\":[]}\n");
	bench.overlay.call->ended(bench.overlay.call, 0);
	assert_string_equal(
		bench_shown(fd),
		"ERROR: no path between n1 and n2 is known: n1 has no RDMA device, "
		"n2 has not read it yet\n"
	);
	bench.overlay.call_err = -EAGAIN;
	bench_say(fd, "PATH n2 n3\n");
	assert_non_null(strstr(bench_shown(fd), "n3 cannot be asked now: too many questions"));
	close(fd);
}

static void path_is_cancelled_with_the_client_that_asked(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "PATH n1 n2\n");
	bench_turn();
	assert_non_null(bench.overlay.call);
	bench_restart(); // all clients are closed
	assert_int_equal(bench.overlay.call_cancelled, 1);
	close(fd);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		PATHS_TEST(own_paths_are_listed_the_worst_first_and_the_rest_is_counted),
		PATHS_TEST(agent_that_probes_nothing_says_why),
		PATHS_TEST(paths_of_all_are_merged_and_counted),
		PATHS_TEST(paths_that_cannot_be_collected_are_an_error),
		PATHS_TEST(hostile_rows_break_no_line_and_no_document),
		PATHS_TEST(matrix_has_the_worst_of_each_pair_and_all_nodes),
		PATHS_TEST(path_is_told_from_both_ends),
		PATHS_TEST(ways_that_flow_labels_choose_are_told_each_and_the_bad_one_is_named),
		PATHS_TEST(memory_of_a_gpu_is_told_with_its_path_and_named_where_it_alone_is_bad),
		PATHS_TEST(memory_of_a_gpu_is_in_the_json_of_paths_and_why),
		PATHS_TEST(tables_mark_whose_port_is_congested_or_storms),
		PATHS_TEST(ports_congestion_is_told_beside_its_path),
		PATHS_TEST(end_has_a_little_less_time_than_who_asked_gives),
		PATHS_TEST(end_that_does_not_answer_is_said_to),
		PATHS_TEST(answer_of_an_end_may_be_anything),
		PATHS_TEST(answer_of_an_end_is_not_believed_beyond_its_paths),
		PATHS_TEST(answer_without_end_is_cut_off),
		PATHS_TEST(path_that_is_none_is_an_error_that_says_why),
		PATHS_TEST(path_is_cancelled_with_the_client_that_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
