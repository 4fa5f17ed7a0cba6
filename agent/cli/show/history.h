// SPDX-License-Identifier: BSD-3-Clause
// Parts of pages about the past.
#pragma once

#include "show/page.h"

// Print the paths of an answer, each with a curve of the median latency of its periods. The curve
// has a column for each of `periods`; NULL: for each point.
void history_print_paths(struct page *page, const json_t *paths, const json_t *periods);
void history_print_events(struct page *page, const json_t *events);

// A picture of the answer of HISTORY.
void history_svg(const json_t *answer, FILE *out);
