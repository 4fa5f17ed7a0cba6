// SPDX-License-Identifier: BSD-3-Clause
// Followed state of an MPI process: its communicators, and the requests that will complete
// operations.
#pragma once

#include "call.h"

#include <tocsin/job.h>
#include <tocsin/job_page.h>

#include <stdbool.h>

// slots of the table; a power of two, twice the limit of followed communicators
#define COMM_PLACES 4096u
#define COMM_REMOVED 1u // key of a removed slot; no handle has this value

// Communicators that MPI_Comm_create_group made of one parent with one group: how many.
struct child {
	struct child *next;
	uint64_t group;
	uint64_t count;
};

struct window;

// A followed communicator of this process.
struct followed {
	mpi_word handle;
	uint64_t key;		  // equal on all its ranks
	struct tocsin_comm *comm; // NULL: libtocsin has no room for the communicator
	// counter of collective operations, which are called one at a time
	struct tocsin_counter *own;
	uint32_t size, rank;
	// Number of collective operations in `window`, which holds those that completed out of
	// order. It is 0 unless a request is pending. The
	// completing thread stores with release; collective_enter() loads with acquire.
	_Atomic uint32_t window_count;
	struct window *window;
	_Atomic uint32_t users;	   // calls that use it; counted only if several threads call MPI
	_Atomic uint32_t requests; // pending requests on it
	uint64_t made;		   // calls by all its ranks that created communicators
	struct child *children;	   // groups of its ranks that created communicators
	struct followed *next;	   // list of freed communicators, which are destroyed once unused
};

// Properties of the loaded MPI. Written once, before the first communicator is followed.
struct mpi_rules {
	mpi_word mask;	  // significant bits of a handle
	bool ints;	  // handles are ints, also in arrays
	bool is_threaded; // several threads may call at the same time
	mpi_word world, self, comm_null, request_null, datatype_null;
};
extern struct mpi_rules mpi_rules;

struct comm_place {
	_Atomic mpi_word key; // 0: free
	struct followed *_Atomic at;
};
extern struct comm_place comm_places[COMM_PLACES];

// comm.c: look up a handle that is not in the table. Returns NULL if it is not followed.
struct followed *comm_find_slow(mpi_word handle);
// Follow the new communicator whose handle is at `where`, if `err` is 0. All ranks of the parent
// made it.
void comm_made(struct followed *parent, int err, mpi_word where);
// Called before and after the ranks of a group make a communicator. The call is its first
// operation, because other ranks of the parent take no part. Returns NULL if it is not followed.
struct followed *comm_group_begin(struct followed *parent, mpi_word group, uint64_t tag);
void comm_group_end(struct followed *at, int err, mpi_word where);
// Return the key of a duplicate that is being created; 0 if it cannot be followed.
uint64_t comm_duplicate_key(struct followed *parent);
void comm_add_followed(uint64_t key, mpi_word handle);
// Load a handle from the program's memory.
mpi_word comm_load_handle(mpi_word where);
// Called before and after MPI frees a handle. In between, another thread may get the same handle
// for a new communicator.
struct followed *comm_free_begin(mpi_word handle);
void comm_free_end(struct followed *at, int err);
extern _Atomic uint32_t comm_freed_count; // freed communicators that wait for comm_sweep()
// Destroy the freed communicators that are no longer in use.
void comm_sweep(void);
// Find the MPI functions that describe communicators. Returns false if they do not exist.
bool comm_find_functions(uint32_t *ret_world_size);
void comm_follow_world(struct tocsin_job *job, uint64_t key);
void comm_mark_all_finalized(void);
// Mark all communicators as aborted, unless the lock is held: a signal handler may have interrupted
// its holder.
void comm_mark_all_aborted_if_unlocked(int code);
void comm_clear_table(void);

