// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes every parser of lib/parse.h with the same bytes. An accepted value must survive formatting
// and parsing.
#include <lib/must.h>
#include <lib/parse.h>
#include <support/fuzz.h>

#include <string.h>

typedef int parse_fn(
	const char *text,
	size_t length,
	uint64_t min,
	uint64_t max,
	struct parse_error *error,
	uint64_t *ret_value
);

static void check_error(int err, const struct parse_error *error) {
	must(err == 0 || (error->text[0] == '"' && memchr(error->text, '\0', PARSE_ERROR_BYTES)));
	for (const char *at = error->text; err != 0 && *at != '\0'; at++)
		must((unsigned char)*at >= 0x20 && *at != 0x7f);
}

static void
check_measure(parse_fn *parse, void (*format)(uint64_t, char *), const char *text, size_t length) {
	struct parse_error error;
	char again[PARSE_TEXT_BYTES];
	uint64_t value;
	uint64_t back;
	int err;

	err = parse(text, length, 0, UINT64_MAX, &error, &value);
	check_error(err, &error);
	if (err != 0)
		return;
	format(value, again);
	must(parse(again, strlen(again), value, value, NULL, &back) == 0);
	must(back == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *text = (const char *)data;
	struct parse_error error;
	uint64_t number;
	int64_t signed_number;
	bool flag;

	check_error(parse_u64(text, size, 10, 1000, &error, &number), &error);
	check_error(parse_i64(text, size, INT64_MIN, INT64_MAX, &error, &signed_number), &error);
	check_error(parse_bool(text, size, &error, &flag), &error);
	check_measure(parse_duration_ns, format_duration_ns, text, size);
	check_measure(parse_size_bytes, format_size_bytes, text, size);
	check_measure(parse_percent_ppm, format_percent_ppm, text, size);
	return 0;
}
