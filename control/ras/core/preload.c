// SPDX-License-Identifier: BSD-3-Clause
// Tables known from the start: given as records, or built once for many instances.
#include "core/core.h"

#include <errno.h>

struct ras_table {
	struct memory memory;
	struct peers peers;
};

// Add a member: alive in its start, and marked as seen. A seen peer that does not answer may be
// held for gone.
static int member_add(struct peers *peers, struct ras_record *record) {
	struct peer_news news = {
		.id = record->id,
		.incarnation = ras_incarnation(record->start, 0),
		.record = record,
		.state = RAS_ALIVE,
	};
	enum peers_change change;
	uint32_t slot;
	int err = peers_merge(peers, &news, 0, &change, &slot);

	if (err == 0)
		peers_entry(peers, slot)->flags |= PEER_SEEN;
	return err;
}

int ras_preload(struct ras *ras, struct ras_record *const *records, uint32_t count) {
	int err = peers_reserve(&ras->peers, count + 1);

	must(!ras->started);
	// Sort this agent into the ring before the others are added, so that sorted records stay
	// sorted.
	peers_ring_count(&ras->peers);
	for (uint32_t n = 0; n < count && err == 0; n++) {
		if (records[n]->id != ras->self_id)
			err = member_add(&ras->peers, records[n]);
	}
	ras->preloaded = err == 0;
	return err;
}

int ras_table_create(
	const struct ras_memory *memory,
	struct ras_interner *interner,
	struct ras_record *const *records,
	uint32_t count,
	struct ras_table **ret_table
) {
	struct memory first = {.source = *memory};
	struct ras_table *table = memory_allocate(&first, sizeof(*table));
	int err;

	if (table == NULL)
		return -ENOMEM;
	table->memory = first;
	peers_init(&table->peers, &table->memory, interner);
	err = peers_reserve(&table->peers, count);
	for (uint32_t n = 0; n < count && err == 0; n++)
		err = member_add(&table->peers, records[n]);
	if (err != 0) {
		ras_table_destroy(table);
		return err;
	}
	peers_ring_count(&table->peers);
	*ret_table = table;
	return 0;
}

struct ras_table *ras_table_destroy(struct ras_table *table) {
	struct memory last;

	if (table == NULL)
		return NULL;
	peers_fini(&table->peers);
	last = table->memory;
	must(last.used_bytes == sizeof(*table));
	memory_release(&last, table, sizeof(*table));
	return NULL;
}

int ras_preload_table(struct ras *ras, const struct ras_table *table) {
	uint32_t slot = peers_find(&table->peers, ras->self_id);
	struct peers copy;
	int err;

	must(!ras->started);
	if (slot == RAS_NO_SLOT ||
	    peers_entry(&table->peers, slot)->record != ras_self(ras)->record)
		return -ENOENT;
	err = peers_copy(&copy, &table->peers, &ras->memory);
	if (err != 0)
		return err;
	peers_fini(&ras->peers);
	ras->peers = copy;
	ras->self_slot = slot;
	ras->preloaded = true;
	return 0;
}
