// SPDX-License-Identifier: BSD-3-Clause
// The paths as workers see them: the pair that leads to a peer's memory, and the memory's address.
// The table has immutable versions, published by RCU, like the peer table.
//
// Control changes rows of the next version and publishes it. A worker reads the current version in
// each turn and keeps no pointer beyond. A path is therefore removed in four steps: clear the row,
// publish, wait until path_table_oldest_in_use() reaches that version, then drain and destroy the
// pair. No worker can submit to it any more.
//
// Each version copies all rows: there are few, and changes come in groups.
#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#define PATH_TABLE_ROWS_MAX 4096
// Limit of versions that readers still hold; beyond it publishing fails.
#define PATH_TABLE_WAITING_MAX 8

struct lane;

// Data of one path for a probe: one cache line.
struct path_row {
	alignas(64) uint64_t peer; // overlay id; 0: no row
	uint64_t incarnation;	   // first incarnation of the peer's process that owns the memory
	struct lane *lane;
	uint64_t remote_address; // address of the peer's pulse page
	uint32_t remote_key;
	uint32_t remote_length; // 0: nothing to read
	uint32_t pair;		// slot in the lane
	uint32_t generation;
	uint32_t flow_label;
	uint32_t peer_slot; // the peer's row in the peer table, if it has one
	uint8_t traffic_class;
	bool in_process; // the peer's device answers only while the peer's process runs
};
static_assert(sizeof(struct path_row) == 64, "a row is one line of the cache");

struct path_table;
struct path_snapshot;

// Create a table and publish an empty version. Control thread, after rcu_reclaimer_start(). Returns
// -ENOMEM, or -errno of eventfd().
int path_table_create(struct path_table **ret_table);
// Destroy the table when no reader is left; waits for the reclaimer. Control thread, offline. NULL
// is fine.
struct path_table *path_table_destroy(struct path_table *table);

// Set a row of the next version. Control thread. Returns -EINVAL (slot, peer 0) or -ENOMEM; then
// nothing has changed.
int path_table_set(struct path_table *table, uint32_t slot, const struct path_row *row);
// Clear a row. Returns 0 also if the slot is empty; -EINVAL, -ENOMEM.
int path_table_clear(struct path_table *table, uint32_t slot);
// Return the row of the next version, or NULL; valid until the next call.
const struct path_row *path_table_next_row(const struct path_table *table, uint32_t slot);
// Publish the next version. *ret_version is the version that readers see from now on; publishing
// without changes is allowed. Returns -EAGAIN if readers hold too many versions; then changes are
// kept for the next try. Control thread, online.
int path_table_publish(struct path_table *table, uint64_t *ret_version);

// Return the oldest version that a reader may hold. When it grows, the descriptor becomes readable
// until this is called.
uint64_t path_table_oldest_in_use(struct path_table *table);
int path_table_fd(const struct path_table *table);

// Return the current version, valid until the next quiescent state. For readers; hot.
const struct path_snapshot *path_table_snapshot(const struct path_table *table);
// Return the row in the slot, or NULL.
const struct path_row *path_snapshot_row(const struct path_snapshot *snapshot, uint32_t slot);
