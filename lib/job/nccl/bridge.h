// SPDX-License-Identifier: BSD-3-Clause
// Internal state of the NCCL plugin: the process, its communicators, and the locks.
//
// NCCL calls from several threads. The job's threads report launches. CUDA's callback thread
// reports launches of graphs, and launches beside graphs. NCCL's proxy thread calls as well and,
// from 2.31 on, its profiler thread. The plugin starts no thread, registers no exit handler and has
// no destructor. NCCL unloads the plugin after the last communicator, and NCCL's threads may still
// call while the process ends. So all data by which a callback finds its communicator is static.
#pragma once

#include "abi.h"
#include "operation.h"

#include <tocsin/job.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BRIDGE_COMMS_MAX 128u // libtocsin follows 127 communicators per process
#define BRIDGE_NAME_BYTES 32

enum bridge_level {
	BRIDGE_OFF,
	BRIDGE_LAUNCHES, // launches by the host
	BRIDGE_NETWORK,	 // plus completions by the network
	BRIDGE_SAMPLED,	 // plus starts and ends on the GPU, for one second of each minute
	BRIDGE_KERNELS,	 // the same all the time, if the interface version does it at low cost
	BRIDGE_ALWAYS,	 // the same all the time, in every version
};

struct bridge_lock {
	_Atomic uint32_t held; // taken by exchange with acquire, released by a store with release
};

struct track;

// One rank of one communicator: NCCL's context. init and finalize write it under bridge.lock.
struct bridge_comm {
	// True between init and finalize. init stores it last, finalize clears it first (release).
	// Callbacks read it first (acquire), and again under `lock`. The alignment keeps slots of
	// different GPUs' threads on separate cache lines. A power of two makes the check of a
	// context cheap.
	_Alignas(512) _Atomic bool alive;
	uint8_t version;    // version of NCCL's interface
	uint8_t generation; // generation of this slot, part of its handles
	uint16_t index;	    // index of this slot
	uint64_t hash;	    // 0: not known yet (versions 1 to 3)
	int32_t size, rank; // size 0: unknown
	char name[BRIDGE_NAME_BYTES];
	void *next_context; // context of the chained plugin

	struct bridge_lock lock; // guards the fields below; held for about ten nanoseconds
	struct tocsin_comm *followed;
	struct tocsin_counter *counter; // NULL: not counted
	struct operation_memo memo;
	uint64_t launched; // collective operations counted
	// operations launched by graphs, which are not in the sequence: see plugin.c
	uint64_t graph_launched;
	uint64_t sequence_seen[TOCSIN_KIND_COUNT]; // versions 1 to 4: NCCL's last number, plus 1
	// number of groups begun; written by one launching thread at a time, relaxed
	_Atomic uint32_t group;
	uint32_t countdown;  // launches until the next bridge_poll()
	uint32_t mask_epoch; // bridge.mask_epoch at the last launch
	struct track *track; // NULL: not needed so far
};
_Static_assert(sizeof(struct bridge_comm) == 512, "a power of two");

// State of the process. Written under `lock`; fields that callbacks read without it say so.
struct bridge {
	struct bridge_lock lock;
	uint32_t comm_count;
	struct tocsin_job *job;
	nccl_logger *logger;

	int32_t pid;
	bool forgets; // fork() clears bridge_process.yes in the child
	// NCCL's mask, one per process, which operations copy when they are enqueued. init stores
	// with release, launches load with acquire.
	int *_Atomic mask;
	int mask_written;
	_Atomic uint32_t mask_epoch; // number of changes of the mask; launches read it, relaxed
	_Atomic bool is_mapped;	     // see mapped.h; callbacks read it, relaxed
	int version;		     // version of NCCL's interface
	enum bridge_level own_level; // level from the environment
	enum bridge_level level;     // own_level, or the level that the agent requests
	bool is_sampling;	     // the current second is sampled
	_Atomic uint32_t stride;     // launches between two polls; callbacks read it, relaxed
	uint64_t polled_ns;
	uint64_t said; // BRIDGE_LOGGED_* bits
};

