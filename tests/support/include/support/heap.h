// SPDX-License-Identifier: BSD-3-Clause
// A heap for users of struct ras_memory: unlimited, or counted and failing on demand.
#pragma once

#include <lib/must.h>
#include <ras/memory.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// A counted heap. All zero: no allocation fails.
struct heap {
	size_t used_bytes;
	uint64_t asked;	      // allocations so far, including failed ones
	uint64_t fails_at;    // number of the allocation that fails
	uint64_t fails_every; // every n-th allocation fails
	uint64_t fails_from;  // this allocation and all later ones fail
};

static inline void *heap_allocate(void *ctx, size_t size) {
	struct heap *heap = ctx;
	void *taken;

	if (heap == NULL)
		return calloc(1, size);
	heap->asked++;
	if (heap->asked == heap->fails_at ||
	    (heap->fails_every > 0 && heap->asked % heap->fails_every == 0) ||
	    (heap->fails_from > 0 && heap->asked >= heap->fails_from))
		return NULL;
	taken = calloc(1, size);
	must(taken != NULL);
	heap->used_bytes += size;
	return taken;
}

static inline void heap_release(void *ctx, void *memory, size_t size) {
	struct heap *heap = ctx;

	if (heap != NULL && memory != NULL) {
		must(heap->used_bytes >= size);
		heap->used_bytes -= size;
	}
	free(memory);
}

// Initialize a struct ras_memory with a struct heap, or with NULL: neither counted nor failing.
#define HEAP_MEMORY(heap) \
	{ .allocate = heap_allocate, .release = heap_release, .ctx = (heap) }

// Let `count` more allocations succeed, then none.
static inline void heap_leave(struct heap *heap, uint64_t count) {
	heap->fails_from = heap->asked + count + 1;
}

static inline void heap_refill(struct heap *heap) {
	heap->fails_from = 0;
}
