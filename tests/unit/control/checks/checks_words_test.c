// SPDX-License-Identifier: BSD-3-Clause
// External input of checks: commands, names, output and exit status of programs.
#include "checks/check.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void a_command_is_split_at_blanks_and_quotes_keep_them(void **state) {
	static const struct {
		const char *command, *words; // words joined by "|"
	} cases[] = {
		{"/bin/true", "/bin/true"},
		{"  /bin/a\t b  ", "/bin/a|b"},
		{"/bin/sh -c 'echo \"hi\"; exit 1'", "/bin/sh|-c|echo \"hi\"; exit 1"},
		{"/a \"b c\"d'e f'", "/a|b cde f"},
		{"/a \"q\\\"q\\\\ \\n\"", "/a|q\"q\\ \\n"},
		{"/a\\ b '' \"\"", "/a b||"},
		{"/a b\\", "/a|b\\"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		char command[128], joined[128] = "", *words[SPAWN_ARGUMENTS_MAX + 1];
		const char *why;

		snprintf(command, sizeof(command), "%s", cases[n].command);
		assert_int_equal(check_command_split(command, words, &why), 0);
		for (size_t k = 0; words[k] != NULL; k++) {
			size_t used = strlen(joined);

			snprintf(
				joined + used, sizeof(joined) - used, "%s%s", k > 0 ? "|" : "",
				words[k]
			);
		}
		assert_string_equal(joined, cases[n].words);
	}
}

static void a_command_that_cannot_be_split_says_why(void **state) {
	static const struct {
		const char *command, *why;
	} cases[] = {
		{"", "names no program"},
		{" \t", "names no program"},
		{"'' x", "names no program"},
		{"/a 'b", "has an unterminated quote"},
		{"/a \"b\\\"", "has an unterminated quote"},
	};
	char many[2 * SPAWN_ARGUMENTS_MAX + 8] = "", *words[SPAWN_ARGUMENTS_MAX + 1];
	const char *why;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		char command[32];

		snprintf(command, sizeof(command), "%s", cases[n].command);
		assert_int_equal(check_command_split(command, words, &why), -EINVAL);
		assert_string_equal(why, cases[n].why);
	}
	for (size_t n = 0; n <= SPAWN_ARGUMENTS_MAX; n++)
		memcpy(many + 2 * n, "a ", 3);
	assert_int_equal(check_command_split(many, words, &why), -E2BIG);
}

static void a_command_of_the_configuration_begins_with_an_absolute_path(void **state) {
	static const struct {
		const char *command;
		int err;
	} cases[] = {
		{"/a b", 0},	   {"'/a dir/b' c", 0}, {"\"/a dir/b\"", 0}, {"\\/a", 0},
		{"a /b", -EINVAL}, {"'a/b'", -EINVAL},	{"", -EINVAL},	     {"/a 'b", -EINVAL},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct parse_error error = {0};

		assert_int_equal(
			check_command_validate(cases[n].command, strlen(cases[n].command), &error),
			cases[n].err
		);
	}
}

static void a_name_becomes_camel_case_within_the_bounds_of_a_reason(void **state) {
	static const struct {
		const char *name, *bad, *unknown;
	} cases[] = {
		{"disk", "CheckDisk", "CheckUnknownDisk"},
		{"gpu_xid-79", "CheckGpuXid79", "CheckUnknownGpuXid79"},
		{"lustre.mount:a", "CheckLustreMountA", "CheckUnknownLustreMountA"},
		{"aVeryLongNameThatDoesNotFitIntoThat", "CheckAVeryLongNameThatDoesNotFi",
		 "CheckUnknownAVeryLongNameThatDo"},
	};
	struct check_reasons reasons, other;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		assert_int_equal(check_reasons_build(cases[n].name, &reasons), 0);
		assert_string_equal(reasons.bad, cases[n].bad);
		assert_string_equal(reasons.unknown, cases[n].unknown);
	}
	assert_int_equal(check_reasons_build("--.", &reasons), -EINVAL);
	// Names with the same reason clash, also if one's failure reads like the other's unknown.
	check_reasons_build("a-b", &reasons);
	check_reasons_build("a_b", &other);
	assert_true(check_reasons_clash(&reasons, &other));
	check_reasons_build("unknown-a-b", &other);
	assert_true(check_reasons_clash(&reasons, &other));
	check_reasons_build("a-c", &other);
	assert_false(check_reasons_clash(&reasons, &other));
	assert_false(check_reasons_clash_with_builtin(&other));
	check_reasons_build("link-state", &other);
	assert_true(check_reasons_clash_with_builtin(&other));
}

