// SPDX-License-Identifier: BSD-3-Clause
// Tables of test cases: input and expected result.
#pragma once

#include <stddef.h>

#define COUNT_OF(rows) (sizeof(rows) / sizeof((rows)[0]))

// A text and its length, which may contain NULs.
#define TEXT(literal) literal, sizeof(literal) - 1

struct error_text {
	const char *text;
	size_t length;
	int err;
};
