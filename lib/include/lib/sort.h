// SPDX-License-Identifier: BSD-3-Clause
// In-place sorting that allocates no memory (libc's qsort() may).
#pragma once

#include <stddef.h>

// Sort rows in at most count x log(count) time. Not stable, so `compare` must decide everything
// that matters.
void sort_rows(
	void *rows, size_t count, size_t row_bytes, int (*compare)(const void *a, const void *b)
);
