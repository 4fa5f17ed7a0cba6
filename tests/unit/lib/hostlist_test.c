// SPDX-License-Identifier: BSD-3-Clause
#include <lib/hostlist.h>
#include <lib/scoped.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static struct hostlist *expand(const char *text, uint32_t count_max) {
	struct hostlist *list = NULL;
	struct parse_error error;

	if (hostlist_expand(text, strlen(text), count_max, &error, &list) != 0)
		fail_msg("%s", error.text);
	return list;
}

// Return all names, separated by blanks.
static char *joined(const struct hostlist *list) {
	size_t size = 1;
	char *text;
	char *at;

	for (uint32_t i = 0; i < hostlist_count(list); i++)
		size += strlen(hostlist_name(list, i)) + 1;
	text = malloc(size);
	assert_non_null(text);
	at = text;
	*at = '\0';
	for (uint32_t i = 0; i < hostlist_count(list); i++)
		at += snprintf(
			at, (size_t)(text + size - at), "%s%s", i > 0 ? " " : "",
			hostlist_name(list, i)
		);
	return text;
}

static void expand_refuses_what_is_not_a_list(void **state) {
	static const struct error_text rows[] = {
		{TEXT(""), -EINVAL},
		{TEXT(" "), -EINVAL},
		{TEXT(","), -EINVAL},
		{TEXT("a,"), -EINVAL},
		{TEXT(",a"), -EINVAL},
		{TEXT("a,,b"), -EINVAL},
		{TEXT("a, ,b"), -EINVAL},
		{TEXT("a b"), -EINVAL},
		{TEXT("a\nb"), -EINVAL},
		{TEXT("a\0"), -EINVAL},
		{TEXT("a\0b"), -EINVAL},
		{TEXT("n[1\0-2]"), -EINVAL},
		{TEXT("a:1"), -EINVAL},
		{TEXT("a/b"), -EINVAL},
		{TEXT("n\xc3\xb6"), -EINVAL},
		{TEXT("\xff"), -EINVAL},
		{TEXT("n["), -EINVAL},
		{TEXT("n[1"), -EINVAL},
		{TEXT("n[1,2"), -EINVAL},
		{TEXT("n]"), -EINVAL},
		{TEXT("n1]"), -EINVAL},
		{TEXT("n[1]]"), -EINVAL},
		{TEXT("n[]"), -EINVAL},
		{TEXT("n[,]"), -EINVAL},
		{TEXT("n[1,]"), -EINVAL},
		{TEXT("n[,1]"), -EINVAL},
		{TEXT("n[1,,2]"), -EINVAL},
		{TEXT("n[-]"), -EINVAL},
		{TEXT("n[1-]"), -EINVAL},
		{TEXT("n[-1]"), -EINVAL},
		{TEXT("n[1-2-3]"), -EINVAL},
		{TEXT("n[1--2]"), -EINVAL},
		{TEXT("n[1 - 2]"), -EINVAL},
		{TEXT("n[1, 2]"), -EINVAL},
		{TEXT("n[a]"), -EINVAL},
		{TEXT("n[0x1]"), -EINVAL},
		{TEXT("n[1-2a]"), -EINVAL},
		{TEXT("n[3-1]"), -EINVAL},
		{TEXT("n[10-09]"), -EINVAL},
		{TEXT("n[[1]]"), -EINVAL},
		{TEXT("n[1[2]3]"), -EINVAL},
		{TEXT("n[1],m["), -EINVAL},
		{TEXT("[1][1][1][1][1][1][1][1][1]"), -EINVAL}, // nine brackets
		{TEXT("n[1000000000000000000]"), -ERANGE},	// nineteen digits
		{TEXT("n[0000000000000000001]"), -ERANGE},
		{TEXT("n[0-99999999999999999999999999999]"), -ERANGE},
		{TEXT("n[0-999999999999999999]"), -E2BIG},
		{TEXT("n[0-999999999999999999][0-999999999999999999]"), -E2BIG},
		{TEXT("n[0-999999999999999999,0-999999999999999999]"), -E2BIG},
		{TEXT("n[1-50],m[1-50],x"), -E2BIG},
		{TEXT("n[1-101]"), -E2BIG},
		{TEXT("n[1-101],m["), -E2BIG},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct hostlist *list = (struct hostlist *)&state;
		struct parse_error error = {""};
		int err = hostlist_expand(rows[i].text, rows[i].length, 100, &error, &list);

		if (err != rows[i].err)
			fail_msg("%s: got %d: %s", rows[i].text, err, error.text);
		assert_ptr_equal(list, &state);
		assert_int_equal(error.text[0], '"');
	}
}

