// SPDX-License-Identifier: BSD-3-Clause
// The pure parts: lines, commands, values for people, the rate, text in the making.
#include "client/command.h"
#include "client/lines.h"
#include "client/rate.h"
#include "client/text.h"

#include <lib/show.h>
#include <ras/types.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct spoken {
	const char *line;
	enum verb verb;
	const char *rest;
};

static const struct spoken spoken[] = {
	{"STATUS", VERB_STATUS, ""},
	{"status", VERB_STATUS, ""},
	{"verbose status", VERB_VERBOSE_STATUS, ""},
	{"STATUS ", VERB_UNKNOWN, NULL},
	{"CLIENT PROTOCOL 2", VERB_CLIENT_PROTOCOL, "2"},
	{"CLIENT PROTOCOL ", VERB_CLIENT_PROTOCOL, ""},
	{"CLIENT PROTOCOL", VERB_UNKNOWN, NULL},
	{"TIMEOUT  3 ", VERB_TIMEOUT, " 3 "},
	{"MONITOR", VERB_MONITOR, ""},
	{"MONITOR  all", VERB_MONITOR, " all"},
	{"MONITORall", VERB_UNKNOWN, NULL},
	{"peers", VERB_PEERS, ""},
	{"Peers \t dead  ", VERB_PEERS, "dead"},
	{"PEERSdead", VERB_UNKNOWN, NULL},
	{"NODE n1 WHY n2", VERB_NODE, "n1 WHY n2"},
	{"LOG", VERB_LOG, ""},
	{"", VERB_UNKNOWN, NULL},
};

static void a_line_is_read_against_the_table(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(spoken); n++) {
		char line[64];
		const char *rest = NULL;

		snprintf(line, sizeof(line), "%s", spoken[n].line);
		assert_int_equal(command_parse(line, &rest), spoken[n].verb);
		if (spoken[n].rest != NULL)
			assert_string_equal(rest, spoken[n].rest);
		else
			assert_string_equal(line, spoken[n].line);
	}
}

static void a_word_that_does_not_fit_is_none(void **state) {
	const char *rest = "one  three";
	char word[5];

	(void)state;
	assert_true(command_word(&rest, word, sizeof(word)));
	assert_string_equal(word, "one");
	assert_string_equal(rest, "three");
	assert_false(command_word(&rest, word, sizeof(word)));
	rest = "";
	assert_false(command_word(&rest, word, sizeof(word)));
}

static void feed(struct lines *lines, const char *bytes, size_t size) {
	size_t room;
	void *into = lines_room(lines, &room);

	assert_true(size <= room);
	memcpy(into, bytes, size);
	lines_filled(lines, size);
}

static void bytes_are_cut_into_lines_wherever_they_were_split(void **state) {
	static const char stream[] = "one\ntwo\r\n\n\rthree\n";
	static const char *const expected[] = {"one", "two", "", "\rthree"};

	(void)state;
	for (size_t cut = 0; cut < sizeof(stream) - 1; cut++) {
		struct lines lines = {0};
		char line[CLIENT_LINE_BYTES_MAX];
		size_t count = 0;

		feed(&lines, stream, cut);
		while (lines_next(&lines, line) == 0) {
			assert_true(count < COUNT_OF(expected));
			assert_string_equal(line, expected[count++]);
		}
		feed(&lines, stream + cut, sizeof(stream) - 1 - cut);
		while (lines_next(&lines, line) == 0) {
			assert_true(count < COUNT_OF(expected));
			assert_string_equal(line, expected[count++]);
		}
		assert_int_equal(lines_next(&lines, line), -EAGAIN);
		assert_int_equal(count, COUNT_OF(expected));
	}
}

