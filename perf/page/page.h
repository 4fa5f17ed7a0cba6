// SPDX-License-Identifier: BSD-3-Clause
// A page of results as one HTML file: text, tables and charts, without network access.
//
// Text and tables are plain HTML and need no script. Charts are drawn by uPlot (vendor/uplot) and
// page.js, which are embedded in the page. Untrusted text from peers or files is escaped in HTML
// and in JSON. The page's content security policy forbids all requests.
//
// Parts appear in the order in which they are added. page_write() reports if memory ran out
// earlier.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct page; // opaque

enum page_tone { PAGE_PLAIN, PAGE_GOOD, PAGE_BAD };

// Create a page. `title` is also its heading. Returns 0 or -ENOMEM.
int page_create(const char *title, struct page **ret_page);
// Destroy a page; NULL is allowed. Returns NULL.
struct page *page_destroy(struct page *page);

void page_heading(struct page *page, const char *text);
// Add a paragraph.
__attribute__((format(printf, 3, 4))) void
page_paragraph(struct page *page, enum page_tone tone, const char *format, ...);

// Main figures in large letters: name, value and a line below.
struct page_tile {
	const char *name, *value, *under;
};
void page_tiles(struct page *page, const struct page_tile *tiles, uint32_t count);

// Begin a table. Cells are text, `count` per row; the first cell is the row's name. A table with
// two columns has keys and values, which are not aligned as numbers.
void page_table_begin(struct page *page, const char *const *columns, uint32_t count);
// Begin a table whose last column is text and whose other columns are numbers.
void page_table_begin_noted(struct page *page, const char *const *columns, uint32_t count);
void page_table_row(struct page *page, const char *const *cells, uint32_t count);
void page_table_end(struct page *page);

// Begin or end a part that is folded until the reader opens it. Folds cannot be nested.
void page_fold_begin(struct page *page, const char *summary);
void page_fold_end(struct page *page);

enum page_scale {
	PAGE_LINEAR,
	PAGE_LOG,
	PAGE_TAIL, // a share from 0 to below 1, with equal distances between 0.9, 0.99, 0.999
};

struct page_axis {
	const char *label;
	enum page_scale scale;
	const char *const *ticks; // names of the values 0, 1, ... instead of numbers; or NULL
	uint32_t tick_count;
};

// Series of a chart. NAN is no point. `low` and `high` (an interval) and `labels` of points may be
// NULL.
struct page_series {
	const char *name;
	uint32_t count;
	const double *x, *y, *low, *high;
	const char *const *labels;
	bool points; // points without a line
};

struct page_curves {
	const char *caption;
	struct page_axis x, y;
	uint32_t series_count;
	const struct page_series *series;
	const double *level; // a horizontal line, or NULL
};
void page_curves(struct page *page, const struct page_curves *curves);

// Heat map: the distribution over time, with one column per piece of time.
struct page_course {
	const char *caption, *x_label, *y_label;
	uint32_t columns, rows;
	const double *edges;	// edges of the columns, ascending; columns + 1 values
	double low, high;	// range of the rows, which divide it evenly on a logarithmic scale
	const uint64_t *counts; // column by column, each from the lowest row up
	uint32_t line_count;
	const struct page_series *lines; // `columns` values each; x is unused
	uint32_t cut_count;
	const double *cuts; // x values
};
void page_course(struct page *page, const struct page_course *course);

// Matrix of `count` * `count` values, row by row; NAN: no value. `marks` has the reason for a
// frame, or NULL.
#define PAGE_MATRIX_MAX 256
struct page_matrix {
	const char *caption, *unit;
	uint32_t count;
	const char *const *names;
	const double *values;
	const char *const *marks;
};
void page_matrix(struct page *page, const struct page_matrix *matrix);

// Write a text inside HTML or SVG, with markup characters escaped.
void page_put_text(FILE *file, const char *text);

// Write the page. Returns 0, -ENOMEM if memory ran out, or -EIO.
int page_write(struct page *page, FILE *file);
