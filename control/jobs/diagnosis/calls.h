// SPDX-License-Identifier: BSD-3-Clause
// Waits between two ranks: the calls of MPI that ranks are inside, and the deadlocks that they
// prove.
#pragma once

#include "survey.h"

// Return whether the rank at this place can never leave its call: each rank that it waits for,
// directly or through others, waits as well, and no two of these calls fit each other.
bool calls_block_for_ever(
	const struct ras_merged_comm *comm, const struct survey *survey, uint32_t place
);
// Store a cycle of ranks that wait for each other, in order. Of a longer one, the first
// JOBS_NAMED_MAX are stored. Returns its length, or 0 if there is none. Must not be called
// while a rank waits in a collective operation.
uint32_t calls_find_cycle(
	const struct ras_merged_comm *comm,
	const struct survey *survey,
	uint32_t ret_places[JOBS_NAMED_MAX]
);
