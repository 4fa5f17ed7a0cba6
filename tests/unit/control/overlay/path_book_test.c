// SPDX-License-Identifier: BSD-3-Clause
// Learnt path baselines as text: what was written reads the same, and all other input is
// rejected.
#include <control/path_book.h>
#include <support/cmocka.h>

#include <xxhash.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SELF UINT64_C(0x1234)
#define DAY_S UINT64_C(86400)

static struct path_book book, read_back;
static char text[PATH_BOOK_BYTES], again[PATH_BOOK_BYTES];
static const char *reason;

static int begin(void **state) {
	(void)state;
	memset(&book, 0, sizeof(book));
	memset(&read_back, 0xff, sizeof(read_back));
	reason = NULL;
	return 0;
}

static struct path_book_entry past_of(uint64_t peer) {
	return (struct path_book_entry){
		.peer = peer,
		.device = "mlx5_0",
		.peer_device = "mlx5_1",
		.responder = OBSERVATION_RESPONDER_HARDWARE,
		.mtu = 4096,
		.speed_mbps = 400000,
		.baseline_ns = 2100 + peer,
		.baseline_mad_ns = 80,
		.windows = PATH_PAST_WINDOWS,
		.learnt_s = 1795000000 + peer,
	};
}

static void put(uint64_t peer) {
	struct path_book_entry past = past_of(peer);

	assert_true(path_book_put(&book, &past));
}

static int parse(void) {
	return path_book_parse(&read_back, text, SELF, &reason);
}

static void what_was_written_reads_the_same(void **state) {
	static const uint32_t counts[] = {0, 1, 2, PATH_BOOK_PATHS_MAX};
	size_t size;

	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		begin(state);
		for (uint32_t k = 0; k < counts[n]; k++)
			put(k);
		size = path_book_format(&book, SELF, text);
		assert_int_equal(size, strlen(text));
		assert_int_equal(parse(), 0);
		assert_int_equal(read_back.count, counts[n]);
		path_book_format(&read_back, SELF, again);
		assert_string_equal(again, text);
	}
}

static void longest_lines_have_room(void **state) {
	(void)state;
	for (uint32_t n = 0; n < PATH_BOOK_PATHS_MAX; n++) {
		struct path_book_entry past = {
			.peer = UINT64_MAX - n,
			.responder = OBSERVATION_RESPONDER_IN_PROCESS,
			.mtu = 65536,
			.speed_mbps = UINT32_MAX,
			.baseline_ns = PATH_LATENCY_MAX_NS - 1,
			.baseline_mad_ns = PATH_LATENCY_MAX_NS - 1,
			.windows = PATH_PAST_WINDOWS,
			.learnt_s = 9223372036,
		};

		memset(past.device, 'd', DEVICE_NAME_MAX);
		memset(past.peer_device, 'p', DEVICE_NAME_MAX);
		assert_true(path_book_put(&book, &past));
	}
	path_book_format(&book, SELF, text);
	assert_int_equal(parse(), 0);
	assert_int_equal(read_back.count, PATH_BOOK_PATHS_MAX);
}

static void text_that_is_cut_short_is_not_taken_in_parts(void **state) {
	size_t size;

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		put(n);
	size = path_book_format(&book, SELF, text);
	while (size-- > 0) {
		text[size] = '\0';
		assert_int_equal(parse(), -EBADMSG);
		assert_int_equal(read_back.count, 0);
		assert_non_null(reason);
	}
}

static void text_with_another_byte_is_not_taken(void **state) {
	size_t size;

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		put(n);
	size = path_book_format(&book, SELF, text);
	for (size_t n = 0; n < size; n++) {
		char before = text[n];

		text[n] = (char)(before ^ 1);
		assert_int_equal(parse(), -EBADMSG);
		text[n] = before;
	}
	assert_int_equal(parse(), 0);
}

static void text_of_another_node_or_version_says_so(void **state) {
	(void)state;
	put(1);
	path_book_format(&book, SELF + 1, text);
	assert_int_equal(parse(), -EBADMSG);
	assert_string_equal(reason, "the file belongs to another node");
	path_book_format(&book, SELF, text);
	text[strlen("paths ")] = '2';
	assert_int_equal(parse(), -EBADMSG);
	assert_string_equal(reason, "the file has an unsupported version");
	snprintf(
		text, sizeof(text), "%s",
		"\x7f"
		"ELF"
	);
	assert_int_equal(parse(), -EBADMSG);
	assert_string_equal(reason, "the file is not a list of path baselines");
}

