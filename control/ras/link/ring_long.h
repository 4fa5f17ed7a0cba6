// SPDX-License-Identifier: BSD-3-Clause
// The long rings: level k >= 1 links member i to member i + 2^k.
//
// Each member opens the links ahead and accepts those from behind, so a node has about 2·log2 N
// links. No pair of failures cuts the overlay. A long link stays while its distance is within [0.6,
// 1.6]·2^k. With exact positions, one join among ten thousand would move thousands of links. Long
// rings have no fallbacks: level 0 closes the circle, and the other levels lead around a missing
// member.
//
// The longest level spans a quarter to a half of the ring and comes to the members one by one.
// Their own links and as many from behind then leave two to four places of the 2·ceil(log2 N) free.
// A member that looks for a place finds one, and no other member has to move. A member above the
// maximum (new ring neighbour, smaller ring) is back within relink_ns. Links it cannot do without
// are the exception.
#pragma once

#include <ras/types.h>

struct link;
struct ras;

struct ring_level {
	uint32_t slot;	      // RAS_NO_SLOT if there is none
	uint32_t replacement; // becomes ready before `slot` is dropped
	uint32_t tries;	      // candidates that refused so far
	uint64_t rest_ns;     // no candidate is tried before this; observed time
};

// Adapt the levels after the members changed. `fresh`: this agent just joined and opens all levels
// at once.
void long_ring_rebuild(struct ras *ras, bool fresh);
// Remove a peer that is about to leave the table.
void long_ring_exclude_peer(struct ras *ras, uint32_t slot);
// Activate ready replacements after a link became good again.
void long_ring_link_recovered(struct ras *ras);
void long_ring_tick(struct ras *ras);

// Handle the refusal of a peer that has all the links it wants.
void ring_link_refused(struct ras *ras, struct link *link);
// Schedule a check of the long rings.
void ring_schedule_relink(struct ras *ras);
// Return true if a peer may open a link for these uses. False only for a long link while all places
// are taken. Places for own links that are yet to be opened count as taken. `link` is the existing
// link, or NULL.
bool ring_can_accept_uses(struct ras *ras, const struct link *link, uint32_t uses);

// Return the levels of the long rings for this member count; some members have one less.
uint32_t ring_level_count(uint32_t members);
// Return true if a distance ahead is right for the level.
bool ring_distance_fits(uint32_t distance, uint32_t level);
