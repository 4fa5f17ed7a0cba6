// SPDX-License-Identifier: BSD-3-Clause
// The two ring neighbours and the fallbacks beside them.
#include "link/ring.h"

#include "core/core.h"

#include <errno.h>

#define REBUILD_NS (20 * RAS_NS_PER_MS) // changes are collected for this time

static const uint32_t primary_use[] = {
	[RING_NEXT] = RAS_USE_NEXT,
	[RING_PREV] = RAS_USE_PREV,
};
static const uint32_t fallback_use[] = {
	[RING_NEXT] = RAS_USE_FALLBACK_NEXT,
	[RING_PREV] = RAS_USE_FALLBACK_PREV,
};

int ring_init(struct ras *ras) {
	struct ring *ring = &ras->ring;

	*ring = (struct ring){.rebuild_ns = RAS_NEVER, .relink_ns = RAS_NEVER};
	ring->levels = memory_allocate(&ras->memory, RAS_LEVELS_MAX * sizeof(*ring->levels));
	if (ring->levels == NULL)
		return -ENOMEM;
	for (uint32_t side = 0; side < 2; side++)
		ring->sides[side].primary = RAS_NO_SLOT;
	for (uint32_t level = 0; level < RAS_LEVELS_MAX; level++) {
		ring->levels[level] =
			(struct ring_level){.slot = RAS_NO_SLOT, .replacement = RAS_NO_SLOT};
	}
	return 0;
}

void ring_fini(struct ras *ras) {
	memory_release(&ras->memory, ras->ring.levels, RAS_LEVELS_MAX * sizeof(*ras->ring.levels));
	ras->ring.levels = NULL;
}

void ring_schedule_rebuild(struct ras *ras) {
	if (ras->ring.rebuild_ns != RAS_NEVER || !ras->joined)
		return;
	ras->ring.rebuild_ns = ras->observed_ns + REBUILD_NS;
	ras_wake_at(ras, ras->ring.rebuild_ns);
}

// Schedule another rebuild after a lack of memory, more slowly than for a change of members.
static void rebuild_retry_later(struct ras *ras) {
	uint64_t due_ns = ras->observed_ns + ras->profile->relink_ns;

	if (due_ns < ras->ring.rebuild_ns)
		ras->ring.rebuild_ns = due_ns;
	ras_wake_at(ras, ras->ring.rebuild_ns);
}

static uint32_t position_step(uint32_t position, uint32_t count, enum ring_direction direction) {
	if (direction == RING_NEXT)
		return position + 1 < count ? position + 1 : 0;
	return position > 0 ? position - 1 : count - 1;
}

uint32_t
ring_steps(uint32_t self, uint32_t position, uint32_t count, enum ring_direction direction) {
	uint32_t ahead = position >= self ? position - self : position + count - self;

	return direction == RING_NEXT ? ahead : (count - ahead) % count;
}

uint32_t ring_self_position(struct ras *ras) {
	return peers_ring_position(&ras->peers, ras_self(ras)->record);
}

void ring_link_unwant(struct ras *ras, uint32_t slot, uint32_t uses) {
	struct link *link = slot != RAS_NO_SLOT ? link_find(ras, slot) : NULL;

	if (link != NULL)
		link_unwant(ras, link, uses);
}

static void fallbacks_drop(struct ras *ras, enum ring_direction direction) {
	struct ring_side *side = &ras->ring.sides[direction];

	while (side->fallback_count > 0)
		ring_link_unwant(
			ras, side->fallbacks[--side->fallback_count], fallback_use[direction]
		);
}

bool ring_slot_is_good(const struct ras *ras, uint32_t slot) {
	const struct link *link = link_find(ras, slot);

	return link != NULL && link_is_good(link);
}

// Return true if the other members on a failed member's host are skipped too. Otherwise each of
// them would cost its own delay. Not if it is the own host, or if one of them is known to be well.
static bool host_is_skipped(struct ras *ras, const struct ras_record *failed) {
	if (failed->host_id == ras_self(ras)->record->host_id)
		return false;
	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];

		if (link_is_good(link) &&
		    ras_entry(ras, link->slot)->record->host_id == failed->host_id)
			return false;
	}
	return true;
}

