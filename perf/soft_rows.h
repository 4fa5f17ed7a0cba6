// SPDX-License-Identifier: BSD-3-Clause
// What is measured of the software device, and beside what.
#pragma once

#include "soft.h"
#include "soft_table.h"

struct soft_row {
	struct soft_head head;
	const struct soft_setup *setup;
	struct soft_order order;
	double scale; // of what is printed
	const struct soft_setup *beside;
	struct soft_order beside_order;
};

struct soft_rows {
	const char *bench;
	const struct soft_row *rows;
	uint32_t count;
};

// Beside plain sockets and ports; and beside rxe0 and rxe1, the kernel's devices.
extern const struct soft_rows soft_rows_plain, soft_rows_rxe;

// Names of what only one process at a time can have. Before any row is measured.
void soft_rows_prepare(void);
