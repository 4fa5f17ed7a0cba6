// SPDX-License-Identifier: BSD-3-Clause
// Registered memory: lookup by key, access checks, and a copy that writes the last byte last.
#pragma once

#include "nic/nic.h"

#include <lib/container.h>

#include <string.h>

struct soft_mr {
	struct ibv_mr verbs; // lkey and rkey are equal
	struct soft_nic *nic;
	uint64_t iova;	// address of the first byte in work requests
	uint8_t *bytes; // address of the first byte in this process
	size_t length;
	int access;
	void *mapping; // mapping of a dmabuf, which this struct owns; else NULL
	size_t mapping_length;
};

static inline struct soft_mr *soft_mr_of(struct ibv_mr *mr) {
	return container_of(mr, struct soft_mr, verbs);
}

// Add a region to the table and draw its key. The caller fills the verbs struct. Returns 0 or
// -ENOMEM.
int region_add(struct soft_nic *nic, struct soft_mr *mr);
void region_remove(struct soft_nic *nic, struct soft_mr *mr);

// Return the address of a range in this process. Returns NULL if the key is unknown or belongs to
// another PD, the range is not inside, or a right in `access` is missing. length 0 is refused, so
// callers without bytes must not ask.
uint8_t *region_resolve(
	const struct soft_nic *nic,
	const struct ibv_pd *pd,
	uint32_t key,
	uint64_t address,
	uint64_t length,
	int access
);

// Copy so that everything else is visible before the end. Programs spin on the last byte of a
// write, or on a word at its end. An aligned word of 8 or 4 bytes at the end is never seen half
// written. Release pairs with the reader's acquire, or with the ordering of its processor.
static inline void copy_last_byte_last(uint8_t *to, const uint8_t *from, size_t size) {
	uintptr_t end = (uintptr_t)to + size;
	uint64_t word8;
	uint32_t word4;

	if (size == 0)
		return;
	if (size >= sizeof(word8) && end % sizeof(word8) == 0) {
		size -= sizeof(word8);
		memcpy(to, from, size);
		memcpy(&word8, from + size, sizeof(word8));
		__atomic_store_n((uint64_t *)(void *)(to + size), word8, __ATOMIC_RELEASE);
	} else if (size >= sizeof(word4) && end % sizeof(word4) == 0) {
		size -= sizeof(word4);
		memcpy(to, from, size);
		memcpy(&word4, from + size, sizeof(word4));
		__atomic_store_n((uint32_t *)(void *)(to + size), word4, __ATOMIC_RELEASE);
	} else {
		memcpy(to, from, size - 1);
		__atomic_store_n(&to[size - 1], from[size - 1], __ATOMIC_RELEASE);
	}
}
