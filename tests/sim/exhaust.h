// SPDX-License-Identifier: BSD-3-Clause
// Every combination of a few faults in a small ring, played one after the other.
#pragma once

#include "run.h"

#include <stdint.h>
#include <stdio.h>

#define EXHAUST_NODES_MIN 3
#define EXHAUST_NODES_MAX 5
#define EXHAUST_DEPTH_MAX 3
#define EXHAUST_JOBS_MAX 256

struct exhaust_options {
	uint32_t depth; // largest number of faults in a combination
	uint32_t jobs;	// runs in progress at once
	uint64_t from;	// index of the first combination to play
};

// Play all combinations of a ring of run->nodes. *ret_broken is the number of combinations that
// broke an invariant and are no known fault. Prints each combination that breaks an invariant, and
// at the end the number of combinations and the verdicts of the healthy nodes on the faulty ones.
// Equal options print the same, whatever `jobs` is. SIGINT and SIGTERM end the search after the
// runs in progress; the last line is the --from that continues it. Returns 0 or -errno.
int exhaust_play(
	const struct run_options *run,
	const struct exhaust_options *options,
	FILE *to,
	uint64_t *ret_broken
);
