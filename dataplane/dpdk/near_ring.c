// SPDX-License-Identifier: BSD-3-Clause
// Creates and frees an rte_ring whose memory lies on a given NUMA node.
#include "memory/near_ring.h"

#include <string.h>

struct near_ring *
near_ring_create(struct near near, const char *name, uint32_t count, uint32_t element_bytes) {
	ssize_t size = rte_ring_get_memsize_elem(element_bytes, count);
	struct near_ring *ring;

	if (size < 0)
		return NULL;
	ring = near_alloc(near, (size_t)size);
	if (ring == NULL)
		return NULL;
	memset(ring, 0, (size_t)size);
	if (rte_ring_init(&ring->ring, name, count, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) {
		near_free(near, ring, (size_t)size);
		return NULL;
	}
	return ring;
}

void near_ring_destroy(struct near near, struct near_ring *ring, uint32_t element_bytes) {
	ssize_t size;

	if (ring == NULL)
		return;
	size = rte_ring_get_memsize_elem(element_bytes, ring->ring.size);
	near_free(near, ring, (size_t)size);
}
