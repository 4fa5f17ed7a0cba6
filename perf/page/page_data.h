// SPDX-License-Identifier: BSD-3-Clause
// Files embedded in each page by embed.py.
#pragma once

#include <stddef.h>

struct page_bytes {
	const unsigned char *bytes;
	size_t count;
};
extern const struct page_bytes page_uplot, page_uplot_style, page_style;
extern const struct page_bytes page_charts, page_kinds, page_script;
