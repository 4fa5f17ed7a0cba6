// SPDX-License-Identifier: BSD-3-Clause
// The table of parts, and the loops over it.
#include "core/parts.h"

#include "core/core.h"

#include <errno.h>

// A part has NULL where it has nothing to do.
struct ras_part {
	int (*init)(struct ras *ras);
	void (*fini)(struct ras *ras); // only releases memory
	void (*tick)(struct ras *ras);
	bool ticks_while_leaving;
	uint64_t (*next_ns)(const struct ras *ras);
	void (*on_link[LINK_EVENT_COUNT])(struct ras *ras, struct link *link);
	void (*on_peer_changed)(struct ras *ras, uint32_t slot);
};

static const struct ras_part parts[] = {
	// connections: a LEAVE may still wait for its connection
	{.tick = conns_tick, .ticks_while_leaving = true, .fini = conns_fini},
	{.tick = links_tick, .fini = links_fini},
	{.init = ring_init, .tick = ring_tick, .fini = ring_fini},
	{
		.tick = liveness_tick,
		.fini = liveness_fini,
		.on_link =
			{
				[LINK_HEARD_AFTER_DEAFNESS] = liveness_restart_silences,
				[LINK_PEER_HEARD] = liveness_peer_heard,
				[LINK_PEER_SILENT] = liveness_peer_silent,
				[LINK_PEER_REFUSED] = liveness_peer_refused,
				[LINK_PEER_GONE] = liveness_peer_gone,
			},
	},
	{.tick = contests_tick, .fini = contests_fini},
	{.tick = turns_tick, .fini = turns_fini},
	{.fini = remembered_fini},
	{.tick = join_tick, .fini = join_fini},
	{.tick = search_tick},
	{.tick = key_checks_tick},
	{.init = hearsay_init, .tick = hearsay_tick, .fini = hearsay_fini},
	{.fini = flood_fini},
	{
		.init = relay_create,
		.tick = relay_tick,
		.next_ns = relay_next_ns,
		.fini = relay_destroy,
		.on_link = {[LINK_LOST] = relay_link_lost, [LINK_WRITABLE] = relay_link_flush},
		.on_peer_changed = relay_peer_changed,
	},
	{
		.init = transfer_create,
		.tick = transfer_tick,
		.next_ns = transfer_next_ns,
		.fini = transfer_destroy,
		.on_peer_changed = transfer_peer_changed,
	},
	{.tick = forget_order_tick},
	{.tick = expire_tick},
	{.fini = foreign_fini},
	// news: sends the updates that the rows before have queued
	{.tick = news_tick, .fini = news_fini},
	// collectives: those begun before the leave are still answered
	{
		.init = collective_create,
		.tick = collective_tick,
		.ticks_while_leaving = true,
		.next_ns = collective_next_ns,
		.fini = collective_destroy,
		.on_link = {[LINK_LOST] = collective_link_lost},
	},
};
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

int parts_init(struct ras *ras) {
	int err = 0;

	for (size_t n = 0; n < PART_COUNT && err == 0; n++) {
		if (parts[n].init != NULL)
			err = parts[n].init(ras);
	}
	return err;
}

void parts_fini(struct ras *ras) {
	for (size_t n = PART_COUNT; n-- > 0;) {
		if (parts[n].fini != NULL)
			parts[n].fini(ras);
	}
}

void parts_tick(struct ras *ras) {
	for (size_t n = 0; n < PART_COUNT; n++) {
		if (parts[n].tick != NULL && (!ras->leaving || parts[n].ticks_while_leaving))
			parts[n].tick(ras);
	}
}

uint64_t parts_next_ns(const struct ras *ras) {
	uint64_t next_ns = RAS_NEVER;

	for (size_t n = 0; n < PART_COUNT; n++) {
		uint64_t due_ns = parts[n].next_ns != NULL ? parts[n].next_ns(ras) : RAS_NEVER;

		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns;
}

int parts_frame_received(struct ras *ras, struct link *link, const uint8_t *frame, size_t size) {
	struct message_beat beat;
	struct wire_reader reader;
	int err;

	wire_reader_init(&reader, frame, size);
	switch (wire_get_u8(&reader)) {
	case MESSAGE_BEAT:
		err = message_beat_decode(&reader, &beat);
		if (err == 0)
			link_beat_heard(ras, link, &beat);
		return err;
	case MESSAGE_UPDATE:
		return news_update_received(ras, link, hearsay_source_of(link->current), &reader);
	case MESSAGE_DIGESTS:
		return sync_digests_received(ras, link, &reader);
	case MESSAGE_BRIEF:
		return sync_brief_received(ras, link, &reader);
	case MESSAGE_PULL:
		return sync_pull_received(ras, link, &reader);
	case MESSAGE_NOTICE:
		return flood_notice(ras, link, frame, size);
	case MESSAGE_COLLECT:
		return collective_request_received(ras, link, &reader);
	case MESSAGE_COLLECTED:
		return collective_answer_received(ras, link, &reader);
	case MESSAGE_COLLECT_CANCEL:
		return collective_cancel_received(ras, link, &reader);
	case MESSAGE_RELAY:
		return relay_frame_received(ras, link, frame, size);
	case MESSAGE_INIT:
	case MESSAGE_INIT_ACK:
		ras->counters.frames_unexpected++;
		return -EPROTO;
	default:
		ras->counters.frames_unknown++; // from a newer minor version
		return 0;
	}
}

void parts_link_event(struct ras *ras, struct link *link, enum link_event event) {
	for (size_t n = PART_COUNT; n-- > 0;) {
		if (parts[n].on_link[event] != NULL)
			parts[n].on_link[event](ras, link);
	}
}

void parts_peer_changed(struct ras *ras, uint32_t slot) {
	for (size_t n = 0; n < PART_COUNT; n++) {
		if (parts[n].on_peer_changed != NULL)
			parts[n].on_peer_changed(ras, slot);
	}
}
