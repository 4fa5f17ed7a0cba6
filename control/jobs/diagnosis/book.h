// SPDX-License-Identifier: BSD-3-Clause
// Which rank came last, and how late, per operation.
#pragma once

#include <jobs/judge.h>

// Returns false if no rank comes last more often than by chance, or none is late enough to matter.
bool wait_history_find_straggler(
	const struct jobs_wait_history *book,
	const struct ras_merged_comm *comm,
	struct jobs_straggler *ret_straggler
);
