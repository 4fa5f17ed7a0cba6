// SPDX-License-Identifier: BSD-3-Clause
// Rates of bw on the page of a run. `file` is the result of one size in a verified file.
#pragma once

#include "run/result.h"

struct json_t;
struct page;

// Put the median rate, the 99 % rate, the mean rate and the worst window as tiles.
void page_rates_tiles(struct page *page, const struct json_t *file);
// Put the table that the terminal shows, too.
void page_rates_table(
	struct page *page, const struct json_t *file, const struct lab_result *result
);
// Put a chart with a curve of the median and one of the 99 % rate over several sizes.
void page_rates_sizes(struct page *page, const struct json_t *results);
