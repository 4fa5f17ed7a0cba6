// SPDX-License-Identifier: BSD-3-Clause
// Random mixes of faults, one per seed; a mix that breaks an invariant is shrunk.
#pragma once

#include "run.h"

#include <stdint.h>
#include <stdio.h>

// Play `count` mixed runs, from options->seed on. *ret_broken is the number of runs that broke an
// invariant; the first of them is shrunk and printed. Returns 0 or -errno.
int swarm_play(const struct run_options *options, uint32_t count, FILE *to, uint32_t *ret_broken);
