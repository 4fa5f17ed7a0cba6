// SPDX-License-Identifier: BSD-3-Clause
// Sorted list of registrations, and the rules for sharing one.
#include "memory/memory_impl.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t index_after_address(const struct memory_registry *registry, uint64_t address) {
	uint32_t low = 0, high = registry->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (registry->regions[middle]->address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int memory_index_reserve(struct memory_registry *registry) {
	uint32_t room = registry->room == 0 ? 16 : 2 * registry->room;
	struct memory_region **regions;

	if (registry->count < registry->room)
		return 0;
	regions = realloc(registry->regions, room * sizeof(struct memory_region *));
	if (regions == NULL)
		return -ENOMEM;
	registry->regions = regions;
	registry->room = room;
	return 0;
}

void memory_index_add(struct memory_registry *registry, struct memory_region *region) {
	uint32_t place = index_after_address(registry, region->address);

	must(registry->count < registry->room);
	memmove(&registry->regions[place + 1], &registry->regions[place],
		(registry->count - place) * sizeof(struct memory_region *));
	registry->regions[place] = region;
	registry->count++;
	if (region->length > registry->longest)
		registry->longest = region->length;
}

void memory_index_remove(struct memory_registry *registry, const struct memory_region *region) {
	uint32_t place = index_after_address(registry, region->address);

	do {
		must(place > 0);
		place--;
	} while (registry->regions[place] != region);
	registry->count--;
	memmove(&registry->regions[place], &registry->regions[place + 1],
		(registry->count - place) * sizeof(struct memory_region *));
	if (registry->count == 0)
		registry->longest = 0;
}

static bool
region_contains(const struct memory_region *region, const struct memory_normal_request *wanted) {
	uint64_t offset = wanted->address - region->address;

	return wanted->address >= region->address && offset <= region->length &&
	       wanted->length <= region->length - offset;
}

// A new allocation at the same address has another id.
static bool region_may_be_shared(
	const struct memory_region *region, const struct memory_normal_request *wanted
) {
	const struct memory_owner *owner = &region->owner;

	if (((region->access | wanted->access) & MEMORY_UNSHARED) != 0 ||
	    region->allocation != wanted->allocation || !region_contains(region, wanted))
		return false;
	if (owner->hold != wanted->owner.hold || owner->drop != wanted->owner.drop ||
	    owner->ctx != wanted->owner.ctx)
		return false;
	if ((wanted->access & MEMORY_PEER_ACCESS) != 0)
		return region->access == wanted->access;
	return (region->access & wanted->access) == wanted->access;
}

// Take a reference on a live region. Relaxed, as in memory_view_ref(); this thread wrote the
// region's fields.
static bool region_try_ref(struct memory_region *region) {
	uint32_t refs = atomic_load_explicit(&region->refs, memory_order_relaxed);

	while (refs > 0) {
		if (atomic_compare_exchange_weak_explicit(
			    &region->refs, &refs, refs + 1, memory_order_relaxed,
			    memory_order_relaxed
		    ))
			return true;
	}
	return false;
}

struct memory_region *memory_index_find(
	const struct memory_registry *registry, const struct memory_normal_request *wanted
) {
	uint32_t place = index_after_address(registry, wanted->address);

	while (place-- > 0) {
		struct memory_region *region = registry->regions[place];

		if (wanted->address - region->address >= registry->longest)
			break;
		if (region_may_be_shared(region, wanted) && region_try_ref(region))
			return region;
	}
	return NULL;
}
