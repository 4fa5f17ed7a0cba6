// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the hot and the cold part of memory registration.
#pragma once

#include <dataplane/memory.h>

#include <stdalign.h>

#define MEMORY_FAILURES_MAX 64
#define MEMORY_PEER_ACCESS (MEMORY_PEER_READS | MEMORY_PEER_WRITES | MEMORY_PEER_ATOMICS)

struct memory_region {
	alignas(64) _Atomic uint32_t refs; // references, any thread; 0: dead, final
	// Written by the thread that dropped the last view, then owned by the keeper
	struct memory_region *next_dead;
	struct memory_registry *registry;
	// Constant from here on. The range is the one actually registered.
	uint64_t address;
	uint64_t length;
	uint64_t wire_address; // of the first byte
	uint32_t access;       // IBV_ACCESS_*, with the flags that others imply
	uint64_t allocation;   // id of the CUDA allocation; 0: host memory
	struct ibv_mr *mr;
	struct memory_owner owner; // hold NULL: no owner
};

// A registration that the driver refused; it is not retried before until_ns.
struct memory_failure {
	uint64_t address, length;
	uint32_t access;
	uint64_t allocation;
	uint64_t until_ns; // 0: unused entry
	int err;
	char reason[MEMORY_REASON_MAX + 1];
};

struct memory_registry {
	// Dead regions: pushed by any thread, taken as a whole by the keeper. So no region can be
	// pushed again while another thread examines it (no ABA problem).
	alignas(64) _Atomic(struct memory_region *) dead;
	// Owned by the keeper from here on.
	alignas(64) struct memory_config config; // with the device's limits filled in
	const struct verbs_calls *calls;
	bool closing;
	// Sorted by address; dead regions stay until they are reaped
	struct memory_region **regions;
	uint32_t count, room;
	uint64_t longest;	     // upper bound of the region lengths
	struct memory_region *stuck; // dead regions that the driver refused to deregister
	struct memory_failure *failures;
	uint32_t failure_next;
	struct memory_counts counts;
};

// A normalised request with the type of its memory.
struct memory_normal_request {
	uint64_t address, length;
	uint32_t access; // PEER_WRITES and PEER_ATOMICS imply LOCAL_WRITES
	struct memory_owner owner;
	enum memory_kind kind;
	uint64_t allocation;
};

// A reason text; each failed attempt adds a clause.
struct memory_reason {
	char *text; // MEMORY_REASON_MAX + 1 bytes
	size_t used;
};

void memory_reason_add_clause(struct memory_reason *reason, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
const char *memory_errno_name(int err);

// Memory for one registration.
struct memory_source {
	uint64_t address, length; // exact range
	int fd;			  // a dmabuf, or -1: register the address itself
	uint64_t offset;	  // offset of the first byte in the dmabuf
	const char *what;	  // text for the reason
};

// Register memory and enter it in the index; the caller owns one reference.
int memory_region_add(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	const struct memory_source *source,
	struct memory_reason *reason,
	struct memory_region **ret_region
);

// memory_index.c. Reserve one slot before the driver is called, so that adding never fails.
int memory_index_reserve(struct memory_registry *registry);
void memory_index_add(struct memory_registry *registry, struct memory_region *region);
void memory_index_remove(struct memory_registry *registry, const struct memory_region *region);
// Return a live region that the request may share, with a reference for the caller, or NULL.
struct memory_region *memory_index_find(
	const struct memory_registry *registry, const struct memory_normal_request *wanted
);

// memory_device.c: try the registration methods for device memory.
int memory_register_device(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	struct memory_reason *reason,
	struct memory_region **ret_region
);
uint64_t memory_page_bytes(void);

// memory_failure.c
// Return a failure that is still remembered, or NULL.
const struct memory_failure *
memory_failure_find(struct memory_registry *registry, const struct memory_normal_request *wanted);
void memory_failure_remember(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	int err,
	const char *reason
);
