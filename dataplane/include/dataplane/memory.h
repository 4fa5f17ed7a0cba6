// SPDX-License-Identifier: BSD-3-Clause
// Registered memory: what a device may read and write, and for how long.
//
// A registry belongs to one open device and holds its registrations, shared and counted. Who wants
// to use a range takes a view, a range of a registration that holds a reference: as long as there
// is a view nothing under it is deregistered. Every work request holds one, so memory is not given
// back while a device can still reach it.
//
// Taking views and deregistering is cold (the device's keeper). Giving a view back is not: the last
// one leaves its registration on a list of the dead, which memory_reap() frees. What is dead is
// never used again, for its memory may have become another's since.
//
// What is shared: views for own use only share any registration that has the range and access
// enough. Views that peers may use share one with exactly their access, or with MEMORY_ALONE none
// at all. Host memory is registered by whole pages for own use, and to the byte for peers.
//
// Device memory is registered by the first of these that works; if none does, the reason has all:
//	the registration of its whole allocation (or the piece of it that a device can hold at
//	once), if there is one for this allocation, not for an earlier one at the same place
//	the allocation, asked for anew, as dmabuf; not with MEMORY_ALONE
//	the pages of the range as dmabuf
//	its address, if the kernel has nvidia_peermem
#pragma once

#include <dataplane/cuda.h>
#include <dataplane/device.h>
#include <lib/clock.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_REASON_MAX 511

// What peers may do; own devices may always read and, where a peer may write, write.
#define MEMORY_PEER_READS 0x01
#define MEMORY_PEER_WRITES 0x02
#define MEMORY_PEER_ATOMICS 0x04
#define MEMORY_LOCAL_WRITES 0x08 // a read's destination, a receive
#define MEMORY_ALONE 0x10	 // a registration of its own, that ends with the view

struct memory_registry; // one per open device
struct memory_region;	// one registration

// Immutable once taken; copied freely by its one owner.
struct memory_view {
	struct memory_region *region;
	const struct device *device; // whose keys these are
	uint64_t address; // of the range, as the process knows it; device memory has one too
	uint64_t length;
	uint64_t wire_address; // what a work request says, on either side
	uint32_t local_key;
	uint32_t remote_key; // 0 if no peer may do anything
	bool host;	     // the processor may read and write it at `address`
};

// Another reference on what is under the view. Any thread; hot.
void memory_view_hold(const struct memory_view *view);
// Any thread; hot.
void memory_view_put(const struct memory_view *view);

// Who keeps the memory itself alive: held once for a registration, dropped when no device can
// reach it any more. Only ranges of one owner share a registration. On the keeper's thread.
struct memory_owner {
	void (*hold)(void *ctx);
	void (*drop)(void *ctx);
	void *ctx;
};

struct memory_request {
	uint64_t address;
	uint64_t length;
	uint32_t access;
	const struct memory_owner *owner; // NULL: who takes the view sees to it
};

struct memory_config {
	struct device *device; // a reference of the registry's own is taken
	const struct clock *clock;
	const struct cuda *cuda;   // NULL: every address is the host's
	uint32_t regions_max;	   // 0: as many as the device can
	uint64_t region_bytes_max; // of one; 0: as the device can
	uint64_t failure_ns;	   // a failed registration is not tried again for so long
	const char *modules_path;  // NULL: /proc/modules
};

struct memory_counts {
	uint32_t regions;    // those that wait to be reaped among them
	uint64_t bytes;	     // of these
	uint64_t registered; // ever
	uint64_t shared;     // views that needed no registration
	uint64_t failed;     // registrations the driver refused
	uint64_t remembered; // requests refused for a failure before
};

// -ENOMEM.
int memory_registry_create(
	const struct memory_config *config, struct memory_registry **ret_registry
);
// Reaps. NULL if it is gone, and its reference on the device with it; else the registry: there are
// views still, or the device does not let go of memory. It gives no more views; to be called again
// when views were given back. NULL is fine.
struct memory_registry *memory_registry_destroy(struct memory_registry *registry);

// -EINVAL (no bytes, past the end of addresses, access that is none), -EOPNOTSUPP (atomics on a
// device without), -EFBIG (larger than a region can be), -ENOSPC (as many regions as there may be),
// -ESHUTDOWN (after memory_registry_destroy()), -ENOMEM, or what the driver said. All have a reason
// but -ENOMEM of our own.
int memory_view_take(
	struct memory_registry *registry,
	const struct memory_request *request,
	char ret_reason[static MEMORY_REASON_MAX + 1],
	struct memory_view *ret_view
);
// A part of a dmabuf that the caller has exported and keeps, alone, as MEMORY_ALONE: `offset` is
// where the range begins in it, request->address what the range is called on the wire. Asks no
// libcuda. Once it is registered the descriptor may be closed. Errors as above.
int memory_view_take_dmabuf(
	struct memory_registry *registry,
	const struct memory_request *request,
	int fd,
	uint64_t offset,
	char ret_reason[static MEMORY_REASON_MAX + 1],
	struct memory_view *ret_view
);

// Deregisters what has no view any more, then lets go of its owners. The first error of the driver:
// that region is kept, and tried again the next time.
int memory_reap(struct memory_registry *registry);

struct memory_counts memory_counts(const struct memory_registry *registry);

// What memory is at an address.
enum memory_kind {
	MEMORY_HOST,
	MEMORY_DEVICE,
	MEMORY_MANAGED, // host memory that moves to a device and back
};

struct memory_place {
	enum memory_kind kind;
	uint32_t ordinal;	  // of DEVICE and MANAGED, as CUDA counts
	char pci[CUDA_PCI_BYTES]; // of that device, "" if not known
};

// cuda may be NULL. A keeper's thread.
struct memory_place memory_place(const struct cuda *cuda, uint64_t address);
