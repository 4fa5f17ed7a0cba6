// SPDX-License-Identifier: BSD-3-Clause
#include "run/plan.h"

#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static void plans_that_contradict_themselves_are_refused(void **state) {
	static const struct {
		struct plan plan;
		const char *says;
	} wrong[] = {
		{{.size_count = 0, .iterations = 1}, "sizes"},
		{{.size_count = 1, .sizes = {0}, .iterations = 1}, "1 B to 8 MiB"},
		{{.size_count = 1, .sizes = {PLAN_SIZE_BYTES_MAX + 1}, .iterations = 1}, "8 MiB"},
		{{.op = PLAN_CAS, .size_count = 1, .sizes = {64}, .iterations = 1}, "8 bytes"},
		{{.size_count = 1, .sizes = {8}}, "either --iterations or --duration"},
		{{.size_count = 1, .sizes = {8}, .iterations = 1, .duration_ns = 1}, "either"},
		{{.size_count = 1, .sizes = {8}, .iterations = 1, .arrivals = PLAN_POISSON},
		 "--rate"},
		{{.size_count = 1, .sizes = {8}, .iterations = 1, .rate = 5}, "open loop"},
		{{.size_count = 1,
		  .sizes = {8},
		  .iterations = 1,
		  .rate = 5,
		  .arrivals = PLAN_CONSTANT,
		  .gap_ns = 1},
		 "--gap"},
		{{.size_count = 1,
		  .sizes = {8},
		  .duration_ns = PLAN_DURATION_NS_MAX,
		  .rate = PLAN_RATE_MAX,
		  .arrivals = PLAN_CONSTANT},
		 "20000000 arrivals"},
		{{.op = PLAN_WRITE,
		  .size_count = 1,
		  .sizes = {8},
		  .iterations = 1,
		  .policy = IDLE_EVENT},
		 "write-imm"},
	};
	static const struct {
		enum plan_command command;
		uint32_t depth, pairs;
		bool both_ways;
		uint64_t gap_ns;
		const char *says;
	} loads[] = {
		{PLAN_LAT, 2, 1, false, 0, "--depth"},
		{PLAN_LAT, 1, 2, false, 0, "--queue-pairs"},
		{PLAN_LAT, 1, 1, true, 0, "--bidirectional"},
		{PLAN_BW, 0, 1, false, 0, "1 to 4096"},
		{PLAN_BW, PLAN_DEPTH_MAX + 1, 1, false, 0, "1 to 4096"},
		{PLAN_BW, 1, 0, false, 0, "1 to 64"},
		{PLAN_BW, 1, PLAN_PAIRS_MAX + 1, false, 0, "1 to 64"},
		{PLAN_BW, PLAN_DEPTH_MAX, PLAN_PAIRS_MAX, false, 0, "at most 65536"},
		{PLAN_BW, UINT32_MAX, UINT32_MAX, false, 0, "1 to 4096"},
		{PLAN_BW, 64, 1, false, 5, "--gap"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		struct lab_why why = {.text = ""};
		struct plan plan = wrong[n].plan;

		plan.depth = plan.pairs = plan.run = plan.runs = 1;
		plan.inline_bytes = PLAN_INLINE_DEFAULT;
		assert_int_equal(plan_check(&plan, &why), -EINVAL);
		assert_non_null(strstr(why.text, wrong[n].says));
	}
	for (size_t n = 0; n < sizeof(loads) / sizeof(loads[0]); n++) {
		struct plan plan = plan_default;
		struct lab_why why = {.text = ""};

		plan.command = loads[n].command;
		plan.depth = loads[n].depth;
		plan.pairs = loads[n].pairs;
		plan.both_ways = loads[n].both_ways;
		plan.gap_ns = loads[n].gap_ns;
		assert_int_equal(plan_check(&plan, &why), -EINVAL);
		assert_non_null(strstr(why.text, loads[n].says));
	}
}

