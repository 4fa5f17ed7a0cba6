// SPDX-License-Identifier: BSD-3-Clause
// Measures: a decimal number and a unit. Durations, sizes and percentages are three tables.
#include <lib/parse.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS (1000 * NS_PER_US)
#define NS_PER_S (1000 * NS_PER_MS)
#define NS_PER_M (60 * NS_PER_S)
#define NS_PER_H (60 * NS_PER_M)
#define NS_PER_D (24 * NS_PER_H)

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

#define PPM_PER_PERCENT UINT64_C(10000)

// 10^18 is the largest power of ten whose every fraction fits into a uint64_t.
#define DECIMALS_MAX 18

struct unit {
	const char *name; // NULL ends a table
	uint64_t scale;
};

struct measure {
	const char *not_this; // error text for malformed input
	// Error text for a value that is no whole number of the smallest unit.
	const char *too_fine;
	uint64_t scale_of_bare; // scale of a number without unit; 0: only zero may lack a unit
	void (*format)(uint64_t value, char text[static PARSE_TEXT_BYTES]);
	const struct unit *units;
};

static const struct unit duration_units[] = {
	{"ns", 1},	 {"us", NS_PER_US}, {"ms", NS_PER_MS}, {"s", NS_PER_S},
	{"m", NS_PER_M}, {"h", NS_PER_H},   {"d", NS_PER_D},   {NULL, 0},
};

static const struct measure duration_measure = {
	.not_this = "is not a duration: a number followed by ns, us, ms, s, m, h or d is needed",
	.too_fine = "is not a whole number of nanoseconds",
	.format = format_duration_ns,
	.units = duration_units,
};

static const struct unit size_units[] = {
	{"B", 1},
	{"KiB", KIB},
	{"MiB", MIB},
	{"GiB", GIB},
	{"TiB", TIB},
	{"k", UINT64_C(1000)},
	{"kB", UINT64_C(1000)},
	{"M", UINT64_C(1000000)},
	{"MB", UINT64_C(1000000)},
	{"G", UINT64_C(1000000000)},
	{"GB", UINT64_C(1000000000)},
	{"T", UINT64_C(1000000000000)},
	{"TB", UINT64_C(1000000000000)},
	{NULL, 0},
};

static const struct measure size_measure = {
	.not_this = "is not a size: a number, alone or followed by B, KiB, MiB, GiB, TiB (1024) or "
		    "k, M, G, T (1000), is needed",
	.too_fine = "is not a whole number of bytes",
	.scale_of_bare = 1,
	.format = format_size_bytes,
	.units = size_units,
};

static const struct unit percent_units[] = {{"%", PPM_PER_PERCENT}, {NULL, 0}};

static const struct measure percent_measure = {
	.not_this = "is not a percentage: a number followed by % is needed",
	.too_fine = "is finer than 0.0001%",
	.format = format_percent_ppm,
	.units = percent_units,
};

struct decimal {
	uint64_t whole;
	uint64_t fraction; // of fraction_scale, a power of ten
	uint64_t fraction_scale;
	bool overflow; // `whole` does not fit
	bool too_fine; // more than DECIMALS_MAX decimals, trailing zeros not counted
};

static size_t digits_length(const char *text, size_t length) {
	size_t count = 0;

	while (count < length && text[count] >= '0' && text[count] <= '9')
		count++;
	return count;
}

// Read digits, or digits, a dot and digits. Returns the length read; 0 if the text is neither.
static size_t decimal_read(const char *text, size_t length, struct decimal *decimal) {
	size_t whole_count = digits_length(text, length);
	size_t fraction_count, used;
	const char *digits;

	*decimal = (struct decimal){.fraction_scale = 1};
	for (size_t i = 0; i < whole_count; i++) {
		uint64_t digit = (uint64_t)(text[i] - '0');

		if (__builtin_mul_overflow(decimal->whole, 10, &decimal->whole) ||
		    __builtin_add_overflow(decimal->whole, digit, &decimal->whole))
			decimal->overflow = true;
	}
	if (whole_count == 0 || whole_count == length || text[whole_count] != '.')
		return whole_count;
	fraction_count = digits_length(text + whole_count + 1, length - whole_count - 1);
	if (fraction_count == 0)
		return 0;
	digits = text + whole_count + 1;
	used = fraction_count;
	while (used > 0 && digits[used - 1] == '0')
		used--;
	decimal->too_fine = used > DECIMALS_MAX;
	for (size_t i = 0; i < used && !decimal->too_fine; i++) {
		decimal->fraction = 10 * decimal->fraction + (uint64_t)(digits[i] - '0');
		decimal->fraction_scale *= 10;
	}
	return whole_count + 1 + fraction_count;
}

