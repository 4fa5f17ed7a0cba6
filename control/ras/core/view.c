// SPDX-License-Identifier: BSD-3-Clause
// Read access to an instance: view, peers, links, history and counters.
#include "core/core.h"

#include <errno.h>
#include <string.h>

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	const struct census_outcome *word = &ras->liveness.census.word;
	const uint32_t *counts = ras->peers.state_counts;
	bool missed = counts[RAS_SUSPECT] + counts[RAS_UNREACHABLE] > 0;
	// The census is older than the states: once all members are heard again, none is missed.
	bool waits = ras->liveness.brake && missed && brake_is_minority_side(ras);
	// A new member may have been reached before it is in the table.
	uint32_t reached = word->reached < word->members ? word->reached : word->members;

	*ret_view = (struct ras_view){
		.number = ras->peers.view_number,
		.digest = peers_digest(&ras->peers),
		.alive = peers_member_count(&ras->peers),
		.suspect = counts[RAS_SUSPECT],
		.unreachable = counts[RAS_UNREACHABLE],
		.dead = counts[RAS_DEAD],
		.left = counts[RAS_LEFT],
		.slots_max = ras->peers.entry_count,
		.joined = ras->joined,
		.brake = ras->liveness.brake,
		.waits = waits,
		.reached = waits ? reached : 0,
		.reached_of = waits ? word->members : 0,
		.silent = ras->liveness.brake ? census_missed_count(word) : 0,
		.refused_by = ras->join.refused_by,
		.versions = ras->versions,
	};
}

uint64_t ras_self_id(const struct ras *ras) {
	return ras->self_id;
}

uint64_t ras_self_incarnation(const struct ras *ras) {
	return ras_self(ras)->incarnation;
}

// Return the time since `observed_ns`, with the pauses of this agent.
static uint64_t age_with_pauses_ns(const struct ras *ras, uint64_t observed_ns) {
	uint64_t age_ns = ras->observed_ns - observed_ns;

	for (uint32_t n = 0; n < ras->pause_count; n++) {
		if (ras->pauses[n].observed_ns > observed_ns)
			age_ns += ras->pauses[n].length_ns;
	}
	return age_ns;
}

int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer) {
	const struct peer_entry *entry;
	uint64_t age_ns;

	if (slot >= ras->peers.entry_count || ras_entry(ras, slot)->record == NULL)
		return -ENOENT;
	entry = ras_entry(ras, slot);
	age_ns = age_with_pauses_ns(ras, entry->since_ns);
	*ret_peer = (struct ras_peer){
		.record = entry->record,
		.slot = slot,
		.incarnation = entry->incarnation,
		.state = entry->state,
		.cause = entry->cause,
		.sole = entry->state == RAS_DEAD && ras->profile->observers > 1 &&
			peers_death_weight(entry->cause, entry->weight) == 1,
		.maint = (entry->maint & 1) != 0,
		.maint_version = entry->maint,
		.since_ns = ras->now_ns > age_ns ? ras->now_ns - age_ns : 0,
	};
	if (entry->state == RAS_DEAD)
		ret_peer->observer_count =
			peers_known_observers(&ras->peers, slot, ret_peer->observers);
	return 0;
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	uint32_t slot = peers_find(&ras->peers, id);

	return slot != RAS_NO_SLOT ? ras_peer_at(ras, slot, ret_peer) : -ENOENT;
}

int ras_link_at(const struct ras *ras, uint32_t n, struct ras_link_info *ret_info) {
	const struct link *link;

	if (n >= ras->links.count)
		return -ENOENT;
	link = ras->links.table[n];
	*ret_info = (struct ras_link_info){
		.peer = link->peer,
		.ready = link_is_ready(link),
		.delayed = link->delayed,
		.outgoing = link->current != NULL && link->current->outgoing,
		.version = link->current != NULL ? link->current->version : 0,
		.mine = link->mine,
		.theirs = link->theirs,
		.silent_ns = ras->observed_ns - link->heard_ns,
		.quiet_ns = link_silence_ns(ras, link),
		.rtt_min_ns = link->rtt.min_ns,
		.rtt_mean_ns = link->rtt.count > 0 ? link->rtt.sum_ns / link->rtt.count : 0,
		.rtt_max_ns = link->rtt.max_ns,
		.wall_offset_ns = wall_offset_median(&link->wall),
		.sent_bytes = link->sent_bytes,
		.sent_frames = link->sent_frames,
		.received_bytes = link->received_bytes,
		.received_frames = link->received_frames,
		.age_ns = ras->now_ns > link->begun_ns ? ras->now_ns - link->begun_ns : 0,
		.reconnects = link->connects > 0 ? link->connects - 1 : 0,
		.queued_bytes = link->queue_bytes,
	};
	return 0;
}

uint32_t ras_history(
	const struct ras *ras,
	uint64_t from,
	struct ras_event *events,
	uint32_t count,
	uint64_t *ret_oldest
) {
	return history_read(&ras->history, from, events, count, ret_oldest);
}

const struct ras_counters *ras_counters(const struct ras *ras) {
	return &ras->counters;
}

size_t ras_history_bytes(const struct ras *ras) {
	return history_bytes(&ras->history);
}

size_t ras_memory_used(const struct ras *ras) {
	return ras->memory.used_bytes;
}
