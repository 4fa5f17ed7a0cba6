// SPDX-License-Identifier: BSD-3-Clause
// What is kept of paths between their visits: an open-addressed table by peer and devices.
#include "fabric/probing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 64
#define MIX UINT64_C(0x9e3779b97f4a7c15)

// The entry of a key, or the empty one where it would be.
static struct brief_entry *
entry_of(const struct briefs *briefs, uint64_t peer, uint32_t device, const char *peer_device) {
	uint32_t place = (uint32_t)(((peer ^ device) * MIX) >> 32);

	for (;; place++) {
		struct brief_entry *entry = &briefs->entries[place & (briefs->max - 1)];

		if (entry->peer == 0 || (entry->peer == peer && entry->device == device &&
					 strcmp(entry->peer_device, peer_device) == 0))
			return entry;
	}
}

// Into a table of that size, without those that are empty.
static bool move_to(struct briefs *briefs, uint32_t max) {
	struct briefs larger = {.max = max, .count = briefs->count};

	larger.entries = calloc(max, sizeof(larger.entries[0]));
	if (larger.entries == NULL)
		return false;
	for (uint32_t n = 0; n < briefs->max; n++) {
		const struct brief_entry *entry = &briefs->entries[n];

		if (entry->peer != 0)
			*entry_of(&larger, entry->peer, entry->device, entry->peer_device) = *entry;
	}
	free(briefs->entries);
	*briefs = larger;
	return true;
}

struct path_brief *briefs_take(struct briefs *briefs, const struct pairing_key *key) {
	struct brief_entry *entry;

	// At most half full.
	if (2 * (briefs->count + 1) > briefs->max &&
	    !move_to(briefs, briefs->max != 0 ? 2 * briefs->max : LEAST))
		return NULL;
	entry = entry_of(briefs, key->peer, key->device, key->peer_device);
	if (entry->peer != 0)
		return entry->brief;
	entry->brief = malloc(path_brief_bytes());
	if (entry->brief == NULL)
		return NULL;
	path_brief_init(entry->brief);
	entry->peer = key->peer;
	entry->device = key->device;
	snprintf(entry->peer_device, sizeof(entry->peer_device), "%s", key->peer_device);
	briefs->count++;
	return entry->brief;
}

void briefs_visited(
	struct briefs *briefs, const struct pairing_key *key, enum sight_kind kind, uint64_t now_ns
) {
	struct brief_entry *entry = entry_of(briefs, key->peer, key->device, key->peer_device);

	if (entry->peer == 0)
		return; // its peer was forgotten meanwhile
	if (!entry->visited || entry->kind != kind)
		entry->since_ns = now_ns;
	entry->visited = true;
	entry->kind = kind;
}

void briefs_sweep(struct briefs *briefs, bool (*keep)(void *ctx, uint64_t peer), void *ctx) {
	uint32_t before = briefs->count;

	for (uint32_t n = 0; n < briefs->max; n++) {
		struct brief_entry *entry = &briefs->entries[n];

		if (entry->peer == 0 || keep(ctx, entry->peer))
			continue;
		free(entry->brief);
		entry->brief = NULL;
		briefs->count--;
	}
	if (briefs->count == before)
		return;
	// Holes would end searches early: the rest finds its places anew.
	for (uint32_t n = 0; n < briefs->max; n++) {
		if (briefs->entries[n].brief == NULL)
			memset(&briefs->entries[n], 0, sizeof(briefs->entries[n]));
	}
	for (uint32_t n = 0; n < 2 * briefs->max; n++) {
		struct brief_entry *entry = &briefs->entries[n & (briefs->max - 1)];
		struct brief_entry moved = *entry;

		if (moved.peer == 0)
			continue;
		memset(entry, 0, sizeof(*entry));
		*entry_of(briefs, moved.peer, moved.device, moved.peer_device) = moved;
	}
}

void briefs_free(struct briefs *briefs) {
	for (uint32_t n = 0; n < briefs->max; n++)
		free(briefs->entries[n].brief);
	free(briefs->entries);
	*briefs = (struct briefs){0};
}