static void expand_error_quotes_the_item_at_fault(void **state) {
	static const struct {
		const char *text;
		const char *sentence;
	} rows[] = {
		{"a,,b", "\"\" is an empty item: a name such as node7 or node[01-16] is needed"},
		{"a, b c ,d",
		 "\"b c\" has an invalid character: letters, digits, '-', '_' and '.' are allowed"},
		{"a,n[1[2]]", "\"n[1[2]]\" has a bracket inside a bracket"},
		{"a,n[1,2", "\"n[1,2\" has no closing ]"},
		{"a,n1]", "\"n1]\" has a ] without a ["},
		{"a,n[1,x]", "\"n[1,x]\" has a range that is neither NUMBER nor NUMBER-NUMBER"},
		{"a,n[9-7]", "\"n[9-7]\" has a range that runs backwards"},
		{"n[1234567890123456789]",
		 "\"n[1234567890123456789]\" has a number of more than 18 digits"},
		{"a,n[1-4]", "\"n[1-4]\" makes the list too long: 4 names are allowed"},
	};
	struct hostlist *list;
	struct parse_error error;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_true(
			hostlist_expand(rows[i].text, strlen(rows[i].text), 4, &error, &list) < 0
		);
		assert_string_equal(error.text, rows[i].sentence);
	}
}

static void expand_counts_the_rightmost_bracket_fastest(void **state) {
	static const struct {
		const char *text;
		const char *names;
	} rows[] = {
		{"node7", "node7"},
		{"b,a", "b a"},
		{" a ,\tb ", "a b"},
		{"n[3,1-2]", "n3 n1 n2"},
		{"n[8-11]", "n8 n9 n10 n11"},
		{"n[08-11]", "n08 n09 n10 n11"},
		{"n[098-101]", "n098 n099 n100 n101"},
		{"n[1-02]", "n1 n2"}, // the first number sets the count of digits
		{"n[001-2]", "n001 n002"},
		{"n[0,00,000]", "n0 n00 n000"},
		{"[1-2]", "1 2"},
		{"[1-2]x", "1x 2x"},
		{"r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02"},
		{"r[1-2]n[1,3]-ib[0-1]", "r1n1-ib0 r1n1-ib1 r1n3-ib0 r1n3-ib1 "
					 "r2n1-ib0 r2n1-ib1 r2n3-ib0 r2n3-ib1"},
		{"r[1-2][1-2]", "r11 r12 r21 r22"},
		{"n[1-2].example.com", "n1.example.com n2.example.com"},
		{"n[999999999999999998-999999999999999999]",
		 "n999999999999999998 n999999999999999999"},
		{"[1][1][1][1][1][1][1][1]", "11111111"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct hostlist *list = expand(rows[i].text, 100);
		scoped_mem char *names = joined(list);

		assert_string_equal(names, rows[i].names);
		hostlist_destroy(list);
	}
}

static void expand_keeps_a_repeated_name_at_its_first_place(void **state) {
	struct hostlist *list = expand("c,n[2,1-3],c,n1,n01,a", 100);
	scoped_mem char *names = joined(list);

	(void)state;
	assert_string_equal(names, "c n2 n1 n3 n01 a");
	hostlist_destroy(list);
}

static void expand_counts_repeated_names_against_the_cap(void **state) {
	struct hostlist *list = NULL;

	(void)state;
	assert_int_equal(hostlist_expand(TEXT("a,a,a"), 2, NULL, &list), -E2BIG);
	assert_int_equal(hostlist_expand(TEXT("a"), 0, NULL, &list), -E2BIG);
	assert_null(list);
}

static void expand_limits_the_length_of_a_name(void **state) {
	char text[HOSTLIST_NAME_LENGTH_MAX + 8];
	struct hostlist *list = NULL;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(
		hostlist_expand(text, HOSTLIST_NAME_LENGTH_MAX + 1, 9, NULL, &list), -ENAMETOOLONG
	);
	// The longest number of a bracket counts: 250 bytes and 4 digits exceed the limit by one.
	memcpy(text + 250, "[1-1000]", 8);
	assert_int_equal(hostlist_expand(text, 258, 2000, NULL, &list), -ENAMETOOLONG);
	assert_null(list);
	memcpy(text + 250, "[1-999]", 7);
	assert_int_equal(hostlist_expand(text, 257, 2000, NULL, &list), 0);
	assert_int_equal(strlen(hostlist_name(list, 998)), HOSTLIST_NAME_LENGTH_MAX);
	hostlist_destroy(list);
}

static void expand_makes_a_hundred_thousand_different_names(void **state) {
	struct hostlist *list = expand("node[000001-100000]", 100000);
	char name[32];

	(void)state;
	assert_int_equal(hostlist_count(list), 100000);
	for (uint32_t i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "node%06u", i + 1);
		assert_string_equal(hostlist_name(list, i), name);
		assert_true(hostlist_contains(list, name, strlen(name)));
	}
	hostlist_destroy(list);
}

