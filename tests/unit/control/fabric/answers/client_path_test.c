// SPDX-License-Identifier: BSD-3-Clause
// PATH: one path as both its ends read it, and ends that do not answer, or answer anything.
#include "control/fabric/answers/client_paths_bed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

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
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(text, "n1 reads n2, mlx5_0 > mlx5_1: good, for 12 min 34 s\n"));
	assert_non_null(bench_find(text, "usually 26 us +- -: drift x1.00\n"));
	assert_non_null(bench_find(text, "n2 reads n1, soft0 > soft1: degraded, for 12 s\n"));
	assert_non_null(bench_find(text, "drift x11.92\n"));
	assert_non_null(bench_find(text, "\nVerdicts, as this agent holds them\n  n1 is alive"));
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
	bench_assert_narrow(text, 80);
	assert_non_null(
		bench_find(text, "  flow      0x12345: 0 lost, 0 late of 600, median 26 us\n")
	);
	assert_non_null(bench_find(
		text, "  flow      0xfffff: 1 lost, 30 late of 300, median 27 us; the bad one\n"
	));
	assert_non_null(
		bench_find(text, "  flow      0x00001: 0 lost, 0 late of 0, median -; now\n")
	);
	assert_null(bench_find(text, "0x0004d")); // no more than there can be
	assert_null(bench_find(text, "0x00008")); // one alone says nothing new
	bench_say(fd, "WHY n2\n");
	text = bench_shown(fd);
	bench_assert_narrow(text, 80);
	assert_non_null(
		bench_find(text, "of 3 flow labels 0xfffff is the bad one: 1 lost and 30 late")
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
		"{\"gpu\":{\"ordinal\":1e99,\"seen\":\"\\u001b[2J\",\"for_ns\":-4,\"probes\":"
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
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(text, "  GPU       cuda:3 refused, for 3 min 20 s; "));
	assert_non_null(bench_find(text, " silent, 34 refused, 0 wrong of "));
	assert_non_null(
		bench_find(text, "\n            8 bytes take 22 us, usually 20 us, p99 40 us\n")
	);
	assert_non_null(bench_find(text, "  GPU       cuda:0 \\x1b[2J, for "));
	bench_say(fd, "WHY n2\n");
	text = bench_shown(fd);
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(
		text,
		"\nMemory of its GPU, as it is read from here\n  mlx5_0>mlx5_1: cuda:3 refused"
	));
	bench_say(fd, "WHY n3\n");
	assert_null(bench_find(bench_shown(fd), "Memory of its GPU"));
	bench_say(fd, "PATHS --worst\n");
	text = bench_shown(fd);
	bench_assert_narrow(text, 80);
	assert_non_null(
		bench_find(text, "GPU memory that is not read well:\n  n2, mlx5_0>mlx5_1: cuda:3 ")
	);
	assert_null(bench_find(text, "  n3, mlx5_0"));
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
		assert_int_equal(
			json_integer_value(json_object_get(gpu, "for_ns")) /
				(json_int_t)RAS_NS_PER_SEC,
			200
		);
		assert_int_equal(json_integer_value(json_object_get(gpu, "median_ns")), 22000);
		json_decref(object);
	}
	close(fd);
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
		{-EHOSTUNREACH, "\nn2 cannot be reached now; "},
		{-65535, "\nn2 sent an invalid answer\n"},
	};
	struct ras_path_row row = a_row("n2", OBSERVATION_SILENT, 0);
	int fd = bench_connect();

	(void)state;
	add_own(&row);
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bench_say(fd, "PATH n1 n2\n");
		bench_turn();
		bench.overlay.call->ended(bench.overlay.call, cases[n].err);
		assert_non_null(bench_find(bench_shown(fd), cases[n].said));
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
		bench_assert_narrow(text, 80);
		assert_null(strpbrk(text, "\x1b\x07"));
		assert_non_null(bench_find(text, "n1 reads n2, "));
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
	bench_assert_narrow(text, 80);
	assert_null(bench_find(text, "n3 reads"));
	for (const char *at = text; (at = bench_find(at, "n2 reads n1, ")) != NULL; at++)
		told++;
	assert_in_range(told, 8, 64);
	assert_non_null(bench_find(text, " more\n"));
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
		{"PATH n1 n2 n3\n", "ERROR: PATH takes two nodes, but \"n3\" follows\n"},
		{"PATH n1 n1\n",
		 "ERROR: no path from n1 to itself is known: n1 has no RDMA device\n"},
		{"PATHS nobody\n", "ERROR: no node \"nobody\" is known, "},
		{"PATHS n1 n2\n", "ERROR: PATHS takes one node, but \"n2\" follows\n"},
		{"MATRIX x\n", "ERROR: MATRIX takes no arguments, but \"x\" follows\n"},
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
		"n2 has not probed it yet\n"
	);
	bench.overlay.call_err = -EAGAIN;
	bench_say(fd, "PATH n2 n3\n");
	assert_non_null(bench_find(bench_shown(fd), "n3 cannot be asked now: too many questions"));
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

UNIT_GROUP(client_path) {
	const struct CMUnitTest tests[] = {
		PATHS_TEST(path_is_told_from_both_ends),
		PATHS_TEST(ways_that_flow_labels_choose_are_told_each_and_the_bad_one_is_named),
		PATHS_TEST(memory_of_a_gpu_is_told_with_its_path_and_named_where_it_alone_is_bad),
		PATHS_TEST(memory_of_a_gpu_is_in_the_json_of_paths_and_why),
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
