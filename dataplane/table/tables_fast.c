// SPDX-License-Identifier: BSD-3-Clause
// Lookups of peers and paths: for workers before every probe, and for HTTP pages.
#include "table/path_table_impl.h"
#include "table/peer_table_impl.h"

const struct peer_snapshot *peer_table_snapshot(const struct peer_table *table) {
	return rcu_dereference(table->current);
}

const struct peer_view *peer_snapshot_view(const struct peer_snapshot *snapshot) {
	return &snapshot->view;
}

const struct peer_row *peer_snapshot_row(const struct peer_snapshot *snapshot, uint32_t slot) {
	const struct peer_chunk *chunk;
	const struct peer_row *row;

	if (slot / PEER_CHUNK_ROWS >= snapshot->chunk_count)
		return NULL;
	chunk = snapshot->chunks[slot / PEER_CHUNK_ROWS];
	if (chunk == NULL)
		return NULL;
	row = &chunk->rows[slot % PEER_CHUNK_ROWS];
	return peer_row_used(row) ? row : NULL;
}

const struct peer_row *peer_snapshot_find(const struct peer_snapshot *snapshot, uint64_t id) {
	const struct peer_index *index = snapshot->index;
	const struct peer_index_slot *place;
	const struct peer_row *row;

	for (uint32_t n = (uint32_t)id;; n++) {
		place = &index->places[n & index->mask];
		if (place->slot == 0)
			return NULL;
		if (place->tag != (uint32_t)(id >> 32))
			continue;
		row = peer_snapshot_row(snapshot, place->slot - 1);
		if (row != NULL && row->id == id)
			return row;
	}
}

const struct path_snapshot *path_table_snapshot(const struct path_table *table) {
	return rcu_dereference(table->current);
}

const struct path_row *path_snapshot_row(const struct path_snapshot *snapshot, uint32_t slot) {
	const struct path_row *row;

	if (slot >= snapshot->row_count)
		return NULL;
	row = &snapshot->rows[slot];
	return row->peer != 0 ? row : NULL;
}
