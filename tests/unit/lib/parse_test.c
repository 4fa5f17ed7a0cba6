// SPDX-License-Identifier: BSD-3-Clause
#include <lib/parse.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

#define UNTOUCHED UINT64_C(0x5eed5eed5eed5eed)

typedef int parse_measure_fn(
	const char *text,
	size_t length,
	uint64_t min,
	uint64_t max,
	struct parse_error *error,
	uint64_t *ret_value
);

struct good_row {
	const char *text;
	uint64_t value;
};

struct bad_row {
	const char *text;
	size_t length;
	int err;
};

static void expect_good(parse_measure_fn *parse, const struct good_row *rows, size_t count) {
	struct parse_error error;

	for (size_t i = 0; i < count; i++) {
		uint64_t value = UNTOUCHED;

		if (parse(rows[i].text, strlen(rows[i].text), 0, UINT64_MAX, &error, &value) != 0)
			fail_msg("%s", error.text);
		assert_int_equal(value, rows[i].value);
	}
}

// Check that every bad row leaves the output unchanged and that its error quotes the text.
static void expect_bad(parse_measure_fn *parse, const struct bad_row *rows, size_t count) {
	for (size_t i = 0; i < count; i++) {
		struct parse_error error = {""};
		uint64_t value = UNTOUCHED;
		int err = parse(rows[i].text, rows[i].length, 0, UINT64_MAX, &error, &value);

		if (err != rows[i].err)
			fail_msg("row %zu: got %d: %s", i, err, error.text);
		assert_int_equal(value, UNTOUCHED);
		assert_int_equal(error.text[0], '"');
		assert_non_null(strchr(error.text + 1, '"'));
		assert_int_equal(
			parse(rows[i].text, rows[i].length, 0, UINT64_MAX, NULL, &value), err
		);
	}
}

static void number_refuses_what_is_not_one(void **state) {
	static const struct bad_row rows[] = {
		{TEXT(""), -EINVAL},
		{TEXT("-"), -EINVAL},
		{TEXT("+1"), -EINVAL},
		{TEXT(" 1"), -EINVAL},
		{TEXT("1 "), -EINVAL},
		{TEXT("1\n"), -EINVAL},
		{TEXT("1\0"), -EINVAL},
		{TEXT("1\0002"), -EINVAL},
		{TEXT("5x"), -EINVAL},
		{TEXT("1.5"), -EINVAL},
		{TEXT("1e3"), -EINVAL},
		{TEXT("0x"), -EINVAL},
		{TEXT("0X10"), -EINVAL},
		{TEXT("0xg"), -EINVAL},
		{TEXT("0x-1"), -EINVAL},
		{TEXT("ff"), -EINVAL},
		{TEXT("--1"), -EINVAL},
		{TEXT("\xff"), -EINVAL},
		{TEXT("\xd9\xa1"), -EINVAL}, // a digit of another script
		{TEXT("-1"), -ERANGE},
		{TEXT("18446744073709551616"), -ERANGE},
		{TEXT("0x10000000000000000"), -ERANGE},
		{TEXT("99999999999999999999999999999999999999999"), -ERANGE},
		{TEXT("99999999999999999999999999999999999999999x"), -EINVAL},
	};

	(void)state;
	expect_bad(parse_u64, rows, COUNT_OF(rows));
}

static void number_reads_decimal_and_hexadecimal(void **state) {
	static const struct good_row rows[] = {
		{"0", 0},
		{"-0", 0},
		{"007", 7},
		{"010", 10},
		{"18446744073709551615", UINT64_MAX},
		{"0x0", 0},
		{"0xfF", 255},
		{"0xffffffffffffffff", UINT64_MAX},
	};

	(void)state;
	expect_good(parse_u64, rows, COUNT_OF(rows));
}

