// SPDX-License-Identifier: BSD-3-Clause
// Parsers for numbers, durations, sizes, percentages and booleans in untrusted text, and
// formatters.
//
// Every parser takes the text with its length, so that it detects an embedded NUL. The whole text
// must match, without blanks around it. A parser returns
//
//	0        and sets its ret_ argument, or
//	-EINVAL  the text is malformed,
//	-ERANGE  the value is outside of [min, max], possibly too large for any type.
//
// On failure ret_ is unchanged. Unless `error` is NULL, *error gets one sentence that quotes the
// text and names the allowed values. Any thread; no state, no allocation.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Room for the quoted text (shortened if needed) and the sentence around it.
#define PARSE_ERROR_BYTES 256
#define PARSE_QUOTE_BYTES 80

struct parse_error {
	char text[PARSE_ERROR_BYTES];
};

// Format the error of a parser: the quoted text, a blank, then the formatted rest. Returns err, so
// that a parser can end with `return parse_fail(...)`. `error` may be NULL. A sentence that does
// not fit ends in "...".
__attribute__((format(printf, 5, 6))) int parse_fail(
	struct parse_error *error, int err, const char *text, size_t length, const char *format, ...
);

// Static analysis does not see other files. Without this macro it assumes that parse_fail() may
// return success.
#ifdef __clang_analyzer__
#define parse_fail(error, err, ...) ((void)parse_fail(error, err, __VA_ARGS__), (err))
#endif

// Parse a number: decimal digits, or 0x and hexadecimal digits. A leading zero does not mean octal.
// A minus sign is accepted: -1 is out of range for parse_u64, not malformed.
int parse_u64(
	const char *text,
	size_t length,
	uint64_t min,
	uint64_t max,
	struct parse_error *error,
	uint64_t *ret_value
);
int parse_i64(
	const char *text,
	size_t length,
	int64_t min,
	int64_t max,
	struct parse_error *error,
	int64_t *ret_value
);

// Parse a duration: a decimal number and ns, us, ms, s, m, h or d, as in 250us 1.5s 2m. Only 0 may
// lack a unit. A value that is no whole number of nanoseconds, or has more than 18 decimals, is
// rejected and never rounded. No sign, no sum of units (90s, not 1m30s).
int parse_duration_ns(
	const char *text,
	size_t length,
	uint64_t min_ns,
	uint64_t max_ns,
	struct parse_error *error,
	uint64_t *ret_ns
);

// Parse a size: a decimal number and B, KiB, MiB, GiB, TiB (powers of 1024) or k, M, G, T, kB, MB,
// GB, TB (powers of 1000). A number without unit is bytes. Case matters. A value that is no whole
// number of bytes, or has more than 18 decimals, is rejected and never rounded.
int parse_size_bytes(
	const char *text,
	size_t length,
	uint64_t min_bytes,
	uint64_t max_bytes,
	struct parse_error *error,
	uint64_t *ret_bytes
);

// Parse a percentage: a decimal number and %, into parts per million. 1% is 10000, 0.0001% is 1.
// Only 0 may lack the %.
int parse_percent_ppm(
	const char *text,
	size_t length,
	uint64_t min_ppm,
	uint64_t max_ppm,
	struct parse_error *error,
	uint64_t *ret_ppm
);

// Parse a boolean: yes, on, true; no, off, false. Lower case only.
int parse_bool(const char *text, size_t length, struct parse_error *error, bool *ret_value);

// Format a value as a short text that the parser above reads as exactly the same value. The unit is
// the largest that stays readable: 1.5s, 90s, 4KiB, 1500B, 0.5%. Every value fits.
#define PARSE_TEXT_BYTES 32
void format_duration_ns(uint64_t value_ns, char text[static PARSE_TEXT_BYTES]);
void format_size_bytes(uint64_t value_bytes, char text[static PARSE_TEXT_BYTES]);
void format_percent_ppm(uint64_t value_ppm, char text[static PARSE_TEXT_BYTES]);
