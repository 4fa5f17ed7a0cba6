// SPDX-License-Identifier: BSD-3-Clause
// Keep-alives of links: when they are sent, and the round trips they measure.
#include "core/core.h"
#include "link/link.h"

#include <errno.h>

static bool link_needs_beat_each_tick(const struct link *link) {
	return ((link->mine | link->theirs) & (RAS_USE_RING | RAS_USE_CHECK)) != 0;
}

static void beat_send(struct ras *ras, struct link *link, uint32_t period, bool ping) {
	uint64_t delay_us = (ras->observed_ns - link->heard_sequence_ns) / 1000;
	struct message_beat beat = {
		.sequence = ++link->sent_sequence,
		.echo = link->heard_sequence,
		.echo_delay_us = delay_us < UINT32_MAX ? (uint32_t)delay_us : UINT32_MAX,
		.digest = peers_digest(&ras->peers),
		.uses = link->mine,
		.period = (uint8_t)(period < UINT8_MAX ? period : UINT8_MAX),
		.flags = ping ? MESSAGE_BEAT_PING : 0,
		.wall_ns = wall_clock_stamp(ras, link->sent_sequence),
	};
	uint8_t frame[64];
	struct wire_writer writer;

	wire_writer_init(&writer, frame, sizeof(frame));
	message_beat_encode(&beat, &writer);
	// A beat that had to wait in a queue would carry outdated values, so it is not queued.
	if (link_can_send_now(ras, link) &&
	    conn_send(ras, link->current, frame, wire_writer_used(&writer)) == 0)
		link->sent_sequence_ns = ras->observed_ns;
}

void link_beat(struct ras *ras, struct link *link, bool ping) {
	int32_t due = (int32_t)(link->beat_tick - ras->links.beats);

	// An extra beat promises no more than the next regular one will keep.
	if (link->current != NULL)
		beat_send(
			ras, link, link_needs_beat_each_tick(link) || due < 1 ? 1 : (uint32_t)due,
			ping
		);
}

int ras_link_ping(struct ras *ras, uint64_t now_ns, uint64_t peer) {
	struct link *link = link_find(ras, peers_find(&ras->peers, peer));

	if (link == NULL || !link_is_ready(link))
		return -ENOENT;
	ras_enter(ras, now_ns);
	link_beat(ras, link, true);
	ras_exit(ras);
	return 0;
}

void link_beat_heard(struct ras *ras, struct link *link, const struct message_beat *beat) {
	uint64_t delay_ns = UINT64_C(1000) * beat->echo_delay_us;
	uint64_t since_ns = ras->observed_ns - link->sent_sequence_ns;
	uint64_t travel_ns = RAS_NEVER;

	// Round trip on our own clock, minus the time at the peer, which the peer reports.
	if (beat->echo == link->sent_sequence && beat->echo != 0 && since_ns >= delay_ns) {
		travel_ns = since_ns - delay_ns;
		if (travel_ns < link->rtt.min_ns)
			link->rtt.min_ns = travel_ns;
		if (travel_ns > link->rtt.max_ns)
			link->rtt.max_ns = travel_ns;
		link->rtt.sum_ns += travel_ns;
		link->rtt.count++;
	}
	wall_clock_compare(ras, link, beat->wall_ns, travel_ns);
	link->heard_sequence = beat->sequence;
	link->heard_sequence_ns = ras->observed_ns;
	if (beat->period > 0)
		link->period_ns = beat->period * ras->profile->beat_ns;
	if (beat->uses != link->theirs) {
		// Promises made to a ring link or a look are kept after the uses changed: beat in
		// the next tick.
		link->beat_tick = ras->links.beats + 1;
		link->theirs = beat->uses;
		link_idle_check(ras, link);
		links_degree_check(ras); // an idle link may be in use again without a request
	}
	sync_digest_received(ras, link, beat->digest);
	if ((beat->flags & MESSAGE_BEAT_PING) != 0)
		link_beat(ras, link, false);
}

void links_beat_after_pause(struct ras *ras) {
	for (uint32_t n = 0; n < ras->links.count; n++) {
		if (ras->links.table[n]->used)
			link_beat(ras, ras->links.table[n], false);
	}
}

void beats_tick(struct ras *ras) {
	struct links *links = &ras->links;
	uint32_t degree = links_degree(ras);
	// Each tick serves LONG_BEATS_PER_TICK long links.
	uint32_t period =
		degree == 0 ? 1 : (degree + LONG_BEATS_PER_TICK - 1) / LONG_BEATS_PER_TICK;

	if (links->beat_due_ns > ras->observed_ns) {
		ras_wake_at(ras, links->beat_due_ns);
		return;
	}
	links->beats++;
	while (links->beat_due_ns <= ras->observed_ns)
		links->beat_due_ns += ras->profile->beat_ns;
	ras_wake_at(ras, links->beat_due_ns);
	for (uint32_t n = 0; n < links->count; n++) {
		struct link *link = links->table[n];
		uint32_t promised;

		if (!link->used || link->current == NULL || (link->mine | link->theirs) == 0)
			continue;
		// A promise is kept even if the long links have taken longer turns since.
		if (!link_needs_beat_each_tick(link) &&
		    (int32_t)(links->beats - link->beat_tick) < 0)
			continue;
		promised = link_needs_beat_each_tick(link) ? 1 : period;
		link->beat_tick = links->beats + promised;
		beat_send(ras, link, promised, false);
	}
}
