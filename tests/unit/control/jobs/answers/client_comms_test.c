// SPDX-License-Identifier: BSD-3-Clause
// COMMS, WHY and STATUS of jobs that wait: who is named first, by which names they are found.
#include "control/client/client_bench.h"

#include <lib/stream.h>
#include <lib/wire.h>
#include <ras/payload.h>

#include <errno.h>
#include <jobs/report.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RANKS 4
#define KNOWS                                                                            \
	(RAS_RANK_KNOWS_STARTED | RAS_RANK_KNOWS_COMPLETED | RAS_RANK_KNOWS_SIGNATURES | \
	 RAS_RANK_KNOWS_PROCESS)

static uint8_t rank_flags; // RAS_RANK_* of the ranks that add_comm() adds

// All ranks on n1, in one communicator of a job; rank 2 has not come to operation 51.
static void add_comm(struct overlay_answer *answer, uint64_t hash, const char *job, bool waits) {
	struct ras_comm_rank ranks[RANKS];
	struct ras_comm comm = {
		.id = {hash, 1, 2},
		.size = RANKS,
		.signature_count = 1,
		.signatures =
			{{.kind = JOBS_ALL_REDUCE,
			  .datatype = 7,
			  .root = RAS_COMM_ROOT_NONE,
			  .count = 1024}},
		.recent = {.first = 50, .count = 2},
		.rank_count = RANKS,
		.ranks = ranks,
	};
	uint8_t bytes[4096];
	struct ras_collected_part part = {.node = bench_peer("n1")->record->id, .payload = bytes};
	struct wire_writer writer;

	snprintf(comm.job, sizeof(comm.job), "%s", job);
	for (uint32_t n = 0; n < RANKS; n++)
		ranks[n] = (struct ras_comm_rank){
			.rank = n,
			.pid = (waits ? 4000 : 5000) + n,
			.launched = waits && n == 2 ? 50 : 51,
			.started = waits && n == 2 ? 50 : 51,
			.completed = 50,
			.ops = {0, 0, 0, 0, waits && n == 2 ? 50 : 51},
			.idle_ms = waits ? 12000 : 100,
			.process_state =
				waits && n == 2 ? JOBS_PROCESS_STOPPED : JOBS_PROCESS_SLEEPING,
			.doing = {.activity = JOBS_DOES_NOTHING, .unread = JOBS_SOURCE_QUOTA},
			.flags = rank_flags,
			.knows = KNOWS,
			.cuda_device = -1,
			.nvml_device = -1,
		};
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(ras_comm_put(&writer, &comm), 0);
	assert_int_equal(wire_writer_finish(&writer, &part.size), 0);
	assert_int_equal(ras_comms_add(answer->comms, &part), 0);
}

static struct overlay_answer *two_jobs(void) {
	struct overlay_answer *answer = bench_answer_new();

	rank_flags = 0;
	add_comm(answer, 0xa1, "slurm:7.0", false);
	add_comm(answer, 0xb2b2b2b2b2b2b2b2, "slurm:1234.0", true);
	answer->result.answered = 2;
	ras_comms_settle(answer->comms);
	return answer;
}

static const char *answer_to(int fd, const char *line) {
	bench_say(fd, line);
	bench_turn();
	bench_answer(two_jobs());
	return bench_shown(fd);
}

static const char *json_to(int fd, const char *line) {
	bench_say(fd, line);
	bench_turn();
	bench_answer(two_jobs());
	return bench_hear(fd);
}

#define SENTENCE \
	"rank 2 (pid 4002 on n1) has not launched operation 51 (AllReduce of 1024 float32), in "

static void the_one_that_waits_is_first_with_its_sentence(void **state) {
	int fd = bench_connect();
	const char *answer;

	(void)state;
	answer = answer_to(fd, "COMMS\n");
	bench_assert_narrow(answer, 80);
	assert_string_equal(
		answer,
		"2 communicators, from 2 of 3 agents in 0.003 s\n"
		"\n"
		"COMMUNICATOR     JOB          SIZE RANKS MISSING NODES STATUS  STATE  ERRORS\n"
		"b2b2b2b2b2b2b2b2 slurm:1234.0    4     4       0     1 RUNNING stuck  MISMATCH\n"
		"  rank 2 (pid 4002 on n1) has not launched operation 51 (AllReduce of 1024\n"
		"    float32), in which 3 ranks have waited for 12 s; its process is stopped, and\n"
		"    has used no processor time in 10 s\n"
		"00000000000000a1 slurm:7.0       4     4       0     1 RUNNING moving OK\n"
	);
	close(fd);
}

