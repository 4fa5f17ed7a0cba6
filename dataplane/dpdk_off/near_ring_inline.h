// SPDX-License-Identifier: BSD-3-Clause
// The ring of builds without DPDK. Included by memory/near_ring.h only.
//
// Two counters run freely and wrap at 2^32: elements enqueued so far, and elements dequeued so far.
// Each has one writer, and lies on a cache line of its own. Guarantees:
//
//	A  A consumer that sees `enqueued` sees the elements before that count. The producer copies
//	   the element, then stores `enqueued` with release. The consumer loads `enqueued` with
//	   acquire, then copies the element.
//	B  A producer that sees `dequeued` may reuse the slots before that count. The consumer
//	   copies the element, then stores `dequeued` with release. The producer loads `dequeued`
//	   with acquire, then copies the next element.
//	C  0 <= enqueued - dequeued <= mask, so a slot is never written while it is read.
#pragma once

#include <lib/must.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

struct near_ring {
	uint32_t mask; // slots - 1, constant; also the number of elements that fit
	alignas(64) _Atomic uint32_t enqueued; // producer: rw, consumer: ro
	alignas(64) _Atomic uint32_t dequeued; // consumer: rw, producer: ro
	alignas(64) unsigned char slots[];
};

static inline uint32_t near_ring_free_count(const struct near_ring *ring) {
	// Relaxed: the producer is the only writer.
	uint32_t enqueued = atomic_load_explicit(&ring->enqueued, memory_order_relaxed);
	// Acquire pairs with the release in near_ring_dequeue_burst() (B).
	uint32_t dequeued = atomic_load_explicit(&ring->dequeued, memory_order_acquire);

	must_debug(enqueued - dequeued <= ring->mask);
	return ring->mask - (enqueued - dequeued);
}

static inline int
near_ring_enqueue(struct near_ring *ring, const void *element, uint32_t element_bytes) {
	// Relaxed: the producer is the only writer.
	uint32_t enqueued = atomic_load_explicit(&ring->enqueued, memory_order_relaxed);
	size_t slot = enqueued & ring->mask;

	if (near_ring_free_count(ring) == 0)
		return -ENOBUFS;
	memcpy(ring->slots + slot * element_bytes, element, element_bytes);
	// Release pairs with the acquire in near_ring_dequeue_burst() (A).
	atomic_store_explicit(&ring->enqueued, enqueued + 1, memory_order_release);
	return 0;
}

static inline uint32_t near_ring_dequeue_burst(
	struct near_ring *ring, void *ret_elements, uint32_t element_bytes, uint32_t max
) {
	// Relaxed: the consumer is the only writer.
	uint32_t dequeued = atomic_load_explicit(&ring->dequeued, memory_order_relaxed);
	// Acquire pairs with the release in near_ring_enqueue() (A).
	uint32_t enqueued = atomic_load_explicit(&ring->enqueued, memory_order_acquire);
	uint32_t count = enqueued - dequeued < max ? enqueued - dequeued : max;
	unsigned char *to = ret_elements;

	must_debug(enqueued - dequeued <= ring->mask);
	for (uint32_t n = 0; n < count; n++) {
		size_t slot = (dequeued + n) & ring->mask;

		memcpy(to + (size_t)n * element_bytes, ring->slots + slot * element_bytes,
		       element_bytes);
	}
	// Release pairs with the acquire in near_ring_free_count() (B).
	atomic_store_explicit(&ring->dequeued, dequeued + count, memory_order_release);
	return count;
}

static inline bool near_ring_has_elements(const struct near_ring *ring) {
	// Relaxed: the consumer is the only writer.
	uint32_t dequeued = atomic_load_explicit(&ring->dequeued, memory_order_relaxed);

	// Relaxed: the result orders nothing. near_ring_dequeue_burst() loads `enqueued` with
	// acquire.
	return atomic_load_explicit(&ring->enqueued, memory_order_relaxed) != dequeued;
}
