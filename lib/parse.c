// SPDX-License-Identifier: BSD-3-Clause
// Parsers for whole numbers and booleans.
#include <lib/escape.h>
#include <lib/parse.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// A parsed number. Overflow is a separate flag, so that the caller can distinguish "too large" from
// "not a number".
struct integer {
	uint64_t magnitude;
	bool negative;
	bool overflow;
};

#undef parse_fail // macro for the analyzer, see parse.h
int parse_fail(
	struct parse_error *error, int err, const char *text, size_t length, const char *format, ...
) {
	va_list args;
	size_t used;
	int n;

	if (error == NULL)
		return err;
	escape_quote(text, length, error->text, PARSE_QUOTE_BYTES);
	used = strlen(error->text);
	error->text[used++] = ' ';
	va_start(args, format);
	n = vsnprintf(error->text + used, sizeof(error->text) - used, format, args);
	va_end(args);
	if (n < 0)
		error->text[used] = '\0';
	else if ((size_t)n >= sizeof(error->text) - used)
		memcpy(error->text + sizeof(error->text) - 4, "...", 4);
	return err;
}

static uint32_t digit_value(char digit) {
	if (digit >= '0' && digit <= '9')
		return (uint32_t)(digit - '0');
	if (digit >= 'a' && digit <= 'f')
		return (uint32_t)(digit - 'a') + 10;
	if (digit >= 'A' && digit <= 'F')
		return (uint32_t)(digit - 'A') + 10;
	return UINT32_MAX;
}

static bool integer_read(const char *text, size_t length, struct integer *ret_integer) {
	struct integer integer = {0};
	uint32_t base = 10;
	size_t at = 0;

	if (at < length && text[at] == '-') {
		integer.negative = true;
		at++;
	}
	if (length - at > 2 && text[at] == '0' && text[at + 1] == 'x') {
		base = 16;
		at += 2;
	}
	if (at == length)
		return false;
	for (; at < length; at++) {
		uint32_t digit = digit_value(text[at]);

		if (digit >= base)
			return false;
		if (__builtin_mul_overflow(integer.magnitude, base, &integer.magnitude) ||
		    __builtin_add_overflow(integer.magnitude, digit, &integer.magnitude))
			integer.overflow = true;
	}
	*ret_integer = integer;
	return true;
}

static int fail_not_a_number(struct parse_error *error, const char *text, size_t length) {
	return parse_fail(
		error, -EINVAL, text, length,
		"is not a number: decimal digits, or 0x and hexadecimal digits, are needed"
	);
}

int parse_u64(
	const char *text,
	size_t length,
	uint64_t min,
	uint64_t max,
	struct parse_error *error,
	uint64_t *ret_value
) {
	struct integer integer;

	if (!integer_read(text, length, &integer))
		return fail_not_a_number(error, text, length);
	if (integer.overflow || (integer.negative && integer.magnitude > 0) ||
	    integer.magnitude < min || integer.magnitude > max)
		return parse_fail(
			error, -ERANGE, text, length,
			"is out of range: %" PRIu64 " to %" PRIu64 " is allowed", min, max
		);
	*ret_value = integer.magnitude;
	return 0;
}

int parse_i64(
	const char *text,
	size_t length,
	int64_t min,
	int64_t max,
	struct parse_error *error,
	int64_t *ret_value
) {
	struct integer integer;
	bool fits;
	int64_t value;

	if (!integer_read(text, length, &integer))
		return fail_not_a_number(error, text, length);
	// Apply the sign without a detour: int64_t cannot hold the magnitude of INT64_MIN.
	if (integer.negative)
		fits = !__builtin_sub_overflow((int64_t)0, integer.magnitude, &value);
	else
		fits = !__builtin_add_overflow((int64_t)0, integer.magnitude, &value);
	if (integer.overflow || !fits || value < min || value > max)
		return parse_fail(
			error, -ERANGE, text, length,
			"is out of range: %" PRId64 " to %" PRId64 " is allowed", min, max
		);
	*ret_value = value;
	return 0;
}

int parse_bool(const char *text, size_t length, struct parse_error *error, bool *ret_value) {
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{"yes", true}, {"on", true},   {"true", true},
		{"no", false}, {"off", false}, {"false", false},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) != length || memcmp(words[i].word, text, length) != 0)
			continue;
		*ret_value = words[i].value;
		return 0;
	}
	return parse_fail(
		error, -EINVAL, text, length,
		"is neither yes nor no: yes, on, true, no, off or false is needed"
	);
}
