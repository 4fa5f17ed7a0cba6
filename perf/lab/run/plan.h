// SPDX-License-Identifier: BSD-3-Clause
// Plan of a run of tocsin-perf. The client chooses the plan and sends it to the server first.
//
// Options given to a server must agree with the client's plan. Otherwise the session ends with an
// error. A plan is a plain value without allocated memory.
#pragma once

#include "run/why.h"

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
#define PLAN_INLINE_DEFAULT \
	UINT32_MAX	    // PAIR_INLINE_BYTES, or 0 if the device does not support as many
#define PLAN_OPS_MAX 65536u // depth times queue pairs
// Limits of an end: memory of messages and operations, and the time of all sizes together.
#define PLAN_MEMORY_BYTES_MAX (UINT64_C(72) << 20)
#define PLAN_TIME_NS_MAX (24 * PLAN_DURATION_NS_MAX)
#define PLAN_WINDOW_NS_MAX UINT64_C(1000000000)
// The schedule of an open loop is built before the run.
#define PLAN_ARRIVALS_MAX UINT64_C(20000000)

enum plan_command {
	PLAN_LAT, // one outstanding operation, each is timed
	PLAN_BW,  // many outstanding operations, timed in windows
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
	PLAN_CLOSED, // each operation starts when the previous one has ended
	PLAN_CONSTANT,
	PLAN_POISSON,
	PLAN_ONOFF, // bursts of 8 with the requested mean rate
	PLAN_TRACE, // times from a file
	PLAN_ARRIVALS_COUNT,
};

// Clock of the device that stamps completions.
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
	uint64_t sizes[PLAN_SIZES_MAX]; // bytes, in the order of measurement
	uint64_t iterations;		// samples per size, messages for bw; 0: limited by duration
	uint64_t duration_ns;		// per size; 0: limited by iterations
	uint64_t gap_ns;		// idle time between two operations; not part of a sample
	enum idle_policy policy;	// for the workers of both ends
	uint64_t window_ns;		// for IDLE_WINDOW
	enum plan_arrivals arrivals;
	uint32_t rate; // operations per second; 0: closed loop or trace
	uint64_t seed; // for Poisson and on-off arrivals
	// For bw; lat has 1, 1 and false.
	uint32_t depth; // outstanding operations per queue pair
	uint32_t pairs; // queue pairs
	// Index of this run and number of runs, each with new processes; a single run is 1 of 1.
	uint32_t run, runs;
	bool both_ways;	       // the server sends, too
	uint32_t inline_bytes; // size limit of messages sent inline in the work request
	enum plan_stamps stamps;
	// Measured by agents, whose workers have their own policies; `policy` is ignored.
	bool via_agents;
};

extern const struct plan plan_default; // lat: 20,000 reads of 64 bytes, spin
#define PLAN_BW_DURATION_NS UINT64_C(2000000000)
#define PLAN_BW_DEPTH 64u
#define PLAN_BW_SIZE 65536u

// Parts of a plan that options have set, as bits.
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
const char *plan_policy_name(const struct plan *plan);	  // "spin"; "agent": the policy of an agent
// Convert names: "read", "write-imm"; "closed", "poisson". Parsers return 0 or -EINVAL.
const char *plan_op_name(enum plan_op op);
int plan_op_parse(const char *name, enum plan_op *ret_op);
const char *plan_arrivals_name(enum plan_arrivals arrivals);
int plan_arrivals_parse(const char *name, enum plan_arrivals *ret_arrivals);
const char *plan_stamps_name(enum plan_stamps stamps); // "none", "raw", "wall"
int plan_stamps_parse(const char *name, enum plan_stamps *ret_stamps);
enum op_kind plan_op_kind(enum plan_op op);

// Return true if the peer's program answers each operation. Half of the round trip is then one way.
bool plan_op_is_answered(enum plan_op op);
// Return true if both ends poll the last byte in memory, because no completion reports the message.
bool plan_op_polls_memory(enum plan_op op);
bool plan_op_is_atomic(enum plan_op op);
// Return true if a message consumes a receive of the peer.
bool plan_op_has_receiver(enum plan_op op);

// Return true for lat if the peer's program answers each operation.
bool plan_is_answered(const struct plan *plan);
// Return true if the server's program is idle while the client measures.
bool plan_server_is_idle(const struct plan *plan);

// Return true if the server uses time stamps, too.
bool plan_server_uses_stamps(const struct plan *plan);

uint64_t plan_size_max(const struct plan *plan);

// Return the memory that an end needs for messages and operations. It is an upper bound.
uint64_t plan_memory_bytes(const struct plan *plan);
// Return how long the client measures all sizes at least; 0 if the plan does not say.
uint64_t plan_time_ns(const struct plan *plan);
// Return how long a server waits for the next operation of a client that measures.
uint64_t plan_silence_max_ns(const struct plan *plan);

// Check a plan, which may be of a stranger. Returns 0, or -EINVAL with the value and the limit in
// `why`.
int plan_check(const struct plan *plan, struct lab_why *why);

// Compare the plans of both ends in the parts that `given` names. Returns 0, or -EINVAL with the
// differing option in `why`.
int plan_compare(
	const struct plan *client, const struct plan *own, uint32_t given, struct lab_why *why
);

void plan_encode(const struct plan *plan, struct wire_writer *writer);
// Decode a plan from untrusted bytes. The reader fails with -EBADMSG on an unknown name. Numbers
// are judged by plan_check(), which names them.
void plan_decode(struct wire_reader *reader, struct plan *ret_plan);
