// SPDX-License-Identifier: BSD-3-Clause
#include "ring_long.h"

#include "core.h"

#define CANDIDATES_MAX 16 // looked at for one long link

uint32_t ring_levels(uint32_t members) {
	uint32_t levels = 0;

	while (levels < RAS_LEVELS_MAX - 1 && (UINT64_C(2) << (levels + 1)) <= members)
		levels++;
	return levels;
}

bool ring_distance_fits(uint32_t distance, uint32_t level) {
	uint64_t nominal = UINT64_C(1) << level;

	return 5 * (uint64_t)distance >= 3 * nominal && 5 * (uint64_t)distance <= 8 * nominal;
}

static void replacement_check(struct ras *ras, uint32_t level) {
	struct ring_level *place = &ras->ring.levels[level];

	if (place->replacement == RAS_NO_SLOT || !ring_slot_is_good(ras, place->replacement))
		return;
	ring_unwant(ras, place->slot, RAS_USE_LEVEL(level));
	place->slot = place->replacement;
	place->replacement = RAS_NO_SLOT;
	place->tries = 0;
}

static uint32_t distance_ahead(struct ras *ras, uint32_t self, uint32_t slot) {
	uint32_t position = peers_ring_position(&ras->peers, ras_entry(ras, slot)->record);

	return ring_steps(self, position, peers_ring_count(&ras->peers), RING_NEXT);
}

static bool level_has(const struct ring *ring, uint32_t slot) {
	for (uint32_t level = 1; level <= ring->level_count; level++) {
		if (ring->levels[level].slot == slot || ring->levels[level].replacement == slot)
			return true;
	}
	return slot == ring->sides[RING_NEXT].primary || slot == ring->sides[RING_PREV].primary;
}

// 2^level ahead, then 1 more, 1 less, 2 more, … as those before were refused.
static uint32_t level_candidate(struct ras *ras, uint32_t level) {
	struct ring_level *place = &ras->ring.levels[level];
	uint32_t count = peers_ring_count(&ras->peers);
	uint32_t self = ring_self_position(ras);
	uint32_t nominal = 1u << level;

	for (uint32_t tries = 0; tries < CANDIDATES_MAX; tries++) {
		uint32_t offset = (place->tries + 1) / 2;
		uint32_t distance = place->tries % 2 == 1 ? nominal + offset : nominal - offset;
		uint32_t slot;

		place->tries++;
		if (!ring_distance_fits(distance, level) || distance >= count) {
			if (offset > nominal)
				place->tries = 0;
			continue;
		}
		slot = peers_ring_at(&ras->peers, (self + distance) % count);
		if (slot != place->slot && !level_has(&ras->ring, slot) &&
		    ras_entry(ras, slot)->state == RAS_ALIVE)
			return slot;
	}
	return RAS_NO_SLOT;
}

static bool level_fits(struct ras *ras, uint32_t level, uint32_t self) {
	uint32_t slot = ras->ring.levels[level].slot;

	return slot != RAS_NO_SLOT && peer_is_member(ras_entry(ras, slot)) &&
	       ring_distance_fits(distance_ahead(ras, self, slot), level);
}

// Gives the level a link, or a replacement for one that does not fit any more.
static bool level_fill(struct ras *ras, uint32_t level) {
	struct ring_level *place = &ras->ring.levels[level];
	uint32_t slot = level_candidate(ras, level);

	if (slot == RAS_NO_SLOT)
		return false;
	if (place->slot == RAS_NO_SLOT)
		place->slot = slot;
	else
		place->replacement = slot;
	ras->counters.long_links_opened++;
	link_want(ras, slot, RAS_USE_LEVEL(level));
	replacement_check(ras, level); // it may be up already, for another use
	return true;
}

static void levels_fit(struct ras *ras) {
	struct ring *ring = &ras->ring;
	uint32_t count = peers_ring_count(&ras->peers);
	uint32_t levels = ras->profile->long_rings ? ring_levels(count) : 0;

	for (uint32_t level = levels + 1; level <= ring->level_count; level++) {
		ring_unwant(ras, ring->levels[level].slot, RAS_USE_LEVEL(level));
		ring_unwant(ras, ring->levels[level].replacement, RAS_USE_LEVEL(level));
		ring->levels[level] =
			(struct ring_level){.slot = RAS_NO_SLOT, .replacement = RAS_NO_SLOT};
	}
	ring->level_count = levels;
}

