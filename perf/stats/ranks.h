// SPDX-License-Identifier: BSD-3-Clause
// Ranks of numbers: 1 is the smallest; equal numbers share their mean rank.
#pragma once

#include <stdint.h>

// Comparisons for qsort(), of doubles that are not NAN, and of uint64_t.
int doubles_compare(const void *a, const void *b);
int samples_compare(const void *a, const void *b);
// Compute ranks in O(n log n). `scratch` and `ret_ranks` have room for `count` values each.
void ranks_compute(const double *values, uint32_t count, double *scratch, double *ret_ranks);
