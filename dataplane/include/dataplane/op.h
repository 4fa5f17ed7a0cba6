// SPDX-License-Identifier: BSD-3-Clause
// One operation on a pair: what a caller asks for, and what came of it.
//
// The struct is the caller's until it is submitted, the lane's until `done`, then the caller's
// again. `done` is called exactly once, on the worker's thread, hot, and never from inside the
// submission; by then no device can reach the operation's memory any more, whatever the outcome.
// Reads and writes larger than one message are cut into several. Zero bytes succeed at once,
// without a message, but for those whose point is the message: send, write with immediate, receive.
#pragma once

#include <dataplane/memory.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op_kind {
	OP_WRITE,   // put: local to remote; local length <= remote length, moves the local length
	OP_READ,    // get: remote to local; remote length <= local length, moves the remote length
	OP_SEND,    // one message, never cut
	OP_RECEIVE, // posted for one SEND or WRITE_IMM of the peer
	OP_WRITE_IMM,	 // one message, never cut
	OP_COMPARE_SWAP, // 8 aligned bytes; the old value goes to the local memory
	OP_FETCH_ADD,
	OP_KIND_COUNT,
};

enum op_outcome {
	OP_OK,
	OP_INVALID,   // refused as it is: sizes, keys, memory of another device
	OP_NOT_READY, // no such pair any more, or it is failing: the cause is the pair's
	OP_REFUSED,   // the lane has no room
	OP_FAILED,    // this operation is what failed
	OP_FLUSHED,   // another one failed before it: the cause is that one's
	OP_TIMED_OUT, // its deadline passed; the pair was drained if any of it was posted
	OP_CANCELLED, // likewise
	OP_OUTCOME_COUNT,
};

// Why, for people: the first thing that went wrong on the pair, not the flush that followed. All
// zero where nothing did: of an operation that succeeded or was refused.
struct op_cause {
	int err;		   // -errno, when no device said anything
	enum ibv_wc_status status; // of the completion
	uint32_t vendor_error;
	uint8_t kind; // enum op_kind of the operation that failed
	uint32_t local_key, remote_key;
	uint64_t remote_address;
	uint64_t length;
};

struct op {
	enum op_kind kind;
	bool solicited; // of sends and write with immediate: the peer's event is asked for
	uint32_t pair;	// pair_slot()
	uint32_t generation;
	struct memory_view view; // holds a reference of its own while it is submitted
	uint64_t remote_address;
	uint64_t remote_length;
	uint32_t remote_key;
	uint32_t immediate;	     // host order; what came in, after OP_RECEIVE
	uint64_t operand[2];	     // compare, swap; or what is added
	uint64_t deadline_ns;	     // the worker's clock; covers waiting in queues too. IDLE_NEVER
	void (*done)(struct op *op); // NULL: LANE_EVENT_DONE tells control
	void *ctx;

	// When `done` is called.
	enum op_outcome outcome;
	uint64_t bytes; // really moved; of a receive, received
	uint64_t posted_ns, done_ns;
	uint64_t device_stamp; // of its last completion, of a lane with time stamps
	struct op_cause cause;

	// The lane's.
	struct op *next, *previous;
	uint64_t length;     // of all of it
	uint64_t cut;	     // bytes that are posted
	uint32_t under_way;  // messages of it that are not complete
	uint32_t heap_place; // of its deadline, from 1; 0 without one
	bool waits;	     // not all of it is posted
	bool broken;	     // a message of it failed
};

const char *op_kind_name(enum op_kind kind);
const char *op_outcome_name(enum op_outcome outcome);
// "REM_ACCESS_ERR (vendor 0x88) of a read of 4096 bytes at 0x7f..., key 0x1234". Terminated, and
// cut off where it is longer than the text.
void op_cause_format(const struct op_cause *cause, char *text, size_t size);
