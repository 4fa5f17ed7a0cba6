// SPDX-License-Identifier: BSD-3-Clause
#include <lib/escape.h>
#include <support/cmocka.h>

#include <string.h>

struct escape_case {
	const char *bytes;
	size_t size;
	const char *quoted;
};

#define CASE(bytes, quoted) \
	{ bytes, sizeof(bytes) - 1, quoted }

static void quote_of_each_kind_of_byte(void **state) {
	static const struct escape_case cases[] = {
		CASE("", "\"\""),
		CASE("plain", "\"plain\""),
		CASE("say \"no\" \\ yes", "\"say \\\"no\\\" \\\\ yes\""),
		CASE("a\nb\r\tc", "\"a\\nb\\r\\tc\""),
		CASE("\x01\x1b[31m\x7f", "\"\\x01\\x1b[31m\\x7f\""),
		CASE("nul\0inside", "\"nul\\x00inside\""),
		CASE("Gr\xc3\xbc\xc3\x9f"
		     "e",
		     "\"Gr\xc3\xbc\xc3\x9f"
		     "e\""),
		CASE("\xe2\x82\xac \xf0\x9f\x94\x94", "\"\xe2\x82\xac \xf0\x9f\x94\x94\""),
		CASE("\xff\xfe", "\"\\xff\\xfe\""),
		CASE("cut \xe2\x82", "\"cut \\xe2\\x82\""),
		CASE("\xc0\xaf overlong", "\"\\xc0\\xaf overlong\""),
		CASE("\xe0\x80\xaf", "\"\\xe0\\x80\\xaf\""),
		CASE("\xed\xa0\x80 surrogate", "\"\\xed\\xa0\\x80 surrogate\""),
		CASE("\xf4\x90\x80\x80", "\"\\xf4\\x90\\x80\\x80\""),
		CASE("\xc2\x85 nel", "\"\\xc2\\x85 nel\""),
		CASE("\xe2\x80\xa8\xe2\x80\xa9", "\"\\xe2\\x80\\xa8\\xe2\\x80\\xa9\""),
		CASE("\xe2\x80\xa7\xe2\x80\xaf", "\"\xe2\x80\xa7\xe2\x80\xaf\""),
		// NOLINTNEXTLINE(misc-misleading-bidirectional): the test needs these characters
		CASE("\xe2\x80\xae\xe2\x81\xa6", "\"\\xe2\\x80\\xae\\xe2\\x81\\xa6\""),
	};
	char out[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		escape_quote(cases[i].bytes, cases[i].size, out, sizeof(out));
		assert_string_equal(out, cases[i].quoted);
	}
}

static void quote_that_does_not_fit_says_so_within_bounds(void **state) {
	static const char text[] = "ab\ncd\xff"
				   "efgh";
	char out[64];

	(void)state;
	for (size_t size = 8; size < sizeof(out); size++) {
		memset(out, '#', sizeof(out));
		escape_quote(text, sizeof(text) - 1, out, size);
		assert_true(strlen(out) < size);
		assert_int_equal(out[size], '#');
		if (strcmp(out, "\"ab\\ncd\\xffefgh\"") != 0)
			assert_string_equal(out + strlen(out) - 4, "\"...");
	}
	escape_quote(text, sizeof(text) - 1, out, sizeof(out));
	assert_string_equal(out, "\"ab\\ncd\\xffefgh\"");
}

static void plain_text_has_no_character_that_is_escaped(void **state) {
	static const struct {
		const char *text;
		bool is_plain;
	} cases[] = {
		{"", true},
		{"fan 3 says \"hot\" \\ Gr\xc3\xbc\xc3\x9f", true},
		{"two\nlines", false},
		{"tab\t", false},
		{"\x1b[2J", false},
		{"\x7f", false},
		{"C1 \xc2\x9b[J", false},
		{"\xe2\x80\xae reversed", false},
		{"\xe2\x81\xa6 isolated", false},
		{"\xff", false},
		{"cut \xe2\x82", false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++)
		assert_int_equal(
			escape_text_is_plain(cases[n].text, strlen(cases[n].text)),
			cases[n].is_plain
		);
	assert_false(escape_text_is_plain("nul\0inside", 10));
}

static void unit_never_outgrows_its_bound(void **state) {
	struct escape_unit unit;
	char text[4];

	(void)state;
	for (uint32_t lead = 0; lead < 0x10000; lead++) {
		text[0] = (char)(lead >> 8);
		text[1] = (char)lead;
		text[2] = (char)0xa8;
		text[3] = (char)0x80;
		escape_next(text, sizeof(text), &unit);
		assert_in_range(unit.taken_bytes, 1, sizeof(text));
		assert_in_range(unit.text_size, 1, ESCAPE_UNIT_BYTES_MAX);
	}
}

UNIT_GROUP(escape) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quote_of_each_kind_of_byte),
		cmocka_unit_test(quote_that_does_not_fit_says_so_within_bounds),
		cmocka_unit_test(plain_text_has_no_character_that_is_escaped),
		cmocka_unit_test(unit_never_outgrows_its_bound),
	};

	return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}
