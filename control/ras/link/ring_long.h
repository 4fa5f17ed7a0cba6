// SPDX-License-Identifier: BSD-3-Clause
// The long rings: level k >= 1 joins i and i + 2^k.
//
// Each member opens the links ahead and accepts those from behind, so a node has about
// 2·log2 N links and no pair of failures cuts the overlay. A long link stays while its distance
// is within [0.6, 1.6]·2^k: by exact position one join among ten thousand would move thousands.
// Long rings have no fallbacks: level 0 closes the circle, and the other levels lead round one
// that is missing.
//
// The longest level spans a quarter to a half of the ring and comes to the members one by one,
// so that their own links and as many from behind leave two to four places of the 2·ceil(log2 N)
// free: whoever looks for a place finds one, and nobody is made to move for it. Above the bound
// (a new ring neighbour, a smaller ring) a member is back within relink_ns, but for links it
// cannot do without.
#pragma once

#include <ras/types.h>

struct link;
struct ras;

struct ring_level {
	uint32_t slot;	      // RAS_NO_SLOT while there is none
	uint32_t replacement; // comes up before `slot` goes
	uint32_t tries;	      // candidates refused so far
	uint64_t rest_ns;     // none is tried before this; observed time
};

// The members changed; `fresh`: we are one since this moment, and open all levels at once.
void longs_rebuild(struct ras *ras, bool fresh);
// A peer is about to leave the table.
void longs_exclude(struct ras *ras, uint32_t slot);
// Some link is good again: a replacement that is up takes its place.
void longs_recovered(struct ras *ras);
void longs_tick(struct ras *ras);

// The peer of a link has all the links it wants.
void ring_refused(struct ras *ras, struct link *link);
// The long rings want a look soon.
void ring_relink(struct ras *ras);
// May a peer open a link for these uses? Not if it is a long one and we have as many links as
// allowed, those counted that we have yet to open ourselves. `link` is the one we have, or NULL.
bool ring_accepts(struct ras *ras, const struct link *link, uint32_t uses);

// Levels of the long rings among so many members; some of these have one less.
uint32_t ring_levels(uint32_t members);
// Is this distance ahead right for level k?
bool ring_distance_fits(uint32_t distance, uint32_t level);
