// SPDX-License-Identifier: BSD-3-Clause
// The paths as workers see them: which pair leads to a peer's memory, and where that memory lies.
// Immutable versions, published by RCU, as the peer table is.
//
// Control sets and clears rows of the version to come and publishes it; a worker takes the present
// version in each turn and keeps nothing of it beyond. So a path is taken away in four steps:
// clear the row, publish, wait until path_table_settled() has come to that version, and only then
// drain and destroy its pair: no worker can submit to it any more.
//
// All rows travel with each version: there are few, and changes come in groups.
#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#define PATH_TABLE_ROWS_MAX 4096
// Versions that readers have not let go of yet; beyond it publishing is refused.
#define PATH_TABLE_WAITING_MAX 8

struct lane;

// One line of the cache: what a probe needs.
struct path_row {
	alignas(64) uint64_t peer; // the overlay's id; 0: no row
	uint64_t incarnation;	   // the first one of the start whose memory this is
	struct lane *lane;
	uint64_t remote_address; // the peer's page
	uint32_t remote_key;
	uint32_t remote_length; // 0: there is nothing to read
	uint32_t pair;		// slot in the lane
	uint32_t generation;
	uint32_t flow_label;
	uint32_t peer_slot; // the peer's row in the peer table, if it is known there
	uint8_t traffic_class;
	bool in_process; // the peer's device answers only while its process runs
};
static_assert(sizeof(struct path_row) == 64, "a row is one line of the cache");

struct path_table;
struct path_snapshot;

// Control, after rcu_reclaimer_start(). An empty version is published. -ENOMEM, -errno of eventfd.
int path_table_create(struct path_table **ret_table);
// Control, offline, when no reader is left. Waits for the reclaimer. NULL is fine.
struct path_table *path_table_destroy(struct path_table *table);

// Control: the version to come. -EINVAL (slot, peer 0), -ENOMEM; then nothing has changed.
int path_table_set(struct path_table *table, uint32_t slot, const struct path_row *row);
// 0 also if there is no row; -EINVAL, -ENOMEM.
int path_table_clear(struct path_table *table, uint32_t slot);
// The row as the version to come has it, NULL if there is none; valid until the next call.
const struct path_row *path_table_newest(const struct path_table *table, uint32_t slot);
// Control, online. *ret_version is that of the version that readers have from now on; nothing to
// publish is fine. -EAGAIN (readers hold too many); then changes are kept for the next try.
int path_table_publish(struct path_table *table, uint64_t *ret_version);

// Versions below this are in nobody's hands any more. Grows; when it has, the descriptor is
// readable until path_table_settled() is called.
uint64_t path_table_settled(struct path_table *table);
int path_table_fd(const struct path_table *table);

// Readers, hot: valid until the next quiescent state.
const struct path_snapshot *path_table_snapshot(const struct path_table *table);
// NULL if there is no row in the slot.
const struct path_row *path_snapshot_row(const struct path_snapshot *snapshot, uint32_t slot);
