// SPDX-License-Identifier: BSD-3-Clause
// The rates of bw on a page of a run. `file` is the result of one size in a verified file.
#pragma once

#include "result.h"

struct json_t;
struct page;

// The median, 99 % and mean rate, and the worst window, in large letters.
void page_rates_tiles(struct page *page, const struct json_t *file);
// What the table of the terminal has.
void page_rates_table(
	struct page *page, const struct json_t *file, const struct lab_result *result
);
// Of several sizes, a curve for each of two rates.
void page_rates_sizes(struct page *page, const struct json_t *results);
