// SPDX-License-Identifier: BSD-3-Clause
// One operation on a pair: the request of a caller and its result.
//
// The caller owns the struct until submission, the lane owns it until `done`, then the caller
// again. `done` is called exactly once, on the worker's thread, hot, and never from inside the
// submission. By then no device can reach the operation's memory, whatever the outcome. Reads and
// writes larger than one message are split. Operations of zero bytes succeed at once without a
// message. Send, write with immediate and receive are exceptions: their purpose is the message.
#pragma once

#include <dataplane/memory.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op_kind {
	OP_WRITE,     // put: local to remote; moves the local length, which is <= the remote length
	OP_READ,      // get: remote to local; moves the remote length, which is <= the local length
	OP_SEND,      // one message, never split
	OP_RECEIVE,   // posted for one SEND or WRITE_IMM of the peer
	OP_WRITE_IMM, // one message, never split
	OP_COMPARE_SWAP, // 8 aligned bytes; the local memory receives the old value
	OP_FETCH_ADD,
	OP_KIND_COUNT,
};

enum op_outcome {
	OP_OK,
	OP_INVALID,   // rejected by checks: sizes, keys, memory of another device
	OP_NOT_READY, // the pair no longer exists or is failing; its cause is the pair's
	OP_REFUSED,   // the lane is full
	OP_FAILED,    // this operation caused the failure
	OP_FLUSHED,   // an earlier operation failed and holds the cause
	OP_TIMED_OUT, // its deadline passed; the pair was drained if any part was posted
	OP_CANCELLED, // cancelled; the pair was drained if any part was posted
	OP_OUTCOME_COUNT,
};

// First error of a pair, for diagnosis: not the flush that followed. All zero for operations that
// succeeded or were rejected.
struct op_cause {
	int err;		   // -errno, if the device reported nothing
	enum ibv_wc_status status; // status of the completion
	uint32_t vendor_error;
	uint8_t kind; // enum op_kind of the failed operation
	uint32_t local_key, remote_key;
	uint64_t remote_address;
	uint64_t length;
};

struct op {
	enum op_kind kind;
	// Request a completion event at the peer; for sends and write with immediate
	bool solicited;
	uint32_t pair; // pair_slot()
	uint32_t generation;
	struct memory_view view; // holds a reference while the operation is submitted
	uint64_t remote_address;
	uint64_t remote_length;
	uint32_t remote_key;
	uint32_t immediate;	     // host order; after OP_RECEIVE the received value
	uint64_t operand[2];	     // compare and swap values; or the addend
	uint64_t deadline_ns;	     // on the worker's clock, queueing included; IDLE_NEVER: none
	void (*done)(struct op *op); // NULL: LANE_EVENT_OP_ENDED notifies control
	void *ctx;

	// Results, valid when `done` is called.
	enum op_outcome outcome;
	uint64_t bytes; // bytes moved, or received
	uint64_t posted_ns, done_ns;
	uint64_t device_stamp; // time stamp of its last completion, if the lane has time stamps
	struct op_cause cause;

	// Private to the lane.
	struct op *next, *previous;
	uint64_t length;     // total bytes
	uint64_t cut;	     // bytes posted so far
	uint32_t under_way;  // messages in flight
	uint32_t heap_index; // index in the deadline heap, from 1; 0: no deadline
	bool waits;	     // part of the operation is not yet posted
	bool broken;	     // one of its messages failed
};

const char *op_kind_name(enum op_kind kind);
const char *op_outcome_name(enum op_outcome outcome);
// Write a text such as "REM_ACCESS_ERR (vendor 0x88) of a read of 4096 bytes at 0x7f..., key
// 0x1234". It is terminated, and truncated if it does not fit.
void op_cause_format(const struct op_cause *cause, char *text, size_t size);
