// SPDX-License-Identifier: BSD-3-Clause
// Statistics of visited paths, kept between visits: an open-addressing hash table by peer and
// devices.
#include "fabric/probing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SIZE_MIN 64
#define HASH_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

// Return the entry of a key, or the empty entry where it would be stored.
static struct stats_entry *stats_entry_find(
	const struct compact_table *compact_table,
	uint64_t peer,
	uint32_t device,
	const char *peer_device
) {
	uint32_t place = (uint32_t)(((peer ^ device) * HASH_MULTIPLIER) >> 32);

	for (;; place++) {
		struct stats_entry *entry =
			&compact_table->entries[place & (compact_table->max - 1)];

		if (entry->peer == 0 || (entry->peer == peer && entry->device == device &&
					 strcmp(entry->peer_device, peer_device) == 0))
			return entry;
	}
}

// Rehash the occupied entries into a table of the given size.
static bool compact_table_resize(struct compact_table *compact_table, uint32_t max) {
	struct compact_table larger = {.max = max, .count = compact_table->count};

	larger.entries = calloc(max, sizeof(larger.entries[0]));
	if (larger.entries == NULL)
		return false;
	for (uint32_t n = 0; n < compact_table->max; n++) {
		const struct stats_entry *entry = &compact_table->entries[n];

		if (entry->peer != 0)
			*stats_entry_find(&larger, entry->peer, entry->device, entry->peer_device) =
				*entry;
	}
	free(compact_table->entries);
	*compact_table = larger;
	return true;
}

struct compact_stats *
compact_table_get(struct compact_table *compact_table, const struct pairing_key *key) {
	struct stats_entry *entry;

	// Keep the table at most half full.
	if (2 * (compact_table->count + 1) > compact_table->max &&
	    !compact_table_resize(
		    compact_table, compact_table->max != 0 ? 2 * compact_table->max : TABLE_SIZE_MIN
	    ))
		return NULL;
	entry = stats_entry_find(compact_table, key->peer, key->device, key->peer_device);
	if (entry->peer != 0)
		return entry->stats;
	entry->stats = malloc(compact_stats_bytes());
	if (entry->stats == NULL)
		return NULL;
	compact_stats_init(entry->stats);
	entry->peer = key->peer;
	entry->device = key->device;
	snprintf(entry->peer_device, sizeof(entry->peer_device), "%s", key->peer_device);
	compact_table->count++;
	return entry->stats;
}

void compact_table_set_visit(
	struct compact_table *compact_table,
	const struct pairing_key *key,
	enum observation_kind kind,
	uint64_t now_ns
) {
	struct stats_entry *entry =
		stats_entry_find(compact_table, key->peer, key->device, key->peer_device);

	if (entry->peer == 0)
		return; // the peer was removed from the table meanwhile
	if (!entry->visited || entry->kind != kind)
		entry->since_ns = now_ns;
	entry->visited = true;
	entry->kind = kind;
}

void compact_table_sweep(
	struct compact_table *compact_table, bool (*keep)(void *ctx, uint64_t peer), void *ctx
) {
	uint32_t before = compact_table->count;

	for (uint32_t n = 0; n < compact_table->max; n++) {
		struct stats_entry *entry = &compact_table->entries[n];

		if (entry->peer == 0 || keep(ctx, entry->peer))
			continue;
		free(entry->stats);
		entry->stats = NULL;
		compact_table->count--;
	}
	if (compact_table->count == before)
		return;
	// Removed entries would end a search early, so the remaining ones are inserted again.
	for (uint32_t n = 0; n < compact_table->max; n++) {
		if (compact_table->entries[n].stats == NULL)
			memset(&compact_table->entries[n], 0, sizeof(compact_table->entries[n]));
	}
	for (uint32_t n = 0; n < 2 * compact_table->max; n++) {
		struct stats_entry *entry = &compact_table->entries[n & (compact_table->max - 1)];
		struct stats_entry moved = *entry;

		if (moved.peer == 0)
			continue;
		memset(entry, 0, sizeof(*entry));
		*stats_entry_find(compact_table, moved.peer, moved.device, moved.peer_device) =
			moved;
	}
}

void compact_table_free(struct compact_table *compact_table) {
	for (uint32_t n = 0; n < compact_table->max; n++)
		free(compact_table->entries[n].stats);
	free(compact_table->entries);
	*compact_table = (struct compact_table){0};
}
