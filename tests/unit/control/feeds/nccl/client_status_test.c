// SPDX-License-Identifier: BSD-3-Clause
// STATUS: NCCL's report in both forms, on no communicators, on broken ones, on a large ring.
#include "control/client/client_bench.h"

#include <lib/wire.h>
#include <ras/payload.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MAX 16

static struct ras_comm_rank plain_rank(uint32_t rank) {
	return (struct ras_comm_rank){
		.rank = rank,
		.pid = 4000 + rank,
		.ops = {0, 0, 0, 0, 10},
		.cuda_device = (int16_t)rank,
		.nvml_device = (int16_t)rank,
	};
}

// A share of one node: its ranks of a communicator, and those it misses.
static void
add_share(struct overlay_answer *answer, const char *node, const struct ras_comm *comm) {
	uint8_t bytes[4096];
	struct ras_collected_part part = {.node = bench_peer(node)->record->id, .payload = bytes};
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(ras_comm_put(&writer, comm), 0);
	assert_int_equal(wire_writer_finish(&writer, &part.size), 0);
	assert_int_equal(ras_comms_add(answer->comms, &part), 0);
}

static void add_ranks(
	struct overlay_answer *answer,
	const char *node,
	uint64_t hash,
	uint32_t size,
	const struct ras_comm_rank *ranks,
	uint32_t count
) {
	struct ras_comm comm = {
		.id = {hash, 0x115b, 0xead9}, .size = size, .rank_count = count, .ranks = ranks};

	add_share(answer, node, &comm);
}

static void
add_missing(struct overlay_answer *answer, const char *reporter, uint64_t hash, const char *node) {
	struct ras_comm_missing missing = {
		.rank = 2,
		.pid = 4002,
		.node = bench_peer(node)->record->id,
		.family = 4,
		.address = {127, 0, 2, 1},
		.cuda_device = 2,
		.nvml_device = 2,
	};
	struct ras_comm comm = {
		.id = {hash, 0x115b, 0xead9}, .size = 3, .missing_count = 1, .missing = &missing};

	add_share(answer, reporter, &comm);
}

static void
set_missing(struct overlay_answer *answer, uint32_t n, const char *node, enum ras_missing reason) {
	bench.missing[n] = (struct ras_missing_peer){bench_peer(node)->record->id, reason};
	answer->result.missing_count = n + 1;
}

static const char *report_of(const char *lines, struct overlay_answer *answer) {
	int fd = bench_connect();
	const char *report;

	bench_say(fd, lines);
	bench_turn();
	if (answer != NULL)
		bench_answer(answer);
	report = bench_hear_all(fd);
	close(fd);
	if (getenv("CLIENT_SHOW") != NULL)
		printf("# %s%s\n", lines, report);
	return report;
}

static const char nothing[] =
	"Tocsin version 0.1.0, cluster test\n"
	"Node n1 at 10.0.0.0:28030, view 12, 3 agents alive, 0 suspect, 0 unreachable, 0 dead, "
	"0 left\n"
	"\n"
	"Job summary\n"
	"===========\n"
	"\n"
	"  Nodes     Agents      Devices     Agents  Devices\n"
	"(total)   per node    per agent    (total)  (total)\n"
	"      2        1-2            1          3        3\n"
	"\n"
	"Communicators... (0.003s)\n"
	"=============\n"
	"\n"
	"No communicator data collected!\n"
	"\n"
	"Errors\n"
	"======\n"
	"\n"
	"Warnings\n"
	"========\n"
	"\n";

static void without_communicators_the_report_says_so(void **state) {
	(void)state;
	assert_string_equal(report_of("STATUS\n", bench_answer_new()), nothing);
	assert_string_equal(report_of("VERBOSE STATUS\n", bench_answer_new()), nothing);
}

static void the_banner_comes_before_anybody_has_answered(void **state) {
	const char *end = strstr(nothing, " (0.003s)");
	int fd = bench_connect();
	const char *banner;

	(void)state;
	bench_say(fd, "STATUS\n");
	banner = bench_hear(fd);
	assert_int_equal(strlen(banner), (size_t)(end - nothing));
	assert_int_equal(strncmp(banner, nothing, strlen(banner)), 0);
	bench_answer(bench_answer_new());
	assert_string_equal(bench_hear_all(fd), end);
	close(fd);
}

