// SPDX-License-Identifier: BSD-3-Clause
// Registered memory: found by key, checked, and written so that the last byte is seen last.
#pragma once

#include "nic/nic.h"

#include <lib/container.h>

#include <string.h>

struct soft_mr {
	struct ibv_mr verbs; // lkey and rkey are one
	struct soft_nic *nic;
	uint64_t iova;	// what the first byte is addressed by
	uint8_t *bytes; // where it is
	size_t length;
	int access;
	void *mapping; // of a dmabuf: ours to unmap; else NULL
	size_t mapping_length;
};

static inline struct soft_mr *mr_of(struct ibv_mr *mr) {
	return container_of(mr, struct soft_mr, verbs);
}

// The table only; verbs' structs are made by the caller. -ENOMEM. Draws the key.
int region_add(struct soft_nic *nic, struct soft_mr *mr);
void region_remove(struct soft_nic *nic, struct soft_mr *mr);

// Where these bytes are; NULL if the key is unknown, of another PD, the range is not within, or one
// of the rights in `access` is missing. length 0 is refused: who has no bytes asks for none.
uint8_t *region_reach(
	const struct soft_nic *nic,
	const struct ibv_pd *pd,
	uint32_t key,
	uint64_t address,
	uint64_t length,
	int access
);

// For programs that spin on the last byte of what is written to them, or on a word that it ends:
// everything before it is visible first, and a word of 8 or 4 bytes that lies aligned at the end is
// never seen in halves. Release pairs with the reader's acquire, or with its processor's ordering.
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
