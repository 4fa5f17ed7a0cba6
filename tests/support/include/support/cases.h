// SPDX-License-Identifier: BSD-3-Clause
// Tables of cases: what is read, and what comes of it.
#pragma once

#include <stddef.h>

#define COUNT_OF(rows) (sizeof(rows) / sizeof((rows)[0]))

// A text and its length, which an embedded NUL does not end.
#define TEXT(literal) literal, sizeof(literal) - 1

struct error_text {
	const char *text;
	size_t length;
	int err;
};