static void a_job_or_a_communicator_is_found_by_its_names(void **state) {
	static const struct {
		const char *word, *found;
	} rows[] = {
		{"slurm:1234.0", "b2b2"},
		{"1234.0", "b2b2"},
		{"1234", "b2b2"},
		{"b2b2", "b2b2"},
		{"0xa1", "00a1"},
		{"00000", "00a1"},
		{"7", "00a1"},
		{"123", NULL},
		{"b2b", NULL},
		{"0xA1", "00a1"},
		{"0x00000000000000a1", "00a1"},
		{"0xa", NULL},
		{"0x", NULL},
		{"slurm:7", NULL},
	};
	char line[64];

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		int fd = bench_connect();
		const char *answer;

		snprintf(line, sizeof(line), "COMMS %s\n", rows[n].word);
		answer = answer_to(fd, line);
		assert_non_null(bench_find(answer, rows[n].found != NULL ? "1 comm" : "0 comm"));
		if (rows[n].found != NULL)
			assert_non_null(bench_find(answer, rows[n].found));
		close(fd);
	}
}

static void why_tells_the_ranks_of_a_job_the_late_one_first(void **state) {
	int fd = bench_connect();
	const char *answer, *late, *other;

	(void)state;
	answer = answer_to(fd, "WHY 1234\n");
	bench_assert_narrow(answer, 80);
	assert_non_null(bench_find(
		answer, "Communicator b2b2b2b2b2b2b2b2 of job slurm:1234.0, 4 of 4 "
			"ranks: stuck (missing-enter)\n"
	));
	late = bench_find(answer, " 2 n1 4002 50 50 50");
	other = bench_find(answer, " 0 n1 4000 51 51 50");
	assert_non_null(late);
	assert_non_null(other);
	assert_true(late < other);
	assert_null(bench_find(answer, "slurm:7"));
	close(fd);
}

static void why_of_a_communicator_that_moves_says_so(void **state) {
	int fd = bench_connect();
	const char *answer = answer_to(fd, "WHY 0xa1\n");

	(void)state;
	assert_non_null(bench_find(answer, "ranks: moving\n  its ranks make progress\n"));
	close(fd);
}

static void a_word_that_calls_nothing_is_an_error(void **state) {
	int fd = bench_connect();

	(void)state;
	assert_non_null(
		bench_find(answer_to(fd, "WHY 999\n"), "ERROR: no node, job or communicator 999")
	);
	// A plain word is not the name of a job either.
	assert_non_null(
		bench_find(answer_to(fd, "WHY nowhere\n"), "ERROR: no node \"nowhere\" is known")
	);
	assert_non_null(bench_find(answer_to(fd, "WHY nn3\n"), "did you mean \"n3\"?"));
	close(fd);
}

static void the_finding_stands_in_json(void **state) {
	int fd = bench_connect();
	json_t *object, *comm, *finding, *late;
	const char *answer;

	(void)state;
	answer = json_to(fd, "COMMS\n");
	object = json_loads(answer, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(object);
	comm = json_array_get(json_object_get(object, "communicators"), 0);
	assert_string_equal(json_string_value(json_object_get(comm, "job")), "slurm:1234.0");
	assert_non_null(bench_find(answer, "\"hash\":\"0x00000000000000a1\""));
	finding = json_object_get(comm, "finding");
	assert_string_equal(json_string_value(json_object_get(finding, "state")), "stuck");
	assert_string_equal(json_string_value(json_object_get(finding, "cause")), "missing-enter");
	assert_int_equal(json_integer_value(json_object_get(finding, "operation")), 51);
	assert_non_null(bench_find(
		json_string_value(json_object_get(finding, "sentence")), SENTENCE "which 3"
	));
	late = json_array_get(json_object_get(finding, "late"), 0);
	assert_int_equal(json_integer_value(json_object_get(late, "rank")), 2);
	assert_int_equal(json_integer_value(json_object_get(late, "pid")), 4002);
	assert_non_null(bench_find(
		json_string_value(json_object_get(late, "doing")),
		"a pipe or a lock (not readable: quota)"
	));
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(late, "unread"), 0)), "quota"
	);
	json_decref(object);
	close(fd);
}

static void nccl_s_report_tells_what_is_stuck_and_of_which_job(void **state) {
	int fd = bench_connect();
	const char *answer = answer_to(fd, "STATUS\n");

	(void)state;
	assert_non_null(
		bench_find(answer, "(b2b2b2b2b2b2b2b2) STUCK\n  Job slurm:1234.0\n  " SENTENCE)
	);
	close(fd);
}

