// SPDX-License-Identifier: BSD-3-Clause
// The table of registered memory: open addressing by key. Used under the device's lock.
#include "nic/region.h"

#include <errno.h>
#include <stdlib.h>

#define REGIONS_MIN 16

// Return the preferred slot. Keys are random already, so their low bits are the hash.
static uint32_t region_home_slot(const struct region_table *table, uint32_t key) {
	return key & (table->capacity - 1);
}

static struct soft_mr *region_find(const struct region_table *table, uint32_t key) {
	struct soft_mr *mr;

	if (table->count == 0)
		return NULL;
	for (uint32_t n = region_home_slot(table, key);; n = (n + 1) & (table->capacity - 1)) {
		mr = table->places[n];
		if (mr == NULL || mr->verbs.lkey == key)
			return mr;
	}
}

static void region_insert(struct region_table *table, struct soft_mr *mr) {
	uint32_t n = region_home_slot(table, mr->verbs.lkey);

	while (table->places[n] != NULL)
		n = (n + 1) & (table->capacity - 1);
	table->places[n] = mr;
}

// Draw a random key, never 0: programs use 0 for "none".
int region_add(struct soft_nic *nic, struct soft_mr *mr) {
	struct region_table *table = &nic->regions;
	uint32_t key;

	// Grow the table at three quarters full, so that every search ends at a free slot.
	if (table->count + 1 > table->capacity / 4 * 3) {
		struct region_table grown = {.count = table->count};

		grown.capacity = table->capacity == 0 ? REGIONS_MIN : table->capacity * 2;
		grown.places = calloc(grown.capacity, sizeof(struct soft_mr *));
		if (grown.places == NULL)
			return -ENOMEM;
		for (uint32_t n = 0; n < table->capacity; n++) {
			if (table->places[n] != NULL)
				region_insert(&grown, table->places[n]);
		}
		free(table->places);
		*table = grown;
	}
	do
		key = (uint32_t)nic_random(nic);
	while (key == 0 || region_find(table, key) != NULL);
	mr->verbs.lkey = mr->verbs.rkey = key;
	region_insert(table, mr);
	table->count++;
	return 0;
}

// Remove a region and move up later entries of the chain, so that no search stops at the freed
// slot.
void region_remove(struct soft_nic *nic, struct soft_mr *mr) {
	struct region_table *table = &nic->regions;
	uint32_t mask = table->capacity - 1;
	uint32_t hole = region_home_slot(table, mr->verbs.lkey);

	while (table->places[hole] != mr)
		hole = (hole + 1) & mask;
	for (uint32_t n = (hole + 1) & mask; table->places[n] != NULL; n = (n + 1) & mask) {
		uint32_t home = region_home_slot(table, table->places[n]->verbs.lkey);

		if (((n - home) & mask) < ((n - hole) & mask))
			continue;
		table->places[hole] = table->places[n];
		hole = n;
	}
	table->places[hole] = NULL;
	if (--table->count > 0)
		return;
	free(table->places);
	*table = (struct region_table){0};
}

uint8_t *region_resolve(
	const struct soft_nic *nic,
	const struct ibv_pd *pd,
	uint32_t key,
	uint64_t address,
	uint64_t length,
	int access
) {
	const struct soft_mr *mr = region_find(&nic->regions, key);
	uint64_t offset;

	if (mr == NULL || mr->verbs.pd != pd || (mr->access & access) != access)
		return NULL;
	// An address before the region yields an offset beyond any length.
	offset = address - mr->iova;
	if (length == 0 || offset >= mr->length || length > mr->length - offset)
		return NULL;
	return mr->bytes + offset;
}
