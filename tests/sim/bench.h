// SPDX-License-Identifier: BSD-3-Clause
// The figures to reach, at their sizes, with the seed's profile beside them.
#pragma once

#include "run.h"

#include <stdbool.h>
#include <stdio.h>

// Plays what the rows need, each in a process of its own, and prints the table or one JSON
// object. Of `options` seed, progress and length count. 0 or -errno.
int bench_play(const struct run_options *options, bool json, FILE *to, bool *ret_met);