// Return the next suitable member beyond `last`, or RAS_NO_SLOT if the search reached this agent.
static uint32_t
fallback_candidate(struct ras *ras, enum ring_direction direction, uint32_t last, bool skip_host) {
	struct peers *peers = &ras->peers;
	const struct ras_record *failed = ras_entry(ras, last)->record;
	uint32_t count = peers_ring_count(peers);
	uint32_t position = peers_ring_position(peers, failed);

	for (uint32_t steps = 0; steps < count; steps++) {
		const struct link *link;
		uint32_t slot;

		position = position_step(position, count, direction);
		slot = peers_ring_at(peers, position);
		if (slot == ras->self_slot)
			return RAS_NO_SLOT;
		if (skip_host && ras_entry(ras, slot)->record->host_id == failed->host_id)
			continue;
		link = link_find(ras, slot);
		if (link == NULL || !link->delayed)
			return slot;
	}
	return RAS_NO_SLOT;
}

// Return the candidate, or a closer peer beyond `last` that already uses a link to this agent. Such
// a peer serves as fallback without a new link.
static uint32_t nearer_existing_link(
	struct ras *ras, enum ring_direction direction, uint32_t last, uint32_t candidate
) {
	struct peers *peers = &ras->peers;
	uint32_t count = peers_ring_count(peers);
	uint32_t self = ring_self_position(ras);
	uint32_t beyond = ring_steps(
		self, peers_ring_position(peers, ras_entry(ras, last)->record), count, direction
	);
	uint32_t best_steps =
		candidate == RAS_NO_SLOT
			? count
			: ring_steps(
				  self,
				  peers_ring_position(peers, ras_entry(ras, candidate)->record),
				  count, direction
			  );

	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];
		const struct peer_entry *entry = ras_entry(ras, link->slot);
		uint32_t steps;

		if (!link_is_good(link) || !peer_is_member(entry) || link->theirs == 0)
			continue;
		steps = ring_steps(
			self, peers_ring_position(peers, entry->record), count, direction
		);
		if (steps > beyond && steps < best_steps) {
			best_steps = steps;
			candidate = link->slot;
		}
	}
	return candidate;
}

static void fallback_add(struct ras *ras, enum ring_direction direction) {
	struct ring_side *side = &ras->ring.sides[direction];
	bool first = side->fallback_count == 0;
	uint32_t last = first ? side->primary : side->fallbacks[side->fallback_count - 1];
	const struct ras_record *failed = ras_entry(ras, last)->record;
	uint32_t slot;

	if (side->fallback_count == RING_FALLBACKS_MAX)
		return;
	slot = fallback_candidate(ras, direction, last, !first && host_is_skipped(ras, failed));
	slot = nearer_existing_link(ras, direction, last, slot);
	if (slot == RAS_NO_SLOT || slot == side->primary)
		return;
	if (link_want(ras, slot, fallback_use[direction]) == NULL) {
		rebuild_retry_later(ras);
		return;
	}
	side->fallbacks[side->fallback_count++] = slot;
	ras_emit(ras, RAS_EVENT_LINK_FALLBACK, slot, RAS_CAUSE_SILENT, direction);
}

void ring_link_delayed(struct ras *ras, struct link *link) {
	for (uint32_t direction = 0; direction < 2; direction++) {
		struct ring_side *side = &ras->ring.sides[direction];
		bool ours = link->slot == side->primary;
		bool good = ring_slot_is_good(ras, side->primary);

		for (uint32_t n = 0; n < side->fallback_count; n++) {
			ours = ours || link->slot == side->fallbacks[n];
			good = good || ring_slot_is_good(ras, side->fallbacks[n]);
		}
		if (ours && !good)
			fallback_add(ras, direction);
	}
}

