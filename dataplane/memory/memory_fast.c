// SPDX-License-Identifier: BSD-3-Clause
// Holding views and giving them back: what lanes do for every operation.
#include "memory/memory_impl.h"

#include <lib/must.h>

#include <errno.h>

// Relaxed: who holds has a reference already, which is ordered by how it came by that.
void memory_view_hold(const struct memory_view *view) {
	uint32_t refs = atomic_fetch_add_explicit(&view->region->refs, 1, memory_order_relaxed);

	must_debug(refs > 0);
	(void)refs;
}

// Release pairs with the acquire of memory_reap(): all that was done through any view comes before
// the deregistration. The region may be gone with the exchange there, so it is not looked at again.
static void region_bury(struct memory_region *region) {
	struct memory_registry *registry = region->registry;
	struct memory_region *head = atomic_load_explicit(&registry->dead, memory_order_relaxed);

	do {
		region->next_dead = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&registry->dead, &head, region, memory_order_release, memory_order_relaxed
	));
}

// Release and acquire pair with each other: the last one out has seen what all others did.
void memory_view_put(const struct memory_view *view) {
	struct memory_region *region = view->region;
	uint32_t refs = atomic_fetch_sub_explicit(&region->refs, 1, memory_order_acq_rel);

	must_debug(refs > 0);
	if (refs == 1)
		region_bury(region);
}

int memory_view_part(
	const struct memory_view *view,
	uint64_t offset,
	uint64_t length,
	struct memory_view *ret_part
) {
	if (offset > view->length || length > view->length - offset)
		return -ERANGE;
	memory_view_hold(view);
	*ret_part = *view;
	ret_part->address += offset;
	ret_part->wire_address += offset;
	ret_part->length = length;
	return 0;
}

// Relaxed: only a hint; memory_reap() acquires.
bool memory_is_dead(const struct memory_registry *registry) {
	return atomic_load_explicit(&registry->dead, memory_order_relaxed) != NULL;
}
