// SPDX-License-Identifier: BSD-3-Clause
// Takes and drops references of views, for every operation of a lane.
#include "memory/memory_impl.h"

#include <lib/must.h>

#include <errno.h>

// Relaxed: the caller already owns a reference, which provides the ordering.
void memory_view_ref(const struct memory_view *view) {
	uint32_t refs = atomic_fetch_add_explicit(&view->region->refs, 1, memory_order_relaxed);

	must_debug(refs > 0);
	(void)refs;
}

// Release and acquire: the thread that drops the last reference sees all use by other threads.
void memory_view_put(const struct memory_view *view) {
	struct memory_region *region = view->region, *head;
	uint32_t refs = atomic_fetch_sub_explicit(&region->refs, 1, memory_order_acq_rel);
	struct memory_registry *registry;

	must_debug(refs > 0);
	if (refs != 1)
		return;

	// Push the region to the list of dead ones. Release pairs with the acquire of
	// memory_deregister_dead(): all use through views happens before the deregistration. After
	// the exchange the region may be freed, so it is not accessed any more.
	registry = region->registry;
	head = atomic_load_explicit(&registry->dead, memory_order_relaxed);
	do {
		region->next_dead = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&registry->dead, &head, region, memory_order_release, memory_order_relaxed
	));
}
