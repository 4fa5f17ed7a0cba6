// SPDX-License-Identifier: BSD-3-Clause
// The list sent with a census: its subjects, members without a vote, and members not counted.
#include "live/census_list.h"

#include "core/core.h"

#include <ras/payload.h>

#include <string.h>

// Insert an entry in ascending order, the order in which the list is sent. Returns false if the
// entry exists or the list is full.
static bool entry_add(struct census_list *list, uint32_t most, struct ras_comm_id entry) {
	uint32_t at = 0;
	int order = 1;

	if (list->count >= most)
		return false;
	while (at < list->count && (order = ras_comm_id_compare(&list->entries[at], &entry)) < 0)
		at++;
	if (at < list->count && order == 0)
		return false;
	memmove(&list->entries[at + 1], &list->entries[at],
		(list->count - at) * sizeof(*list->entries));
	list->entries[at] = entry;
	list->count++;
	return true;
}

static void subject_add(struct census_list *list, uint64_t id) {
	entry_add(list, COLLECT_SUBJECTS_MAX, collect_census_entry(id, COLLECT_CENSUS_SUBJECT));
}

static void suspects_add(struct ras *ras, struct census_list *list, bool agreed) {
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		const struct suspicion *suspicion = &ras->liveness.suspicions[n];

		if (suspicion->agreed == agreed)
			subject_add(list, ras_entry(ras, suspicion->slot)->record->id);
	}
}

// Add a member without a vote. Returns 1 if it does not count when missed either, as it is no
// opponent.
static uint32_t
voteless_member_add(const struct ras *ras, struct census_list *list, uint32_t slot) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	struct ras_comm_id asked;

	if (!votes_member_has_none(ras, slot))
		return 0;
	if ((entry->flags & PEER_READMITTED) != 0)
		asked = collect_census_entry(entry->record->id, COLLECT_CENSUS_NO_VOTE);
	else
		asked = collect_census_late_entry(entry->record->id, peers_digest(&ras->peers));
	return entry_add(list, COLLECT_CENSUS_MAX, asked) &&
	       (entry->flags & (PEER_READMITTED | PEER_IS_OPPONENT)) == PEER_READMITTED;
}

// Add former members that are dead or left here. A readmitted member may pass the census on to
// them: they may not know of their death, or joined again in a partition. If counted, they would
// hide a missed member in the sum.
static void former_members_add(struct ras *ras, struct census_list *list, enum ras_state state) {
	uint32_t more = ras->peers.state_counts[state];

	for (uint32_t slot = 0; more > 0 && slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		if (list->count == COLLECT_CENSUS_MAX)
			return;
		if (entry->record == NULL || entry->state != state)
			continue;
		entry_add(
			list, COLLECT_CENSUS_MAX,
			collect_census_entry(entry->record->id, COLLECT_CENSUS_NO_MEMBER)
		);
		more--;
	}
}

static enum collect_census_kind
request_entry_of(const struct collect_request *request, uint64_t id) {
	uint32_t low = 0, high = request->skip_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct ras_comm_id entry = collect_skip_at(request, middle);
		enum collect_census_kind word = collect_census_kind(&entry);

		// A subject may be listed a second time, with its vote.
		if (entry.hash == id && word != COLLECT_CENSUS_SUBJECT)
			return word;
		if (entry.hash < id || entry.hash == id)
			low = middle + 1;
		else
			high = middle;
	}
	return COLLECT_CENSUS_UNKNOWN;
}

static bool has_vote_in(const struct collect_request *request, uint64_t id) {
	return request_entry_of(request, id) == COLLECT_CENSUS_UNKNOWN;
}

// Return true if the list has all members without a vote. They are added before the former members:
// a former member in the list, or a free place, shows that none was left out.
static bool voteless_are_complete(const struct collect_request *request) {
	for (uint32_t n = 0; n < request->skip_count; n++) {
		struct ras_comm_id entry = collect_skip_at(request, n);

		if (collect_census_kind(&entry) == COLLECT_CENSUS_NO_MEMBER)
			return true;
	}
	return request->skip_count < COLLECT_CENSUS_MAX;
}

bool census_list_grants_vote(const struct collect_request *request, uint64_t id) {
	return has_vote_in(request, id) && voteless_are_complete(request);
}

bool census_list_is_usable(const struct ras *ras, const struct collect_request *request) {
	const struct liveness *liveness = &ras->liveness;
	bool anywhere = liveness->voteless_count > COLLECT_CENSUS_MAX;
	uint32_t most = anywhere ? ras->peers.entry_count : liveness->voteless_count;

	if (!has_vote_in(request, request->origin))
		return false;
	if (!voteless_are_complete(request))
		return true;
	for (uint32_t n = 0; n < most; n++) {
		uint32_t slot = anywhere ? n : liveness->voteless_slots[n];

		if (votes_member_has_none(ras, slot) &&
		    has_vote_in(request, ras_entry(ras, slot)->record->id))
			return false;
	}
	return true;
}

void census_list_build(struct ras *ras, struct census_list *ret_list) {
	const struct liveness *liveness = &ras->liveness;
	struct census *census = &ras->liveness.census;
	bool anywhere = liveness->voteless_count > COLLECT_CENSUS_MAX;
	uint32_t most = anywhere ? ras->peers.entry_count : liveness->voteless_count;

	// Subjects are peers about which the census asks who hears them. Most urgent first:
	// suspects whose death waits for this census, members that refuse this agent, other
	// suspects. The last only if their death may be declared, by this agent or by the members
	// asked.
	ret_list->count = 0;
	suspects_add(ras, ret_list, true);
	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];

		if (link->used && link->refused_ns != RAS_NEVER &&
		    peer_is_member(ras_entry(ras, link->slot)))
			subject_add(ret_list, link->peer);
	}
	if (!liveness->brake || votes_self_has_none(ras))
		suspects_add(ras, ret_list, false);

	// Members without a vote. Some do not know it themselves: a member that founded a ring
	// which later merged with ours was never told. If the list is full, the remaining members
	// report their vote as they know it.
	census->own_members = peers_ring_count(&ras->peers);
	census->own_voteless = 0;
	if (votes_self_has_none(ras))
		entry_add(
			ret_list, COLLECT_CENSUS_MAX,
			collect_census_entry(ras->self_id, COLLECT_CENSUS_NO_VOTE)
		);
	for (uint32_t n = 0; n < most && ret_list->count < COLLECT_CENSUS_MAX; n++)
		census->own_voteless += voteless_member_add(
			ras, ret_list, anywhere ? n : liveness->voteless_slots[n]
		);
	former_members_add(ras, ret_list, RAS_DEAD);
	former_members_add(ras, ret_list, RAS_LEFT);
}
