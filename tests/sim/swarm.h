// SPDX-License-Identifier: BSD-3-Clause
// Random mixes of faults, one per seed; one that breaks an invariant is made smaller.
#pragma once

#include "run.h"

#include <stdint.h>
#include <stdio.h>

// Plays `count` mixes, from options->seed on. *ret_broken says how many broke something; the
// first of them is shrunk and shown. 0 or -errno.
int swarm_play(const struct run_options *options, uint32_t count, FILE *to, uint32_t *ret_broken);
