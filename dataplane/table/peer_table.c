// SPDX-License-Identifier: BSD-3-Clause
// Writes the peer table. The control thread owns the next version and publishes it to readers. The
// reclaimer thread frees what no reader can hold any more.
//
// Versions form one sequence. A part (chunk, index) that a version replaced is in no later version.
// A thread that can reach the part must have read a version before the swap. So the part is freed
// together with the replaced version, without reference counts:
//
//	workers    hold versions and rows up to their next quiescent state, once a turn of their
//	           loop, or until they go offline, before any sleep
//	http       is online inside of a request only
//	control    reads `current` as its only writer, and never keeps a row over a publish
//	reclaimer  is called after all of these passed a quiescent state that began after the swap
#include "table/peer_table_impl.h"

#include <lib/must.h>
#include <lib/rcu_reclaimer.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_PLACES_MIN 8

static void count_add(_Atomic uint64_t *counter, uint64_t by) {
	// Relaxed: the counter bounds memory and orders nothing.
	atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

static void count_subtract(_Atomic uint64_t *counter, uint64_t by) {
	atomic_fetch_sub_explicit(counter, by, memory_order_relaxed);
}

static uint64_t count_read(const _Atomic uint64_t *counter) {
	return atomic_load_explicit(counter, memory_order_relaxed);
}

// Allocate zeroed memory, aligned for rows. Returns NULL if there is none.
static void *table_alloc(struct peer_table *table, size_t size) {
	size_t rounded = (size + 63) & ~(size_t)63;
	void *memory = aligned_alloc(64, rounded);

	if (memory == NULL)
		return NULL;
	memset(memory, 0, size);
	count_add(&table->allocated_bytes, size);
	return memory;
}

static void table_free(struct peer_table *table, void *memory, size_t size) {
	count_subtract(&table->allocated_bytes, size);
	free(memory);
}

static size_t snapshot_size(uint32_t chunk_count) {
	const struct peer_snapshot *snapshot = NULL;

	return sizeof(*snapshot) + chunk_count * sizeof(struct peer_chunk *);
}

static struct peer_snapshot *snapshot_create(struct peer_table *table, uint32_t chunk_count) {
	struct peer_snapshot *snapshot = table_alloc(table, snapshot_size(chunk_count));

	if (snapshot == NULL)
		return NULL;
	snapshot->size = snapshot_size(chunk_count);
	snapshot->chunk_count = chunk_count;
	snapshot->table = table;
	return snapshot;
}

// Create the next version with room for chunk_count chunks; it starts as a copy of the current one.
static int open_next_version(struct peer_table *table, uint32_t chunk_count) {
	const struct peer_snapshot *from = table->next != NULL ? table->next : table->current;
	struct peer_snapshot *next;

	if (chunk_count < from->chunk_count)
		chunk_count = from->chunk_count;
	if (from == table->next && chunk_count == from->chunk_count)
		return 0;
	next = snapshot_create(table, chunk_count);
	if (next == NULL)
		return -ENOMEM;
	next->view = from->view;
	next->index = from->index;
	memcpy(next->chunks, from->chunks, from->chunk_count * sizeof(struct peer_chunk *));
	if (table->next != NULL)
		table_free(table, table->next, table->next->size);
	table->next = next;
	return 0;
}

static struct peer_chunk *chunk_of(const struct peer_snapshot *snapshot, uint32_t n) {
	return n < snapshot->chunk_count ? snapshot->chunks[n] : NULL;
}

// Return the row of the next version, in a chunk that no reader sees. Returns NULL if out of
// memory.
static struct peer_row *writable_row(struct peer_table *table, uint32_t slot) {
	uint32_t n = slot / PEER_CHUNK_ROWS;
	struct peer_chunk *seen, *own;

	if (open_next_version(table, n + 1) != 0)
		return NULL;
	seen = chunk_of(table->current, n);
	own = table->next->chunks[n];
	if (own == seen) {
		own = table_alloc(table, sizeof(*own));
		if (own == NULL)
			return NULL;
		if (seen != NULL)
			memcpy(own->rows, seen->rows, sizeof(own->rows));
		own->piece.size = sizeof(*own);
		table->next->chunks[n] = own;
	}
	return &own->rows[slot % PEER_CHUNK_ROWS];
}

int peer_table_set(struct peer_table *table, const struct peer_row *row) {
	struct peer_row *own;

	if (row->slot >= PEER_TABLE_SLOTS_MAX || row->id == 0 || row->name_length == 0)
		return -EINVAL;
	own = writable_row(table, row->slot);
	if (own == NULL)
		return -ENOMEM;
	if (own->id != row->id) {
		table->members_changed = true;
		table->next->view.row_count += peer_row_used(own) ? 0 : 1;
	}
	*own = *row;
	return 0;
}

const struct peer_row *peer_table_next_row(const struct peer_table *table, uint32_t slot) {
	return peer_snapshot_row(table->next != NULL ? table->next : table->current, slot);
}

int peer_table_clear(struct peer_table *table, uint32_t slot) {
	struct peer_row *own;

	if (peer_table_next_row(table, slot) == NULL)
		return 0;
	own = writable_row(table, slot);
	if (own == NULL)
		return -ENOMEM;
	*own = (struct peer_row){0};
	table->members_changed = true;
	table->next->view.row_count--;
	return 0;
}

static struct peer_index *index_create(struct peer_table *table, uint32_t row_count) {
	struct peer_index *index;
	uint32_t places = INDEX_PLACES_MIN;
	size_t size;

	while (places < 2 * row_count)
		places *= 2;
	size = sizeof(*index) + places * sizeof(index->places[0]);
	index = table_alloc(table, size);
	if (index == NULL)
		return NULL;
	index->piece.size = size;
	index->mask = places - 1;
	return index;
}

// Build a new index for the next version, whose members have changed.
static int build_index(struct peer_table *table) {
	struct peer_snapshot *next = table->next;
	struct peer_index *index = index_create(table, next->view.row_count);
	uint32_t slots = next->chunk_count * PEER_CHUNK_ROWS;

	if (index == NULL)
		return -ENOMEM;
	next->view.slots_max = 0;
	for (uint32_t slot = 0; slot < slots; slot++) {
		const struct peer_row *row = peer_snapshot_row(next, slot);
		uint32_t n;

		if (row == NULL)
			continue;
		n = (uint32_t)row->id;
		while (index->places[n & index->mask].slot != 0)
			n++;
		index->places[n & index->mask] = (struct peer_index_slot){
			.tag = (uint32_t)(row->id >> 32),
			.slot = row->slot + 1,
		};
		next->view.slots_max = slot + 1;
	}
	next->index = index;
	return 0;
}

static void retire_part(struct peer_snapshot *stale, struct peer_part *piece) {
	piece->next = stale->stale;
	stale->stale = piece;
	stale->stale_bytes += piece->size;
}

static void free_parts(struct peer_table *table, struct peer_part *piece) {
	while (piece != NULL) {
		struct peer_part *next = piece->next;

		table_free(table, piece, piece->size);
		piece = next;
	}
}

// Step 3 of publishing: free a retired version, on the reclaimer's thread.
static void free_retired_version(struct rcu_head *head) {
	struct peer_snapshot *stale = caa_container_of(head, struct peer_snapshot, rcu);
	struct peer_table *table = stale->table;

	count_subtract(&table->waiting_bytes, stale->stale_bytes);
	free_parts(table, stale->stale);
	table_free(table, stale, stale->size);
}

int peer_table_publish(struct peer_table *table, const struct peer_view *view) {
	uint64_t waiting = count_read(&table->waiting_bytes);
	struct peer_snapshot *stale, *next;
	uint32_t row_count, slots_max;
	int err;

	// Readers hold too much memory of old versions.
	if (waiting > PEER_TABLE_WAITING_BYTES &&
	    waiting > count_read(&table->allocated_bytes) / 2) {
		count_add(&table->refused, 1);
		return -EAGAIN;
	}
	err = open_next_version(table, 0);
	if (err == 0 && table->members_changed)
		err = build_index(table);
	if (err != 0)
		return err;
	table->members_changed = false;

	// Copy the caller's view, but keep the numbers that are counted here.
	next = table->next;
	row_count = next->view.row_count;
	slots_max = next->view.slots_max;
	next->view = *view;
	next->view.row_count = row_count;
	next->view.slots_max = slots_max;

	// Collect the parts that the current version has and the next one does not.
	stale = table->current;
	for (uint32_t n = 0; n < stale->chunk_count; n++) {
		if (stale->chunks[n] != NULL && stale->chunks[n] != next->chunks[n])
			retire_part(stale, &stale->chunks[n]->piece);
	}
	if (stale->index != next->index)
		retire_part(stale, &stale->index->piece);
	stale->stale_bytes += stale->size;
	// 1. swap, 2. wait until no reader can hold the old version (call_rcu), 3.
	//    free_retired_version()
	// The swap has release order: a reader that sees the version sees all its data.
	stale = rcu_xchg_pointer(&table->current, next);
	table->next = NULL;
	count_add(&table->waiting_bytes, stale->stale_bytes);
	count_add(&table->published, 1);
	urcu_qsbr_call_rcu(&stale->rcu, free_retired_version);
	return 0;
}

int peer_table_create(struct peer_table **ret_table) {
	struct peer_table *table = aligned_alloc(64, sizeof(*table));

	if (table == NULL)
		return -ENOMEM;
	memset(table, 0, sizeof(*table));
	table->current = snapshot_create(table, 0);
	if (table->current == NULL)
		goto fail;
	table->current->index = index_create(table, 0);
	if (table->current->index == NULL)
		goto fail;
	*ret_table = table;
	return 0;
fail:
	peer_table_destroy(table);
	return -ENOMEM;
}

struct peer_table *peer_table_destroy(struct peer_table *table) {
	struct peer_snapshot *current, *next;

	if (table == NULL)
		return NULL;
	rcu_reclaimer_drain();
	current = table->current;
	next = table->next;
	for (uint32_t n = 0; next != NULL && n < next->chunk_count; n++) {
		if (next->chunks[n] != chunk_of(current, n))
			table_free(table, next->chunks[n], next->chunks[n]->piece.size);
	}
	// The next version has the index of the current one: a new index is only built right before
	// publishing.
	if (next != NULL)
		table_free(table, next, next->size);
	if (current != NULL) {
		for (uint32_t n = 0; n < current->chunk_count; n++) {
			if (current->chunks[n] != NULL)
				retire_part(current, &current->chunks[n]->piece);
		}
		if (current->index != NULL)
			retire_part(current, &current->index->piece);
		free_parts(table, current->stale);
		table_free(table, current, current->size);
	}
	must(count_read(&table->allocated_bytes) == 0);
	free(table);
	return NULL;
}

void peer_table_memory_use(
	const struct peer_table *table, struct peer_table_memory_use *ret_memory
) {
	*ret_memory = (struct peer_table_memory_use){
		.allocated_bytes = count_read(&table->allocated_bytes),
		.waiting_bytes = count_read(&table->waiting_bytes),
		.published = count_read(&table->published),
		.refused = count_read(&table->refused),
	};
}