bool ring_accepts(struct ras *ras, const struct link *link, uint32_t uses) {
	uint32_t reserved = 0;

	if ((uses & RAS_USE_LONG) == 0 || (uses & RAS_USE_RING) != 0)
		return true;
	if (link != NULL && link->mine != 0)
		return true; // we want it ourselves
	for (uint32_t level = 1; level <= ras->ring.level_count; level++)
		reserved += ras->ring.levels[level].slot == RAS_NO_SLOT;
	return links_degree(ras) + reserved < links_degree_max(peers_ring_count(&ras->peers));
}

// More links than allowed, as after a change of ring neighbours: one that only its other side
// wants goes, and finds another place. True if there were too many.
static bool degree_shed(struct ras *ras) {
	if (links_degree(ras) <= links_degree_max(peers_ring_count(&ras->peers)))
		return false;
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];

		if (!link_is_good(link) || link->mine != 0 || (link->theirs & RAS_USE_LONG) == 0 ||
		    (link->theirs & RAS_USE_RING) != 0)
			continue;
		collective_link_lost(ras, link);
		relay_link_lost(ras, link);
		link_drop(ras, link, RAS_CLOSE_SOFT, RAS_CAUSE_DEGREE);
		break;
	}
	return true;
}

// At most one long link a second is opened, except by a member that has none yet. True if
// every level has what fits it: then there is nothing to do until the members change.
static bool levels_tick(struct ras *ras) {
	struct ring *ring = &ras->ring;
	bool fresh = ras->observed_ns - ras->joined_ns < ras->profile->relink_ns;
	uint32_t self = ring_self_position(ras);
	bool opened = false;
	bool complete = true;

	for (uint32_t level = 1; level <= ring->level_count && (!opened || fresh); level++) {
		struct ring_level *place = &ring->levels[level];

		replacement_check(ras, level);
		if (level_fits(ras, level, self))
			continue;
		complete = false;
		if (place->replacement == RAS_NO_SLOT)
			opened = level_fill(ras, level) || opened;
	}
	return complete;
}

void ring_relink(struct ras *ras) {
	uint64_t due = ras->observed_ns + ras_jitter(ras, ras->profile->relink_ns);

	if (due < ras->ring.relink_ns)
		ras->ring.relink_ns = due;
	ras_wake_at(ras, ras->ring.relink_ns);
}

void ring_refused(struct ras *ras, struct link *link) {
	for (uint32_t level = 1; level <= ras->ring.level_count; level++) {
		struct ring_level *place = &ras->ring.levels[level];

		if (place->slot == link->slot)
			place->slot = RAS_NO_SLOT;
		else if (place->replacement == link->slot)
			place->replacement = RAS_NO_SLOT;
		else
			continue;
		link_unwant(ras, link, RAS_USE_LEVEL(level));
	}
	ring_relink(ras);
}

void longs_rebuild(struct ras *ras, bool fresh) {
	levels_fit(ras);
	if (fresh)
		levels_tick(ras);
}

void longs_exclude(struct ras *ras, uint32_t slot) {
	struct ring *ring = &ras->ring;

	for (uint32_t level = 1; level <= ring->level_count; level++) {
		if (ring->levels[level].slot == slot)
			ring->levels[level].slot = RAS_NO_SLOT;
		if (ring->levels[level].replacement == slot)
			ring->levels[level].replacement = RAS_NO_SLOT;
	}
	ring_relink(ras);
}

void longs_recovered(struct ras *ras) {
	for (uint32_t level = 1; level <= ras->ring.level_count; level++)
		replacement_check(ras, level);
}

void longs_tick(struct ras *ras) {
	struct ring *ring = &ras->ring;

	if (ring->relink_ns <= ras->observed_ns) {
		bool complete = levels_tick(ras) && !degree_shed(ras);

		ring->relink_ns = complete ? RAS_NEVER : ras->observed_ns + ras->profile->relink_ns;
	}
	ras_wake_at(ras, ring->relink_ns);
}
