// SPDX-License-Identifier: BSD-3-Clause
// Pages that readers share. A fake writes pages of a given number of parts.
#include "feeds/http/http_pages.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES 65536

static const struct http_page_form metrics = {HTTP_PAGE_METRICS, false, PAGE_PARTS_ALL};
static const struct http_page_form metrics_jobs = {HTTP_PAGE_METRICS, false, PAGE_PART_JOBS};
static const struct http_page_form status = {HTTP_PAGE_STATUS, false, 0};
static const struct http_page_form status_gzip = {HTTP_PAGE_STATUS, true, 0};

static struct http_pages pages;

// The fake.
static uint64_t snapshot_ns;
static uint32_t page_parts;    // parts of each page
static uint32_t parts_written; // of all pages
static uint32_t pages_begun;
static int part_error;			   // of the last part
static const struct http_page *dropped[8]; // pages whose readers were dropped
static uint32_t dropped_count;

static int fake_part_write(
	void *ctx,
	struct http_page_form form,
	struct page_cursor *cursor,
	FILE *out,
	uint64_t *ret_snapshot_ns
) {
	static char part[PART_BYTES];

	assert_ptr_equal(ctx, &pages);
	pages_begun += !cursor->begun;
	cursor->begun = true;
	*ret_snapshot_ns = snapshot_ns;
	memset(part, 'a' + (int)form.kind, sizeof(part));
	assert_int_equal(fwrite(part, sizeof(part), 1, out), 1);
	parts_written++;
	if (++cursor->slot < page_parts)
		return 1;
	return part_error;
}

static void fake_readers_drop(void *ctx, const struct http_page *page) {
	assert_ptr_equal(ctx, &pages);
	dropped[dropped_count++] = page;
}

static const struct http_pages_calls fakes = {fake_part_write, fake_readers_drop};

static int begin(void **state) {
	(void)state;
	snapshot_ns = 1;
	page_parts = 1;
	parts_written = pages_begun = dropped_count = 0;
	part_error = 0;
	http_pages_init(&pages, &fakes, &pages);
	return 0;
}

static int end(void **state) {
	(void)state;
	http_pages_fini(&pages);
	return 0;
}

// Step until a page ends, and return it with a reference for a reader.
static struct http_page *written(struct http_page_form form, uint64_t now_ns) {
	struct http_page_result result;

	http_pages_want(&pages, form);
	while (!http_pages_step(&pages, now_ns, &result))
		assert_true(http_pages_has_work(&pages));
	assert_true(http_page_form_equal(result.form, form));
	return result.page != NULL ? http_page_get(result.page) : NULL;
}

static void two_readers_share_a_page_that_is_written_once(void **state) {
	struct http_page *page;

	(void)state;
	assert_null(http_pages_find(&pages, status, 1, 10));
	http_pages_want(&pages, status);
	page = written(status, 10);
	assert_int_equal(page->size_bytes, PART_BYTES);
	assert_ptr_equal(http_pages_find(&pages, status, 1, 11), page);
	assert_ptr_equal(http_page_get(page), page);
	assert_false(http_pages_has_work(&pages));
	assert_int_equal(pages_begun, 1);
	http_page_put(&pages, page);
	http_page_put(&pages, page);
}

static void one_who_asks_while_a_page_is_written_waits_for_that_page(void **state) {
	struct http_page_result result;

	(void)state;
	page_parts = 3;
	http_pages_want(&pages, status);
	assert_false(http_pages_step(&pages, 10, &result));
	assert_int_equal(parts_written, 1);
	http_pages_want(&pages, status);
	assert_false(http_pages_step(&pages, 10, &result));
	assert_true(http_pages_step(&pages, 10, &result));
	assert_int_equal(result.page->size_bytes, 3 * PART_BYTES);
	assert_false(http_pages_has_work(&pages));
	assert_int_equal(pages_begun, 1);
}

static void last_reader_frees_a_page_that_is_not_fresh(void **state) {
	struct http_page *page = written(status, 10);

	(void)state;
	http_page_get(page);
	http_pages_expire(&pages, 10 + HTTP_PAGE_FRESH_NS - 1);
	assert_true(page->fresh);
	http_pages_expire(&pages, 10 + HTTP_PAGE_FRESH_NS);
	http_page_put(&pages, page);
	assert_int_equal(pages.bytes, PART_BYTES);
	http_page_put(&pages, page);
	assert_int_equal(pages.bytes, 0);
	assert_null(pages.newest);
}

