// SPDX-License-Identifier: BSD-3-Clause
// What is followed of a process: its communicators, and the requests that will end operations.
#pragma once

#include "call.h"

#include <tocsin/job.h>

#include <stdbool.h>

#define COMM_PLACES 4096u // of the table: a power of two, twice the most that are followed
#define COMM_REMOVED 1u	  // a key that no handle has

// Children of a communicator with one group: how many were made.
struct child {
	struct child *next;
	uint64_t group;
	uint64_t count;
};

struct window;

// A communicator of this process.
struct followed {
	mpi_word handle;
	uint64_t key;		    // the same on all its ranks
	struct tocsin_comm *comm;   // NULL: the library has no place for it
	struct tocsin_counter *own; // of its collective operations, which come one after another
	uint32_t size, rank;
	// Collective operations that are launched and not completed, if a request is among them.
	// Stored with release by whoever completes, loaded with acquire before counting without.
	_Atomic uint32_t window_count;
	struct window *window;
	_Atomic uint32_t users;	   // calls that hold it; counted only with several threads
	_Atomic uint32_t requests; // that will end an operation of it
	uint64_t made;		   // calls of all its ranks that made communicators
	struct child *children;	   // that groups of its ranks made
	struct followed *next;	   // that the program has freed: they go when nobody holds them
};

// How this MPI looks. Written once, before any communicator is followed.
struct mpi_rules {
	mpi_word mask;	  // bits of a handle
	bool ints;	  // handles are ints, in arrays, too
	bool is_threaded; // several threads call at once
	mpi_word world, self, comm_null, request_null, datatype_null;
};
extern struct mpi_rules mpi_rules;

struct comm_place {
	_Atomic mpi_word key; // 0: free
	struct followed *_Atomic at;
};
extern struct comm_place comm_places[COMM_PLACES];

// comm.c: a handle that is not in the table. NULL: it is not followed.
struct followed *comm_missed(mpi_word handle);
// The new communicator that `where` holds, if the call that made it succeeded: one of all ranks of
// the parent, or of the ranks of a group alone.
void comm_made(struct followed *parent, int err, mpi_word where);
void comm_made_by_group(struct followed *parent, int err, mpi_word where, uint64_t tag);
// Of one with the same ranks that is being made; 0: it cannot be followed.
uint64_t comm_twin_key(struct followed *parent);
void comm_adopt(uint64_t key, mpi_word handle);
// The handle that lies there.
mpi_word comm_read(mpi_word where);
// Before MPI frees it, and after that: another thread may have been given the handle anew by then.
struct followed *comm_freeing(mpi_word handle);
void comm_freed(struct followed *at, int err);
extern _Atomic uint32_t comm_freed_count; // that wait for comm_sweep()
// Of whom nobody holds any more those that are free.
void comm_sweep(void);
// Finds what is asked of communicators; false: this is no MPI.
bool comm_learn(uint32_t *ret_world_size);
void comm_begin(struct tocsin_job *job, uint64_t key);
void comm_mark_all(enum tocsin_mark mark);
// Not where somebody holds the lock, whom a handler of a signal may have interrupted.
void comm_try_mark_all(enum tocsin_mark mark);
void comm_forget_all(void);

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
	return comm_missed(handle);
}

// Relaxed: that it is to go is told and asked for under the lock of comm.c.
static inline void comm_retain(struct followed *at) {
	if (mpi_rules.is_threaded)
		atomic_fetch_add_explicit(&at->users, 1, memory_order_relaxed);
}

// Release: whoever sees nobody hold it (comm_sweep) has our counts behind it.
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

// datatype.c: what is told of elements. Of values that are computed with, their number and kind;
// of others the bytes, since one rank may call them by another type than the next.
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
void datatypes_learn(void);
struct datatype datatype_ask(mpi_word handle);

static inline struct datatype datatype_of(mpi_word given) {
	mpi_word handle = given & mpi_rules.mask;
	uint64_t at = word_hash(handle) >> 40;

	for (; datatypes[at % DATATYPE_PLACES].handle != 0; at++)
		if (datatypes[at % DATATYPE_PLACES].handle == handle)
			return datatypes[at % DATATYPE_PLACES];
	return datatype_ask(given);
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

// window.c
uint64_t window_add(struct followed *at, enum tocsin_kind kind);
void window_end(struct followed *at, uint64_t place);
// Whether a request can be followed: its operation completes in its turn.
uint64_t window_open(struct followed *at, enum tocsin_kind kind);

// Collective operations: one at a time begins in a communicator, as MPI wants it.
// 0, or the place of the operation in the window.
static inline uint64_t
collective_enter(struct followed *at, enum tocsin_kind kind, struct signature told) {
	tocsin_counter_launched(at->own, kind, told.count, told.datatype, told.root);
	tocsin_counter_started(at->own, kind);
	if (__builtin_expect(atomic_load_explicit(&at->window_count, memory_order_acquire) == 0, 1))
		return 0;
	return window_add(at, kind);
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

// request.c: takes over what holds the communicator.
void collective_posted(
	struct followed *at, enum tocsin_kind kind, uint64_t place, int err, mpi_word where
);
void pair_posted(struct followed *at, enum tocsin_kind kind, int err, mpi_word where);
void request_keep(
	mpi_word where, struct followed *at, enum tocsin_kind kind, struct signature told
);
struct dup {
	mpi_word where;
	uint64_t key;
};
void request_dup(struct followed *at, uint64_t place, mpi_word where, struct dup dup);
mpi_word request_at(mpi_word requests, int64_t n);
void request_started(mpi_word handle);
// A request before the call that may end it: MPI may give its handle to another thread before that
// call returns. A handle of 0 is none.
struct held {
	mpi_word handle;
	uint64_t serial; // where one thread calls at a time 0
};
struct held request_hold(mpi_word handle);
// Its operation has ended; a request that is not persistent with it.
void request_done(struct held held);
void request_freed(struct held held);

static inline void pair_enter(struct followed *at, enum tocsin_kind kind) {
	tocsin_comm_launched(at->comm, kind, 0, 0, -1);
}

static inline void pair_leave(struct followed *at, enum tocsin_kind kind) {
	tocsin_comm_completed(at->comm, kind);
}

// begin.c: from MPI_Init to MPI_Finalize.
void begin_followed(void);
// Where nobody saw MPI_Init. Returns whether it is begun now.
bool begin_late(void);
void end_followed(void);
bool is_begun(void);

// world.c: what all ranks of MPI_COMM_WORLD know, and no other world. false: nothing is known.
#define WORLD_BYTES 160
bool world_name(char text[static WORLD_BYTES]);

// note.c: what is not followed, once each, where TOCSIN_MPI_NOTES asks for it.
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
