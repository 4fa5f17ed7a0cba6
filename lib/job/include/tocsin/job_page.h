// SPDX-License-Identifier: BSD-3-Clause
// Layout of the page that holds the counts of one process: written by libtocsin, read by the agent.
//
// The page is a memfd of exactly JOB_PAGE_BYTES, sealed against growing, shrinking and further
// seals. The library creates and maps it, and sends the descriptor to each agent that it connects
// to. So no count is lost before the first agent, or between two agents. The agent does not map the
// page but copies it by pread(). So a hole or a page fault cannot harm the agent. The agent trusts
// no value in it.
//
// A slot belongs to one communicator and one thread, which is its only writer: plain loads and
// release stores. The first slot of a communicator is shared by all threads that found no slot of
// their own. There each count is an atomic addition. Slots are found by the communicator's number,
// which is never reused in a process; 0 is a free slot.
//
// Order: a writer raises launched, then started, then completed. A reader loads all rows of
// completed, then all of started, then all of launched. Between them is an acquire (for pread(), a
// fence). So an operation that the reader saw completed is also seen launched. When a slot is
// freed, its number is cleared in launched, then in started, then in completed. Its counts are
// cleared after that. A reader that finds different numbers skips the slot.
//
// Totals count collective kinds: all but send, receive and one_sided. Signatures describe the last
// JOB_SIGNATURES launches of these kinds; launch n (from 1) is at index n % JOB_SIGNATURES. Each
// signature is a seqlock: 2n + 1 while it is written, 2n + 2 after that. A reader that cannot load
// twice in place copies twice and uses what is equal in both copies.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define JOB_PAGE_MAGIC UINT64_C(0x316a6e6973636f74) // "tocsinj1" in little endian
#define JOB_PAGE_VERSION 2u
#define JOB_SLOTS 256u
#define JOB_KINDS 14u // TOCSIN_KIND_COUNT
#define JOB_SIGNATURES 16u

#define JOB_DEPARTURES 101u
#define JOB_BUSY_WORDS 3u // of the reason for being busy

// Last counts and marks of a communicator that was unregistered. The one of communicator n is at
// index n % JOB_DEPARTURES; the library stores `comm` last. Read once the agent hears of it.
struct job_departure {
	_Atomic uint64_t comm;
	_Atomic uint64_t launched, started, completed;
	_Atomic uint64_t flags; // JOB_MARK_...
};

struct job_head {
	_Atomic uint64_t magic;
	_Atomic uint32_t version;
	_Atomic uint32_t slots_used; // highest slot ever used, plus 1
	// Requested level of detail and its end, packed by job_wanted_pack(); 0: no request. The
	// only word that the agent writes, by pwrite(); the library reads it with relaxed order.
	_Atomic uint64_t wanted;
	struct job_departure departures[JOB_DEPARTURES];
	// The process is busy on purpose until this time, CLOCK_MONOTONIC; 0: it is not. The reason
	// is a zero-terminated text, eight bytes in each word. The library stores the time last.
	_Atomic uint64_t busy_until_ns;
	_Atomic uint64_t busy_why[JOB_BUSY_WORDS];
};

struct job_counts {
	_Atomic uint64_t comm;	// number of the communicator
	_Atomic uint64_t total; // sum over collective kinds
	_Atomic uint64_t kinds[JOB_KINDS];
};

// Counts of started or of completed operations. The time of operation n is at index n %
// JOB_SIGNATURES.
struct job_row {
	struct job_counts counts;
	_Atomic uint64_t times_ns[JOB_SIGNATURES]; // CLOCK_MONOTONIC; 0: not measured
};

struct job_signature {
	_Atomic uint64_t sequence;
	_Atomic uint64_t count;
	_Atomic uint64_t time_ns; // CLOCK_MONOTONIC; 0: not measured
	_Atomic uint64_t what;	  // job_signature_pack()
};

