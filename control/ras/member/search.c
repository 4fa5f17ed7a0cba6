// SPDX-License-Identifier: BSD-3-Clause
// Tries lost members, seeds outside the ring, and remembered addresses, one after the other.
#include "member/search.h"

#include "core/core.h"

#define TRIES_PER_SECOND 2 // for each address, by all members together

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

static void search_try_next(struct ras *ras, uint32_t targets) {
	struct search *search = &ras->search;
	uint32_t lost = peers_tombstone_count(&ras->peers);
	uint32_t seeds = ras->join.seed_count;
	uint32_t turn;

	// A random first target, so that not all members try the same addresses together.
	if (search->targets != targets)
		search->turn = (uint32_t)(ras_random(ras) % targets);
	search->targets = targets;
	search->turn = (search->turn + 1) % targets;

	// The targets are the lost peers, then the seeds, then the remembered addresses.
	turn = search->turn;
	if (turn >= lost + seeds) {
		remembered_try_address(ras, turn - lost - seeds);
		return;
	}
	if (turn >= lost) {
		join_try_seed(ras, turn - lost);
		return;
	}
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		if (entry->record == NULL || peer_is_member(entry) || turn-- > 0)
			continue;
		link_want(ras, slot, RAS_USE_CHECK);
		return;
	}
}

void search_tick(struct ras *ras) {
	struct search *search = &ras->search;
	uint32_t targets =
		peers_tombstone_count(&ras->peers) + ras->join.seed_count + ras->remembered.count;
	uint64_t interval_ns, wait_ns;

	if (!ras->joined || ras->leaving || targets == 0) {
		search->interval_ns = 0;
		return;
	}
	interval_ns = peers_ring_count(&ras->peers) * RAS_NS_PER_SEC / TRIES_PER_SECOND / targets;
	if (interval_ns < ras->profile->search_ns)
		interval_ns = ras->profile->search_ns;
	search_set_interval(ras, interval_ns);
	if (search->due_ns <= ras->observed_ns) {
		search_try_next(ras, targets);
		wait_ns = search->interval_ns / 2 + ras_random(ras) % search->interval_ns;
		if (wait_ns < ras->profile->search_ns)
			wait_ns = ras->profile->search_ns;
		search->due_ns = ras->observed_ns + wait_ns;
	}
	ras_wake_at(ras, search->due_ns);
}
