// SPDX-License-Identifier: BSD-3-Clause
// What a run of tocsin-perf does: the client's to choose, told to the server before anything else.
//
// A server may have been given options, too: each of these must be as in the client's plan, so that
// nobody measures something else than both ends were told. Pure values; nothing here allocates.
#pragma once

#include "why.h"

#include <dataplane/idle.h>
#include <dataplane/op.h>
#include <lib/wire.h>

#include <stdbool.h>
#include <stdint.h>

#define PLAN_SIZES_MAX 32
#define PLAN_SIZE_BYTES_MAX (UINT64_C(8) << 20)
#define PLAN_ITERATIONS_MAX UINT64_C(1000000000)
#define PLAN_DURATION_NS_MAX (UINT64_C(3600) * 1000000000)
#define PLAN_GAP_NS_MAX (UINT64_C(60) * 1000000000)
#define PLAN_RATE_MAX 10000000u
#define PLAN_DEPTH_MAX 4096u
#define PLAN_PAIRS_MAX 64u
#define PLAN_RUNS_MAX 1000u
#define PLAN_INLINE_BYTES_MAX 1024u
#define PLAN_INLINE_USUAL UINT32_MAX // up to PAIR_INLINE_BYTES, if the device takes as many
#define PLAN_OPS_MAX 65536u	     // depth times queue pairs
// The schedule of an open loop exists before the run.
#define PLAN_ARRIVALS_MAX UINT64_C(20000000)

enum plan_command {
	PLAN_LAT, // one operation under way at a time, each timed
	PLAN_BW,  // many under way, counted in windows
	PLAN_COMMAND_COUNT,
};

enum plan_op {
	PLAN_READ,
	PLAN_WRITE,
	PLAN_SEND,
	PLAN_WRITE_IMM,
	PLAN_CAS,
	PLAN_FADD,
	PLAN_OP_COUNT,
};

enum plan_arrivals {
	PLAN_CLOSED, // the next one when the one before has ended
	PLAN_CONSTANT,
	PLAN_POISSON,
	PLAN_ONOFF, // bursts of 8, the mean rate as asked
	PLAN_TRACE, // times from a file
	PLAN_ARRIVALS_COUNT,
};

// Whether the device stamps completions, and by which clock.
enum plan_stamps {
	PLAN_STAMPS_NONE,
	PLAN_STAMPS_RAW,
	PLAN_STAMPS_WALL,
	PLAN_STAMPS_COUNT,
};

struct plan {
	enum plan_command command;
	enum plan_op op;
	uint32_t size_count;
	uint64_t sizes[PLAN_SIZES_MAX]; // bytes, ascending as they are played
	uint64_t iterations;		// samples of each size, messages of bw; 0: by duration
	uint64_t duration_ns;		// of each size; 0: by iterations
	uint64_t gap_ns;	 // from the end of an operation to the next one, in no sample
	enum idle_policy policy; // of both ends' workers
	uint64_t window_ns;	 // of IDLE_WINDOW
	enum plan_arrivals arrivals;
	uint32_t rate; // operations a second; 0 for a closed loop and a trace
	uint64_t seed; // of Poisson and on-off arrivals
	// Of bw; 1, 1 and false of lat.
	uint32_t depth;	       // operations under way on each queue pair
	uint32_t pairs;	       // queue pairs
	uint32_t run, runs;    // this one of so many, each of new processes; 1 of 1 alone
	bool both_ways;	       // the server sends as the client does
	uint32_t inline_bytes; // messages of up to so many are carried within the work request
	enum plan_stamps stamps;
	bool via_agents; // whose workers wait by their own policies; `policy` is not looked at
};

extern const struct plan plan_default; // lat: 20,000 reads of 64 bytes, spin
#define PLAN_BW_DURATION_NS UINT64_C(2000000000)
#define PLAN_BW_DEPTH 64u
#define PLAN_BW_SIZE 65536u

// What an option was given for, as bits.
enum plan_part {
	PLAN_PART_OP = 0x1,
	PLAN_PART_SIZES = 0x2,
	PLAN_PART_ITERATIONS = 0x4,
	PLAN_PART_DURATION = 0x8,
	PLAN_PART_GAP = 0x10,
	PLAN_PART_POLICY = 0x20,
	PLAN_PART_ARRIVALS = 0x40,
	PLAN_PART_RATE = 0x80,
	PLAN_PART_SEED = 0x100,
	PLAN_PART_DEPTH = 0x200,
	PLAN_PART_PAIRS = 0x400,
	PLAN_PART_BOTH_WAYS = 0x800,
	PLAN_PART_STAMPS = 0x1000,
	PLAN_PART_INLINE = 0x2000,
};

const char *plan_command_name(enum plan_command command); // "lat"
const char *plan_policy_name(const struct plan *plan);	  // "spin"; "agent": an agent's own
// "read", "write-imm"; "closed", "poisson". -EINVAL for the parsers.
const char *plan_op_name(enum plan_op op);
int plan_op_parse(const char *name, enum plan_op *ret_op);
const char *plan_arrivals_name(enum plan_arrivals arrivals);
int plan_arrivals_parse(const char *name, enum plan_arrivals *ret_arrivals);
const char *plan_stamps_name(enum plan_stamps stamps); // "none", "raw", "wall"
int plan_stamps_parse(const char *name, enum plan_stamps *ret_stamps);
enum op_kind plan_op_kind(enum plan_op op);

// Whether the peer's program answers each operation, so that half of the round trip is one way.
bool plan_op_is_answered(enum plan_op op);
// Whether both ends look for the last byte in their memory: no completion tells of it.
bool plan_op_looks_in_memory(enum plan_op op);
bool plan_op_is_atomic(enum plan_op op);
// Whether a message of it takes a receive of the peer.
bool plan_op_has_receiver(enum plan_op op);

// Whether a message of it takes bytes along that a work request can carry.
bool plan_op_carries(enum plan_op op);

// Whether the peer's program answers each operation, and half of the time is one way.
bool plan_is_answered(const struct plan *plan);
// Whether the server's program has nothing to do while the client measures.
bool plan_server_rests(const struct plan *plan);

// Whether the server's end looks at stamps, too.
bool plan_server_stamps(const struct plan *plan);

uint64_t plan_size_max(const struct plan *plan);

// 0, or -EINVAL with what cannot be.
int plan_check(const struct plan *plan, struct lab_why *why);

// -EINVAL, and which option differs, if one of `given` is not as in the client's plan.
int plan_compare(
	const struct plan *client, const struct plan *own, uint32_t given, struct lab_why *why
);

void plan_encode(const struct plan *plan, struct wire_writer *writer);
// Comes from outside: the reader fails with -EBADMSG where a value is none.
void plan_decode(struct wire_reader *reader, struct plan *ret_plan);
