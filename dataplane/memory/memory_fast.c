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
