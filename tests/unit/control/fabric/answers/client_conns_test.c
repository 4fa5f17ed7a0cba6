// SPDX-License-Identifier: BSD-3-Clause
// CONNS: the connections of all agents by transport, and the slowest, in text and JSON.
#include "control/client/client_bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct ras_conn_row rows[] = {
	{.transport = RAS_TRANSPORT_TCP,
	 .samples = 10,
	 .min_ns = 50000,
	 .mean_ns = 80000,
	 .max_ns = 900000,
	 .sent_bytes = 1 << 20,
	 .received_bytes = 2048,
	 .errors = 3,
	 .retransmits = 7},
	{.transport = RAS_TRANSPORT_TCP, .retransmits = RAS_RETRANSMITS_UNKNOWN},
	{.transport = RAS_TRANSPORT_ROCE,
	 .samples = 1000,
	 .min_ns = 1500,
	 .mean_ns = 2500,
	 .max_ns = 12000,
	 .received_bytes = UINT64_MAX,
	 .retransmits = RAS_RETRANSMITS_UNKNOWN},
};

// Rows of n2 to n1, as many times over.
static struct overlay_answer *answer_of(uint32_t count, uint32_t times) {
	struct overlay_answer *answer = bench_answer_new();
	uint8_t bytes[4096];

	answer->kind = RAS_COLLECT_CONNS;
	answer->conns = calloc(1, sizeof(*answer->conns));
	assert_non_null(answer->conns);
	for (uint32_t time = 0; time < times; time++) {
		struct ras_collected_part part = {.node = bench_peer("n2")->record->id};
		struct wire_writer writer;
		size_t size = 0;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		for (uint32_t n = 0; n < count; n++) {
			struct ras_conn_row row = rows[n];

			row.peer = bench.overlay.records[0]->id;
			row.mean_ns += row.samples > 0 ? time : 0;
			assert_int_equal(ras_conn_put(&writer, &row), 0);
		}
		assert_int_equal(wire_writer_finish(&writer, &size), 0);
		part.payload = bytes;
		part.size = size;
		assert_int_equal(ras_conns_add(answer->conns, &part), 0);
	}
	return answer;
}

static void ask(int fd, struct overlay_answer *answer) {
	bench_say(fd, "CONNS\n");
	bench_turn();
	assert_int_equal(bench.overlay.ask_kind, RAS_COLLECT_CONNS);
	bench_answer(answer);
}

static const char *shown(int fd, struct overlay_answer *answer) {
	ask(fd, answer);
	return bench_shown(fd);
}

static void transports_are_summed_up_and_what_is_not_told_is_unknown(void **state) {
	int fd = bench_connect();
	const char *text = shown(fd, answer_of(3, 1));

	(void)state;
	bench_assert_narrow(text, 80);
	assert_non_null(bench_find(text, "3 connections, each from either end, of 3 of 3 agents"));
	assert_non_null(bench_find(text, "\ntcp             2 50 us     80 us     900 us"));
	assert_non_null(bench_find(text, "7, 1 unknown\n"));
	assert_non_null(bench_find(text, "\nroce            1 1.5 us    2.5 us    12 us"));
	assert_non_null(bench_find(text, " unknown\n"));
	assert_null(bench_find(text, "infiniband"));
	assert_non_null(bench_find(text, "\nn2                   n1                   tcp "));
	close(fd);
}

static void cluster_without_rdma_or_connections_is_answered_too(void **state) {
	int fd = bench_connect();
	const char *text = shown(fd, answer_of(0, 0));

	(void)state;
	assert_non_null(bench_find(text, "0 connections"));
	assert_null(bench_find(text, "TRANSPORT"));
	text = shown(fd, answer_of(2, 1));
	assert_non_null(bench_find(text, "2 connections"));
	assert_null(bench_find(text, "roce"));
	close(fd);
}

static void sixteen_of_many_are_shown_the_slowest_first(void **state) {
	int fd = bench_connect();
	const char *at = shown(fd, answer_of(3, 40));
	uint32_t shown = 0;

	(void)state;
	bench_assert_narrow(at, 80);
	while ((at = bench_find(at, "\nn2  ")) != NULL) {
		at++;
		shown++;
	}
	assert_int_equal(shown, RAS_CONNS_WORST_MAX);
	close(fd);
}

static void answer_in_json_has_null_for_what_is_unknown(void **state) {
	int fd = bench_connect();
	json_error_t error;
	json_t *object, *tcp, *roce;

	(void)state;
	ask(fd, answer_of(3, 1));
	object = json_loads(bench_hear(fd), 0, &error);
	assert_non_null(object);
	assert_int_equal(json_integer_value(json_object_get(object, "rows")), 3);
	assert_int_equal(json_array_size(json_object_get(object, "transports")), 2);
	tcp = json_array_get(json_object_get(object, "transports"), 0);
	roce = json_array_get(json_object_get(object, "transports"), 1);
	assert_string_equal(json_string_value(json_object_get(tcp, "transport")), "tcp");
	assert_int_equal(json_integer_value(json_object_get(tcp, "retransmits")), 7);
	assert_int_equal(json_integer_value(json_object_get(tcp, "retransmits_unknown")), 1);
	assert_int_equal(json_integer_value(json_object_get(tcp, "mean_ns")), 80000);
	assert_true(json_is_null(json_object_get(roce, "retransmits")));
	assert_true(json_integer_value(json_object_get(roce, "received_bytes")) == INT64_MAX);
	assert_int_equal(json_array_size(json_object_get(object, "worst")), 2);
	json_decref(object);
	close(fd);
}

static void question_that_cannot_be_put_or_fails_is_an_error(void **state) {
	struct overlay_answer *answer = bench_answer_new();
	int fd = bench_connect();

	(void)state;
	bench.overlay.ask_err = -EAGAIN;
	bench_say(fd, "CONNS\n");
	assert_string_equal(
		bench_shown(fd), "ERROR: no connections could be collected: this agent is not a "
				 "member of a ring yet, or is leaving it\n"
	);
	bench.overlay.ask_err = 0;
	bench_say(fd, "CONNS\n");
	bench_turn();
	answer->err = -ECANCELED;
	bench_answer(answer);
	assert_non_null(bench_find(bench_shown(fd), "this agent is leaving"));
	bench_say(fd, "CONNS now\n");
	assert_string_equal(
		bench_shown(fd), "ERROR: CONNS takes no arguments, but \"now\" follows\n"
	);
	close(fd);
}

static void question_is_forgotten_with_the_client_that_put_it(void **state) {
	int fd = bench_connect();

	(void)state;
	bench_say(fd, "CONNS\n");
	bench_turn();
	assert_int_equal(bench.overlay.asked, 1);
	bench_restart(); // all clients are closed
	assert_int_equal(bench.overlay.forgotten, 1);
	close(fd);
}

UNIT_GROUP(client_conns) {
	const struct CMUnitTest tests[] = {
		BENCH_TEST(transports_are_summed_up_and_what_is_not_told_is_unknown),
		BENCH_TEST(cluster_without_rdma_or_connections_is_answered_too),
		BENCH_TEST(sixteen_of_many_are_shown_the_slowest_first),
		BENCH_TEST(answer_in_json_has_null_for_what_is_unknown),
		BENCH_TEST(question_that_cannot_be_put_or_fails_is_an_error),
		BENCH_TEST(question_is_forgotten_with_the_client_that_put_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
