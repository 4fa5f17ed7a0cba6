// SPDX-License-Identifier: BSD-3-Clause
// Struct lab_end, shared by the files that implement an end.
#pragma once

#include "run/end.h"

#include <dataplane/pair.h>
#include <dataplane/worker.h>
#include <lib/clock.h>

struct lab_end {
	struct lab_end_facts facts;
	struct clock clock;
	struct device *device;
	struct messages messages;
	uint64_t half; // size of the outgoing half of the memory; the incoming half is as large
	struct memory_registry *registry;
	struct memory_view view;
	struct worker *worker;
	struct lane *lane;
	struct pair *pairs[PLAN_PAIRS_MAX];
	// `added`: given to the lane; `drained`: returned by the lane
	uint32_t pair_count, added, drained;
	struct player player;
	struct device_stamp_clock stamps;
	struct device_time device_time;
	struct plan plan;
	bool serves, quick;
	bool playing; // also while serving
};

// Return true if this end uses the time stamps of completions.
static inline bool end_uses_stamps(const struct lab_end *end) {
	return end->serves ? plan_server_uses_stamps(&end->plan)
			   : end->plan.stamps != PLAN_STAMPS_NONE;
}