static void the_timeout_of_the_client_is_that_of_the_question(void **state) {
	(void)state;
	report_of("STATUS\n", bench_answer_new());
	assert_int_equal(bench.overlay.ask_timeout_ns, 0);
	report_of("TIMEOUT 7\nSTATUS\n", bench_answer_new());
	assert_int_equal(bench.overlay.ask_timeout_ns, 7 * RAS_NS_PER_SEC);
	report_of("TIMEOUT 0\nSTATUS\n", bench_answer_new());
	assert_int_equal(bench.overlay.ask_timeout_ns, RAS_COLLECT_TIMEOUT_MAX_NS);
}

static void a_question_that_cannot_be_put_is_reported_as_incomplete(void **state) {
	const char *report;

	(void)state;
	bench.overlay.ask_err = -EAGAIN;
	report = report_of("STATUS\n", NULL);
	assert_non_null(
		strstr(report, "\nErrors\n======\n\nINCOMPLETE\n  Missing communicator data "
			       "from all other agents: this agent is not a member of a ring "
			       "yet")
	);
	report = report_of("SET FORMAT json\nSTATUS\n", NULL);
	assert_non_null(strstr(report, "\"error\":\"this agent is not a member"));
}

static struct overlay_answer *broken_answer(void) {
	struct overlay_answer *answer = bench_answer_new();
	struct ras_comm_rank ranks[2] = {plain_rank(0), plain_rank(1)};
	struct ras_comm_rank other = plain_rank(2);

	// Complete and sound.
	add_ranks(answer, "n1", 0xa1, 3, ranks, 2);
	add_ranks(answer, "n2", 0xa1, 3, &other, 1);
	// One rank behind n3, which did not answer; one failed; one ahead of the others.
	ranks[1].async_error = 6;
	ranks[1].ops[4] = 11;
	add_ranks(answer, "n1", 0xb2, 3, ranks, 2);
	add_missing(answer, "n1", 0xb2, "n3");
	ras_comms_settle(answer->comms);
	set_missing(answer, 0, "n3", RAS_MISSING_TIMED_OUT);
	answer->result.answered = 2;
	answer->result.legs_timed_out = 1;
	return answer;
}

static const char broken[] =
	"Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
	"    #  in group  per comm  per node  per comm  in group\n"
	"    0         1         2       1-2         3         3   RUNNING      OK\n"
	"    1         1         1         2         3         2   RUNNING  "
	"INCOMPLETE,ERROR,MISMATCH\n"
	"\n"
	"Errors\n"
	"======\n"
	"\n"
	"INCOMPLETE\n"
	"  Missing communicator data from 1 agent\n"
	"  Agent n3 on host rack2 at 10.0.0.2:28030: timed-out\n"
	"\n"
	"#1-0 (00000000000000b2) INCOMPLETE\n"
	"  Missing communicator data from 1 rank\n"
	"  Rank 2 -- GPU 2 managed by process 4002 on node n3\n"
	"\n"
	"#1-0 (00000000000000b2) ERROR\n"
	"  Asynchronous error on 1 rank\n"
	"  Rank 1 reported Remote process error -- GPU 1 managed by process 4001 on node n1\n"
	"\n"
	"Warnings\n"
	"========\n"
	"\n"
	"TIMEOUT\n"
	"  Encountered 1 communication timeout while gathering communicator data\n"
	"\n"
	"#1-0 (00000000000000b2) MISMATCH\n"
	"  Communicator ranks have different AllReduce operation counts\n"
	"  Rank 0 has launched up to operation 10 -- GPU 0 managed by process 4000 on node n1\n"
	"  Rank 1 has launched up to operation 11 -- GPU 1 managed by process 4001 on node n1\n"
	"\n";