static void number_outside_its_bounds_is_told_the_bounds(void **state) {
	struct parse_error error;
	uint64_t value = UNTOUCHED;

	(void)state;
	assert_int_equal(parse_u64(TEXT("0"), 1, 100, &error, &value), -ERANGE);
	assert_string_equal(error.text, "\"0\" is out of range: 1 to 100 is allowed");
	assert_int_equal(parse_u64(TEXT("101"), 1, 100, &error, &value), -ERANGE);
	assert_int_equal(value, UNTOUCHED);
	assert_int_equal(parse_u64(TEXT("1"), 1, 100, &error, &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(parse_u64(TEXT("100"), 1, 100, &error, &value), 0);
	assert_int_equal(value, 100);
}

static void signed_number_reaches_both_ends_and_not_beyond(void **state) {
	static const struct {
		const char *text;
		int err;
		int64_t value;
	} rows[] = {
		{"9223372036854775808", -ERANGE, 0},
		{"-9223372036854775809", -ERANGE, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"-18446744073709551616", -ERANGE, 0},
		{"- 1", -EINVAL, 0},
		{"9223372036854775807", 0, INT64_MAX},
		{"-9223372036854775808", 0, INT64_MIN},
		{"-0x8000000000000000", 0, INT64_MIN},
		{"-1", 0, -1},
		{"0", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		int64_t value = 77;
		int err = parse_i64(
			rows[i].text, strlen(rows[i].text), INT64_MIN, INT64_MAX, NULL, &value
		);

		assert_int_equal(err, rows[i].err);
		assert_int_equal(value, err == 0 ? rows[i].value : 77);
	}
}

static void signed_number_outside_its_bounds_is_told_the_bounds(void **state) {
	struct parse_error error;
	int64_t value = 77;

	(void)state;
	assert_int_equal(parse_i64(TEXT("-21"), -20, 19, &error, &value), -ERANGE);
	assert_string_equal(error.text, "\"-21\" is out of range: -20 to 19 is allowed");
	assert_int_equal(value, 77);
}

static void duration_refuses_what_is_not_one(void **state) {
	static const struct bad_row rows[] = {
		{TEXT(""), -EINVAL},
		{TEXT("5"), -EINVAL},
		{TEXT("0.1"), -EINVAL},
		{TEXT("s"), -EINVAL},
		{TEXT("5x"), -EINVAL},
		{TEXT("5S"), -EINVAL},
		{TEXT("5 s"), -EINVAL},
		{TEXT("5s "), -EINVAL},
		{TEXT("5s\0"), -EINVAL},
		{TEXT("5\0s"), -EINVAL},
		{TEXT("5sec"), -EINVAL},
		{TEXT("1m30s"), -EINVAL},
		{TEXT("-5s"), -EINVAL},
		{TEXT("+5s"), -EINVAL},
		{TEXT(".5s"), -EINVAL},
		{TEXT("5.s"), -EINVAL},
		{TEXT("1.2.3s"), -EINVAL},
		{TEXT("1,5s"), -EINVAL},
		{TEXT("0x5s"), -EINVAL},
		{TEXT("5\xc2\xb5s"), -EINVAL}, // the micro sign is not accepted; write "us"
		{TEXT("0.5ns"), -EINVAL},
		{TEXT("1.0000000001s"), -EINVAL},
		{TEXT("0.1234567890123456789d"), -EINVAL},
		{TEXT("18446744073709551616ns"), -ERANGE},
		{TEXT("18446744073.709551616s"), -ERANGE},
		{TEXT("213504d"), -ERANGE},
		{TEXT("99999999999999999999999999999d"), -ERANGE},
	};

	(void)state;
	expect_bad(parse_duration_ns, rows, COUNT_OF(rows));
}

static void duration_is_exact_to_the_nanosecond(void **state) {
	static const struct good_row rows[] = {
		{"0", 0},
		{"0.00", 0},
		{"0h", 0},
		{"1ns", 1},
		{"250us", 250000},
		{"1.5s", 1500000000},
		{"0.1s", 100000000},
		{"0.3s", 300000000},
		{"1.000000001s", 1000000001},
		{"1.00000000100000000000000000000s", 1000000001},
		{"2m", 120000000000},
		{"0.5m", 30000000000},
		{"1h", 3600000000000},
		{"1.5d", 129600000000000},
		{"213503d", UINT64_C(213503) * 86400 * 1000000000},
		{"18446744073709551615ns", UINT64_MAX},
		{"18446744073.709551615s", UINT64_MAX},
	};

	(void)state;
	expect_good(parse_duration_ns, rows, COUNT_OF(rows));
}

static void duration_error_says_what_is_allowed(void **state) {
	struct parse_error error;
	uint64_t value = UNTOUCHED;

	(void)state;
	parse_duration_ns(TEXT("5x"), 0, 1, &error, &value);
	assert_string_equal(
		error.text,
		"\"5x\" is not a duration: a number followed by ns, us, ms, s, m, h or d is needed"
	);
	parse_duration_ns(TEXT("0.5ns"), 0, 1, &error, &value);
	assert_string_equal(error.text, "\"0.5ns\" is not a whole number of nanoseconds");
	parse_duration_ns(TEXT("2h"), 1000000, 3600000000000, &error, &value);
	assert_string_equal(error.text, "\"2h\" is out of range: 1ms to 1h is allowed");
	assert_int_equal(value, UNTOUCHED);
}

static void size_refuses_what_is_not_one(void **state) {
	static const struct bad_row rows[] = {
		{TEXT(""), -EINVAL},
		{TEXT("KiB"), -EINVAL},
		{TEXT("4K"), -EINVAL},
		{TEXT("4kib"), -EINVAL},
		{TEXT("4KB"), -EINVAL},
		{TEXT("4m"), -EINVAL},
		{TEXT("4 KiB"), -EINVAL},
		{TEXT("-4KiB"), -EINVAL},
		{TEXT("0.5"), -EINVAL},
		{TEXT("0.0001KiB"), -EINVAL},
		{TEXT("4KiB\0"), -EINVAL},
		{TEXT("\xffKiB"), -EINVAL},
		{TEXT("18446744073709551616"), -ERANGE},
		{TEXT("16777216TiB"), -ERANGE},
	};

	(void)state;
	expect_bad(parse_size_bytes, rows, COUNT_OF(rows));
}

static void size_knows_powers_of_1024_from_powers_of_1000(void **state) {
	static const struct good_row rows[] = {
		{"0", 0},
		{"1500", 1500},
		{"1B", 1},
		{"4KiB", 4096},
		{"1.5KiB", 1536},
		{"1MiB", 1 << 20},
		{"1GiB", 1 << 30},
		{"2TiB", UINT64_C(2) << 40},
		{"1k", 1000},
		{"1kB", 1000},
		{"0.001k", 1},
		{"1M", 1000000},
		{"1MB", 1000000},
		{"2.5G", UINT64_C(2500000000)},
		{"1TB", UINT64_C(1000000000000)},
		{"16777215TiB", UINT64_C(16777215) << 40},
	};

	(void)state;
	expect_good(parse_size_bytes, rows, COUNT_OF(rows));
}

static void percent_is_exact_to_a_part_per_million(void **state) {
	static const struct good_row good[] = {
		{"0", 0}, {"1%", 10000}, {"0.5%", 5000}, {"0.0001%", 1}, {"100%", 1000000},
	};
	static const struct bad_row bad[] = {
		{TEXT("1"), -EINVAL},	{TEXT("%"), -EINVAL},	     {TEXT("1%%"), -EINVAL},
		{TEXT("-1%"), -EINVAL}, {TEXT("0.00001%"), -EINVAL},
	};
	struct parse_error error;
	uint64_t value = UNTOUCHED;

	(void)state;
	expect_bad(parse_percent_ppm, bad, COUNT_OF(bad));
	expect_good(parse_percent_ppm, good, COUNT_OF(good));
	assert_int_equal(parse_percent_ppm(TEXT("101%"), 0, 1000000, &error, &value), -ERANGE);
	assert_string_equal(error.text, "\"101%\" is out of range: 0% to 100% is allowed");
}

static void boolean_is_one_of_six_words(void **state) {
	static const struct {
		const char *text;
		size_t length;
		int err;
		bool value;
	} rows[] = {
		{TEXT(""), -EINVAL, false},	 {TEXT("ye"), -EINVAL, false},
		{TEXT("yes\0"), -EINVAL, false}, {TEXT("Yes"), -EINVAL, false},
		{TEXT("1"), -EINVAL, false},	 {TEXT("yes "), -EINVAL, false},
		{TEXT("yes"), 0, true},		 {TEXT("on"), 0, true},
		{TEXT("true"), 0, true},	 {TEXT("no"), 0, false},
		{TEXT("off"), 0, false},	 {TEXT("false"), 0, false},
	};
	struct parse_error error;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		bool value = !rows[i].value;
		bool untouched = value;
		int err = parse_bool(rows[i].text, rows[i].length, &error, &value);

		assert_int_equal(err, rows[i].err);
		assert_int_equal(value, err == 0 ? rows[i].value : untouched);
	}
	parse_bool(TEXT("ja"), &error, &(bool){false});
	assert_string_equal(
		error.text,
		"\"ja\" is neither yes nor no: yes, on, true, no, off or false is needed"
	);
}

static void format_is_short_and_picks_a_readable_unit(void **state) {
	static const struct {
		uint64_t value;
		const char *duration;
		const char *size;
		const char *percent;
	} rows[] = {
		{0, "0s", "0B", "0%"},
		{1, "1ns", "1B", "0.0001%"},
		{1500, "1.5us", "1500B", "0.15%"},
		{4096, "4.096us", "4KiB", "0.4096%"},
		{250000, "250us", "250000B", "25%"},
		{1 << 20, "1.048576ms", "1MiB", "104.8576%"},
		{1500000000, "1.5s", "1500000000B", "150000%"},
		{90000000000, "90s", "87890625KiB", "9000000%"},
		{UINT64_C(86400) * 1000000000, "1d", "84375000000KiB", "8640000000%"},
		{UINT64_MAX, "18446744073.709551615s", "18446744073709551615B",
		 "1844674407370955.1615%"},
	};
	char text[PARSE_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		format_duration_ns(rows[i].value, text);
		assert_string_equal(text, rows[i].duration);
		format_percent_ppm(rows[i].value, text);
		assert_string_equal(text, rows[i].percent);
		format_size_bytes(rows[i].value, text);
		if (strchr(rows[i].size, '.') == NULL)
			assert_string_equal(text, rows[i].size);
	}
}

// Values of every magnitude, in steps of about 1.37, each also rounded to whole units.
static void format_is_read_back_as_the_same_value(void **state) {
	static const uint64_t grains[] = {
		1, 7, 1000, 1024, 60000000000, 3600000000000, 86400000000000};
	char text[PARSE_TEXT_BYTES];
	uint64_t back;

	(void)state;
	for (uint64_t value = 1; value < UINT64_MAX / 2; value += value / 3 + value / 29 + 1) {
		for (size_t i = 0; i < COUNT_OF(grains); i++) {
			uint64_t shaped = value - value % grains[i];

			format_duration_ns(shaped, text);
			assert_int_equal(
				parse_duration_ns(text, strlen(text), 0, UINT64_MAX, NULL, &back), 0
			);
			assert_int_equal(back, shaped);
			format_size_bytes(shaped, text);
			assert_int_equal(
				parse_size_bytes(text, strlen(text), 0, UINT64_MAX, NULL, &back), 0
			);
			assert_int_equal(back, shaped);
			format_percent_ppm(shaped, text);
			assert_int_equal(
				parse_percent_ppm(text, strlen(text), 0, UINT64_MAX, NULL, &back), 0
			);
			assert_int_equal(back, shaped);
		}
	}
}

static void error_quotes_hostile_input_safely_and_shortens_it(void **state) {
	struct parse_error error;
	char text[4096];
	uint64_t value = UNTOUCHED;

	(void)state;
	assert_int_equal(parse_u64(TEXT("\x1b[2J\n\xff"), 0, 1, &error, &value), -EINVAL);
	assert_string_equal(
		error.text, "\"\\x1b[2J\\n\\xff\" is not a number: decimal digits, or 0x and "
			    "hexadecimal digits, are needed"
	);
	memset(text, '9', sizeof(text));
	assert_int_equal(parse_u64(text, sizeof(text), 0, 1, &error, &value), -ERANGE);
	assert_non_null(strstr(error.text, "999\"... is out of range: 0 to 1 is allowed"));
	memset(text, '\xff', sizeof(text));
	assert_int_equal(parse_size_bytes(text, sizeof(text), 0, 1, &error, &value), -EINVAL);
	assert_non_null(strstr(error.text, "\\xff\"... is not a size: "));
	assert_true(strlen(error.text) < sizeof(error.text));
}

static void error_sentence_that_does_not_fit_ends_in_dots(void **state) {
	struct parse_error error;
	char text[PARSE_ERROR_BYTES];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(parse_fail(&error, -EINVAL, TEXT("a"), "%s", text), -EINVAL);
	assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
	assert_string_equal(error.text + sizeof(error.text) - 5, "x...");
}

UNIT_GROUP(parse) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_refuses_what_is_not_one),
		cmocka_unit_test(number_reads_decimal_and_hexadecimal),
		cmocka_unit_test(number_outside_its_bounds_is_told_the_bounds),
		cmocka_unit_test(signed_number_reaches_both_ends_and_not_beyond),
		cmocka_unit_test(signed_number_outside_its_bounds_is_told_the_bounds),
		cmocka_unit_test(duration_refuses_what_is_not_one),
		cmocka_unit_test(duration_is_exact_to_the_nanosecond),
		cmocka_unit_test(duration_error_says_what_is_allowed),
		cmocka_unit_test(size_refuses_what_is_not_one),
		cmocka_unit_test(size_knows_powers_of_1024_from_powers_of_1000),
		cmocka_unit_test(percent_is_exact_to_a_part_per_million),
		cmocka_unit_test(boolean_is_one_of_six_words),
		cmocka_unit_test(format_is_short_and_picks_a_readable_unit),
		cmocka_unit_test(format_is_read_back_as_the_same_value),
		cmocka_unit_test(error_quotes_hostile_input_safely_and_shortens_it),
		cmocka_unit_test(error_sentence_that_does_not_fit_ends_in_dots),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
