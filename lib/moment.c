// SPDX-License-Identifier: BSD-3-Clause
// Parses points in time.
#include <lib/moment.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)
#define AGO_MAX_NS (UINT64_C(20) * 365 * 86400 * UINT64_C(1000000000))
#define YEAR_MIN 1970
#define YEAR_MAX 2261		     // the last whole year before an int64_t of nanoseconds ends
#define UNIX_MAX INT64_C(9200000000) // likewise, in seconds
#define UNIX_PLAIN_MIN INT64_C(1000000000)
#define FRACTION_DIGITS 9

struct cursor {
	const char *at, *end;
};

// A time as it is written.
struct written {
	struct tm parts; // tm_year and tm_mon as in struct tm
	int64_t fraction_ns;
	bool has_zone;
	int64_t zone_s; // seconds east of UTC
};

static bool cursor_skip(struct cursor *cursor, char wanted) {
	if (cursor->at == cursor->end || *cursor->at != wanted)
		return false;
	cursor->at++;
	return true;
}

// Read exactly `count` digits of a number that is at most `max`.
static bool cursor_number(struct cursor *cursor, int count, int max, int *ret_value) {
	int value = 0;

	for (; count > 0; count--, cursor->at++) {
		if (cursor->at == cursor->end || *cursor->at < '0' || *cursor->at > '9')
			return false;
		value = value * 10 + (*cursor->at - '0');
	}
	*ret_value = value;
	return value <= max;
}

// Read a point and up to nine digits, if there is a point.
static bool cursor_fraction(struct cursor *cursor, int64_t *ret_ns) {
	int64_t unit_ns = NS_PER_S;
	int digit;

	*ret_ns = 0;
	if (!cursor_skip(cursor, '.'))
		return true;
	for (int n = 0; n < FRACTION_DIGITS && cursor_number(cursor, 1, 9, &digit); n++) {
		unit_ns /= 10;
		*ret_ns += digit * unit_ns;
	}
	return unit_ns < NS_PER_S;
}

static bool cursor_clock(struct cursor *cursor, struct written *written) {
	struct tm *parts = &written->parts;

	if (!cursor_number(cursor, 2, 23, &parts->tm_hour) || !cursor_skip(cursor, ':') ||
	    !cursor_number(cursor, 2, 59, &parts->tm_min))
		return false;
	if (!cursor_skip(cursor, ':'))
		return true;
	return cursor_number(cursor, 2, 59, &parts->tm_sec) &&
	       cursor_fraction(cursor, &written->fraction_ns);
}

// Read Z, +HH:MM, +HHMM or the same with a minus, if anything follows.
static bool cursor_zone(struct cursor *cursor, struct written *written) {
	bool west = false;
	int hours, minutes;

	if (cursor->at == cursor->end)
		return true;
	written->has_zone = true;
	if (cursor_skip(cursor, 'Z'))
		return true;
	if (!cursor_skip(cursor, '+')) {
		west = cursor_skip(cursor, '-');
		if (!west)
			return false;
	}
	if (!cursor_number(cursor, 2, 14, &hours))
		return false;
	(void)cursor_skip(cursor, ':');
	if (!cursor_number(cursor, 2, 59, &minutes))
		return false;
	written->zone_s = (hours * 60 + minutes) * INT64_C(60) * (west ? -1 : 1);
	return true;
}

static bool cursor_date(struct cursor *cursor, struct tm *parts) {
	int year, month, day;

	if (!cursor_number(cursor, 4, YEAR_MAX, &year) || year < YEAR_MIN ||
	    !cursor_skip(cursor, '-') || !cursor_number(cursor, 2, 12, &month) || month == 0 ||
	    !cursor_skip(cursor, '-') || !cursor_number(cursor, 2, 31, &day) || day == 0)
		return false;
	parts->tm_year = year - 1900;
	parts->tm_mon = month - 1;
	parts->tm_mday = day;
	return true;
}

// Return true if both are the same time of the same day.
static bool parts_are_equal(const struct tm *one, const struct tm *other) {
	return one->tm_year == other->tm_year && one->tm_mon == other->tm_mon &&
	       one->tm_mday == other->tm_mday && one->tm_hour == other->tm_hour &&
	       one->tm_min == other->tm_min && one->tm_sec == other->tm_sec;
}

