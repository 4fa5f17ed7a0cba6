// SPDX-License-Identifier: BSD-3-Clause
// Control's side of a prober: creation, planning, outcomes, destruction.
#include "probe/prober_impl.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

#define AGENDA_BYTES (WATCH_AGENDA * sizeof(struct watch_due))
#define OUTCOMES_BYTES (WATCH_OUTCOMES * sizeof(struct watch_outcome))

int prober_create(
	const struct path_table *paths,
	const struct peer_table *peers,
	const struct clock *clock,
	struct near near,
	struct prober **ret_prober
) {
	struct prober *prober = near_alloc(near, sizeof(*prober));

	if (prober == NULL)
		return -ENOMEM;
	memset(prober, 0, sizeof(*prober));
	prober->near = near;
	// Most of these pages are never touched, so they cost no memory.
	prober->agenda.items = near_alloc(near, AGENDA_BYTES);
	prober->outcomes.items = near_alloc(near, OUTCOMES_BYTES);
	if (prober->agenda.items == NULL || prober->outcomes.items == NULL) {
		prober_destroy(prober);
		return -ENOMEM;
	}
	prober->paths = paths;
	prober->peers = peers;
	prober->clock = clock;
	*ret_prober = prober;
	return 0;
}

struct prober *prober_destroy(struct prober *prober) {
	if (prober == NULL)
		return NULL;
	near_free(prober->near, prober->agenda.items, AGENDA_BYTES);
	near_free(prober->near, prober->outcomes.items, OUTCOMES_BYTES);
	near_free(prober->near, prober, sizeof(*prober));
	return NULL;
}

struct worker_poll prober_poll(struct prober *prober) {
	return (struct worker_poll){.poll = prober_run_step, .ctx = prober};
}

uint32_t prober_plan_probes(struct prober *prober, const struct watch_due *dues, uint32_t count) {
	struct watch_agenda *ring = &prober->agenda;
	uint32_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
	// Pairs with the release in watch_fast.c: the worker has read the freed slots.
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

uint32_t
prober_take_outcomes(struct prober *prober, struct watch_outcome *outcomes, uint32_t count) {
	struct watch_outcomes *ring = &prober->outcomes;
	uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
	// Pairs with the release in watch_fast.c.
	uint32_t held = atomic_load_explicit(&ring->put, memory_order_acquire) - taken;

	if (count > held)
		count = held;
	for (uint32_t n = 0; n < count; n++)
		outcomes[n] = ring->items[(taken + n) % WATCH_OUTCOMES];
	// Pairs with the acquire in watch_fast.c: the slots are free.
	atomic_store_explicit(&ring->taken, taken + count, memory_order_release);
	return count;
}

uint64_t prober_lost_outcomes(const struct prober *prober) {
	return atomic_load_explicit(&prober->outcomes.lost, memory_order_relaxed);
}
