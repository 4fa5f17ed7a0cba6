// SPDX-License-Identifier: BSD-3-Clause
// Search for lost agents: dead and left peers, seeds outside our ring, and remembered addresses
// that the table does not know.
//
// Two sides of a partition that declared each other dead find each other only if one of them calls.
// The same holds for an agent that came back while its seeds were down. All members together try
// each address about twice a second. One member tries at most once in profile->search_ns.
#pragma once

#include <stdint.h>

struct ras;

struct search {
	uint64_t due_ns;      // observed time of the next try
	uint64_t interval_ns; // between two tries of this agent, 0 without targets
	uint32_t turn;	      // index of the target: lost peers, then seeds, then remembered
	uint32_t targets;     // number of targets at the latest try
};

void search_tick(struct ras *ras);