static void what_is_wrong_with_communicators_is_said_in_nccl_s_words(void **state) {
	(void)state;
	assert_string_equal(
		strstr(report_of("STATUS\n", broken_answer()), "Group     Comms"), broken
	);
}

static void a_rank_that_answered_and_is_no_member_is_a_mismatch(void **state) {
	struct overlay_answer *answer = bench_answer_new();
	struct ras_comm_rank ranks[2] = {plain_rank(0), plain_rank(1)};
	const char *report;

	(void)state;
	add_ranks(answer, "n1", 0xb2, 3, ranks, 2);
	add_missing(answer, "n1", 0xb2, "n3");
	ras_comms_settle(answer->comms);
	report = report_of("STATUS\n", answer);
	assert_non_null(strstr(report, "RUNNING  MISMATCH\n"));
	assert_null(strstr(report, "INCOMPLETE"));
	assert_non_null(
		strstr(report, "  Communicator ranks have different status\n"
			       "  2 ranks have status RUNNING\n"
			       "  Rank 2 -- GPU 2 managed by process 4002 on node n3\n")
	);
}

static void the_json_report_has_nccl_s_keys_in_nccl_s_order(void **state) {
	static const char *const keys[] = {
		"nccl_version",
		"cuda_runtime_version",
		"cuda_driver_version",
		"timestamp",
		"communicators_count",
		"communicators",
		"ras",
		"tocsin",
	};
	const char *report;
	json_t *object, *comms, *rank, *missing;
	size_t n = 0;
	const char *key;
	json_t *value;

	(void)state;
	report = report_of("SET FORMAT json\nVERBOSE STATUS\n", broken_answer());
	assert_int_equal(strncmp(report, "OK\n{\n", 5), 0);
	assert_string_equal(report + strlen(report) - 3, "\n}\n");
	object = json_loads(report + 3, 0, NULL);
	assert_non_null(object);
	json_object_foreach(object, key, value) {
		assert_true(n < COUNT_OF(keys));
		assert_string_equal(key, keys[n++]);
	}
	assert_int_equal(n, COUNT_OF(keys));
	comms = json_object_get(object, "communicators");
	assert_int_equal(json_array_size(comms), 2);
	rank = json_array_get(json_object_get(json_array_get(comms, 0), "ranks"), 0);
	assert_string_equal(json_string_value(json_object_get(rank, "host")), "10.0.0.0");
	assert_int_equal(
		json_integer_value(
			json_object_get(json_object_get(rank, "collective_counts"), "AllReduce")
		),
		10
	);
	missing = json_array_get(json_object_get(json_array_get(comms, 1), "missing_ranks"), 0);
	assert_string_equal(json_string_value(json_object_get(missing, "host")), "127.0.2.1");
	assert_true(json_is_true(json_object_get(json_object_get(missing, "status"), "unresponsive")
	));
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(object, "ras"), "timeouts_count")
		),
		1
	);
	assert_non_null(
		strstr(report, "\n          \"collective_counts\": {\n"
			       "            \"Broadcast\": 0,\n")
	);
	json_decref(object);
}

static void without_communicators_json_has_empty_lists(void **state) {
	const char *report = report_of("SET FORMAT json\nSTATUS\n", bench_answer_new());
	json_t *object = json_loads(report + 3, 0, NULL);
	json_t *tocsin;

	(void)state;
	assert_non_null(object);
	assert_int_equal(json_integer_value(json_object_get(object, "communicators_count")), 0);
	assert_int_equal(json_array_size(json_object_get(object, "communicators")), 0);
	tocsin = json_object_get(object, "tocsin");
	assert_int_equal(json_integer_value(json_object_get(tocsin, "alive")), 3);
	assert_string_equal(json_string_value(json_object_get(tocsin, "node")), "n1");
	json_decref(object);
}

