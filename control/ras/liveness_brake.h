// SPDX-License-Identifier: BSD-3-Clause
// The brake: if too much falls silent at once, it is the network or we, not the peers.
//
// Nobody sees the whole view from its own links, and a sample is wrong too often: among many
// observers the one that is wrong declares. So members are counted: before a death by silence
// an observer asks over all good links, each one asked asks on, and the numbers are summed on
// the way back (a collective of its own kind). Whoever counts tells all, and one count serves
// all who need it at that time, so its cost does not grow with the number of observers.
#pragma once

#include "liveness.h"

enum brake_word {
	BRAKE_FREE,    // a death by silence may be declared
	BRAKE_HELD,    // it may not
	BRAKE_UNKNOWN, // no count is fresh enough; one is on its way
};

void brake_tick(struct ras *ras);
// Sees to it that a count is at hand within CENSUS_NS or so.
void brake_count(struct ras *ras);
enum brake_word brake_word(struct ras *ras);

// A census of somebody else's came by: ours is not needed now.
void brake_census_seen(struct ras *ras);
// Our own census is over; the others are told.
void brake_counted_here(struct ras *ras, uint32_t reached);
// Somebody has counted so many of the members of its view.
void brake_counted(struct ras *ras, uint32_t reached, uint32_t members);
