// SPDX-License-Identifier: BSD-3-Clause
// What the writing and the reading half of the peer table share: how a version is laid out.
#pragma once

#include <dataplane/peer_table.h>
#include <lib/rcu.h>

#include <stdatomic.h>

#define PEER_CHUNK_ROWS 32

// Begins everything that one version may take over from the one before. Only the writer and,
// after the grace period, the reclaimer look at it.
struct peer_piece {
	struct peer_piece *next; // in the list of what goes with the version that was left
	size_t size;
};

struct peer_chunk {
	alignas(64) struct peer_piece piece;
	struct peer_row rows[PEER_CHUNK_ROWS]; // name_length 0: empty
};

// Open addressing by the low half of the id, which is a hash already; at most half full, so
// that a look-up ends. The high half stands beside the slot: a stranger on the way costs no
// look at its row.
struct peer_place {
	uint32_t tag;
	uint32_t slot; // + 1, 0 for empty
};

struct peer_index {
	struct peer_piece piece;
	uint32_t mask;
	struct peer_place places[];
};

struct peer_snapshot {
	struct peer_view view;
	struct peer_index *index;
	uint32_t chunk_count;
	size_t size;
	// For the way out: written by the writer when the version is left.
	struct peer_table *table;
	struct peer_piece *stale;
	uint64_t stale_bytes;
	struct rcu_head rcu;
	struct peer_chunk *chunks[]; // NULL: no row in any of its slots
};

struct peer_table {
	struct peer_snapshot *current; // control: rw, readers: ro, by RCU
	// A line of their own: these change at every set, and readers would feel it.
	alignas(64) struct peer_snapshot *next; // control only; NULL: nothing has changed
	bool members_changed;			// against current
	_Atomic uint64_t allocated_bytes;	// control and reclaimer: rw, others: ro
	_Atomic uint64_t waiting_bytes;		// likewise
	_Atomic uint64_t published;		// control: rw, others: ro
	_Atomic uint64_t refused;		// control: rw, others: ro
};

static inline bool peer_row_used(const struct peer_row *row) {
	return row->name_length != 0;
}
