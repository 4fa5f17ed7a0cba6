// SPDX-License-Identifier: BSD-3-Clause
// Routing of messages over the links: what the rest of the core calls.
//
// A message goes to the good link whose peer is nearest to the destination in the ring, ties to
// the lowest id. Each hop leads nearer, but for one detour, and none goes straight back: so every
// route ends, and the hop limit is only a net for tables that disagree. Nodes between keep
// nothing of a message; they copy it once, patch its fixed header and pass it on.
#pragma once

#include "core/message.h"

#include <ras/relay.h>

struct link;

// Ports of the core's own, below RAS_RELAY_PORT_MIN.
enum relay_port {
	RELAY_PORT_CONFIRM = 1, // do you see this peer, and the answer; sent once
	RELAY_PORT_TRANSFER,	// segments and credits; as users' messages
};

int relay_create(struct ras *ras); // -ENOMEM
void relay_destroy(struct ras *ras);

// To a peer's current start, once: no retry, no report, no order. A link that restarts may
// bring it twice. What has no route or no room is counted and gone. At most
// RAS_RELAY_CONTROL_BYTES_MAX bytes, or of the class.
void relay_send_internal(
	struct ras *ras,
	uint32_t slot,
	enum relay_port port,
	enum ras_relay_class rank,
	const void *payload,
	size_t size
);

// As ras_relay_send() from inside the core, to one of its own ports: acknowledged, tried again,
// ordered if asked for. Its end is told to ras_relay_report().
int relay_send_own(
	struct ras *ras, const struct ras_relay_message *message, uint64_t *ret_message_id
);
// As ras_relay_cancel(); nothing if it has ended.
void relay_take_back(struct ras *ras, uint64_t message_id);

// Where messages that are acknowledged end, and what became of our own: with the core or with
// its user, by their port; in core.c.
int ras_relay_deliver(struct ras *ras, const struct ras_relay_delivery *delivery);
void ras_relay_report(struct ras *ras, uint32_t port, const struct ras_relay_report *report);

// Where a message that is sent once ends; in core.c. A reader left with an error is counted as
// UNDECODABLE.
void ras_relay_internal(
	struct ras *ras, uint64_t source, uint32_t port, struct wire_reader *reader
);

// A whole MESSAGE_RELAY frame, its type byte included. -EBADMSG: no agent sends this, and the
// connection it came by is to be closed.
int relay_message(struct ras *ras, struct link *link, const uint8_t *frame, size_t size);

// The link takes frames (again): what waits for it goes, until it takes no more.
void relay_link_good(struct ras *ras, struct link *link);
// The link is about to be closed, or is delayed from now on, link_is_good() being false for it:
// what waits for it goes another way.
void relay_link_lost(struct ras *ras, struct link *link);
// The peer died, left or started again: what was for it ends at once. Not for refutations.
void relay_peer_changed(struct ras *ras, uint32_t slot);
// Ours is another start: what was sent in the earlier one may have been delivered, and would pass
// for another message now. It ends as expired.
void relay_self_restarted(struct ras *ras);

void relay_tick(struct ras *ras);
// When relay_tick() has something to do, or RAS_NEVER.
uint64_t relay_next_ns(const struct ras *ras);
// Brings near what that reads.
void relay_fetch(const struct ras *ras);

// How far a message may travel in a ring of so many: the longest way by the rules, with room for
// the detour and for tables that differ a little.
uint32_t relay_hops_max(uint32_t members, bool long_rings);