static void the_first_line_is_escaped_and_cut(void **state) {
	static const struct {
		const char *text;
		size_t length;
		enum check_convention convention;
		const char *line;
	} cases[] = {
		{TEXT("all is well\nmore\n"), CHECK_NPD, "all is well"},
		{TEXT("\n \r\n  later \t\r\n"), CHECK_NPD, "later"},
		{TEXT("DISK OK - 96% | free=3;4;5\n"), CHECK_NAGIOS, "DISK OK - 96%"},
		{TEXT("a | b"), CHECK_NPD, "a | b"},
		{TEXT("say \"x\"\ty\x1b[31m\x00z\\"), CHECK_NPD, "say \"x\" y\\x1b[31m\\x00z\\\\"},
		{TEXT("\xff\xfe"), CHECK_NPD, "\\xff\\xfe"},
		{TEXT("gr\xc3\xbc\xc3\x9f"), CHECK_NPD, "gr\xc3\xbc\xc3\x9f"},
		{TEXT(""), CHECK_NPD, NULL},
		{TEXT(" \n\n\t"), CHECK_NPD, NULL},
		{TEXT("| only=1"), CHECK_NAGIOS, NULL},
	};
	char line[VERDICT_EVIDENCE_MAX + 1], wide[600];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bool any =
			check_first_line(cases[n].text, cases[n].length, cases[n].convention, line);

		assert_int_equal(any, cases[n].line != NULL);
		if (any)
			assert_string_equal(line, cases[n].line);
	}
	memset(wide, 'x', sizeof(wide));
	assert_true(check_first_line(wide, sizeof(wide), CHECK_NPD, line));
	assert_int_equal(strlen(line), 80);
	memset(wide, '\x01', sizeof(wide));
	assert_true(check_first_line(wide, sizeof(wide), CHECK_NPD, line));
	assert_int_equal(strlen(line), 80);
	for (size_t n = 0; n < sizeof(wide); n += 3)
		memcpy(wide + n, "\xe2\x82\xac", 3);
	assert_true(check_first_line(wide, sizeof(wide), CHECK_NPD, line));
	assert_int_equal(strlen(line), VERDICT_EVIDENCE_MAX / 3 * 3); // only whole characters
}

