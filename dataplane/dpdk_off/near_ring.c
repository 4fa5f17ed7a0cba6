// SPDX-License-Identifier: BSD-3-Clause
// Creates and frees the ring of builds without DPDK.
#include "memory/near_ring.h"

static size_t ring_bytes(uint32_t count, uint32_t element_bytes) {
	return sizeof(struct near_ring) + (size_t)count * element_bytes;
}

struct near_ring *
near_ring_create(struct near near, const char *name, uint32_t count, uint32_t element_bytes) {
	struct near_ring *ring = near_alloc(near, ring_bytes(count, element_bytes));

	(void)name;
	must(count >= 2 && (count & (count - 1)) == 0 && element_bytes > 0);
	if (ring == NULL)
		return NULL;
	memset(ring, 0, ring_bytes(count, element_bytes));
	ring->mask = count - 1;
	return ring;
}

void near_ring_destroy(struct near near, struct near_ring *ring, uint32_t element_bytes) {
	if (ring != NULL)
		near_free(near, ring, ring_bytes(ring->mask + 1, element_bytes));
}
