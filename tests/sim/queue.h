// SPDX-License-Identifier: BSD-3-Clause
// What will happen, in strict order of (time, order of insertion).
//
// A hierarchical timing wheel: an event waits in the slot of its time, far ones in coarser
// wheels; the slot that is current is a small heap. Pushing and popping cost the same however
// many events wait. An event and the bytes it carries are one block of the pool.
#pragma once

#include "pool.h"

#include <stdbool.h>
#include <stdint.h>

#define QUEUE_LEVELS 5
#define QUEUE_SLOT_BITS 10
#define QUEUE_SLOTS (1u << QUEUE_SLOT_BITS)
// A slot of the finest wheel is 4.2 ms: the heap of a thousand nodes holds some thirty, so that
// what comes next is known early.
#define QUEUE_GRAIN_BITS 22

struct event {
	struct event *next; // the holder's
	uint64_t at_ns;
	uint64_t sequence;
	uint32_t size; // of bytes
	uint32_t target;
	uint32_t generation;
	uint16_t kind;
	uint16_t code;
	uint8_t bytes[];
};

struct queue_place {
	uint64_t at_ns;
	uint64_t sequence;
	struct event *event;
};

struct queue {
	struct pool *pool;
	uint64_t now_ns; // of the last event popped
	uint64_t sequence;
	uint64_t slot; // the heap holds everything up to its end
	struct queue_place *heap;
	uint32_t heap_count, heap_capacity;
	struct event *slots[QUEUE_LEVELS][QUEUE_SLOTS];
	uint64_t used[QUEUE_LEVELS][QUEUE_SLOTS / 64];
	uint64_t count;
};

// -ENOMEM.
int queue_init(struct queue *queue, struct pool *pool);
void queue_fini(struct queue *queue);

// An event with room for `size` bytes, not yet in the queue.
struct event *queue_event(struct queue *queue, uint32_t kind, uint32_t size);
void queue_release(struct queue *queue, struct event *event);
// From now on the queue's; not before the time of the last event popped.
void queue_push(struct queue *queue, struct event *event, uint64_t at_ns);
// The next event if it is not after `until_ns`, else NULL. The caller's from now on.
struct event *queue_pop(struct queue *queue, uint64_t until_ns);
// What will most likely come next, the n-th of it, or NULL: for those who want its data near.
static inline const struct event *queue_hint(const struct queue *queue, uint32_t n) {
	return queue->heap_count > n ? queue->heap[n].event : NULL;
}
