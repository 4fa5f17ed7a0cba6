// SPDX-License-Identifier: BSD-3-Clause
// Rows as JSON and as tables.
#include <lib/fact.h>
#include <lib/record.h>
#include <support/cmocka.h>

#include <string.h>

struct train {
	const char *name;
	char line[8];
	bool late;
	int32_t platform;
	uint32_t seats;
	uint64_t travel_ns;
	uint64_t cargo_bytes;
	uint64_t delay_ns;
	json_t *stops;
};

static const char *show_platform(const json_t *row, char text[static SHOW_BYTES]) {
	snprintf(
		text, SHOW_BYTES, "no %d", (int)json_integer_value(json_object_get(row, "platform"))
	);
	return text;
}

#define MEMBER(...) RECORD_MEMBER(struct train, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct train, __VA_ARGS__)

static const struct record_field fields[] = {
	COLUMN(name, UNIT_NONE, "name", "NAME", 10, 0, NULL),
	MEMBER(line, UNIT_NONE, "line"),
	COLUMN(late, UNIT_NONE, "whether it is late", "LATE", 4, 2, NULL),
	COLUMN(platform, UNIT_NONE, "where it leaves", "PLATFORM", 8, 3, show_platform),
	COLUMN(seats, UNIT_COUNT, "seats", "SEATS", 6, 1, NULL),
	COLUMN(travel_ns, UNIT_NANOSECONDS, "time", "TIME", 8, 0, NULL),
	COLUMN(cargo_bytes, UNIT_BYTES, "cargo", "CARGO", 8, 0, NULL),
	COLUMN(delay_ns, UNIT_NANOSECONDS, "delay", "DELAY", 8, 0, NULL),
	MEMBER(stops, UNIT_NONE, "stops"),
	RECORD_INNER("driver", "name", UNIT_NONE, "DRIVER", 8, 4),
};

static const struct record train_record = RECORD("trains", fields);

static char *print(const char *rows_text, size_t columns) {
	json_t *rows = json_loads(rows_text, 0, NULL);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(rows);
	assert_non_null(out);
	record_print_table(&train_record, rows, columns, NULL, NULL, out);
	fclose(out);
	json_decref(rows);
	return text;
}

static void assert_table(const char *rows, size_t columns, const char *wanted) {
	char *text = print(rows, columns);

	assert_string_equal(text, wanted);
	free(text);
}

static void row_is_written_with_every_type(void **state) {
	const struct train train = {
		.name = "night",
		.line = "N7",
		.late = true,
		.platform = -2,
		.seats = 300,
		.travel_ns = 1500,
		.cargo_bytes = 2048,
		.delay_ns = 2500000000,
		.stops = json_pack("[s,s]", "a", "b"),
	};
	json_t *row = record_to_json(&train_record, &train);
	char *text = json_dumps(row, JSON_COMPACT);

	(void)state;
	assert_string_equal(
		text,
		"{\"name\":\"night\",\"line\":\"N7\",\"late\":true,\"platform\":-2,"
		"\"seats\":300,\"travel_ns\":1500,\"cargo_bytes\":2048,\"delay_ns\":2500000000,"
		"\"stops\":[\"a\",\"b\"]}"
	);
	free(text);
	json_decref(row);
}

static void unknown_values_are_null(void **state) {
	const struct train train = {
		.travel_ns = RECORD_UNKNOWN,
		.stops = json_null(),
	};
	json_t *row = record_to_json(&train_record, &train);
	static const char *const keys[] = {"name", "travel_ns"};

	(void)state;
	for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++)
		assert_true(json_is_null(json_object_get(row, keys[n])));
	assert_string_equal(json_string_value(json_object_get(row, "line")), "");
	json_decref(row);
}

static void number_beyond_json_s_integers_is_their_largest(void **state) {
	const struct train train = {.cargo_bytes = UINT64_MAX - 1, .stops = json_null()};
	json_t *row = record_to_json(&train_record, &train);

	(void)state;
	assert_true(json_integer_value(json_object_get(row, "cargo_bytes")) == INT64_MAX);
	json_decref(row);
}

static void text_that_is_not_utf8_is_escaped(void **state) {
	const struct train train = {.name = "a\xff", .stops = json_null()};
	json_t *row = record_to_json(&train_record, &train);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(row, "name")), "\"a\\xff\"");
	json_decref(row);
}

#define TWO_ROWS                                                                              \
	"[{\"name\":\"night\",\"late\":true,\"platform\":7,\"seats\":300,\"travel_ns\":1500," \
	"\"cargo_bytes\":2048,\"delay_s\":2.5,\"driver\":{\"name\":\"Ada\"}},"                \
	"{\"name\":\"a long name of a train\",\"late\":false,\"seats\":-4,\"travel_ns\":null}]"

static void whole_table_has_every_column_and_cuts_nothing(void **state) {
	(void)state;
	assert_table(
		TWO_ROWS, 0,
		"NAME                   LATE PLATFORM SEATS TIME   CARGO   DELAY DRIVER\n"
		"night                  yes  no 7       300 1.5 us 2.0 KiB 2.5 s Ada\n"
		"a long name of a train no   no 0         0 -      -       -     -\n"
	);
}

