// SPDX-License-Identifier: BSD-3-Clause
// NCCL's report of its ranks: complete, in pieces, in the format of 2.28, and invalid.
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <jobs/host/nccl_report.h>
#include <stdio.h>
#include <string.h>

struct seen {
	uint32_t count;
	struct nccl_rank last;
};

static void see(void *ctx, const struct nccl_rank *rank) {
	struct seen *seen = ctx;

	seen->count++;
	seen->last = *rank;
}

#define RANK(rank, pid, cuda, nvml)                                                             \
	"        {\n          \"rank\": " rank ",\n          \"host\": \"127.0.1.1\",\n"        \
	"          \"pid\": " pid ",\n          \"cuda_dev\": " cuda                            \
	",\n          \"nvml_dev\": " nvml                                                      \
	",\n          \"status\": {\n            \"init_state\": 0,\n            \"pid\": 5,\n" \
	"            \"abort_flag\": false\n          },\n          \"collective_counts\": {\n" \
	"            \"rank\": 9,\n            \"AllReduce\": 10\n          }\n        }"
#define COMM(ranks, missing)                                                                       \
	"    {\n      \"hash\": \"0x2dca72608968c5a2\",\n      \"secondary_hash\": \"0x1:0x2\",\n" \
	"      \"size\": 6,\n      \"ranks_count\": 5,\n      \"ranks\": [\n" ranks                \
	"\n      ],\n      \"missing_ranks\": [\n" missing "\n      ]\n    }"
#define REPORT(comms)                                                                          \
	"{\n  \"nccl_version\": \"2.30.7\",\n  \"cuda_driver_version\": 13000,\n"              \
	"  \"communicators\": [\n" comms "\n  ],\n  \"ras\": {\n    \"collection_time_sec\": " \
	"0.000,\n    \"timeouts_count\": 0\n  }\n}\n"

static const char whole[] = REPORT(COMM(
	RANK("0", "8478", "0", "2") ",\n" RANK("1", "8479", "1", "3"), RANK("2", "8480", "0", "0")
));
// NCCL 2.28.9 omits the comma between missing ranks.
static const char without_comma[] = REPORT(COMM(
	RANK("0", "8478", "0", "2") ",\n" RANK("1", "8479", "1", "3"),
	RANK("2", "8480", "0", "0") "\n" RANK("3", "8481", "1", "1")
) ",\n" COMM(RANK("4", "9000", "7", "7"), ""));

static int
read_all(const char *text, size_t size, size_t piece, struct seen *seen, bool *ret_over) {
	struct nccl_report report;
	int err = 0;

	*seen = (struct seen){0};
	nccl_report_begin(&report, see, seen);
	for (size_t at = 0; at < size && err == 0; at += piece)
		err = nccl_report_feed(&report, text + at, size - at < piece ? size - at : piece);
	*ret_over = nccl_report_is_complete(&report);
	return err;
}

static void a_report_names_its_ranks_whatever_pieces_it_comes_in(void **state) {
	struct seen seen;
	bool over;

	(void)state;
	for (size_t piece = 1; piece < sizeof(whole); piece++) {
		assert_int_equal(read_all(whole, strlen(whole), piece, &seen, &over), 0);
		assert_true(over);
		assert_int_equal(seen.count, 2); // the missing rank is not counted
		assert_true(seen.last.comm_hash == 0x2dca72608968c5a2);
		assert_int_equal(seen.last.size, 6);
		assert_int_equal(seen.last.rank, 1);
		assert_int_equal(seen.last.pid, 8479);
		assert_int_equal(seen.last.cuda_device, 1);
		assert_int_equal(seen.last.nvml_device, 3);
	}
}

static void a_report_that_lacks_commas_is_read(void **state) {
	struct seen seen;
	bool over;

	(void)state;
	assert_int_equal(read_all(without_comma, strlen(without_comma), 7, &seen, &over), 0);
	assert_true(over);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.last.pid, 9000);
}

static void a_report_that_is_cut_off_is_not_over(void **state) {
	struct seen seen;
	bool over;

	(void)state;
	for (size_t size = 0; size < strlen(whole) - 2; size++) {
		assert_int_equal(read_all(whole, size, 64, &seen, &over), 0);
		assert_false(over);
	}
}

