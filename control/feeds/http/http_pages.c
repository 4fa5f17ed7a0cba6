// SPDX-License-Identifier: BSD-3-Clause
// Shares pages between the readers of the HTTP server, within a budget of memory.
#include "feeds/http/http_pages.h"

#include <lib/must.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void http_pages_init(struct http_pages *pages, const struct http_pages_calls *calls, void *ctx) {
	*pages = (struct http_pages){.calls = calls, .ctx = ctx};
}

struct http_page *http_page_get(struct http_page *page) {
	page->references++;
	return page;
}

void http_page_put(struct http_pages *pages, struct http_page *page) {
	struct http_page **at = &pages->newest;

	must(page->references > 0);
	if (--page->references > 0)
		return;
	while (*at != page)
		at = &(*at)->older;
	*at = page->older;
	pages->bytes -= page->size_bytes;
	free(page->text);
	free(page);
}

static void page_expire(struct http_pages *pages, struct http_page *page) {
	if (!page->fresh)
		return;
	page->fresh = false;
	http_page_put(pages, page);
}

void http_pages_expire(struct http_pages *pages, uint64_t now_ns) {
	struct http_page *older;

	for (struct http_page *page = pages->newest; page != NULL; page = older) {
		older = page->older;
		if (now_ns >= page->started_ns + HTTP_PAGE_FRESH_NS)
			page_expire(pages, page);
	}
}

void http_pages_fini(struct http_pages *pages) {
	page_writer_fini(&pages->writer);
	free(pages->building);
	http_pages_expire(pages, UINT64_MAX);
	must(pages->newest == NULL && pages->bytes == 0);
}

struct http_page *http_pages_find(
	const struct http_pages *pages,
	struct http_page_form form,
	uint64_t snapshot_ns,
	uint64_t now_ns
) {
	for (struct http_page *page = pages->newest; page != NULL; page = page->older) {
		if (http_page_form_equal(page->form, form) && page->fresh &&
		    page->snapshot_ns == snapshot_ns &&
		    now_ns < page->started_ns + HTTP_PAGE_FRESH_NS)
			return page;
	}
	return NULL;
}

void http_pages_want(struct http_pages *pages, struct http_page_form form) {
	const struct http_page *building = pages->building;

	must(form.parts <= PAGE_PARTS_ALL);
	if (building == NULL || !http_page_form_equal(building->form, form))
		pages->wanted[form.kind][form.gzip][form.parts] = true;
}

#define FORM_COUNT (HTTP_PAGE_KIND_COUNT * 2 * (PAGE_PARTS_ALL + 1))

// Find a wanted form and return its index, or FORM_COUNT. The search begins behind the form that
// was served last: clients that ask for many forms again and again must not keep others waiting.
static uint32_t wanted_find(const struct http_pages *pages) {
	const bool *wanted = &pages->wanted[0][0][0];

	static_assert(sizeof(pages->wanted) == (size_t)(FORM_COUNT), "one place for each form");
	for (uint32_t n = 0; n < FORM_COUNT; n++) {
		uint32_t at = (pages->next_wanted + n) % FORM_COUNT;

		if (wanted[at])
			return at;
	}
	return FORM_COUNT;
}

// Take a wanted form. Returns false if there is none.
static bool wanted_take(struct http_pages *pages, struct http_page_form *ret_form) {
	const uint32_t parts = PAGE_PARTS_ALL + 1;
	uint32_t at = wanted_find(pages);

	if (at == FORM_COUNT)
		return false;
	*ret_form = (struct http_page_form){
		.kind = (enum http_page_kind)(at / parts / 2),
		.gzip = at / parts % 2 != 0,
		.parts = (uint8_t)(at % parts),
	};
	(&pages->wanted[0][0][0])[at] = false;
	pages->next_wanted = at + 1;
	return true;
}

bool http_pages_has_work(const struct http_pages *pages) {
	return pages->building != NULL || wanted_find(pages) != FORM_COUNT;
}

