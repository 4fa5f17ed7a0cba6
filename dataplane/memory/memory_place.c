// SPDX-License-Identifier: BSD-3-Clause
// What memory an address is of, and which device that makes the one to reach it.
#include <dataplane/memory.h>

struct memory_place memory_place(const struct cuda *cuda, uint64_t address) {
	struct memory_place place = {.kind = MEMORY_HOST};
	struct cuda_memory memory;

	if (cuda == NULL || cuda_memory(cuda, address, &memory) != 0 ||
	    (!memory.device && !memory.managed))
		return place;
	place.kind = memory.managed ? MEMORY_MANAGED : MEMORY_DEVICE;
	if (memory.ordinal < 0)
		return place;
	place.ordinal = (uint32_t)memory.ordinal;
	if (cuda_pci(cuda, place.ordinal, place.pci) != 0)
		place.pci[0] = '\0';
	return place;
}
