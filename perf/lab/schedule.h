// SPDX-License-Identifier: BSD-3-Clause
// When the operations of an open loop are due: all of it known before the first one begins.
#pragma once

#include "plan.h"
#include "why.h"

#include <stdint.h>

// Times after the beginning, ascending, by the plan; of a trace those of the file: one a line, in
// seconds with up to nine decimals, blank lines and those behind # left out. The caller frees them.
// The same plan, the same times. -errno with the reason.
int schedule_make(
	const struct plan *plan,
	const char *trace_path,
	struct lab_why *why,
	uint64_t **ret_due_ns,
	uint64_t *ret_count
);
// The longest time in which none is due, from the beginning on.
uint64_t schedule_pause_max_ns(const uint64_t *due_ns, uint64_t count);
