// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <errno.h>
#include <string.h>

#define GROW_MIN 8

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
	// By half: a table that is large already should not be half empty as well.
	uint32_t wanted = *capacity + *capacity / 2;
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