// Write a complete file with the correct number of lines.
static void write_lines(uint32_t count, const char *lines) {
	size_t used =
		(size_t)snprintf(text, sizeof(text), "paths 1 0x%" PRIx64 "\n%s", SELF, lines);

	snprintf(
		text + used, sizeof(text) - used, "end %" PRIu32 " 0x%" PRIx64 "\n", count,
		(uint64_t)XXH3_64bits(text, used)
	);
}

#define SOUND "path 0x1 a b hardware 4096 400000 2100 80 64 1795000000\n"

static void path_that_cannot_be_spoils_the_whole(void **state) {
	static const struct {
		uint32_t count;
		const char *lines;
	} cases[] = {
		{1, "path 0x1 a b hardware 4096 400000 0 80 64 1795000000\n"},
		{1, "path 0x1 a b hardware 4096 400000 281474976710656 80 64 1795000000\n"},
		{1, "path 0x1 a b hardware 4096 400000 2100 281474976710656 64 1795000000\n"},
		{1, "path 0x1 a b hardware 4096 400000 2100 80 65 1795000000\n"},
		{1, "path 0x1 a b hardware 4096 400000 2100 80 3 1795000000\n"},
		{1, "path 0x1 a b hardware 4096 400000 2100 80 64 99999999999999999\n"},
		{1, "path 0x1 a b hardware 65537 400000 2100 80 64 1795000000\n"},
		{1, "path 0x1 a b software 4096 400000 2100 80 64 1795000000\n"},
		{1, "path 0x1 a b hardware 4096 400000 2100 80 64 1795000000 1\n"},
		{1, "path 0x1 a b hardware 4096 400000 2100 80 64\n"},
		{1, "path -1 a b hardware 4096 400000 2100 80 64 1795000000\n"},
		{1, "path 0x1 a bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb hardware 1 1 2100 80 64 1\n"},
		{1, "path 0x1 a \x01 hardware 4096 400000 2100 80 64 1795000000\n"},
		{1, "\n"},
		{2, SOUND SOUND},
		{0, SOUND},
		{2, SOUND},
		{1025, SOUND},
	};

	(void)state;
	write_lines(1, SOUND);
	assert_int_equal(parse(), 0);
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		write_lines(cases[n].count, cases[n].lines);
		if (parse() != -EBADMSG || read_back.count != 0)
			fail_msg("taken: %s", cases[n].lines);
	}
}

static void name_that_no_line_can_hold_is_not_kept(void **state) {
	static const char *const names[] = {"", "a b", "a\nend 0 0", "\x7f", "\t"};

	(void)state;
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		struct path_book_entry past = past_of(1);

		snprintf(past.peer_device, sizeof(past.peer_device), "%s", names[n]);
		assert_false(path_book_put(&book, &past));
	}
	assert_int_equal(book.count, 0);
}

static void one_path_has_one_place_and_of_a_full_book_the_oldest_goes(void **state) {
	struct path_book_entry past = past_of(3);

	(void)state;
	for (uint32_t n = 0; n < PATH_BOOK_PATHS_MAX; n++)
		put(n);
	past.baseline_ns = 9;
	assert_true(path_book_put(&book, &past));
	assert_int_equal(book.count, PATH_BOOK_PATHS_MAX);
	assert_int_equal(path_book_find(&book, 3, "mlx5_0", "mlx5_1")->baseline_ns, 9);
	put(PATH_BOOK_PATHS_MAX);
	assert_int_equal(book.count, PATH_BOOK_PATHS_MAX);
	assert_null(path_book_find(&book, 0, "mlx5_0", "mlx5_1"));
	assert_non_null(path_book_find(&book, PATH_BOOK_PATHS_MAX, "mlx5_0", "mlx5_1"));
	assert_null(path_book_find(&book, 3, "mlx5_1", "mlx5_1"));
	assert_null(path_book_find(&book, 3, "mlx5_0", "mlx5_0"));
}

static void what_was_learnt_too_long_ago_is_dropped(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 10; n++)
		put(n);
	path_book_expire(&book, 1795000004);
	assert_int_equal(book.count, 6);
	assert_null(path_book_find(&book, 3, "mlx5_0", "mlx5_1"));
	assert_non_null(path_book_find(&book, 4, "mlx5_0", "mlx5_1"));
	path_book_expire(&book, 1795000000 + DAY_S);
	assert_int_equal(book.count, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

UNIT_GROUP(path_book) {
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_reads_the_same),
		TEST(longest_lines_have_room),
		TEST(text_that_is_cut_short_is_not_taken_in_parts),
		TEST(text_with_another_byte_is_not_taken),
		TEST(text_of_another_node_or_version_says_so),
		TEST(path_that_cannot_be_spoils_the_whole),
		TEST(name_that_no_line_can_hold_is_not_kept),
		TEST(one_path_has_one_place_and_of_a_full_book_the_oldest_goes),
		TEST(what_was_learnt_too_long_ago_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
