// SPDX-License-Identifier: BSD-3-Clause
// A row of figures, as JSON and as text. Private to the benchmarks of the software device.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

enum soft_judged { SOFT_JUDGED_RATIO, SOFT_JUDGED_VALUE };

// Description of a row before it is measured.
struct soft_head {
	const char *what;
	const char *unit;
	const char *yardstick; // NULL: none
	enum soft_judged judged;
	bool at_least;
	double target; // 0: none
};

// One value per slice, in the order of slices.
struct soft_slices {
	double values[9], yardsticks[9]; // SOFT_SLICES
};

// Make the row of a measurement. Sorts the slices. A target is missed if the whole interval misses
// it.
json_t *soft_table_row(const struct soft_head *head, struct soft_slices *slices);
// Make the row of a failed measurement.
json_t *soft_table_missing(const struct soft_head *head, const char *why);
// Return true if the target is met or there is none.
bool soft_table_ok(const json_t *row);
void soft_table_print_head(void);
void soft_table_print(const json_t *row);
