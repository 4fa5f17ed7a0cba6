// SPDX-License-Identifier: BSD-3-Clause
// Who came last, and how late, operation by operation.
#pragma once

#include <jobs/judge.h>

// False: nobody comes last more often than chance, or not late enough to matter.
bool book_straggler(
	const struct jobs_book *book,
	const struct ras_merged_comm *comm,
	struct jobs_straggler *ret_straggler
);
