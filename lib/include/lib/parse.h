// SPDX-License-Identifier: BSD-3-Clause
// Text from outside into numbers, durations, sizes, percentages and booleans, and back.
//
// Every parser takes the text with its length, so that an embedded NUL is seen for what it is, and
// takes all of it: no blank before, no garbage behind. It returns
//
//	0        and sets its ret_ argument, or
//	-EINVAL  the text is not such a thing,
//	-ERANGE  it is, and lies outside [min, max] (which may be a number no type could hold);
//
// on failure ret_ is untouched and, unless error is NULL, *error holds one sentence that quotes
// the text and says what is allowed. Nothing here allocates or keeps state: any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Long enough for the quoted text (shortened if need be) and the sentence around it.
#define PARSE_ERROR_BYTES 256
#define PARSE_QUOTE_BYTES 80

struct parse_error {
	char text[PARSE_ERROR_BYTES];
};

// For every parser of this program: puts the quoted text and, after a blank, the formatted rest
// into *error (may be NULL) and returns err, so that a parser can end in `return parse_fail(...)`.
// A sentence that does not fit ends in "...".
__attribute__((format(printf, 5, 6))) int parse_fail(
	struct parse_error *error, int err, const char *text, size_t length, const char *format, ...
);

// Static analysis does not look into another unit: without this it takes every failure that
// ends in parse_fail() for a possible success.
#ifdef __clang_analyzer__
#define parse_fail(error, err, ...) ((void)parse_fail(error, err, __VA_ARGS__), (err))
#endif

// Decimal digits, or 0x and hexadecimal digits. A leading zero does not mean octal. A minus sign
// is understood: -1 is out of range for parse_u64, not malformed.
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

// A decimal number and ns, us, ms, s, m, h or d: 250us 1.5s 2m. Only 0 may stand without a unit.
// Exact: a value that is not a whole number of nanoseconds is refused, never rounded, and
// so is one of more than 18 decimals. There is no sign and no sum of units (90s, not 1m30s).
int parse_duration_ns(
	const char *text,
	size_t length,
	uint64_t min_ns,
	uint64_t max_ns,
	struct parse_error *error,
	uint64_t *ret_ns
);

// A decimal number and B, KiB, MiB, GiB, TiB (powers of 1024) or k, M, G, T, kB, MB, GB, TB (powers
// of 1000). A bare number is bytes. Case matters. Exact, as durations are.
int parse_size_bytes(
	const char *text,
	size_t length,
	uint64_t min_bytes,
	uint64_t max_bytes,
	struct parse_error *error,
	uint64_t *ret_bytes
);

// A decimal number and %, in parts per million: 1% is 10000, 0.0001% is 1. Only 0 may be bare.
int parse_percent_ppm(
	const char *text,
	size_t length,
	uint64_t min_ppm,
	uint64_t max_ppm,
	struct parse_error *error,
	uint64_t *ret_ppm
);

// yes, on, true; no, off, false. Nothing else, and in lower case only.
int parse_bool(const char *text, size_t length, struct parse_error *error, bool *ret_value);

// The way back: a short text that the parser above reads as exactly the same value, in the largest
// unit that keeps it readable (1.5s, 90s, 4KiB, 1500B, 0.5%). Every value fits.
#define PARSE_TEXT_BYTES 32
void format_duration_ns(uint64_t value_ns, char text[static PARSE_TEXT_BYTES]);
void format_size_bytes(uint64_t value_bytes, char text[static PARSE_TEXT_BYTES]);
void format_percent_ppm(uint64_t value_ppm, char text[static PARSE_TEXT_BYTES]);
