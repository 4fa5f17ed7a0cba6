// SPDX-License-Identifier: BSD-3-Clause
// A scenario: a row of the table, and a small function that schedules faults and load.
#pragma once

#include "fault.h"

#include <stdbool.h>
#include <stdint.h>

struct run;

struct scenario {
	const char *name;
	const char *summary;
	// Called once when the ring is complete. NULL: no faults.
	void (*play)(struct run *run);
	// Called when all nodes have one view again, for the final measurements.
	void (*finish)(struct run *run);
	// Called before any node is started.
	void (*prepare)(struct run *run);
	bool lives;	// no living node may be declared dead
	bool joins;	// the ring forms through three seeds; otherwise it exists from the start
	uint32_t spare; // additional nodes, not started with the others
	uint32_t nodes_max; // 0: no limit of its own
	uint32_t per_host;  // nodes per host, unless hosts are given; 0 means 1
	uint32_t limit_s;   // from the end of the faults to one view, with profile fast
	uint32_t seconds;   // minimum length, unless minutes are given
};

extern const struct scenario scenarios[];
extern const uint32_t scenario_count;

// Returns NULL if there is no scenario of this name.
const struct scenario *scenario_find(const char *name);
// The scenario that plays the faults of the command line.
extern const struct scenario scenario_of_faults;

// Draw a typical fault of any node, within `span_ns`.
void scenario_draw_fault(
	uint64_t *random,
	uint32_t nodes,
	uint64_t dead_ns,
	uint64_t span_ns,
	struct fault *ret_fault
);
