// SPDX-License-Identifier: BSD-3-Clause
// Memory of one instance, with a count of its bytes.
#pragma once

#include <lib/must.h>
#include <ras/memory.h>

#include <stdint.h>

struct memory {
	struct ras_memory source;
	size_t used_bytes;
	uint64_t failures;
};

static inline void *memory_allocate(struct memory *memory, size_t size) {
	void *taken = memory->source.allocate(memory->source.ctx, size);

	if (taken == NULL) {
		memory->failures++;
		return NULL;
	}
	memory->used_bytes += size;
	return taken;
}

// Return a copy of an array that changes no more, or NULL without memory.
void *memory_copy(struct memory *memory, const void *model, size_t size);

// Release memory; `size` is what was asked for. NULL is ignored.
static inline void memory_release(struct memory *memory, void *taken, size_t size) {
	if (taken == NULL)
		return;
	must(memory->used_bytes >= size);
	memory->used_bytes -= size;
	memory->source.release(memory->source.ctx, taken, size);
}

// Grow an array to at least `needed` elements, keeping its contents. Returns 0, or -ENOMEM with the
// array unchanged.
int memory_grow(
	struct memory *memory,
	void **array,
	uint32_t *capacity,
	uint32_t needed,
	size_t element_bytes
);
// Do the same for an array of at most `most` elements, without allocating more room than that.
int memory_grow_within(
	struct memory *memory,
	void **array,
	uint32_t *capacity,
	uint32_t needed,
	uint32_t most,
	size_t element_bytes
);
