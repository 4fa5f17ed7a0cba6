// SPDX-License-Identifier: BSD-3-Clause
// A page of results as one HTML file: text, tables and charts, without network.
//
// Text and tables are plain HTML, which needs no script. Charts are drawn by uPlot (vendor/uplot)
// and page.js, which are in the page. Text that comes in, from a peer or a file, stays text: it is
// escaped in HTML and in JSON, and the page forbids itself every request.
//
// What is added appears in this order. Memory that runs out shows in page_write().
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct page; // opaque

enum page_tone { PAGE_PLAIN, PAGE_GOOD, PAGE_BAD };

// -ENOMEM. `title` is its first line, too.
int page_create(const char *title, struct page **ret_page);
// Takes NULL. Returns NULL.
struct page *page_destroy(struct page *page);

void page_heading(struct page *page, const char *text);
// A paragraph.
__attribute__((format(printf, 3, 4))) void
page_say(struct page *page, enum page_tone tone, const char *format, ...);

// What a reader looks for first, in large letters: name, value, and what is beneath it.
struct page_tile {
	const char *name, *value, *under;
};
void page_tiles(struct page *page, const struct page_tile *tiles, uint32_t count);

// Cells are text, `count` of a row; the first one is the row's name. Two columns are words and
// their values, which are not lined up as numbers.
void page_table_begin(struct page *page, const char *const *columns, uint32_t count);
// The last column is words, and the others are numbers.
void page_table_begin_noted(struct page *page, const char *const *columns, uint32_t count);
void page_table_row(struct page *page, const char *const *cells, uint32_t count);
void page_table_end(struct page *page);

// What is within is shown when somebody asks for it. Of one depth.
void page_fold_begin(struct page *page, const char *summary);
void page_fold_end(struct page *page);

enum page_scale {
	PAGE_LINEAR,
	PAGE_LOG,
	PAGE_TAIL, // a share from 0 to below 1, drawn by how much is left above: 0.9, 0.99, 0.999
};

struct page_axis {
	const char *label;
	enum page_scale scale;
	const char *const *ticks; // names of the values 0, 1, ... in place of numbers, or NULL
	uint32_t tick_count;
};

// NAN is no point. `low` and `high`, an interval, and `labels` of points may be NULL.
struct page_series {
	const char *name;
	uint32_t count;
	const double *x, *y, *low, *high;
	const char *const *labels;
	bool points; // and no line between them
};

struct page_curves {
	const char *caption;
	struct page_axis x, y;
	uint32_t series_count;
	const struct page_series *series;
	const double *level; // a line across, or NULL
};
void page_curves(struct page *page, const struct page_curves *curves);

// How a distribution goes on in time: a column for each piece of it.
struct page_course {
	const char *caption, *x_label, *y_label;
	uint32_t columns, rows;
	const double *edges;	// of columns, one more than those, ascending
	double low, high;	// the rows' ends, cut evenly in their logarithm
	const uint64_t *counts; // of rows in each column, from below; column by column
	uint32_t line_count;
	const struct page_series *lines; // of `columns` values each; x is not looked at
	uint32_t cut_count;
	const double *cuts; // of x
};
void page_course(struct page *page, const struct page_course *course);

// Of each pair of `count` a value, row by row; NAN: none. `marks` says why one stands out, or NULL.
#define PAGE_MATRIX_MAX 256
struct page_matrix {
	const char *caption, *unit;
	uint32_t count;
	const char *const *names;
	const double *values;
	const char *const *marks;
};
void page_matrix(struct page *page, const struct page_matrix *matrix);

// As text within HTML or SVG: what would be markup is escaped.
void page_put_text(FILE *file, const char *text);

// 0, -ENOMEM, or what writing failed with.
int page_write(struct page *page, FILE *file);