static void a_large_ring_is_counted_and_what_is_wrong_is_named(void **state) {
	struct overlay_answer *answer;
	const char *report;
	char name[32];
	size_t lines = 0;

	(void)state;
	for (uint32_t n = 1; n <= 1000; n++) {
		snprintf(name, sizeof(name), "node%04u", n);
		bench_add_peer(name, name, n <= 300 ? RAS_DEAD : RAS_ALIVE);
	}
	bench_peer("node0900")->state = RAS_SUSPECT;
	bench_peer("node0900")->cause = RAS_CAUSE_SILENT;
	answer = bench_answer_new();
	report = report_of("STATUS\n", answer);
	bench_assert_narrow(report, 100);
	for (const char *at = report; *at != '\0'; at++)
		lines += *at == '\n';
	assert_true(lines < 45);
	assert_non_null(
		strstr(report, "DEAD\n  300 agents are considered dead (unreachable via the "
			       "RAS network)\n  node[0001-0300]\n")
	);
	assert_non_null(
		strstr(report, "SUSPECT\n  1 agent is suspected to be dead; other agents "
			       "check this\n  Agent node0900 on host node0900 at 10.0.")
	);
}

static void those_who_are_expected_and_never_came_are_named(void **state) {
	const char *report;

	(void)state;
	bench.overlay.missing[0] = "n7";
	bench.overlay.missing[1] = "n8";
	report = report_of("STATUS\n", bench_answer_new());
	assert_non_null(
		strstr(report, "NEVER SEEN\n  2 nodes are expected, but their agents never joined\n"
			       "  n[7-8]\n")
	);
}

static void a_large_report_is_said_in_steps_and_whole(void **state) {
	struct overlay_answer *answer = bench_answer_new();
	struct ras_comm_rank ranks[RANKS_MAX];
	const char *report;
	json_t *object;

	(void)state;
	for (uint32_t n = 0; n < RANKS_MAX; n++)
		ranks[n] = plain_rank(n);
	for (uint64_t hash = 1; hash <= 200; hash++)
		add_ranks(answer, "n1", hash, RANKS_MAX, ranks, RANKS_MAX);
	ras_comms_settle(answer->comms);
	report = report_of("SET FORMAT json\nSTATUS\n", answer);
	assert_true(strlen(report) > 1 << 20);
	object = json_loads(report + 3, 0, NULL);
	assert_non_null(object);
	assert_int_equal(json_array_size(json_object_get(object, "communicators")), 200);
	json_decref(object);
}

static void communicators_are_listed_one_a_line(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	bench_say(fd, "COMMS\n");
	bench_turn();
	bench_answer(broken_answer());
	answer = bench_shown(fd);
	bench_assert_narrow(answer, 80);
	assert_string_equal(
		answer,
		"2 communicators, from 2 of 3 agents in 0.003 s\n"
		"\n"
		"COMMUNICATOR     JOB SIZE RANKS MISSING STATUS  STATE  ERRORS\n"
		"00000000000000a1 -      3     3       0 RUNNING moving OK\n"
		"00000000000000b2 -      3     2       1 RUNNING moving INCOMPLETE,ERROR,MISMATCH\n"
	);
	bench.overlay.ask_err = -EBUSY;
	bench_say(fd, "COMMS\n");
	assert_non_null(strstr(bench_shown(fd), "ERROR: no communicators could be collected: "));
	close(fd);
}

UNIT_GROUP(client_status) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(without_communicators_the_report_says_so),
		BENCH_TEST(the_banner_comes_before_anybody_has_answered),
		BENCH_TEST(the_timeout_of_the_client_is_that_of_the_question),
		BENCH_TEST(a_question_that_cannot_be_put_is_reported_as_incomplete),
		BENCH_TEST(what_is_wrong_with_communicators_is_said_in_nccl_s_words),
		BENCH_TEST(a_rank_that_answered_and_is_no_member_is_a_mismatch),
		BENCH_TEST(the_json_report_has_nccl_s_keys_in_nccl_s_order),
		BENCH_TEST(without_communicators_json_has_empty_lists),
		BENCH_TEST(a_large_ring_is_counted_and_what_is_wrong_is_named),
		BENCH_TEST(those_who_are_expected_and_never_came_are_named),
		BENCH_TEST(a_large_report_is_said_in_steps_and_whole),
		BENCH_TEST(communicators_are_listed_one_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