static void a_line_of_as_many_bytes_as_there_are_has_its_end_among_them(void **state) {
	struct lines lines = {0};
	char bytes[CLIENT_LINE_BYTES_MAX], line[CLIENT_LINE_BYTES_MAX];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	feed(&lines, bytes, sizeof(bytes));
	assert_int_equal(lines_next(&lines, line), -EMSGSIZE);
	lines.used = 0;
	bytes[sizeof(bytes) - 1] = '\n';
	feed(&lines, bytes, sizeof(bytes));
	assert_int_equal(lines_next(&lines, line), 0);
	assert_int_equal(strlen(line), sizeof(bytes) - 1);
}

struct duration {
	uint64_t ns;
	const char *text;
};

static const struct duration durations[] = {
	{0, "0 ns"},
	{999, "999 ns"},
	{1000, "1.0 us"},
	{9999, "9.9 us"},
	{10000, "10 us"},
	{850000, "850 us"},
	{3200 * RAS_NS_PER_MS, "3.2 s"},
	{59 * RAS_NS_PER_SEC, "59 s"},
	{60 * RAS_NS_PER_SEC, "1 min"},
	{312 * RAS_NS_PER_SEC, "5 min 12 s"},
	{3600 * RAS_NS_PER_SEC, "1 h"},
	{UINT64_C(183600) * RAS_NS_PER_SEC, "2 d 3 h"},
	{UINT64_MAX, "213503 d 23 h"},
};

static void a_duration_has_the_figures_that_matter(void **state) {
	char text[SHOW_BYTES];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(durations); n++) {
		show_duration(durations[n].ns, text);
		assert_string_equal(text, durations[n].text);
	}
}

