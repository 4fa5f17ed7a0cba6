// SPDX-License-Identifier: BSD-3-Clause
// Faults with their times and durations, from a scenario or from a text.
//
// A fault undoes itself at its end. It also sets what its victims may expect: whether other nodes
// may declare them dead.
#pragma once

#include "gaps.h"

#include <lib/parse.h>

#include <stdbool.h>
#include <stdint.h>

struct event;
struct world;

enum fault_kind {
	FAULT_KILL,   // kills the process; it is started again at the end
	FAULT_FORGET, // kill, and the state directory is deleted
	FAULT_LEAVE,  // the node leaves gracefully; it is started again at the end
	FAULT_START,  // starts a node that has not run before
	FAULT_FREEZE, // SIGSTOP of the process; its kernel keeps running
	FAULT_STOP,   // stops the whole machine, like a paused VM
	FAULT_HOST,   // powers the host off; it is powered up again at the end
	FAULT_DEAF,   // no packet reaches the node's host
	FAULT_MUTE,   // no packet leaves the node's host
	FAULT_SPLIT,  // partition: `value` percent of the hosts, from the node's host on
	FAULT_FENCE,  // split, and a firewall between the sides answers TCP with resets
	FAULT_CUT,    // no packets between the node and one other node
	FAULT_SLOW,   // adds `value` milliseconds of delay to the node's host
	FAULT_REJECT, // the host's firewall rejects new connections
	FAULT_RESET,  // resets the node's connections, once
	FAULT_LEAP,   // the node's clock leaps by `value` milliseconds, once
	FAULT_STALL,  // `value` of a million messages are delayed, in the whole network
	FAULT_LOSS,   // `value` percent of the host's packets are lost; TCP retransmits them
	FAULT_SWAP,   // kills the node and another one; each restarts with the other's address
	FAULT_STALE,  // kill, then a start with an old copy of its own state directory
	FAULT_MOVE,   // kill, then a start with another address
	FAULT_CLONE,  // kill, then a start with a copy of the other node's state directory
	// The node claims another node's address, or an unused one if `value` is the node itself.
	FAULT_WRONG,
	FAULT_ONEWAY,  // no packet of the node reaches the other node
	FAULT_LAG,     // the process stops for `value` milliseconds of each second
	FAULT_LOSSIN,  // loss of incoming packets only
	FAULT_LOSSOUT, // loss of outgoing packets only
	FAULT_FABRIC,  // the cable of the node's fabric port is pulled; only verdicts depend on it
	FAULT_KIND_COUNT,
};

struct fault {
	enum fault_kind kind;
	uint32_t node;
	uint32_t value;	      // meaning depends on the kind
	uint64_t at_ns;	      // since faults.begin_ns
	uint64_t duration_ns; // 0: permanent
};

struct faults {
	struct fault *list;
	uint32_t count, capacity;
	uint64_t begin_ns; // virtual time of at_ns 0
	uint64_t end_ns;   // end of the last fault
	struct gaps gaps;  // partitions by islands and fences
	uint32_t splits;   // partitions in progress
	// 1 + the side that declared members of the other side dead; 0: neither has.
	uint32_t declaring;
	uint32_t *lagging; // by node: 1 + the index of the lag fault that has stopped the node now
};

void faults_fini(struct faults *faults);
// Schedule a fault. Its at_ns counts from faults.begin_ns and must not have passed.
void fault_add(struct world *world, const struct fault *fault);
void fault_happen(struct world *world, struct event *event);

const char *fault_name(enum fault_kind kind);
// Return whether the value is another node, counted from 0 like nodes.
bool fault_names_another(enum fault_kind kind);

// Parse "freeze:5@12.5s+6s,split/40@20s+10s": kind, node counted from 1, value, time, duration.
// Islands and fences begin with the first node if none is named. Writes at most `count_max`
// faults to *ret_faults. Returns 0, or -EINVAL, -ERANGE or -E2BIG with the reason.
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
