// SPDX-License-Identifier: BSD-3-Clause
// Queues of messages that wait for a link.
//
// A link that takes frames needs no queue. For a blocked link each class is queued separately, and
// within a class each source. The sources are served by deficit round robin with a quantum of one
// largest frame. So a source with many or large messages gets no more than the others.
//
// Buffers come from one pool per class and origin (relay_pool.c). When a pool is used up, the
// source with the longest backlog loses its newest message. So a flood drops its own messages.
#include "relay/relay_state.h"

// One of so many frames is taken from the lowest waiting class.
#define LOWEST_CLASS_SHARE 8

void relay_queue_fini(struct ras *ras) {
	struct relay_queue *queue = &ras->relay->queue;

	relay_pools_fini(ras);
	memory_release(&ras->memory, queue->links, queue->link_capacity * sizeof(*queue->links));
	*queue = (struct relay_queue){0};
}

// Lanes

static struct relay_link_queue *link_queue_find(const struct relay *relay, uint32_t slot) {
	for (uint32_t n = 0; n < relay->queue.link_count; n++) {
		if (relay->queue.links[n].slot == slot)
			return &relay->queue.links[n];
	}
	return NULL;
}

static struct relay_link_queue *link_queue_get(struct ras *ras, uint32_t slot) {
	struct relay_queue *queue = &ras->relay->queue;
	struct relay_link_queue *link_queue = link_queue_find(ras->relay, slot);
	void *links = queue->links;

	if (link_queue != NULL)
		return link_queue;
	if (memory_grow(
		    &ras->memory, &links, &queue->link_capacity, queue->link_count + 1,
		    sizeof(*queue->links)
	    ) < 0)
		return NULL;
	queue->links = links;
	link_queue = &queue->links[queue->link_count++];
	*link_queue = (struct relay_link_queue){.slot = slot};
	return link_queue;
}

// Remove an empty queue and move the last queue into its place.
static void link_queue_drop_if_empty(struct relay *relay, struct relay_link_queue *link_queue) {
	for (uint32_t rank = 0; rank < RAS_RELAY_CLASS_COUNT; rank++) {
		if (link_queue->count[rank] > 0)
			return;
	}
	*link_queue = relay->queue.links[--relay->queue.link_count];
}

bool relay_queue_waits(const struct relay *relay, uint32_t slot) {
	return link_queue_find(relay, slot) != NULL;
}

// Backlogs

static struct relay_backlog *backlog_find(
	const struct relay_link_queue *link_queue,
	const struct relay_pool *pool,
	uint32_t rank,
	uint64_t source
) {
	struct relay_backlog *last = link_queue->last[rank];
	struct relay_backlog *backlog = last;

	if (last == NULL)
		return NULL;
	do {
		if (backlog->source == source && backlog->pool == pool)
			return backlog;
		backlog = backlog->next;
	} while (backlog != last);
	return NULL;
}

// Open a backlog at the end of the round. A pool has as many backlogs as items, so one is free.
static struct relay_backlog *backlog_open(
	struct relay_link_queue *link_queue, struct relay_pool *pool, uint32_t rank, uint64_t source
) {
	struct relay_backlog *backlog = pool->free_backlogs;
	struct relay_backlog *last = link_queue->last[rank];

	must(backlog != NULL);
	pool->free_backlogs = backlog->next;
	*backlog = (struct relay_backlog){.pool = pool, .source = source};
	backlog->next = last != NULL ? last->next : backlog;
	if (last != NULL)
		last->next = backlog;
	link_queue->last[rank] = backlog;
	return backlog;
}

static void
backlog_close(struct relay_link_queue *link_queue, uint32_t rank, struct relay_backlog *backlog) {
	struct relay_backlog *before = backlog;

	must(backlog->count == 0);
	while (before->next != backlog)
		before = before->next;
	if (before == backlog)
		link_queue->last[rank] = NULL;
	else if (link_queue->last[rank] == backlog)
		link_queue->last[rank] = before;
	before->next = backlog->next;
	backlog->next = backlog->pool->free_backlogs;
	backlog->pool->free_backlogs = backlog;
}

