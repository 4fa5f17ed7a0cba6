// SPDX-License-Identifier: BSD-3-Clause
// Rows of the software device's benchmark: what is measured, and its yardstick.
#pragma once

#include "soft.h"
#include "soft_table.h"

struct soft_row {
	struct soft_head head;
	const struct soft_setup *setup;
	struct soft_order order;
	double scale; // factor from the measured to the printed value
	const struct soft_setup *beside;
	struct soft_order beside_order;
};

struct soft_rows {
	const char *bench;
	const struct soft_row *rows;
	uint32_t count;
};

// Rows with plain sockets and ports as yardsticks; rows with the kernel's devices rxe0 and rxe1.
extern const struct soft_rows soft_rows_plain, soft_rows_rxe;

// Make names of resources that only one process at a time can use. Must be called before any row is
// measured.
void soft_rows_prepare(void);
