// SPDX-License-Identifier: BSD-3-Clause
// What a run plays: a row of the table and a small function that schedules faults and load.
#pragma once

#include "fault.h"

#include <stdbool.h>
#include <stdint.h>

struct run;

struct scenario {
	const char *name;
	const char *summary;
	// Called once when the ring stands. NULL: nothing happens.
	void (*play)(struct run *run);
	// Called when all have one view again, for what is measured then.
	void (*finish)(struct run *run);
	// Called before any node is started.
	void (*prepare)(struct run *run);
	bool lives;	    // nobody who lives is to be taken for dead
	bool joins;	    // the ring is formed through three seeds, else it is there at once
	uint32_t spare;	    // nodes beyond those asked for, not started with the others
	uint32_t nodes_max; // 0: as many as a world holds
	uint32_t per_host;  // nodes, unless hosts are given; 0 is 1
	uint32_t limit_s;   // from the end of the faults to one view, profile fast
	uint32_t seconds;   // it lasts this long at least, unless minutes are given
};

extern const struct scenario scenarios[];
extern const uint32_t scenario_count;

// NULL if there is none.
const struct scenario *scenario_find(const char *name);
// Plays the faults given on the command line.
extern const struct scenario scenario_of_faults;

// A fault as they come, on any node, within `span_ns`.
void scenario_draw_fault(
	uint64_t *random,
	uint32_t nodes,
	uint64_t dead_ns,
	uint64_t span_ns,
	struct fault *ret_fault
);