// Remove the item after `before`, or the first one if `before` is NULL.
static struct relay_item *backlog_take(
	struct relay_link_queue *link_queue,
	struct relay_backlog *backlog,
	struct relay_item *before
) {
	struct relay_item *item = before != NULL ? before->next : backlog->head;

	if (before != NULL)
		before->next = item->next;
	else
		backlog->head = item->next;
	if (backlog->tail == item)
		backlog->tail = before;
	backlog->count--;
	link_queue->count[item->header.class]--;
	item->next = NULL;
	return item;
}

// Eviction

struct victim {
	struct relay_link_queue *link_queue;
	struct relay_backlog *backlog;
};

// Return the longest backlog of this pool, in all links or only in one.
static struct victim longest_backlog(
	const struct relay_queue *queue,
	const struct relay_link_queue *only,
	const struct relay_pool *pool,
	uint32_t rank
) {
	struct victim longest = {0};

	for (uint32_t n = 0; n < queue->link_count; n++) {
		struct relay_link_queue *link_queue = &queue->links[n];
		struct relay_backlog *backlog = link_queue->last[rank];

		if (backlog == NULL || (only != NULL && link_queue != only))
			continue;
		do {
			if (backlog->pool == pool &&
			    (longest.backlog == NULL || backlog->count > longest.backlog->count))
				longest = (struct victim){link_queue, backlog};
			backlog = backlog->next;
		} while (backlog != link_queue->last[rank]);
	}
	return longest;
}

// Remove the newest item of the longest backlog, if that is longer than `mine` by two or more.
// Otherwise two equal backlogs would drop each other's messages in turn. *ret_slot is the peer of
// the link that the item waited for.
static struct relay_item *queue_make_room(
	struct relay_queue *queue,
	const struct relay_link_queue *only,
	const struct relay_pool *pool,
	uint32_t rank,
	uint32_t mine,
	uint32_t *ret_slot
) {
	struct victim longest = longest_backlog(queue, only, pool, rank);
	struct relay_item *before = NULL;

	if (longest.backlog == NULL || longest.backlog->count < mine + 2)
		return NULL;
	for (struct relay_item *item = longest.backlog->head; item->next != NULL; item = item->next)
		before = item;
	*ret_slot = longest.link_queue->slot;
	return backlog_take(longest.link_queue, longest.backlog, before);
}

// Return a buffer for the packet, or NULL. *ret_lost is set if another message was dropped for it.
static struct relay_item *pool_take_item(
	struct relay_queue *queue,
	const struct relay_link_queue *link_queue,
	struct relay_pool *pool,
	const struct relay_packet *packet,
	struct relay_packet *ret_lost
) {
	uint32_t rank = packet->header.class;
	const struct relay_backlog *mine =
		backlog_find(link_queue, pool, rank, packet->header.source);
	// One link gets at most half of the transit buffers, since other links may block, too.
	bool link_is_full = packet->from != RAS_NO_SLOT &&
			    link_queue->count[rank] >= relay_pool_items(rank, RELAY_TRANSIT) / 2;
	struct relay_item *item;
	uint32_t slot;

	if (pool->free == NULL || link_is_full) {
		item = queue_make_room(
			queue, link_is_full ? link_queue : NULL, pool, rank,
			mine != NULL ? mine->count : 0, &slot
		);
		if (item == NULL)
			return NULL;
		*ret_lost = relay_packet_make(&item->header, NULL, item->from);
		ret_lost->hop = slot;
		relay_item_release(item);
	}
	item = pool->free;
	must(item != NULL); // a buffer was free, or has just been released
	pool->free = item->next;
	pool->used++;
	return item;
}

