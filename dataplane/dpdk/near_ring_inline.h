// SPDX-License-Identifier: BSD-3-Clause
// The inline calls of memory/near_ring.h over DPDK's rte_ring. Included by that header only.
#pragma once

#include <dataplane/dpdk.h>

struct near_ring {
	struct rte_ring ring; // the elements follow
};

// DPDK only reads the element, but takes a pointer that is not const.
static inline int
near_ring_enqueue(struct near_ring *ring, const void *element, uint32_t element_bytes) {
	return rte_ring_sp_enqueue_elem(&ring->ring, (void *)element, element_bytes);
}

static inline uint32_t near_ring_free_count(const struct near_ring *ring) {
	return rte_ring_free_count(&ring->ring);
}

static inline uint32_t near_ring_dequeue_burst(
	struct near_ring *ring, void *ret_elements, uint32_t element_bytes, uint32_t max
) {
	return rte_ring_sc_dequeue_burst_elem(&ring->ring, ret_elements, element_bytes, max, NULL);
}

// rte_ring_empty() would read the producer's index without any ordering. Acquire pairs with the
// release by which DPDK publishes an element. The caller is the consumer, so its own index needs no
// ordering.
static inline bool near_ring_has_elements(const struct near_ring *ring) {
	uint32_t tail = __atomic_load_n(&ring->ring.prod.tail, __ATOMIC_ACQUIRE);

	return tail != ring->ring.cons.tail;
}
