// SPDX-License-Identifier: BSD-3-Clause
// Functions shared by all pages, which are JSON for <page.h>.
#pragma once

#include "run/why.h"

#include <stdint.h>

struct json_t;
struct page;

#define PAGE_CELL_BYTES 96

// Return a text member; "" if it is missing or no text.
const char *page_member_text(const struct json_t *object, const char *key);
// Format microseconds with at least three significant digits: 0.842, 8.42, 84.2, 8421.
void page_format_us(double value_ns, char text[static PAGE_CELL_BYTES]);

// Convert to JSON. Return NULL if there is no memory. NAN becomes null. The bytes of invalid UTF-8
// become "?", because names come from other machines.
struct json_t *page_text(const char *text);
struct json_t *page_number(double value);
struct json_t *page_numbers(const double *values, uint32_t count);

// Replace a member of `object` by a shallow copy without its own member `without`. A missing member
// is ignored. Returns 0, or -1 without memory.
int page_thin_member(struct json_t *object, const char *key, const char *without);

// Write a page to a file and release its JSON; NULL is JSON that found no memory. Returns 0, or
// -errno with the reason in `why`.
int page_save(struct page *page, struct json_t *json, const char *path, struct lab_why *why);
