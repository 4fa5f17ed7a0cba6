// SPDX-License-Identifier: BSD-3-Clause
// Decides which of two agents with one name keeps it.
#include "member/rival.h"

#include "core/core.h"

#define RIVAL_GAP_NS RAS_NS_PER_SEC

bool rival_outranks_us(const struct ras *ras, const struct ras_record *record) {
	const struct ras_record *own = ras_self(ras)->record;

	// Two agents cannot listen at one address: this is another run of ourselves.
	if (record->id != ras->self_id || sock_addr_equal(&record->address, &own->address))
		return false;
	return record->start != own->start ? record->start > own->start
					   : record->digest > own->digest;
}

void rival_call(struct ras *ras, const struct sock_addr *address, uint64_t start) {
	struct rival *rival = &ras->join.rival;

	if (!ras->joined || ras->leaving || join_is_own_address(ras, address) ||
	    rival->next_ns > ras->observed_ns)
		return;
	rival->next_ns = ras->observed_ns + ras_jitter(ras, RIVAL_GAP_NS);
	rival->address = *address;
	rival->start = start;
	join_connect(ras, address);
}

void rival_answer_received(
	struct ras *ras, const struct sock_addr *address, const struct message_init_ack *ack
) {
	struct rival *rival = &ras->join.rival;
	struct ras_record *record;

	if (!ras->joined ||
	    ras_record_intern(ras->interner, ack->record, ack->record_size, &record) != 0)
		return;
	if (rival->start > 0 && sock_addr_equal(&rival->address, address)) {
		if (record->id != ras->self_id)
			ras_supersede_earlier_run(ras, rival->start - 1);
		rival->start = 0;
	}
	// The refusing agent is the other holder, or names its address.
	if (ack->refusal == RAS_CAUSE_CONFLICT) {
		if (rival_outranks_us(ras, record) && !rival->gave_way) {
			rival->gave_way = true;
			ras->join.refused_by = record->address;
			ras_emit(ras, RAS_EVENT_JOIN_REFUSED, RAS_NO_SLOT, RAS_CAUSE_CONFLICT, 0);
		} else if (record->id != ras->self_id && ack->redirect_count > 0) {
			rival_call(ras, &ack->redirects[0], ack->your_start);
		}
	}
	ras_record_put(ras->interner, record);
}
