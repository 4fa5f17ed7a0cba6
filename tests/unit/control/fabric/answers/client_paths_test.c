// SPDX-License-Identifier: BSD-3-Clause
// PATHS and MATRIX: the paths of this agent, and those of all as these answer.
#include "control/fabric/answers/client_paths_bed.h"

#include <lib/wire.h>
#include <support/heap.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX (1 << 16)

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
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(text, "52 paths that n1 reads: 1 silent, 1 lossy, 50 good\n"));
	assert_non_null(bench_find(text, "52 to neighbours and itself, each probed every 1.0 s\n"));
	silent = strstr(text, " silent ");
	lossy = bench_find(text, "\nn1 n3 mlx5_0>mlx5_1 lossy ");
	assert_true(silent != NULL && lossy != NULL && silent < lossy);
	assert_non_null(bench_find(text, " 26 us 26 us 52 us 3/1203\n"));
	assert_non_null(bench_find(text, "\nand 12 more: 12 good\n"));
	close(fd);
}

static void agent_that_probes_nothing_says_why(void **state) {
	struct ras_path_row row = a_row("n2", OBSERVATION_NO_PAIR, 0);
	int fd = bench_connect(), json = connect_json();
	json_t *object;

	(void)state;
	bench_say(fd, "PATHS --worst\n");
	assert_non_null(bench_find(bench_shown(fd), "This agent measures with no RDMA device"));
	add_own(&row);
	fabric.interval_ns = 0;
	bench_say(fd, "PATHS --worst\n");
	assert_non_null(bench_find(bench_shown(fd), "[probe] enabled is no"));
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
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(
		text, "4 paths, each as one end reads it, of 3 of 3 agents in 0.003 "
		      "s: 1 silent, 1 degraded, 2 good\n"
	));
	assert_non_null(bench_find(text, "\nn2 n3 mlx5_0>mlx5_1 degraded 12 min"));
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

// Answers of other nodes may hold anything that the checks of the payload let through.
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

			bench_assert_narrow(text, 80);
			assert_null(strchr(text, '\x1b'));
			assert_non_null(bench_find(text, ": 5 no-pair\n"));
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
		// Columns of a row that an older client accepts; it rejects any other number.
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

UNIT_GROUP(client_paths) {
	const struct CMUnitTest tests[] = {
		PATHS_TEST(own_paths_are_listed_the_worst_first_and_the_rest_is_counted),
		PATHS_TEST(agent_that_probes_nothing_says_why),
		PATHS_TEST(paths_of_all_are_merged_and_counted),
		PATHS_TEST(paths_that_cannot_be_collected_are_an_error),
		PATHS_TEST(hostile_rows_break_no_line_and_no_document),
		PATHS_TEST(matrix_has_the_worst_of_each_pair_and_all_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