static void ends_of_programs_become_levels_by_convention(void **state) {
	static const char refused[] = "\"/opt/x\": other users can write";
	static const struct {
		enum spawn_end end;
		int status;
		enum check_level nagios, npd;
		const char *evidence;
	} cases[] = {
		{SPAWN_EXITED, 0, CHECK_OK, CHECK_OK, "out"},
		{SPAWN_EXITED, 1, CHECK_WARNING, CHECK_CRITICAL, "out"},
		{SPAWN_EXITED, 2, CHECK_CRITICAL, CHECK_UNKNOWN, NULL},
		{SPAWN_EXITED, 3, CHECK_UNKNOWN, CHECK_UNKNOWN, NULL},
		{SPAWN_EXITED, 4, CHECK_UNKNOWN, CHECK_UNKNOWN, "exit status 4: out"},
		{SPAWN_EXITED, 127, CHECK_UNKNOWN, CHECK_UNKNOWN, "exit status 127: out"},
		{SPAWN_EXITED, 255, CHECK_UNKNOWN, CHECK_UNKNOWN, "exit status 255: out"},
		{SPAWN_SIGNALLED, SIGSEGV, CHECK_UNKNOWN, CHECK_UNKNOWN,
		 "ended by signal 11, SIGSEGV"},
		{SPAWN_SIGNALLED, 40, CHECK_UNKNOWN, CHECK_UNKNOWN, "ended by signal 40"},
		{SPAWN_TIMED_OUT, SIGTERM, CHECK_UNKNOWN, CHECK_UNKNOWN, "timed out after 5.0 s"},
		{SPAWN_NOT_STARTED, -ENOENT, CHECK_UNKNOWN, CHECK_UNKNOWN,
		 "not started: No such file or directory: the program, or the interpreter in its "
		 "first line"},
		{SPAWN_NOT_STARTED, -EACCES, CHECK_UNKNOWN, CHECK_UNKNOWN,
		 "not started: Permission denied"},
		{SPAWN_NOT_STARTED, SPAWN_REFUSED, CHECK_UNKNOWN, CHECK_UNKNOWN,
		 "could not run: \"/opt/x\": other users can write"},
		{SPAWN_LOST, -ECONNRESET, CHECK_UNKNOWN, CHECK_UNKNOWN,
		 "tocsin-root.service ended the connection: see its log"},
		{SPAWN_LOST, -ETIMEDOUT, CHECK_UNKNOWN, CHECK_UNKNOWN,
		 "tocsin-root.service does not answer: see its log"},
		{SPAWN_LOST, 0, CHECK_UNKNOWN, CHECK_UNKNOWN,
		 "the spawn helper has ended; restart the agent"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct spawn_result result = {
			.end = cases[n].end,
			.status = cases[n].status,
			.out = {"out\n", 4, false},
			.err = {refused, sizeof(refused) - 1, false}};
		char evidence[VERDICT_EVIDENCE_MAX + 1];

		assert_int_equal(
			check_judge(&result, CHECK_NAGIOS, 5000000000, evidence), cases[n].nagios
		);
		if (cases[n].evidence != NULL)
			assert_string_equal(evidence, cases[n].evidence);
		assert_int_equal(
			check_judge(&result, CHECK_NPD, 5000000000, evidence), cases[n].npd
		);
	}
}

static void a_program_without_output_is_told_by_what_it_said_of_errors(void **state) {
	struct spawn_result result = {
		.end = SPAWN_EXITED,
		.status = 2,
		.out = {"", 0, false},
		.err = {"sh: no x\n", 9, false}};
	char evidence[VERDICT_EVIDENCE_MAX + 1];

	(void)state;
	check_judge(&result, CHECK_NAGIOS, 1, evidence);
	assert_string_equal(evidence, "sh: no x");
	result.err.size = 0;
	check_judge(&result, CHECK_NAGIOS, 1, evidence);
	assert_string_equal(evidence, "exit status 2, no output");
}

static void a_rate_is_gigabits_a_second(void **state) {
	static const struct {
		const char *text;
		int err;
		uint32_t mbps;
	} cases[] = {
		{"100", 0, 100000},	{"2.5", 0, 2500},
		{"2.5Gb/s", 0, 2500},	{"400 Gb/s", 0, 400000},
		{"0.001", 0, 1},	{"0", -EINVAL, 0},
		{"100000", -EINVAL, 0}, {"", -EINVAL, 0},
		{"Gb/s", -EINVAL, 0},	{"-1", -EINVAL, 0},
		{"1.", -EINVAL, 0},	{"1.2345", -EINVAL, 0},
		{"1e3", -EINVAL, 0},	{"100Mb/s", -EINVAL, 0},
		{"0x10", -EINVAL, 0},	{"99999999999999999999", -EINVAL, 0},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		uint32_t mbps = 0;

		assert_int_equal(
			checks_rate_parse(cases[n].text, strlen(cases[n].text), NULL, &mbps),
			cases[n].err
		);
		assert_int_equal(mbps, cases[n].mbps);
	}
}

UNIT_GROUP(checks_words) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_split_at_blanks_and_quotes_keep_them),
		cmocka_unit_test(a_command_that_cannot_be_split_says_why),
		cmocka_unit_test(a_command_of_the_configuration_begins_with_an_absolute_path),
		cmocka_unit_test(a_name_becomes_camel_case_within_the_bounds_of_a_reason),
		cmocka_unit_test(the_first_line_is_escaped_and_cut),
		cmocka_unit_test(ends_of_programs_become_levels_by_convention),
		cmocka_unit_test(a_program_without_output_is_told_by_what_it_said_of_errors),
		cmocka_unit_test(a_rate_is_gigabits_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
