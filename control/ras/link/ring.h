// SPDX-License-Identifier: BSD-3-Clause
// Links of the ring and their fallbacks; the long rings are in ring_long.h.
//
// Level 0 is the ring of all members: a link to the next and to the previous member. If that
// primary link is silent, each side adds fallbacks beyond it. Floods can then bypass the silent
// member before it is declared dead.
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
	uint32_t primary;			// slot, RAS_NO_SLOT if this agent is alone
	uint32_t fallbacks[RING_FALLBACKS_MAX]; // slots beyond the primary, in order of distance
	uint32_t fallback_count;
};

struct ring {
	struct ring_side sides[2];
	struct ring_level *levels; // long rings, levels 1 … level_count
	uint32_t level_count;
	uint64_t rebuild_ns; // next rebuild, RAS_NEVER if the members are unchanged
	uint64_t relink_ns;  // next check of the long rings, RAS_NEVER while all levels fit
};

int ring_init(struct ras *ras);
void ring_fini(struct ras *ras);

// Schedule a rebuild of the links after the members changed. One rebuild serves many changes.
void ring_schedule_rebuild(struct ras *ras);
void ring_rebuild(struct ras *ras);
// Remove a peer that is about to leave the table. Its first fallback replaces it.
void ring_exclude_peer(struct ras *ras, uint32_t slot);
// Route around a link whose peer is silent.
void ring_link_delayed(struct ras *ras, struct link *link);
// Drop unneeded fallbacks and activate replacements after a link became good.
void ring_link_recovered(struct ras *ras, struct link *link);
void ring_tick(struct ras *ras);

// For ring_long.c. Return the steps from this agent to a position, in one direction.
uint32_t
ring_steps(uint32_t self, uint32_t position, uint32_t count, enum ring_direction direction);
uint32_t ring_self_position(struct ras *ras);
// Remove uses from the link to this slot, if there is one.
void ring_link_unwant(struct ras *ras, uint32_t slot, uint32_t uses);
bool ring_slot_is_good(const struct ras *ras, uint32_t slot);
