// SPDX-License-Identifier: BSD-3-Clause
// The heap, for what takes a struct ras_memory: without end, or counted and failing as told.
#pragma once

#include <lib/must.h>
#include <ras/memory.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// All zero: nothing fails.
struct heap {
	size_t used_bytes;
	uint64_t asked;	      // allocations so far, those that failed too
	uint64_t fails_at;    // that one
	uint64_t fails_every; // each so-manieth
	uint64_t fails_from;  // that one and all that follow
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

// Of a struct heap, or NULL: neither counted nor failing.
#define HEAP_MEMORY(heap) \
	{ .allocate = heap_allocate, .release = heap_release, .ctx = (heap) }

// So many allocations more succeed, then none.
static inline void heap_leave(struct heap *heap, uint64_t count) {
	heap->fails_from = heap->asked + count + 1;
}

static inline void heap_refill(struct heap *heap) {
	heap->fails_from = 0;
}
