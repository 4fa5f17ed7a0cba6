// SPDX-License-Identifier: BSD-3-Clause
// Durations, sizes and times as text.
#include <lib/must.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SEC UINT64_C(1000000000)

struct unit {
	uint64_t size;
	const char *name;
};

static const struct unit times[] = {
	{86400 * NS_PER_SEC, "d"},
	{3600 * NS_PER_SEC, "h"},
	{60 * NS_PER_SEC, "min"},
	{NS_PER_SEC, "s"},
	{NS_PER_MS, "ms"},
	{1000, "us"},
	{1, "ns"},
};
#define TIME_COUNT (sizeof(times) / sizeof(times[0]))
#define SECONDS_INDEX 3 // index of "s" in `times`

void show_duration(uint64_t duration_ns, char text[static SHOW_BYTES]) {
	size_t n = 0;

	while (n + 1 < TIME_COUNT && duration_ns < times[n].size)
		n++;
	if (n < SECONDS_INDEX && duration_ns % times[n].size >= times[n + 1].size)
		snprintf(
			text, SHOW_BYTES, "%" PRIu64 " %s %" PRIu64 " %s",
			duration_ns / times[n].size, times[n].name,
			duration_ns % times[n].size / times[n + 1].size, times[n + 1].name
		);
	else if (n >= SECONDS_INDEX && n + 1 < TIME_COUNT && duration_ns < 10 * times[n].size)
		snprintf(
			text, SHOW_BYTES, "%" PRIu64 ".%" PRIu64 " %s", duration_ns / times[n].size,
			duration_ns % times[n].size / (times[n].size / 10), times[n].name
		);
	else
		snprintf(
			text, SHOW_BYTES, "%" PRIu64 " %s", duration_ns / times[n].size,
			times[n].name
		);
}

void show_bytes(uint64_t bytes, char text[static SHOW_BYTES]) {
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	uint64_t scale = 1;
	size_t n = 0;

	for (uint64_t left = bytes; left >= 1024; left /= 1024, n++)
		scale *= 1024;
	if (n > 0 && bytes / scale < 10)
		snprintf(
			text, SHOW_BYTES, "%" PRIu64 ".%" PRIu64 " %s", bytes / scale,
			bytes % scale / (scale / 10), units[n]
		);
	else
		snprintf(text, SHOW_BYTES, "%" PRIu64 " %s", bytes / scale, units[n]);
}

// Split a time into seconds and nanoseconds. Rounds down, also before 1970.
static time_t split_realtime(int64_t realtime_ns, int64_t *ret_rest_ns) {
	int64_t second = (int64_t)NS_PER_SEC;
	int64_t rest = realtime_ns % second;

	if (rest < 0)
		rest += second;
	*ret_rest_ns = rest;
	return (time_t)((realtime_ns - rest) / second);
}

void show_time(int64_t realtime_ns, char text[static SHOW_BYTES]) {
	int64_t rest_ns;
	time_t seconds = split_realtime(realtime_ns, &rest_ns);
	struct tm parts;
	size_t used;

	gmtime_r(&seconds, &parts);
	used = strftime(text, SHOW_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + used, SHOW_BYTES - used, ".%03dZ", (int)(rest_ns / 1000000));
}

void show_local_time(int64_t realtime_ns, char text[static SHOW_BYTES]) {
	int64_t rest_ns;
	time_t seconds = split_realtime(realtime_ns, &rest_ns);
	struct tm parts;

	localtime_r(&seconds, &parts);
	strftime(text, SHOW_BYTES, "%Y-%m-%d %H:%M:%S", &parts);
}

void show_range(uint64_t first, uint64_t last, char text[static SHOW_BYTES]) {
	if (first == last)
		snprintf(text, SHOW_BYTES, "%" PRIu64, first);
	else
		snprintf(text, SHOW_BYTES, "%" PRIu64 "-%" PRIu64, first, last);
}

void show_truncated(const char *value, size_t width, char text[static SHOW_BYTES]) {
	must(width > 0 && width < SHOW_BYTES);
	snprintf(text, width + 1, "%s", value);
	if (strlen(value) <= width)
		return;
	// Do not split a UTF-8 character.
	for (width--; width > 0 && ((unsigned char)value[width] & 0xc0) == 0x80;)
		width--;
	text[width] = '~';
	text[width + 1] = '\0';
}
