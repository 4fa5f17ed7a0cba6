// SPDX-License-Identifier: BSD-3-Clause
// Functions shared by all pages: numbers as text, tables of facts, and the file.
#pragma once

#include "run/why.h"

struct json_t;
struct page;

#define PAGE_CELL_BYTES 96

// Return the text of a member, or "" if it is no text.
const char *page_member_text(const struct json_t *object, const char *key);
// Format microseconds with at least three significant digits: 0.842, 8.42, 84.2, 8421.
void page_format_us(double value_ns, char text[static PAGE_CELL_BYTES]);
// Put a table of the keys and values of an object. Values from files are untrusted.
void page_facts(struct page *page, const char *heading, const struct json_t *object);
// Write a page; "-" is standard output. Returns 0, or -errno with the reason in `why`.
int page_save(struct page *page, const char *path, struct lab_why *why);
