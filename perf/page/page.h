// SPDX-License-Identifier: BSD-3-Clause
// A page of results as one HTML file, without network access.
//
// The file consists of an HTML shell, the JSON of a result and scripts. The scripts draw all
// headings, tables and charts in the browser: kinds.js has a function for each kind of result,
// page.js makes elements, charts.js draws charts with uPlot (vendor/uplot).
//
// Untrusted text from peers or files is escaped in HTML and in JSON, and the scripts use it as text
// only. The page's content security policy forbids all requests.
//
// Figures that the JSON of a result does not have are its member "page". C computes these, so
// statistics exist in one language only.
#pragma once

#include <stdio.h>

struct json_t;

struct page {
	const char *title;    // also the heading
	const char *headline; // main sentence, for browsers without JavaScript
	const char *kind;     // name of a function in kinds.js
	const struct json_t *json;
};

// Write a page. Returns 0 or -EIO.
int page_write(const struct page *page, FILE *file);
