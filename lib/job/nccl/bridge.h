// SPDX-License-Identifier: BSD-3-Clause
// The NCCL plugin from inside: one process, its communicators, and who may touch what.
//
// NCCL calls from the job's threads (launches), from CUDA's callback thread (launches of graphs,
// and launches beside them), from its proxy thread and, from 2.31 on, from its profiler thread.
// Nothing here starts a thread, registers what runs at exit, or has a destructor: NCCL unloads the
// plugin after the last communicator, and while a process ends its threads still call. What a
// callback finds a communicator by is therefore static.
#pragma once

#include "abi.h"
#include "operation.h"

#include <tocsin/job.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BRIDGE_COMMS_MAX 128u // libtocsin follows 127 in a process
#define BRIDGE_NAME_BYTES 32

enum bridge_level {
	BRIDGE_OFF,
	BRIDGE_LAUNCHES, // what the host asked for
	BRIDGE_NETWORK,	 // and what the network has completed
	BRIDGE_SAMPLED,	 // and, for one second of each minute, what began and ended on the GPU
	BRIDGE_KERNELS,	 // the same all the time, with versions that do it at a low price
	BRIDGE_ALWAYS,	 // the same all the time, with all versions
};

struct bridge_lock {
	_Atomic uint32_t held; // exchange with acquire to take, store with release to give back
};

struct track;

// One rank of one communicator: NCCL's context. Written by init and finalize under bridge.lock.
struct bridge_comm {
	// Stored last by init, cleared first by finalize (release); read first by callbacks
	// (acquire), and again under `lock`. Places are apart, since threads of several GPUs each
	// have one; a power of two, since each callback checks that a context is a place.
	_Alignas(512) _Atomic bool alive;
	uint8_t version;    // of NCCL's interface
	uint8_t generation; // of this place, in its handles
	uint16_t index;	    // of this place
	uint64_t hash;	    // 0: not known yet (versions 1 to 3)
	int32_t size, rank; // size 0: not known
	char name[BRIDGE_NAME_BYTES];
	void *next_context; // of a chained plugin

	struct bridge_lock lock; // of what follows; held for some ten nanoseconds
	struct tocsin_comm *followed;
	struct tocsin_counter *counter; // NULL: nobody counts
	struct operation_memo memo;
	uint64_t launched;	 // collective operations, as the counter says
	uint64_t graph_launched; // by graphs: no part of the sequence, see launch.c
	uint64_t sequence_seen[TOCSIN_KIND_COUNT]; // versions 1 to 4: NCCL's last number, plus 1
	_Atomic uint32_t group; // groups that began: by one launching thread at a time, relaxed
	uint32_t countdown;	// launches until the next bridge_poll()
	uint32_t mask_epoch;	// as of the last launch
	struct track *track;	// NULL: never needed
};
_Static_assert(sizeof(struct bridge_comm) == 512, "a power of two");

// The process. Written under `lock`; what callbacks read without it says so.
struct bridge {
	struct bridge_lock lock;
	uint32_t comm_count;
	struct tocsin_job *job;
	nccl_logger *logger;

	int32_t pid;
	bool forgets;	   // fork() leaves bridge_ours false in the child by itself
	int *_Atomic mask; // NCCL's, one for the process; operations copy it when enqueued.
			   // Release in init, acquire by launches
	int mask_written;
	_Atomic uint32_t mask_epoch; // changes of the mask: launches read, relaxed
	_Atomic bool is_mapped;	     // see mapped.h: callbacks read, relaxed
	int version;		     // of NCCL's interface
	enum bridge_level own_level; // by the environment
	enum bridge_level level;     // the same, or what the agent asks for
	bool is_sampling;	     // the kernels' second of the minute
	_Atomic uint32_t stride;     // launches between two polls: callbacks read, relaxed
	uint64_t polled_ns;
	uint64_t said; // BRIDGE_SAID_...
};

enum bridge_said {
	BRIDGE_SAID_MANY = 1,	// more communicators than can be followed
	BRIDGE_SAID_SIZE = 2,	// NCCL does not say how many ranks
	BRIDGE_SAID_GRAPHS = 4, // numbers came twice
	BRIDGE_SAID_MASK = 8,	// somebody else wrote the mask
	BRIDGE_SAID_LEVEL = 16, // a word that is no level
	BRIDGE_SAID_NEXT = 32,	// about the chained plugin
	BRIDGE_SAID_RECORD = 64,
	BRIDGE_SAID_FOLLOW = 128, // libtocsin does not follow
};

extern struct bridge bridge;

static inline void bridge_lock_take(struct bridge_lock *lock) {
	while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) != 0)
		while (atomic_load_explicit(&lock->held, memory_order_relaxed) != 0)
			;
}

static inline bool bridge_lock_try(struct bridge_lock *lock) {
	return atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) == 0;
}

static inline void bridge_lock_give(struct bridge_lock *lock) {
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

// Whether this process is the one that loaded the plugin, and not a child of it: in a page that
// fork() empties. Written under bridge.lock, read by callbacks, relaxed: a child has one thread.
struct bridge_ours {
	_Alignas(4096) _Atomic bool yes;
	uint8_t rest_of_page[4095];
};
extern struct bridge_ours bridge_ours;

static inline bool bridge_is_ours(void) {
	return atomic_load_explicit(&bridge_ours.yes, memory_order_relaxed);
}

// What NCCL's init says; name may be NULL, hash and size 0 where the version does not tell.
struct bridge_identity {
	const char *name;
	uint64_t hash;
	int32_t nodes, size, rank;
	nccl_logger *logger;
};

// NCCL's init and finalize: some time may pass. init never fails: a communicator that cannot be
// followed is one nobody asks about.
void bridge_comm_begin(
	int version, void **ret_context, int *mask, const struct bridge_identity *identity
);
void bridge_comm_end(void *context);
// Versions 1 to 3, at the first operation, under comm->lock: who the communicator is.
void bridge_comm_identify(struct bridge_comm *comm, const struct nccl_descriptor *descriptor);

// From launches, every so often: the agent, the level, the mask. Takes no lock that a launch waits
// for, and returns at once if another thread is in it.
void bridge_poll(void);

// What is wanted where the agent asks for `asked`: that, but nothing of who wants to tell nothing.
enum bridge_level bridge_level_asked(enum bridge_level own, enum tocsin_level asked);
// The mask of a level in a version of the interface.
int bridge_mask_of(enum bridge_level level, int version, bool is_sampling);
// "launches" and so on; BRIDGE_LAUNCHES with *ret_wrong true for what is no level.
enum bridge_level bridge_level_of(const char *text, bool *ret_wrong);

// Says a sentence in NCCL's log, once for each of enum bridge_said.
__attribute__((format(printf, 2, 3))) void
bridge_say(enum bridge_said said, const char *format, ...);

// The context of a place and generation, or NULL; what becomes of it meanwhile, bridge_comm_lock()
// finds out.
void *bridge_context_of(uint32_t index, uint32_t generation);

// The communicator of a context, or NULL: as bridge_comm_lock(), not locked.
struct bridge_comm *bridge_comm_of(void *context);
// The communicator of a context, locked, or NULL: no context, finalized, or in a child.
struct bridge_comm *bridge_comm_lock(void *context);

// NCCL's start and stop as they are without a chained plugin and a recording.
int event_start(
	int version, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
);
int event_stop(void *handle);
// The address by which a plugin is known to be this one.
int (*bridge_stop_of_ours(void))(void *handle);