// Convert a local time. mktime() moves a time that does not exist, so the result is converted back.
// Returns false if the local time never happens.
static bool local_to_unix(const struct tm *parts, time_t *ret_seconds) {
	bool found = false;

	for (int is_dst = 0; is_dst <= 1; is_dst++) {
		struct tm asked = *parts, got;
		time_t seconds;

		asked.tm_isdst = is_dst;
		seconds = mktime(&asked);
		if (localtime_r(&seconds, &got) == NULL || !parts_are_equal(parts, &got))
			continue;
		if (!found || seconds < *ret_seconds)
			*ret_seconds = seconds;
		found = true;
	}
	return found;
}

static bool date_exists(const struct tm *parts) {
	struct tm same = *parts;

	(void)timegm(&same); // moves the 30th of February to March
	return same.tm_mday == parts->tm_mday;
}

// Convert a time of today or yesterday. Returns false if the local time does not exist.
static bool clock_to_unix(struct written *written, int64_t now_ns, time_t *ret_seconds) {
	time_t now = (time_t)(now_ns / NS_PER_S);
	struct tm *parts = &written->parts;
	struct tm today;
	bool exists, is_later;

	localtime_r(&now, &today);
	parts->tm_year = today.tm_year;
	parts->tm_mon = today.tm_mon;
	parts->tm_mday = today.tm_mday;
	exists = local_to_unix(parts, ret_seconds);
	is_later = exists ? *ret_seconds * NS_PER_S + written->fraction_ns > now_ns
			  : parts->tm_hour * 60 + parts->tm_min > today.tm_hour * 60 + today.tm_min;
	if (!is_later)
		return exists;
	today.tm_mday--;
	today.tm_hour = 12; // no clock is changed at noon
	today.tm_isdst = -1;
	(void)mktime(&today);
	parts->tm_year = today.tm_year;
	parts->tm_mon = today.tm_mon;
	parts->tm_mday = today.tm_mday;
	return local_to_unix(parts, ret_seconds);
}

// Parse @SECONDS, or a number that is too large for anything else. Returns false if it is neither.
static bool unix_parse(const char *text, size_t length, int64_t *ret_realtime_ns) {
	bool marked = length > 0 && text[0] == '@';
	struct cursor cursor = {text + marked, text + length};
	const char *point = memchr(text, '.', length);
	size_t digits = (size_t)((point != NULL ? point : cursor.end) - cursor.at);
	int64_t seconds, fraction_ns;

	if (parse_i64(cursor.at, digits, marked ? 0 : UNIX_PLAIN_MIN, UNIX_MAX, NULL, &seconds) !=
	    0)
		return false;
	cursor.at += digits;
	if (!cursor_fraction(&cursor, &fraction_ns) || cursor.at != cursor.end)
		return false;
	*ret_realtime_ns = seconds * NS_PER_S + fraction_ns;
	return true;
}

static bool
written_read(const char *text, size_t length, bool *ret_dated, struct written *written) {
	struct cursor cursor = {text, text + length};

	*ret_dated = memchr(text, '-', length) != NULL;
	if (!*ret_dated)
		return cursor_clock(&cursor, written) && cursor.at == cursor.end;
	if (!cursor_date(&cursor, &written->parts))
		return false;
	if (cursor.at != cursor.end &&
	    !((cursor_skip(&cursor, 'T') || cursor_skip(&cursor, ' ')) &&
	      cursor_clock(&cursor, written) && cursor_zone(&cursor, written)))
		return false;
	return cursor.at == cursor.end;
}

int moment_parse(
	const char *text,
	size_t length,
	int64_t now_ns,
	struct parse_error *error,
	int64_t *ret_realtime_ns
) {
	struct written written = {0};
	uint64_t ago_ns;
	time_t seconds;
	bool dated;

	if (parse_duration_ns(text, length, 0, AGO_MAX_NS, NULL, &ago_ns) == 0) {
		*ret_realtime_ns = now_ns - (int64_t)ago_ns;
		return 0;
	}
	if (unix_parse(text, length, ret_realtime_ns))
		return 0;
	if (!written_read(text, length, &dated, &written))
		return parse_fail(
			error, -EINVAL, text, length,
			"is no time: write 90s, 10m or 2h (ago), 15:10, 2026-11-29T15:10:05Z or "
			"@1795965000"
		);
	if (dated && !date_exists(&written.parts))
		return parse_fail(error, -EINVAL, text, length, "has a date that does not exist");
	if (written.has_zone)
		seconds = (time_t)(timegm(&written.parts) - written.zone_s);
	else if (!(dated ? local_to_unix(&written.parts, &seconds)
			 : clock_to_unix(&written, now_ns, &seconds)))
		return parse_fail(
			error, -EINVAL, text, length,
			"does not exist in local time: the clocks were set forward over it"
		);
	*ret_realtime_ns = seconds * NS_PER_S + written.fraction_ns;
	return 0;
}
