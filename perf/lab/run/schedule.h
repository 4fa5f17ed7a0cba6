// SPDX-License-Identifier: BSD-3-Clause
// Schedule of an open loop: the due times of all operations, known before the first one starts.
#pragma once

#include "run/plan.h"
#include "run/why.h"

#include <stdint.h>

// Make the due times, ascending and relative to the start. A trace is read from its file: one time
// per line, in seconds with up to nine decimals. Blank lines and lines with # are skipped. The same
// plan gives the same times. The caller frees *ret_due_ns. Returns 0, or -errno with the reason in
// `why`.
int schedule_make(
	const struct plan *plan,
	const char *trace_path,
	struct lab_why *why,
	uint64_t **ret_due_ns,
	uint64_t *ret_count
);
// Return the longest interval between due times, including the one before the first.
uint64_t schedule_pause_max_ns(const uint64_t *due_ns, uint64_t count);
