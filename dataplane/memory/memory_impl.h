// SPDX-License-Identifier: BSD-3-Clause
// What the hot and the cold half of memory share.
#pragma once

#include <dataplane/memory.h>

#include <stdalign.h>

#define MEMORY_FAILURES_MAX 64
#define MEMORY_PEER_ACCESS (MEMORY_PEER_READS | MEMORY_PEER_WRITES | MEMORY_PEER_ATOMICS)

struct memory_region {
	alignas(64) _Atomic uint32_t refs; // any thread; 0: dead, for good
	struct memory_region *next_dead;   // who gave the last view back, then the keeper
	struct memory_registry *registry;
	// Constant from here on. The range is what is really registered.
	uint64_t address;
	uint64_t length;
	uint64_t wire_address; // of the first byte
	uint32_t access;       // normal form
	uint64_t allocation;   // of CUDA; 0: host
	struct ibv_mr *mr;
	struct memory_owner owner; // hold NULL: none
};

// Refused by the driver, and not to be tried again before until_ns.
struct memory_failure {
	uint64_t address, length;
	uint32_t access;
	uint64_t allocation;
	uint64_t until_ns; // 0: free
	int err;
	char reason[MEMORY_REASON_MAX + 1];
};

struct memory_registry {
	// Pushed to by any thread, taken whole by the keeper: no region comes back while another
	// thread looks at it.
	alignas(64) _Atomic(struct memory_region *) dead;
	// The keeper's from here on.
	alignas(64) struct memory_config config; // with the device's limits filled in
	const struct verbs_calls *calls;
	bool closing;
	struct memory_region **regions; // by address; the dead among them until they are reaped
	uint32_t count, room;
	uint64_t longest;	     // no region in the index is longer
	struct memory_region *stuck; // dead, but the driver did not let go
	struct memory_failure *failures;
	uint32_t failure_next;
	struct memory_counts counts;
};

// A request in normal form, and what its memory is.
struct memory_wanted {
	uint64_t address, length;
	uint32_t access; // PEER_WRITES and PEER_ATOMICS have LOCAL_WRITES with them
	struct memory_owner owner;
	enum memory_kind kind;
	uint64_t allocation;
};

// A reason that grows by one clause for each thing that failed.
struct memory_reason {
	char *text; // MEMORY_REASON_MAX + 1 bytes
	size_t used;
};

void memory_reason_add(struct memory_reason *reason, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
const char *memory_errno_name(int err);

// What a registration is made of.
struct memory_source {
	uint64_t address, length; // exactly this
	int fd;			  // of a dmabuf, -1: the address itself
	uint64_t offset;	  // of the first byte in it
	const char *what;	  // for the reason
};

// One registration that is entered in the index, with one reference for the caller.
int memory_region_add(
	struct memory_registry *registry,
	const struct memory_wanted *wanted,
	const struct memory_source *source,
	struct memory_reason *reason,
	struct memory_region **ret_region
);

// memory_index.c. Room for one more is made before the driver is asked: adding never fails.
int memory_index_reserve(struct memory_registry *registry);
void memory_index_add(struct memory_registry *registry, struct memory_region *region);
void memory_index_remove(struct memory_registry *registry, const struct memory_region *region);
// One that is alive and may be shared, with a reference for the caller; else NULL.
struct memory_region *
memory_index_find(const struct memory_registry *registry, const struct memory_wanted *wanted);

// memory_device.c: the chain for memory of a device.
int memory_device_add(
	struct memory_registry *registry,
	const struct memory_wanted *wanted,
	struct memory_reason *reason,
	struct memory_region **ret_region
);
uint64_t memory_page_bytes(void);

// memory_failure.c
// NULL: none that holds still.
const struct memory_failure *
memory_failure_find(struct memory_registry *registry, const struct memory_wanted *wanted);
void memory_failure_keep(
	struct memory_registry *registry,
	const struct memory_wanted *wanted,
	int err,
	const char *reason
);
