// SPDX-License-Identifier: BSD-3-Clause
// Table of the parts of an instance: what each part does at the start, in a tick, and at events.
//
// Links notify the parts above them through this table, so they call none of these by name.
// Starts, ticks and changed peers go through the parts in the order of the table. Link events and
// the end of the instance go through the parts in reverse order: a higher part gives up its use of
// a link before a lower part acts. The end of a membership has its own order, see
// member/membership.c.
#pragma once

#include <ras/ras.h>

struct link;

enum link_event {
	// The link is lost (is not ready), is about to be dropped, or is delayed from now on.
	LINK_LOST,
	LINK_WRITABLE, // all queued frames were sent, or a delayed link was heard again
	// A message came after no link was heard for suspect_ns: this agent was cut off or deaf.
	LINK_HEARD_AFTER_DEAFNESS,
	LINK_PEER_HEARD, // first message since the link was marked as watched
	LINK_PEER_SILENT,
	LINK_PEER_REFUSED, // first refused connect since the last proof of life
	LINK_PEER_GONE,	   // refused twice, gone_recheck_ns apart
	LINK_EVENT_COUNT,
};

int parts_init(struct ras *ras); // -ENOMEM
// End all parts. Also called after parts_init() failed: a part that was not started has no memory.
void parts_fini(struct ras *ras);
void parts_tick(struct ras *ras);
// Return when a part with deadlines in the caller's time has work, or RAS_NEVER. All other parts
// request their ticks by ras_wake_at().
uint64_t parts_next_ns(const struct ras *ras);

// Handle a frame of a ready link. Returns 0, -EBADMSG or a similar error.
int parts_frame_received(struct ras *ras, struct link *link, const uint8_t *frame, size_t size);
void parts_link_event(struct ras *ras, struct link *link, enum link_event event);
// End messages to and from a peer that is no member any more, or that started anew.
void parts_peer_changed(struct ras *ras, uint32_t slot);
