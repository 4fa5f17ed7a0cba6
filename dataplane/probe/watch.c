// SPDX-License-Identifier: BSD-3-Clause
// Standing probes, on control's side of the rings.
#include "probe/prober_impl.h"

#include <lib/must.h>

uint32_t prober_plan(struct prober *prober, const struct watch_due *dues, uint32_t count) {
	struct watch_agenda *ring = &prober->agenda;
	uint32_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
	// Pairs with the release in watch_fast.c: the worker is done with the places.
	uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
	uint32_t room = WATCH_AGENDA - (put - taken);

	if (count > room)
		count = room;
	for (uint32_t n = 0; n < count; n++)
		ring->items[(put + n) % WATCH_AGENDA] = dues[n];
	// Pairs with the acquire in watch_fast.c.
	atomic_store_explicit(&ring->put, put + count, memory_order_release);
	return count;
}

uint32_t prober_outcomes(struct prober *prober, struct watch_outcome *outcomes, uint32_t count) {
	struct watch_outcomes *ring = &prober->outcomes;
	uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
	// Pairs with the release in watch_fast.c.
	uint32_t held = atomic_load_explicit(&ring->put, memory_order_acquire) - taken;

	if (count > held)
		count = held;
	for (uint32_t n = 0; n < count; n++)
		outcomes[n] = ring->items[(taken + n) % WATCH_OUTCOMES];
	// Pairs with the acquire in watch_fast.c: the places are free.
	atomic_store_explicit(&ring->taken, taken + count, memory_order_release);
	return count;
}

uint64_t prober_outcomes_lost(const struct prober *prober) {
	return atomic_load_explicit(&prober->outcomes.lost, memory_order_relaxed);
}
