// SPDX-License-Identifier: BSD-3-Clause
// The load of a player of `bw`: so many operations under way at once on each of its pairs. The end
// of one begins the next on the same pair.
//
// What is timed is a window: so many messages as were found to take about a millisecond, and at
// least as many as may be under way. It lasts
// from the completion that ended the window before to the completion of its own last message, so
// that windows in a row have no gap and their mean is the rate. As many messages as may be under
// way are counted in no window when a stretch begins.
//
// Memory is taken before the worker sees it; between that and the end all of it is the worker's.
#pragma once

#include "plan.h"

#include <dataplane/op.h>

#include <stdbool.h>
#include <stdint.h>

struct player;
struct idle_found;

struct load_pair {
	uint32_t slot, generation;
};

struct load {
	uint32_t pair_count;
	uint32_t depth;		// operations of each pair; 0: the player has no load
	uint32_t receive_count; // of each pair; 0 where messages take none
	bool sends;
	struct load_pair pairs[PLAN_PAIRS_MAX];
	struct op *ops;	     // pair_count * depth
	struct op *receives; // pair_count * receive_count

	// The worker's.
	bool receives_posted;
	uint32_t under_way;
	uint64_t in_window; // messages
	uint64_t lead;	    // messages to come that are in no window
	uint64_t messages;  // since it was made
};

// How many receives each pair has posted for a depth: as many again as may be under way, for one is
// posted anew only after its message was seen.
uint32_t load_receives(const struct plan *plan);

// -ENOMEM.
int load_create(
	const struct plan *plan, const struct load_pair *pairs, bool serves, struct load *ret_load
);
void load_release(struct load *load);

// load_fast.c: the worker's thread; hot.
void load_begin_stretch(struct player *player);
// Returns whether the stretch is over and none of its operations is under way.
bool load_step(struct player *player, const struct idle_found *found);