// Return whether the next part may be written. If pages need more than their budget, drop the
// oldest page, unless it is the newest, too.
static bool room_make(struct http_pages *pages) {
	struct http_page *oldest = pages->newest;

	if (oldest == NULL || oldest->older == NULL ||
	    pages->bytes + pages->writer.room_bytes <= HTTP_PAGES_BYTES)
		return true;
	while (oldest->older != NULL)
		oldest = oldest->older;
	if (!oldest->dropped) {
		oldest->dropped = true;
		if (oldest->references > oldest->fresh)
			pages->calls->readers_drop(pages->ctx, oldest);
		page_expire(pages, oldest);
	}
	return false;
}

// Begin a page of a form. Returns 0 or -ENOMEM.
static int building_begin(struct http_pages *pages, struct http_page_form form, uint64_t now_ns) {
	struct http_page *page = calloc(1, sizeof(*page));
	int err;

	if (page == NULL)
		return -ENOMEM;
	err = page_writer_init(&pages->writer, form.gzip);
	if (err != 0) {
		free(page);
		return err;
	}
	page->form = form;
	page->started_ns = now_ns;
	pages->cursor = (struct page_cursor){.begun = false};
	pages->building = page;
	return 0;
}

// End the page that is being written; with an error it is thrown away. Returns the page or NULL.
static struct http_page *building_end(struct http_pages *pages, int err) {
	struct http_page *page = pages->building;

	pages->building = NULL;
	if (err == 0)
		err = page_writer_finish(&pages->writer, &page->text, &page->size_bytes);
	page_writer_fini(&pages->writer);
	if (err != 0) {
		free(page);
		return NULL;
	}
	// An earlier page of this form is not found again.
	for (struct http_page *other = pages->newest, *older; other != NULL; other = older) {
		older = other->older;
		if (http_page_form_equal(other->form, page->form))
			page_expire(pages, other);
	}
	page->references = 1;
	page->fresh = true;
	page->older = pages->newest;
	pages->newest = page;
	pages->bytes += page->size_bytes;
	return page;
}

bool http_pages_step(
	struct http_pages *pages, uint64_t now_ns, struct http_page_result *ret_result
) {
	struct http_page_form form;
	uint64_t snapshot_ns = 0;
	bool first;
	int err;

	if (pages->building == NULL) {
		if (!wanted_take(pages, &form))
			return false;
		if (building_begin(pages, form, now_ns) != 0) {
			*ret_result = (struct http_page_result){.form = form};
			return true;
		}
	}
	if (!room_make(pages))
		return false;
	form = pages->building->form;
	first = !pages->cursor.begun;
	err = pages->calls->part_write(
		pages->ctx, form, &pages->cursor, pages->writer.out, &snapshot_ns
	);
	if (first)
		pages->building->snapshot_ns = snapshot_ns;
	if (err > 0)
		return false;
	*ret_result = (struct http_page_result){form, building_end(pages, err)};
	return true;
}

// Return whether the parameters of a coding, ";q=0.5" or none, allow it. A q that is no number
// rules it out.
static bool quality_allows(const char *text, size_t size) {
	size_t at = strspn(text, " \t");

	if (at >= size)
		return true;
	if (text[at++] != ';')
		return false;
	at += strspn(text + at, " \t");
	if (size - at < 3 || strncasecmp(text + at, "q=", 2) != 0)
		return false;
	if (text[at + 2] == '1')
		return true;
	if (text[at + 2] != '0' || text[at + 3] != '.')
		return false;
	at += 4;
	at += strspn(text + at, "0");
	return at < size && text[at] >= '1' && text[at] <= '9';
}

bool http_accepts_gzip(const char *header) {
	const char *at = header;

	while (at != NULL && *at != '\0') {
		size_t size;

		at += strspn(at, " \t,");
		size = strcspn(at, ",");
		if (size >= 4 && strncasecmp(at, "gzip", 4) == 0 &&
		    quality_allows(at + 4, size - 4))
			return true;
		at += size;
	}
	return false;
}
