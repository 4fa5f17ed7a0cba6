// SPDX-License-Identifier: BSD-3-Clause
// Ranks of numbers: 1 is the smallest, equal ones share the mean of theirs.
#pragma once

#include <stdint.h>

// For qsort(); no NAN.
int doubles_compare(const void *a, const void *b);
// O(n log n). `scratch` and `ret_ranks` have room for `count` each.
void ranks_make(const double *values, uint32_t count, double *scratch, double *ret_ranks);
