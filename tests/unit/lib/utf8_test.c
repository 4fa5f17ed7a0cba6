// SPDX-License-Identifier: BSD-3-Clause
#include <lib/utf8.h>
#include <support/cases.h>
#include <support/cmocka.h>

static void character_is_sized_by_its_own_bytes(void **state) {
	static const struct {
		const char *text;
		size_t size;
		size_t character_size;
	} rows[] = {
		{TEXT("a"), 1},
		{TEXT("\0"), 1},
		{TEXT("\x7f\xff"), 1},
		{TEXT("\xc2\x80"), 2},
		{TEXT("\xdf\xbf\xff"), 2},
		{TEXT("\xe0\xa0\x80"), 3},
		{TEXT("\xed\x9f\xbf"), 3}, // the last code point before the surrogates
		{TEXT("\xee\x80\x80"), 3}, // the first code point after them
		{TEXT("\xf0\x90\x80\x80"), 4},
		{TEXT("\xf4\x8f\xbf\xbf"), 4}, // U+10FFFF
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++)
		assert_int_equal(
			utf8_character_size(rows[n].text, rows[n].size), rows[n].character_size
		);
}

static void what_is_malformed_or_cut_is_none(void **state) {
	static const struct {
		const char *text;
		size_t size;
	} rows[] = {
		{TEXT("\x80")},		    // a continuation byte only
		{TEXT("\xc0\x80")},	    // overlong
		{TEXT("\xc1\xbf")},	    // overlong
		{TEXT("\xe0\x9f\xbf")},	    // overlong
		{TEXT("\xf0\x8f\xbf\xbf")}, // overlong
		{TEXT("\xed\xa0\x80")},	    // surrogate
		{TEXT("\xf4\x90\x80\x80")}, // past U+10FFFF
		{TEXT("\xf5\x80\x80\x80")}, // past U+10FFFF
		{TEXT("\xff")},
		{TEXT("\xc2")}, // cut short
		{TEXT("\xe2\x82")},
		{TEXT("\xf0\x90\x80")},
		{TEXT("\xc2\x41")},
		{TEXT("\xe2\x82\x41")},
		{TEXT("\xf0\x90\x80\x41")},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++)
		assert_int_equal(utf8_character_size(rows[n].text, rows[n].size), 0);
}

static void wide_characters_have_two_columns(void **state) {
	static const struct {
		const char *text;
		size_t columns;
	} rows[] = {
		{"", 0},
		{"abc", 3},
		{"\xc3\xa4", 1},		 // a umlaut
		{"a\xcc\x88", 1},		 // a, combining diaeresis
		{"\xe4\xb8\xad\xe6\x96\x87", 4}, // two CJK ideographs
		{"\xea\xb0\x80", 2},		 // Hangul
		{"\xef\xbc\xa1", 2},		 // fullwidth A
		{"\xf0\x9f\x98\x80", 2},	 // grinning face
		{"\xe2\x86\x92", 1},		 // arrow
		{"\xff", 1},			 // malformed
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++)
		assert_int_equal(utf8_text_columns(rows[n].text), rows[n].columns);
}

UNIT_GROUP(utf8) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(character_is_sized_by_its_own_bytes),
		cmocka_unit_test(what_is_malformed_or_cut_is_none),
		cmocka_unit_test(wide_characters_have_two_columns),
	};

	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
