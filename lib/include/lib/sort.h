// SPDX-License-Identifier: BSD-3-Clause
// Sorting in place without memory of its own (libc's may allocate).
#pragma once

#include <stddef.h>

// Never slower than count x log(count). Not stable, so that `compare` decides all that matters.
void sort_rows(
	void *rows, size_t count, size_t row_bytes, int (*compare)(const void *a, const void *b)
);
