// SPDX-License-Identifier: BSD-3-Clause
// Buffers for messages that wait for a link. Each class has one pool for transit and one for own
// messages. So neither a flood of one class nor a flood of transit uses up all buffers.
#include "relay/relay_state.h"

static const uint32_t pool_items[RAS_RELAY_CLASS_COUNT][RELAY_ORIGIN_COUNT] = {
	[RAS_RELAY_CONTROL] = {[RELAY_TRANSIT] = 128, [RELAY_OWN] = 64},
	[RAS_RELAY_EVENT] = {[RELAY_TRANSIT] = 64, [RELAY_OWN] = 32},
	[RAS_RELAY_BULK] = {[RELAY_TRANSIT] = 32, [RELAY_OWN] = 16},
};

uint32_t relay_pool_items(uint32_t rank, enum relay_origin origin) {
	return pool_items[rank][origin];
}

static size_t item_bytes(uint32_t rank) {
	size_t bytes = sizeof(struct relay_item) + RELAY_HEADER_BYTES_MAX +
		       ras_relay_size_max((enum ras_relay_class)rank);

	return (bytes + 7) & ~(size_t)7;
}

static size_t slab_bytes(uint32_t rank, enum relay_origin origin) {
	return pool_items[rank][origin] * (item_bytes(rank) + sizeof(struct relay_backlog));
}

int relay_pool_open(
	struct ras *ras, struct relay_pool *pool, uint32_t rank, enum relay_origin origin
) {
	uint32_t count = pool_items[rank][origin];
	uint8_t *at;

	if (pool->slab != NULL)
		return 0;
	pool->slab = memory_allocate(&ras->memory, slab_bytes(rank, origin));
	if (pool->slab == NULL)
		return -ENOMEM;
	relay_schedule_reclaim(ras);
	at = pool->slab;
	for (uint32_t n = 0; n < count; n++, at += item_bytes(rank)) {
		struct relay_item *item = (void *)at;

		item->pool = pool;
		item->next = pool->free;
		pool->free = item;
	}
	for (uint32_t n = 0; n < count; n++, at += sizeof(struct relay_backlog)) {
		struct relay_backlog *backlog = (void *)at;

		backlog->pool = pool;
		backlog->next = pool->free_backlogs;
		pool->free_backlogs = backlog;
	}
	return 0;
}

void relay_item_release(struct relay_item *item) {
	struct relay_pool *pool = item->pool;

	must(pool->used > 0);
	pool->used--;
	item->next = pool->free;
	pool->free = item;
}

// Free the buffers of pools that were not used since `since_ns`. Returns true if none has buffers.
static bool pools_free_idle(struct ras *ras, uint64_t since_ns) {
	bool all = true;

	for (uint32_t rank = 0; rank < RAS_RELAY_CLASS_COUNT; rank++) {
		for (uint32_t origin = 0; origin < RELAY_ORIGIN_COUNT; origin++) {
			struct relay_pool *pool = &ras->relay->queue.pools[rank][origin];

			if (pool->slab == NULL)
				continue;
			if (pool->used > 0 || pool->used_ns > since_ns) {
				all = false;
				continue;
			}
			memory_release(&ras->memory, pool->slab, slab_bytes(rank, origin));
			*pool = (struct relay_pool){0};
		}
	}
	return all;
}

bool relay_pools_reclaim(struct ras *ras) {
	return pools_free_idle(ras, ras->now_ns - RELAY_IDLE_NS);
}

void relay_pools_fini(struct ras *ras) {
	for (uint32_t rank = 0; rank < RAS_RELAY_CLASS_COUNT; rank++) {
		for (uint32_t origin = 0; origin < RELAY_ORIGIN_COUNT; origin++)
			ras->relay->queue.pools[rank][origin].used = 0;
	}
	pools_free_idle(ras, RAS_NEVER);
}
