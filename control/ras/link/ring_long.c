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

// Return the next candidate: the start of the search, then 1 more, 1 less, 2 more and so on. The
// search begins in the middle of the window. If the last link moved out of the window, the search
// begins at the opposite end, since the ring is likely to keep changing that way. If the whole
// window refused, the level rests for a while: places become free as others move.
static uint32_t level_next_candidate(struct ras *ras, uint32_t level) {
	struct ring_level *place = &ras->ring.levels[level];
	uint32_t count = peers_ring_count(&ras->peers);
	uint32_t self = ring_self_position(ras);
	uint32_t nominal = 1u << level;
	uint32_t distance_held = nominal;
	uint32_t aim = nominal;

	if (place->slot != RAS_NO_SLOT && peer_is_member(ras_entry(ras, place->slot)))
		distance_held = distance_ahead(ras, self, place->slot);
	if (!ring_distance_fits(distance_held, level))
		aim = distance_held > nominal ? (7 * nominal + 9) / 10 : 3 * nominal / 2;
	for (uint32_t tries = 0; tries < CANDIDATES_MAX; tries++) {
		uint32_t offset = (place->tries + 1) / 2;
		uint32_t distance = place->tries % 2 == 1 ? aim + offset : aim - offset;
		uint32_t slot;

		if (offset > nominal) {
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

bool ring_can_accept_uses(struct ras *ras, const struct link *link, uint32_t uses) {
	uint32_t near_places = NEAR_PLACES; // for levels 1 and 2 of other members only
	uint32_t reserved = 0;

	if ((uses & RAS_USE_LONG) == 0 || (uses & RAS_USE_RING) != 0)
		return true;
	if (link != NULL && link->mine != 0)
		return true; // this agent wants the link itself
	for (uint32_t level = 1; level <= ras->ring.level_count; level++)
		reserved += ras->ring.levels[level].slot == RAS_NO_SLOT;
	for (uint32_t n = 0; n < ras->links.count && near_places > 0; n++) {
		const struct link *other = ras->links.table[n];

		near_places -= other->used && (other->theirs & NEAR_LEVELS) != 0;
	}
	if ((uses & NEAR_LEVELS) == 0)
		reserved += near_places;
	return degree_without_replacements(ras) + reserved <
	       links_degree_max(peers_ring_count(&ras->peers));
}

// Choose the least costly link among those that only their other side wants: the one that the other
// member has to move soonest anyway, by its distance in parts of 2^level. Links of levels 1 and 2
// come last, since they have few places to move to.
static struct link *shed_link_choose(struct ras *ras) {
	uint32_t count = peers_ring_count(&ras->peers);
	uint32_t self = ring_self_position(ras);
	struct link *chosen = NULL;
	uint64_t highest = 0;

	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];
		uint32_t level, distance;
		uint64_t rank = 1;

		if (!link_is_good(link) || link->mine != 0 || (link->theirs & RAS_USE_LONG) == 0 ||
		    (link->theirs & RAS_USE_RING) != 0 ||
		    !peer_is_member(ras_entry(ras, link->slot)))
			continue;
		level = 31 - (uint32_t)__builtin_clz(link->theirs / RAS_USE_LEVEL(0));
		if (level > RAS_LEVELS_MAX)
			level = RAS_LEVELS_MAX; // the peer may report a level that no ring has
		distance = count - distance_ahead(ras, self, link->slot);
		if ((link->theirs & NEAR_LEVELS) == 0)
			rank += (uint64_t)distance << (RAS_LEVELS_MAX - level);
		if (rank > highest) {
			highest = rank;
			chosen = link;
		}
	}
	return chosen;
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
		uint32_t slot;

		replacement_activate(ras, level);
		if (place->slot != RAS_NO_SLOT && peer_is_member(ras_entry(ras, place->slot)) &&
		    ring_distance_fits(distance_ahead(ras, self, place->slot), level))
			continue;
		complete = false;
		if (place->replacement != RAS_NO_SLOT || place->rest_ns > ras->observed_ns)
			continue;
		slot = level_next_candidate(ras, level);
		if (slot == RAS_NO_SLOT || link_want(ras, slot, RAS_USE_LEVEL(level)) == NULL)
			continue;
		opened = true;
		// A link that no longer fits stays until its replacement is good.
		if (place->slot == RAS_NO_SLOT)
			place->slot = slot;
		else
			place->replacement = slot;
		replacement_activate(ras, level); // it may be ready already, for another use
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
	uint32_t count = peers_ring_count(&ras->peers);
	uint32_t levels = ras->profile->long_rings ? ring_level_count(count) : 0;
	uint64_t share = ras->self_id & 0xffff;
	struct ring *ring = &ras->ring;

	// The highest level comes to one member after another while the ring doubles. By the member
	// count alone, one join that makes 1,024 of 1,023 would make all members open a link at
	// once. In a ring of that size each restart would repeat this.
	if (levels > 1 && ((uint64_t)count << 16) < (UINT64_C(2) << levels) * (0x10000 + share))
		levels--;
	for (uint32_t level = levels + 1; level <= ring->level_count; level++) {
		ring_link_unwant(ras, ring->levels[level].slot, RAS_USE_LEVEL(level));
		ring_link_unwant(ras, ring->levels[level].replacement, RAS_USE_LEVEL(level));
		ring->levels[level] =
			(struct ring_level){.slot = RAS_NO_SLOT, .replacement = RAS_NO_SLOT};
	}
	ring->level_count = levels;
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
	bool over = false; // some links above the maximum have to stay
	uint32_t allowed;

	if (ring->relink_ns > ras->observed_ns) {
		ras_wake_at(ras, ring->relink_ns);
		return;
	}
	// Drop links above the maximum, for example after a change of ring neighbours. The other
	// sides find other places.
	allowed = links_degree_max(peers_ring_count(&ras->peers));
	while (degree_without_replacements(ras) > allowed) {
		struct link *link = shed_link_choose(ras);

		if (link == NULL) {
			over = true;
			break;
		}
		parts_link_event(ras, link, LINK_LOST);
		link_drop(ras, link, RAS_CLOSE_SOFT, RAS_CAUSE_DEGREE);
		ras->counters.links_shed++;
	}
	ring->relink_ns =
		levels_fill(ras) && !over ? RAS_NEVER : ras->observed_ns + ras->profile->relink_ns;
	ras_wake_at(ras, ring->relink_ns);
}