static int measure_parse(
	const struct measure *measure,
	const char *text,
	size_t length,
	const uint64_t bounds[static 2],
	struct parse_error *error,
	uint64_t *ret_value
) {
	char allowed[2][PARSE_TEXT_BYTES];
	const struct unit *unit;
	struct decimal decimal;
	unsigned __int128 fraction;
	unsigned __int128 value;
	uint64_t scale;
	size_t at;
	bool bare, is_zero;

	at = decimal_read(text, length, &decimal);
	unit = measure->units;
	while (unit->name != NULL && (strlen(unit->name) != length - at ||
				      memcmp(unit->name, text + at, length - at) != 0))
		unit++;
	if (unit->name == NULL)
		unit = NULL;
	is_zero = decimal.whole == 0 && decimal.fraction == 0 && !decimal.overflow &&
		  !decimal.too_fine;
	bare = at == length && (measure->scale_of_bare > 0 || is_zero);
	if (at == 0 || (unit == NULL && !bare))
		return parse_fail(error, -EINVAL, text, length, "%s", measure->not_this);
	scale = unit != NULL ? unit->scale : measure->scale_of_bare;

	// No product below overflows: both factors are under 2^64.
	fraction = (unsigned __int128)decimal.fraction * scale;
	if (decimal.too_fine || fraction % decimal.fraction_scale != 0)
		return parse_fail(error, -EINVAL, text, length, "%s", measure->too_fine);
	value = (unsigned __int128)decimal.whole * scale + fraction / decimal.fraction_scale;
	if (decimal.overflow || value < bounds[0] || value > bounds[1]) {
		measure->format(bounds[0], allowed[0]);
		measure->format(bounds[1], allowed[1]);
		return parse_fail(
			error, -ERANGE, text, length, "is out of range: %s to %s is allowed",
			allowed[0], allowed[1]
		);
	}
	*ret_value = (uint64_t)value;
	return 0;
}

int parse_duration_ns(
	const char *text,
	size_t length,
	uint64_t min_ns,
	uint64_t max_ns,
	struct parse_error *error,
	uint64_t *ret_ns
) {
	const uint64_t bounds[] = {min_ns, max_ns};

	return measure_parse(&duration_measure, text, length, bounds, error, ret_ns);
}

int parse_size_bytes(
	const char *text,
	size_t length,
	uint64_t min_bytes,
	uint64_t max_bytes,
	struct parse_error *error,
	uint64_t *ret_bytes
) {
	const uint64_t bounds[] = {min_bytes, max_bytes};

	return measure_parse(&size_measure, text, length, bounds, error, ret_bytes);
}

int parse_percent_ppm(
	const char *text,
	size_t length,
	uint64_t min_ppm,
	uint64_t max_ppm,
	struct parse_error *error,
	uint64_t *ret_ppm
) {
	const uint64_t bounds[] = {min_ppm, max_ppm};

	return measure_parse(&percent_measure, text, length, bounds, error, ret_ppm);
}

// Write value / scale with the decimals that it needs. `scale` is a power of ten.
static void format_decimal(
	uint64_t value, uint64_t scale, const char *unit, char text[static PARSE_TEXT_BYTES]
) {
	uint64_t fraction = value % scale;
	int used = snprintf(text, PARSE_TEXT_BYTES, "%" PRIu64, value / scale);
	char *at = text + used;

	if (fraction > 0)
		*at++ = '.';
	for (scale /= 10; fraction > 0; scale /= 10) {
		*at++ = (char)('0' + fraction / scale);
		fraction %= scale;
	}
	memcpy(at, unit, strlen(unit) + 1);
}

// Format a duration. Minutes, hours and days are used only for whole ones: 90 s is 90s, not 1.5m; 0
// is 0s.
void format_duration_ns(uint64_t value_ns, char text[static PARSE_TEXT_BYTES]) {
	static const struct unit whole[] = {{"d", NS_PER_D}, {"h", NS_PER_H}, {"m", NS_PER_M}};
	static const struct unit decimal[] = {
		{"s", NS_PER_S}, {"ms", NS_PER_MS}, {"us", NS_PER_US}};

	for (size_t i = 0; value_ns > 0 && i < sizeof(whole) / sizeof(whole[0]); i++) {
		if (value_ns % whole[i].scale == 0) {
			format_decimal(value_ns / whole[i].scale, 1, whole[i].name, text);
			return;
		}
	}
	for (size_t i = 0; i < sizeof(decimal) / sizeof(decimal[0]); i++) {
		if (value_ns >= decimal[i].scale || value_ns == 0) {
			format_decimal(value_ns, decimal[i].scale, decimal[i].name, text);
			return;
		}
	}
	format_decimal(value_ns, 1, "ns", text);
}

void format_size_bytes(uint64_t value_bytes, char text[static PARSE_TEXT_BYTES]) {
	static const struct unit units[] = {{"TiB", TIB}, {"GiB", GIB}, {"MiB", MIB}, {"KiB", KIB}};

	for (size_t i = 0; value_bytes > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (value_bytes % units[i].scale == 0) {
			format_decimal(value_bytes / units[i].scale, 1, units[i].name, text);
			return;
		}
	}
	format_decimal(value_bytes, 1, "B", text);
}

void format_percent_ppm(uint64_t value_ppm, char text[static PARSE_TEXT_BYTES]) {
	format_decimal(value_ppm, PPM_PER_PERCENT, "%", text);
}