// Count the lines that begin with a word in an answer larger than any buffer, and check its end.
static uint32_t count_lines(int fd, const char *begin) {
	static char bytes[1 << 16];
	size_t used = 0, length = strlen(begin);
	uint32_t lines = 0;
	char *line;
	ssize_t size;

	for (uint32_t idle = 0; idle < 10;) {
		bench_turn();
		size = stream_receive(fd, bytes + used, sizeof(bytes) - 1 - used);
		if (size <= 0 && size != -EAGAIN)
			break;
		idle = size > 0 ? 0 : idle + 1;
		used += size > 0 ? (size_t)size : 0;
		bytes[used] = '\0';
		line = bytes;
		for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
			lines += strncmp(line, begin, length) == 0;
		used -= (size_t)(line - bytes);
		memmove(bytes, line, used + 1);
	}
	return lines;
}

// Any process may say that its communicator has a million ranks.
static void ranks_that_nobody_holds_are_told_in_steps(void **state) {
	const uint32_t size = 160000; // more than fits into an answer's room at once
	struct overlay_answer *answer = bench_answer_new();
	struct ras_comm_rank rank = {.rank = 7, .pid = 1, .cuda_device = -1, .nvml_device = -1};
	struct ras_comm comm = {.id = {1, 2, 3}, .size = size, .rank_count = 1, .ranks = &rank};
	struct ras_collected_part part = {.node = bench_peer("n1")->record->id};
	struct wire_writer writer;
	int fd = bench_connect();
	uint8_t bytes[512];

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(ras_comm_put(&writer, &comm), 0);
	assert_int_equal(wire_writer_finish(&writer, &part.size), 0);
	part.payload = bytes;
	assert_int_equal(ras_comms_add(answer->comms, &part), 0);
	ras_comms_settle(answer->comms);
	bench_say(fd, "SET FORMAT json\nSTATUS\n");
	bench_turn();
	bench_answer(answer);
	assert_int_equal(count_lines(fd, "            \"unresponsive\""), size - 1);
	close(fd);
}

static void of_an_ended_job_one_communicator_is_shown(void **state) {
	struct overlay_answer *answer = bench_answer_new();
	int fd = bench_connect();
	const char *shown;

	(void)state;
	rank_flags = RAS_RANK_FINALIZE;
	for (uint64_t n = 0; n < 5; n++)
		add_comm(answer, 0xc0 + n, n < 3 ? "given:lab" : "slurm:8.0", false);
	rank_flags = 0;
	add_comm(answer, 0xa1, "slurm:7.0", false);
	answer->result.answered = 3;
	ras_comms_settle(answer->comms);
	bench_say(fd, "COMMS\n");
	bench_turn();
	bench_answer(answer);
	shown = bench_shown(fd);
	assert_non_null(bench_find(shown, "6 communicators"));
	assert_non_null(bench_find(shown, "00000000000000c0"));
	assert_non_null(bench_find(shown, "00000000000000c3"));
	assert_non_null(bench_find(shown, "00000000000000a1"));
	assert_null(bench_find(shown, "00000000000000c1"));
	assert_non_null(bench_find(shown, "3 more have ended (--all lists them)\n"));
	close(fd);
}

static void a_job_is_found_without_the_prefix_of_its_id(void **state) {
	static const struct {
		const char *line, *found;
	} rows[] = {
		{"COMMS given:lab\n", "1 comm"},
		{"COMMS lab\n", "1 comm"},
		{"COMMS la\n", "0 comm"},
		{"COMMS given\n", "0 comm"},
		{"WHY lab\n", "Communicator 00000000000000a1 of job given:lab"},
		{"WHY la\n", "ERROR: no node \"la\" is known"},
	};

	(void)state;
	rank_flags = 0;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct overlay_answer *answer = bench_answer_new();
		int fd = bench_connect();

		add_comm(answer, 0xa1, "given:lab", false);
		ras_comms_settle(answer->comms);
		bench_say(fd, rows[n].line);
		bench_turn();
		bench_answer(answer);
		assert_non_null(bench_find(bench_shown(fd), rows[n].found));
		close(fd);
	}
}

UNIT_GROUP(client_comms) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(the_one_that_waits_is_first_with_its_sentence),
		BENCH_TEST(a_job_or_a_communicator_is_found_by_its_names),
		BENCH_TEST(a_job_is_found_without_the_prefix_of_its_id),
		BENCH_TEST(of_an_ended_job_one_communicator_is_shown),
		BENCH_TEST(why_tells_the_ranks_of_a_job_the_late_one_first),
		BENCH_TEST(why_of_a_communicator_that_moves_says_so),
		BENCH_TEST(a_word_that_calls_nothing_is_an_error),
		BENCH_TEST(the_finding_stands_in_json),
		BENCH_TEST(nccl_s_report_tells_what_is_stuck_and_of_which_job),
		BENCH_TEST(ranks_that_nobody_holds_are_told_in_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
