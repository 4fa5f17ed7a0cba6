// SPDX-License-Identifier: BSD-3-Clause
#include <lib/suggestion.h>
#include <support/cmocka.h>

#include <string.h>

static const char *suggest(struct suggestion *suggestion, const char *word) {
	static const char *const known[] = {"id", "size", "interval", "deadline"};

	suggestion_init(suggestion, word);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		suggestion_add(suggestion, known[i], strlen(known[i]));
	return suggestion_text(suggestion);
}

static void typing_error_names_the_nearest_word(void **state) {
	static const char *const cases[][2] = {
		{"intervall", "did you mean \"interval\"?"}, // one letter too many
		{"nterval", "did you mean \"interval\"?"},   // one letter missing
		{"imterval", "did you mean \"interval\"?"},  // one letter wrong
		{"inetrval", "did you mean \"interval\"?"},  // two letters swapped
		{"intrvla", "did you mean \"interval\"?"},   // two errors
		{"sizes", "did you mean \"size\"?"},	     {"ids", "did you mean \"id\"?"},
	};
	struct suggestion suggestion;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(suggest(&suggestion, cases[i][0]), cases[i][1]);
}

static void word_near_nothing_gets_the_whole_list(void **state) {
	static const char *const words[] = {
		"",
		"x",
		"bandwidth",
		"intxxxxl",
		"0123456789012345678901234567890123456789012345678901234567890123456789",
	};
	struct suggestion suggestion;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_string_equal(
			suggest(&suggestion, words[i]), "known are: id, size, interval, deadline"
		);
}

static void list_too_long_is_cut_visibly(void **state) {
	struct suggestion suggestion;
	const char *text;

	(void)state;
	suggestion_init(&suggestion, "x");
	for (int i = 0; i < 200; i++)
		suggestion_add(&suggestion, "something", strlen("something"));
	text = suggestion_text(&suggestion);
	assert_in_range(strlen(text), 400, SUGGESTION_TEXT_BYTES - 1);
	assert_string_equal(text + strlen(text) - 3, "...");
}

UNIT_GROUP(suggestion) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typing_error_names_the_nearest_word),
		cmocka_unit_test(word_near_nothing_gets_the_whole_list),
		cmocka_unit_test(list_too_long_is_cut_visibly),
	};

	return cmocka_run_group_tests_name("suggestion", tests, NULL, NULL);
}
