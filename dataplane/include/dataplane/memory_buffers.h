// SPDX-License-Identifier: BSD-3-Clause
// Buffers that peers may reach, by id and generation: what a local caller offers and peers ask for.
//
// An id is the caller's. Each registration of it has another generation, so that a late release by
// a peer never ends a newer one. Every buffer has a registration of its own (MEMORY_ALONE): when it
// is taken back, its key is dead, whatever lies beside it.
//
// A release is acknowledged when no device can reach the memory any more: not before operations
// that hold a view of it have ended and its region is deregistered. The memory may be used for
// something else from then on, and its owner is let go of.
//
// All calls are cold: the keeper of the registry's device.
#pragma once

#include <dataplane/memory.h>

#include <stdbool.h>
#include <stdint.h>

struct memory_buffers;

struct memory_buffer {
	uint64_t id;
	uint32_t generation;	 // never 0
	struct memory_view view; // the table's: who keeps it holds it
};

// Who waits for a release; the caller's, until it is done.
struct memory_release {
	// Once, from memory_reap(); it may register and release.
	void (*done)(struct memory_release *release);
	uint64_t id;
	uint32_t generation;
	struct memory_release *next; // private
};

// At most `max` buffers, those that are being taken back among them. -EINVAL (0), -ENOMEM.
int memory_buffers_create(
	struct memory_registry *registry, uint32_t max, struct memory_buffers **ret_buffers
);
// Releases all. NULL if none is left; else the table, to be called again after memory_reap(). It
// takes no more. Before the registry. NULL is fine.
struct memory_buffers *memory_buffers_destroy(struct memory_buffers *buffers);

// Registering the same again (range, access, owner) is the same buffer. -EEXIST: the id has another
// range or access. -ENOSPC: no room. -ESHUTDOWN, or as memory_view_take().
int memory_buffers_register(
	struct memory_buffers *buffers,
	uint64_t id,
	const struct memory_request *request,
	char ret_reason[static MEMORY_REASON_MAX + 1],
	struct memory_buffer *ret_buffer
);
// generation 0: the present one. -ENOENT: no such id. -ESTALE: that generation was taken back.
int memory_buffers_find(
	const struct memory_buffers *buffers,
	uint64_t id,
	uint32_t generation,
	struct memory_buffer *ret_buffer
);
// By its owner or for a peer, as often as it pleases. True: `release` will be done; several are,
// in order. False: there is nothing to release, so nobody reaches it; done is not called.
// generation 0: the present one. release may be NULL: nobody waits.
bool memory_buffers_release(
	struct memory_buffers *buffers,
	uint64_t id,
	uint32_t generation,
	struct memory_release *release
);

// Present ones, and those whose release is not done.
uint32_t memory_buffers_count(const struct memory_buffers *buffers);
uint32_t memory_buffers_leaving(const struct memory_buffers *buffers);