// Marks of a communicator. Only its first slot uses them, except signatures_lost.
struct job_marks {
	_Atomic uint32_t init_state, async_error;
	_Atomic uint32_t flags; // JOB_MARK_...
	// Time of the first JOB_REGISTERED, CLOCK_MONOTONIC in seconds, rounded up; 0: unknown.
	_Atomic uint32_t registered_s;
	// signatures lost in this slot; used in every slot
	_Atomic uint64_t signatures_lost;
	// number of the first reported operation; 0: all
	_Atomic uint64_t started_from, completed_from;
	_Atomic uint64_t abort_value; // tocsin_abort_value(); 0: none
	_Atomic uint64_t call;	      // job_call_pack(); 0: none
	_Atomic uint64_t posted;      // tocsin_posted_value(); 0: no posted operation is open
};
#define JOB_MARK_FINALIZED 1u
#define JOB_MARK_DESTROYED 2u
#define JOB_MARK_ABORTED 4u
#define JOB_MARK_POSTED 8u // the only flag that is cleared again

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

// Calls of MPI. The first ones have the kind TOCSIN_OTHER: such operations have no data, so the
// datatype of their signature is the number of the call. From JOB_CALL_SEND on, a rank is inside
// the call until it says otherwise.
enum job_call {
	JOB_CALL_FINALIZE = 128,
	JOB_CALL_COMM_DUP,
	JOB_CALL_COMM_DUP_WITH_INFO,
	JOB_CALL_COMM_IDUP,
	JOB_CALL_COMM_IDUP_WITH_INFO,
	JOB_CALL_COMM_SPLIT,
	JOB_CALL_COMM_SPLIT_TYPE,
	JOB_CALL_COMM_CREATE,
	JOB_CALL_COMM_CREATE_GROUP,
	JOB_CALL_CART_CREATE,
	JOB_CALL_CART_SUB,
	JOB_CALL_GRAPH_CREATE,
	JOB_CALL_DIST_GRAPH_CREATE,
	JOB_CALL_DIST_GRAPH_CREATE_ADJACENT,
	JOB_CALL_SEND,
	JOB_CALL_BSEND,
	JOB_CALL_SSEND,
	JOB_CALL_RSEND,
	JOB_CALL_RECV,
	JOB_CALL_SENDRECV,
	JOB_CALL_SENDRECV_REPLACE,
	JOB_CALL_PROBE,
	JOB_CALL_WAIT,
	JOB_CALL_WAITALL,
	JOB_CALL_WAITANY,
	JOB_CALL_WAITSOME,
	// MPI_Wait, or MPI_Waitall, with a single request, which sends to or receives from `peer`
	JOB_CALL_WAIT_SEND,
	JOB_CALL_WAIT_RECEIVE,
	JOB_CALL_WAITALL_SEND,
	JOB_CALL_WAITALL_RECEIVE,
};

// Pack a level (enum tocsin_level) and its end. The end is in seconds of CLOCK_MONOTONIC, rounded
// up. So a request also ends if the agent is gone by then. A library that does not know the level
// uses the default.
static inline uint64_t job_wanted_pack(uint8_t level, uint64_t until_ns) {
	return (until_ns + 999999999) / 1000000000 << 8 | level;
}

static inline uint8_t job_wanted_level(uint64_t wanted, uint64_t now_ns) {
	return now_ns / 1000000000 < wanted >> 8 ? (uint8_t)wanted : 0;
}

// Pack a call that a rank is inside. A negative peer or tag is any. A tag that does not fit into 23
// bits is stored as JOB_TAG_LARGE.
#define JOB_TAG_LARGE 0x7fffff
static inline uint64_t job_call_pack(enum job_call call, int32_t peer, int32_t tag) {
	uint32_t kept = tag < 0 ? 0xffffff : (uint32_t)(tag < JOB_TAG_LARGE ? tag : JOB_TAG_LARGE);

	return (uint64_t)call << 56 | (uint64_t)kept << 32 | (uint32_t)peer;
}

static inline int32_t job_call_tag(uint64_t call) {
	uint32_t kept = (uint32_t)(call >> 32) & 0xffffff;

	return kept > JOB_TAG_LARGE ? -1 : (int32_t)kept;
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