int relay_queue_put(struct ras *ras, const struct relay_packet *packet, bool detour) {
	struct relay *relay = ras->relay;
	uint32_t rank = packet->header.class;
	uint32_t origin = packet->from == RAS_NO_SLOT ? RELAY_OWN : RELAY_TRANSIT;
	struct relay_pool *pool = &relay->queue.pools[rank][origin];
	struct relay_packet lost = {0};
	struct relay_backlog *backlog;
	struct relay_link_queue *link_queue;
	struct relay_item *item;

	if (relay_pool_open(ras, pool, rank, origin) < 0)
		return -ENOBUFS;
	link_queue = link_queue_get(ras, packet->hop);
	if (link_queue == NULL)
		return -ENOBUFS;
	item = pool_take_item(&relay->queue, link_queue, pool, packet, &lost);
	if (item == NULL) {
		link_queue_drop_if_empty(relay, link_queue);
		return -ENOBUFS;
	}

	pool->used_ns = ras->now_ns;
	item->next = NULL;
	item->queued_ns = ras->now_ns;
	item->expires_ns = ras->now_ns + packet->header.life_us * UINT64_C(1000);
	item->from = packet->from;
	item->detour = detour;
	item->header = packet->header;
	memcpy(item->frame, packet->frame, relay_packet_bytes(&packet->header));

	backlog = backlog_find(link_queue, pool, rank, packet->header.source);
	if (backlog == NULL)
		backlog = backlog_open(link_queue, pool, rank, packet->header.source);
	if (backlog->tail != NULL)
		backlog->tail->next = item;
	else
		backlog->head = item;
	backlog->tail = item;
	backlog->count++;
	link_queue->count[rank]++;
	relay->counters.queued++;
	relay_wake_at(relay, item->expires_ns);
	// Refuse the lost packet last, because its NAK may be queued, too. This recursion ends: the
	// NAK is an own message and displaces only own messages, which are refused without a NAK.
	if (lost.header.kind != 0)
		relay_refuse(ras, &lost, RAS_RELAY_QUEUE_FULL);
	return 0;
}

// Service order

struct relay_item *relay_queue_next(struct ras *ras, uint32_t slot) {
	struct relay_link_queue *link_queue = link_queue_find(ras->relay, slot);
	struct relay_backlog *turn;
	struct relay_item *item;
	uint32_t rank = RAS_RELAY_CLASS_COUNT;
	uint32_t size;
	bool lowest;

	if (link_queue == NULL)
		return NULL;
	// The highest waiting class, or once in LOWEST_CLASS_SHARE frames the lowest one.
	lowest = ++link_queue->served % LOWEST_CLASS_SHARE == 0;
	for (uint32_t waiting = 0; waiting < RAS_RELAY_CLASS_COUNT; waiting++) {
		if (link_queue->count[waiting] > 0 && (rank == RAS_RELAY_CLASS_COUNT || lowest))
			rank = waiting;
	}
	turn = link_queue->last[rank]->next;
	if (turn->deficit < relay_packet_bytes(&turn->head->header)) {
		link_queue->last[rank] = turn;
		turn = turn->next;
		turn->deficit += RELAY_HEADER_BYTES_MAX +
				 (uint32_t)ras_relay_size_max((enum ras_relay_class)rank);
	}
	size = (uint32_t)relay_packet_bytes(&turn->head->header);
	must(turn->deficit >= size);
	turn->deficit -= size;
	item = backlog_take(link_queue, turn, NULL);
	if (turn->count == 0)
		backlog_close(link_queue, rank, turn);
	link_queue_drop_if_empty(ras->relay, link_queue);
	return item;
}