static void next_snapshot_has_a_page_of_its_own(void **state) {
	struct http_page *first = written(status, 10), *second;

	(void)state;
	assert_null(http_pages_find(&pages, status, 2, 11));
	snapshot_ns = 2;
	second = written(status, 11);
	assert_ptr_not_equal(first, second);
	assert_false(first->fresh);
	http_page_put(&pages, first);
	http_page_put(&pages, second);
}

static void same_snapshot_is_written_again_after_a_second(void **state) {
	struct http_page *page = written(status, 10);

	(void)state;
	// The control thread hangs: the page must show that the snapshot grows old.
	assert_ptr_equal(http_pages_find(&pages, status, 1, 9 + HTTP_PAGE_FRESH_NS), page);
	assert_null(http_pages_find(&pages, status, 1, 10 + HTTP_PAGE_FRESH_NS));
	http_page_put(&pages, page);
}

static void over_budget_the_oldest_page_is_dropped_once_and_writing_waits_for_it(void **state) {
	struct http_page *oldest, *newest;
	struct http_page_result result;

	(void)state;
	page_parts = HTTP_PAGES_BYTES / PART_BYTES / 2;
	oldest = written(status, 10);
	snapshot_ns = 2;
	newest = written(status, 20);
	assert_int_equal(dropped_count, 0);

	snapshot_ns = 3;
	http_pages_want(&pages, status);
	parts_written = 0;
	while (dropped_count == 0)
		assert_false(http_pages_step(&pages, 30, &result));
	assert_ptr_equal(dropped[0], oldest);
	assert_true(pages.bytes + parts_written * PART_BYTES <= HTTP_PAGES_BYTES + PART_BYTES);
	// The oldest page is still held: nothing is written, and nobody else is dropped.
	parts_written = 0;
	for (int n = 0; n < 10; n++)
		assert_false(http_pages_step(&pages, 30, &result));
	assert_int_equal(parts_written, 0);
	assert_int_equal(dropped_count, 1);
	http_page_put(&pages, oldest);
	while (!http_pages_step(&pages, 30, &result))
		;
	assert_non_null(result.page);
	assert_int_equal(dropped_count, 1);
	http_page_put(&pages, newest);
}

static void page_without_readers_is_freed_for_another_and_nobody_is_dropped(void **state) {
	struct http_page *page;

	(void)state;
	page_parts = HTTP_PAGES_BYTES / PART_BYTES / 2 + 1;
	http_page_put(&pages, written(metrics, 10));
	http_page_put(&pages, written(status, 10));
	page = written(status_gzip, 10);
	http_page_put(&pages, page);
	snapshot_ns = 2;
	http_page_put(&pages, written(metrics, 20));
	assert_int_equal(dropped_count, 0);
	assert_true(pages.bytes <= HTTP_PAGES_BYTES);
}

static void newest_page_keeps_its_readers_though_it_is_larger_than_the_budget(void **state) {
	struct http_page *first, *second;

	(void)state;
	page_parts = HTTP_PAGES_BYTES / PART_BYTES + 1;
	first = written(status, 10);
	snapshot_ns = 2;
	second = written(status, 20);
	assert_non_null(second);
	assert_int_equal(dropped_count, 0);
	http_page_put(&pages, first);
	http_page_put(&pages, second);
}

static void page_that_cannot_be_written_is_no_page(void **state) {
	(void)state;
	part_error = -ENOMEM;
	assert_null(written(status, 10));
	assert_null(pages.newest);
	assert_false(http_pages_has_work(&pages));
	part_error = 0;
	http_page_put(&pages, written(status, 10));
}

static void gzip_is_a_page_of_its_own_with_the_same_text(void **state) {
	static char text[3 * PART_BYTES + 1];
	z_stream stream = {.next_out = (Bytef *)text, .avail_out = sizeof(text)};
	struct http_page *plain, *gzip;

	(void)state;
	page_parts = 3;
	plain = written(status, 10);
	assert_null(http_pages_find(&pages, status_gzip, 1, 10));
	gzip = written(status_gzip, 10);
	assert_ptr_equal(http_pages_find(&pages, status_gzip, 1, 10), gzip);
	assert_ptr_equal(http_pages_find(&pages, status, 1, 10), plain);
	assert_true(gzip->size_bytes < plain->size_bytes / 10);

	stream.next_in = (const Bytef *)gzip->text;
	stream.avail_in = (uInt)gzip->size_bytes;
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	assert_int_equal(stream.total_out, plain->size_bytes);
	assert_memory_equal(text, plain->text, plain->size_bytes);
	http_page_put(&pages, plain);
	http_page_put(&pages, gzip);
}

