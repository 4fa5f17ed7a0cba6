// SPDX-License-Identifier: BSD-3-Clause
// Load of a player of `bw`: a constant number of outstanding operations on each of its pairs. Each
// completion starts the next operation on the same pair.
//
// The timed unit is a window of messages. Its size is calibrated to take about 1 ms. It is at least
// the number of messages that may be outstanding. A window lasts from the completion that ended the
// previous window to the completion of its own last message. So consecutive windows have no gap
// between them, and their mean is the rate. At the start of a stretch, as many messages as may be
// outstanding belong to no window.
//
// Memory is allocated before the worker uses the load. From then until the end the worker owns all
// of it.
#pragma once

#include "run/plan.h"

#include <dataplane/op.h>

#include <stdbool.h>
#include <stdint.h>

struct player;
struct idle_step_findings;

struct load_pair {
	uint32_t slot, generation;
};

struct load {
	uint32_t pair_count;
	uint32_t depth;		// outstanding operations per pair; 0: the player has no load
	uint32_t receive_count; // per pair; 0: the operation needs no receives
	bool sends;
	struct load_pair pairs[PLAN_PAIRS_MAX];
	struct op *ops;	     // pair_count * depth
	struct op *receives; // pair_count * receive_count

	// Owned by the worker.
	bool receives_posted;
	uint32_t under_way;
	uint64_t in_window; // messages in the current window
	uint64_t lead;	    // remaining messages that belong to no window
	uint64_t messages;  // messages since creation
};

// Return the number of receives to post on each pair: twice the depth, because a receive is posted
// again only after its message was polled.
uint32_t load_receives(const struct plan *plan);

// Create a load. Returns 0 or -ENOMEM.
int load_create(
	const struct plan *plan, const struct load_pair *pairs, bool serves, struct load *ret_load
);
void load_release(struct load *load);

// Worker, hot (load_fast.c): start a stretch.
void load_begin_stretch(struct player *player);
// Worker, hot: make one step. Returns true if the stretch is over and no operation is outstanding.
bool load_step(struct player *player, const struct idle_step_findings *found);
