// SPDX-License-Identifier: BSD-3-Clause
// MAINTENANCE: a node in maintenance, with the order behind it.
#pragma once

#include <lib/record.h>

struct maintenance_row {
	const char *node;
	uint64_t for_ns, left_ns;
	const char *user, *reason, *since; // NULL if unknown
	uint64_t uid;
	uint32_t version;
};

extern const struct record maintenance_record;
