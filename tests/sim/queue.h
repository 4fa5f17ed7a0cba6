// SPDX-License-Identifier: BSD-3-Clause
// Future events, in strict order of (time, insertion).
//
// This is a hierarchical timing wheel. An event waits in the slot of its time; distant events
// wait in coarser wheels. The current slot is a small heap. The cost of push and pop does not
// depend on the number of events. An event and its bytes are one block of the pool.
#pragma once

#include "pool.h"

#include <stdbool.h>
#include <stdint.h>

#define QUEUE_LEVELS 5
#define QUEUE_SLOT_BITS 10
#define QUEUE_SLOTS (1u << QUEUE_SLOT_BITS)
// A slot of the finest wheel is 4.2 ms. For a thousand nodes the heap then holds some thirty
// events, enough to prefetch the next ones.
#define QUEUE_GRAIN_BITS 22

struct event {
	struct event *next; // for use by the current owner
	uint64_t at_ns;
	uint64_t sequence;
	uint32_t size; // length of `bytes`
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
	uint64_t now_ns; // time of the last popped event
	uint64_t sequence;
	uint64_t slot; // the heap holds all events up to the end of this slot
	struct queue_place *heap;
	uint32_t heap_count, heap_capacity;
	struct event *slots[QUEUE_LEVELS][QUEUE_SLOTS];
	uint64_t used[QUEUE_LEVELS][QUEUE_SLOTS / 64];
	uint64_t count;
};

// Returns 0 or -ENOMEM.
int queue_init(struct queue *queue, struct pool *pool);
void queue_fini(struct queue *queue);

// Create an event with room for `size` bytes; it is not queued yet.
struct event *queue_event(struct queue *queue, uint32_t kind, uint32_t size);
void queue_release(struct queue *queue, struct event *event);
// Enqueue an event; the queue takes ownership. `at_ns` must not precede the last popped event.
void queue_push(struct queue *queue, struct event *event, uint64_t at_ns);
// Return the next event if its time is at most `until_ns`, else NULL. The caller takes ownership.
struct event *queue_pop(struct queue *queue, uint64_t until_ns);
// Return the n-th of the events that probably come next, or NULL. Used for prefetching.
static inline const struct event *queue_hint(const struct queue *queue, uint32_t n) {
	return queue->heap_count > n ? queue->heap[n].event : NULL;
}
