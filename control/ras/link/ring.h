// SPDX-License-Identifier: BSD-3-Clause
// Which links there should be: the ring and its fallbacks; the long rings are in ring_long.h.
//
// Level 0 is the seed's ring: the next and the previous member, each side with fallbacks beyond
// a primary that is silent, so that floods go round it before anybody is declared dead.
#pragma once

#include "link/ring_long.h"

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
void ring_tick(struct ras *ras);

// For ring_long.c. Steps from us to the position, going in the direction.
uint32_t
ring_steps(uint32_t self, uint32_t position, uint32_t count, enum ring_direction direction);
uint32_t ring_self_position(struct ras *ras);
// Takes the uses of the link to this slot back, if there is one.
void ring_unwant(struct ras *ras, uint32_t slot, uint32_t uses);
bool ring_slot_is_good(const struct ras *ras, uint32_t slot);