static void contains_knows_whole_names_only(void **state) {
	struct hostlist *list = expand("node[01-16],login", 100);

	(void)state;
	assert_true(hostlist_contains(list, TEXT("node01")));
	assert_true(hostlist_contains(list, TEXT("login")));
	assert_false(hostlist_contains(list, TEXT("")));
	assert_false(hostlist_contains(list, TEXT("node1")));
	assert_false(hostlist_contains(list, TEXT("node17")));
	assert_false(hostlist_contains(list, TEXT("node011")));
	assert_false(hostlist_contains(list, TEXT("node0")));
	assert_false(hostlist_contains(list, TEXT("login\0")));
	assert_false(hostlist_contains(list, TEXT("login\0x")));
	hostlist_destroy(list);
}

static void destroy_takes_nothing(void **state) {
	(void)state;
	assert_null(hostlist_destroy(NULL));
}

static void compress_writes_the_same_short_text_for_any_order(void **state) {
	static const struct {
		const char *names; // the names as a host list
		const char *text;
	} rows[] = {
		{"node7", "node7"},
		{"n2,n1", "n[1-2]"},
		{"n1,n3", "n[1,3]"},
		{"n3,n1,n2,n5,n7,n6", "n[1-3,5-7]"},
		{"n1,n2,n01", "n[1-2,01]"},
		{"n9,n10,n11", "n[9-11]"},
		{"n09,n10,n11", "n[09-11]"},
		{"n9,n010", "n[9,010]"},
		{"n0,n00,n1,n01", "n[0-1,00-01]"},
		{"n099,n100", "n[099-100]"},
		{"n,n1,n2", "n,n[1-2]"},
		{"b,a,c", "a,b,c"},
		{"b1,a1,b2", "a1,b[1-2]"},
		// No number at the end: printed in full, as in Slurm.
		{"n1-ib,n2-ib", "n1-ib,n2-ib"},
		{"rack2n[01-16],rack1n[01-16]", "rack1n[01-16],rack2n[01-16]"},
		{"[1-3]", "[1-3]"},
		{"n999999999999999998,n999999999999999999",
		 "n[999999999999999998-999999999999999999]"},
		{"n5000000000000000000,n5000000000000000001",
		 "n5[000000000000000000-000000000000000001]"},
		{"node[001-128,200],rack[1-2]n[01-16]",
		 "node[001-128,200],rack1n[01-16],rack2n[01-16]"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct hostlist *list = expand(rows[i].names, 1000);
		uint32_t count = hostlist_count(list);
		scoped_mem const char **names = calloc(2 * count, sizeof(*names));
		scoped_mem char *text = NULL;
		scoped_mem char *reversed = NULL;

		assert_non_null(names);
		for (uint32_t n = 0; n < count; n++)
			names[n] = hostlist_name(list, n);
		assert_int_equal(hostlist_compress(names, count, &text), 0);
		assert_string_equal(text, rows[i].text);
		// The names in reverse order, each twice.
		for (uint32_t n = 0; n < 2 * count; n++)
			names[n] = hostlist_name(list, (2 * count - 1 - n) / 2);
		assert_int_equal(hostlist_compress(names, 2 * count, &reversed), 0);
		assert_string_equal(reversed, rows[i].text);
		hostlist_destroy(list);
	}
}

static void compress_refuses_what_is_not_a_name(void **state) {
	char longer[HOSTLIST_NAME_LENGTH_MAX + 2];
	const struct {
		const char *name;
		int err;
	} rows[] = {
		{"", -EINVAL},	  {"a,b", -EINVAL},  {"n[1]", -EINVAL},
		{"a b", -EINVAL}, {"\xff", -EINVAL}, {longer, -ENAMETOOLONG},
	};

	(void)state;
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *const names[] = {"a", rows[i].name};
		char *text = (char *)state;

		assert_int_equal(hostlist_compress(names, 2, &text), rows[i].err);
		assert_ptr_equal(text, state);
	}
}