// The numbers of a plan may be of a stranger. The refusal names the number and its limit.
static void what_a_plan_may_cost_is_bounded(void **state) {
	struct {
		struct plan plan;
		const char *says[2];
	} rows[9];

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		rows[n].plan = plan_default;
	rows[0].plan.sizes[0] = UINT64_C(200) << 30;
	rows[0].says[0] = "214748364800 B";
	rows[0].says[1] = "8 MiB";
	rows[1].plan.iterations = PLAN_ITERATIONS_MAX + 1;
	rows[1].says[0] = "1000000001";
	rows[1].says[1] = "limit is 1000000000";
	rows[2].plan.gap_ns = UINT64_MAX;
	rows[2].says[0] = "--gap in ns is 18446744073709551615";
	rows[2].says[1] = "limit is 60000000000";
	rows[3].plan.window_ns = UINT64_MAX;
	rows[3].says[0] = "window";
	rows[3].says[1] = "limit is 1000000000";
	rows[4].plan.rate = PLAN_RATE_MAX + 1;
	rows[4].plan.arrivals = PLAN_POISSON;
	rows[4].says[0] = "--rate is 10000001";
	rows[4].says[1] = "limit is 10000000";
	rows[5].plan.gap_ns = PLAN_GAP_NS_MAX;
	rows[5].says[0] = "the run takes 1200000 s";
	rows[5].says[1] = "limit is 86400 s";
	rows[6].plan.iterations = 0;
	rows[6].plan.duration_ns = PLAN_DURATION_NS_MAX + 1;
	rows[6].says[0] = "3600000000001";
	rows[6].says[1] = "limit is 3600000000000";
	rows[7].plan.iterations = 0;
	rows[7].plan.duration_ns = PLAN_DURATION_NS_MAX;
	rows[7].plan.size_count = PLAN_SIZES_MAX;
	for (int n = 0; n < PLAN_SIZES_MAX; n++)
		rows[7].plan.sizes[n] = 8;
	rows[7].says[0] = "the run takes 115200 s";
	rows[7].says[1] = "limit is 86400 s";
	rows[8].plan.command = PLAN_BW;
	rows[8].plan.sizes[0] = PLAN_SIZE_BYTES_MAX;
	rows[8].plan.depth = 1024;
	rows[8].plan.pairs = PLAN_PAIRS_MAX;
	rows[8].says[0] = "65536 operations under way need 80 MiB";
	rows[8].says[1] = "limit is 72 MiB";
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_why why = {.text = ""};

		assert_int_equal(plan_check(&rows[n].plan, &why), -EINVAL);
		assert_non_null(strstr(why.text, rows[n].says[0]));
		assert_non_null(strstr(why.text, rows[n].says[1]));
	}
}

static void a_server_waits_for_slow_arrivals(void **state) {
	struct plan plan = plan_default;
	uint64_t closed_ns = plan_silence_max_ns(&plan);

	(void)state;
	plan.gap_ns = PLAN_GAP_NS_MAX;
	assert_int_equal(plan_silence_max_ns(&plan), closed_ns + PLAN_GAP_NS_MAX);
	plan.gap_ns = 0;
	plan.arrivals = PLAN_ONOFF;
	plan.rate = 1;
	assert_true(plan_silence_max_ns(&plan) >= closed_ns + 100 * UINT64_C(1000000000));
}

static void bytes_go_within_requests_of_what_carries_some(void **state) {
	static const struct {
		enum plan_op op;
		uint32_t inline_bytes;
		int err;
	} rows[] = {
		{PLAN_WRITE, 0, 0},
		{PLAN_SEND, PLAN_INLINE_BYTES_MAX, 0},
		{PLAN_WRITE_IMM, PLAN_INLINE_DEFAULT, 0},
		{PLAN_READ, PLAN_INLINE_DEFAULT, 0},
		{PLAN_SEND, PLAN_INLINE_BYTES_MAX + 1, -EINVAL},
		{PLAN_READ, 0, -EINVAL},
		{PLAN_CAS, 8, -EINVAL},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_why why = {.text = ""};
		struct plan plan = plan_default;

		plan.op = rows[n].op;
		plan.sizes[0] = 8;
		plan.inline_bytes = rows[n].inline_bytes;
		assert_int_equal(plan_check(&plan, &why), rows[n].err);
		if (rows[n].err != 0)
			assert_non_null(strstr(why.text, "--inline is "));
	}
}

static void the_default_is_sound(void **state) {
	struct lab_why why = {.text = ""};

	(void)state;
	assert_int_equal(plan_check(&plan_default, &why), 0);
}