static inline uint64_t word_hash(mpi_word word) {
	return (word >> 4 ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline struct followed *comm_find(mpi_word handle) {
	mpi_word key = handle & mpi_rules.mask;
	uint64_t at = word_hash(key) >> 40;

	for (uint32_t n = 0; n < COMM_PLACES; n++, at++) {
		struct comm_place *place = &comm_places[at % COMM_PLACES];
		mpi_word found = atomic_load_explicit(&place->key, memory_order_acquire);

		if (found == key)
			return atomic_load_explicit(&place->at, memory_order_relaxed);
		if (found == 0)
			break;
	}
	return comm_find_slow(handle);
}

// Relaxed: whether the communicator is freed is decided under the lock of comm.c.
static inline void comm_retain(struct followed *at) {
	if (mpi_rules.is_threaded)
		atomic_fetch_add_explicit(&at->users, 1, memory_order_relaxed);
}

// Release: when comm_sweep() sees no user, it also sees our counts.
static inline void comm_release(struct followed *at) {
	if (mpi_rules.is_threaded)
		atomic_fetch_sub_explicit(&at->users, 1, memory_order_release);
}

static inline struct followed *comm_hold(mpi_word handle) {
	struct followed *at = comm_find(handle);

	if (at == NULL)
		return NULL;
	if (at->comm == NULL)
		return NULL;
	comm_retain(at);
	return at;
}

// datatype.c: signature of an operation. If values are computed, it holds their number and type.
// Otherwise it holds the number of bytes, since ranks may use different types for the same data.
struct signature {
	uint64_t count;
	uint8_t datatype;
	int32_t root;
};
#define SIGNATURE_NO_TYPE 255
#define SIGNATURE_BYTES 254
struct datatype {
	mpi_word handle;
	uint8_t datatype; // NCCL's number, or SIGNATURE_BYTES
	uint8_t size;
};
#define DATATYPE_PLACES 128u
extern struct datatype datatypes[DATATYPE_PLACES];
void datatypes_init(void);
struct datatype datatype_find_slow(mpi_word handle);

static inline struct datatype datatype_of(mpi_word given) {
	mpi_word handle = given & mpi_rules.mask;
	uint64_t at = word_hash(handle) >> 40;

	for (; datatypes[at % DATATYPE_PLACES].handle != 0; at++)
		if (datatypes[at % DATATYPE_PLACES].handle == handle)
			return datatypes[at % DATATYPE_PLACES];
	return datatype_find_slow(given);
}

uint64_t datatype_bytes(mpi_word handle);

static inline struct signature
signature_of(int64_t count, mpi_word handle, bool values, int32_t root) {
	struct datatype type = datatype_of(handle);
	struct signature signature = {(uint64_t)count, type.datatype, root};

	if (!values || type.datatype == SIGNATURE_BYTES) {
		signature.count *= type.size != 0 ? type.size : datatype_bytes(handle);
		signature.datatype = SIGNATURE_BYTES;
	}
	return signature;
}

static inline struct signature signature_of_call(enum job_call call) {
	return (struct signature){.datatype = (uint8_t)call, .root = -1};
}

// window.c
uint64_t window_add_if_open(struct followed *at, enum tocsin_kind kind);
void window_end(struct followed *at, uint64_t place);
// Open a window slot for an operation that a request completes.
uint64_t window_open(struct followed *at, enum tocsin_kind kind);
// Record that the rank waits for the operation, or tests whether it has completed.
void window_begin_wait(struct followed *at, uint64_t place);

// Count the launch of a collective operation. MPI requires that a communicator begins one at a
// time. Returns 0, or the position of the operation in the window.
static inline uint64_t
collective_enter(struct followed *at, enum tocsin_kind kind, struct signature told) {
	tocsin_counter_launched(at->own, kind, told.count, told.datatype, told.root);
	tocsin_counter_started(at->own, kind);
	if (__builtin_expect(atomic_load_explicit(&at->window_count, memory_order_acquire) == 0, 1))
		return 0;
	return window_add_if_open(at, kind);
}

static inline void collective_leave(struct followed *at, enum tocsin_kind kind, uint64_t place) {
	if (__builtin_expect(place == 0, 1))
		tocsin_counter_completed(at->own, kind);
	else
		window_end(at, place);
}

static inline uint64_t
collective_post(struct followed *at, enum tocsin_kind kind, struct signature told) {
	tocsin_counter_launched(at->own, kind, told.count, told.datatype, told.root);
	tocsin_counter_started(at->own, kind);
	return window_open(at, kind);
}

// request.c: each function takes over the caller's hold of the communicator.
void collective_posted(
	struct followed *at, enum tocsin_kind kind, uint64_t place, int err, mpi_word where
);
// Other rank and tag of a send or receive; negative: any.
struct pair {
	int32_t peer, tag;
};
void pair_posted(
	struct followed *at, enum tocsin_kind kind, struct pair pair, int err, mpi_word where
);
void request_keep(
	mpi_word where, struct followed *at, enum tocsin_kind kind, struct signature told
);
void request_keep_pair(
	mpi_word where, struct followed *at, enum tocsin_kind kind, struct pair pair
);
struct dup {
	mpi_word where;
	uint64_t key;
};
void request_add_dup(struct followed *at, uint64_t place, mpi_word where, struct dup dup);
mpi_word request_load_handle(mpi_word requests, int64_t n);
void request_started(mpi_word handle);
// A request, recorded before the call that may complete it. Before that call returns, MPI may give
// the same handle to another thread. Handle 0 means no request.
struct held {
	mpi_word handle;
	uint64_t serial; // 0 if only one thread calls at a time
};
struct held request_hold(mpi_word handle);
// Record that the rank waits for these requests, or tests them. If `ret_pair` is not NULL and a
// single request is open, and it sends or receives, return its communicator and store the rest.
// Otherwise return NULL.
struct followed *request_begin_wait(
	const struct held *held, int count, struct pair *ret_pair, enum tocsin_kind *ret_kind
);
// Count the operation of a request as complete; remove the request unless it is persistent.
void request_complete(struct held held);
void request_free(struct held held);

static inline void pair_enter(struct followed *at, enum tocsin_kind kind) {
	tocsin_comm_launched(at->comm, kind, 0, 0, -1);
}

static inline void pair_leave(struct followed *at, enum tocsin_kind kind) {
	tocsin_comm_completed(at->comm, kind);
}

// Publish the call that the only thread of this rank is inside. Several threads would overwrite
// each other's call.
static inline void call_enter(struct followed *at, enum job_call call, int32_t peer, int32_t tag) {
	if (!mpi_rules.is_threaded)
		(void)tocsin_comm_mark(at->comm, TOCSIN_MARK_CALL, job_call_pack(call, peer, tag));
}

static inline void call_leave(struct followed *at) {
	if (!mpi_rules.is_threaded)
		(void)tocsin_comm_mark(at->comm, TOCSIN_MARK_CALL, 0);
}

// begin.c: from MPI_Init to MPI_Finalize.
void follow_begin(void);
// Begin if MPI_Init was called unseen. Returns whether the process is followed now.
bool follow_begin_late(void);
void follow_end(void);
bool follow_is_active(void);

// world.c: write a name that all ranks of this MPI_COMM_WORLD share, and no other world has.
// Returns false if none is known.
#define WORLD_BYTES 160
bool world_name(char text[static WORLD_BYTES]);

// note.c: report on standard error, once each, what is not followed; enabled by TOCSIN_MPI_NOTES.
enum note {
	NOTE_TWO_MPIS,
	NOTE_WORLD,
	NOTE_INTER,
	NOTE_OTHER_WORLD,
	NOTE_MANY,
	NOTE_JOB,
	NOTE_PARENT,
};
__attribute__((format(printf, 2, 3))) void note_once(enum note note, const char *format, ...);
