// SPDX-License-Identifier: BSD-3-Clause
// What goes wrong, when, for how long: a list that a scenario fills, or a text spells.
//
// A fault that ends undoes itself. What its victims may expect from the others (to be declared
// dead, or not) is part of it.
#pragma once

#include "gaps.h"

#include <lib/parse.h>

#include <stdbool.h>
#include <stdint.h>

struct event;
struct world;

enum fault_kind {
	FAULT_KILL,   // the process; started again at the end
	FAULT_FORGET, // the same, and its state directory is gone
	FAULT_LEAVE,  // it says goodbye; started again at the end
	FAULT_START,  // one that was not started so far
	FAULT_FREEZE, // SIGSTOP: its kernel goes on
	FAULT_STOP,   // its machine stands still, as a paused VM does
	FAULT_HOST,   // its host is dark; powered up again at the end
	FAULT_DEAF,   // nothing reaches its host
	FAULT_MUTE,   // nothing leaves its host
	FAULT_SPLIT,  // this many percent of the hosts are an island, from the node's host on
	FAULT_FENCE,  // the same, and a firewall between answers TCP with resets
	FAULT_CUT,    // between it and one other node
	FAULT_SLOW,   // its host is so many milliseconds further away
	FAULT_REJECT, // its firewall rejects new connections
	FAULT_RESET,  // its connections are reset, once
	FAULT_LEAP,   // its clock leaps by so many milliseconds, once
	FAULT_STALL,  // this many of a million messages stand still, everywhere
	FAULT_LOSS,   // of this many percent of its packets there is no trace; TCP sends them again
	FAULT_SWAP,   // it and one other node are killed, and start with each other's address
	FAULT_STALE,  // as kill, and started with a copy of its state directory of before
	FAULT_MOVE,   // as kill, and started with another address
	FAULT_CLONE,  // as kill, and started with a copy of the other node's state directory
	FAULT_WRONG,  // says to have the other's address, or nobody's if that is itself
	FAULT_ONEWAY, // nothing of it reaches the other node
	FAULT_LAG,    // its process stands still for so many milliseconds of each second
	FAULT_LOSSIN, // as loss, of what comes to it alone
	FAULT_LOSSOUT, // and of what it sends
	FAULT_KIND_COUNT,
};

struct fault {
	enum fault_kind kind;
	uint32_t node;
	uint32_t value;	      // by kind
	uint64_t at_ns;	      // since the faults began
	uint64_t duration_ns; // 0: for good
};

struct faults {
	struct fault *list;
	uint32_t count, capacity;
	uint64_t begin_ns;  // virtual time of at_ns 0
	uint64_t end_ns;    // when all have ended
	struct gaps gaps;   // between islands and fences
	uint32_t splits;    // under way
	uint32_t declaring; // the side that declared members of the other one, + 1; 0 for none
	uint32_t *lagging;  // by node: the fault, + 1, that has it stand still for a moment
};

void faults_fini(struct faults *faults);
// Schedules it; at_ns counts from faults.begin_ns, and has not passed.
void fault_add(struct world *world, const struct fault *fault);
void fault_happen(struct world *world, struct event *event);

const char *fault_name(enum fault_kind kind);
// Whether the value is another node, counted as nodes are.
bool fault_names_another(enum fault_kind kind);

// "freeze:5@12.5s+6s,split/40@20s+10s": kind, node counted from 1, value, time, duration; islands
// and fences begin with the first node if none is named. At
// most `count_max` faults are written to *ret_faults. -EINVAL, -ERANGE, -E2BIG with the reason.
int faults_parse(
	const char *text,
	uint32_t nodes,
	struct fault *ret_faults,
	uint32_t count_max,
	uint32_t *ret_count,
	struct parse_error *error
);
#define FAULT_TEXT_BYTES 96
void fault_format(const struct fault *fault, char text[static FAULT_TEXT_BYTES]);