static void ranks_that_make_no_sense_are_left_out(void **state) {
	static const struct {
		const char *text;
		uint32_t count;
		int cuda;
	} cases[] = {
		{REPORT(COMM(RANK("0", "1", "0", "0"), "")), 1, 0},
		// A rank that is not below the size.
		{REPORT(COMM(RANK("6", "1", "0", "0"), "")), 0, 0},
		{REPORT(COMM(RANK("-1", "1", "0", "0"), "")), 0, 0},
		{REPORT(COMM(RANK("0", "-1", "0", "0"), "")), 0, 0}, // unknown process
		{REPORT(COMM(RANK("0", "2147483648", "0", "0"), "")), 0, 0},
		{REPORT(COMM(RANK("99999999999999999999999999", "1", "0", "0"), "")), 0, 0},
		{REPORT(COMM(RANK("0", "1", "-1", "-1"), "")), 1, -1},
		{REPORT(COMM(RANK("0", "1", "70000", "0"), "")), 1, -1},
		{REPORT(COMM(RANK("0", "1", "null", "true"), "")), 1, -1},
		{REPORT(COMM(RANK("\"0\"", "1", "3", "0"), "")), 1, 3},
		{REPORT(COMM("{\"rank\": 0}", "")), 0, 0},
		{REPORT(COMM("{\"pid\": 4}", "")), 0, 0},
		// Outside of a communicator.
		{REPORT("{\"ranks\": [" RANK("0", "1", "0", "0") "]}"), 0, 0},
		{REPORT("{\"hash\": \"0xg\", \"size\": 1, \"ranks\": [" RANK(
			 "0", "1", "0", "0"
		 ) "]}"),
		 0, 0},
		{REPORT("{\"hash\": \"0x1\", \"size\": 1, \"ranks\": {}}"), 0, 0},
		{"{}", 0, 0},
	};
	struct seen seen;
	bool over;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		if (read_all(cases[n].text, strlen(cases[n].text), 5, &seen, &over) != 0 || !over ||
		    seen.count != cases[n].count ||
		    (seen.count > 0 && seen.last.cuda_device != cases[n].cuda))
			fail_msg("case %zu: %u ranks", n, seen.count);
	}
}

static void what_is_no_report_is_refused(void **state) {
	static const char *const cases[] = {
		"ERROR: Unknown command STATUS\n",
		"NCCL version 2.27.3 compiled\n",
		"[",
		"[]",
		"]",
		"}",
		"{]",
		"{\"a\": [}",
		"{}{",
		"{} x",
		"{\"a\": #}",
		"\"",
		",",
		":",
		"5",
		"{{{{{{{{{{{{{",
		"{\x01}",
		"{\xff}",
		"\0",
	};
	struct seen seen;
	bool over;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		size_t size = cases[n][0] == '\0' ? 1 : strlen(cases[n]);

		if (read_all(cases[n], size, 3, &seen, &over) != -EBADMSG)
			fail_msg("case %zu", n);
	}
}

static void texts_of_any_length_are_passed_over(void **state) {
	char text[4096];
	struct seen seen;
	bool over;

	(void)state;
	for (int length = 0; length < 200; length++) {
		snprintf(
			text, sizeof(text), "{\"%0*d\\\"\": %0*d, \"communicators\": []}", length,
			0, length, 0
		);
		assert_int_equal(read_all(text, strlen(text), 11, &seen, &over), 0);
		assert_true(over);
	}
}

UNIT_GROUP(nccl_report) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_names_its_ranks_whatever_pieces_it_comes_in),
		cmocka_unit_test(a_report_that_lacks_commas_is_read),
		cmocka_unit_test(a_report_that_is_cut_off_is_not_over),
		cmocka_unit_test(ranks_that_make_no_sense_are_left_out),
		cmocka_unit_test(what_is_no_report_is_refused),
		cmocka_unit_test(texts_of_any_length_are_passed_over),
	};

	return cmocka_run_group_tests_name("nccl_report", tests, NULL, NULL);
}
