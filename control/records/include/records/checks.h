// SPDX-License-Identifier: BSD-3-Clause
// CHECKS: a local check of a node.
#pragma once

#include <lib/record.h>

struct check_row {
	const char *name;
	const char *command; // NULL for a check of the agent itself
	double interval_s, timeout_s;
	const char *said;
	const char *reason;
	json_t *last;
	bool running;
	double next_s;
	json_t *stuck;
	json_t *counts;
};

extern const struct record check_record;
