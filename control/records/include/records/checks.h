// SPDX-License-Identifier: BSD-3-Clause
// CHECKS: a local check of a node.
#pragma once

#include <lib/record.h>

struct check_row {
	const char *name;
	const char *command; // NULL for a check of the agent itself
	uint64_t interval_ns, timeout_ns;
	const char *said;
	const char *reason;
	json_t *last;
	bool running;
	uint64_t next_ns;
	json_t *stuck;
	json_t *counts;
};

extern const struct record check_record;
