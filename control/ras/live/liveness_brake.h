// SPDX-License-Identifier: BSD-3-Clause
// The brake: if too much falls silent at once, it is the network or we, not the peers.
//
// Nobody sees the whole view from its own links, and a sample is wrong too often: among many
// observers the one that is wrong declares. So members are counted: before a death
// an observer asks over all good links, each one asked asks on, and the numbers are summed on
// the way back (a collective of its own kind). Whoever counts tells all, and the counts of two
// serve all who need one at that time, so its cost does not grow with the number of observers. What
// one other alone tells is believed by nobody: its count may be a lie, or of one that is cut off.
#pragma once

#include "live/liveness.h"

enum brake_word {
	BRAKE_FREE,    // a death by silence may be declared
	BRAKE_HELD,    // it may not
	BRAKE_UNKNOWN, // no count is fresh enough; one is on its way
};

void brake_tick(struct ras *ras);
// After a pause of our own: what was counted is from before it.
void brake_resume(struct ras *ras);
// Sees to it that a count that began at that time or later is at hand within CENSUS_NS or so.
void brake_count(struct ras *ras, uint64_t since_ns);
// One that began at this time is fresh enough for what is just to be looked at.
uint64_t brake_count_is_fresh_since(const struct ras *ras);
// Of one that fell silent, or was first refused, at `silent_ns`: by a count that began at
// `since_ns` or later.
enum brake_word brake_word(struct ras *ras, uint64_t silent_ns, uint64_t since_ns);
enum brake_hears {
	BRAKE_HEARS_NOBODY,  // it is gone
	BRAKE_HEARS_IT,	     // somebody does: it is alive, and refuses those who look
	BRAKE_HEARS_UNASKED, // it was not asked about
};

// Of one that refuses us or is silent, by the latest count.
enum brake_hears brake_hears(const struct ras *ras, uint64_t subject);

// The same, by a count that began at that time or later and asked about it; UNASKED: there is none
// yet, and one is on its way.
enum brake_hears brake_hears_since(struct ras *ras, uint64_t subject, uint64_t since_ns);

// Ours is a part of no more than half of a view, by a count that is not old: nobody is declared by
// time here.
bool brake_waits(const struct ras *ras);
// A census of that member's came by: with another one's ours is not needed now. Who has a vote does
// not go by one that does not serve, see census_list_serves_us().
void brake_census_seen(struct ras *ras, uint64_t origin, bool serves);
// Our own census that began then is over; the others are told, with the members of our view.
void brake_counted_here(struct ras *ras, uint64_t from_ns, struct census_result *result);
// That member tells that it counted so many of the members of its view.
void brake_counted(struct ras *ras, uint64_t origin, const struct census_result *result);
