// SPDX-License-Identifier: BSD-3-Clause
// Target figures of the simulator, with the profile of the seed for comparison.
#pragma once

#include "run.h"

#include <stdbool.h>
#include <stdio.h>

// Play the runs that the rows need, each in its own process, and print a table or one JSON
// object. Uses only seed, progress and length of `options`. Returns 0 or -errno.
int bench_play(const struct run_options *options, bool json, FILE *to, bool *ret_met);