static void narrow_table_drops_columns_by_rank_and_cuts_texts(void **state) {
	(void)state;
	assert_table(
		TWO_ROWS, 50,
		"NAME               LATE SEATS TIME   CARGO   DELAY\n"
		"night              yes    300 1.5 us 2.0 KiB 2.5 s\n"
		"a long name of a ~ no       0 -      -       -\n"
	);
}

static void table_that_is_too_narrow_keeps_the_columns_of_rank_0(void **state) {
	(void)state;
	assert_table(
		TWO_ROWS, 10,
		"NAME       TIME   CARGO   DELAY\n"
		"night      1.5 us 2.0 KiB 2.5 s\n"
		"a long na~ -      -       -\n"
	);
}

static void characters_of_several_bytes_are_counted_and_cut_as_one(void **state) {
	(void)state;
	assert_table(
		"[{\"name\":\"\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\"},"
		"{\"name\":\"\u00e9t\u00e9\"}]",
		10,
		"NAME       TIME CARGO DELAY\n"
		"\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc~ -    -     -\n"
		"\u00e9t\u00e9        -    -     -\n"
	);
}

static void rows_of_any_type_are_printed(void **state) {
	(void)state;
	assert_table(
		"[7, null, [], {\"name\":{}, \"travel_ns\":\"\", \"delay_s\":\"x\"}]", 10,
		"NAME TIME CARGO DELAY\n"
		"-    -    -     -\n"
		"-    -    -     -\n"
		"-    -    -     -\n"
		"-    -    -     -\n"
	);
}

// An answer of schema 1 has durations in seconds. TWO_ROWS has one as well.
static void duration_of_an_older_answer_is_read_in_seconds(void **state) {
	static const struct {
		const char *row;
		uint64_t travel_ns; // UINT64_MAX: unknown
	} cases[] = {
		{"{\"travel_s\":2.5}", 2500000000},
		{"{\"travel_s\":34}", UINT64_C(34000000000)},
		{"{\"travel_s\":-1e308}", 0},
		{"{\"travel_s\":1e308}", UINT32_MAX * UINT64_C(1000000000)},
		{"{\"travel_ns\":7,\"travel_s\":2.5}", 7},
		{"{\"travel_ns\":-7}", 0},
		{"{\"travel_ns\":null}", UINT64_MAX},
		{"{\"travel_ns\":2.5}", UINT64_MAX},
		{"{\"travel\":1,\"travel_\":2}", UINT64_MAX},
		{"[]", UINT64_MAX},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		json_t *row = json_loads(cases[n].row, 0, NULL);
		uint64_t travel_ns = UINT64_MAX;

		assert_non_null(row);
		assert_int_equal(
			fact_read_ns(row, "travel_ns", &travel_ns), cases[n].travel_ns != UINT64_MAX
		);
		if (travel_ns != cases[n].travel_ns)
			fail_msg("%s", cases[n].row);
		json_decref(row);
	}
}

static void count_is_rounded_only_where_its_column_is_too_narrow(void **state) {
	(void)state;
	assert_table(
		"[{\"seats\":123456},{\"seats\":1234567}]", 60,
		"NAME LATE PLATFORM  SEATS TIME CARGO DELAY DRIVER\n"
		"-    -    no 0     123456 -    -     -     -\n"
		"-    -    no 0      1234k -    -     -     -\n"
	);
	assert_table(
		"[{\"seats\":1234567}]", 0,
		"NAME LATE PLATFORM   SEATS TIME CARGO DELAY DRIVER\n"
		"-    -    no 0     1234567 -    -     -     -\n"
	);
}

static void row_that_lacks_memory_for_a_part_fails(void **state) {
	const struct train train = {.name = "night"};

	(void)state;
	assert_null(record_to_json(&train_record, &train));
}

static void every_type_has_a_name(void **state) {
	(void)state;
	for (size_t n = 0; n < train_record.count; n++) {
		if (fields[n].type != RECORD_NONE)
			assert_true(strlen(record_type_name(&fields[n])) > 0);
	}
}

UNIT_GROUP(record) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(row_is_written_with_every_type),
		cmocka_unit_test(unknown_values_are_null),
		cmocka_unit_test(number_beyond_json_s_integers_is_their_largest),
		cmocka_unit_test(text_that_is_not_utf8_is_escaped),
		cmocka_unit_test(whole_table_has_every_column_and_cuts_nothing),
		cmocka_unit_test(narrow_table_drops_columns_by_rank_and_cuts_texts),
		cmocka_unit_test(table_that_is_too_narrow_keeps_the_columns_of_rank_0),
		cmocka_unit_test(characters_of_several_bytes_are_counted_and_cut_as_one),
		cmocka_unit_test(rows_of_any_type_are_printed),
		cmocka_unit_test(duration_of_an_older_answer_is_read_in_seconds),
		cmocka_unit_test(count_is_rounded_only_where_its_column_is_too_narrow),
		cmocka_unit_test(row_that_lacks_memory_for_a_part_fails),
		cmocka_unit_test(every_type_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
