// SPDX-License-Identifier: BSD-3-Clause
#include "queue.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int queue_init(struct queue *queue, struct pool *pool) {
	memset(queue, 0, sizeof(*queue));
	queue->pool = pool;
	queue->heap_capacity = 1024;
	queue->heap = malloc(queue->heap_capacity * sizeof(*queue->heap));
	return queue->heap != NULL ? 0 : -ENOMEM;
}

void queue_fini(struct queue *queue) {
	for (uint32_t n = 0; n < queue->heap_count; n++)
		queue_release(queue, queue->heap[n].event);
	for (uint32_t n = 0; n < QUEUE_LEVELS * QUEUE_SLOTS; n++) {
		struct event *event = queue->slots[n / QUEUE_SLOTS][n % QUEUE_SLOTS];

		while (event != NULL) {
			struct event *next = event->next;

			queue_release(queue, event);
			event = next;
		}
	}
	free(queue->heap);
}

struct event *queue_event(struct queue *queue, uint32_t kind, uint32_t size) {
	struct event *event = pool_take(queue->pool, sizeof(*event) + size);

	event->next = NULL;
	event->size = size;
	event->kind = (uint16_t)kind;
	event->code = 0;
	return event;
}

void queue_release(struct queue *queue, struct event *event) {
	pool_give(queue->pool, event, sizeof(*event) + event->size);
}

static bool place_before(const struct queue_place *a, const struct queue_place *b) {
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

static void queue_heap_add(struct queue *queue, struct event *event) {
	struct queue_place place = {event->at_ns, event->sequence, event};
	uint32_t at = queue->heap_count++;

	must(queue->heap_capacity > 0);
	if (at == queue->heap_capacity) {
		queue->heap_capacity *= 2;
		queue->heap = realloc(queue->heap, queue->heap_capacity * sizeof(*queue->heap));
		must(queue->heap != NULL);
	}
	while (at > 0 && place_before(&place, &queue->heap[(at - 1) / 2])) {
		queue->heap[at] = queue->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	queue->heap[at] = place;
}

static struct event *queue_heap_take(struct queue *queue) {
	struct event *event = queue->heap[0].event;
	struct queue_place last = queue->heap[--queue->heap_count];
	uint32_t count = queue->heap_count;
	uint32_t at = 0;

	while (2 * at + 1 < count) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < count && place_before(&queue->heap[child + 1], &queue->heap[child]))
			child++;
		if (!place_before(&queue->heap[child], &last))
			break;
		queue->heap[at] = queue->heap[child];
		at = child;
	}
	if (count > 0)
		queue->heap[at] = last;
	return event;
}

// Put the event into the heap if its slot is current; otherwise into the finest wheel that
// distinguishes its slot from the current one.
static void queue_place(struct queue *queue, struct event *event) {
	uint64_t slot = event->at_ns >> QUEUE_GRAIN_BITS;
	uint32_t level, index;

	if (slot <= queue->slot) {
		queue_heap_add(queue, event);
		return;
	}
	level = (63 - (uint32_t)__builtin_clzll(slot ^ queue->slot)) / QUEUE_SLOT_BITS;
	must(level < QUEUE_LEVELS);
	index = (uint32_t)(slot >> (level * QUEUE_SLOT_BITS)) % QUEUE_SLOTS;
	event->next = queue->slots[level][index];
	queue->slots[level][index] = event;
	queue->used[level][index / 64] |= UINT64_C(1) << index % 64;
}

void queue_push(struct queue *queue, struct event *event, uint64_t at_ns) {
	must_debug(at_ns >= queue->now_ns);
	event->at_ns = at_ns;
	event->sequence = queue->sequence++;
	queue->count++;
	queue_place(queue, event);
}

// Return this wheel's first used slot after `after`, or QUEUE_SLOTS.
static uint32_t queue_next_used(const uint64_t *used, uint32_t after) {
	uint32_t word = (after + 1) / 64;
	uint64_t bits;

	if (after + 1 >= QUEUE_SLOTS)
		return QUEUE_SLOTS;
	bits = used[word] & (~UINT64_C(0) << (after + 1) % 64);
	while (bits == 0) {
		if (++word == QUEUE_SLOTS / 64)
			return QUEUE_SLOTS;
		bits = used[word];
	}
	return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

// Advance to the next used slot and distribute its events over the finer wheels and the heap.
// Returns false if the queue is empty.
static bool queue_turn(struct queue *queue) {
	for (uint32_t level = 0; level < QUEUE_LEVELS; level++) {
		uint32_t shift = level * QUEUE_SLOT_BITS;
		uint32_t index = (uint32_t)(queue->slot >> shift) % QUEUE_SLOTS;
		struct event *event;

		index = queue_next_used(queue->used[level], index);
		if (index == QUEUE_SLOTS)
			continue;
		queue->slot = (queue->slot >> shift >> QUEUE_SLOT_BITS << QUEUE_SLOT_BITS | index)
			      << shift;
		queue->used[level][index / 64] &= ~(UINT64_C(1) << index % 64);
		event = queue->slots[level][index];
		queue->slots[level][index] = NULL;
		while (event != NULL) {
			struct event *next = event->next;

			queue_place(queue, event);
			event = next;
		}
		return true;
	}
	return false;
}

struct event *queue_pop(struct queue *queue, uint64_t until_ns) {
	while (queue->heap_count == 0) {
		if (!queue_turn(queue))
			return NULL;
	}
	if (queue->heap[0].at_ns > until_ns)
		return NULL;
	queue->count--;
	queue->now_ns = queue->heap[0].at_ns;
	return queue_heap_take(queue);
}
