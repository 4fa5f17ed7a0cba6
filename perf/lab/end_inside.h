// SPDX-License-Identifier: BSD-3-Clause
// What the files of an end share: what it is made of.
#pragma once

#include "end.h"

#include <dataplane/pair.h>
#include <dataplane/worker.h>
#include <lib/clock.h>

struct lab_end {
	struct lab_end_facts facts;
	struct clock clock;
	struct device *device;
	struct messages messages;
	uint64_t half; // bytes of what goes out; as many come in
	struct memory_registry *registry;
	struct memory_view view;
	struct worker *worker;
	struct lane *lane;
	struct pair *pairs[PLAN_PAIRS_MAX];
	uint32_t pair_count, added, drained; // the lane has, and gave back
	struct player player;
	struct device_stamps stamps;
	struct device_time device_time;
	struct plan plan;
	bool serves, quick;
	bool playing; // or serves
};

// Whether it looks at the stamps of completions.
static inline bool end_stamps(const struct lab_end *end) {
	return end->serves ? plan_server_stamps(&end->plan) : end->plan.stamps != PLAN_STAMPS_NONE;
}
