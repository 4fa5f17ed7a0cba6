// SPDX-License-Identifier: BSD-3-Clause
// Tests of the pages printed from an older agent's answers: a missing field is left out or shown as
// unknown. older/NAME.json was recorded from an agent that still made its own text pages;
// older/NAME.txt is the expected page. PAGES_WRITE=1 in the environment rewrites the pages.
#include "show/answers.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 512

static const struct {
	const char *name;
	show_fn *show;
} pages[] = {
	{"health", show_health}, {"links", show_links}, {"pairs", show_pairs}, {"path", show_path},
	{"paths", show_paths},	 {"peers", show_peers}, {"why", show_why},
};

static void print_page(show_fn *show, json_t *answer, char *text, size_t size) {
	FILE *out = fmemopen(text, size, "w");
	struct page page;

	assert_non_null(out);
	assert_int_equal(page_begin(&page, false, answer), 0);
	show(&page, answer);
	page_end(&page, false, out);
	fclose(out);
}

static void read_file(const char *path, char *text, size_t size) {
	FILE *file = fopen(path, "r");
	size_t used;

	assert_non_null(file);
	used = fread(text, 1, size - 1, file);
	text[used] = '\0';
	fclose(file);
}

static void write_file(const char *path, const char *text) {
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void page_of_an_older_agent_s_answer_is_as_written(void **state) {
	static char printed[1 << 16], wanted[1 << 16];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(pages); n++) {
		char path[PATH_BYTES];
		json_t *answer;

		snprintf(path, sizeof(path), OLDER_PAGES "/%s.json", pages[n].name);
		answer = json_load_file(path, 0, NULL);
		assert_non_null(answer);
		print_page(pages[n].show, answer, printed, sizeof(printed));
		json_decref(answer);
		snprintf(path, sizeof(path), OLDER_PAGES "/%s.txt", pages[n].name);
		if (getenv("PAGES_WRITE") != NULL)
			write_file(path, printed);
		read_file(path, wanted, sizeof(wanted));
		if (strcmp(printed, wanted) != 0)
			fail_msg("%s is not\n%s\nbut\n%s", path, wanted, printed);
	}
}

// An answer may be any valid JSON document.
static void page_of_any_document_is_printed_and_harms_nobody(void **state) {
	static const char *const documents[] = {
		"{}",
		"{\"peers\":7,\"findings\":{},\"links\":null,\"pairs\":[null,7,[],{}],\"paths\":[0],"
		"\"ends\":[{},[]],\"verdicts\":[null,[]],\"blame\":[{}],\"communicators\":[1,{}],"
		"\"observations\":[{},3],\"events\":[[]],\"congestion\":[{}],\"gpus\":[9,{}]}",
		"{\"communicators\":[{\"hash\":\"x\",\"ranks\":[[],{\"told\":[1]}],"
		"\"ranks_count\":-1}]}",
		"{\"findings\":[{\"state\":\"missing\",\"for_s\":1e308}],\"of\":\"\",\"alive\":-9,"
		"\"dead\":9223372036854775807,\"waiting\":{},\"strangers\":{\"ago_s\":-1e308}}",
		"{\"findings\":[{\"for_ns\":9223372036854775807}],\"took_ns\":-1,\"seconds\":[]}",
		"{\"state\":\"missing\",\"node\":\"\\u001b[2J\\nOK\\n\",\"verdict\":7}",
	};
	static char printed[1 << 16];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(pages); n++) {
		for (size_t k = 0; k < COUNT_OF(documents); k++) {
			json_t *answer = json_loads(documents[k], 0, NULL);

			assert_non_null(answer);
			print_page(pages[n].show, answer, printed, sizeof(printed));
			json_decref(answer);
			assert_null(strchr(printed, '\x1b'));
			assert_null(strstr(printed, "\nOK\n"));
		}
	}
}

// Regression: the meaning of a verdict advised a drain, while the verdict itself withheld it.
static void meaning_of_a_verdict_advises_no_drain(void **state) {
	static const char *const verdicts[][2] = {
		{"node-down", "the host is down, or cut off"},
		{"fabric-down", "its fabric does not: jobs on it"},
	};
	static char printed[1 << 16];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(verdicts); n++) {
		json_t *answer = json_pack(
			"{s:s,s:s,s:s,s:s,s:[]}", "node", "n4", "state", "unreachable", "verdict",
			verdicts[n][0], "advice", "nothing", "observations"
		);

		assert_non_null(answer);
		print_page(show_why, answer, printed, sizeof(printed));
		json_decref(answer);
		assert_non_null(strstr(printed, verdicts[n][1]));
		if (strstr(printed, "drain") != NULL)
			fail_msg("a drain is advised:\n%s", printed);
	}
}

UNIT_GROUP(older_pages) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_of_an_older_agent_s_answer_is_as_written),
		cmocka_unit_test(page_of_any_document_is_printed_and_harms_nobody),
		cmocka_unit_test(meaning_of_a_verdict_advises_no_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
