// SPDX-License-Identifier: BSD-3-Clause
// Registered memory: ranges that a device may read and write, and their lifetime.
//
// A registry belongs to one open device and holds its reference-counted registrations. To use a
// range, a caller takes a view: a range within a registration, with a reference. A registration is
// not deregistered while it has a view. Every work request holds a view, so no memory is freed
// while a device can still reach it.
//
// Taking views and deregistering is cold and runs on the device's keeper. Returning a view is hot:
// the last one puts its registration on a list of dead ones, which memory_deregister_dead() frees.
// A dead registration is never used again, because its memory may have a new owner.
//
// Views for local use share any registration with sufficient range and access. Views for peers
// share only one with exactly their access, and none with MEMORY_UNSHARED. Host memory is
// registered in whole pages for local use, and to the byte for peers.
//
// Device memory is registered by the first of these methods that works. If all fail, the reason
// lists every error.
// 1. An existing registration of the same allocation, or of the piece of it that the device can
//    hold. An earlier allocation at the same address does not count.
// 2. The whole allocation, exported as dmabuf; not with MEMORY_UNSHARED.
// 3. The pages of the range, exported as dmabuf.
// 4. The address itself, if the kernel has nvidia_peermem.
#pragma once

#include <dataplane/cuda.h>
#include <dataplane/device.h>
#include <lib/clock.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_REASON_MAX 511

// Access rights of peers. The local device may always read, and may write where a peer may write.
#define MEMORY_PEER_READS 0x01
#define MEMORY_PEER_WRITES 0x02
#define MEMORY_PEER_ATOMICS 0x04
#define MEMORY_LOCAL_WRITES 0x08 // destination of a read, or a receive buffer
#define MEMORY_UNSHARED 0x10	 // a separate registration that ends with its view

struct memory_registry; // one per open device
struct memory_region;	// one registration

// A view of registered memory. Immutable; its one owner may copy it.
struct memory_view {
	struct memory_region *region;
	const struct device *device; // device that the keys belong to
	// Start of the range in the process's address space, also for device memory
	uint64_t address;
	uint64_t length;
	uint64_t wire_address; // address for work requests of either side
	uint32_t local_key;
	uint32_t remote_key; // 0 if peers have no access
	bool host;	     // the processor may access it at `address`
};

// Take another reference on the memory of the view. Any thread; hot.
void memory_view_ref(const struct memory_view *view);
// Drop one reference. Any thread; hot.
void memory_view_put(const struct memory_view *view);

// Owner that keeps the memory itself alive. A registration calls hold once, and drop when no device
// can reach the memory any more. Only ranges with the same owner share a registration. Called on
// the keeper's thread.
struct memory_owner {
	void (*hold)(void *ctx);
	void (*drop)(void *ctx);
	void *ctx;
};

struct memory_request {
	uint64_t address;
	uint64_t length;
	uint32_t access;
	const struct memory_owner *owner; // NULL: the caller keeps the memory alive
};

struct memory_config {
	struct device *device; // the registry takes a reference of its own
	const struct clock *clock;
	const struct cuda *cuda;   // NULL: all addresses are host memory
	uint32_t regions_max;	   // 0: the device's limit
	uint64_t region_bytes_max; // per region; 0: the device's limit
	uint64_t failure_ns;	   // time before a failed registration is retried
	const char *modules_path;  // NULL: /proc/modules
};

struct memory_counts {
	uint32_t regions;    // including those that wait for memory_deregister_dead()
	uint64_t bytes;	     // total bytes of these regions
	uint64_t registered; // since the start
	uint64_t shared;     // views that needed no new registration
	uint64_t failed;     // registrations that the driver refused
	uint64_t remembered; // requests refused because of a recent failure
};

// Returns 0 or -ENOMEM.
int memory_registry_create(
	const struct memory_config *config, struct memory_registry **ret_registry
);
// Stop new views, deregister dead regions, and destroy the registry if possible. Returns NULL if
// the registry and its device reference are gone. Returns the registry while views exist or the
// device holds memory; call again after views were returned. NULL is fine.
struct memory_registry *memory_registry_destroy(struct memory_registry *registry);

// Take a view of a range. Returns -EINVAL (empty range, address overflow, unknown access),
// -EOPNOTSUPP (atomics unsupported), -EFBIG (larger than a region may be), -ENOSPC (no region
// left), -ESHUTDOWN (after memory_registry_destroy()), -ENOMEM, or the driver's error. ret_reason
// explains each error except -ENOMEM of this process.
int memory_view_get(
	struct memory_registry *registry,
	const struct memory_request *request,
	char ret_reason[static MEMORY_REASON_MAX + 1],
	struct memory_view *ret_view
);
// Take an unshared view of a part of a dmabuf that the caller exported and owns. The range begins
// at `offset` in the dmabuf; request->address is its address on the wire. Does not use libcuda. The
// caller may close the descriptor after registration. Errors as above.
int memory_view_get_dmabuf(
	struct memory_registry *registry,
	const struct memory_request *request,
	int fd,
	uint64_t offset,
	char ret_reason[static MEMORY_REASON_MAX + 1],
	struct memory_view *ret_view
);

// Deregister all regions without a view, then release their owners. Returns the driver's first
// error; a region that failed is kept for the next call.
int memory_deregister_dead(struct memory_registry *registry);

struct memory_counts memory_counts(const struct memory_registry *registry);

// Type of memory at an address.
enum memory_kind {
	MEMORY_HOST,
	MEMORY_DEVICE,
	MEMORY_MANAGED, // host memory that migrates to a device and back
};

struct memory_location {
	enum memory_kind kind;
	uint32_t ordinal;	  // CUDA's device number, for DEVICE and MANAGED
	char pci[CUDA_PCI_BYTES]; // PCI address of that device; "": unknown
};

// Return the type of memory at `address`. cuda may be NULL. Runs on a keeper.
struct memory_location memory_location(const struct cuda *cuda, uint64_t address);
