// SPDX-License-Identifier: BSD-3-Clause
// Looking for who is lost: all who left or died, every seed that is none of our ring, and whom we
// remember of an earlier run but our table does not know.
//
// Two parts of a cluster find each other again only if somebody calls: an agent that came back
// while its seeds were down, halves that held each other for dead. Each address is tried about
// twice a second by all members together, and no member tries more than its profile allows.
#pragma once

#include <stdint.h>

struct ras;

struct search {
	uint64_t due_ns;      // next try; observed time
	uint64_t interval_ns; // between two tries of ours, 0 while there is nobody to look for
	uint32_t turn;	      // over those who are lost, then the seeds, then the remembered
	uint32_t targets;     // so many there were
};

void search_tick(struct ras *ras);
