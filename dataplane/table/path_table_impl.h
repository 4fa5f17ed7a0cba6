// SPDX-License-Identifier: BSD-3-Clause
// What the writing and the reading half of the path table share.
#pragma once

#include <dataplane/doorbell.h>
#include <dataplane/path_table.h>
#include <lib/rcu.h>

#include <stdatomic.h>

struct path_snapshot {
	uint64_t version;
	uint32_t row_count; // all rows are in slots below
	struct path_table *table;
	struct rcu_head rcu;
	alignas(64) struct path_row rows[];
};

struct path_table {
	struct path_snapshot *current;		// control: rw, readers: ro, by RCU
	alignas(64) struct path_snapshot *next; // control only; NULL: nothing has changed
	int fd;
	// Reclaimer: rw, control: ro. Release and the acquire of path_table_settled(): what readers
	// did with the version happened before control hears that it is gone.
	_Atomic uint64_t settled;
	_Atomic uint32_t waiting; // versions that were left; control and reclaimer: rw
};