enum bridge_logged {
	BRIDGE_LOGGED_MANY = 1,	  // more communicators than can be followed
	BRIDGE_LOGGED_SIZE = 2,	  // NCCL does not report the number of ranks
	BRIDGE_LOGGED_GRAPHS = 4, // a sequence number was repeated
	BRIDGE_LOGGED_MASK = 8,	  // another writer changed the mask
	BRIDGE_LOGGED_LEVEL = 16, // invalid level name
	BRIDGE_LOGGED_NEXT = 32,  // error of the chained plugin
	BRIDGE_LOGGED_RECORD = 64,
	BRIDGE_LOGGED_FOLLOW = 128, // libtocsin cannot follow a communicator
};

extern struct bridge bridge;

static inline void bridge_lock_acquire(struct bridge_lock *lock) {
	while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) != 0)
		while (atomic_load_explicit(&lock->held, memory_order_relaxed) != 0)
			;
}

static inline bool bridge_lock_try(struct bridge_lock *lock) {
	return atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) == 0;
}

static inline void bridge_lock_release(struct bridge_lock *lock) {
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

// Whether this process loaded the plugin, or is a fork() child of it. The flag has a page of its
// own, which fork() clears. Written under bridge.lock, read by callbacks, relaxed, because a child
// has one thread.
struct bridge_process {
	_Alignas(4096) _Atomic bool yes;
	uint8_t rest_of_page[4095];
};
extern struct bridge_process bridge_process;

static inline bool bridge_is_own_process(void) {
	return atomic_load_explicit(&bridge_process.yes, memory_order_relaxed);
}

// Arguments of NCCL's init; name may be NULL, and hash and size 0 if the version does not report
// them.
struct bridge_identity {
	const char *name;
	uint64_t hash;
	int32_t nodes, size, rank;
	nccl_logger *logger;
};

// Handle NCCL's init and finalize; may take some time. init never fails: a communicator that cannot
// be followed is ignored.
void bridge_comm_begin(
	int version, void **ret_context, int *mask, const struct bridge_identity *identity
);
void bridge_comm_end(void *context);
// Versions 1 to 3: identify the communicator at its first operation. The caller holds comm->lock.
void bridge_comm_identify(struct bridge_comm *comm, const struct nccl_descriptor *descriptor);

// Poll the agent, the level and the mask; called from launches every `stride` calls. Never blocks,
// and returns at once if another thread is inside.
void bridge_poll(void);

// Return the level to use if the agent requests `asked`; a user's BRIDGE_OFF always wins.
enum bridge_level bridge_level_effective(enum bridge_level own, enum tocsin_level asked);
// Return the event mask of a level in a version of the interface.
int bridge_level_mask(enum bridge_level level, int version, bool is_sampling);
// Parse a level name. Returns BRIDGE_LAUNCHES and sets *ret_wrong if the name is invalid.
enum bridge_level bridge_level_parse(const char *text, bool *ret_wrong);

// Return an environment variable, or NULL if it is unset or empty.
const char *bridge_environment_value(const char *name);
// Write a message to NCCL's log, once for each value of enum bridge_logged.
__attribute__((format(printf, 2, 3))) void
bridge_log_once(enum bridge_logged said, const char *format, ...);

// Return the context of a slot and generation, or NULL. It may be finalized concurrently;
// bridge_comm_lock() checks that.
void *bridge_context_find(uint32_t index, uint32_t generation);

// Return the communicator of a context, or NULL, like bridge_comm_lock(), but without the lock.
struct bridge_comm *bridge_comm_find(void *context);
// Return the communicator of a context, locked. Returns NULL for an invalid or finalized context,
// and in a fork() child.
struct bridge_comm *bridge_comm_lock(void *context);

// NCCL's start and stop, without chained plugin and recording.
int event_start(
	int version, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
);
int event_stop(void *handle);
// Return this plugin's stop function, whose address identifies the plugin.
int (*bridge_own_stop(void))(void *handle);