void ring_link_recovered(struct ras *ras, struct link *link) {
	for (uint32_t direction = 0; direction < 2; direction++) {
		if (link->slot == ras->ring.sides[direction].primary && link_is_good(link))
			fallbacks_drop(ras, direction);
	}
	long_ring_link_recovered(ras);
}

// The ring itself.

static void
ring_side_set_primary(struct ras *ras, enum ring_direction direction, uint32_t primary) {
	struct ring_side *side = &ras->ring.sides[direction];
	struct link *link;

	if (side->primary == primary)
		return;
	ring_link_unwant(ras, side->primary, primary_use[direction]);
	side->primary = primary;
	if (primary == RAS_NO_SLOT) {
		fallbacks_drop(ras, direction);
		return;
	}
	link = link_want(ras, primary, primary_use[direction]);
	if (link == NULL) {
		side->primary = RAS_NO_SLOT;
		rebuild_retry_later(ras);
		return;
	}
	if (link_is_good(link))
		fallbacks_drop(ras, direction);
	else if (link->delayed)
		ring_link_delayed(ras, link);
}

void ring_rebuild(struct ras *ras) {
	uint32_t count = peers_ring_count(&ras->peers);
	bool fresh = ras->joined_ns == ras->observed_ns;
	uint32_t self;

	ras->ring.rebuild_ns = RAS_NEVER;
	if (!ras->joined || ras->leaving)
		return;
	self = ring_self_position(ras);
	for (uint32_t direction = 0; direction < 2; direction++) {
		struct ring_side *side = &ras->ring.sides[direction];
		uint32_t neighbour = RAS_NO_SLOT;
		uint32_t kept = 0;
		struct link *last;

		if (count > 1)
			neighbour =
				peers_ring_at(&ras->peers, position_step(self, count, direction));
		ring_side_set_primary(ras, direction, neighbour);

		// Remove fallbacks that are no members any more, or that became the primary.
		for (uint32_t n = 0; n < side->fallback_count; n++) {
			uint32_t slot = side->fallbacks[n];

			if (peer_is_member(ras_entry(ras, slot)) && slot != side->primary)
				side->fallbacks[kept++] = slot;
			else
				ring_link_unwant(ras, slot, fallback_use[direction]);
		}
		side->fallback_count = kept;

		// Try again to add a fallback if the last link of this side is silent.
		last = kept > 0 ? link_find(ras, side->fallbacks[kept - 1])
				: link_find(ras, side->primary);
		if (last != NULL && last->delayed)
			ring_link_delayed(ras, last);
	}
	long_ring_rebuild(ras, fresh);
	votes_call_unmet(ras);
	ring_schedule_relink(ras);
}

void ring_exclude_peer(struct ras *ras, uint32_t slot) {
	struct ring *ring = &ras->ring;

	for (uint32_t direction = 0; direction < 2; direction++) {
		struct ring_side *side = &ring->sides[direction];
		uint32_t kept = 0;

		for (uint32_t n = 0; n < side->fallback_count; n++) {
			if (side->fallbacks[n] != slot)
				side->fallbacks[kept++] = side->fallbacks[n];
		}
		side->fallback_count = kept;
		if (side->primary != slot)
			continue;
		side->primary = RAS_NO_SLOT;
		if (kept == 0)
			continue;
		// The first fallback closes the ring until the next rebuild.
		side->primary = side->fallbacks[0];
		side->fallback_count--;
		for (uint32_t n = 0; n < side->fallback_count; n++)
			side->fallbacks[n] = side->fallbacks[n + 1];
		link_want(ras, side->primary, primary_use[direction]);
		ring_link_unwant(ras, side->primary, fallback_use[direction]);
	}
	long_ring_exclude_peer(ras, slot);
}

void ring_tick(struct ras *ras) {
	struct ring *ring = &ras->ring;

	if (ring->rebuild_ns <= ras->observed_ns)
		ring_rebuild(ras);
	ras_wake_at(ras, ring->rebuild_ns);
	long_ring_tick(ras);
}
