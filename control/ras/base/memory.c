// SPDX-License-Identifier: BSD-3-Clause
// Copies and growing arrays of an instance. An allocation failure is returned, never fatal.
#include "base/memory.h"

#include <errno.h>
#include <string.h>

#define GROW_MIN 8
// Small arrays grow by half, larger ones by an eighth. The tables of ten thousand peers are most of
// an instance and should not be a third empty.
#define GROW_HALF_MAX 1024

void *memory_copy(struct memory *memory, const void *model, size_t size) {
	void *taken;

	if (memory->source.copy != NULL) {
		taken = memory->source.copy(memory->source.ctx, model, size);
		memory->used_bytes += taken != NULL ? size : 0;
		memory->failures += taken == NULL;
		return taken;
	}
	taken = memory_allocate(memory, size);
	if (taken != NULL)
		memcpy(taken, model, size);
	return taken;
}

int memory_grow(
	struct memory *memory,
	void **array,
	uint32_t *capacity,
	uint32_t needed,
	size_t element_bytes
) {
	return memory_grow_within(memory, array, capacity, needed, UINT32_MAX, element_bytes);
}

int memory_grow_within(
	struct memory *memory,
	void **array,
	uint32_t *capacity,
	uint32_t needed,
	uint32_t most,
	size_t element_bytes
) {
	uint32_t wanted = *capacity + *capacity / (*capacity < GROW_HALF_MAX ? 2 : 8);
	void *grown;

	if (needed <= *capacity)
		return 0;
	if (wanted < needed)
		wanted = needed;
	if (wanted < GROW_MIN)
		wanted = GROW_MIN;
	if (wanted > most)
		wanted = most;
	must(wanted >= needed);
	grown = memory_allocate(memory, wanted * element_bytes);
	if (grown == NULL)
		return -ENOMEM;
	if (*capacity > 0)
		memcpy(grown, *array, *capacity * element_bytes);
	memory_release(memory, *array, *capacity * element_bytes);
	*array = grown;
	*capacity = wanted;
	return 0;
}
