// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the writing and the reading part of the peer table: the layout of a
// version.
#pragma once

#include <dataplane/peer_table.h>
#include <lib/rcu.h>

#include <stdatomic.h>

#define PEER_CHUNK_ROWS 32

// Header of each part that a version may inherit from its predecessor. Only the writer uses it, and
// the reclaimer after the grace period.
struct peer_part {
	struct peer_part *next; // in the list of parts to free with a retired version
	size_t size;
};

struct peer_chunk {
	alignas(64) struct peer_part piece;
	struct peer_row rows[PEER_CHUNK_ROWS]; // name_length 0: empty row
};

// Open addressing by the low half of the id, which is already a hash. At most half full, so that
// each lookup ends. The high half is stored beside the slot, so that a mismatch needs no access to
// the row.
struct peer_index_slot {
	uint32_t tag;
	uint32_t slot; // slot + 1; 0: empty
};

struct peer_index {
	struct peer_part piece;
	uint32_t mask;
	struct peer_index_slot places[];
};

struct peer_snapshot {
	struct peer_view view;
	struct peer_index *index;
	uint32_t chunk_count;
	size_t size;
	// For retirement: set by the writer when the version is replaced.
	struct peer_table *table;
	struct peer_part *stale;
	uint64_t stale_bytes;
	struct rcu_head rcu;
	struct peer_chunk *chunks[]; // NULL: all its rows are empty
};

struct peer_table {
	struct peer_snapshot *current; // control: read and write; readers: read, by RCU
	// On another cache line: these fields change with every set, which would slow down readers.
	alignas(64) struct peer_snapshot *next; // only control; NULL: no changes
	bool members_changed;			// compared with current
	// Control and reclaimer: read and write, others: read
	_Atomic uint64_t allocated_bytes;
	_Atomic uint64_t waiting_bytes; // the same
	_Atomic uint64_t published;	// control: read and write, others: read
	_Atomic uint64_t refused;	// control: read and write, others: read
};

static inline bool peer_row_used(const struct peer_row *row) {
	return row->name_length != 0;
}
