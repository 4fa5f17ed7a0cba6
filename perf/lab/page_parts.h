// SPDX-License-Identifier: BSD-3-Clause
// What pages of all kinds share: values as text, tables of facts, the file.
#pragma once

#include "why.h"

struct json_t;
struct page;

#define PAGE_CELL_BYTES 96

// "" where it is no text.
const char *page_member_text(const struct json_t *object, const char *key);
// Three figures that matter at least: 0.842, 8.42, 84.2, 8421.
void page_show_us(double value_ns, char text[static PAGE_CELL_BYTES]);
// Words and their values, and one of the machine's: hostile where they come from a file.
void page_facts(struct page *page, const char *heading, const struct json_t *object);
// Writes any page; "-" is standard output.
int page_save(struct page *page, const char *path, struct lab_why *why);
