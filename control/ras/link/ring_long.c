// SPDX-License-Identifier: BSD-3-Clause
// The long links of the ring, one level for each power of two.
#include "link/ring_long.h"

#include "core/core.h"

#define CANDIDATES_MAX 16   // candidates tried for one long link
#define LEVEL_REST_FACTOR 5 // times relink_ns, after all candidates of a window refused
#define NEAR_LEVELS (RAS_USE_LEVEL(1) | RAS_USE_LEVEL(2))
#define NEAR_PLACES 2 // reserved for levels 1 and 2, whose windows have two and four candidates

uint32_t ring_level_count(uint32_t members) {
	uint32_t levels = members >= 4 ? 1 : 0;

	while (levels < RAS_LEVELS_MAX - 1 && (UINT64_C(4) << levels) <= members)
		levels++;
	return levels;
}

bool ring_distance_fits(uint32_t distance, uint32_t level) {
	uint64_t nominal = UINT64_C(1) << level;

	return 5 * (uint64_t)distance >= 3 * nominal && 5 * (uint64_t)distance <= 8 * nominal;
}

static void replacement_activate(struct ras *ras, uint32_t level) {
	struct ring_level *place = &ras->ring.levels[level];

	if (place->replacement == RAS_NO_SLOT || !ring_slot_is_good(ras, place->replacement))
		return;
	ring_link_unwant(ras, place->slot, RAS_USE_LEVEL(level));
	place->slot = place->replacement;
	place->replacement = RAS_NO_SLOT;
	place->tries = 0;
}

static uint32_t distance_ahead(struct ras *ras, uint32_t self, uint32_t slot) {
	uint32_t position = peers_ring_position(&ras->peers, ras_entry(ras, slot)->record);

	return ring_steps(self, position, peers_ring_count(&ras->peers), RING_NEXT);
}

static bool ring_uses_slot(const struct ring *ring, uint32_t slot) {
	for (uint32_t level = 1; level <= ring->level_count; level++) {
		if (ring->levels[level].slot == slot || ring->levels[level].replacement == slot)
			return true;
	}
	return slot == ring->sides[RING_NEXT].primary || slot == ring->sides[RING_PREV].primary;
}

// Return the distance at which the search in the window begins: its middle. If the last link moved
// out of the window, return the end opposite to that movement. The ring is likely to keep changing
// that way.
static uint32_t level_search_start(struct ras *ras, uint32_t level, uint32_t self) {
	uint32_t slot = ras->ring.levels[level].slot;
	uint32_t nominal = 1u << level;
	uint32_t distance = nominal;

	if (slot != RAS_NO_SLOT && peer_is_member(ras_entry(ras, slot)))
		distance = distance_ahead(ras, self, slot);
	if (ring_distance_fits(distance, level))
		return nominal;
	return distance > nominal ? (7 * nominal + 9) / 10 : 3 * nominal / 2;
}

