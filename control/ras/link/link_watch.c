// SPDX-License-Identifier: BSD-3-Clause
// Judgement of silent links.
#include "core/core.h"
#include "link/link.h"

uint64_t link_silence_ns(const struct ras *ras, const struct link *link) {
	uint64_t silent_ns = ras->observed_ns - link->heard_ns;
	uint64_t promised_ns = link->period_ns - ras->profile->beat_ns;

	// Subtract the silence that the peer promised beyond one beat; each threshold includes one
	// beat.
	return silent_ns > promised_ns ? silent_ns - promised_ns : 0;
}

bool link_has_live_peer(const struct ras *ras, const struct link *link) {
	return link_is_good(link) && !link->unheard &&
	       link_silence_ns(ras, link) < ras->profile->suspect_ns;
}

void link_silence_judge(struct ras *ras, struct link *link) {
	const struct ras_profile *profile = ras->profile;
	uint64_t silent_ns = link_silence_ns(ras, link);
	uint64_t left_ns;

	// Most peers spoke in time: decide that before any entry is read.
	if (silent_ns < profile->delayed_ns) {
		ras_wake_at(ras, ras->observed_ns + profile->suspect_ns - silent_ns);
		return;
	}
	if (!peer_is_member(ras_entry(ras, link->slot)))
		return;
	if (!link->delayed) {
		link->delayed = true;
		link->watched = true;
		ras_emit(ras, RAS_EVENT_LINK_DELAYED, link->slot, RAS_CAUSE_SILENT, silent_ns);
		parts_link_event(ras, link, LINK_LOST);
		ring_link_delayed(ras, link);
	}

	// After a pause of this machine, try a second connection, once per pause. TCP retransmits
	// at growing intervals what the peer sent meanwhile: after a pause of 14 s the rest may
	// arrive 7 s late. The current connection stays until the new one is ready, since a
	// firewall may block new ones.
	if (link->current != NULL && link->current->ready_ns < ras->long_pause_end_ns &&
	    link->heard_ns < ras->long_pause_end_ns &&
	    link->pause_reconnect_ns < ras->long_pause_end_ns) {
		link->pause_reconnect_ns = ras->observed_ns;
		if (link->pending == NULL)
			link->pending =
				conn_open(ras, &ras_entry(ras, link->slot)->record->address, link);
	}

	if (silent_ns >= profile->silent_close_ns && link->current != NULL &&
	    ras->observed_ns - link->current->ready_ns >= profile->silent_close_ns) {
		struct conn *conn = link->current;

		// The connection may be half-open, which only a new one shows. The silence
		// continues to count.
		conn_close(ras, conn, RAS_CLOSE_HARD);
		link_conn_ended(ras, link, conn, RAS_CAUSE_SILENT);
	}
	if (silent_ns >= profile->suspect_ns) {
		if (ras->observed_ns >= link->silence_excused_until_ns)
			parts_link_event(ras, link, LINK_PEER_SILENT);
		else
			ras_wake_at(ras, link->silence_excused_until_ns);
	}
	left_ns = profile->suspect_ns > silent_ns ? profile->suspect_ns - silent_ns
						  : profile->beat_ns;
	ras_wake_at(ras, ras->observed_ns + left_ns);
}

void link_stuck_check(struct ras *ras, struct link *link) {
	uint64_t age_ns;

	if (link->queue_head == NULL || link->current == NULL)
		return;
	age_ns = ras->observed_ns - link->queue_head->queued_ns;
	if (age_ns >= ras->profile->stuck_ns) {
		struct conn *conn = link->current;

		ras_emit(ras, RAS_EVENT_LINK_STUCK, link->slot, RAS_CAUSE_STUCK, age_ns);
		conn_close(ras, conn, RAS_CLOSE_HARD);
		link->queue_head->queued_ns = ras->observed_ns;
		link_conn_ended(ras, link, conn, RAS_CAUSE_STUCK);
	} else {
		ras_wake_at(ras, link->queue_head->queued_ns + ras->profile->stuck_ns);
	}
}
