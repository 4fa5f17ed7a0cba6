// SPDX-License-Identifier: BSD-3-Clause
// The counts of one process as they lie in memory: written by libtocsin, read by the agent.
//
// It is a memfd of exactly JOB_PAGE_BYTES, sealed against growing, shrinking and other seals. The
// library makes and maps it, and hands the descriptor to each agent it connects to: no count is
// lost before the first agent or between two. The agent maps nothing: it copies by pread(), so that
// a hole or a fault cannot reach it, and believes nothing of what it read.
//
// A slot belongs to one communicator and one thread, which is its only writer: plain loads, and
// release stores. The first slot of a communicator has all threads as writers that found no slot
// of their own; there each count is an atomic addition. Slots are found by the communicator's
// number, which is never used twice in a process; 0 is a free slot.
//
// Order. A writer raises launched, then started, then completed. A reader loads all rows of
// completed, then all of started, then all of launched, with acquire between (for pread() a fence):
// what it saw completed it sees launched. A freed slot loses its number in launched first, then in
// started, then in completed, before it is cleared: a reader that finds two numbers leaves it out.
//
// Totals are of collective kinds, all but send, receive and one_sided. Signatures are those of the
// last JOB_SIGNATURES launches of these, launch n (from 1) in place n % JOB_SIGNATURES, each a
// seqlock: 2n + 1 while it is written, 2n + 2 after. A reader that cannot load twice in place
// copies twice and takes what is equal.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define JOB_PAGE_MAGIC UINT64_C(0x316a6e6973636f74) // "tocsinj1" in little endian
#define JOB_PAGE_VERSION 1u
#define JOB_SLOTS 256u
#define JOB_KINDS 14u // TOCSIN_KIND_COUNT
#define JOB_SIGNATURES 16u

struct job_head {
	_Atomic uint64_t magic;
	_Atomic uint32_t version;
	_Atomic uint32_t slots_used; // highest slot that was ever used, plus 1
	// The one word that the agent writes, by pwrite(), and the library reads, relaxed: how much
	// the job is asked to tell, and until when. job_wanted_pack(); 0: nothing is asked for.
	_Atomic uint64_t wanted;
	uint64_t unused[509];
};

struct job_counts {
	_Atomic uint64_t comm;	// number of the communicator
	_Atomic uint64_t total; // of collective kinds
	_Atomic uint64_t kinds[JOB_KINDS];
};

// Started or completed. Operation n has its time in place n % JOB_SIGNATURES.
struct job_row {
	struct job_counts counts;
	_Atomic uint64_t times_ns[JOB_SIGNATURES]; // CLOCK_MONOTONIC; 0: not taken
};

struct job_signature {
	_Atomic uint64_t sequence;
	_Atomic uint64_t count;
	_Atomic uint64_t time_ns; // CLOCK_MONOTONIC; 0: not taken
	_Atomic uint64_t what;	  // job_signature_pack()
};

// Of the communicator, in its first slot only.
struct job_marks {
	_Atomic uint32_t init_state, async_error;
	_Atomic uint32_t flags; // JOB_MARK_...
	_Atomic uint32_t unused;
	_Atomic uint64_t signatures_lost;	       // of this slot, in every slot
	_Atomic uint64_t started_from, completed_from; // 0: from the first on
	uint64_t free[3];
};
#define JOB_MARK_FINALIZED 1u
#define JOB_MARK_DESTROYED 2u
#define JOB_MARK_ABORTED 4u

struct job_launched {
	struct job_counts counts;
	struct job_signature signatures[JOB_SIGNATURES];
	struct job_marks marks;
};

struct job_page {
	struct job_head head;
	struct job_row completed[JOB_SLOTS];
	struct job_row started[JOB_SLOTS];
	struct job_launched launched[JOB_SLOTS];
};
#define JOB_PAGE_BYTES sizeof(struct job_page)

_Static_assert(sizeof(struct job_head) == 4096, "the head is a page of its own");
_Static_assert(sizeof(struct job_row) == 256, "rows do not share a cache line");
_Static_assert(sizeof(struct job_launched) == 704, "rows do not share a cache line");
_Static_assert(JOB_PAGE_BYTES == 4096 + JOB_SLOTS * 1216, "it is the same for every reader");

// level: enum tocsin_level, of which a library that does not know one takes the default; the end is
// in seconds of CLOCK_MONOTONIC, rounded up: it comes also where the agent is gone by then.
static inline uint64_t job_wanted_pack(uint8_t level, uint64_t until_ns) {
	return (until_ns + 999999999) / 1000000000 << 8 | level;
}

static inline uint8_t job_wanted_level(uint64_t wanted, uint64_t now_ns) {
	return now_ns / 1000000000 < wanted >> 8 ? (uint8_t)wanted : 0;
}

static inline uint64_t job_signature_pack(uint8_t kind, uint8_t datatype, int32_t root) {
	return (uint64_t)kind << 40 | (uint64_t)datatype << 32 | (uint32_t)root;
}

static inline uint8_t job_signature_kind(uint64_t what) {
	return (uint8_t)(what >> 40);
}

static inline uint8_t job_signature_datatype(uint64_t what) {
	return (uint8_t)(what >> 32);
}

static inline int32_t job_signature_root(uint64_t what) {
	return (int32_t)(uint32_t)what;
}