// Move matching items of one class to the end of the chain. Returns the new end.
static struct relay_item **link_queue_extract_class(
	struct relay_link_queue *link_queue,
	uint32_t rank,
	const struct relay_match *match,
	struct relay_item **end
) {
	struct relay_backlog *backlog = link_queue->last[rank];
	uint32_t left = link_queue->count[rank];

	// Every backlog holds at least one item, so the loop visits all backlogs.
	for (backlog = backlog != NULL ? backlog->next : NULL; left > 0;) {
		struct relay_backlog *next;
		struct relay_item *before = NULL;

		must(backlog != NULL);
		next = backlog->next;

		left -= backlog->count;
		for (struct relay_item *item = backlog->head; item != NULL;) {
			struct relay_item *following = item->next;

			if ((match->destination == 0 ||
			     item->header.destination == match->destination) &&
			    item->expires_ns <= match->expired_ns) {
				*end = backlog_take(link_queue, backlog, before);
				end = &(*end)->next;
			} else {
				before = item;
			}
			item = following;
		}
		if (backlog->count == 0)
			backlog_close(link_queue, rank, backlog);
		backlog = next;
	}
	return end;
}

struct relay_item *relay_queue_extract(struct ras *ras, const struct relay_match *match) {
	struct relay_queue *queue = &ras->relay->queue;
	struct relay_item *chain = NULL;
	struct relay_item **end = &chain;

	// Backwards: a removed queue is replaced by the last one, which was visited already.
	for (uint32_t n = queue->link_count; n-- > 0;) {
		struct relay_link_queue *link_queue = &queue->links[n];

		if (match->slot != RAS_NO_SLOT && link_queue->slot != match->slot)
			continue;
		for (uint32_t rank = 0; rank < RAS_RELAY_CLASS_COUNT; rank++)
			end = link_queue_extract_class(link_queue, rank, match, end);
		link_queue_drop_if_empty(ras->relay, link_queue);
	}
	return chain;
}

// Statistics

// Return when the first item of the class expires. Updates the oldest queuing time and adds to the
// bytes.
static uint64_t link_queue_class_stats(
	const struct relay_link_queue *link_queue,
	uint32_t rank,
	uint64_t *ret_oldest_ns,
	uint32_t *ret_bytes
) {
	const struct relay_backlog *last = link_queue->last[rank];
	const struct relay_backlog *backlog = last;
	uint64_t due_ns = RAS_NEVER;

	if (last == NULL)
		return RAS_NEVER;
	do {
		for (const struct relay_item *item = backlog->head; item != NULL;
		     item = item->next) {
			if (item->expires_ns < due_ns)
				due_ns = item->expires_ns;
			if (item->queued_ns < *ret_oldest_ns)
				*ret_oldest_ns = item->queued_ns;
			*ret_bytes += (uint32_t)relay_packet_bytes(&item->header);
		}
		backlog = backlog->next;
	} while (backlog != last);
	return due_ns;
}

uint64_t relay_queue_due_ns(const struct relay *relay) {
	uint64_t due_ns = RAS_NEVER, oldest_ns = RAS_NEVER;
	uint32_t bytes = 0;

	for (uint32_t n = 0; n < relay->queue.link_count; n++) {
		for (uint32_t rank = 0; rank < RAS_RELAY_CLASS_COUNT; rank++) {
			uint64_t at_ns = link_queue_class_stats(
				&relay->queue.links[n], rank, &oldest_ns, &bytes
			);

			if (at_ns < due_ns)
				due_ns = at_ns;
		}
	}
	return due_ns;
}

void relay_queue_stats(const struct ras *ras, struct ras_relay_stats *stats) {
	const struct relay_queue *queue = &ras->relay->queue;

	for (uint32_t rank = 0; rank < RAS_RELAY_CLASS_COUNT; rank++) {
		uint64_t oldest_ns = ras->now_ns;

		for (uint32_t n = 0; n < queue->link_count; n++) {
			link_queue_class_stats(
				&queue->links[n], rank, &oldest_ns, &stats->queued_bytes[rank]
			);
			stats->queued[rank] += queue->links[n].count[rank];
		}
		stats->oldest_ns[rank] = ras->now_ns - oldest_ns;
	}
}
