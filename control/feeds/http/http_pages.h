// SPDX-License-Identifier: BSD-3-Clause
// Pages of the HTTP server, each written once and shared by all of its readers.
//
// A page is one kind of text, plain or as gzip, made from one snapshot. It is counted by reference:
// one for each reader, and one of the store while the page is fresh. The last reference frees the
// page. A page is fresh until the next snapshot, and for HTTP_PAGE_FRESH_NS at most: the times in
// it are no older, also if the control thread hangs and publishes no snapshot any more.
//
// A page is written in parts, one per turn of the thread, so that a long page delays no other
// answer. All pages together, with the one being written, have HTTP_PAGES_BYTES. When more is
// needed, the oldest page loses its readers, and writing waits until it is freed. The newest page
// keeps its readers: if two pages are larger than HTTP_PAGES_BYTES, the bound is these two.
//
// All of it is for one thread.
#pragma once

#include "feeds/http/metrics_page.h"
#include "feeds/http/page_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_PAGE_FRESH_NS UINT64_C(1000000000)
#define HTTP_PAGES_BYTES (UINT64_C(13) << 20) // two pages of 40,000 nodes

enum http_page_kind {
	HTTP_PAGE_METRICS,
	HTTP_PAGE_OPEN_METRICS,
	HTTP_PAGE_STATUS,
	HTTP_PAGE_KIND_COUNT,
};

// The page that a client asks for: each form is written for itself.
struct http_page_form {
	enum http_page_kind kind;
	bool gzip;
	uint8_t parts; // of metrics, PAGE_PART_*; 0: another page
};

static inline bool http_page_form_equal(struct http_page_form a, struct http_page_form b) {
	return a.kind == b.kind && a.gzip == b.gzip && a.parts == b.parts;
}

struct http_page {
	struct http_page *older;
	struct http_page_form form;
	uint64_t snapshot_ns; // time of its snapshot
	uint64_t started_ns;  // time when its first part was written
	uint32_t references;
	bool fresh;   // the store has one of the references
	bool dropped; // the connections of its readers are being closed
	char *text;
	size_t size_bytes;
};

struct http_pages_calls {
	// Write the next part of a page; `cursor` is zero at the first. Returns 1 if more parts
	// follow, 0 after the last, or -errno. *ret_snapshot_ns is the time of the snapshot.
	int (*part_write
	)(void *ctx,
	  struct http_page_form form,
	  struct page_cursor *cursor,
	  FILE *out,
	  uint64_t *ret_snapshot_ns);
	// End all readers of a page, at once or soon. Each puts its reference.
	void (*readers_drop)(void *ctx, const struct http_page *page);
};

struct http_pages {
	const struct http_pages_calls *calls;
	void *ctx;
	struct http_page *newest; // list of complete pages, from the newest to the oldest
	uint64_t bytes;		  // size of complete pages
	bool wanted[HTTP_PAGE_KIND_COUNT][2][PAGE_PARTS_ALL + 1];
	uint32_t next_wanted; // index of the form that is served first, so that each has its turn
	struct http_page *building; // NULL: no page is being written
	struct page_cursor cursor;
	struct page_writer writer;
};

// The end of writing one page.
struct http_page_result {
	struct http_page_form form;
	struct http_page *page; // NULL: there is no memory; no reference of the caller
};

void http_pages_init(struct http_pages *pages, const struct http_pages_calls *calls, void *ctx);
// Free all pages. No reader may hold one.
void http_pages_fini(struct http_pages *pages);

// Return the fresh page of a form, or NULL. Without a reference of the caller.
struct http_page *http_pages_find(
	const struct http_pages *pages,
	struct http_page_form form,
	uint64_t snapshot_ns,
	uint64_t now_ns
);
// Request a page. A second request for the same form has no effect.
void http_pages_want(struct http_pages *pages, struct http_page_form form);
// Return whether http_pages_step() has something to do.
bool http_pages_has_work(const struct http_pages *pages);
// Write one part of a wanted page, or make room for it. Returns true when this ended a page.
bool http_pages_step(
	struct http_pages *pages, uint64_t now_ns, struct http_page_result *ret_result
);
// Give up the references of the store to pages that are no longer fresh.
void http_pages_expire(struct http_pages *pages, uint64_t now_ns);

struct http_page *http_page_get(struct http_page *page);
void http_page_put(struct http_pages *pages, struct http_page *page);

// Return whether an Accept-Encoding header names gzip and does not rule it out by q=0. NULL: no
// header.
bool http_accepts_gzip(const char *header);
