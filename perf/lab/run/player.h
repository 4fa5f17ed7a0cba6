// SPDX-License-Identifier: BSD-3-Clause
// Plays the operations of a run on a pair, as a poll function of a worker beside its lane.
//
// The player plays one stretch at a time: a number of operations in sequence. The worker's clock
// times each one from its submission to the lane until its end is seen. Between stretches the
// player is idle, so that control can read the results without disturbing a sample. The server's
// player answers the peer's operations, if they are answered, until it is stopped.
//
//	one-sided	read, cas, fadd: from submission to its own completion
//	answered	send, write-imm: to the completion of the peer's answer
//			write: until the last byte of the answer is in memory, as in perftest
//
// In an open loop the submission times are given. An operation that is due while the previous one
// is outstanding waits. Its response time begins when it was due, its service time when it was
// submitted.
//
// For `bw` the player has a load instead: <load.h>.
//
// From the request until PLAYER_EVENT_ENDED the worker owns all members except `played`.
#pragma once

#include "run/device_time.h"
#include "run/load.h"
#include "run/outlier.h"
#include "run/plan.h"

#include <dataplane/lane.h>
#include <dataplane/worker.h>
#include <lib/clock.h>

#include <record.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Limit of own outstanding operations; the player does not wait for the completion of messages and
// answers.
#define PLAYER_OPS 8
#define PLAYER_RECEIVES 16 // posted receives

// Requests to the worker; words[0] is the player.
enum player_request {
	PLAYER_REQUEST_PLAY = 0x300, // play its stretch
	PLAYER_REQUEST_SERVE,
	PLAYER_REQUEST_STOP, // harmless if the player has ended
	PLAYER_REQUEST_MARK, // server: reset the times of answers
};

// Events from the worker; words[0] is the player.
enum player_event {
	PLAYER_EVENT_SERVES = 0x300, // the server answers from now on
	PLAYER_EVENT_ENDED,
};

// The pair of a player, and the memory of both ends.
struct player_path {
	struct lane *lane;
	uint32_t pair, generation;
	const struct clock *clock;
	struct memory_view out;	 // outgoing messages
	struct memory_view in;	 // target of answers, receives and old values; accessible to peers
	uint64_t remote_address; // the peer's `in`
	uint32_t remote_key;
};

struct player_stretch {
	uint64_t lead;	// initial operations that are not recorded
	uint64_t count; // operations to record; UINT64_MAX: limited by time
	// Duration after the start of the first recorded operation; UINT64_MAX: no limit.
	uint64_t last_ns;
	uint64_t gap_ns;
	uint64_t window_messages; // load: recorded samples are windows of this many messages
	uint64_t windows_min;	  // load: windows to record even if that takes longer than last_ns
	// Open loop: due times after the start, `count` of them. NULL: closed loop.
	const uint64_t *due_ns;
	// Destination of the samples: raw with room for `count`, or records.
	uint64_t *raw;
	struct run_record *times;   // round trips; response times of an open loop
	struct run_record *service; // open loop only
	// Open loop only: delay of the submission after the earliest possible time.
	struct histogram *lag;
	struct outlier_watch *watch; // watches the largest samples; or NULL
};

struct player {
	struct player_path way;
	struct worker *worker;
	enum op_kind kind;
	bool answered;	   // plan_op_is_answered()
	bool polls_memory; // plan_op_polls_memory()
	bool serves;	   // player of a server
	uint64_t size;
	struct player_stretch stretch;
	struct load load;		 // for bw
	struct device_time *device_time; // NULL: no time stamps

	// Owned by the worker.
	bool playing, stopping, ended, receives_posted, under_way;
	bool serves_reported;
	uint8_t number; // sequence number of the last own message, or of the last answered one
	uint32_t next_op;
	uint32_t owed; // received messages that the server has not answered yet
	struct op ops[PLAYER_OPS];
	bool busy[PLAYER_OPS];
	struct op receives[PLAYER_RECEIVES];
	uint64_t begin_ns;	   // start of the stretch
	uint64_t begun;		   // started operations, including the lead
	uint64_t due_ns, start_ns; // of the current operation
	uint64_t free_ns;	   // end of the previous operation
	// Stamp of the latest completion: end of the current operation, or message to answer.
	uint64_t stamp;

	// Result of the stretch.
	bool failed;
	enum op_outcome outcome; // of the first failed operation
	struct op_cause cause;
	uint64_t kept; // recorded samples
	// From the submission of the first recorded operation to the end of the last one.
	uint64_t took_ns;
	uint64_t first_ns;

	// Progress counter. The worker writes it, control reads it; relaxed order is enough.
	_Atomic uint64_t played;
};

// Initialize a player, before its first poll.
void player_init(
	struct player *player, const struct player_path *way, enum plan_op op, bool serves
);
// Initialize a player of bw; it takes ownership of the load.
void player_init_load(
	struct player *player,
	const struct player_path *way,
	enum plan_op op,
	bool serves,
	const struct load *load
);
void player_release(struct player *player);
// Set the message size at both ends, between stretches, when no operation is outstanding.
void player_set_size(struct player *player, uint64_t size);

struct worker_poll player_poll(struct player *player);
// Worker, hot: handle a request to a lane or a player; for worker_config.request.
void player_dispatch(void *ctx, struct worker *worker, const struct worker_record *record);

// Worker, hot (player_fast.c).
bool player_step(void *ctx, struct idle_step_findings *found);
void player_begin_stretch(struct player *player);
