// SPDX-License-Identifier: BSD-3-Clause
// A page of text made from an answer of the agent, which is JSON. The agent answers facts; every
// table and sentence of `tocsin` is made here, in agent/cli/show.
//
// Facts come from other machines: a fact that is missing, or of another type, reads as unknown.
// page_begin() makes all strings of an answer fit for a terminal first.
#pragma once

#include <lib/show.h>

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PAGE_COLUMNS 100

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
// The value for a column so wide: cut, and copied to `cell`, unless the page is whole.
const char *
page_cell(const struct page *page, const char *value, size_t width, char cell[static SHOW_BYTES]);
// Broken at blanks, so that no line has more columns than a page as far as words allow, with an
// indent of the first line and of the rest.
void page_wrap(struct page *page, int first, int rest, const char *words);
// Evidence, below the row that it belongs to.
void page_words(struct page *page, const char *words);

// Facts.

// "" if there is none.
const char *fact_word(const json_t *object, const char *key);
// The same, "?" if there is none.
const char *fact_name(const json_t *object, const char *key);
bool fact_is(const json_t *object, const char *key, const char *word);
bool fact_holds(const json_t *object, const char *key); // true
bool fact_known(const json_t *object, const char *key); // neither missing nor null
// 0 if it is no number, or below 0.
uint64_t fact_number(const json_t *object, const char *key);
// In text, "-" if it is not known: nanoseconds, seconds, bytes.
void fact_duration(const json_t *object, const char *key, char text[static SHOW_BYTES]);
void fact_seconds(const json_t *object, const char *key, char text[static SHOW_BYTES]);
void fact_bytes(const json_t *object, const char *key, char text[static SHOW_BYTES]);
// A count of any size, in six characters; 0 if it is not known.
void fact_count(const json_t *object, const char *key, char text[static SHOW_BYTES]);
void count_show(uint64_t count, char text[static SHOW_BYTES]);
