// SPDX-License-Identifier: BSD-3-Clause
// The instance's memory, counted.
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

// A copy of an array that changes no more; NULL without memory.
void *memory_copy(struct memory *memory, const void *model, size_t size);

// `size` is what was asked for. NULL is nothing to do.
static inline void memory_release(struct memory *memory, void *taken, size_t size) {
	if (taken == NULL)
		return;
	must(memory->used_bytes >= size);
	memory->used_bytes -= size;
	memory->source.release(memory->source.ctx, taken, size);
}

// Grows an array by a part of itself or more, old contents kept. -ENOMEM leaves it as it was.
int memory_grow(
	struct memory *memory,
	void **array,
	uint32_t *capacity,
	uint32_t needed,
	size_t element_bytes
);
// The same for an array that never holds more than `most` elements, which take no more room.
int memory_grow_within(
	struct memory *memory,
	void **array,
	uint32_t *capacity,
	uint32_t needed,
	uint32_t most,
	size_t element_bytes
);
