// SPDX-License-Identifier: BSD-3-Clause
// Private to perf/page.
#pragma once

#include "page.h"

#include <stddef.h>

struct json_t;

struct page {
	char *title;
	FILE *body; // writes to `text`
	char *text;
	size_t length;
	struct json_t *charts;
	bool failed; // memory ran out
};

// Add the place of a chart, and its data for page.js. Takes ownership of `chart`, which may be
// NULL.
void page_put_chart(struct page *page, const char *caption, struct json_t *chart);

// Files embedded in each page by embed.py.
struct page_bytes {
	const unsigned char *bytes;
	size_t count;
};
extern const struct page_bytes page_uplot, page_uplot_style, page_script, page_style;