static void an_option_that_differs_is_named_with_both_values(void **state) {
	static const struct {
		struct plan own;
		enum plan_part part;
		const char *says;
	} rows[] = {
		{{.op = PLAN_SEND},
		 PLAN_PART_OP,
		 "--op differs: the client has read, the server send"},
		{{.size_count = 2, .sizes = {1, 2}},
		 PLAN_PART_SIZES,
		 "--size differs: the client has 64, the server 1,2"},
		{{.iterations = 7}, PLAN_PART_ITERATIONS, "client has 20000, the server 7"},
		{{.duration_ns = 9}, PLAN_PART_DURATION, "--duration (ns) differs"},
		{{.gap_ns = 9}, PLAN_PART_GAP, "--gap (ns) differs"},
		{{.policy = IDLE_EVENT}, PLAN_PART_POLICY, "has spin, the server event"},
		{{.arrivals = PLAN_POISSON}, PLAN_PART_ARRIVALS, "has closed, the server poisson"},
		{{.rate = 3}, PLAN_PART_RATE, "--rate differs"},
		{{.seed = 3}, PLAN_PART_SEED, "--seed differs"},
		{{.stamps = PLAN_STAMPS_WALL},
		 PLAN_PART_STAMPS,
		 "--device-time differs: the client has none, the server wall"},
		{{.inline_bytes = 0},
		 PLAN_PART_INLINE,
		 "--inline differs: the client has the default, the server 0"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_why why = {.text = ""};

		assert_int_equal(
			plan_compare(&plan_default, &rows[n].own, rows[n].part, &why), -EINVAL
		);
		assert_non_null(strstr(why.text, rows[n].says));
		// An option that the server was not given is chosen by the client.
		why.text[0] = '\0';
		assert_int_equal(plan_compare(&plan_default, &rows[n].own, 0, &why), 0);
	}
}

static size_t encode(const struct plan *plan, uint8_t *bytes, size_t size) {
	struct wire_writer writer;
	size_t used = 0;

	wire_writer_init(&writer, bytes, size);
	plan_encode(plan, &writer);
	assert_int_equal(wire_writer_finish(&writer, &used), 0);
	return used;
}

static void a_plan_is_read_as_it_was_written(void **state) {
	struct plan plan = plan_default, read = {.op = PLAN_OP_COUNT};
	struct wire_reader reader;
	uint8_t bytes[512], again[512];
	size_t used;

	(void)state;
	plan.size_count = 3;
	plan.sizes[1] = 4096;
	plan.sizes[2] = PLAN_SIZE_BYTES_MAX;
	plan.seed = UINT64_MAX;
	plan.command = PLAN_BW;
	plan.depth = 77;
	plan.pairs = PLAN_PAIRS_MAX;
	plan.both_ways = true;
	plan.stamps = PLAN_STAMPS_WALL;
	plan.inline_bytes = 321;
	used = encode(&plan, bytes, sizeof(bytes));
	wire_reader_init(&reader, bytes, used);
	plan_decode(&reader, &read);
	assert_int_equal(wire_reader_finish(&reader), 0);
	assert_int_equal(encode(&read, again, sizeof(again)), used);
	assert_memory_equal(bytes, again, used);
	assert_int_equal(read.sizes[2], PLAN_SIZE_BYTES_MAX);
	assert_int_equal(read.depth, 77);
	assert_true(read.both_ways);
	assert_int_equal(read.stamps, PLAN_STAMPS_WALL);
	assert_int_equal(read.inline_bytes, 321);
}

static void bytes_that_are_no_plan_are_refused(void **state) {
	static const size_t places[] = {0, 1, 2, 3}; // of the names
	uint8_t bytes[512], wrong[512];
	struct wire_reader reader;
	struct plan read;
	size_t used;

	(void)state;
	used = encode(&plan_default, bytes, sizeof(bytes));
	for (size_t length = 0; length < used; length++) {
		wire_reader_init(&reader, bytes, length);
		plan_decode(&reader, &read);
		assert_int_equal(wire_reader_finish(&reader), -EBADMSG);
	}
	for (size_t n = 0; n < sizeof(places) / sizeof(places[0]); n++) {
		memcpy(wrong, bytes, used);
		wrong[places[n]] = 0xff;
		wire_reader_init(&reader, wrong, used);
		plan_decode(&reader, &read);
		assert_int_equal(wire_reader_finish(&reader), -EBADMSG);
	}
}

UNIT_GROUP(lab_plan) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_that_contradict_themselves_are_refused),
		cmocka_unit_test(what_a_plan_may_cost_is_bounded),
		cmocka_unit_test(a_server_waits_for_slow_arrivals),
		cmocka_unit_test(the_default_is_sound),
		cmocka_unit_test(bytes_go_within_requests_of_what_carries_some),
		cmocka_unit_test(an_option_that_differs_is_named_with_both_values),
		cmocka_unit_test(a_plan_is_read_as_it_was_written),
		cmocka_unit_test(bytes_that_are_no_plan_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
