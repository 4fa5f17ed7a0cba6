// SPDX-License-Identifier: BSD-3-Clause
// One row of figures, as JSON and on paper. Private to the benchmarks of the software device.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

enum soft_judged { SOFT_JUDGED_RATIO, SOFT_JUDGED_VALUE };

// What a row says before it is measured.
struct soft_head {
	const char *what;
	const char *unit;
	const char *yardstick; // NULL: none
	enum soft_judged judged;
	bool at_least;
	double target; // 0: none
};

// One of each slice, in the order of slices.
struct soft_slices {
	double values[9], yardsticks[9]; // SOFT_SLICES
};

// Puts the slices in order. What was missed is missed by the whole interval.
json_t *soft_table_row(const struct soft_head *head, struct soft_slices *slices);
// It could not be measured.
json_t *soft_table_missing(const struct soft_head *head, const char *why);
// Met, or without a target.
bool soft_table_ok(const json_t *row);
void soft_table_print_head(void);
void soft_table_print(const json_t *row);
