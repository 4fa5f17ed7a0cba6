// SPDX-License-Identifier: BSD-3-Clause
// Rings of one producer and one consumer, in memory near the worker that is one of them.
#pragma once

#include <dataplane/dpdk.h>
#include <dataplane/near.h>

// Of `count` elements, a power of two; one fewer fits. All of it is touched. NULL: no memory.
struct rte_ring *
near_ring_create(struct near near, const char *name, uint32_t count, uint32_t element_bytes);
// With what it was made with. NULL is fine.
void near_ring_destroy(struct near near, struct rte_ring *ring, uint32_t element_bytes);