static void sizes_times_and_cells_are_shown_short(void **state) {
	char text[SHOW_BYTES];

	(void)state;
	show_bytes(0, text);
	assert_string_equal(text, "0 B");
	show_bytes(1023, text);
	assert_string_equal(text, "1023 B");
	show_bytes(1536, text);
	assert_string_equal(text, "1.5 KiB");
	show_bytes(UINT64_MAX, text);
	assert_string_equal(text, "15 EiB");
	show_time(INT64_C(1795000000125000000), text);
	assert_string_equal(text, "2026-11-18T11:06:40.125Z");
	show_time(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999Z");
	show_range(3, 3, text);
	assert_string_equal(text, "3");
	show_range(1, UINT64_MAX, text);
	assert_string_equal(text, "1-18446744073709551615");
	show_truncated("abcdef", 6, text);
	assert_string_equal(text, "abcdef");
	show_truncated("abcdefg", 6, text);
	assert_string_equal(text, "abcde~");
	show_truncated("ab\xc3\xa4\xc3\xa4", 4, text);
	assert_string_equal(text, "ab~");
}

static void each_user_has_a_burst_and_then_a_rate(void **state) {
	uint64_t now_ns = 100 * RAS_NS_PER_SEC;
	struct rate rate;

	(void)state;
	rate_init(&rate, 2, 3);
	for (uint32_t n = 0; n < 3; n++)
		assert_true(rate_try_consume(&rate, 1000, 1, false, now_ns));
	assert_false(rate_try_consume(&rate, 1000, 1, false, now_ns));
	assert_true(rate_try_consume(&rate, 1001, 1, false, now_ns));
	now_ns += RAS_NS_PER_SEC / 2;
	assert_false(rate_try_consume(&rate, 1000, 1, false, now_ns - 1));
	assert_true(rate_try_consume(&rate, 1000, 1, false, now_ns));
	assert_false(rate_try_consume(&rate, 1000, 1, false, now_ns));
}

static void many_users_push_out_the_one_that_asked_longest_ago(void **state) {
	uint64_t now_ns = RAS_NS_PER_SEC;
	struct rate rate;

	(void)state;
	rate_init(&rate, 1, 1);
	for (uint32_t uid = 0; uid < 3 * RATE_USERS; uid++)
		assert_true(rate_try_consume(&rate, uid, 1, false, now_ns + uid));
	now_ns += 3 * RATE_USERS;
	assert_false(rate_try_consume(&rate, 3 * RATE_USERS - 1, 1, false, now_ns));
	assert_false(rate_try_consume(&rate, 2 * RATE_USERS, 1, false, now_ns));
}

static void units_come_at_once_up_to_the_burst_and_never_in_part(void **state) {
	uint64_t now_ns = RAS_NS_PER_SEC;
	struct rate rate;

	(void)state;
	rate_init(&rate, 8u << 20, 64u << 20);
	assert_false(rate_try_consume(&rate, 1000, UINT64_MAX, false, now_ns));
	assert_false(rate_try_consume(&rate, 1000, (64u << 20) + 1, false, now_ns));
	assert_true(rate_try_consume(&rate, 1000, 40u << 20, false, now_ns));
	assert_false(rate_try_consume(&rate, 1000, 30u << 20, false, now_ns));
	assert_true(rate_try_consume(&rate, 1000, 24u << 20, false, now_ns));
	assert_false(rate_try_consume(&rate, 1000, 16u << 20, false, now_ns + RAS_NS_PER_SEC));
	assert_true(rate_try_consume(&rate, 1000, 16u << 20, false, now_ns + 2 * RAS_NS_PER_SEC));
}

static void those_who_share_have_a_bound_together_and_others_do_not_meet_it(void **state) {
	uint64_t now_ns = RAS_NS_PER_SEC;
	struct rate rate;

	(void)state;
	rate_init(&rate, 2, 3);
	for (uint32_t uid = 0; uid < 3 * RATE_SHARED; uid++)
		assert_true(rate_try_consume(&rate, uid, 1, true, now_ns));
	assert_false(rate_try_consume(&rate, 1000, 1, true, now_ns));
	assert_true(rate_try_consume(&rate, 1000, 1, false, now_ns));
	assert_true(rate_try_consume(&rate, 1000, 1, true, now_ns + RAS_NS_PER_SEC / 2));
}

static void text_beyond_its_bound_has_failed_for_good(void **state) {
	static char block[1 << 20];
	struct text text = {0};

	(void)state;
	for (size_t n = 0; n <= TEXT_BYTES_MAX / sizeof(block) && !text.failed; n++)
		text_add(&text, block, sizeof(block));
	assert_true(text.failed);
	text_print(&text, "more");
	assert_true(text.failed);
	text_fini(&text);
	assert_false(text.failed);
}

static void text_is_taken_from_the_front_and_its_memory_used_again(void **state) {
	struct text text = {0};

	(void)state;
	text_print(&text, "%s-%d", "one", 2);
	assert_int_equal(text_size(&text), 5);
	text_consume(&text, 4);
	assert_int_equal(text_size(&text), 1);
	assert_int_equal(text_front(&text)[0], '2');
	text_consume(&text, 1);
	assert_int_equal(text.end, 0);
	text_add_json(&text, json_pack("{s:s}", "a", "b\n"));
	assert_int_equal(text_size(&text), strlen("{\"a\":\"b\\n\"}"));
	text_add_json(&text, NULL);
	assert_true(text.failed);
	text_fini(&text);
}

UNIT_GROUP(client_parts) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_read_against_the_table),
		cmocka_unit_test(a_word_that_does_not_fit_is_none),
		cmocka_unit_test(bytes_are_cut_into_lines_wherever_they_were_split),
		cmocka_unit_test(a_line_of_as_many_bytes_as_there_are_has_its_end_among_them),
		cmocka_unit_test(a_duration_has_the_figures_that_matter),
		cmocka_unit_test(sizes_times_and_cells_are_shown_short),
		cmocka_unit_test(each_user_has_a_burst_and_then_a_rate),
		cmocka_unit_test(units_come_at_once_up_to_the_burst_and_never_in_part),
		cmocka_unit_test(those_who_share_have_a_bound_together_and_others_do_not_meet_it),
		cmocka_unit_test(many_users_push_out_the_one_that_asked_longest_ago),
		cmocka_unit_test(text_beyond_its_bound_has_failed_for_good),
		cmocka_unit_test(text_is_taken_from_the_front_and_its_memory_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