static void only_a_header_that_allows_gzip_gets_it(void **state) {
	static const struct {
		const char *header;
		bool accepts;
	} cases[] = {
		{NULL, false},
		{"", false},
		{"gzip", true},
		{"GZip", true},
		{"deflate, gzip", true},
		{"gzip, deflate, br", true},
		{"br;q=1.0, gzip;q=0.8, *;q=0.1", true},
		{"gzip ; q=0.001", true},
		{"gzip;q=1", true},
		{"identity", false},
		{"*", false},
		{"gzip;q=0", false},
		{"gzip;q=0.", false},
		{"gzip;q=0.000", false},
		{"gzip;q=0,deflate", false},
		{"gzip;q=0.00,q=5", false},
		// Nonsense is no gzip, and ends.
		{"gzipped", false},
		{"xgzip", false},
		{"gzi", false},
		{"gzip;", false},
		{"gzip;q", false},
		{"gzip;q=", false},
		{"gzip;q=,1", false},
		{"gzip;q=-1", false},
		{"gzip;q=0x1", false},
		{"gzip;level=9", false},
		{"gzip deflate", false},
		{",,,, ,\t,", false},
		{";;;;q=1", false},
		{"\xff\xfe gzip", false},
	};
	static char header[32768];

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		if (http_accepts_gzip(cases[n].header) != cases[n].accepts)
			fail_msg("%s", cases[n].header);
	}
	memset(header, ',', sizeof(header) - 1);
	assert_false(http_accepts_gzip(header));
	memcpy(header + sizeof(header) - 5, "gzip", 4);
	assert_true(http_accepts_gzip(header));
}

static void pages_of_different_parts_are_written_apart(void **state) {
	struct http_page *page, *other;

	(void)state;
	page = written(metrics, 10);
	assert_null(http_pages_find(&pages, metrics_jobs, 1, 10));
	other = written(metrics_jobs, 10);
	assert_ptr_not_equal(page, other);
	assert_ptr_equal(http_pages_find(&pages, metrics, 1, 10), page);
	assert_ptr_equal(http_pages_find(&pages, metrics_jobs, 1, 10), other);
	http_page_put(&pages, page);
	http_page_put(&pages, other);
}

// Regression: the lowest form was always served first. Clients that asked for 15 choices of parts
// again and again kept every other page waiting.
static void forms_that_are_always_wanted_keep_no_other_waiting(void **state) {
	struct http_page_result result = {.form = metrics};
	uint32_t count = 0;

	(void)state;
	http_pages_want(&pages, status);
	do {
		for (uint8_t parts = 1; parts <= PAGE_PARTS_ALL; parts++) {
			http_pages_want(
				&pages, (struct http_page_form){HTTP_PAGE_METRICS, false, parts}
			);
		}
		assert_true(http_pages_step(&pages, ++count, &result));
		assert_in_range(count, 1, PAGE_PARTS_ALL + 1);
	} while (result.form.kind != HTTP_PAGE_STATUS);
}

UNIT_GROUP(http_pages) {
#define PAGES_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		PAGES_TEST(two_readers_share_a_page_that_is_written_once),
		PAGES_TEST(one_who_asks_while_a_page_is_written_waits_for_that_page),
		PAGES_TEST(last_reader_frees_a_page_that_is_not_fresh),
		PAGES_TEST(next_snapshot_has_a_page_of_its_own),
		PAGES_TEST(same_snapshot_is_written_again_after_a_second),
		PAGES_TEST(over_budget_the_oldest_page_is_dropped_once_and_writing_waits_for_it),
		PAGES_TEST(page_without_readers_is_freed_for_another_and_nobody_is_dropped),
		PAGES_TEST(newest_page_keeps_its_readers_though_it_is_larger_than_the_budget),
		PAGES_TEST(page_that_cannot_be_written_is_no_page),
		PAGES_TEST(gzip_is_a_page_of_its_own_with_the_same_text),
		PAGES_TEST(forms_that_are_always_wanted_keep_no_other_waiting),
		PAGES_TEST(pages_of_different_parts_are_written_apart),
		PAGES_TEST(only_a_header_that_allows_gzip_gets_it),
	};

	return cmocka_run_group_tests_name("http_pages", tests, NULL, NULL);
}