// Return the next candidate: the start of the search, then 1 more, 1 less, 2 more and so on. If the
// whole window refused, the level rests for a while, since places become free as others move.
static uint32_t level_candidate(struct ras *ras, uint32_t level) {
	struct ring_level *place = &ras->ring.levels[level];
	uint32_t count = peers_ring_count(&ras->peers);
	uint32_t self = ring_self_position(ras);
	uint32_t aim = level_search_start(ras, level, self);

	for (uint32_t tries = 0; tries < CANDIDATES_MAX; tries++) {
		uint32_t offset = (place->tries + 1) / 2;
		uint32_t distance = place->tries % 2 == 1 ? aim + offset : aim - offset;
		uint32_t slot;

		if (offset > 1u << level) {
			place->tries = 0;
			place->rest_ns =
				ras->observed_ns + LEVEL_REST_FACTOR * ras->profile->relink_ns;
			break;
		}
		place->tries++;
		if (!ring_distance_fits(distance, level) || distance >= count)
			continue;
		slot = peers_ring_at(&ras->peers, (self + distance) % count);
		if (slot != place->slot && !ring_uses_slot(&ras->ring, slot) &&
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

// Give the level a link, or a replacement for a link that no longer fits.
static bool level_fill(struct ras *ras, uint32_t level) {
	struct ring_level *place = &ras->ring.levels[level];
	uint32_t slot = level_candidate(ras, level);

	if (slot == RAS_NO_SLOT || link_want(ras, slot, RAS_USE_LEVEL(level)) == NULL)
		return false;
	if (place->slot == RAS_NO_SLOT)
		place->slot = slot;
	else
		place->replacement = slot;
	replacement_activate(ras, level); // the replacement may be ready already, for another use
	return true;
}

// Return the number of levels of this agent. The highest level comes to one member after another
// while the ring doubles. By the member count alone, one join that makes 1,024 of 1,023 would make
// all members open a link at once. In a ring of that size each restart would repeat this.
static uint32_t own_level_count(const struct ras *ras, uint32_t count) {
	uint32_t levels = ring_level_count(count);
	uint64_t share = ras->self_id & 0xffff;

	if (levels > 1 && ((uint64_t)count << 16) < (UINT64_C(2) << levels) * (0x10000 + share))
		levels--;
	return levels;
}

static void levels_resize(struct ras *ras) {
	struct ring *ring = &ras->ring;
	uint32_t count = peers_ring_count(&ras->peers);
	uint32_t levels = ras->profile->long_rings ? own_level_count(ras, count) : 0;

	for (uint32_t level = levels + 1; level <= ring->level_count; level++) {
		ring_link_unwant(ras, ring->levels[level].slot, RAS_USE_LEVEL(level));
		ring_link_unwant(ras, ring->levels[level].replacement, RAS_USE_LEVEL(level));
		ring->levels[level] =
			(struct ring_level){.slot = RAS_NO_SLOT, .replacement = RAS_NO_SLOT};
	}
	ring->level_count = levels;
}

// Return the number of links in use, without replacements in progress. A replacement takes the
// place of a counted link, and no member should lose a link for that moment.
static uint32_t degree_without_replacements(const struct ras *ras) {
	const struct ring *ring = &ras->ring;
	uint32_t degree = links_degree(ras);

	for (uint32_t level = 1; level <= ring->level_count; level++) {
		uint32_t slot = ring->levels[level].replacement;
		const struct link *link = slot != RAS_NO_SLOT ? link_find(ras, slot) : NULL;

		if (link != NULL && link->mine == RAS_USE_LEVEL(level) && link->theirs == 0)
			degree--;
	}
	return degree;
}

// Return the number of places that only levels 1 and 2 of other members may take.
static uint32_t near_level_places(const struct ras *ras) {
	uint32_t places = NEAR_PLACES;

	for (uint32_t n = 0; n < ras->links.count && places > 0; n++) {
		const struct link *link = ras->links.table[n];

		places -= link->used && (link->theirs & NEAR_LEVELS) != 0;
	}
	return places;
}

bool ring_can_accept_uses(struct ras *ras, const struct link *link, uint32_t uses) {
	uint32_t reserved = 0;

	if ((uses & RAS_USE_LONG) == 0 || (uses & RAS_USE_RING) != 0)
		return true;
	if (link != NULL && link->mine != 0)
		return true; // this agent wants the link itself
	for (uint32_t level = 1; level <= ras->ring.level_count; level++)
		reserved += ras->ring.levels[level].slot == RAS_NO_SLOT;
	if ((uses & NEAR_LEVELS) == 0)
		reserved += near_level_places(ras);
	return degree_without_replacements(ras) + reserved <
	       links_degree_max(peers_ring_count(&ras->peers));
}

// Return how soon another member has to move its link anyway: the distance in parts of 2^level.
// Links of levels 1 and 2 come last, since they have few places to move to.
static uint64_t shed_rank(struct ras *ras, const struct link *link, uint32_t self) {
	uint32_t level = 31 - (uint32_t)__builtin_clz(link->theirs / RAS_USE_LEVEL(0));
	uint32_t distance = peers_ring_count(&ras->peers) - distance_ahead(ras, self, link->slot);

	if (level > RAS_LEVELS_MAX)
		level = RAS_LEVELS_MAX; // the other side may report a level that no ring has
	if ((link->theirs & NEAR_LEVELS) != 0)
		return 1;
	return 1 + ((uint64_t)distance << (RAS_LEVELS_MAX - level));
}

// Choose the least costly link among those that only their other side wants.
static struct link *shed_link_choose(struct ras *ras) {
	uint32_t self = ring_self_position(ras);
	struct link *chosen = NULL;
	uint64_t highest = 0;

	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];
		uint64_t rank;

		if (!link_is_good(link) || link->mine != 0 || (link->theirs & RAS_USE_LONG) == 0 ||
		    (link->theirs & RAS_USE_RING) != 0 ||
		    !peer_is_member(ras_entry(ras, link->slot)))
			continue;
		rank = shed_rank(ras, link, self);
		if (rank > highest) {
			highest = rank;
			chosen = link;
		}
	}
	return chosen;
}

// Drop links above the maximum, for example after a change of ring neighbours. The other sides find
// other places. Returns true if some links had to stay.
static bool degree_shed(struct ras *ras) {
	uint32_t allowed = links_degree_max(peers_ring_count(&ras->peers));
	struct link *link;

	while (degree_without_replacements(ras) > allowed) {
		link = shed_link_choose(ras);
		if (link == NULL)
			return true;
		parts_link_event(ras, link, LINK_LOST);
		link_drop(ras, link, RAS_CLOSE_SOFT, RAS_CAUSE_DEGREE);
		ras->counters.links_shed++;
	}
	return false;
}

// Open at most one long link per second; a new member opens all at once. Returns true if every
// level fits: then nothing is to do until the members change.
static bool levels_fill(struct ras *ras) {
	struct ring *ring = &ras->ring;
	bool fresh = ras->observed_ns - ras->joined_ns < ras->profile->relink_ns;
	uint32_t self = ring_self_position(ras);
	bool opened = false;
	bool complete = true;

	for (uint32_t level = 1; level <= ring->level_count && (!opened || fresh); level++) {
		struct ring_level *place = &ring->levels[level];

		replacement_activate(ras, level);
		if (level_fits(ras, level, self))
			continue;
		complete = false;
		if (place->replacement == RAS_NO_SLOT && place->rest_ns <= ras->observed_ns)
			opened = level_fill(ras, level) || opened;
	}
	return complete;
}

void ring_schedule_relink(struct ras *ras) {
	uint64_t due = ras->observed_ns + ras_jitter(ras, ras->profile->relink_ns);

	if (due < ras->ring.relink_ns)
		ras->ring.relink_ns = due;
	ras_wake_at(ras, ras->ring.relink_ns);
}

void ring_link_refused(struct ras *ras, struct link *link) {
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
	ring_schedule_relink(ras);
}

void long_ring_rebuild(struct ras *ras, bool fresh) {
	levels_resize(ras);
	if (fresh)
		levels_fill(ras);
}

void long_ring_exclude_peer(struct ras *ras, uint32_t slot) {
	struct ring *ring = &ras->ring;

	for (uint32_t level = 1; level <= ring->level_count; level++) {
		if (ring->levels[level].slot == slot)
			ring->levels[level].slot = RAS_NO_SLOT;
		if (ring->levels[level].replacement == slot)
			ring->levels[level].replacement = RAS_NO_SLOT;
	}
	ring_schedule_relink(ras);
}

void long_ring_link_recovered(struct ras *ras) {
	for (uint32_t level = 1; level <= ras->ring.level_count; level++)
		replacement_activate(ras, level);
}

void long_ring_tick(struct ras *ras) {
	struct ring *ring = &ras->ring;

	if (ring->relink_ns <= ras->observed_ns) {
		bool over = degree_shed(ras);

		ring->relink_ns = levels_fill(ras) && !over
					  ? RAS_NEVER
					  : ras->observed_ns + ras->profile->relink_ns;
	}
	ras_wake_at(ras, ring->relink_ns);
}
