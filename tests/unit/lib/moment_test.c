// SPDX-License-Identifier: BSD-3-Clause
// Points in time: the forms that are accepted, local times around changes of the clocks, mistakes.
#include <lib/moment.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEC INT64_C(1000000000)
#define NOW_S INT64_C(1795965000) // 2026-11-29T15:10:00Z
#define DAY_S INT64_C(86400)

static void zone_set(const char *zone) {
	assert_int_equal(setenv("TZ", zone, 1), 0); // NOLINT(concurrency-mt-unsafe): one thread
	tzset();
}

static int64_t moment_at(const char *text, int64_t now_s) {
	struct parse_error error = {""};
	int64_t realtime_ns = -1;

	if (moment_parse(text, strlen(text), now_s * SEC, &error, &realtime_ns) != 0)
		fail_msg("%s: %s", text, error.text);
	return realtime_ns;
}

static void each_form_is_the_same_moment(void **state) {
	static const char *const forms[] = {
		"1h",
		"60m",
		"14:10",
		"14:10:00",
		"14:10:00.000",
		"2026-11-29T14:10",
		"2026-11-29 14:10:00",
		"2026-11-29T14:10:00Z",
		"2026-11-29T15:10:00.000+01:00",
		"2026-11-29T09:40-0430",
		"@1795961400",
		"1795961400",
		"@1795961400.0",
	};

	(void)state;
	zone_set("UTC0");
	for (size_t n = 0; n < sizeof(forms) / sizeof(forms[0]); n++)
		assert_int_equal(moment_at(forms[n], NOW_S), (NOW_S - 3600) * SEC);
	assert_int_equal(moment_at("2026-11-29", NOW_S), (NOW_S - 54600) * SEC);
	assert_int_equal(moment_at("@7.000000009", NOW_S), 7 * SEC + 9);
	assert_int_equal(moment_at("1970-01-01T00:00:01.25Z", NOW_S), 5 * SEC / 4);
}

static void time_that_is_still_to_come_is_of_yesterday(void **state) {
	(void)state;
	zone_set("UTC0");
	assert_int_equal(moment_at("15:10", NOW_S), NOW_S * SEC);
	assert_int_equal(moment_at("15:11", NOW_S), (NOW_S + 60 - DAY_S) * SEC);
	assert_int_equal(moment_at("15:10:00.5", NOW_S), (NOW_S - DAY_S) * SEC + SEC / 2);
	// Yesterday was the last day of the month before.
	assert_int_equal(moment_at("23:00", 31 * DAY_S), (31 * DAY_S - 3600) * SEC);
}

// In Berlin the clocks skip from 02:00 to 03:00 on 29 March 2026. On 25 October they go back from
// 03:00 to 02:00.
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define MARCH_29_S INT64_C(1774738800)	 // 00:00 there
#define OCTOBER_25_S INT64_C(1792879200) // likewise

static void local_time_follows_the_change_of_the_clocks(void **state) {
	(void)state;
	zone_set(BERLIN);
	assert_int_equal(moment_at("2026-03-29", NOW_S), MARCH_29_S * SEC);
	assert_int_equal(moment_at("2026-03-29T03:00", NOW_S), (MARCH_29_S + 2 * 3600) * SEC);
	assert_int_equal(moment_at("2026-10-25T04:00", NOW_S), (OCTOBER_25_S + 5 * 3600) * SEC);
	// It happened twice.
	assert_int_equal(
		moment_at("2026-10-25T02:30", NOW_S), (OCTOBER_25_S + 2 * 3600 + 1800) * SEC
	);
	assert_int_equal(
		moment_at("02:30", OCTOBER_25_S + 4 * 3600), (OCTOBER_25_S + 2 * 3600 + 1800) * SEC
	);
	// At 01:00 of that day 02:30 is of the day before, which had it.
	assert_int_equal(
		moment_at("02:30", MARCH_29_S + 3600), (MARCH_29_S + 2 * 3600 + 1800 - DAY_S) * SEC
	);
}

static void mistake_is_named(void **state) {
	static const struct {
		const char *text;
		int64_t now_s;
		const char *words;
	} cases[] = {
		{"", NOW_S, "\"\" is no time: write 90s, 10m or 2h (ago), 15:10, "},
		{"yesterday", NOW_S, "is no time"},
		{"24:00", NOW_S, "is no time"},
		{"15:60", NOW_S, "is no time"},
		{"15:10:60", NOW_S, "is no time"},
		{"15:1", NOW_S, "is no time"},
		{"15:10:", NOW_S, "is no time"},
		{"15:10:00.", NOW_S, "is no time"},
		{"15:10:00.1234567890", NOW_S, "is no time"},
		{" 15:10", NOW_S, "is no time"},
		{"15:10Z", NOW_S, "is no time"},
		{"7", NOW_S, "is no time"},
		{"@", NOW_S, "is no time"},
		{"@-1", NOW_S, "is no time"},
		{"@1.", NOW_S, "is no time"},
		{"@99999999999999", NOW_S, "is no time"},
		{"2026-13-01", NOW_S, "is no time"},
		{"2026-00-01", NOW_S, "is no time"},
		{"1969-12-31", NOW_S, "is no time"},
		{"2262-01-01", NOW_S, "is no time"},
		{"2026-11-29T", NOW_S, "is no time"},
		{"2026-11-29T15", NOW_S, "is no time"},
		{"2026-11-29T15:10+1", NOW_S, "is no time"},
		{"2026-11-29T15:10+15:00", NOW_S, "is no time"},
		{"2026-11-29T15:10Zulu", NOW_S, "is no time"},
		{"2026-02-29", NOW_S, "has a date that does not exist"},
		{"2026-04-31T10:00Z", NOW_S, "has a date that does not exist"},
		{"2026-03-29T02:30", NOW_S, "does not exist in local time: the clocks were set"},
		{"02:30", MARCH_29_S + 12 * 3600, "does not exist in local time"},
	};

	(void)state;
	zone_set(BERLIN);
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct parse_error error = {""};
		int64_t realtime_ns = 5;

		assert_int_equal(
			moment_parse(
				cases[n].text, strlen(cases[n].text), cases[n].now_s * SEC, &error,
				&realtime_ns
			),
			-EINVAL
		);
		assert_int_equal(realtime_ns, 5);
		if (strstr(error.text, cases[n].words) == NULL)
			fail_msg("%s: %s", cases[n].text, error.text);
	}
}

UNIT_GROUP(moment) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_is_the_same_moment),
		cmocka_unit_test(time_that_is_still_to_come_is_of_yesterday),
		cmocka_unit_test(local_time_follows_the_change_of_the_clocks),
		cmocka_unit_test(mistake_is_named),
	};

	return cmocka_run_group_tests_name("moment", tests, NULL, NULL);
}
