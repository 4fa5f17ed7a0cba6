// SPDX-License-Identifier: BSD-3-Clause
// Tries lost members, seeds outside the ring, and remembered addresses, one after the other.
#include "member/search.h"

#include "core/core.h"

#define TRIES_PER_SECOND 2 // for each address, by all members together

static uint32_t search_target_count(const struct ras *ras) {
	return peers_tombstone_count(&ras->peers) + ras->join.seed_count + ras->remembered.count;
}

static uint64_t search_interval_ns(struct ras *ras, uint32_t targets) {
	uint64_t members = peers_ring_count(&ras->peers);
	uint64_t interval_ns = members * RAS_NS_PER_SEC / TRIES_PER_SECOND / targets;

	return interval_ns > ras->profile->search_ns ? interval_ns : ras->profile->search_ns;
}

// Set the interval between two tries and scale the rest of the current wait with it. If all members
// restarted their wait at each death, they would all try the same address at the same moment.
static void search_set_interval(struct ras *ras, uint64_t interval_ns) {
	struct search *search = &ras->search;
	uint64_t now_ns = ras->observed_ns;
	uint64_t left_ms;

	if (search->interval_ns == interval_ns)
		return;
	if (search->interval_ns == 0) {
		search->due_ns = now_ns + ras_random(ras) % interval_ns;
	} else if (search->due_ns > now_ns) {
		left_ms = (search->due_ns - now_ns) / RAS_NS_PER_MS;
		search->due_ns = now_ns + left_ms * (interval_ns / RAS_NS_PER_MS) /
						  (search->interval_ns / RAS_NS_PER_MS) *
						  RAS_NS_PER_MS;
	}
	search->interval_ns = interval_ns;
}

static uint32_t lost_peer_slot(const struct ras *ras, uint32_t place) {
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		if (entry->record != NULL && !peer_is_member(entry) && place-- == 0)
			return slot;
	}
	return RAS_NO_SLOT;
}

static void seed_or_remembered_try(struct ras *ras, uint32_t place) {
	uint32_t seeds = ras->join.seed_count;

	if (place < seeds)
		join_try_seed(ras, place);
	else
		remembered_try_address(ras, place - seeds);
}

static void search_try_next(struct ras *ras, uint32_t targets) {
	struct search *search = &ras->search;
	uint32_t lost = peers_tombstone_count(&ras->peers);
	uint32_t slot;

	// A random first target, so that not all members try the same addresses together.
	if (search->targets != targets)
		search->turn = (uint32_t)(ras_random(ras) % targets);
	search->targets = targets;
	search->turn = (search->turn + 1) % targets;
	if (search->turn >= lost) {
		seed_or_remembered_try(ras, search->turn - lost);
		return;
	}
	slot = lost_peer_slot(ras, search->turn);
	if (slot != RAS_NO_SLOT)
		link_want(ras, slot, RAS_USE_CHECK);
}

void search_tick(struct ras *ras) {
	struct search *search = &ras->search;
	uint32_t targets = search_target_count(ras);
	uint64_t wait_ns;

	if (!ras->joined || ras->leaving || targets == 0) {
		search->interval_ns = 0;
		return;
	}
	search_set_interval(ras, search_interval_ns(ras, targets));
	if (search->due_ns <= ras->observed_ns) {
		search_try_next(ras, targets);
		wait_ns = search->interval_ns / 2 + ras_random(ras) % search->interval_ns;
		if (wait_ns < ras->profile->search_ns)
			wait_ns = ras->profile->search_ns;
		search->due_ns = ras->observed_ns + wait_ns;
	}
	ras_wake_at(ras, search->due_ns);
}
