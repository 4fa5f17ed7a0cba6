// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the writing and the reading part of the path table.
#pragma once

#include <dataplane/doorbell.h>
#include <dataplane/path_table.h>
#include <lib/rcu.h>

#include <stdatomic.h>

struct path_snapshot {
	uint64_t version;
	uint32_t row_count; // all rows have lower slots
	struct path_table *table;
	struct rcu_head rcu;
	alignas(64) struct path_row rows[];
};

struct path_table {
	struct path_snapshot *current;		// control: read and write; readers: read, by RCU
	alignas(64) struct path_snapshot *next; // only control; NULL: no changes
	int fd;
	// Oldest version still in use. Reclaimer: read and write, control: read. Its release pairs
	// with the acquire in path_table_oldest_in_use(): readers' use of a version happens before
	// control sees that the version is gone.
	_Atomic uint64_t settled;
	// Retired versions not yet freed; control and reclaimer: read and write
	_Atomic uint32_t waiting;
};
