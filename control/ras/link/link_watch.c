// SPDX-License-Identifier: BSD-3-Clause
// Judges the silence of a link.
#include "link/link_watch.h"

#include "core/core.h"

uint64_t link_silence_ns(const struct ras *ras, const struct link *link) {
	uint64_t silent_ns = ras->observed_ns - link->heard_ns;
	uint64_t promised_ns = link->period_ns - ras->profile->beat_ns;

	// What it promised to be silent for anyway, beyond the beat every threshold allows for.
	return silent_ns > promised_ns ? silent_ns - promised_ns : 0;
}

bool link_speaks(const struct ras *ras, const struct link *link) {
	return link_is_good(link) && !link->unheard &&
	       link_silence_ns(ras, link) < ras->profile->suspect_ns;
}

// If our machine stood still, what the peer sent meanwhile is sent again later and later: of a
// pause of 14 s the rest may come 7 s after it. Another connection tells sooner, once for each
// pause; the one there is stays until that one is up, for a firewall may let none but it pass.
static void link_renew(struct ras *ras, struct link *link) {
	const struct conn *current = link->current;

	if (current == NULL || current->ready_ns >= ras->awake_ns ||
	    link->heard_ns >= ras->awake_ns || link->renewed_ns >= ras->awake_ns)
		return;
	link->renewed_ns = ras->observed_ns;
	if (link->pending == NULL)
		link->pending = conn_open(ras, &ras_entry(ras, link->slot)->record->address, link);
}

void link_silence_judge(struct ras *ras, struct link *link) {
	const struct ras_profile *profile = ras->profile;
	uint64_t silent_ns = link_silence_ns(ras, link);
	uint64_t left_ns;

	// Mostly it spoke in time: that is settled before anybody's entry is looked at.
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
		collective_link_lost(ras, link);
		relay_link_lost(ras, link);
		ring_delayed(ras, link);
	}
	link_renew(ras, link);
	if (silent_ns >= profile->silent_close_ns && link->current != NULL &&
	    ras->observed_ns - link->current->ready_ns >= profile->silent_close_ns) {
		struct conn *conn = link->current;

		// It may be half-open: only a new connection tells. The clock goes on.
		conn_close(ras, conn, RAS_CLOSE_HARD);
		link_conn_ended(ras, link, conn, RAS_CAUSE_SILENT);
	}
	if (silent_ns >= profile->suspect_ns) {
		if (ras->observed_ns >= link->excused_ns)
			liveness_silent(ras, link);
		else
			ras_wake_at(ras, link->excused_ns);
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
