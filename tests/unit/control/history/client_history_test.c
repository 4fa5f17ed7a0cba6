// SPDX-License-Identifier: BSD-3-Clause
// Answers about the past. The test plays the history.
#include "control/client/client_bench.h"

#include <control/history.h>
#include <lib/stream.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POINTS 60
#define STEP_BYTES_MAX 32768 // of a turn, where a whole answer has a megabyte

static struct {
	struct history_question question;
	struct history_query *query; // the question without an answer; NULL: none
} played;

// Fakes, instead of the history.

int history_ask(
	struct history *history,
	const struct history_question *question,
	struct history_query *query
) {
	query->history = history;
	played.question = *question;
	played.query = query;
	return 0;
}

void history_cancel(struct history_query *query) {
	if (played.query == query)
		played.query = NULL;
}

struct history_answer *history_answer_free(struct history_answer *answer) {
	if (answer == NULL)
		return NULL;
	for (uint32_t n = 0; n < answer->series_count; n++)
		free(answer->series[n]);
	free(answer->events);
	free(answer);
	return NULL;
}

static struct history_answer *answer_new(uint32_t paths) {
	struct history_answer *answer = calloc(1, sizeof(*answer));

	assert_non_null(answer);
	answer->has_file = true;
	answer->step_s = 60;
	answer->points = POINTS;
	answer->since_s = played.question.since_s;
	answer->oldest_s = INT64_MAX;
	for (; answer->series_count < paths; answer->series_count++) {
		struct history_series *series = calloc(1, sizeof(*series));

		assert_non_null(series);
		snprintf(series->name.node, sizeof(series->name.node), "n2");
		snprintf(
			series->name.device, sizeof(series->name.device), "dev%u",
			answer->series_count
		);
		snprintf(series->name.peer_device, sizeof(series->name.peer_device), "dev0");
		for (uint32_t n = 0; n < POINTS; n++)
			series->points[n] = (struct history_point
			){.sent = 60,
			  .min_ns = 1000,
			  .median_ns = 1500,
			  .p99_ns = 2000,
			  .max_ns = 2500};
		answer->series[answer->series_count] = series;
	}
	return answer;
}

static void answer_give(struct history_answer *answer) {
	struct history_query *query = played.query;

	assert_non_null(query);
	played.query = NULL;
	query->ended(query, 0, answer);
}

static int start(void **state) {
	memset(&played, 0, sizeof(played));
	if (bench_start(state) != 0)
		return -1;
	bench.config.history = (struct history *)&played; // only compared with NULL
	bench_restart();
	return 0;
}

static size_t receive(int fd, char *bytes, size_t size) {
	ssize_t got = stream_receive(fd, bytes, size);

	assert_true(got > 0 || got == -EAGAIN);
	return got > 0 ? (size_t)got : 0;
}

// Ask, answer with as many paths as fit, and require that no turn of the loop writes much of it.
static void check_turns(const char *question) {
	static char bytes[1 << 22];
	int fd = bench_connect();
	size_t used = 0, before;
	json_t *object;

	bench_say(fd, question);
	bench_turn();
	answer_give(answer_new(HISTORY_SERIES_MAX));
	do {
		before = used;
		assert_int_equal(loop_turn(bench.loop, 0), 0);
		used += receive(fd, bytes + used, sizeof(bytes) - 1 - used);
		assert_true(used - before <= STEP_BYTES_MAX);
	} while (used == 0 || bytes[used - 1] != '\n');
	bytes[used] = '\0';
	object = json_loads(bytes, 0, NULL);
	assert_non_null(object);
	bench_assert_units(object);
	assert_int_equal(json_array_size(json_object_get(object, "paths")), HISTORY_SERIES_MAX);
	json_decref(object);
	close(fd);
}

static void each_turn_writes_one_path(void **state) {
	(void)state;
	check_turns("HISTORY n2\n");
	check_turns("WHY n2 1h\n");
}

static void times_at_the_end_of_the_clock_are_answered(void **state) {
	struct history_answer *answer;
	int fd = bench_connect();
	const char *heard;

	(void)state;
	bench_say(fd, "HISTORY n2 @0 @9200000000\n");
	bench_turn();
	assert_int_equal(played.question.until_s, INT64_C(9200000000));
	answer = answer_new(1);
	answer->step_s = 160000000;
	answer->oldest_s = INT64_MIN; // as a forged header has it
	answer_give(answer);
	heard = bench_hear(fd);
	assert_non_null(strstr(heard, "\"until\":\"2262-"));
	assert_non_null(strstr(heard, "\"oldest\":\"1677-"));
	close(fd);
}

static void a_client_that_leaves_cancels_its_question(void **state) {
	int fd = bench_connect_local();

	(void)state;
	bench_say(fd, "HISTORY n2\n");
	bench_turn();
	assert_non_null(played.query);
	close(fd);
	bench_turn();
	assert_null(played.query);
}

static void a_question_about_too_many_records_is_refused_with_what_helps(void **state) {
	struct history_query *query;
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "HISTORY n2\n");
	bench_turn();
	query = played.query;
	played.query = NULL;
	query->ended(query, -EFBIG, NULL);
	assert_non_null(strstr(bench_hear(fd), "ask about a shorter period"));
	close(fd);
}

// Regression: questions about the past had no limit.
static void questions_have_the_rate_of_questions_to_others(void **state) {
	static const char *const questions[] = {"HISTORY n2\n", "WHY n2 1h\n"};

	(void)state;
	bench.config.asks_burst = 2;
	bench.config.asks_per_s = 1;
	bench_restart();
	for (uint32_t n = 0; n < 4; n++) {
		int fd = bench_connect();

		bench_say(fd, questions[n % 2]);
		bench_turn();
		if (n < 2)
			answer_give(answer_new(1));
		else
			assert_null(played.query);
		assert_int_equal(
			strstr(bench_hear(fd),
			       "too many questions to other nodes or about the past") != NULL,
			n >= 2
		);
		close(fd);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, start, bench_stop)

UNIT_GROUP(client_history) {
	const struct CMUnitTest tests[] = {
		CASE(each_turn_writes_one_path),
		CASE(times_at_the_end_of_the_clock_are_answered),
		CASE(a_client_that_leaves_cancels_its_question),
		CASE(a_question_about_too_many_records_is_refused_with_what_helps),
		CASE(questions_have_the_rate_of_questions_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
