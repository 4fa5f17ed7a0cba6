// SPDX-License-Identifier: BSD-3-Clause
// Rings with one producer thread and one consumer thread; one of them is a worker, and the memory
// is on its NUMA node.
//
// A ring copies elements of one size. The build selects the implementation: DPDK's rte_ring
// (dataplane/dpdk), or Tocsin's own ring in builds without DPDK (dataplane/dpdk_off). The four
// calls after near_ring_destroy() are inline, because a worker makes them in every turn.
#pragma once

#include <dataplane/near.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct near_ring; // opaque

// Create a ring of `count` elements, a power of two; count - 1 of them can be used. All of its
// memory is touched. Returns NULL if there is no memory.
struct near_ring *
near_ring_create(struct near near, const char *name, uint32_t count, uint32_t element_bytes);
// Free a ring. `near` and `element_bytes` are those of near_ring_create(). NULL is allowed.
void near_ring_destroy(struct near near, struct near_ring *ring, uint32_t element_bytes);

// Producer. Copy one element into the ring. Returns 0, or -ENOBUFS if the ring is full.
static inline int
near_ring_enqueue(struct near_ring *ring, const void *element, uint32_t element_bytes);
// Producer. Return a lower bound of the free slots; the consumer may free more meanwhile.
static inline uint32_t near_ring_free_count(const struct near_ring *ring);

// Consumer. Move up to `max` elements out of the ring, the oldest first. Returns their number.
static inline uint32_t near_ring_dequeue_burst(
	struct near_ring *ring, void *ret_elements, uint32_t element_bytes, uint32_t max
);
// Consumer. Return whether the ring has an element.
static inline bool near_ring_has_elements(const struct near_ring *ring);

#include <near_ring_inline.h>