static void compress_of_nothing_is_an_empty_text(void **state) {
	scoped_mem char *text = NULL;

	(void)state;
	assert_int_equal(hostlist_compress(NULL, 0, &text), 0);
	assert_string_equal(text, "");
}

static void compress_and_expand_keep_a_hundred_thousand_names(void **state) {
	struct hostlist *list = expand("rack[1-100]n[0001-1000]", 100000);
	scoped_mem char *text = NULL;
	scoped_mem const char **names = calloc(100000, sizeof(*names));
	struct hostlist *again;

	(void)state;
	assert_non_null(names);
	for (uint32_t i = 0; i < 100000; i++)
		names[i] = hostlist_name(list, i);
	assert_int_equal(hostlist_compress(names, 100000, &text), 0);
	again = expand(text, 100000);
	assert_int_equal(hostlist_count(again), 100000);
	for (uint32_t i = 0; i < 100000; i++) {
		const char *name = hostlist_name(list, i);

		assert_true(hostlist_contains(again, name, strlen(name)));
	}
	hostlist_destroy(again);
	hostlist_destroy(list);
}

UNIT_GROUP(hostlist) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expand_refuses_what_is_not_a_list),
		cmocka_unit_test(expand_error_quotes_the_item_at_fault),
		cmocka_unit_test(expand_counts_the_rightmost_bracket_fastest),
		cmocka_unit_test(expand_keeps_a_repeated_name_at_its_first_place),
		cmocka_unit_test(expand_counts_repeated_names_against_the_cap),
		cmocka_unit_test(expand_limits_the_length_of_a_name),
		cmocka_unit_test(expand_makes_a_hundred_thousand_different_names),
		cmocka_unit_test(contains_knows_whole_names_only),
		cmocka_unit_test(destroy_takes_nothing),
		cmocka_unit_test(compress_writes_the_same_short_text_for_any_order),
		cmocka_unit_test(compress_refuses_what_is_not_a_name),
		cmocka_unit_test(compress_of_nothing_is_an_empty_text),
		cmocka_unit_test(compress_and_expand_keep_a_hundred_thousand_names),
	};

	return cmocka_run_group_tests_name("hostlist", tests, NULL, NULL);
}
