// SPDX-License-Identifier: BSD-3-Clause
// Number of independent witnesses that a death has and needs.
#include "live/liveness_witness.h"

#include "core/core.h"

// Return min(observers, agents able to look), without the subject and including this agent.
// Suspects count as able: if no agent answers, this agent is cut off and must hold the death back.
uint32_t witnesses_needed(const struct ras *ras, uint32_t slot) {
	uint32_t able = peers_member_count(&ras->peers);

	if (slot != RAS_NO_SLOT && peer_is_member(ras_entry(ras, slot)))
		able--;
	return able < ras->profile->observers ? able : ras->profile->observers;
}

bool witness_is_barred(
	const struct ras *ras, uint32_t slot, enum ras_cause cause, uint32_t observer
) {
	uint64_t id = ras_entry(ras, observer)->record->id;

	return turns_barred_until(ras, slot, cause, id) > ras->observed_ns;
}

static uint64_t host_id_at(const struct ras *ras, uint32_t slot) {
	return ras_entry(ras, slot)->record->host_id;
}

// Return true if two agents name the same host or have the same IP address. The address counts too,
// because a member may claim any host.
static bool share_host(const struct ras *ras, uint32_t one, uint32_t other) {
	const struct sock_addr first = sock_addr_ip_only(&ras_entry(ras, one)->record->address);
	const struct sock_addr second = sock_addr_ip_only(&ras_entry(ras, other)->record->address);

	return host_id_at(ras, one) == host_id_at(ras, other) || sock_addr_equal(&first, &second);
}

static bool is_on_own_host(const struct ras *ras, uint32_t slot) {
	return share_host(ras, slot, ras->self_slot);
}

// Return true if an agent outside the host can look, because this agent hears it. Agents only known
// from the table may all be gone.
static bool other_host_can_look(const struct ras *ras, uint32_t subject, uint64_t host) {
	if (host_id_at(ras, ras->self_slot) != host)
		return true;
	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];

		if (link->slot != subject && link_is_good(link) &&
		    host_id_at(ras, link->slot) != host)
			return true;
	}
	return false;
}

uint32_t witnesses_count(
	const struct ras *ras,
	const struct suspicion *suspicion,
	enum ras_cause cause,
	uint32_t *ret_other
) {
	uint64_t host = host_id_at(ras, ras->self_slot);
	uint32_t beside = RAS_NO_SLOT;
	bool other_host_has_answered = false;

	for (uint32_t n = 0; n < suspicion->asked_count; n++) {
		uint32_t other = suspicion->asked[n];
		bool saw = suspicion->observations[n] == OBSERVATION_GONE ||
			   (suspicion->observations[n] == OBSERVATION_SILENT &&
			    cause == RAS_CAUSE_SILENT);

		if (suspicion->observations[n] != OBSERVATION_NONE && !is_on_own_host(ras, other))
			other_host_has_answered = true;
		if (!saw || witness_is_barred(ras, suspicion->slot, cause, other))
			continue;
		if (!is_on_own_host(ras, other)) {
			*ret_other = other;
			return 2;
		}
		beside = other;
	}
	if (beside == RAS_NO_SLOT || other_host_has_answered ||
	    other_host_can_look(ras, suspicion->slot, host))
		return 1;
	*ret_other = beside;
	return 2;
}

uint32_t witnesses_reported(const struct ras *ras, const struct peer_news *news) {
	uint32_t subject = peers_find(&ras->peers, news->id);
	uint32_t first, second;

	if (news->observer_count == 0)
		return 0;
	first = peers_find(&ras->peers, news->observers[0]);
	if (news->cause == RAS_CAUSE_EXITED && first != RAS_NO_SLOT && subject != RAS_NO_SLOT &&
	    first != subject &&
	    ras_records_share_machine(
		    ras_entry(ras, first)->record, ras_entry(ras, subject)->record
	    ))
		return PEERS_WEIGHT_EXITED;
	if (news->observer_count < 2)
		return news->observer_count;
	second = peers_find(&ras->peers, news->observers[1]);
	// The host of a stranger is unknown.
	if (first == RAS_NO_SLOT || second == RAS_NO_SLOT || !share_host(ras, first, second) ||
	    !other_host_can_look(ras, subject, host_id_at(ras, first)))
		return news->observer_count;
	return 1;
}
