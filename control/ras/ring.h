// SPDX-License-Identifier: BSD-3-Clause
// Which links there should be: the ring, its fallbacks, and the long rings.
//
// Level 0 is the seed's ring: the next and the previous member, each side with fallbacks beyond
// a primary that is silent, so that floods go round it before anybody is declared dead. Level
// k >= 1 joins i and i + 2^k; each member opens the ones ahead and accepts those from behind,
// so a node has about 2·log2 N links and no pair of failures cuts the overlay. A long link
// stays while its distance is within [0.6, 1.6]·2^k: by exact position one join among ten
// thousand would move thousands. Long rings have no fallbacks: level 0 closes the circle, and
// the other levels lead round one that is missing.
#pragma once

#include <ras/types.h>

struct link;
struct ras;

#define RING_FALLBACKS_MAX 8

enum ring_direction {
	RING_NEXT,
	RING_PREV,
};

struct ring_side {
	uint32_t primary;			// slot, RAS_NO_SLOT if we are alone
	uint32_t fallbacks[RING_FALLBACKS_MAX]; // beyond it, in order of distance
	uint32_t fallback_count;
};

struct ring_level {
	uint32_t slot;	      // RAS_NO_SLOT while there is none
	uint32_t replacement; // comes up before `slot` goes
	uint32_t tries;	      // candidates refused so far
};

struct ring {
	struct ring_side sides[2];
	struct ring_level *levels; // 1 … level_count, as needed
	uint32_t level_count;
	uint64_t rebuild_ns; // the members changed, RAS_NEVER if not; observed time
	uint64_t relink_ns;  // next look at the long rings, RAS_NEVER while all is well
};

int ring_init(struct ras *ras);
void ring_fini(struct ras *ras);

// The members changed; links follow soon, and one rebuild serves many changes.
void ring_changed(struct ras *ras);
void ring_rebuild(struct ras *ras);
// Takes a peer out that is about to leave the table; its first fallback takes its place.
void ring_exclude(struct ras *ras, uint32_t slot);
// The peer of a link is silent: routes round it.
void ring_delayed(struct ras *ras, struct link *link);
// It speaks: fallbacks that are needed no more go, a replacement takes its place.
void ring_recovered(struct ras *ras, struct link *link);
// It has all the links it wants.
void ring_refused(struct ras *ras, struct link *link);
// The long rings want a look soon.
void ring_relink(struct ras *ras);
// May a peer open a link for these uses? Not if it is a long one and we have as many links as
// allowed, those counted that we have yet to open ourselves. `link` is the one we have, or NULL.
bool ring_accepts(struct ras *ras, const struct link *link, uint32_t uses);
void ring_tick(struct ras *ras);

// Levels of the long rings among so many members.
uint32_t ring_levels(uint32_t members);
// Is this distance ahead right for level k?
bool ring_distance_fits(uint32_t distance, uint32_t level);
