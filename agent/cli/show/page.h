// SPDX-License-Identifier: BSD-3-Clause
// A page of text made from an answer of the agent, which is JSON. The agent answers facts; every
// table and sentence of `tocsin` is made here, in agent/cli/show.
//
// page_begin() makes all strings of an answer fit for a terminal first.
#pragma once

#include <lib/fact.h>
#include <lib/record.h>

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PAGE_COLUMNS 80

struct page {
	FILE *text; // what was printed so far, in memory
	char *bytes;
	size_t size;
	bool whole; // columns of tables are not cut
};

// Shows one answer. What it prints ends in a newline.
typedef void show_fn(struct page *page, const json_t *answer);

// 0, or -errno.
int page_begin(struct page *page, bool whole, json_t *answer);
// Writes the page, in colours if they are wanted, and frees it.
void page_end(struct page *page, bool coloured, FILE *out);

__attribute__((format(printf, 2, 3))) void page_print(struct page *page, const char *format, ...);
// Return the value, cut to `width` columns if it is longer; the cut text is then in `cell`. A whole
// page cuts nothing.
const char *
page_cell(const struct page *page, const char *value, size_t width, char cell[static SHOW_BYTES]);
// Prints lines below a row.
typedef void page_note_fn(struct page *page, const json_t *row);
// Prints a table, with the lines of `note` below each row if it is not NULL. On a terminal the
// table has PAGE_COLUMNS columns at most.
void page_table(
	struct page *page, const struct record *record, const json_t *rows, page_note_fn *note
);
// Broken at blanks, so that no line has more columns than a page as far as words allow, with an
// indent of the first line and of the rest.
void page_wrap(struct page *page, int first, int rest, const char *words);
// Returns how long it took to ask all agents, in seconds. An older agent has it as `seconds`.
double page_answer_seconds(const json_t *answer);
// Evidence, below the row that it belongs to.
void page_words(struct page *page, const char *words);
