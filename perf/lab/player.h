// SPDX-License-Identifier: BSD-3-Clause
// Plays the operations of a run on a pair, as one thing that a worker polls beside its lane.
//
// What it plays is a stretch: so many operations one after the other, each timed by the worker's
// clock from its submission to the lane until its end is seen. Between stretches it is idle, so
// that control can look at what came of one without a sample noticing. The server's answers each
// operation of the peer, where operations are answered, until it is told to stop.
//
//	one-sided	read, cas, fadd: from submission to its own completion
//	answered	send, write-imm: to the completion that brings the peer's answer
//			write: until the answer's last byte is seen in memory, as perftest does
//
// In an open loop the times of submission are given. An operation that is due while the one before
// is under way waits; its response time is from when it was due, its service time from when it was
// submitted.
//
// The player of `bw` has a load in place of these: <load.h>.
//
// Between handing over a stretch and PLAYER_EVENT_ENDED all but `played` is the worker's.
#pragma once

#include "device_time.h"
#include "load.h"
#include "outlier.h"
#include "plan.h"

#include <dataplane/lane.h>
#include <dataplane/worker.h>
#include <lib/clock.h>

#include <record.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PLAYER_OPS 8	   // of ours that may be under way, those whose end nobody waits for
#define PLAYER_RECEIVES 16 // posted

// Requests: words[0] is the player.
enum player_request {
	PLAYER_REQUEST_PLAY = 0x300, // its stretch
	PLAYER_REQUEST_SERVE,
	PLAYER_REQUEST_STOP, // harmless if it has ended
	PLAYER_REQUEST_MARK, // of a server: times of answers so far are forgotten
};

// words[0] is the player.
enum player_event {
	PLAYER_EVENT_SERVES = 0x300, // it answers from now on
	PLAYER_EVENT_ENDED,
};

// Where the pair is, and what the peer shows.
struct player_way {
	struct lane *lane;
	uint32_t pair, generation;
	const struct clock *clock;
	struct memory_view out;	 // what goes out
	struct memory_view in;	 // where answers, receives and old values come to; peers reach it
	uint64_t remote_address; // of the peer's `in`
	uint32_t remote_key;
};

struct player_stretch {
	uint64_t lead;	  // operations in front that are not kept
	uint64_t count;	  // kept; UINT64_MAX: until the time is over
	uint64_t last_ns; // after the first kept one began no further one begins; UINT64_MAX: never
	uint64_t gap_ns;
	uint64_t window_messages; // of a load: what is kept are windows of so many
	// Of an open loop: when each is due, after the beginning; count of them. NULL: closed.
	const uint64_t *due_ns;
	// What is kept goes into one of these: raw, with room for count; or records.
	uint64_t *raw;
	struct run_record *times;    // round trips; of an open loop response times
	struct run_record *service;  // of an open loop
	struct histogram *lag;	     // of an open loop: submitted so long after it could be
	struct outlier_watch *watch; // looks at the largest; or NULL
};

struct player {
	struct player_way way;
	struct worker *worker;
	enum op_kind kind;
	bool answered;	      // plan_op_is_answered()
	bool looks_in_memory; // plan_op_looks_in_memory()
	bool serves;	      // the server's
	uint64_t size;
	struct player_stretch stretch;
	struct load load;		 // of bw
	struct device_time *device_time; // NULL: stamps are not looked at

	// The worker's.
	bool playing, stopping, ended, receives_posted, under_way;
	bool said_serves;
	uint8_t number; // of the last one of ours, or of theirs that was answered
	uint32_t next_op;
	uint32_t owed; // answers of a server
	struct op ops[PLAYER_OPS];
	bool busy[PLAYER_OPS];
	struct op receives[PLAYER_RECEIVES];
	uint64_t begin_ns;	   // of the stretch
	uint64_t begun;		   // operations, with the lead
	uint64_t due_ns, start_ns; // of the present one
	uint64_t free_ns;	   // when the one before had ended
	uint64_t stamp;		   // of the completion that ended the present one, or is answered

	// When it comes back.
	bool failed;
	enum op_outcome outcome; // of what failed
	struct op_cause cause;
	uint64_t kept;	  // samples
	uint64_t took_ns; // from the first kept operation's submission to the last one's end
	uint64_t first_ns;

	// Worker: w, control: r; relaxed, a sign of life.
	_Atomic uint64_t played;
};

// Before it is polled for the first time.
void player_init(struct player *player, const struct player_way *way, enum plan_op op, bool serves);
// The same of bw, whose load it takes over.
void player_init_load(
	struct player *player,
	const struct player_way *way,
	enum plan_op op,
	bool serves,
	const struct load *load
);
void player_release(struct player *player);
// Both ends, between stretches, when the size changes: nothing is under way.
void player_set_size(struct player *player, uint64_t size);

struct worker_poll player_poll(struct player *player);
// The worker's thread; hot.
void player_request(
	struct player *player, struct worker *worker, const struct worker_record *record
);
// worker_config.request of a worker with lanes and a player.
void player_dispatch(void *ctx, struct worker *worker, const struct worker_record *record);

// player_fast.c
bool player_step(void *ctx, struct idle_found *found);
void player_begin_stretch(struct player *player);
